"""MinHash: 64 bins, one bit of each bin's smallest hash.

One permutation serves all bins: a hash belongs to the bin its top six bits say. Two documents have
the same smallest hash in a bin as often as their features overlap, so that their fingerprints
differ in about 32 × (1 − J) bits, J being the Jaccard similarity of their word pairs.

Sources: Li, Owen, Zhang, "One permutation hashing" (NIPS 2012), section 2; Li, König, "b-bit
minwise hashing" (WWW 2010), with b = 1; Shrivastava, "Optimal densification for fast and accurate
minwise hashing" (ICML 2017), section 4. We depart from the last in one thing: the kept bit also
depends on the bin. Copied as it is, the one value of a very short text would set all its 64 bits
alike, and unrelated texts of five words would be equal once in a hundred times.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from neardup.sketch.features import Hashes
from neardup.sketch.hashing import fmix64
from neardup.tables import BoolArray, UInt8Array, UInt64Array

BINS = 64
_TOP = np.uint64(58)
_BINS = np.arange(BINS, dtype=np.uint64)

#: Odd; sets the bins apart. 2⁶⁴ divided by the golden ratio.
STEP = 0x9E3779B97F4A7C15

# So many attempts visit every bin from every other one.
_ATTEMPTS = 513


@cache
def probes() -> UInt8Array:
    """Return for each bin the other bins in the order in which it borrows from them, uint8
    (64, 63).

    Attempt a = 1, 2, ... of bin b visits the bin ``fmix64(2³² b + a) >> 58``: the same for all
    documents, so that equal documents borrow alike.
    """
    attempt = np.arange(1, _ATTEMPTS + 1, dtype=np.uint64)
    visited = (fmix64((_BINS[:, None] << np.uint64(32)) + attempt) >> _TOP).tolist()
    others = [[d for d in dict.fromkeys(row) if d != b] for b, row in enumerate(visited)]
    return np.array(others, np.uint8)


def smallest(hashes: Hashes) -> tuple[UInt64Array, BoolArray]:
    """Return the smallest hash in each bin of each document, and which bins have any.

    Parameters
    ----------
    hashes : Hashes of d documents, rising within each

    Returns
    -------
    lowest : uint64 (d, 64), 0 where a bin is empty
    full : bool (d, 64)
    """
    documents = len(hashes.offsets) - 1
    document = np.repeat(np.arange(documents), np.diff(hashes.offsets))
    place = document * BINS + (hashes.values >> _TOP).astype(np.int64)
    first = np.flatnonzero(np.diff(place, prepend=-1))
    lowest = np.zeros(documents * BINS, np.uint64)
    full = np.zeros(documents * BINS, np.bool_)
    lowest[place[first]] = hashes.values[first]
    full[place[first]] = True
    return lowest.reshape(-1, BINS), full.reshape(-1, BINS)


def densify(lowest: UInt64Array, full: BoolArray) -> UInt64Array:
    """Let every empty bin borrow from the first full one among its ``probes``. Documents without
    any full bin stay as they are. Returns uint64 (d, 64)."""
    dense = lowest.copy()
    for bin, order in enumerate(probes()):
        empty = np.flatnonzero(~full[:, bin])
        donor = order[full[empty][:, order].argmax(axis=1)]
        dense[empty, bin] = lowest[empty, donor]
    return dense


def one_bit(dense: UInt64Array) -> UInt64Array:
    """Return the fingerprints made of one bit of each bin, uint64 (d,)."""
    kept = fmix64(dense + np.uint64(STEP) * _BINS) & np.uint64(1)
    bits: UInt64Array = np.bitwise_or.reduce(kept << _BINS, axis=1)
    return bits
