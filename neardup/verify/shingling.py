"""Texts to shingles: runs of three words, three characters in scripts written without blanks.

A text of one or two words is one shingle. Source: Broder, "On the resemblance and containment of
documents" (SEQUENCES 1997), section 2. Shingles are compared by a 64-bit hash: "exact" means up to
the chance that two of some thousand shingles share one, about 1 in 10¹².
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from neardup import fast
from neardup.sketch import batches
from neardup.sketch.features import Hashes, distinct, word_hashes
from neardup.sketch.hashing import fmix64
from neardup.sketch.tokens import unicode_words

SHINGLE = 3

_STEP = np.uint64(0x9E3779B97F4A7C15)


def shingles(texts: Iterable[bytes]) -> Hashes:
    """Return the distinct shingle hashes of every text, in UTF-8, in no particular order."""
    values, counts = [np.empty(0, np.uint64)], [np.zeros(1, np.int64)]
    for batch in batches(texts):
        fast.expect(sum(map(len, batch)))
        found = _of_batch(batch)
        values.append(found.values)
        counts.append(np.diff(found.offsets))
    return Hashes(np.concatenate(values), np.cumsum(np.concatenate(counts)))


def _of_batch(texts: Sequence[bytes]) -> Hashes:
    compiled = fast.kernels("sketch")
    if compiled is not None:
        return Hashes(*compiled.shingles(texts, SHINGLE, _STEP))
    return distinct(_chain(word_hashes(unicode_words(texts))))[0]


def _chain(words: Hashes) -> Hashes:
    """Chain the hashes of the words of each shingle; order matters."""
    counts = np.diff(words.offsets)
    sizes = np.where(counts > 0, np.maximum(counts - SHINGLE + 1, 1), 0)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    document = np.repeat(np.arange(len(counts)), sizes)
    first = words.offsets[document] + np.arange(len(document)) - offsets[document]
    state = np.zeros(len(document), np.uint64)
    for i in range(SHINGLE):
        more = counts[document] > i
        state[more] = fmix64(state[more] * _STEP + words.values[first[more] + i])
    return Hashes(state, offsets)
