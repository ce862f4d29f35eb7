"""64-bit FNV-1a over many byte strings at once, and the finaliser of MurmurHash3.

Sources: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm" (IETF draft
draft-eastlake-fnv, section 2); Appleby, MurmurHash3 (``fmix64``). Both are bit for bit theirs.
"""

from __future__ import annotations

import numpy as np

from neardup.tables import IntArray, UInt8Array, UInt64Array

FNV_OFFSET = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3
_MASK = (1 << 64) - 1

#: Bytes that must follow the last string of a buffer, so that eight can always be loaded at once.
PADDING = 8

# Strings handled at once: the states, the loaded bytes and the order of one block stay in the
# level-2 cache (measured: 16,000 to 64,000 are within a tenth, 4,000 costs half as much again).
_BLOCK = 32_768

# With fewer strings than this left, calling numpy for every byte costs more than plain integers.
_FEW = 48


def fnv1a(
    buffer: UInt8Array, starts: IntArray, lengths: IntArray, states: UInt64Array | None = None
) -> UInt64Array:
    """Return the FNV-1a hash of ``buffer[s : s + n]`` for every start s and length n.

    Parameters
    ----------
    buffer : uint8 (b,)
        The bytes, followed by at least ``PADDING`` bytes that belong to no string.
    starts, lengths : int64 (n,)
        Where each string lies.
    states : uint64 (n,), optional
        The hash of what precedes each string, to be continued; without it, the offset basis.

    Returns
    -------
    uint64 (n,)
    """
    hashes = np.empty(len(starts), np.uint64)
    for low in range(0, len(starts), _BLOCK):
        block = slice(low, low + _BLOCK)
        hashes[block] = _fnv1a_block(
            buffer, starts[block], lengths[block], None if states is None else states[block]
        )
    return hashes


def _fnv1a_block(
    buffer: UInt8Array, starts: IntArray, lengths: IntArray, states: UInt64Array | None
) -> UInt64Array:
    # With the longest first, the strings that still have a byte to give are a prefix, so each
    # column of bytes is a plain slice. A stable sort of 8-bit keys is a radix sort.
    order = np.argsort(np.uint8(255) - np.minimum(lengths, 255).astype(np.uint8), kind="stable")
    starts, lengths = starts[order], lengths[order]
    state = np.full(len(order), FNV_OFFSET, np.uint64) if states is None else states[order]
    longer = np.bincount(np.minimum(lengths, 255), minlength=256)
    alive = len(order) - np.cumsum(longer)  # alive[j]: strings longer than j bytes
    # Every eight consecutive bytes as one little-endian word; unaligned and overlapping.
    words = np.ndarray((len(buffer) - PADDING + 1,), "<u8", buffer.data, 0, (1,))
    byte = np.empty(len(order), np.uint64)
    column, count = 0, int(alive[0])
    loaded = np.empty(0, np.uint64)
    prime, low_byte, eight = np.uint64(FNV_PRIME), np.uint64(255), np.uint64(8)
    while count >= _FEW:
        if column % 8 == 0:
            loaded = words[starts[:count] + column]
        else:
            loaded = loaded[:count]
            loaded >>= eight
        np.bitwise_and(loaded, low_byte, out=byte[:count])
        state[:count] ^= byte[:count]
        state[:count] *= prime
        column += 1
        count = int(alive[column]) if column < 255 else 0
    _finish(buffer, starts, lengths, state, column)
    hashes = np.empty_like(state)
    hashes[order] = state
    return hashes


def _finish(
    buffer: UInt8Array, starts: IntArray, lengths: IntArray, state: UInt64Array, column: int
) -> None:
    """Hash what is left of the few strings longer than ``column`` bytes, one by one."""
    for i in np.flatnonzero(lengths > column).tolist():
        value = int(state[i])
        for byte in buffer[starts[i] + column : starts[i] + lengths[i]].tobytes():
            value = ((value ^ byte) * FNV_PRIME) & _MASK
        state[i] = value


def fmix64(hashes: UInt64Array) -> UInt64Array:
    """Return MurmurHash3's 64-bit finaliser of every hash; a bijection.

    FNV-1a alone barely mixes the upper bits of short words: unrelated texts then lie at 18 bits
    from each other on average instead of 32.
    """
    mixed = hashes ^ (hashes >> np.uint64(33))
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    mixed ^= mixed >> np.uint64(33)
    return mixed
