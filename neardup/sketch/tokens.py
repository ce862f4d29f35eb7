"""Text to words: Unicode folding and word boundaries, for a batch of texts at once.

A word is a letter, a number or ``_`` and all letters, numbers, ``_`` and marks that follow. In
scripts written without blanks (Han, Kana, Thai, Lao, Khmer, Burmese) every character is a word of
its own, so that two neighbouring words are a character bigram there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from neardup.sketch.characters import (
    ASCII_CLASSES,
    BREAK,
    IGNORABLE,
    LAST_CODE,
    LONE,
    MARK,
    MOST_MARKS,
    TAIL,
    WORD,
    character_classes,
)
from neardup.sketch.hashing import PADDING
from neardup.tables import IntArray, UInt8Array

_IGNORABLE = re.compile(f"[{IGNORABLE}]+")

#: Bytes of the shortest word of ``ascii_words``.
SHORTEST_ASCII = 2

_ASCII = bytes(range(128))
# What folding drops, and the marks that may compose with an ASCII letter once that is lower-case.
_UNSETTLED = re.compile(f"[{IGNORABLE}\u0300-\u036f]")


@dataclass(frozen=True)
class Words:
    """The words of a batch of texts.

    buffer : uint8 (b,), the folded texts in UTF-8, padded for ``hashing.fnv1a``
    starts, lengths : int64 (w,), where each word lies in the buffer, in bytes
    offsets : int64 (d + 1,), the words of text i are ``offsets[i]:offsets[i + 1]``
    """

    buffer: UInt8Array
    starts: IntArray
    lengths: IntArray
    offsets: IntArray


def utf8(text: str) -> bytes:
    """Return a text as all that follows takes it. Lone surrogates become ``?``."""
    return text.encode("utf-8", "replace")


def fold(text: str) -> str:
    """Return the text without what a reader does not see: invisible marks are dropped, letters
    case-folded, compatibility forms (ligatures, full and half width, composed or not) made one.

    Unicode Standard, section 3.13, "Default Caseless Matching", on compatibility forms. The
    last normalisation is needed since folding can leave sequences that compose.
    """
    return fold_utf8(utf8(text)).decode("utf-8")


def fold_utf8(data: bytes) -> bytes:
    """Fold a text in UTF-8."""
    if data.isascii():
        return data.lower()
    text = data.decode("utf-8")
    # Most texts hold a few dashes and quotes that folding leaves alone: see what it would do to the
    # characters outside ASCII, and save the passes over all others (twice as fast on English).
    others = data.translate(None, _ASCII).decode("utf-8")
    suspect, flood = _floods()
    # Without the letters between them the marks of decomposed text come in a row, too.
    if suspect.search(others) and suspect.search(text):
        text = flood.sub(r"\1", text)
        data = text.encode("utf-8")
    if (
        not _UNSETTLED.search(others)
        and others.casefold() == others
        and unicodedata.is_normalized("NFKC", text)
    ):
        return data.lower()
    text = unicodedata.normalize("NFKC", _IGNORABLE.sub("", text)).casefold()
    return unicodedata.normalize("NFKC", text).encode("utf-8")


@cache
def _floods() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of more than ``MOST_MARKS`` combining marks in a row: one that is quick to
    search, since it does not tell marks from others beyond the basic plane, and the exact one."""
    marks = "".join(filter(unicodedata.combining, map(chr, range(0x20000))))
    basic = "".join(mark for mark in marks if mark < "\U00010000")
    return (
        re.compile(f"[{basic}\U00010000-\U0001ffff]{{{MOST_MARKS + 1}}}"),
        re.compile(f"([{marks}]{{{MOST_MARKS}}})[{marks}]+"),
    )


def lower_utf8(data: bytes) -> bytes:
    """Return a text in UTF-8 in lower case: a few letters become ASCII ones only then."""
    return data.lower() if data.isascii() else data.decode("utf-8").lower().encode("utf-8")


def unicode_words(texts: Sequence[bytes]) -> Words:
    """Return the words of every text, in UTF-8, after folding."""
    return _words([fold_utf8(text) for text in texts], ascii_only=False)


def ascii_words(texts: Sequence[bytes]) -> Words:
    """Return the runs of two or more ASCII letters, digits and ``_`` of every text, in UTF-8, in
    lower case: the textbook's words, which know no other script."""
    words = _words([lower_utf8(text) for text in texts], ascii_only=True)
    kept = words.lengths >= SHORTEST_ASCII
    before = np.concatenate(([0], np.cumsum(kept)))
    return Words(words.buffer, words.starts[kept], words.lengths[kept], before[words.offsets])


def _words(texts: Sequence[bytes], ascii_only: bool) -> Words:
    # A line feed before, between and after the texts: a break that belongs to no word.
    data = b"\n" + b"\n".join(texts) + b"\n" * (1 + PADDING)
    buffer = np.frombuffer(data, np.uint8)
    classes = np.frombuffer(bytearray(data.translate(ASCII_CLASSES)), np.uint8)
    if ascii_only or data.isascii():
        edges = np.flatnonzero(classes[1:] != classes[:-1]) + 1
        starts, ends = edges[0::2], edges[1::2]
    else:
        _classify(buffer, classes)
        spaced, tail = classes == WORD, classes == TAIL
        first = (spaced[1:] & ~spaced[:-1]) | (classes[1:] == LONE)
        last = (spaced[:-1] & ~spaced[1:]) | (tail[:-1] & ~tail[1:])
        starts, ends = np.flatnonzero(first) + 1, np.flatnonzero(last) + 1
    text_ends = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64)
    offsets = np.concatenate(([0], np.searchsorted(starts, text_ends)))
    return Words(buffer, starts, ends - starts, offsets)


def _classify(buffer: UInt8Array, classes: UInt8Array) -> None:
    """Give the bytes of all characters outside ASCII their class, in place."""
    lead = np.flatnonzero(buffer >= 0xC0)
    first = buffer[lead]
    size = 2 + (first >= 0xE0).astype(np.int64) + (first >= 0xF0)
    code = (first & (np.uint8(0x7F) >> size.astype(np.uint8))).astype(np.int64)
    for i in range(1, 4):
        more = size > i
        code[more] = (code[more] << 6) | (buffer[lead[more] + i] & 0x3F)
    kind = character_classes()[np.minimum(code, LAST_CODE)]
    classes[lead] = kind
    kind[kind == LONE] = TAIL
    for i in range(1, 4):
        more = size > i
        classes[lead[more] + i] = kind[more]
    marks = np.flatnonzero(classes == MARK)
    if len(marks):
        # A run of marks is what the byte before it is, if that is part of a word.
        starts = np.flatnonzero(np.diff(marks, prepend=-1) > 1)
        before = classes[marks[starts] - 1]
        become = np.where(before == WORD, WORD, BREAK).astype(np.uint8)
        classes[marks] = np.repeat(become, np.diff(starts, append=len(marks)))
