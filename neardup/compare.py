"""Two texts side by side."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neardup.sketch import fingerprints
from neardup.sketch.tokens import utf8
from neardup.verify import jaccard, shingles

#: Largest distance and what it is called.
VERDICTS = ((3, "near-identical"), (10, "very similar"), (20, "related"), (64, "different"))


@dataclass(frozen=True)
class Side:
    """One text: its fingerprint, its length in characters and in words between blanks, and the
    number of its distinct features."""

    bits: int
    characters: int
    words: int
    features: int


@dataclass(frozen=True)
class Comparison:
    """Two texts compared.

    sketch : the recipe of the fingerprints
    distance : Hamming distance of the fingerprints in bits, of 64
    similarity : equal bits in per cent, rounded half up
    jaccard : exact Jaccard similarity of word 3-shingles
    identical : whether the texts are the same to the letter
    verdict : the distance in words; a text without features cannot be judged
    """

    left: Side
    right: Side
    sketch: str
    distance: int
    similarity: int
    jaccard: float
    identical: bool
    verdict: str


def compare(left: str, right: str, sketch: str = "simhash") -> Comparison:
    """Compare two texts. Raises UsageError for an unknown sketch."""
    prints = fingerprints([left, right], sketch)
    one, other = (
        Side(int(bits), len(text), len(text.split()), int(features))
        for text, bits, features in zip((left, right), prints.bits, prints.features, strict=True)
    )
    distance = (one.bits ^ other.bits).bit_count()
    pair = np.zeros(1, np.int64), np.ones(1, np.int64)
    return Comparison(
        one,
        other,
        sketch,
        distance,
        (200 * (64 - distance) + 64) // 128,
        float(jaccard(shingles([utf8(left), utf8(right)]), *pair)[0]),
        left == right,
        verdict(distance) if one.features and other.features else "no usable text to judge by",
    )


def verdict(distance: int) -> str:
    """Return what a Hamming distance is called."""
    return next(name for largest, name in VERDICTS if distance <= largest)


def differing_lines(left: str, right: str) -> Iterator[str]:
    """Yield the lines that differ, each with ``-`` (left only), ``+`` (right only) before it, and
    ``@@`` lines that say where."""
    lines = difflib.unified_diff(left.splitlines(), right.splitlines(), n=0, lineterm="")
    for number, line in enumerate(lines):
        if number >= 2:  # the names of the files
            yield line
