"""Candidates to confirmed pairs: the texts are read once more and compared exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from tempfile import gettempdir

import numpy as np

from neardup import fast
from neardup.cluster import components
from neardup.errors import NeardupError, UnreadableError
from neardup.progress import Progress
from neardup.sketch.features import Hashes
from neardup.tables import IntArray, Pairs
from neardup.verify.shelf import Shelf
from neardup.verify.shingling import shingles
from neardup.verify.similarity import jaccard
from neardup.workers import in_order

__all__ = ["ReadAgain", "Verified", "confirm", "jaccard", "shingles"]

#: Given rows in rising order, yields each with its text, or with the reason why it cannot be read
#: again.
ReadAgain = Callable[[IntArray], Iterator[tuple[int, str | UnreadableError]]]

# Bytes of text shingled in one go.
_TEXT_AT_ONCE = 4_000_000

# Shingles compared in one go by each worker: they take 8 bytes each, and some 50 more while they
# are numbered.
_SHINGLES_AT_ONCE = 2_000_000

# A group of connected candidates with more shingles than this is compared block by block.
_LARGEST_GROUP = 8_000_000


@dataclass(frozen=True)
class Verified:
    """What is left of candidates.

    pairs : Pairs, those that are similar enough
    lost : rows that could not be read again, and why; they are in no pair
    """

    pairs: Pairs
    lost: dict[int, str]


def confirm(
    candidates: Pairs,
    sizes: IntArray,
    read_again: ReadAgain,
    min_similarity: float,
    progress: Progress | None = None,
    workers: int = 1,
) -> Verified:
    """Return the candidates whose Jaccard similarity is at least ``min_similarity``.

    Each candidate document is read and shingled once, in document order.

    Parameters
    ----------
    candidates : Pairs, sorted
    sizes : int64 (n,), of each document in bytes
    read_again : ReadAgain
        Called in the workers, and pickled where they are not forked.
    min_similarity : float, above 0
    progress : Progress, optional
        Told of the phases ``shingle`` and ``compare``.
    workers : int, processes to share the work among

    Raises
    ------
    NeardupError
        The temporary file cannot be written.
    """
    progress = progress or Progress()
    fast.kernels("sketch"), fast.kernels("verify")  # before the workers are made
    rows = np.unique(np.concatenate((candidates.left, candidates.right)))
    lost: dict[int, str] = {}
    confirmed = []
    try:
        with Shelf() as shelf:
            with progress.phase("shingle", int(sizes[rows].sum()), "B") as advance:
                chunks = np.split(rows, _edges(sizes[rows], _TEXT_AT_ONCE))
                work = partial(_shingle, read_again)
                for chunk, made in zip(chunks, in_order(work, chunks, workers), strict=True):
                    shelf.put(made[0])
                    lost.update(made[1])
                    advance(int(sizes[chunk].sum()))
            with progress.phase("compare", len(candidates), "pairs") as advance:
                places = replace(
                    candidates,
                    left=np.searchsorted(rows, candidates.left),
                    right=np.searchsorted(rows, candidates.right),
                )
                groups = _groups(places, shelf.sizes)
                parts = [part for group in groups for part in _blocks(group, shelf.sizes)]
                compare = partial(_compare, shelf, min_similarity)
                for part, similar in zip(parts, in_order(compare, parts, workers), strict=True):
                    confirmed.append(similar)
                    advance(len(part))
    except OSError as error:
        raise NeardupError(
            f"cannot keep shingles in {gettempdir()}: {(error.strerror or str(error)).lower()}; "
            "TMPDIR names another place"
        ) from None
    pairs = Pairs.concatenate(confirmed)
    return Verified(replace(pairs, left=rows[pairs.left], right=rows[pairs.right]).sorted(), lost)


def _edges(sizes: IntArray, most: int) -> IntArray:
    """Return where to cut things of these sizes so that pieces are not much larger than ``most``,
    unless a single thing is."""
    return np.flatnonzero(np.diff(_pieces(sizes, most))) + 1


def _pieces(sizes: IntArray, most: int) -> IntArray:
    """Return in which piece each of these things is."""
    return (np.cumsum(sizes) - sizes) // most


def _shingle(read_again: ReadAgain, rows: IntArray) -> tuple[Hashes, dict[int, str]]:
    """Return the shingles of these rows, and those that could not be read."""
    lost: dict[int, str] = {}

    def texts() -> Iterator[str]:
        for row, text in read_again(rows):
            if isinstance(text, str):
                yield text
            else:
                lost[row] = str(text)
                yield ""  # has no shingles and is similar to nothing

    return shingles(texts()), lost


def _compare(shelf: Shelf, min_similarity: float, part: Pairs) -> Pairs:
    rows = np.unique(np.concatenate((part.left, part.right)))
    left, right = np.searchsorted(rows, part.left), np.searchsorted(rows, part.right)
    similarity = jaccard(shelf.take(rows), left, right)
    sure = np.flatnonzero(similarity >= min_similarity)
    return replace(part.take(sure), similarity=similarity[sure])


def _groups(candidates: Pairs, sizes: IntArray) -> Iterator[Pairs]:
    """Cut the candidates into groups that share no document; each stays sorted by left, right.
    Small connected groups are put together."""
    root = components(len(sizes), candidates.left, candidates.right)
    rows = np.unique(np.concatenate((candidates.left, candidates.right)))
    size_of_group = np.bincount(root[rows], sizes[rows])
    starts = np.unique(root[rows])
    part_of_group = np.zeros(len(size_of_group), np.int64)
    part_of_group[starts] = _pieces(size_of_group[starts].astype(np.int64), _SHINGLES_AT_ONCE)
    yield from _split(candidates, part_of_group[root[candidates.left]])


def _blocks(group: Pairs, sizes: IntArray) -> Iterator[Pairs]:
    """Cut a group that is too large by blocks of its documents: the pairs of any two blocks.

    Large groups are chains: families held together by few and distant candidates. Documents joined
    by near ones are put into one block, so that few blocks have anything to do with each other.
    """
    rows = np.unique(np.concatenate((group.left, group.right)))
    if sizes[rows].sum() <= _LARGEST_GROUP:
        yield group
        return
    keys = []
    for distance in range(int(group.distance.max())):
        near = group.distance <= distance
        keys.append(components(len(sizes), group.left[near], group.right[near])[rows])
    order = rows[np.lexsort(keys)] if keys else rows
    block = np.zeros(len(sizes), np.int64)
    block[order] = _pieces(sizes[order], _SHINGLES_AT_ONCE)
    one, other = block[group.left], block[group.right]
    one, other = np.minimum(one, other), np.maximum(one, other)
    yield from _split(group, one * (int(block.max()) + 1) + other)


def _split(pairs: Pairs, part: IntArray) -> Iterator[Pairs]:
    """Yield the pairs of each part, in their order."""
    if len(part) and part.min() == part.max():
        yield pairs
        return
    order = np.argsort(part, kind="stable")
    edges = np.flatnonzero(np.diff(part[order], prepend=-1, append=-1)).tolist()
    for start, end in pairwise(edges):
        yield pairs.take(order[start:end])
