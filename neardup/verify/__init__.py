"""Candidates to confirmed pairs: the texts are read once more and compared exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from tempfile import gettempdir

import numpy as np

from neardup import fast
from neardup.cluster import components
from neardup.errors import NeardupError, UnreadableError
from neardup.progress import Progress
from neardup.tables import FloatArray, IntArray, Pairs, UInt8Array, together
from neardup.verify.shelf import Made, Shelf
from neardup.verify.shingling import shingles
from neardup.verify.similarity import jaccard
from neardup.workers import in_order

__all__ = ["ReadAgain", "Verified", "confirm", "jaccard", "shingles"]

#: Given rows in rising order, yields each with its text in UTF-8, or with the reason why it cannot
#: be read again.
ReadAgain = Callable[[IntArray], Iterator[tuple[int, bytes | UnreadableError]]]

# Bytes of text shingled in one go.
_TEXT_AT_ONCE = 4_000_000

# Shingles compared in one go by each worker: they take 8 bytes each, and some 50 more while they
# are numbered.
_SHINGLES_AT_ONCE = 2_000_000

# Pairs looked at in one go, so that what is computed of them stays in the caches.
_PAIRS_AT_ONCE = 1 << 16

# A group of connected candidates with more shingles than this is cut.
_LARGEST_GROUP = 4_000_000


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
    for folder in ("sketch", "verify"):
        fast.kernels(folder)  # before the workers are made
    rows, left, right = together(candidates.left, candidates.right)
    lost: dict[int, str] = {}
    similarity = np.zeros(len(candidates))
    try:
        chunks = np.split(rows, _edges(sizes[rows], _TEXT_AT_ONCE))
        with Shelf(len(chunks)) as shelf:
            with progress.phase("shingle", int(sizes[rows].sum()), "B") as advance:
                work = partial(_shingle, read_again, shelf, chunks)
                for number, (made, gone) in enumerate(in_order(work, range(len(chunks)), workers)):
                    shelf.add(made)
                    lost.update(gone)
                    advance(int(sizes[chunks[number]].sum()))
            with progress.phase("compare", len(candidates), "pairs") as advance:
                able = _able(left, right, shelf.sizes, min_similarity)
                left, right = left[able], right[able]
                advance(len(candidates) - len(able))
                parts = _parts(left, right, candidates.distance[able], shelf.sizes)
                parts.sort(key=len, reverse=True)  # so that the workers end together
                compare = partial(_compare, shelf, left, right, parts)
                for part, found in zip(
                    parts, in_order(compare, range(len(parts)), workers), strict=True
                ):
                    similarity[able[part]] = found
                    advance(len(part))
    except OSError as error:
        raise NeardupError(
            f"cannot keep shingles in {gettempdir()}: {(error.strerror or str(error)).lower()}; "
            "TMPDIR names another place"
        ) from None
    sure = np.flatnonzero(similarity >= min_similarity)
    pairs = replace(candidates, similarity=similarity).take(sure)
    return Verified(pairs, lost)


def _shingle(
    read_again: ReadAgain, shelf: Shelf, chunks: Sequence[IntArray], number: int
) -> tuple[Made, dict[int, str]]:
    """Put the shingles of a chunk of rows on the shelf; return what the shelf is to be told, and
    the rows that could not be read."""
    lost: dict[int, str] = {}

    def texts() -> Iterator[bytes]:
        for row, text in read_again(chunks[number]):
            if isinstance(text, bytes):
                yield text
            else:
                lost[row] = str(text)
                yield b""  # has no shingles and is similar to nothing

    return shelf.put(number, shingles(texts())), lost


def _compare(
    shelf: Shelf, left: IntArray, right: IntArray, parts: Sequence[IntArray], number: int
) -> FloatArray:
    """Return the similarities of one part of the pairs."""
    part = parts[number]
    places, one, other = together(left[part], right[part])
    return jaccard(shelf.take(places), one, other)


def _able(left: IntArray, right: IntArray, sizes: IntArray, min_similarity: float) -> IntArray:
    """Return which pairs can be similar enough at all: those of sets of like sizes."""
    able = [np.empty(0, np.int64)]
    for low in range(0, len(left), _PAIRS_AT_ONCE):
        part = slice(low, low + _PAIRS_AT_ONCE)
        one, other = sizes[left[part]], sizes[right[part]]
        bound = np.minimum(one, other) / np.maximum(np.maximum(one, other), 1)
        able.append(low + np.flatnonzero(bound >= min_similarity))
    return np.concatenate(able)


def _edges(sizes: IntArray, most: int) -> IntArray:
    """Return where to cut things of these sizes so that pieces are not much larger than ``most``,
    unless a single thing is."""
    return np.flatnonzero(np.diff(_pieces(sizes, most))) + 1


def _pieces(sizes: IntArray, most: int) -> IntArray:
    """Return in which piece each of these things is."""
    return (np.cumsum(sizes) - sizes) // most


def _parts(
    left: IntArray, right: IntArray, distance: UInt8Array, sizes: IntArray
) -> list[IntArray]:
    """Cut pairs, sorted by left, into parts to be compared in one go; each stays sorted.

    Documents connected by pairs come together. Where they are too many they are cut into blocks,
    and a part has the pairs of any two. Such large groups are chains: families held together by few
    and distant candidates. Documents joined by near ones are put into one block, so that few blocks
    have anything to do with each other.
    """
    if not len(left):
        return []
    near = 2 * distance <= distance.max()
    family = components(len(sizes), left[near], right[near])
    far = np.flatnonzero(~near)
    group = components(len(sizes), family[left[far]], family[right[far]])[family]
    order = np.lexsort((family, group))
    block = np.empty(len(sizes), np.int64)
    block[order] = _pieces(sizes[order], _SHINGLES_AT_ONCE)
    # A small group is not cut, but goes where its first document is.
    ordered = group[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    small = np.add.reduceat(sizes[order], first) <= _LARGEST_GROUP
    members = np.diff(first, append=len(order))
    whole = np.repeat(small, members)
    block[order[whole]] = np.repeat(block[order[first]], members)[whole]
    blocks = int(block.max()) + 1
    # Small numbers are sorted quickly, if the sort is a stable one.
    block = block.astype(np.min_scalar_type(blocks**2))
    one, other = block[left], block[right]
    part = np.minimum(one, other) * blocks + np.maximum(one, other)
    by_part = np.argsort(part, kind="stable")
    return np.split(by_part, np.flatnonzero(np.diff(part[by_part])) + 1)
