"""Where documents come from. One contract, two implementations: files, and texts in memory."""

from __future__ import annotations

import os
import re
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np

from neardup.corpus import records
from neardup.corpus.decode import decode, open_regular, read_bytes, unreadable
from neardup.corpus.walk import FileKey, as_id, as_path, walk
from neardup.errors import UnreadableError, UsageError
from neardup.sketch.hashing import fnv1a
from neardup.tables import Ids, IntArray, Tally

_ARRAY_OF_OBJECTS = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*\{")


Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


# Bytes of a part: enough to outweigh the handing over, and few enough for many parts.
_PART_BYTES = 4_000_000
_PART_FILES = 1_000


class Part(NamedTuple):
    """A piece of a corpus that is read in one go: so many documents in memory or files, from
    ``first`` up to ``last``, or the bytes from ``start`` up to ``end`` of one corpus file."""

    first: int
    last: int
    size: int
    start: int = 0
    end: int | None = None


@dataclass
class Origins:
    """Where the documents of a part come from, and what became of the rest of it. Filled by
    ``Corpus.read``, perhaps in another process, and entered by ``Corpus.enter``.

    own : of each document the id it has of itself, None where it is named by its place
    file, offset, line : of each document; line 0 is a whole file. Lines count from the beginning
        of the part
    lines : how many lines the part has
    skipped : file, line and reason of what is no document
    seconds : spent waiting for the file system
    """

    own: list[str | None] = field(default_factory=list)
    file: array[int] = field(default_factory=lambda: array("q"))
    offset: array[int] = field(default_factory=lambda: array("q"))
    line: array[int] = field(default_factory=lambda: array("q"))
    lines: int = 0
    skipped: list[tuple[int, int, str]] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    seconds: float = 0.0

    def add(self, own: str | None, file: int, offset: int = 0, line: int = 0) -> None:
        self.own.append(own)
        self.file.append(file)
        self.offset.append(offset)
        self.line.append(line)

    @contextmanager
    def timed(self) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - start


class Corpus(Protocol):
    """Documents in a fixed order that can be read twice, in parts that may be read by different
    processes."""

    tally: Tally

    @property
    def total(self) -> int:
        """The size of all parts in bytes."""
        ...

    def parts(self) -> list[Part]:
        """Return the parts, in document order."""
        ...

    def read(self, part: Part, origins: Origins) -> Iterator[str]:
        """Yield the text of every document of a part, in document order. Nothing is kept of a text
        once it is yielded; where it came from, and what cannot be read, goes into ``origins``."""
        ...

    def enter(self, part: Part, origins: Origins) -> None:
        """Take note of a part that has been read. The parts come in document order."""
        ...

    def ids(self) -> Ids:
        """Return the ids of all documents entered, unique, in the same order."""
        ...

    def read_again(self, rows: IntArray) -> Iterator[tuple[int, str | UnreadableError]]:
        """Yield every row, in the rising order given, with its text, or with the reason why it
        cannot be read any more."""
        ...


class Texts:
    """Texts in memory."""

    def __init__(self, texts: Iterable[str], ids: Iterable[object] | None = None) -> None:
        if isinstance(texts, str):
            raise UsageError("expected several texts, got one str; put it into a list")
        if isinstance(texts, Mapping):
            raise UsageError("expected texts, got a mapping; give its values, and its keys as ids")
        self.tally = Tally()
        self._texts = list(texts)
        for row, text in enumerate(self._texts):
            if not isinstance(text, str):
                raise UsageError(f"text {row} is a {type(text).__name__}, not a str")
        names = range(len(self._texts)) if ids is None else ids
        # As for records: half a surrogate pair cannot be written to a file.
        self._ids = [str(id).encode("utf-8", "backslashreplace").decode("utf-8") for id in names]
        if len(self._ids) != len(self._texts):
            raise UsageError(f"{len(self._texts)} texts but {len(self._ids)} ids")
        if len(set(self._ids)) != len(self._ids):
            raise UsageError("the ids are not unique")
        self._sizes = [len(text.encode("utf-8", "replace")) for text in self._texts]

    @property
    def total(self) -> int:
        return sum(self._sizes)

    def parts(self) -> list[Part]:
        return _parts(self._sizes, 0)

    def read(self, part: Part, origins: Origins) -> Iterator[str]:
        origins.bytes_read += part.size
        yield from self._texts[part.first : part.last]

    def enter(self, part: Part, origins: Origins) -> None:
        self.tally.bytes_read += origins.bytes_read

    def ids(self) -> Ids:
        return Ids(self._ids)

    def read_again(self, rows: IntArray) -> Iterator[tuple[int, str | UnreadableError]]:
        for row in rows.tolist():
            yield row, self._texts[row]


def _parts(sizes: Sequence[int], first: int) -> list[Part]:
    """Group things of these sizes, numbered from ``first``, into parts."""
    parts = []
    start, size = first, 0
    for number, one in enumerate(sizes, first):
        size += one
        if size >= _PART_BYTES or number + 1 - start >= _PART_FILES:
            parts.append(Part(start, number + 1, size))
            start, size = number + 1, 0
    if start < first + len(sizes):
        parts.append(Part(start, first + len(sizes), size))
    return parts


class Files:
    """The documents in files: a plain text file is one, a JSON lines file holds one on each line.

    A record without an id is ``file:line``. One with an id has just that when its file alone is
    scanned, by name; otherwise it is ``file#id``. An id that occurs again is written as
    ``id@line``.

    Raises
    ------
    UsageError
        No path exists; or a corpus file has no text field, unless another one in the same
        directory has.
    """

    def __init__(
        self,
        paths: Paths,
        text_field: str = "text",
        id_field: str = "id",
        hidden: bool = False,
        leave_out: frozenset[FileKey] = frozenset(),
    ) -> None:
        if isinstance(paths, str | bytes | os.PathLike):
            paths = [paths]
        roots = [os.fsdecode(path) for path in paths]
        self.tally = Tally()
        self._text_field, self._id_field = text_field, id_field
        self._paths, self._file_ids, self._sizes = Ids(), Ids(), array("q")
        for file in walk(roots, self.tally, hidden, leave_out):
            self._paths.append(as_id(file.path))
            self._file_ids.append(file.id)
            self._sizes.append(file.size)
        self._roots = frozenset(roots)
        self._one_file = len(self._paths) == 1 and self._path(0) in self._roots
        self._not_records = self._check_records()
        # Of each document: its id, its file, where in the file it lies, and on which line (0: it
        # is the whole file).
        self._ids = Ids()
        self._file = array("q")
        self._offset = array("q")
        self._line = array("q")
        self._lines_before = 0

    @property
    def total(self) -> int:
        return sum(self._sizes)

    def parts(self) -> list[Part]:
        parts: list[Part] = []
        first = 0  # of the files not yet in a part
        for number, size in enumerate(self._sizes):
            path = self._path(number)
            if size <= _PART_BYTES or number in self._not_records or not _holds_records(path):
                continue
            parts += _parts(self._sizes[first:number], first)
            parts += self._ranges(number, path, size)
            first = number + 1
        return parts + _parts(self._sizes[first:], first)

    def _ranges(self, number: int, path: str, size: int) -> list[Part]:
        """Cut a corpus file at ends of lines."""
        bounds = [0]
        # What cannot be read is met again, and named, by whoever reads the part.
        with suppress(UnreadableError), open_regular(path) as file, unreadable():
            while bounds[-1] + _PART_BYTES < size:
                file.seek(bounds[-1] + _PART_BYTES)
                file.readline()
                bounds.append(file.tell())
        # The last part ends where the file does when it is read: it may be growing.
        ends = [*bounds[1:], None]
        return [
            Part(number, number + 1, (size if end is None else end) - start, start, end)
            for start, end in zip(bounds, ends, strict=True)
        ]

    def read(self, part: Part, origins: Origins) -> Iterator[str]:
        for number in range(part.first, part.last):
            if number in self._not_records:
                continue
            path = self._path(number)
            try:
                if _holds_records(path):
                    yield from self._read_records(number, path, part, origins)
                else:
                    yield self._read_whole(number, path, origins)
            except UnreadableError as error:
                origins.skipped.append((number, 0, str(error)))

    def enter(self, part: Part, origins: Origins) -> None:
        before = self._lines_before if part.start else 0
        self._lines_before = before + origins.lines
        tally = self.tally
        for number, line, reason in origins.skipped:
            name = self._file_ids[number]
            tally.skip(f"{name}:{before + line}" if line else name, "read", reason)
        for note, count in origins.notes.items():
            tally.note(note, count)
        tally.bytes_read += origins.bytes_read
        for own, number, line in zip(origins.own, origins.file, origins.line, strict=True):
            if own is not None and self._one_file:
                self._ids.append(own)
            elif not line:
                self._ids.append(self._file_ids[number])
            elif own is None:
                self._ids.append(f"{self._file_ids[number]}:{before + line}")
            else:
                self._ids.append(f"{self._file_ids[number]}#{own}")
            self._line.append(line and before + line)
        self._file.extend(origins.file)
        self._offset.extend(origins.offset)

    def ids(self) -> Ids:
        ids = self._ids
        if not any(self._line):
            return ids  # paths are unique
        first: tuple[str, int] | None = None
        # A new name could be taken, too; each round makes the names longer and the rows fewer.
        while repeated := _repeated(ids, self._line):
            first = first or (ids[repeated[0]], len(repeated))
            renamed = {row: f"{ids[row]}@{self._line[row]}" for row in repeated}
            ids = Ids(renamed.get(row, id) for row, id in enumerate(ids))
        if first is not None:
            self.tally.note(f"ids used before, written as id@line ({first[0]!r} ...)", first[1])
        self._ids = ids
        return ids

    def read_again(self, rows: IntArray) -> Iterator[tuple[int, str | UnreadableError]]:
        opened: tuple[int, BinaryIO] | None = None
        try:
            for row in rows.tolist():
                number = self._file[row]
                try:
                    if not self._line[row]:
                        yield row, decode(read_bytes(self._path(number)))[0]
                        continue
                    if opened is None or opened[0] != number:
                        if opened is not None:
                            opened[1].close()
                        opened = number, open_regular(self._path(number))
                    with unreadable():
                        opened[1].seek(self._offset[row])
                        line = opened[1].readline()
                    record, _ = records.parse(line)
                    yield row, records.text_of(record, self._text_field)
                except UnreadableError as error:
                    yield row, error
        finally:
            if opened is not None:
                opened[1].close()

    def _path(self, number: int) -> str:
        return as_path(self._paths[number])

    def _read_whole(self, number: int, path: str, origins: Origins) -> str:
        with origins.timed():
            data = read_bytes(path)
        text, note = decode(data)
        origins.bytes_read += len(data)
        if note:
            origins.notes[f"files {note}"] += 1
        origins.add(None, number)
        return text

    def _read_records(self, number: int, path: str, part: Part, origins: Origins) -> Iterator[str]:
        with open_regular(path) as file, unreadable():
            file.seek(part.start)
            for line_number, offset, line in _lines(file, number, part, origins):
                origins.bytes_read += len(line)
                try:
                    record, note = records.parse(line, self._id_field)
                    text = records.text_of(record, self._text_field)
                except records.BadRecordError as error:
                    cut = not line.endswith(b"\n") and str(error).startswith("not JSON")
                    reason = "the file ends inside a record" if cut else str(error)
                    origins.skipped.append((number, line_number, reason))
                    continue
                if note:
                    origins.notes[f"records {note}"] += 1
                origins.add(records.id_of(record, self._id_field), number, offset, line_number)
                yield text

    def _check_records(self) -> frozenset[int]:
        """Look into all corpus files before the work starts; return those to leave out."""
        wrong: dict[int, UsageError] = {}
        bad: set[int] = set()
        good = False
        for number in range(len(self._paths)):
            path = self._path(number)
            try:
                if _holds_records(path):
                    with open_regular(path) as file:
                        records.check(file, self._text_field)
                    good = True
                elif path.lower().endswith(".json"):
                    _refuse_array(path)
            except UsageError as error:
                wrong[number] = error
            except UnreadableError as error:
                bad.add(number)
                self._skip_file(number, str(error))
        for number, reason in wrong.items():
            # A stray file among good ones is left out and named; otherwise the option is wrong.
            if not good or self._path(number) in self._roots:
                raise UsageError(f"{self._path(number)}: {reason}; name it in --text-field")
            self._skip_file(number, str(reason))
        return frozenset(bad | set(wrong))

    def _skip_file(self, number: int, reason: str) -> None:
        self.tally.skip(self._file_ids[number], "read", reason)


def _lines(
    file: BinaryIO, number: int, part: Part, origins: Origins
) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, offset and content of every line of a part that is not blank. ``number`` is
    that of the file."""
    offset, line_number = part.start, 0
    while part.end is None or offset < part.end:
        with origins.timed():
            if part.end is None:  # whatever the file has by now, piece by piece
                lines = file.readlines(_PART_BYTES)
            else:
                lines = BytesIO(file.read(part.end - offset)).readlines()
        if not lines:
            break
        for line in lines:
            line_number += 1
            if line.strip():
                yield line_number, offset, line
            offset += len(line)
    origins.lines = line_number
    if part.end is not None and offset < part.end:
        origins.skipped.append((number, 0, "cut while scanning: its last lines are gone"))


def _holds_records(path: str) -> bool:
    return path.lower().endswith(records.SUFFIXES)


def _refuse_array(path: str) -> None:
    with open_regular(path) as file, unreadable():
        if _ARRAY_OF_OBJECTS.match(file.read(4096)):
            raise UnreadableError(
                "not JSON lines: a JSON array; write one object a line into a .jsonl file"
            )


def _repeated(ids: Ids, line: Sequence[int]) -> list[int]:
    """Return the rows whose id another row has first: a file before a record, then by order."""
    hashes = fnv1a(*ids.packed())
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    seen: set[str] = set()
    repeated = []
    suspects = np.unique(np.concatenate((order[again], order[again - 1]))).tolist()
    for row in sorted(suspects, key=lambda row: line[row] > 0):
        if ids[row] in seen:
            repeated.append(row)
        seen.add(ids[row])
    return sorted(repeated)
