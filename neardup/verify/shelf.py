"""The shingles of all candidate documents, made once and kept until their pairs are compared: in
memory as long as they are few, then in a temporary file."""

from __future__ import annotations

import os
import tempfile
from itertools import pairwise
from types import TracebackType

import numpy as np

from neardup.sketch.features import Hashes
from neardup.tables import IntArray, UInt64Array

# Hashes kept in memory, some 50 MB of English; a hash has eight bytes.
_IN_MEMORY = 8_000_000


class Shelf:
    """Sets of hashes, put in one after the other and taken out in any order.

    ``with Shelf() as shelf:`` removes the file at the end. After a fork, or pickled, a shelf can
    still be read.
    """

    def __init__(self) -> None:
        self.sizes = np.zeros(0, np.int64)
        self._kept: list[UInt64Array] = []
        self._path: str | None = None

    def put(self, hashes: Hashes) -> None:
        """Append the sets of some documents. Raises OSError."""
        self.sizes = np.concatenate((self.sizes, np.diff(hashes.offsets)))
        self._kept.append(hashes.values)
        if self._path is None and self.sizes.sum() > _IN_MEMORY:
            number, self._path = tempfile.mkstemp(prefix="neardup-")
            os.close(number)
        if self._path is not None:
            with open(self._path, "ab") as file:
                for values in self._kept:
                    file.write(values.data)
            self._kept = []

    def take(self, places: IntArray) -> Hashes:
        """Return the sets at these places, in the order given. Raises OSError."""
        sizes = self.sizes[places]
        starts = np.cumsum(self.sizes)[places] - sizes
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        values = np.empty(int(offsets[-1]), np.uint64)
        if self._path is None:
            self._kept = [np.concatenate([np.empty(0, np.uint64), *self._kept])]
            for to, start, size in zip(offsets, starts, sizes, strict=False):
                values[to : to + size] = self._kept[0][start : start + size]
            return Hashes(values, offsets)
        with open(self._path, "rb", buffering=0) as file:
            # Neighbours are read together.
            edges = np.flatnonzero(np.diff(places, prepend=-2, append=-2) != 1).tolist()
            for first, last in pairwise(edges):
                file.seek(8 * int(starts[first]))
                wanted = values[offsets[first] : offsets[last]]
                if file.readinto(wanted.view(np.uint8).data) != wanted.nbytes:
                    raise OSError("the temporary file has been cut")
        return Hashes(values, offsets)

    def __enter__(self) -> Shelf:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._path is not None:
            os.unlink(self._path)
