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

from neardup.sketch.hashing import PADDING
from neardup.tables import IntArray, UInt8Array

# Unicode's Default_Ignorable_Code_Point, as far as it is assigned: soft hyphen, zero-width and
# direction marks, variation selectors, tags. They hide inside words and nobody sees them.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_IGNORABLE = re.compile(f"[{IGNORABLE}]+")

_ASCII = bytes(range(128))
# What folding drops, and the marks that may compose with an ASCII letter once that is lower-case.
_UNSETTLED = re.compile(f"[{IGNORABLE}\u0300-\u036f]")

# First and last code point of the blocks written without blanks between words.
UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x19E0, 0x19FF),  # Khmer symbols
    (0x2E80, 0x2FDF),  # CJK radicals
    (0x3005, 0x3007),  # iteration mark, closing mark, zero
    (0x3041, 0x3096),  # Hiragana, without its two sound marks, which stand alone only by mistake
    (0x309D, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),  # Katakana extensions
    (0x3400, 0x4DBF),  # CJK extension A
    (0x4E00, 0x9FFF),  # CJK
    (0xA9E0, 0xA9FF),  # Myanmar extended B
    (0xAA60, 0xAA7F),  # Myanmar extended A
    (0xF900, 0xFAFF),  # CJK compatibility
    (0x1AFF0, 0x1B16F),  # Kana supplements
    (0x20000, 0x3FFFF),  # CJK extensions B and later
)

# Classes of bytes. Every byte of a character outside ASCII has a class, too, so that words can be
# found in UTF-8 without decoding it. A character of an unspaced script is LONE and then TAIL. A
# MARK becomes part of the word before it; it never begins one, since normalisation makes a blank
# and a mark of accents that stand alone, which are punctuation.
_BREAK, _WORD, _LONE, _TAIL, _MARK = range(5)

_ASCII_WORD = bytes(b"_"[0] == b or chr(b).isalnum() for b in range(128))
_CLASSES = _ASCII_WORD + bytes(128)


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


def fold(text: str) -> str:
    """Return the text without what a reader does not see: invisible marks are dropped, letters
    case-folded, compatibility forms (ligatures, full and half width, composed or not) made one.

    Unicode Standard, section 3.13, "Default Caseless Matching", on compatibility forms. The
    last normalisation is needed since folding can leave sequences that compose. Lone surrogates
    become ``?``.
    """
    return _fold(text).decode("utf-8")


def _fold(text: str) -> bytes:
    data = text.encode("utf-8", "replace")
    if text.isascii():
        return data.lower()
    # Most texts hold a few dashes and quotes that folding leaves alone: see what it would do to the
    # characters outside ASCII, and save the passes over all others (twice as fast on English).
    others = data.translate(None, _ASCII).decode("utf-8")
    suspect, flood = _floods()
    if suspect.search(others):
        text = flood.sub(r"\1", text)
        data = text.encode("utf-8", "replace")
    if (
        not _UNSETTLED.search(others)
        and others.casefold() == others
        and unicodedata.is_normalized("NFKC", text)
    ):
        return data.lower()
    text = unicodedata.normalize("NFKC", _IGNORABLE.sub("", data.decode("utf-8"))).casefold()
    return unicodedata.normalize("NFKC", text).encode("utf-8")


@cache
def _floods() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of more combining marks in a row than any language uses (Unicode Standard
    Annex 15, section 13, "Stream-Safe Text Format": 30), for which normalisation takes quadratic
    time: one that is quick to search, since it does not tell marks from others beyond the basic
    plane, and the exact one."""
    marks = "".join(filter(unicodedata.combining, map(chr, range(0x20000))))
    basic = "".join(mark for mark in marks if mark < "\U00010000")
    return (
        re.compile(f"[{basic}\U00010000-\U0001ffff]{{31}}"),
        re.compile(f"([{marks}]{{30}})[{marks}]+"),
    )


def unicode_words(texts: Sequence[str]) -> Words:
    """Return the words of every text after ``fold``."""
    return _words([_fold(text) for text in texts], ascii_only=False)


def ascii_words(texts: Sequence[str]) -> Words:
    """Return the runs of two or more ASCII letters, digits and ``_`` of every lower-cased text:
    the textbook's words, which know no other script."""
    words = _words([text.lower().encode("utf-8", "replace") for text in texts], ascii_only=True)
    kept = words.lengths >= 2
    before = np.concatenate(([0], np.cumsum(kept)))
    return Words(words.buffer, words.starts[kept], words.lengths[kept], before[words.offsets])


def _words(texts: Sequence[bytes], ascii_only: bool) -> Words:
    # A line feed before, between and after the texts: a break that belongs to no word.
    data = b"\n" + b"\n".join(texts) + b"\n" * (1 + PADDING)
    buffer = np.frombuffer(data, np.uint8)
    classes = np.frombuffer(bytearray(data.translate(_CLASSES)), np.uint8)
    if ascii_only or data.isascii():
        edges = np.flatnonzero(classes[1:] != classes[:-1]) + 1
        starts, ends = edges[0::2], edges[1::2]
    else:
        _classify(buffer, classes)
        spaced, tail = classes == _WORD, classes == _TAIL
        first = (spaced[1:] & ~spaced[:-1]) | (classes[1:] == _LONE)
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
    kind = _character_classes()[np.minimum(code, _LAST_CODE)]
    classes[lead] = kind
    kind[kind == _LONE] = _TAIL
    for i in range(1, 4):
        more = size > i
        classes[lead[more] + i] = kind[more]
    marks = np.flatnonzero(classes == _MARK)
    if len(marks):
        # A run of marks is what the byte before it is, if that is part of a word.
        starts = np.flatnonzero(np.diff(marks, prepend=-1) > 1)
        before = classes[marks[starts] - 1]
        become = np.where(before == _WORD, _WORD, _BREAK).astype(np.uint8)
        classes[marks] = np.repeat(become, np.diff(starts, append=len(marks)))


# Beyond lie private use, tags and variation selectors: no words.
_LAST_CODE = 0x40000


@cache
def _character_classes() -> UInt8Array:
    """Return the class of every code point up to ``_LAST_CODE``, uint8."""
    class_of = {"L": _WORD, "N": _WORD, "M": _MARK}
    categories = map(unicodedata.category, map(chr, range(_LAST_CODE)))
    classes = np.array([class_of.get(c[0], _BREAK) for c in categories] + [_BREAK], np.uint8)
    classes[: len(_ASCII_WORD)] = np.frombuffer(_ASCII_WORD, np.uint8)
    for first, last in UNSPACED:
        block = classes[first : last + 1]
        block[block != _BREAK] = _LONE
    return classes
