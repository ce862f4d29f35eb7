"""The errors neardup raises on purpose. A message is one line: what, where, what to do."""

from __future__ import annotations


class NeardupError(Exception):
    """Something kept the work from being finished (exit code 3). Each argument is one line."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class UsageError(NeardupError, ValueError):
    """The request itself is wrong: a bad value, a missing path, an output that cannot be written
    (exit code 2)."""


class UnreadableError(NeardupError):
    """One document cannot be read. The scan goes on without it and names it as skipped."""
