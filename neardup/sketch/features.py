"""Words to features: words and pairs of neighbouring words, each counted once per document."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from neardup.sketch.hashing import FNV_PRIME, fnv1a
from neardup.sketch.tokens import Words
from neardup.tables import IntArray, UInt64Array


@dataclass(frozen=True)
class Hashes:
    """Hashes of one kind of feature; those of document i are ``offsets[i]:offsets[i + 1]``.

    values : uint64 (f,)
    offsets : int64 (d + 1,)
    """

    values: UInt64Array
    offsets: IntArray


def word_hashes(words: Words) -> Hashes:
    """Return the FNV-1a hash of every word."""
    return Hashes(fnv1a(words.buffer, words.starts, words.lengths), words.offsets)


def pair_hashes(words: Words, single: Hashes) -> Hashes:
    """Return the FNV-1a hash of ``"w1 w2"`` for any two neighbouring words of a document.

    FNV-1a can be continued: the state after ``"w1 "`` is the hash of w1 and one more step.
    """
    states = (single.values[:-1] ^ np.uint64(ord(" "))) * np.uint64(FNV_PRIME)
    values = fnv1a(words.buffer, words.starts[1:], words.lengths[1:], states)
    # No pair reaches from the last word of a document to the first word of the next one.
    counts = np.diff(words.offsets)
    last = words.offsets[1:][counts > 0] - 1
    values = np.delete(values, last[last < len(values)])
    return Hashes(values, np.concatenate(([0], np.cumsum(np.maximum(counts - 1, 0)))))


def pairs_or_word(words: Words) -> Hashes:
    """Return the hashes of all pairs; of a text of a single word, the hash of that."""
    single = word_hashes(words)
    pairs = pair_hashes(words, single)
    alone = np.flatnonzero(np.diff(words.offsets) == 1)
    values = np.insert(pairs.values, pairs.offsets[alone], single.values[words.offsets[alone]])
    sizes = np.diff(pairs.offsets)
    sizes[alone] = 1
    return Hashes(values, np.concatenate(([0], np.cumsum(sizes))))


def rising(hashes: Hashes) -> Hashes:
    """Return each document's hashes in rising order."""
    values = hashes.values.copy()
    # One call per document: a sort over (document, hash) would need wider keys and is no faster.
    for start, end in pairwise(hashes.offsets.tolist()):
        values[start:end].sort()
    return Hashes(values, hashes.offsets)


def distinct(hashes: Hashes) -> tuple[Hashes, IntArray]:
    """Return each document's distinct hashes in rising order, and how often each occurs."""
    values = rising(hashes).values
    first = np.ones(len(values) + 1, np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:-1])
    first[hashes.offsets] = True
    rows = np.flatnonzero(first)
    before = np.searchsorted(rows, hashes.offsets)
    return Hashes(values[rows[:-1]], before), np.diff(rows)
