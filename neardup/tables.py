"""The tables that flow from stage to stage, checked when made.

A table is a frozen dataclass of parallel arrays; row i of ``Ids``, ``Fingerprints`` and
``Clusters`` is the same document. Rows are in document order: the sorted order of ids for a
directory, the order of records for a corpus file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
UInt8Array = NDArray[np.uint8]
UInt64Array = NDArray[np.uint64]
Int32Array = NDArray[np.int32]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document, or a part of a corpus file, that takes no part in the comparison.

    ``reason`` is a kind, and where there is more to say a colon and the particulars.
    """

    id: str
    stage: str
    reason: str

    @property
    def kind(self) -> str:
        return self.reason.partition(": ")[0]


class Ids(Sequence[str]):
    """An append-only list of strings in one bytes buffer.

    Ten million paths as ``str`` objects need more than a gigabyte; here they need their bytes
    and eight more each. Names that are not UTF-8 travel as surrogate escapes, as in ``os``; other
    lone surrogates cannot be held.
    """

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._buffer = bytearray()
        self._ends = np.zeros(16, np.int64)
        self._count = 0
        for id in ids:
            self.append(id)

    def append(self, id: str) -> None:
        if self._count == len(self._ends):
            self._ends = np.concatenate((self._ends, np.zeros_like(self._ends)))
        self._buffer += id.encode("utf-8", "surrogateescape")
        self._ends[self._count] = len(self._buffer)
        self._count += 1

    def packed(self) -> tuple[UInt8Array, IntArray, IntArray]:
        """Return a copy of the bytes of all ids, eight zero bytes behind them, and where each id
        starts and how long it is."""
        ends = self._ends[: self._count]
        lengths = np.diff(ends, prepend=0)
        return np.frombuffer(bytes(self._buffer) + bytes(8), np.uint8), ends - lengths, lengths

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(self._count))]
        row = row + self._count if row < 0 else row
        if not 0 <= row < self._count:
            raise IndexError(row)
        start = int(self._ends[row - 1]) if row else 0
        return self._buffer[start : int(self._ends[row])].decode("utf-8", "surrogateescape")

    def take(self, rows: IntArray) -> list[str]:
        """Return the strings of these rows, quicker than one by one."""
        ends = self._ends[rows]
        starts = np.where(rows > 0, self._ends[rows - 1], 0)
        return [
            self._buffer[start:end].decode("utf-8", "surrogateescape")
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]

    def __iter__(self) -> Iterator[str]:
        return (self[row] for row in range(self._count))


@dataclass(frozen=True)
class Fingerprints:
    """What is kept of every document.

    bits : uint64 (n,), the fingerprints
    features : int32 (n,), distinct features each was made from; 0 means no usable text
    recipe : str, how they were made; fingerprints of two recipes are not comparable
    """

    bits: UInt64Array
    features: Int32Array
    recipe: str

    def __post_init__(self) -> None:
        _check(self, bits=np.uint64, features=np.int32)

    def __len__(self) -> int:
        return len(self.bits)


@dataclass(frozen=True)
class SearchPlan:
    """Which bits the search sorts on, table by table, and what that promises.

    masks : uint64 (t,), the key bits of each table; a mask of 0 puts all rows into one run,
        which is brute force
    max_distance : int, the Hamming threshold k
    candidates : float, pairs expected to share a key in some table, counted once a table
    """

    masks: UInt64Array
    max_distance: int
    candidates: float

    def __post_init__(self) -> None:
        _check(self, masks=np.uint64)


def order(left: IntArray, right: IntArray) -> IntArray:
    """Return the order of pairs by (left, right), int64 (m,)."""
    n = 1 + max(int(left.max(initial=0)), int(right.max(initial=0)))
    if n >= 1 << 31:
        return np.lexsort((right, left))
    # One number for each pair is sorted several times as fast. No pair comes twice.
    return np.argsort(left * n + right)


