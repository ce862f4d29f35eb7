"""The kernels of this folder once more, one loop per document, compiled by numba (extra ``fast``).

Bit for bit what the numpy kernels give, at several times their speed. The loops are written for a
compiler that turns plain loops into vector instructions: contiguous arrays of uint64, decisions as
arithmetic instead of branches, one step per loop, and unsigned indices, since numba checks signed
ones for being negative. All arrays of one document stay in the level-2 cache between the steps.

It is all in one file, since numba's cache looks only at the file of the kernel that was compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from neardup.sketch import characters, minhash
from neardup.sketch.characters import class_table, fold_table
from neardup.sketch.hashing import FNV_OFFSET, FNV_PRIME, PADDING
from neardup.sketch.tokens import SHORTEST_ASCII, fold_utf8, lower_utf8
from neardup.tables import Int32Array, IntArray, UInt8Array, UInt64Array

_U = np.uint64
_ZERO, _ONE, _TWO, _THREE, _EIGHT, _BYTE = _U(0), _U(1), _U(2), _U(3), _U(8), _U(255)
_LANES = _U(0x0101010101010101)

# Compiled kernels keep these, and the cache would not notice a change in the file they come from:
# they are written out once more, so that whoever changes one must change this file.
_FROZEN = (0xCBF29CE484222325, 0x100000001B3, 8, 0x9E3779B97F4A7C15, 0, 1, 2, 4, 7, -1, 30)
if _FROZEN != (
    FNV_OFFSET,
    FNV_PRIME,
    PADDING,
    minhash.STEP,
    characters.BREAK,
    characters.WORD,
    characters.LONE,
    characters.MARK,
    characters.PAGE_BITS,
    characters.UNSETTLED,
    characters.MOST_MARKS,
):
    raise RuntimeError("the kernels were written for other constants: see _FROZEN")
_OFFSET, _PRIME, _BLANK = _U(FNV_OFFSET), _U(FNV_PRIME), _U(ord(" "))
_STEP = _U(minhash.STEP)
_BREAK, _WORD, _LONE, _MARK = (
    np.uint8(kind) for kind in (characters.BREAK, characters.WORD, characters.LONE, characters.MARK)
)
_PAGE, _IN_PAGE = _U(characters.PAGE_BITS), _U((1 << characters.PAGE_BITS) - 1)
_UNSETTLED = characters.UNSETTLED
_MOST_MARKS = characters.MOST_MARKS

# Room that folding one character may need; the longest (U+FDFA) becomes 33 bytes.
_ROOM = 64


# --- folding ---------------------------------------------------------------------------------


def folded(texts: Sequence[bytes]) -> tuple[UInt8Array, IntArray]:
    """Return texts in UTF-8 as ``tokens.fold_utf8`` has them, each followed by a line feed, in one
    padded buffer, and where each begins: uint8 (b,), int64 (d + 1,)."""
    raw, offsets = joined(texts)
    buffer, ends, settled = _fold(raw, offsets, *fold_table())
    if settled.all():
        return buffer, ends
    parts = [
        buffer[start : end - 1].tobytes() if easy else fold_utf8(text)
        for start, end, easy, text in zip(
            ends[:-1].tolist(), ends[1:].tolist(), settled.tolist(), texts, strict=True
        )
    ]
    return joined(parts)


def joined(data: Sequence[bytes]) -> tuple[UInt8Array, IntArray]:
    """Return byte strings, each followed by a line feed, in one buffer that is padded to whole
    cells of eight bytes, and where each begins."""
    sizes = np.array([len(one) + 1 for one in data], np.int64)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    padding = 2 * PADDING - int(offsets[-1]) % PADDING
    # A bytearray, since a read-only array would be another type and have everything compiled twice.
    return np.frombuffer(bytearray(b"\n").join([*data, b"\n" * padding]), np.uint8), offsets


@njit(cache=True, nogil=True)
def _fold(raw, offsets, pages, action, starts, replacements):
    """Fold documents character by character, where that is all there is to folding.

    Returns the buffer, where each document begins in it, and which documents are settled; of the
    others the buffer has rubbish.
    """
    documents = len(offsets) - 1
    ends = np.zeros(documents + 1, np.int64)
    settled = np.ones(documents, np.bool_)
    # No more than a fraction of the characters grows; texts of others are left to Python.
    size = int(offsets[-1])
    buffer = np.empty((size + size // 4 + _ROOM * (documents + 2)) // 8 * 8, np.uint8)
    limit = _U(len(buffer) - 2 * _ROOM)
    at = _ZERO
    for d in range(documents):
        low, high = _U(offsets[d]), _U(offsets[d + 1])
        if _is_ascii(raw, low, high):
            # Bounded by the limit: every document before this one has left it its size and more.
            _lower(raw, low, high, buffer, at)
            at += high - low
        else:
            room = min(limit, at + (high - low) + ((high - low) >> _TWO) + _U(_ROOM))
            after = _fold_one(raw, low, high, buffer, at, room, pages, action, starts, replacements)
            settled[d] = after != _ZERO
            if settled[d]:
                at = after
            else:
                buffer[at] = 10
                at += _ONE
        ends[d + 1] = at
    buffer[at : at + _U(2 * PADDING)] = 10
    return buffer, ends, settled


@njit(cache=True, nogil=True)
def _is_ascii(buffer, low, high):
    seen = np.uint8(0)
    for i in range(low, high):
        seen |= buffer[i]
    return seen < 128


@njit(cache=True, nogil=True)
def _lower(raw, low, high, buffer, at):
    for i in range(high - low):
        byte = raw[low + i]
        buffer[at + i] = byte + np.uint8(32) * np.uint8(byte - np.uint8(65) < np.uint8(26))


@njit(cache=True, nogil=True)
def _decode(buffer, i):
    """Return the code point of the UTF-8 character at i, and its size in bytes."""
    first = _U(buffer[i])
    low = _U(63)
    if first < _U(0x80):
        return first, _ONE
    if first < _U(0xE0):
        return (first & _U(31)) << _U(6) | (_U(buffer[i + _ONE]) & low), _TWO
    if first < _U(0xF0):
        return (
            (first & _U(15)) << _U(12)
            | (_U(buffer[i + _ONE]) & low) << _U(6)
            | (_U(buffer[i + _TWO]) & low)
        ), _THREE
    return (
        (first & _U(7)) << _U(18)
        | (_U(buffer[i + _ONE]) & low) << _U(12)
        | (_U(buffer[i + _TWO]) & low) << _U(6)
        | (_U(buffer[i + _THREE]) & low)
    ), _U(4)


@njit(cache=True, nogil=True)
def _fold_one(raw, low, high, buffer, at, limit, pages, action, starts, replacements):
    """Write one document; return where it ends, or 0 if it is not settled: if it holds characters
    that may compose with others or marks out of order, or grows too much (``fold_table``
    explains)."""
    last_mark, marks = np.int32(0), 0
    i = low
    while i < high:
        run = i
        while run < high and raw[run] < 128:
            run += _ONE
        if at + (run - i) + _U(_ROOM) > limit:
            return _ZERO
        if run > i:
            _lower(raw, i, run, buffer, at)
            at += run - i
            i = run
            last_mark, marks = np.int32(0), 0
            continue
        code, size = _decode(raw, i)
        what = action[(_U(pages[code >> _PAGE]) << _PAGE) | (code & _IN_PAGE)]
        if what >= 0:  # stays as it is; a mark if above 0
            if what > 0:
                marks += 1
                if what < last_mark or marks > _MOST_MARKS:
                    return _ZERO
            else:
                marks = 0
            last_mark = what
            for j in range(size):
                buffer[at + j] = raw[i + j]
            at += size
        elif what == _UNSETTLED:
            return _ZERO
        else:
            number = _U(_UNSETTLED - what)
            begin, end = _U(starts[number - _ONE]), _U(starts[number])
            for j in range(begin, end):
                buffer[at] = replacements[j]
                at += _ONE
            if begin < end:
                last_mark, marks = np.int32(0), 0
        i += size
    return at


# --- words and their hashes ------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _edges_ascii(buffer, low, high, is_word, edges):
    """Find the runs of word bytes: their first bytes and the bytes behind them, by turns."""
    n = _ZERO
    before = np.uint8(0)
    for i in range(low, high):
        kind = is_word[buffer[i]]
        edges[n] = i
        n += _U(kind ^ before)
        before = kind
    return n >> _ONE


@njit(cache=True, nogil=True)
def _edges_unicode(buffer, low, high, is_word, pages, classes, edges):
    """The same for UTF-8, by the classes of ``characters``."""
    n = _ZERO
    before = _BREAK
    i = low
    while i < high:
        byte = buffer[i]
        edges[n] = i
        if byte < 128:
            kind = is_word[byte]
            n += _U(kind ^ before)
            i += _ONE
        else:
            code, size = _decode(buffer, i)
            kind = classes[(_U(pages[code >> _PAGE]) << _PAGE) | (code & _IN_PAGE)]
            i += size
            if kind == _LONE:
                n += _U(before)
                edges[n] = i - size
                edges[n + _ONE] = i
                n += _TWO
                kind = _BREAK
            else:
                kind = before if kind == _MARK else kind
                n += _U(kind ^ before)
        before = kind
    return n >> _ONE


@njit(cache=True, nogil=True)
def _cut(cells, edges, found, shortest, first, starts, lengths):
    """Fetch the first eight bytes of every word that is long enough; return how many those are."""
    n = _ZERO
    for j in range(found):
        start = _U(edges[_TWO * j])
        length = _U(edges[_TWO * j + _ONE]) - start
        cell, shift = start >> _THREE, (start & _U(7)) << _THREE
        # Shifted twice, since a shift by 64 has no meaning.
        first[n] = (cells[cell] >> shift) | ((cells[cell + _ONE] << _ONE) << (_U(63) - shift))
        starts[n] = start
        lengths[n] = length
        n += _U(length >= shortest)
    return n


@njit(cache=True, nogil=True)
def _fnv1a(buffer, first, starts, lengths, states, longer):
    """Continue the FNV-1a hash of every word in place: eight bytes of all words at once, then what
    is left of the long ones."""
    n = _U(len(states))
    for j in range(n):
        bytes8, length, state = first[j], lengths[j], states[j]
        for i in range(8):
            state = (state ^ (bytes8 & _BYTE)) * _PRIME if _U(i) < length else state
            bytes8 >>= _EIGHT
        states[j] = state
    long = _ZERO
    for j in range(n):
        longer[long] = j
        long += _U(lengths[j] > _EIGHT)
    for k in range(long):
        j = _U(longer[k])
        state = states[j]
        for i in range(starts[j] + _EIGHT, starts[j] + lengths[j]):
            state = (state ^ _U(buffer[i])) * _PRIME
        states[j] = state


@njit(cache=True, nogil=True)
def _fmix64(values):
    for j in range(_U(len(values))):
        value = values[j]
        value ^= value >> _U(33)
        value *= _U(0xFF51AFD7ED558CCD)
        value ^= value >> _U(33)
        value *= _U(0xC4CEB9FE1A85EC53)
        values[j] = value ^ (value >> _U(33))


@njit(cache=True, nogil=True)
def _most_words(offsets):
    """Return how many words the longest document may have, and a little more: a word and the break
    behind it, or a character that is one, take two bytes at least."""
    longest = 0
    for d in range(len(offsets) - 1):
        longest = max(longest, offsets[d + 1] - offsets[d])
    return longest // 2 + 8


@njit(cache=True, nogil=True)
def _words(buffer, cells, low, high, unicode, shortest, is_word, pages, classes, scratch):
    """Hash the words of one document into ``scratch[2]``; return how many there are.

    scratch : uint64 (6, most words); the rows are the first bytes of the words, their lengths,
        their hashes, room for the hashes of pairs, where the words begin, and one that is free
        afterwards
    """
    # Where the words begin and end is only needed until their hashes are: it takes their room.
    edges = scratch[2:4].reshape(-1)
    if unicode and not _is_ascii(buffer, low, high):
        found = _edges_unicode(buffer, low, high, is_word, pages, classes, edges)
    else:
        found = _edges_ascii(buffer, low, high, is_word, edges)
    n = _cut(cells, edges, found, shortest, scratch[0], scratch[4], scratch[1])
    scratch[2, :n] = _OFFSET
    _fnv1a(buffer, scratch[0, :n], scratch[4, :n], scratch[1, :n], scratch[2, :n], scratch[5])
    return n


@njit(cache=True, nogil=True)
def _pairs(buffer, n, scratch):
    """Hash the pairs of neighbouring words into ``scratch[3]``; return how many there are."""
    if n < _TWO:
        return _ZERO
    last = n - _ONE
    for j in range(last):
        scratch[3, j] = (scratch[2, j] ^ _BLANK) * _PRIME
    _fnv1a(
        buffer,
        scratch[0, _ONE:n],
        scratch[4, _ONE:n],
        scratch[1, _ONE:n],
        scratch[3, :last],
        scratch[5],
    )
    return last


# --- SimHash ---------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _table(hashes):
    """Return how many slots a hash table has for so many hashes, and by how much a hash is shifted
    to get its slot. Small tables are emptier, which is quicker as long as they fit the caches."""
    slots, shift = _U(16), _U(60)
    while slots < _TWO * hashes or (slots < _U(1 << 18) and slots < _U(4) * hashes):
        slots <<= _ONE
        shift -= _ONE
    return slots, shift


@njit(cache=True, nogil=True)
def _voters(hashes, damped, keys, counts, voters):
    """Collect a hash as often as it votes: at each occurrence, or damped at the 1st, 2nd, 4th, 8th,
    ..., which makes the bit length of the count. Return how many votes and distinct hashes."""
    slots, shift = _table(_U(len(hashes)))
    keys[:slots] = _ZERO
    counts[:slots] = 0
    zeros = np.uint32(0)
    n, distinct = _ZERO, _ZERO
    for j in range(_U(len(hashes))):
        value = hashes[j]
        if value == _ZERO:  # stands for an empty slot, and is counted apart
            zeros += np.uint32(1)
            count = zeros
        else:
            # Hashes that are not mixed differ least in their upper bits.
            slot = (value * _U(0x9E3779B97F4A7C15)) >> shift
            key = keys[slot]
            while key != value and key != _ZERO:
                slot = (slot + _ONE) & (slots - _ONE)
                key = keys[slot]
            count = counts[slot] + np.uint32(1)
            keys[slot] = value
            counts[slot] = count
        distinct += _U(count == np.uint32(1))
        voters[n] = value
        n += _U((not damped) | ((count & (count - np.uint32(1))) == 0))
    return n, distinct


@njit(cache=True, nogil=True)
def _count(voters, weight, votes):
    """Add to votes how many hashes have bit i set; see ``simhash._count``."""
    for low in range(0, len(voters), 255):
        block = voters[low : low + 255]
        for i in range(8):
            lanes = _ZERO
            for j in range(_U(len(block))):
                lanes += (block[j] >> _U(i)) & _LANES
            for byte in range(8):
                votes[8 * byte + i] += weight * np.int64((lanes >> _U(8 * byte)) & _BYTE)


@njit(cache=True, nogil=True)
def _simhash(buffer, offsets, unicode, shortest, mixed, damped, is_word, pages, classes):
    documents = len(offsets) - 1
    bits = np.zeros(documents, np.uint64)
    features = np.zeros(documents, np.int32)
    cells = buffer.view(np.uint64)
    words = _most_words(offsets)
    scratch = np.empty((6, words), np.uint64)
    slots, _ = _table(_U(words))
    keys, counts = np.empty(slots, np.uint64), np.empty(slots, np.uint32)
    votes = np.zeros(64, np.int64)
    for d in range(documents):
        low, high = _U(offsets[d]), _U(offsets[d + 1])
        n = _words(buffer, cells, low, high, unicode, shortest, is_word, pages, classes, scratch)
        pairs = _pairs(buffer, n, scratch)
        votes[:] = 0
        total = _ZERO
        for weight in range(1, 3):
            hashes = scratch[2, :n] if weight == 1 else scratch[3, :pairs]
            if mixed:
                _fmix64(hashes)
            voting, distinct = _voters(hashes, damped, keys, counts, scratch[0])
            _count(scratch[0, :voting], weight, votes)
            total += _U(weight) * voting
            features[d] += np.int64(distinct)
        for i in range(64):
            bits[d] |= _U(_U(2 * votes[i]) > total) << _U(i)
    return bits, features


# --- MinHash ---------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _minhash(buffer, offsets, probes, is_word, pages, classes):
    documents = len(offsets) - 1
    bits = np.zeros(documents, np.uint64)
    features = np.zeros(documents, np.int32)
    cells = buffer.view(np.uint64)
    words = _most_words(offsets)
    scratch = np.empty((6, words), np.uint64)
    own, lowest = np.empty(64, np.uint64), np.empty(64, np.uint64)
    for d in range(documents):
        low, high = _U(offsets[d]), _U(offsets[d + 1])
        n = _words(buffer, cells, low, high, True, _ONE, is_word, pages, classes, scratch)
        pairs = _pairs(buffer, n, scratch)
        hashes = scratch[3, :pairs] if pairs else scratch[2, :n]
        features[d] = len(hashes)
        if n == _ZERO:
            continue
        _fmix64(hashes)
        own[:] = ~_ZERO
        full = _ZERO
        for j in range(_U(len(hashes))):
            bin = hashes[j] >> _U(58)
            own[bin] = min(own[bin], hashes[j])
            full |= _ONE << bin
        for bin in range(_U(64)):
            donor = _U(bin)
            probe = _ZERO
            while not (full >> donor) & _ONE:
                donor = _U(probes[bin, probe])
                probe += _ONE
            lowest[bin] = own[donor] + _STEP * _U(bin)
        _fmix64(lowest)
        for bin in range(_U(64)):
            bits[d] |= (lowest[bin] & _ONE) << _U(bin)
    return bits, features


# --- shingles --------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _distinct(hashes, keys):
    """Move the distinct hashes to the front, in the order of their first occurrence; return how
    many there are."""
    slots, shift = _table(_U(len(hashes)))
    keys[:slots] = _ZERO
    n, zeros = _ZERO, _ZERO
    for j in range(_U(len(hashes))):
        value = hashes[j]
        hashes[n] = value
        if value == _ZERO:  # stands for an empty slot
            n += _U(zeros == _ZERO)
            zeros += _ONE
            continue
        slot = value >> shift
        key = keys[slot]
        while key != value and key != _ZERO:
            slot = (slot + _ONE) & (slots - _ONE)
            key = keys[slot]
        keys[slot] = value
        n += _U(key == _ZERO)
    return n


@njit(cache=True, nogil=True)
def _shingles(buffer, offsets, width, step, is_word, pages, classes):
    documents = len(offsets) - 1
    ends = np.zeros(documents + 1, np.int64)
    cells = buffer.view(np.uint64)
    words = _most_words(offsets)
    scratch = np.empty((6, words), np.uint64)
    keys = np.empty(_table(_U(words))[0], np.uint64)
    values = np.empty(int(offsets[-1]), np.uint64)
    at = _ZERO
    for d in range(documents):
        low, high = _U(offsets[d]), _U(offsets[d + 1])
        n = _words(buffer, cells, low, high, True, _ONE, is_word, pages, classes, scratch)
        used = min(n, width)
        count = n + _ONE - used if n else _ZERO
        states = values[at : at + count]
        states[:] = _ZERO
        for i in range(used):
            for j in range(count):
                states[j] = states[j] * step + scratch[2, i + j]
            _fmix64(states)
        at += _distinct(states, keys)
        ends[d + 1] = at
    return values[:at], ends


# --- what the folder calls -------------------------------------------------------------------


def simhashes(
    texts: Sequence[bytes], unicode: bool, mixed: bool, damped: bool
) -> tuple[UInt64Array, Int32Array]:
    """Return the SimHash of every text in UTF-8, uint64 (d,), and its number of distinct
    features."""
    if unicode:
        buffer, offsets = folded(texts)
    else:
        buffer, offsets = joined([lower_utf8(text) for text in texts])
    shortest = _U(1 if unicode else SHORTEST_ASCII)
    made: tuple[UInt64Array, Int32Array] = _simhash(
        buffer, offsets, unicode, shortest, mixed, damped, *class_table()
    )
    return made


def minhashes(texts: Sequence[bytes]) -> tuple[UInt64Array, Int32Array]:
    """Return the MinHash of every text in UTF-8, uint64 (d,), and its number of features."""
    made: tuple[UInt64Array, Int32Array] = _minhash(
        *folded(texts), minhash.probes(), *class_table()
    )
    return made


def shingles(texts: Sequence[bytes], width: int, step: np.uint64) -> tuple[UInt64Array, IntArray]:
    """Return the distinct hashes of the shingles of every text, in UTF-8, in the order in which
    they come first, and where those of text i begin: uint64 (s,), int64 (d + 1,)."""
    made: tuple[UInt64Array, IntArray] = _shingles(*folded(texts), _U(width), step, *class_table())
    return made


def check() -> None:
    """Compile everything, or load it from the cache; raise RuntimeError if a result is not what it
    has always been."""
    texts = [text.encode("utf-8") for text in ("Straße 5, straße 5", "Zürich ｱ\u0301 中文", "")]
    known = [0x5A1975EB462ED2ED, 0xBC110766BCB7A8DC]
    found = [int(simhashes(texts, True, True, True)[0][0]), int(minhashes(texts)[0][0])]
    if found != known or len(shingles(texts, 3, _STEP)[0]) != 4:
        raise RuntimeError(f"the kernels give wrong results: {found}")
