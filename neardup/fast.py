"""Whether compiled kernels are used, and why not.

A folder may have a module ``compiled``: its kernels once more, compiled by numba (extra ``fast``).
They give what the numpy kernels give, bit for bit, so that a process may change over at any time.
Loading them costs half a second, and compiling them, once on a machine, some six: so they are
loaded when there is work enough, and the numpy kernels serve until then, where numba is not
installed, and where it fails.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

#: 0 never uses compiled kernels, 1 uses them from the first byte on.
VARIABLE = "NEARDUP_COMPILED"

# Bytes of text above which loading pays: what the numpy kernels take half a second for.
_ENOUGH = 32_000_000

_expected = 0
_loaded: dict[str, ModuleType | None] = {}
_failure: str | None = None


def expect(size: int) -> None:
    """Say that so many bytes of text are coming, or have come."""
    global _expected
    _expected += size


def kernels(folder: str) -> ModuleType | None:
    """Return the module of compiled kernels of a folder of neardup, if they are to be used now."""
    if folder not in _loaded:
        wanted = os.environ.get(VARIABLE)
        if wanted == "0":
            return None
        if wanted != "1" and _expected < _ENOUGH:
            return None
        _loaded[folder] = _load(folder)
    return _loaded[folder]


def _load(folder: str) -> ModuleType | None:
    global _failure
    try:
        module = import_module(f"neardup.{folder}.compiled")
        module.check()
    except Exception as error:  # a compiler can fail in any way, and numpy is always there
        if isinstance(error, ModuleNotFoundError) and error.name == "numba":
            _failure = "numba is not installed (pip install 'neardup[fast]')"
        else:
            message = str(error).strip().partition("\n")[0]
            _failure = f"numba failed with {type(error).__name__}: {message}"
        return None
    return module


def how() -> str:
    """Return in a few words which kernels are used, and why."""
    if any(_loaded.values()):
        return "compiled" if _failure is None else f"some compiled, but {_failure}"
    if _failure is not None:
        return f"numpy, since {_failure}"
    if os.environ.get(VARIABLE) == "0":
        return f"numpy, since {VARIABLE} is 0"
    return "numpy, since there is too little text for compiled ones to pay"
