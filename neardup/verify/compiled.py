"""The kernels of ``similarity`` once more, compiled by numba (extra ``fast``)."""

from __future__ import annotations

import numpy as np
from numba import njit

from neardup.tables import Int32Array, IntArray, UInt64Array


def number(values: UInt64Array, offsets: IntArray, family: IntArray) -> Int32Array:
    """Return a number in place of each hash, int32 (s,): within a family, the same for the same
    hash."""
    numbers: Int32Array = _number(values, offsets, np.argsort(family, kind="stable"), family)
    return numbers


@njit(cache=True, nogil=True)
def _number(values, offsets, order, family):
    numbers = np.empty(len(values), np.int32)
    # A hash table: keys and their numbers, -1 in an empty slot.
    slots, shift = np.uint64(1024), np.uint64(54)
    keys, given = np.empty(slots, np.uint64), np.empty(slots, np.int32)
    known = np.int32(0)
    current = -1
    for document in order:
        if family[document] != current:
            current = family[document]
            known = np.int32(0)
            given[:] = -1
        start, end = offsets[document], offsets[document + 1]
        if np.uint64(2 * (known + end - start)) > slots:
            old = slots
            while slots < np.uint64(4 * (known + end - start)):
                slots <<= np.uint64(1)
                shift -= np.uint64(1)
            keys, given = _grown(keys, given, old, slots, shift)
        for j in range(start, end):
            value = values[j]
            slot = value >> shift
            while given[slot] >= 0 and keys[slot] != value:
                slot = (slot + np.uint64(1)) & (slots - np.uint64(1))
            if given[slot] < 0:
                keys[slot] = value
                given[slot] = known
                known += np.int32(1)
            numbers[j] = given[slot]
    return numbers


@njit(cache=True, nogil=True)
def _grown(keys, given, old, slots, shift):
    more_keys, more_given = np.empty(slots, np.uint64), np.full(slots, -1, np.int32)
    for i in range(old):
        if given[i] >= 0:
            slot = keys[i] >> shift
            while more_given[slot] >= 0:
                slot = (slot + np.uint64(1)) & (slots - np.uint64(1))
            more_keys[slot], more_given[slot] = keys[i], given[i]
    return more_keys, more_given


@njit(cache=True, nogil=True)
def _common(numbers, offsets, left, right, flags):
    common = np.zeros(len(left), np.int64)
    marked = -1
    for pair in range(len(left)):
        if left[pair] != marked:
            if marked >= 0:
                for j in range(offsets[marked], offsets[marked + 1]):
                    flags[numbers[j]] = 0
            marked = left[pair]
            for j in range(offsets[marked], offsets[marked + 1]):
                flags[numbers[j]] = 1
        count = 0
        for j in range(offsets[right[pair]], offsets[right[pair] + 1]):
            count += flags[numbers[j]]
        common[pair] = count
    return common


def common(numbers: Int32Array, offsets: IntArray, left: IntArray, right: IntArray) -> IntArray:
    """Return how many numbers each pair of documents has in common, int64 (m,)."""
    flags = np.zeros(int(numbers.max(initial=-1)) + 1, np.uint8)
    found: IntArray = _common(numbers, offsets, left, right, flags)
    return found


def check() -> None:
    """Compile everything, or load it from the cache; raise RuntimeError if a result is wrong."""
    values = np.array([7, 5, 5, 9], np.uint64) << np.uint64(40)
    offsets = np.array([0, 2, 4])
    numbers = number(values, offsets, np.zeros(2, np.int64))
    shared = common(numbers, offsets, np.array([0]), np.array([1]))
    if numbers.tolist() != [0, 1, 1, 2] or shared.tolist() != [1]:
        raise RuntimeError("the kernels give wrong results")
