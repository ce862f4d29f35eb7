"""The shingles of all candidate documents, made once and kept until their pairs are compared: the
first ones in memory, the others in temporary files, since they need more room than the texts."""

from __future__ import annotations

import os
from contextlib import ExitStack
from mmap import mmap
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import NamedTuple

import numpy as np

from neardup.sketch.features import Hashes
from neardup.tables import IntArray, UInt64Array

# Chunks kept in memory that workers share (Linux): the way over a disk takes a twentieth of the
# time of a whole scan.
_IN_MEMORY = 64

_WIDTH = np.dtype(np.uint64).itemsize


class Made(NamedTuple):
    """A chunk put on the shelf: how many hashes each of its documents has; the name of the file
    that holds them, or the number of the chunk if it is in memory; and where they begin there."""

    sizes: IntArray
    holder: str | int
    start: int


class Shelf:
    """Sets of hashes, put in by chunks, perhaps by several processes, and taken out in any order.

    ``with Shelf(chunks) as shelf:`` removes the files at the end. Raises OSError.

    Parameters
    ----------
    chunks : int
        How many there will be; a single one must be put in by this process.
    """

    def __init__(self, chunks: int) -> None:
        self.sizes = np.zeros(0, np.int64)
        self._starts = np.zeros(0, np.int64)
        self._holder = np.zeros(0, np.int64)
        self._holders: list[str | int] = []
        self._arrays: dict[int, UInt64Array] = {}
        self._directory = TemporaryDirectory(prefix="neardup-") if chunks > 1 else None
        self._path = self._directory.name if self._directory else None
        self._memory: list[int] = []  # open files without a name; forked workers have them, too
        if chunks > 1 and hasattr(os, "memfd_create"):
            try:
                for _ in range(min(chunks, _IN_MEMORY)):
                    self._memory.append(os.memfd_create("neardup"))
            except OSError:  # not allowed, or too many open files; others need some, too
                self._close()

    def put(self, number: int, hashes: Hashes) -> Made:
        """Store the sets of a chunk of documents. ``add`` must be told of it, and of all chunks in
        the order of documents."""
        sizes = np.diff(hashes.offsets)
        if self._path is None:
            self._arrays[number] = hashes.values
            return Made(sizes, number, 0)
        if number < len(self._memory):
            with open(self._memory[number], "wb", closefd=False) as file:
                file.write(hashes.values.data)
            return Made(sizes, number, 0)
        # Each process writes a file of its own.
        name = os.path.join(self._path, str(os.getpid()))
        with open(name, "ab") as file:
            start = file.tell()
            file.write(hashes.values.data)
        return Made(sizes, name, start // _WIDTH)

    def add(self, made: Made) -> None:
        """Take note of the next chunk."""
        sizes, holder = made.sizes, made.holder
        if isinstance(holder, int) and holder not in self._arrays:
            size = _WIDTH * int(sizes.sum())  # a map of nothing cannot be made
            memory = mmap(self._memory[holder], size) if size else b""
            self._arrays[holder] = np.frombuffer(memory, np.uint64)
        if holder not in self._holders:
            self._holders.append(holder)
        place = np.full(len(sizes), self._holders.index(holder))
        self.sizes = np.concatenate((self.sizes, sizes))
        self._starts = np.concatenate((self._starts, made.start + np.cumsum(sizes) - sizes))
        self._holder = np.concatenate((self._holder, place))

    def take(self, places: IntArray) -> Hashes:
        """Return the sets of these documents, by their place in the order of documents."""
        sizes = self.sizes[places]
        sets = [np.empty(0, np.uint64)]
        with ExitStack() as stack:
            sources = [
                self._arrays[holder]
                if isinstance(holder, int)
                else stack.enter_context(open(holder, "rb", 0))
                for holder in self._holders
            ]
            wanted = zip(
                self._holder[places].tolist(),
                self._starts[places].tolist(),
                sizes.tolist(),
                strict=True,
            )
            for number, start, size in wanted:
                source = sources[number]
                if isinstance(source, np.ndarray):
                    sets.append(source[start : start + size])
                    continue
                source.seek(_WIDTH * start)
                data = source.read(_WIDTH * size)
                if len(data) < _WIDTH * size:
                    raise OSError("a temporary file has been cut")
                sets.append(np.frombuffer(data, np.uint64))
        return Hashes(np.concatenate(sets), np.concatenate(([0], np.cumsum(sizes))))

    def __enter__(self) -> Shelf:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._arrays.clear()
        self._close()
        if self._directory is not None:
            self._directory.cleanup()

    def _close(self) -> None:
        for descriptor in self._memory:
            os.close(descriptor)
        self._memory.clear()

    def __getstate__(self) -> dict[str, object]:
        # Workers that are not forked may use the directory, but not remove it; and only it.
        return self.__dict__ | {"_directory": None, "_memory": []}
