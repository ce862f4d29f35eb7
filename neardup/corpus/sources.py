"""Where documents come from. One contract, two implementations: files, and texts in memory."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, Protocol

import numpy as np

from neardup.corpus import records
from neardup.corpus.decode import open_regular, read_text, unreadable
from neardup.corpus.walk import FileKey, as_id, as_path, walk
from neardup.errors import UnreadableError, UsageError
from neardup.progress import Advance
from neardup.sketch.hashing import fnv1a
from neardup.tables import Document, Ids, IntArray, Tally

_ARRAY_OF_OBJECTS = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*\{")


Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class Corpus(Protocol):
    """Documents in a fixed order that can be read twice."""

    tally: Tally

    @property
    def total(self) -> int:
        """The number of bytes that ``documents`` advances by."""
        ...

    def documents(self, advance: Advance) -> Iterator[Document]:
        """Yield every document in document order. Nothing is kept of a text once it is yielded;
        what cannot be read is entered into the tally."""
        ...

    def ids(self) -> Ids:
        """Return the ids of all documents yielded, unique, in the same order."""
        ...

    def read_again(self, rows: IntArray) -> Iterator[tuple[int, str]]:
        """Yield rows, in the rising order given, with their texts. A row whose document has
        vanished or cannot be read any more is entered into the tally and not yielded."""
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

    @property
    def total(self) -> int:
        return sum(map(_size, self._texts))

    def documents(self, advance: Advance) -> Iterator[Document]:
        for id, text in zip(self._ids, self._texts, strict=True):
            self.tally.bytes_read += _size(text)
            yield Document(id, text)
            advance(_size(text))

    def ids(self) -> Ids:
        return Ids(self._ids)

    def read_again(self, rows: IntArray) -> Iterator[tuple[int, str]]:
        for row in rows.tolist():
            yield row, self._texts[row]


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

    @property
    def total(self) -> int:
        return sum(self._sizes)

    def documents(self, advance: Advance) -> Iterator[Document]:
        for number in range(len(self._paths)):
            path, done = self._path(number), 0
            if number not in self._not_records:
                read = self._read_records if _holds_records(path) else self._read_whole
                try:
                    for document in read(number, path):
                        yield document
                        advance(document.size)
                        done += document.size
                except UnreadableError as error:
                    self._skip_file(number, str(error))
            advance(self._sizes[number] - done)

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

    def read_again(self, rows: IntArray) -> Iterator[tuple[int, str]]:
        opened: tuple[int, BinaryIO] | None = None
        try:
            for row in rows.tolist():
                number = self._file[row]
                try:
                    if not self._line[row]:
                        yield row, read_text(self._path(number))[0]
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
                    self.tally.skip(self._ids[row], "verify", str(error))
        finally:
            if opened is not None:
                opened[1].close()

    def _path(self, number: int) -> str:
        return as_path(self._paths[number])

    def _read_whole(self, number: int, path: str) -> Iterator[Document]:
        text, size, note = read_text(path)
        self.tally.bytes_read += size
        if note:
            self.tally.note(f"files {note}")
        id = self._file_ids[number]
        self._add(id, number)
        yield Document(id, text, size)

    def _read_records(self, number: int, path: str) -> Iterator[Document]:
        name = self._file_ids[number]
        with open_regular(path) as file, unreadable():
            for line_number, offset, line in records.lines(file):
                self.tally.bytes_read += len(line)
                where = f"{name}:{line_number}"
                try:
                    record, note = records.parse(line)
                    text = records.text_of(record, self._text_field)
                except records.BadRecordError as error:
                    cut = not line.endswith(b"\n") and str(error).startswith("not JSON")
                    reason = "the file ends inside a record" if cut else str(error)
                    self.tally.skip(where, "read", reason)
                    continue
                if note:
                    self.tally.note(f"records {note}")
                own = records.id_of(record, self._id_field)
                if own is None:
                    id = where
                elif self._one_file:
                    id = own
                else:
                    id = f"{name}#{own}"
                self._add(id, number, offset, line_number)
                yield Document(id, text, len(line), line_number)

    def _add(self, id: str, file: int, offset: int = 0, line: int = 0) -> None:
        self._ids.append(id)
        self._file.append(file)
        self._offset.append(offset)
        self._line.append(line)

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


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


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
