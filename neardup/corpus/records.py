"""JSON lines to records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import BinaryIO

from neardup.corpus.decode import check_format, decode, unreadable
from neardup.errors import UnreadableError, UsageError

SUFFIXES = (".jsonl", ".ndjson")

# How many lines are looked at before a file is called something else than JSON lines.
_SAMPLE = 100


class BadRecordError(UnreadableError):
    """One line is not a record."""


@cache
def _quick() -> Callable[[bytes], object]:
    """Return orjson's parser (extra ``fast``), twice as quick as Python's, which serves otherwise.
    It is the stricter one: what it refuses, Python's may still take."""
    try:
        import orjson
    except ImportError:
        return lambda line: json.loads(line.decode("utf-8"))
    parser: Callable[[bytes], object] = orjson.loads
    return parser


def parse(line: bytes, id_field: str | None = None) -> tuple[dict[str, object], str | None]:
    """Return the object on a line, and a note where its encoding had to be guessed.

    Raises BadRecordError.
    """
    try:
        record = _object(_quick()(line))
        # orjson makes a float of an integer of more than 64 bits, which would be another id.
        if id_field is None or type(record.get(id_field)) is not float:
            return record, None
    except (ValueError, RecursionError):  # for whatever reason: now with more patience
        pass
    try:
        # A record separator (RFC 7464) or a byte order mark before an object is harmless.
        text, note = decode(line.lstrip(b"\x1e"))
        record = json.loads(text.lstrip("\ufeff"))
    except UnreadableError as error:
        raise BadRecordError(str(error)) from None
    except json.JSONDecodeError as error:
        raise BadRecordError(f"not JSON: {error.msg.lower()} at column {error.colno}") from None
    except RecursionError:
        raise BadRecordError("not JSON: nested too deeply") from None
    except ValueError as error:  # a number of too many digits
        raise BadRecordError(f"not JSON: {error}") from None
    return _object(record), note


def _object(record: object) -> dict[str, object]:
    if not isinstance(record, dict):
        raise BadRecordError(f"not an object: a JSON {_kind(record)}")
    return record


def text_of(record: dict[str, object], field: str) -> str:
    """Return the text of a record; raises BadRecordError, which names what is there instead."""
    if field not in record:
        raise BadRecordError(f"no text: there is no field {field!r}")
    text = record[field]
    if not isinstance(text, str):
        raise BadRecordError(f"text is {_kind(text)}: field {field!r} must be a string")
    return text


def id_of(record: dict[str, object], field: str) -> str | None:
    """Return the id of a record if it has one: a string that is not empty, or a number."""
    id = record.get(field)
    if isinstance(id, str) and id:
        # Half a surrogate pair cannot be written to a file.
        return id.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(id, int | float) and not isinstance(id, bool):
        return str(id)
    return None


def lines(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Yield number (from 1), byte offset and content of every line that is not blank."""
    offset = 0
    for number, line in enumerate(file, 1):
        if line.strip():
            yield number, offset, line
        offset += len(line)


def check(file: BinaryIO, text_field: str) -> None:
    """Look at the beginning of a file before work starts.

    Raises
    ------
    UnreadableError
        The file does not hold JSON lines at all.
    UsageError
        None of its first records has the text field; the message names the fields there are.
    """
    with unreadable():
        head = file.read(4096)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableError("not JSON lines: UTF-16 or UTF-32; write UTF-8")
    check_format(head)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        raise UnreadableError("not JSON lines: a JSON array; write one object a line")
    file.seek(0)
    fields: dict[str, None] = {}
    looked_at = 0
    with unreadable():
        for _, _, line in lines(file):
            looked_at += 1
            try:
                record, _ = parse(line)
            except BadRecordError:
                record = {}
            if text_field in record:
                return
            fields.update(dict.fromkeys(record))
            if looked_at == _SAMPLE:
                break
    if fields:
        raise UsageError(f"no field {text_field!r}: its first records have {', '.join(fields)}")
    if looked_at:
        what = "objects over several lines" if head.lstrip().startswith(b"{") else "no objects"
        raise UnreadableError(f"not JSON lines: {what}; write one object a line")


def _kind(value: object) -> str:
    names: dict[type, str] = {
        dict: "object",
        list: "array",
        str: "string",
        bool: "boolean",
        type(None): "null",
    }
    return names.get(type(value), "number")
