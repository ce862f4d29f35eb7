"""The kernel of ``search`` once more, compiled by numba (extra ``fast``)."""

from __future__ import annotations

import numpy as np
from numba import njit

from neardup.tables import IntArray, UInt64Array

_U = np.uint64

_ZERO, _ONE = _U(0), _U(1)

# Words compared at once: which of them are near is a word of 64 bits, and most often 0.
_BLOCK = _U(64)

# Pairs found before they are handed over.
_ROOM = 1 << 18


def near(
    word: UInt64Array, run_ends: IntArray, masks: UInt64Array, table: int, k: int
) -> list[tuple[IntArray, IntArray]]:
    """Return all places (i, j), i < j, within one run, at distance <= k, that share their key in no
    earlier table.

    Parameters
    ----------
    word : uint64 (n,), in the order of the keys of this table
    run_ends : int64 (r,), where each run of equal keys ends
    masks : uint64 (t,), of all tables
    table : the number of this one
    k : int
    """
    found = []
    longest = int(np.diff(run_ends, prepend=0).max(initial=0))
    run = place = 0
    while run < len(run_ends):
        hits = np.empty((2, _ROOM + longest), np.int64)
        count, run, place = _near(word, run_ends, masks[: table + 1], k, run, place, hits, _ROOM)
        found.append((hits[0, :count].copy(), hits[1, :count].copy()))
    return found


@njit(cache=True, nogil=True)
def _distance(x):
    """Count bits; the compiler knows this pattern and makes one instruction of it."""
    x = x - ((x >> _U(1)) & _U(0x5555555555555555))
    x = (x & _U(0x3333333333333333)) + ((x >> _U(2)) & _U(0x3333333333333333))
    x = (x + (x >> _U(4))) & _U(0x0F0F0F0F0F0F0F0F)
    return (x * _U(0x0101010101010101)) >> _U(56)


@njit(cache=True, nogil=True)
def _near(word, run_ends, masks, k, run, place, hits, room):
    """Search on from a run and a place in it, until ``room`` is filled; return the number of hits,
    and where to go on."""
    most = _U(k)
    last = len(masks) - 1
    count = _ZERO
    while run < len(run_ends):
        end = _U(run_ends[run])
        i = _U(place)
        while i < end:
            if count >= _U(room):
                return count, run, i
            one = word[i]
            for start in range(i + _ONE, end, _BLOCK):
                near = _ZERO
                for j in range(min(_BLOCK, end - start)):
                    near |= _U(_distance(one ^ word[start + j]) <= most) << j
                while near != _ZERO:
                    lowest = near & (~near + _ONE)
                    near ^= lowest
                    j = start + _distance(lowest - _ONE)
                    difference = one ^ word[j]
                    # What an earlier table has under one key is already reported.
                    table = 0
                    while difference & masks[table] != _ZERO and table < last:
                        table += 1
                    # The key may be longer than what was sorted by.
                    if table == last and difference & masks[last] == _ZERO:
                        hits[0, count] = i
                        hits[1, count] = j
                        count += _ONE
            i += _ONE
        run += 1
        place = end
    return count, run, place


def check() -> None:
    """Compile everything, or load it from the cache; raise RuntimeError if a result is wrong."""
    word = np.array([0, 1, 3, 7], np.uint64)
    masks = np.array([1, 0], np.uint64)
    found = near(word, np.array([4]), masks, 1, 1)
    if [part.tolist() for part in found[0]] != [[0], [1]]:
        raise RuntimeError("the kernel gives wrong results")
