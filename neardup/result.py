"""What a scan gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neardup.settings import Settings
from neardup.tables import Clusters, Fingerprints, FloatArray, Ids, IntArray, Pairs, Skipped

#: Fewer distinct features than this (some 30 words) make a text short: there a single changed word
#: takes the similarity below 0.8 and the fingerprint far away.
SHORT = 60


class Row(NamedTuple):
    """One pair, in words: the columns of pairs.csv."""

    left: str
    right: str
    relation: str
    distance: int
    similarity: float | None
    cluster: int


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
    notes : other things worth knowing, with their number
    bytes_read : of the documents, once
    seconds : time spent per phase
    complete : False if a path that was asked for could not be read
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
    notes: dict[str, int]
    bytes_read: int
    seconds: dict[str, float]
    complete: bool
    settings: Settings

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[Row]:
        pairs = self.pairs
        for left, right, exact_copy, distance, similarity in zip(
            pairs.left.tolist(),
            pairs.right.tolist(),
            pairs.exact.tolist(),
            pairs.distance.tolist(),
            pairs.similarity.tolist(),
            strict=True,
        ):
            yield Row(
                self.ids[left],
                self.ids[right],
                "exact" if exact_copy else "near",
                distance,
                None if similarity != similarity else similarity,
                int(self.clusters.label[left]),
            )

    def links(self) -> tuple[IntArray, Pairs]:
        """Return the rows of the redundant documents, and of each the pair with the document it is
        kept by. A copy of a redundant document has the pair of its original."""
        kept_by, pairs = self.clusters.kept_by, self.pairs
        rows = np.flatnonzero(kept_by != np.arange(len(kept_by)))
        near = pairs.take(~pairs.exact)
        one, other = self.original[rows], kept_by[rows]
        n = len(kept_by)
        place = np.searchsorted(
            near.left * n + near.right, np.minimum(one, other) * n + np.maximum(one, other)
        )
        similarity = np.ones(len(rows), np.float32)
        differ = one != other
        similarity[differ] = near.similarity[place[differ]]
        bits = self.fingerprints.bits
        return rows, Pairs(
            np.minimum(rows, other),
            np.maximum(rows, other),
            np.bitwise_count(bits[rows] ^ bits[other]),
            similarity,
            ~differ,
        )

    def weakest(self) -> tuple[IntArray, FloatArray]:
        """Return for clusters 1, 2, ... the largest distance and the smallest similarity among
        their pairs: int64 (c,), float64 (c,), NaN when not verified."""
        label = self.clusters.label[self.pairs.left] - 1
        distance = np.zeros(len(self.clusters), np.int64)
        similarity = np.ones(len(self.clusters))
        np.maximum.at(distance, label, self.pairs.distance.astype(np.int64))
        np.minimum.at(similarity, label, self.pairs.similarity.astype(np.float64))
        return distance, similarity

    @property
    def compared(self) -> int:
        """The number of documents with usable text."""
        return int(np.count_nonzero(self.fingerprints.features))

    @property
    def short(self) -> int:
        """The number of documents too short for a near-duplicate to be found reliably."""
        features = self.fingerprints.features
        return int(np.count_nonzero((features > 0) & (features < SHORT)))

    @property
    def redundant(self) -> int:
        """The number of documents that can go: each is a near-duplicate of one that is kept."""
        return int(np.count_nonzero(self.clusters.kept_by != np.arange(len(self.ids))))
