"""Spin, sort, compare: the pairs of fingerprints within a Hamming distance.

Each table of a plan brings its key bits to the top, sorts, and compares what has come to lie
together. Exact search compares every pair within a run of equal keys; window search compares
neighbours in the order of the whole rotated word and is approximate.

Sorting on several choices of blocks, and reporting a pair only in the first table that has it under
one key, is the multiple sorting method: Tabei, Uno, Sugiyama, Tsuda, "Single versus multiple
sorting in all pairs similarity search" (ACML 2010).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import ModuleType

import numpy as np

from neardup import fast
from neardup.errors import UsageError
from neardup.groups import Groups
from neardup.index.plan import BITS, COMPILED, choose
from neardup.progress import Advance, unseen
from neardup.tables import IntArray, Pairs, SearchPlan, UInt64Array

# Rows compared at once: they stay in the level-2 cache for all lags.
_CHUNK = 1 << 15

# Fingerprints that numpy compares in the time in which it fingerprints a byte of text.
_COMPARED_FOR_A_BYTE = 10

# Places or rows of pairs.
Found = tuple[IntArray, IntArray]


def pairs(bits: UInt64Array, k: int) -> Pairs:
    """Return every pair of fingerprints at Hamming distance <= k. Exact.

    Parameters
    ----------
    bits : uint64 (n,)
        Fingerprints of any origin.
    k : int, 0 to 64

    Returns
    -------
    Pairs
        Rows of ``bits``; ``similarity`` is NaN.

    Raises
    ------
    UsageError
        ``bits`` is no such array, or k is out of range.
    """
    if not isinstance(bits, np.ndarray) or bits.ndim != 1 or bits.dtype != np.uint64:
        raise UsageError("fingerprints are a 1-D numpy array of uint64")
    return exact(bits, plan_for(len(bits), k))


def plan_for(n: int, k: int) -> SearchPlan:
    """Return the cheapest plan for n fingerprints and threshold k with the kernel that will carry
    it out: the compiled one where the work is worth loading it."""
    plan = choose(n, k)
    fast.expect(int(plan.candidates) // _COMPARED_FOR_A_BYTE)
    return plan if fast.kernels("index") is None else choose(n, k, COMPILED)


def exact(
    bits: UInt64Array, plan: SearchPlan, advance: Advance = unseen, workers: int = 1
) -> Pairs:
    """Return every pair within ``plan.max_distance``: complete if the plan is. ``advance`` counts
    tables; ``workers`` are threads, for the compiled kernel only.

    When equal fingerprints alone make more pairs than there are rows, each value is searched once
    and their pairs are made afterwards. Otherwise telling them apart costs more than it saves.
    """
    ordered = np.sort(bits)
    runs = np.diff(np.flatnonzero(np.diff(ordered, prepend=~ordered[:1], append=~ordered[-1:])))
    if (runs * (runs - 1) // 2).sum() <= len(bits):
        return _pairs(bits, _sorted(_tables(bits, plan, advance, workers)))
    unique, group = np.unique(bits, return_inverse=True)
    found = _expand(_tables(unique, plan, advance, workers), Groups.of(group))
    return _pairs(bits, _sorted(found))


def window(
    bits: UInt64Array, k: int, rotations: int, width: int, advance: Advance = unseen
) -> Pairs:
    """Return pairs at Hamming distance <= k that come to lie within ``width`` places of each other
    in the sorted order of one of the rotations. Approximate: pairs are missed, and more when
    more documents lie between.

    The order is closed to a ring: after the last comes the first. Equal words keep document order.

    Parameters
    ----------
    bits : uint64 (n,)
    k : int, 0 to 64
    rotations : int, 1 to 64
        Rotation t turns every word left by ``64 * t // rotations`` bits.
    width : int, at least 1
        How many following neighbours each fingerprint is compared with.
    advance : called with the number of rotations done

    Notes
    -----
    Charikar (STOC 2002) sorts random permutations of the bits and looks at neighbours;
    Ravichandran, Pantel, Hovy, "Randomized algorithms and NLP" (ACL 2005), compare each with a
    window of them. Rotations instead of random permutations are the textbook's economy.
    """
    if not 0 <= k <= BITS:
        raise UsageError(f"the threshold is a number of bits from 0 to {BITS}, not {k}")
    if not 1 <= rotations <= BITS:
        raise UsageError(f"rotations go from 1 to {BITS}, not {rotations}")
    if width < 1:
        raise UsageError(f"the window is at least 1, not {width}")
    numbers = _sorted(_windows(bits, k, rotations, width, advance))
    return _pairs(bits, numbers[np.diff(numbers, prepend=-1) > 0])


def _windows(
    bits: UInt64Array, k: int, rotations: int, width: int, advance: Advance
) -> Iterator[Found]:
    for turn in range(rotations):
        order = np.argsort(_rotate(bits, BITS * turn // rotations), kind="stable")
        word = bits[order]
        for lag in range(1, min(width, len(bits) - 1) + 1):
            near = np.flatnonzero(np.bitwise_count(word ^ np.roll(word, -lag)) <= k)
            yield order[near], np.roll(order, -lag)[near]
        advance(1)


def _rotate(bits: UInt64Array, places: int) -> UInt64Array:
    if places == 0:
        return bits
    return (bits << np.uint64(places)) | (bits >> np.uint64(BITS - places))


def _sorted(found: Iterator[Found]) -> IntArray:
    """Return all pairs of rows in the order of the smaller, then the larger row, each as one number
    of which they are the halves: these take little room and are sorted quickly. (Two billion rows
    would need other numbers, and 16 GB for their fingerprints.)"""
    numbers = [np.empty(0, np.int64)]
    for i, j in found:
        numbers.append(np.minimum(i, j) << 32 | np.maximum(i, j))
    joined = np.concatenate(numbers)
    joined.sort()
    return joined


def _pairs(bits: UInt64Array, numbers: IntArray) -> Pairs:
    """Return the table of sorted pairs."""
    left, right = numbers >> 32, numbers & 0xFFFFFFFF
    return Pairs.candidates(left, right, np.bitwise_count(bits[left] ^ bits[right]))


def _expand(found: Iterator[Found], groups: Groups) -> Iterator[Found]:
    """Turn pairs of groups of equal fingerprints into pairs of their members, and add the pairs
    inside each group."""
    for a, b in found:
        left, right, _ = groups.between(a, b)
        yield left, right
    yield from groups.within()


def _tables(bits: UInt64Array, plan: SearchPlan, advance: Advance, workers: int) -> Iterator[Found]:
    """Yield the pairs of every table that no earlier table has seen."""
    compiled = fast.kernels("index")
    if compiled is None:
        for table in range(len(plan.masks)):
            yield from _table(bits, plan, table)
            advance(1)
        return
    work = partial(_table_compiled, compiled, bits, plan)
    with ThreadPoolExecutor(workers) as threads:
        try:
            for found in threads.map(work, range(len(plan.masks))):
                yield from found
                advance(1)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _table_compiled(
    compiled: ModuleType, bits: UInt64Array, plan: SearchPlan, table: int
) -> list[Found]:
    rows, run_ends = _sort_by_key(bits, int(plan.masks[table]))
    found = compiled.near(bits[rows], run_ends, plan.masks, table, plan.max_distance)
    return [(rows[i], rows[j]) for i, j in found]


def _table(bits: UInt64Array, plan: SearchPlan, table: int) -> Iterator[Found]:
    mask = plan.masks[table]
    rows, run_ends = _sort_by_key(bits, int(mask))
    word = bits[rows]
    for i, j in _gather(
        found
        for low in range(0, len(bits), _CHUNK)
        for found in _near_in_runs(word, run_ends, low, plan.max_distance)
    ):
        difference = word[i] ^ word[j]
        # What an earlier table has under one key is already reported.
        new = np.flatnonzero(difference & mask == 0)
        for earlier in plan.masks[:table]:
            new = new[difference[new] & earlier != 0]
        yield rows[i[new]], rows[j[new]]


def _gather(parts: Iterator[Found]) -> Iterator[Found]:
    """Join small parts into ones of at least ``_CHUNK`` pairs."""
    pending: list[Found] = []
    count = 0
    for part in parts:
        pending.append(part)
        count += len(part[0])
        if count >= _CHUNK:
            yield _join(pending)
            pending, count = [], 0
    if pending:
        yield _join(pending)


def _join(parts: list[Found]) -> Found:
    i, j = zip(*parts, strict=True)
    return np.concatenate(i), np.concatenate(j)


def _sort_by_key(bits: UInt64Array, mask: int) -> tuple[IntArray, IntArray]:
    """Return the rows ordered by their bits under the mask, and where each run of equal keys ends.

    One sort of words with the key on top and the row number below is several times faster than an
    argsort.
    """
    n = len(bits)
    if mask == 0:
        return np.arange(n), np.full(min(n, 1), n)
    row_bits = np.uint64(max(n - 1, 1).bit_length())
    packed = np.empty(n, np.uint64)
    for low in range(0, n, _CHUNK):
        chunk = slice(low, min(low + _CHUNK, n))
        row = np.arange(chunk.start, chunk.stop, dtype=np.uint64)
        packed[chunk] = (_squeeze(bits[chunk], mask) << row_bits) | row
    packed.sort()
    rows = (packed & ((np.uint64(1) << row_bits) - np.uint64(1))).view(np.int64)
    packed >>= row_bits
    return rows, np.append(np.flatnonzero(packed[1:] != packed[:-1]) + 1, n)


def _squeeze(bits: UInt64Array, mask: int) -> UInt64Array:
    """Return the bits under the mask, moved together at the low end."""
    squeezed = np.zeros_like(bits)
    place = 0
    while mask:
        start = (mask & -mask).bit_length() - 1
        size = (~(mask >> start) & ((mask >> start) + 1)).bit_length() - 1
        ones = (1 << size) - 1
        squeezed |= ((bits >> np.uint64(start)) & np.uint64(ones)) << np.uint64(place)
        place += size
        mask &= ~(ones << start)
    return squeezed


def _near_in_runs(word: UInt64Array, run_ends: IntArray, low: int, k: int) -> Iterator[Found]:
    """Yield places (i, j), i < j, at distance <= k, with i in the chunk that begins at ``low``: all
    those within one run, and perhaps some across runs.

    Place i is compared with i + lag for lag 1, 2, ... While many places still have a partner at
    that lag, plain slices are fastest, though they reach beyond the ends of runs; after that only
    the places whose run goes on are followed.
    """
    high = min(low + _CHUNK, len(word))
    first, last = np.searchsorted(run_ends, (low, high - 1), side="right")
    ends = run_ends[first : last + 1]
    inside = np.diff(np.minimum(ends, high), prepend=low)
    room = np.repeat(ends, inside) - np.arange(low, high)  # partners: lags below this
    # Up to this lag a sixteenth of the places has a partner; there both ways cost about the same.
    rank = (len(room) * 15) // 16
    many = int(np.partition(room, rank)[rank])
    for lag in range(1, many):
        end = min(high, len(word) - lag)
        near = np.flatnonzero(np.bitwise_count(word[low:end] ^ word[low + lag : end + lag]) <= k)
        if len(near):
            yield near + low, near + (low + lag)
    lag = max(many, 1)
    active = np.flatnonzero(room > lag)
    while len(active):
        distance = np.bitwise_count(word[active + low] ^ word[active + (low + lag)])
        near = np.flatnonzero(distance <= k)
        if len(near):
            i = active[near] + low
            yield i, i + lag
        lag += 1
        active = active[room[active] > lag]
