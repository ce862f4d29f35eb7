"""Settings of all tests, and the kernels under test."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

from neardup import fast

# The same examples everywhere: a failure can be repeated, and no run fails by chance.
settings.register_profile(
    "neardup", max_examples=100, deadline=None, derandomize=True, print_blob=True
)
settings.load_profile("neardup")


def _need_numba() -> None:
    try:
        import_module("numba")
    except ImportError as error:
        pytest.skip(f"compiled kernels need numba (extra 'fast'): {error}")


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the tests of a module once with either kind of kernels; gives its name.

    Not one of a function, since hypothesis would not reset that between its examples.
    """
    kind: str = request.param
    if kind == "compiled":
        _need_numba()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(fast.VARIABLE, "1" if kind == "compiled" else "0")
        patch.setattr(fast, "_loaded", {})
        patch.setattr(fast, "_failure", None)
        patch.setattr(fast, "_expected", 0)
        # Whatever fails, numpy serves, and all tests would pass: make sure of what is tested.
        for path in Path(fast.__file__).parent.glob("*/compiled.py"):
            assert (fast.kernels(path.parent.name) is not None) == (kind == "compiled"), fast.how()
        yield kind


@pytest.fixture(scope="session")
def compiled() -> ModuleType:
    """The compiled kernels of ``neardup.sketch``."""
    _need_numba()
    return import_module("neardup.sketch.compiled")