def together(left: IntArray, right: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the documents of pairs, each once and in rising order, int64 (d,), and the places of
    the left and the right ones among them, int64 (m,)."""
    count = 1 + max(int(left.max(initial=-1)), int(right.max(initial=-1)))
    if count > 16 * len(left):  # a table of all documents would be nearly empty
        documents, places = np.unique(np.stack((left, right)), return_inverse=True)
        one, other = places.reshape(2, -1)
        return documents, one, other
    place = np.zeros(count, np.int64)
    place[left] = place[right] = 1
    documents = np.flatnonzero(place)
    place[documents] = np.arange(len(documents))
    return documents, place[left], place[right]


@dataclass(frozen=True)
class Pairs:
    """Pairs of documents; left < right, sorted by (left, right), each pair once.

    left, right : int64 (m,), rows of the two documents
    distance : uint8 (m,), Hamming distance of their fingerprints in bits
    similarity : float64 (m,), Jaccard similarity of their shingles, NaN when not verified; in
        float32, 4 / 5 would be less than a threshold of 0.8
    identical : bool (m,), the two texts are identical
    """

    left: IntArray
    right: IntArray
    distance: UInt8Array
    similarity: FloatArray
    identical: BoolArray

    def __post_init__(self) -> None:
        _check(
            self,
            left=np.int64,
            right=np.int64,
            distance=np.uint8,
            similarity=np.float64,
            identical=np.bool_,
        )
        if not (self.left < self.right).all():
            raise ValueError("Pairs: left must be less than right")

    def __len__(self) -> int:
        return len(self.left)

    def take(self, rows: IntArray | BoolArray | slice) -> Pairs:
        """Return the chosen pairs, in the order given."""
        return Pairs(
            self.left[rows],
            self.right[rows],
            self.distance[rows],
            self.similarity[rows],
            self.identical[rows],
        )

    def sorted(self) -> Pairs:
        """Return the same pairs ordered by left, then right."""
        return self.take(order(self.left, self.right))

    @classmethod
    def candidates(cls, left: IntArray, right: IntArray, distance: UInt8Array) -> Pairs:
        """Make pairs that are neither verified nor known to be identical."""
        # One value each, for all rows: candidates are many.
        unknown = np.broadcast_to(np.float64(np.nan), len(left))
        return cls(left, right, distance, unknown, np.broadcast_to(np.False_, len(left)))

    @classmethod
    def concatenate(cls, parts: Iterable[Pairs]) -> Pairs:
        """Join several tables of pairs; none gives an empty one."""
        parts = list(parts)
        if len(parts) == 1:
            return parts[0]
        if not parts:
            none = np.empty(0, np.int64)
            return cls.candidates(none, none, none.astype(np.uint8))
        return cls(
            np.concatenate([part.left for part in parts]),
            np.concatenate([part.right for part in parts]),
            np.concatenate([part.distance for part in parts]),
            np.concatenate([part.similarity for part in parts]),
            np.concatenate([part.identical for part in parts]),
        )


@dataclass(frozen=True)
class Clusters:
    """Groups of documents joined by confirmed pairs.

    label : int64 (n,), the cluster of each document, 0 for none; clusters are numbered from 1 in
        the order of their first document
    representative : int64 (c,), the row of the document that stands for cluster 1, 2, ...
    kept_by : int64 (n,), for a document to be dropped the kept document it is a near-duplicate of,
        its own row otherwise
    """

    label: IntArray
    representative: IntArray
    kept_by: IntArray

    def __post_init__(self) -> None:
        _check(self, label=np.int64, kept_by=np.int64)
        _check(self, representative=np.int64)

    def __len__(self) -> int:
        return len(self.representative)

    def members(self) -> list[IntArray]:
        """Return the rows of clusters 1, 2, ..., each in document order."""
        rows = np.flatnonzero(self.label)
        rows = rows[np.argsort(self.label[rows], kind="stable")]
        sizes = np.bincount(self.label[rows], minlength=len(self) + 1)[1:]
        return np.split(rows, np.cumsum(sizes)[:-1]) if len(self) else []


@dataclass
class Tally:
    """What happened to the inputs beside becoming documents. Filled as they are read.

    skipped : what takes no part
    missing : paths asked for by name that cannot be read at all
    notes : what the user should know but cost no document, and how often it occurred
    """

    skipped: list[Skipped] = field(default_factory=list)
    missing: list[Skipped] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    bytes_read: int = 0

    def skip(self, id: str, stage: str, reason: str) -> None:
        self.skipped.append(Skipped(id, stage, reason))

    def note(self, what: str, count: int = 1) -> None:
        self.notes[what] = self.notes.get(what, 0) + count


def _check(table: object, **dtypes: type[np.generic]) -> None:
    """Raise ValueError unless the named columns are 1-D, equally long where they are rows of one
    table, and of the given dtypes."""
    lengths = set()
    for name, dtype in dtypes.items():
        column = getattr(table, name)
        if column.ndim != 1 or column.dtype != dtype:
            raise ValueError(
                f"{type(table).__name__}.{name}: expected a 1-D array of {np.dtype(dtype)}, "
                f"got {column.ndim}-D {column.dtype}"
            )
        lengths.add(len(column))
    if len(lengths) > 1:
        raise ValueError(f"{type(table).__name__}: columns differ in length: {sorted(lengths)}")
