"""Bytes to text: binary or not, and in which encoding."""

from __future__ import annotations

import codecs
import os
import re
import stat
from typing import BinaryIO

from neardup.errors import UnreadableError

# The marks, longest first: UTF-32-LE begins like UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

# Files that are not plain text, by how they begin: those that hold text which is not read yet
# deserve a better name than "binary", and small pictures can look like cp1252.
_FORMATS = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "a zip archive or an office document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old office document"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PAR1", "Parquet"),
)

# Control characters that text does not hold; tab, line ends, form feed, escape and such may occur.
_CONTROLS = bytes(sorted({*range(32), 127} - {*b"\a\b\t\n\v\f\r\x1a\x1b"}))

# Above this share of them a file is binary. One NUL in a page is a slip, a hole of them is not.
_BINARY_SHARE = 0.02

_HEAD = 1 << 16

# What is read from a file at once: with Python's 8 KB, half of the time goes into calls.
_BUFFER = 1 << 16

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_ESCAPED = re.compile("[\udc80-\udcff]+")

#: The notes of ``decode``, to be counted.
REPAIRED = "had bytes that are not valid in their encoding"
GUESSED = "read as cp1252, since not UTF-8"


def open_regular(path: str) -> BinaryIO:
    """Open a regular file for reading; a FIFO or a device is refused without waiting for it.

    Raises UnreadableError.
    """
    # O_NONBLOCK: opening a FIFO must not wait for a writer. It means nothing to regular files.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with unreadable():
        file = os.fdopen(os.open(path, flags | getattr(os, "O_CLOEXEC", 0)), "rb", _BUFFER)
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise UnreadableError("not a regular file")
    return file


def read_bytes(path: str) -> bytes:
    """Return a file's content. Raises UnreadableError; a binary file is recognised by its beginning
    and not read further."""
    with open_regular(path) as file, unreadable():
        head = file.read(_HEAD)
        check_format(head)
        return head + file.read()


def read_text(path: str) -> str:
    """Return a file's text. Raises UnreadableError."""
    return decode(read_bytes(path))[0]


def check_format(head: bytes) -> None:
    """Raise UnreadableError if a file that begins like this does not hold plain text."""
    for signature, name in _FORMATS:
        if head.startswith(signature):
            raise UnreadableError(f"unsupported format: {name}")
    if _encoding_of_mark(head) is None and _is_binary(head):
        raise UnreadableError("binary")


def decode(data: bytes) -> tuple[str, str | None]:
    """Return the text of some bytes, and a note if they are not what they should be.

    In this order: the encoding its byte order mark names; UTF-8; UTF-8 with a few bad bytes, if
    more characters outside ASCII are good than bad; cp1252. Bad bytes stay in the text as escapes:
    texts that differ in them are not identical.

    Raises
    ------
    UnreadableError
        Too many control characters, or bytes that cp1252 does not have.
    """
    encoding = _encoding_of_mark(data)
    if encoding is not None:
        try:
            return data.decode(encoding), None
        except UnicodeDecodeError:
            return data.decode(encoding, "backslashreplace"), REPAIRED
    if _is_binary(data):
        raise UnreadableError("binary")
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        pass
    repaired = data.decode("utf-8", "surrogateescape")
    bad = sum(map(len, _ESCAPED.findall(repaired)))
    if sum(map(len, _NOT_ASCII.findall(repaired))) > 2 * bad:
        return repaired, REPAIRED
    try:
        return data.decode("cp1252"), GUESSED
    except UnicodeDecodeError:
        raise UnreadableError("neither UTF-8 nor cp1252") from None


def _encoding_of_mark(data: bytes) -> str | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    return None


def _is_binary(data: bytes) -> bool:
    controls = len(data) - len(data.translate(None, _CONTROLS))
    return controls > _BINARY_SHARE * len(data)


class unreadable:  # noqa: N801
    """``with unreadable():`` turns the system's errors into UnreadableError, in a few words."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise UnreadableError("vanished while scanning") from None
        if isinstance(error, OSError):
            raise UnreadableError((error.strerror or str(error)).lower()) from None
        if isinstance(error, MemoryError):
            raise UnreadableError("too large for the memory of this machine") from None
