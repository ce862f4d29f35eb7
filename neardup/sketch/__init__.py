"""Text in, uint64 out: the fingerprints.

The folder is called ``sketch`` because ``neardup.fingerprint`` is the function users call, and a
package of the same name would shadow it.

A recipe is named and versioned. Whatever would change a fingerprint makes a new version:
fingerprints of two recipes cannot be compared.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from neardup.errors import UsageError
from neardup.sketch.features import Hashes, distinct, pair_hashes, word_hashes
from neardup.sketch.hashing import fmix64
from neardup.sketch.simhash import majority, weigh
from neardup.sketch.tokens import Words, ascii_words, unicode_words
from neardup.tables import Fingerprints, Int32Array, IntArray, UInt64Array

#: Characters fingerprinted at once: small enough for the caches, large enough for numpy
#: (measured: 256 KB to 1 MB are within a tenth of each other, 64 KB and 4 MB a third slower).
BATCH = 512 * 1024

#: The weight of a pair of words beside that of a word.
PAIR_WEIGHT = 2


def _damped(counts: IntArray) -> IntArray:
    """Return the bit length of each count: 1, 2, 2, 3, 3, 3, 3, 4, ..."""
    return np.frexp(counts)[1].astype(np.int64)


@dataclass(frozen=True)
class Recipe:
    """How a fingerprint is made.

    words : splits texts into words
    finish : mixes the FNV-1a hashes of features
    damp : makes a weight of how often a feature occurs
    """

    name: str
    words: Callable[[Sequence[str]], Words]
    finish: Callable[[UInt64Array], UInt64Array]
    damp: Callable[[IntArray], IntArray]


#: classic: the textbook. simhash: the same repaired, see the README for the measurements:
#: all scripts, hashes whose bits are independent, and repeated words that do not own the vote.
RECIPES = {
    "classic": Recipe("classic/1", ascii_words, lambda hashes: hashes, lambda counts: counts),
    # Case folding, normal forms and classes of characters are those of Python's Unicode tables.
    "simhash": Recipe(
        f"simhash/1 unicode/{unicodedata.unidata_version}", unicode_words, fmix64, _damped
    ),
}


def recipe(sketch: str) -> Recipe:
    """Return the recipe of that name; UsageError lists the names there are."""
    if not isinstance(sketch, str) or sketch not in RECIPES:
        raise UsageError(f"no sketch {sketch!r}; there are: {', '.join(RECIPES)}")
    return RECIPES[sketch]


def fingerprint(texts: Iterable[str], sketch: str = "simhash") -> UInt64Array:
    """Return the 64-bit fingerprint of every text.

    Near-duplicate texts have fingerprints at a small Hamming distance. A text without any usable
    word has the fingerprint 0, which says nothing about it.

    Parameters
    ----------
    texts : iterable of str
        Lone surrogates are allowed and count as a break between words.
    sketch : {"simhash", "classic"}
        ``simhash`` votes with the words and word pairs of the folded text, each weighing the bit
        length of its count (pairs twice); ``classic`` is the textbook SimHash over lower-case
        ASCII words, each occurrence weighing 1, pairs 2.

    Returns
    -------
    uint64 (n,)

    Raises
    ------
    UsageError
        There is no such sketch, or ``texts`` is a single str or holds something else.

    Notes
    -----
    Charikar (STOC 2002), section 3; Manku, Jain, Das Sarma (WWW 2007), section 2. Features are
    hashed with 64-bit FNV-1a, and by ``simhash`` mixed with MurmurHash3's fmix64. A bit is set
    when its votes are above zero; a tie leaves it unset.
    """
    return fingerprints(texts, sketch).bits


def fingerprints(texts: Iterable[str], sketch: str = "simhash") -> Fingerprints:
    """Return the fingerprints together with the number of features of every text."""
    if isinstance(texts, str):
        raise UsageError("expected several texts, got one str; put it into a list")
    made = recipe(sketch)
    bits, features = [np.empty(0, np.uint64)], [np.empty(0, np.int32)]
    for batch in batches(_checked(texts)):
        some_bits, some_features = fingerprint_batch(batch, made)
        bits.append(some_bits)
        features.append(some_features)
    return Fingerprints(np.concatenate(bits), np.concatenate(features), made.name)


def _checked(texts: Iterable[str]) -> Iterator[str]:
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(f"text {row} is a {type(text).__name__}, not a str")
        yield text


def _keep_freed_memory() -> None:
    """Let glibc's allocator keep arrays of a batch for the next one.

    Arrays above its threshold (128 KB) are mapped anew each time, and touching them first costs
    a third of all time (measured). Freeing one larger array raises the threshold for good
    (mallopt(3), M_MMAP_THRESHOLD); nothing is touched, and other allocators do not mind.
    """
    np.empty(24 << 20, np.uint8)


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Group texts, in order, into lists of at most ``BATCH`` characters where they fit."""
    _keep_freed_memory()
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text) + 1
    if batch:
        yield batch


def fingerprint_batch(texts: Sequence[str], made: Recipe) -> tuple[UInt64Array, Int32Array]:
    """Return the fingerprints and the numbers of features of as many texts as fit the caches."""
    words = made.words(texts)
    single = word_hashes(words)
    double = pair_hashes(words, single)
    votes = np.zeros((len(texts), 64), np.int64)
    total = np.zeros(len(texts), np.int64)
    features = np.zeros(len(texts), np.int64)
    for hashes, factor in ((single, 1), (double, PAIR_WEIGHT)):
        found, counts = distinct(hashes)
        mixed = Hashes(made.finish(found.values), found.offsets)
        some_votes, some_total = weigh(mixed, made.damp(counts))
        votes += factor * some_votes
        total += factor * some_total
        features += np.diff(found.offsets)
    return majority(votes, total), features.astype(np.int32)
