"""SimHash: every feature votes on every bit, the majority wins.

Source: Charikar, "Similarity estimation techniques from rounding algorithms" (STOC 2002),
section 3; Manku, Jain, Das Sarma, "Detecting near-duplicates for web crawling" (WWW 2007),
section 2. Weights are whole numbers, so that sums are exact and do not depend on their order.
"""

from __future__ import annotations

import numpy as np

from neardup.sketch.features import Hashes
from neardup.tables import IntArray, UInt64Array

_BITS = np.arange(64, dtype=np.uint64)
_LANES = np.uint64(0x0101010101010101)


def majority(votes: IntArray, total: IntArray) -> UInt64Array:
    """Return the fingerprint of each document: bit i is set when more than half of the weight is
    for it. A tie leaves it unset.

    Parameters
    ----------
    votes : int64 (d, 64), weight of the features with bit i set
    total : int64 (d,), weight of all features

    Returns
    -------
    uint64 (d,)
    """
    set_bits = 2 * votes > total[:, None]
    bits: UInt64Array = np.bitwise_or.reduce(set_bits.astype(np.uint64) << _BITS, axis=1)
    return bits


def weigh(hashes: Hashes, weights: IntArray) -> tuple[IntArray, IntArray]:
    """Return the votes and the total weight of each document's features.

    Parameters
    ----------
    hashes : Hashes of f features in d documents
    weights : int64 (f,), not negative

    Returns
    -------
    votes : int64 (d, 64)
    total : int64 (d,)
    """
    documents = len(hashes.offsets) - 1
    votes = np.zeros((documents, 64), np.int64)
    # Features are counted, not weighed: once for each binary digit of their weight.
    for digit in range(int(weights.max(initial=0)).bit_length()):
        chosen = (weights >> digit) & 1 == 1
        before = np.concatenate(([0], np.cumsum(chosen)))
        votes += _count(hashes.values[chosen], before[hashes.offsets]) << digit
    running = np.concatenate(([0], np.cumsum(weights)))
    return votes, np.diff(running[hashes.offsets])


# A byte counts to 255.
_BLOCK = 255


def _count(values: UInt64Array, offsets: IntArray) -> IntArray:
    """Return how many hashes of each document have bit i set, int64 (d, 64).

    Eight bits are counted at once, in the eight bytes of a uint64; documents are cut into blocks
    short enough that no byte overflows.
    """
    documents = len(offsets) - 1
    counts = np.zeros((documents, 64), np.int64)
    sizes = np.diff(offsets)
    # np.add.reduceat gives the element itself for an empty segment: leave those out.
    filled = np.flatnonzero(sizes)
    if not len(filled):
        return counts
    blocks = -(-sizes[filled] // _BLOCK)
    first_block = np.cumsum(blocks) - blocks
    nth = np.arange(blocks.sum()) - np.repeat(first_block, blocks)
    starts = np.repeat(offsets[:-1][filled], blocks) + _BLOCK * nth
    lanes = np.empty((len(starts), 8, 8), np.uint8)
    for i in range(8):
        sums = np.add.reduceat((values >> np.uint64(i)) & _LANES, starts)
        lanes[:, :, i] = sums.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)
    # lanes[b, byte, i] is bit 8 * byte + i.
    counts[filled] = np.add.reduceat(lanes.reshape(-1, 64), first_block, axis=0, dtype=np.int64)
    return counts
