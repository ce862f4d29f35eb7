"""Exact Jaccard similarity of pairs of documents, from their shingles.

Equal shingles get equal numbers; then a set of shingles is a row of flags, or of bits. A document
with a few partners marks its shingles in a row of flags, and looks those of its partners up. In a
large family (2,000 versions of one page make two million pairs) every document becomes a row of
bits, one for each shingle that any two of the family share: 4,000 shingles are then some 100 words
of 64 bits, and a pair takes so many steps instead of 4,000.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neardup import fast
from neardup.cluster import components
from neardup.sketch.features import Hashes
from neardup.tables import FloatArray, IntArray, UInt8Array, UInt64Array, together

Numbers = NDArray[np.signedinteger[Any]]

# Partners' shingles looked up at once.
_LOOKUPS_AT_ONCE = 2_000_000

# A family with more pairs than this for each of its documents is compared by bits: making the rows
# costs about as much as looking up 50 partners.
_PAIRS_PER_DOCUMENT = 50

# Size of all rows of bits of a family at once, and of the rows compared at once, in bytes.
_BITS_AT_ONCE = 32_000_000
_ROWS_AT_ONCE = 1_000_000


def jaccard(shingles: Hashes, left: IntArray, right: IntArray) -> FloatArray:
    """Return the Jaccard similarity of each pair of documents, float64 (m,); 0 when both are empty.

    Parameters
    ----------
    shingles : Hashes of d documents, distinct within each
    left, right : int64 (m,), documents, ``left`` in rising order
    """
    documents = len(shingles.offsets) - 1
    family = components(documents, left, right)
    compiled = fast.kernels("verify")
    offsets = shingles.offsets
    numbers: Numbers
    if compiled is None:
        _, numbers = np.unique(shingles.values, return_inverse=True)
    else:
        numbers = compiled.number(shingles.values, offsets, family)
    sizes = np.diff(offsets)
    common = np.empty(len(left), np.int64)
    few = np.ones(len(left), np.bool_)
    for pairs in _large_families(family, left):
        rows, one, other = together(left[pairs], right[pairs])
        parts = [numbers[offsets[row] : offsets[row + 1]] for row in rows.tolist()]
        by_bits = _by_bits(parts, one, other)
        if by_bits is not None:
            common[pairs] = by_bits
            few[pairs] = False
    rest = np.flatnonzero(few)
    if compiled is None:
        common[rest] = _by_flags(numbers, offsets, left[rest], right[rest])
    else:
        common[rest] = compiled.common(numbers, offsets, left[rest], right[rest])
    union = sizes[left] + sizes[right] - common
    return common / np.maximum(union, 1)


def _large_families(family: IntArray, left: IntArray) -> Iterator[IntArray]:
    """Yield the pairs of each connected family that has many for its number of documents."""
    of_pair = family[left]
    pairs = np.bincount(of_pair, minlength=len(family))
    documents = np.bincount(family, minlength=len(family))
    large = pairs > _PAIRS_PER_DOCUMENT * documents
    chosen = np.flatnonzero(large[of_pair])
    chosen = chosen[np.argsort(of_pair[chosen], kind="stable")]
    edges = np.flatnonzero(np.diff(of_pair[chosen], prepend=-1, append=-1)).tolist()
    for start, end in pairwise(edges):
        yield chosen[start:end]


def _by_bits(parts: list[Numbers], left: IntArray, right: IntArray) -> IntArray | None:
    """Return how many shingles each pair of a family has in common; None if the family shares so
    many different ones that looking them up is quicker."""
    sizes = [len(part) for part in parts]
    numbers = np.concatenate(parts)
    # What only one document has is common to no pair.
    shared = np.bincount(numbers) > 1
    width = int(shared.sum())
    if width > 32 * np.mean(sizes):
        return None
    place = np.where(shared, np.cumsum(shared) - 1, -1)[numbers]
    bounds = np.cumsum([0, *sizes]).tolist()
    common = np.zeros(len(left), np.int64)
    block = max(_BITS_AT_ONCE // max(len(parts), 1) // 8, 1) * 64
    for low in range(0, width, block):
        size = min(block, width - low)
        rows = np.empty((len(parts), -(-size // 64)), np.uint64)
        for row, (start, end) in enumerate(pairwise(bounds)):
            rows[row] = _bits(place[start:end] - low, size)
        common += _common_bits(rows, left, right)
    return common


def _common_bits(rows: UInt64Array, left: IntArray, right: IntArray) -> IntArray:
    """Return how many bits are set in both rows of each pair, int64 (m,)."""
    compiled = fast.kernels("verify")
    if compiled is not None:
        found: IntArray = compiled.common_bits(rows, left, right)
        return found
    common = np.empty(len(left), np.int64)
    for one, first, last in _runs(left, _ROWS_AT_ONCE // (8 * rows.shape[1]) + 1):
        both = rows[right[first:last]] & rows[one]
        common[first:last] = np.bitwise_count(both).sum(axis=1, dtype=np.int64)
    return common


def _bits(places: IntArray, size: int) -> UInt64Array:
    """Return a row of bits that are set at the places from 0 up to ``size``."""
    flags = np.zeros(-(-size // 64) * 64, np.uint8)
    flags[places[(places >= 0) & (places < size)]] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)


def _runs(left: IntArray, most: int) -> Iterator[tuple[int, int, int]]:
    """Yield the document, the first and the last but one pair of every run of pairs with the same
    left document, cut into pieces of at most so many pairs."""
    bounds = np.flatnonzero(np.diff(left, prepend=-1, append=-1)).tolist()
    for start, end in pairwise(bounds):
        one = int(left[start])
        for first in range(start, end, most):
            yield one, first, min(first + most, end)


def _by_flags(numbers: Numbers, offsets: IntArray, left: IntArray, right: IntArray) -> IntArray:
    """Return how many shingles each pair has in common; ``left`` is rising."""
    sizes = np.diff(offsets)
    common = np.zeros(len(left), np.int64)
    flags: UInt8Array = np.zeros(int(numbers.max(initial=-1)) + 1, np.uint8)
    starts = offsets.tolist()
    bounds = np.flatnonzero(np.diff(left, prepend=-1, append=-1)).tolist()
    for low, high in pairwise(bounds):
        one = int(left[low])
        mine = numbers[starts[one] : starts[one + 1]]
        flags[mine] = 1
        # The flags of one document serve all its partners.
        for part in _parts(low, sizes[right[low:high]]):
            partners = right[part].tolist()
            theirs = np.concatenate([numbers[starts[d] : starts[d + 1]] for d in partners])
            running = np.concatenate(([0], np.cumsum(flags[theirs], dtype=np.int64)))
            ends = np.cumsum(sizes[right[part]])
            common[part] = np.diff(running[ends], prepend=0)
        flags[mine] = 0
    return common


def _parts(low: int, sizes: IntArray) -> Iterator[slice]:
    """Cut consecutive pairs into parts with not too many shingles."""
    part = np.cumsum(sizes) // _LOOKUPS_AT_ONCE
    edges = np.flatnonzero(np.diff(part, prepend=-1, append=-1)).tolist()
    for start, end in pairwise(edges):
        yield slice(low + start, low + end)
