"""The shingles of all candidate documents, made once and kept in temporary files until their pairs
are compared: they need more room than the texts."""

from __future__ import annotations

import os
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import BinaryIO, NamedTuple

import numpy as np

from neardup.sketch.features import Hashes
from neardup.tables import IntArray, UInt64Array


class Made(NamedTuple):
    """A chunk put on the shelf: how many hashes each of its documents has; the file they are in
    and where they begin there; or without files the hashes themselves."""

    sizes: IntArray
    file: str
    start: int
    values: UInt64Array | None


class Shelf:
    """Sets of hashes, put in by chunks, perhaps by several processes, and taken out in any order.

    ``with Shelf(files=True) as shelf:`` removes the files at the end. Without files a single chunk
    is kept in memory. Raises OSError.
    """

    def __init__(self, files: bool) -> None:
        self.sizes = np.zeros(0, np.int64)
        self._starts = np.zeros(0, np.int64)
        self._file = np.zeros(0, np.int64)
        self._names: list[str] = []
        self._kept: UInt64Array | None = None
        self._directory = TemporaryDirectory(prefix="neardup-") if files else None
        self._path = self._directory.name if self._directory else None

    def put(self, hashes: Hashes) -> Made:
        """Store the sets of a chunk of documents. ``add`` must be told of it, and of all chunks in
        the order of documents."""
        sizes = np.diff(hashes.offsets)
        if self._path is None:
            return Made(sizes, "", 0, hashes.values)
        # Each process writes a file of its own.
        name = os.path.join(self._path, str(os.getpid()))
        with open(name, "ab") as file:
            start = file.tell()
            file.write(hashes.values.data)
        return Made(sizes, name, start // hashes.values.itemsize, None)

    def add(self, made: Made) -> None:
        """Take note of the next chunk."""
        if made.file not in self._names:
            self._names.append(made.file)
        sizes = made.sizes
        file = np.full(len(sizes), self._names.index(made.file))
        self.sizes = np.concatenate((self.sizes, sizes))
        self._starts = np.concatenate((self._starts, made.start + np.cumsum(sizes) - sizes))
        self._file = np.concatenate((self._file, file))
        self._kept = made.values

    def take(self, places: IntArray) -> Hashes:
        """Return the sets of these documents, by their place in the order of documents."""
        sizes = self.sizes[places]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        values = np.empty(int(offsets[-1]), np.uint64)
        wanted = zip(
            self._file[places], self._starts[places], offsets[:-1], offsets[1:], strict=True
        )
        with ExitStack() as stack:
            files: list[BinaryIO] = []
            if self._path is not None:
                files = [stack.enter_context(open(name, "rb", 0)) for name in self._names]
            for number, start, low, high in wanted:
                if self._kept is not None:
                    values[low:high] = self._kept[start : start + high - low]
                elif low < high:
                    files[number].seek(values.itemsize * int(start))
                    part = values[low:high].view(np.uint8)
                    if files[number].readinto(part.data) != len(part):
                        raise OSError("a temporary file has been cut")
        return Hashes(values, offsets)

    def __enter__(self) -> Shelf:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._directory is not None:
            self._directory.cleanup()

    def __getstate__(self) -> dict[str, object]:
        # Workers that are not forked may use the directory, but not remove it.
        return self.__dict__ | {"_directory": None}
