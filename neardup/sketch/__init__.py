"""Text in, uint64 out: the fingerprints.

The folder is called ``sketch`` because ``neardup.fingerprint`` is the function users call, and a
package of the same name would shadow it.

A recipe is named and versioned. Whatever would change a fingerprint makes a new version:
fingerprints of two recipes cannot be compared.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from neardup import fast
from neardup.errors import UsageError
from neardup.sketch.features import (
    Hashes,
    distinct,
    pair_hashes,
    pairs_or_word,
    rising,
    word_hashes,
)
from neardup.sketch.hashing import fmix64
from neardup.sketch.minhash import densify, one_bit, smallest
from neardup.sketch.simhash import majority, weigh
from neardup.sketch.tokens import Words, ascii_words, unicode_words, utf8
from neardup.tables import Fingerprints, Int32Array, UInt64Array
from neardup.workers import keep_freed_memory

#: Bytes of text fingerprinted at once: few enough for the caches, enough for numpy
#: (measured: 256 KB to 1 MB are within a tenth of each other, 64 KB and 4 MB a third slower).
BATCH = 512 * 1024

#: The weight of a pair of words beside that of a word.
PAIR_WEIGHT = 2


@dataclass(frozen=True)
class Recipe:
    """How a fingerprint is made, and how to use it.

    name : with its version; fingerprints of two names are not comparable
    unicode : words of all scripts, folded; else lower-case ASCII words
    minwise : a bit of the smallest hash in each of 64 bins; else the majority of the votes
    mixed : whether the FNV-1a hashes of features are mixed once more
    damped : whether a feature votes with the bit length of its count; else with the count
    """

    name: str
    unicode: bool = True
    minwise: bool = False
    mixed: bool = True
    damped: bool = True


# Case folding, normal forms and classes of characters are those of Python's Unicode tables.
_UNICODE = f"unicode/{unicodedata.unidata_version}"

#: classic: the textbook. simhash: the same repaired: all scripts, hashes whose bits are
#: independent, and repeated words that do not own the vote. minhash: small edits move fewer bits.
#: The README has the measurements from which this was chosen.
RECIPES = {
    "simhash": Recipe(f"simhash/1 {_UNICODE}"),
    "minhash": Recipe(f"minhash/1 {_UNICODE}", minwise=True),
    "classic": Recipe("classic/1", unicode=False, mixed=False, damped=False),
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
    sketch : {"simhash", "minhash", "classic"}
        ``simhash`` votes with the words and word pairs of the folded text, each weighing the bit
        length of its count (pairs twice); ``minhash`` keeps one bit of the smallest hash of the
        word pairs in each of 64 bins; ``classic`` is the textbook SimHash over lower-case ASCII
        words, each occurrence weighing 1, pairs 2.

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
    """Return the fingerprints together with the number of features of every text: distinct words
    and pairs of the SimHashes, pairs of the MinHash."""
    if isinstance(texts, str):
        raise UsageError("expected several texts, got one str; put it into a list")
    made = recipe(sketch)
    bits, features = [np.empty(0, np.uint64)], [np.empty(0, np.int32)]
    for batch in batches(map(utf8, _checked(texts))):
        fast.expect(sum(map(len, batch)))
        some_bits, some_features = fingerprint_batch(batch, made)
        bits.append(some_bits)
        features.append(some_features)
    return Fingerprints(np.concatenate(bits), np.concatenate(features), made.name)


def _checked(texts: Iterable[str]) -> Iterator[str]:
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(f"text {row} is a {type(text).__name__}, not a str")
        yield text


def batches(texts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Group texts, in order, into lists of at most ``BATCH`` bytes where they fit."""
    keep_freed_memory()
    batch: list[bytes] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text) + 1
    if batch:
        yield batch


def fingerprint_batch(texts: Sequence[bytes], made: Recipe) -> tuple[UInt64Array, Int32Array]:
    """Return the fingerprints and the numbers of features of as many texts, in UTF-8, as fit the
    caches."""
    compiled = fast.kernels("sketch")
    if compiled is not None and made.minwise:
        bits, features = compiled.minhashes(texts)
    elif compiled is not None:
        bits, features = compiled.simhashes(texts, made.unicode, made.mixed, made.damped)
    elif made.minwise:
        bits, features = _minhashes(unicode_words(texts))
    else:
        bits, features = _simhashes(
            unicode_words(texts) if made.unicode else ascii_words(texts), made
        )
    return bits, features


def _simhashes(words: Words, made: Recipe) -> tuple[UInt64Array, Int32Array]:
    """Let words and pairs vote, each with its weight."""
    documents = len(words.offsets) - 1
    votes = np.zeros((documents, 64), np.int64)
    total = np.zeros(documents, np.int64)
    features = np.zeros(documents, np.int64)
    single = word_hashes(words)
    for hashes, factor in ((single, 1), (pair_hashes(words, single), PAIR_WEIGHT)):
        found, counts = distinct(hashes)
        values = fmix64(found.values) if made.mixed else found.values
        # The bit length of a count: 1, 2, 2, 3, 3, 3, 3, 4, ...
        weights = np.frexp(counts)[1].astype(np.int64) if made.damped else counts
        some_votes, some_total = weigh(Hashes(values, found.offsets), weights)
        votes += factor * some_votes
        total += factor * some_total
        features += np.diff(found.offsets)
    return majority(votes, total), features.astype(np.int32)


def _minhashes(words: Words) -> tuple[UInt64Array, Int32Array]:
    """Keep the smallest hashes of the word pairs; a text of one word has that as its feature."""
    hashes = pairs_or_word(words)
    mixed = rising(Hashes(fmix64(hashes.values), hashes.offsets))
    lowest, full = smallest(mixed)
    features = np.diff(hashes.offsets).astype(np.int32)
    bits = one_bit(densify(lowest, full))
    bits[features == 0] = 0
    return bits, features
