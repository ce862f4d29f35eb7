"""Exact Jaccard similarity of candidate pairs, from the texts themselves.

The shingles of a document are its runs of three words (three characters in scripts written
without blanks); a text of one or two words is one shingle. Source: Broder, "On the resemblance and
containment of documents" (SEQUENCES 1997), section 2. Shingles are compared by a 64-bit hash:
"exact" means up to the chance that two of some thousand shingles share one, about 1 in 10¹².
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np

from neardup.cluster import components
from neardup.progress import Advance, unseen
from neardup.sketch import batches
from neardup.sketch.features import Hashes, distinct, word_hashes
from neardup.sketch.hashing import fmix64
from neardup.sketch.tokens import unicode_words
from neardup.tables import FloatArray, IntArray, Pairs

#: Given rows in rising order, yields them with their texts; rows that cannot be read again are left
#: out.
ReadAgain = Callable[[IntArray], Iterator[tuple[int, str]]]

SHINGLE = 3

_STEP = np.uint64(0x9E3779B97F4A7C15)

# Bytes of text whose shingles are held at once, unless a single group of connected candidates has
# more. A byte of English makes a sixth of a shingle, of Chinese a third; a shingle takes 8 bytes,
# and some 50 more while they are numbered to be compared.
_BYTES_AT_ONCE = 24_000_000

# Partners' shingles looked up at once.
_LOOKUPS_AT_ONCE = 2_000_000


def shingles(texts: Iterable[str]) -> Hashes:
    """Return the distinct shingle hashes of every text, in rising order."""
    values, counts = [np.empty(0, np.uint64)], [np.zeros(1, np.int64)]
    for batch in batches(texts):
        words = word_hashes(unicode_words(batch))
        found, _ = distinct(_shingle_hashes(words))
        values.append(found.values)
        counts.append(np.diff(found.offsets))
    return Hashes(np.concatenate(values), np.cumsum(np.concatenate(counts)))


def _shingle_hashes(words: Hashes) -> Hashes:
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


def jaccard(
    shingles: Hashes, left: IntArray, right: IntArray, advance: Advance = unseen
) -> FloatArray:
    """Return the Jaccard similarity of each pair of documents, float64 (m,); 0 when both are empty.

    Parameters
    ----------
    shingles : Hashes of d documents, distinct within each
    left, right : int64 (m,), documents, ``left`` in rising order
    advance : called with the number of pairs done
    """
    sizes = np.diff(shingles.offsets)
    common = np.zeros(len(left), np.int64)
    # Consecutive numbers instead of hashes, so that a set is a row of flags.
    unique, number = np.unique(shingles.values, return_inverse=True)
    flags = np.zeros(len(unique), np.uint8)
    starts = shingles.offsets.tolist()
    bounds = np.flatnonzero(np.diff(left, prepend=-1, append=-1)).tolist()
    for low, high in pairwise(bounds):
        one = left[low]
        mine = number[starts[one] : starts[one + 1]]
        flags[mine] = 1
        # The flags of one document serve all its partners.
        for part in _parts(low, sizes[right[low:high]]):
            partners = right[part].tolist()
            theirs = np.concatenate([number[starts[d] : starts[d + 1]] for d in partners])
            running = np.concatenate(([0], np.cumsum(flags[theirs], dtype=np.int64)))
            ends = np.cumsum(sizes[right[part]])
            common[part] = np.diff(running[ends], prepend=0)
        flags[mine] = 0
        advance(high - low)
    union = sizes[left] + sizes[right] - common
    return common / np.maximum(union, 1)


def _parts(low: int, sizes: IntArray) -> Iterator[slice]:
    """Cut consecutive pairs into parts with not too many shingles."""
    part = np.cumsum(sizes) // _LOOKUPS_AT_ONCE
    edges = np.flatnonzero(np.diff(part, prepend=-1, append=-1)).tolist()
    for start, end in pairwise(edges):
        yield slice(low + start, low + end)


def confirm(
    candidates: Pairs,
    sizes: IntArray,
    read_again: ReadAgain,
    min_similarity: float,
    advance: Advance = unseen,
) -> Pairs:
    """Return the candidates whose Jaccard similarity is at least ``min_similarity``.

    Each candidate document is read once, together with those it is connected with: memory is
    bounded by the largest group of connected candidates.

    Parameters
    ----------
    candidates : Pairs
    sizes : int64 (n,), of each document in bytes
    read_again : ReadAgain
        Pairs of a document that cannot be read again are not confirmed.
    min_similarity : float, above 0
    advance : called with the number of candidates done
    """
    confirmed = []
    for part in _connected_parts(candidates, sizes):
        rows = np.unique(np.concatenate((part.left, part.right)))
        left, right = np.searchsorted(rows, part.left), np.searchsorted(rows, part.right)
        similarity = jaccard(shingles(_texts(rows, read_again)), left, right, advance)
        sure = np.flatnonzero(similarity >= min_similarity)
        kept = part.take(sure)
        confirmed.append(
            Pairs(kept.left, kept.right, kept.distance, similarity[sure], kept.identical)
        )
    joined = Pairs.concatenate(confirmed)
    return joined if len(confirmed) < 2 else joined.sorted()


def _texts(rows: IntArray, read_again: ReadAgain) -> Iterator[str]:
    """Yield the text of every row; of those that cannot be read, an empty one, which has no
    shingles and is similar to nothing."""
    again = read_again(rows)
    found = next(again, None)
    for row in rows.tolist():
        if found is not None and found[0] == row:
            yield found[1]
            found = next(again, None)
        else:
            yield ""


def _connected_parts(candidates: Pairs, sizes: IntArray) -> Iterator[Pairs]:
    """Cut the candidates into parts that share no document; each stays sorted by left, right."""
    group = components(len(sizes), candidates.left, candidates.right)
    rows = np.unique(np.concatenate((candidates.left, candidates.right)))
    size_of_group = np.bincount(group[rows], sizes[rows])
    starts = np.unique(group[rows])
    part_of_group = np.zeros(len(size_of_group), np.int64)
    part_of_group[starts] = np.cumsum(size_of_group[starts]) // _BYTES_AT_ONCE
    part = part_of_group[group[candidates.left]]
    if len(part) and part.min() == part.max():
        yield candidates
        return
    order = np.argsort(part, kind="stable")
    edges = np.flatnonzero(np.diff(part[order], prepend=-1, append=-1)).tolist()
    for start, end in pairwise(edges):
        yield candidates.take(order[start:end])
