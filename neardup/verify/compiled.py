"""The kernels of ``similarity`` once more, compiled by numba (extra ``fast``)."""

from __future__ import annotations

import numpy as np
from numba import njit

from neardup.tables import Int32Array, IntArray, UInt64Array

_U = np.uint64


def number(values: UInt64Array, offsets: IntArray, family: IntArray) -> Int32Array:
    """Return a number in place of each hash, int32 (s,): within a family, the same for the same
    hash."""
    numbers: Int32Array = _number(values, offsets, np.argsort(family, kind="stable"), family)
    return numbers


@njit(cache=True, nogil=True)
def _number(values, offsets, order, family):
    numbers = np.empty(len(values), np.int32)
    # A hash table: keys, 0 in an empty slot, and their numbers. The hash 0 is looked after apart.
    # Small for each family at first, so that little is cleared, and what is used stays in caches.
    slots, shift = _U(0), _U(0)
    keys, given = np.empty(0, np.uint64), np.empty(0, np.int32)
    known, of_zero = np.int32(0), np.int32(-1)
    current = -1
    for document in order:
        if family[document] != current:
            current = family[document]
            known, of_zero = np.int32(0), np.int32(-1)
            slots, shift = _U(64), _U(58)
            keys[:64] = 0
        start, end = offsets[document], offsets[document + 1]
        if _U(2 * (known + end - start)) > slots or len(keys) == 0:
            old = slots if len(keys) else _U(0)
            while slots < _U(4 * (known + end - start)):
                slots <<= _U(1)
                shift -= _U(1)
            keys, given = _grown(keys, given, old, slots, shift)
        for j in range(start, end):
            value = values[j]
            if value == 0:
                if of_zero < 0:
                    of_zero = known
                    known += np.int32(1)
                numbers[j] = of_zero
                continue
            slot = value >> shift
            key = keys[slot]
            while key != value and key != 0:
                slot = (slot + _U(1)) & (slots - _U(1))
                key = keys[slot]
            if key == 0:
                keys[slot] = value
                given[slot] = known
                known += np.int32(1)
            numbers[j] = given[slot]
    return numbers


@njit(cache=True, nogil=True)
def _grown(keys, given, old, slots, shift):
    """Move a table of ``old`` slots into one of ``slots``, in the same arrays if they have room."""
    old_keys, old_given = keys[:old].copy(), given[:old].copy()
    if _U(len(keys)) < slots:
        keys, given = np.empty(slots, np.uint64), np.empty(slots, np.int32)
    keys[:slots] = 0
    for i in range(old):
        if old_keys[i] != 0:
            slot = old_keys[i] >> shift
            while keys[slot] != 0:
                slot = (slot + _U(1)) & (slots - _U(1))
            keys[slot], given[slot] = old_keys[i], old_given[i]
    return keys, given


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


@njit(cache=True, nogil=True)
def _bit_count(x):
    """Count bits; the compiler knows this pattern and makes one instruction of it. Like that of
    ``index.compiled``, but numba's cache looks only at the file of the kernel it compiles."""
    x = x - ((x >> _U(1)) & _U(0x5555555555555555))
    x = (x & _U(0x3333333333333333)) + ((x >> _U(2)) & _U(0x3333333333333333))
    x = (x + (x >> _U(4))) & _U(0x0F0F0F0F0F0F0F0F)
    return (x * _U(0x0101010101010101)) >> _U(56)


@njit(cache=True, nogil=True)
def _common_bits(rows, left, right):
    common = np.empty(len(left), np.int64)
    for pair in range(len(left)):
        one, other = rows[left[pair]], rows[right[pair]]
        count = _U(0)
        for j in range(_U(rows.shape[1])):
            count += _bit_count(one[j] & other[j])
        common[pair] = count
    return common


def common_bits(rows: UInt64Array, left: IntArray, right: IntArray) -> IntArray:
    """Return how many bits are set in both rows of each pair, int64 (m,). ``rows`` is uint64
    (d, w)."""
    found: IntArray = _common_bits(rows, left, right)
    return found


def check() -> None:
    """Compile everything, or load it from the cache; raise RuntimeError if a result is wrong."""
    values = np.array([7, 5, 5, 9], np.uint64) << _U(40)
    offsets = np.array([0, 2, 4])
    numbers = number(values, offsets, np.zeros(2, np.int64))
    shared = common(numbers, offsets, np.array([0]), np.array([1]))
    bits = common_bits(np.array([[7, 1], [6, 3]], np.uint64), np.array([0]), np.array([1]))
    if numbers.tolist() != [0, 1, 1, 2] or shared.tolist() != [1] or bits.tolist() != [3]:
        raise RuntimeError("the kernels give wrong results")
