"""Output files that appear whole or not at all."""

from __future__ import annotations

import io
import os
import secrets
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
        self._mode: int | None = None
        self._target = path
        self._in_place = path == STDOUT
        if path == STDOUT:
            return
        if not path:
            raise UsageError("an output needs a name")
        try:
            status = os.stat(path)
        except FileNotFoundError:
            self._target = os.path.realpath(path)  # a link may lead to where nothing is yet
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot write {path}: {_reason(error)}") from None
        else:
            self.key = status.st_dev, status.st_ino
            if stat.S_ISDIR(status.st_mode):
                raise UsageError(f"cannot write {path}: it is a directory")
            self._in_place = not stat.S_ISREG(status.st_mode)
            if not self._in_place:
                self._target = os.path.realpath(path)
            self._mode = stat.S_IMODE(status.st_mode)
            if not os.access(self._target, os.W_OK):
                raise UsageError(f"cannot write {path}: permission denied")
        if not self._in_place:
            try:
                temporary, file = self._create()
                file.close()
                os.remove(temporary)
            except OSError as error:
                raise UsageError(f"cannot write {path}: {_reason(error)}") from None

    def _create(self, **options: str) -> tuple[str, TextIO]:
        """Create a file beside the target, under a name that nobody else has."""
        folder = os.path.dirname(self._target)
        temporary = os.path.join(folder, f".neardup-{secrets.token_hex(6)}.tmp")
        return temporary, open(temporary, "x", **options)  # type: ignore[call-overload]

    @contextmanager
    def open(self, encoding: str = "utf-8") -> Iterator[TextIO]:
        """Open for writing text: surrogate escapes become the bytes they stand for, line ends stay
        as they are. When the reader of standard output goes away, what is left is not written.

        Raises NeardupError when writing fails.
        """
        options = {"encoding": encoding, "errors": "surrogateescape", "newline": ""}
        if self.path == STDOUT:
            with _standard_output(options) as file:
                yield file
            return
        temporary = None
        try:
            if self._in_place:
                with open(self._target, "w", **options) as file:  # type: ignore[call-overload]
                    yield file
                return
            temporary, file = self._create(**options)
            with file:
                yield file
            if self._mode is not None:
                os.chmod(temporary, self._mode)
            os.replace(temporary, self._target)
        except OSError as error:
            raise NeardupError(f"cannot write {self.path}: {_reason(error)}") from None
        finally:
            if temporary is not None:
                with suppress(OSError):
                    os.remove(temporary)


@contextmanager
def _standard_output(options: dict[str, str]) -> Iterator[TextIO]:
    if sys.stdout is None:
        raise NeardupError("cannot write standard output: it is closed")
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # replaced by something that only takes text
        yield sys.stdout
        return
    sys.stdout.flush()
    file = io.TextIOWrapper(buffer, **options)  # type: ignore[arg-type]
    try:
        yield file
        file.flush()
        buffer.flush()
    except OSError as error:
        abandon_stdout()
        if not isinstance(error, BrokenPipeError):
            raise NeardupError(f"cannot write standard output: {_reason(error)}") from None
    finally:
        with suppress(OSError):
            file.detach()


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """End quietly what is printed when the reader of standard output goes away, which is its
    right."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()


def abandon_stdout() -> None:
    """Lead what is still buffered for standard output nowhere, since Python would try to write it
    again when it ends, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reason(error: OSError | ValueError) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
