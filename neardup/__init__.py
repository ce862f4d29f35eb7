"""neardup finds near-duplicate documents.

>>> import neardup
>>> result = neardup.find(["one text ...", "another ..."])
>>> for pair in neardup.scan("docs", threshold=8):
...     print(pair.left, pair.right, pair.similarity)

The names here are the public ones; they are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neardup.errors import NeardupError, UsageError
    from neardup.pipeline import find, scan
    from neardup.result import ScanResult
    from neardup.settings import Settings
    from neardup.sketch import fingerprint

__version__ = "0.1.0"

__all__ = ["NeardupError", "ScanResult", "Settings", "UsageError", "find", "fingerprint", "scan"]

_HOME = {
    "NeardupError": "errors",
    "ScanResult": "result",
    "Settings": "settings",
    "UsageError": "errors",
    "find": "pipeline",
    "fingerprint": "sketch",
    "scan": "pipeline",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'neardup' has no attribute {name!r}")
    return getattr(import_module(f"neardup.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
