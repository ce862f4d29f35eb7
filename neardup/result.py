"""What a scan gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neardup.settings import Settings
from neardup.tables import (
    BoolArray,
    Clusters,
    Fingerprints,
    FloatArray,
    Ids,
    IntArray,
    Pairs,
    Skipped,
    UInt8Array,
    together,
)

# Fewer features than this make a text short, some 30 words: there a single changed word takes the
# similarity below 0.8 and the fingerprint far away. SimHash counts words and pairs, MinHash pairs.
_SHORT = {"simhash": 60, "classic": 60, "minhash": 30}


# Pairs made into rows at once.
_ROWS_AT_ONCE = 1 << 17


class Row(NamedTuple):
    """One pair, in words: the columns of pairs.csv."""

    left: str
    right: str
    relation: str
    distance: int
    similarity: float | None
    cluster: int


@dataclass(frozen=True)
class Links:
    """Of each document and the one it is kept by: distance in bits, uint8 (n,); similarity,
    float64 (n,), NaN when not verified; whether their texts are identical, bool (n,)."""

    distance: UInt8Array
    similarity: FloatArray
    identical: BoolArray


@dataclass(frozen=True)
class ScanResult:
    """Everything a scan has found. Iterating over it gives its pairs as ``Row``.

    ids : the n documents read, in document order
    fingerprints : Fingerprints (n,)
    pairs : Pairs, the confirmed ones that are listed
    original : int64 (n,), of each document the one whose text it repeats to the letter, else itself
    clusters : Clusters (n,)
    total_pairs : how many pairs there are with those that follow from identical texts
    candidates : pairs of different texts within the threshold, before verification
    confirmed : how many of them are left after it
    skipped : what takes no part in the comparison, with the reason
    missing : paths asked for by name that could not be read at all
    notes : other things worth knowing, with their number
    bytes_read : of the documents, once
    seconds : time spent per phase
    settings : Settings
    """

    ids: Ids
    fingerprints: Fingerprints
    pairs: Pairs
    original: IntArray
    clusters: Clusters
    total_pairs: int
    candidates: int
    confirmed: int
    skipped: list[Skipped]
    missing: list[Skipped]
    notes: dict[str, int]
    bytes_read: int
    seconds: dict[str, float]
    settings: Settings

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[Row]:
        for low in self.parts():
            part, names, left, right = self.named(low)
            yield from map(
                Row,
                map(names.__getitem__, left.tolist()),
                map(names.__getitem__, right.tolist()),
                ["exact" if identical else "near" for identical in part.identical.tolist()],
                part.distance.tolist(),
                [None if value != value else value for value in part.similarity.tolist()],
                self.clusters.label[part.left].tolist(),
            )

    def parts(self) -> range:
        """Return where parts of the pairs begin that are not too large to be put into words."""
        return range(0, len(self), _ROWS_AT_ONCE)

    def named(self, low: int) -> tuple[Pairs, list[str], IntArray, IntArray]:
        """Return the part of the pairs that begins at ``low``, the ids of their documents, and the
        places of the left and right ones among these. Most documents are in many pairs."""
        part = self.pairs.take(slice(low, low + _ROWS_AT_ONCE))
        rows, left, right = together(part.left, part.right)
        return part, self.ids.take(rows), left, right

    def links(self) -> Links:
        """Return how each document relates to the one it is kept by. A copy of a redundant document
        relates to it as its original does."""
        kept_by, pairs = self.clusters.kept_by, self.pairs
        n = len(kept_by)
        near = pairs.take(~pairs.identical)
        rows = np.flatnonzero(self.original != kept_by)
        one, other = self.original[rows], kept_by[rows]
        place = np.searchsorted(
            near.left * n + near.right, np.minimum(one, other) * n + np.maximum(one, other)
        )
        similarity = np.ones(n)
        similarity[rows] = near.similarity[place]
        bits = self.fingerprints.bits
        return Links(np.bitwise_count(bits ^ bits[kept_by]), similarity, self.original == kept_by)

    def weakest(self) -> tuple[IntArray, FloatArray]:
        """Return for clusters 1, 2, ... the largest distance and the smallest similarity among
        their pairs: int64 (c,), float64 (c,), NaN when not verified."""
        label = self.clusters.label[self.pairs.left] - 1
        distance = np.zeros(len(self.clusters), np.int64)
        similarity = np.ones(len(self.clusters))
        np.maximum.at(distance, label, self.pairs.distance.astype(np.int64))
        np.minimum.at(similarity, label, self.pairs.similarity)
        return distance, similarity

    @property
    def compared(self) -> int:
        """The number of documents with usable text."""
        return int(np.count_nonzero(self.fingerprints.features))

    @property
    def short(self) -> BoolArray:
        """Which documents are too short for a near-duplicate to be found reliably, bool (n,)."""
        features = self.fingerprints.features
        return (features > 0) & (features < _SHORT[self.settings.sketch])

    @property
    def redundant(self) -> int:
        """The number of documents that can go: each is a near-duplicate of one that is kept."""
        return int(np.count_nonzero(self.clusters.kept_by != np.arange(len(self.ids))))
