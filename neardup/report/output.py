"""Output files that appear whole or not at all."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from neardup.errors import NeardupError, UsageError

STDOUT = "-"


class Output:
    """A file to be written at the end, checked at the beginning.

    Parameters
    ----------
    path : str
        ``-`` is standard output. A device or a FIFO is written to directly; anything else is
        written beside its final name and then renamed.

    Raises
    ------
    UsageError
        The file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.key: tuple[int, int] | None = None
        self._target = path
        self._in_place = path == STDOUT
        if path == STDOUT:
            return
        try:
            self._target = os.path.realpath(path)
            status = os.stat(self._target)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot write {path}: {_reason(error)}") from None
        else:
            self.key = status.st_dev, status.st_ino
            if stat.S_ISDIR(status.st_mode):
                raise UsageError(f"cannot write {path}: it is a directory")
            self._in_place = not stat.S_ISREG(status.st_mode)
            if not os.access(self._target, os.W_OK):
                raise UsageError(f"cannot write {path}: permission denied")
        if not self._in_place:
            try:
                open(self._temporary, "x").close()
                os.remove(self._temporary)
            except OSError as error:
                raise UsageError(f"cannot write {path}: {_reason(error)}") from None

    @property
    def _temporary(self) -> str:
        folder, name = os.path.split(self._target)
        return os.path.join(folder, f".{name[:200]}.{os.getpid()}.tmp")

    @contextmanager
    def open(self, encoding: str = "utf-8") -> Iterator[TextIO]:
        """Open for writing text: the given encoding, surrogate escapes as the bytes they stand
        for, line ends as they are. Raises NeardupError when writing fails."""
        if self.path == STDOUT:
            buffer = getattr(sys.stdout, "buffer", None)
            if buffer is None:  # replaced by something that only takes text
                yield sys.stdout
                return
            sys.stdout.flush()
            file = io.TextIOWrapper(buffer, encoding, "surrogateescape", newline="")
            try:
                yield file
                file.flush()
                buffer.flush()
            except OSError as error:
                abandon_stdout()
                if isinstance(error, BrokenPipeError):
                    raise
                raise NeardupError(f"cannot write standard output: {_reason(error)}") from None
            finally:
                with suppress(OSError):
                    file.detach()
            return
        name = self._target if self._in_place else self._temporary
        try:
            with open(name, "w", encoding=encoding, errors="surrogateescape", newline="") as file:
                yield file
            if not self._in_place:
                os.replace(name, self._target)
        except OSError as error:
            raise NeardupError(f"cannot write {self.path}: {_reason(error)}") from None
        finally:
            if not self._in_place:
                with suppress(OSError):
                    os.remove(name)


def abandon_stdout() -> None:
    """Lead what is still buffered for standard output nowhere, since Python would try to write it
    again when it ends, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reason(error: OSError | ValueError) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
