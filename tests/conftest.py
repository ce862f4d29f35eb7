"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# The same examples everywhere: a failure can be repeated, and no run fails by chance.
settings.register_profile(
    "neardup", max_examples=100, deadline=None, derandomize=True, print_blob=True
)
settings.load_profile("neardup")
