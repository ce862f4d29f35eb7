"""What is known of single characters: which belong to words, and what folding makes of them."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

from neardup.tables import IntArray, UInt8Array

#: Unicode's Default_Ignorable_Code_Point, as far as it is assigned: soft hyphen, zero-width and
#: direction marks, variation selectors, tags. They hide inside words and nobody sees them.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)

#: More combining marks in a row than any language uses (Unicode Standard Annex 15, section 13,
#: "Stream-Safe Text Format"); normalisation takes quadratic time for them.
MOST_MARKS = 30

#: First and last code point of the blocks written without blanks between words.
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

#: Classes of bytes. Every byte of a character outside ASCII has a class, too, so that words can be
#: found in UTF-8 without decoding it. A character of an unspaced script is LONE and then TAIL. A
#: MARK becomes part of the word before it; it never begins one, since normalisation makes a blank
#: and a mark of accents that stand alone, which are punctuation.
BREAK, WORD, LONE, TAIL, MARK = range(5)

_ASCII_WORD = bytes(b"_"[0] == b or chr(b).isalnum() for b in range(128))
ASCII_CLASSES = _ASCII_WORD + bytes(128)

#: Beyond lie private use, tags and variation selectors: no words.
LAST_CODE = 0x40000


@cache
def character_classes() -> UInt8Array:
    """Return the class of every code point up to ``LAST_CODE``, uint8."""
    class_of = {"L": WORD, "N": WORD, "M": MARK}
    categories = map(unicodedata.category, map(chr, range(LAST_CODE)))
    classes = np.array([class_of.get(c[0], BREAK) for c in categories] + [BREAK], np.uint8)
    classes[: len(_ASCII_WORD)] = np.frombuffer(_ASCII_WORD, np.uint8)
    for first, last in UNSPACED:
        block = classes[first : last + 1]
        block[block != BREAK] = LONE
    return classes


#: Code points of one page of the tables below.
PAGE_BITS = 7
_CODES = 0x110000

#: In ``fold_table``: a character that may interact with its neighbours.
UNSETTLED = -1


def _paged(values: NDArray[np.generic]) -> tuple[NDArray[np.uint16], NDArray[np.generic]]:
    """Cut a table of all code points into pages; return the number of each page, and the pages,
    each different one once: most are alike, so that what is used stays in the caches."""
    numbers: dict[bytes, int] = {}
    pages = [
        numbers.setdefault(page.tobytes(), len(numbers))
        for page in values.reshape(-1, 1 << PAGE_BITS)
    ]
    return np.array(pages, np.uint16), np.frombuffer(bytearray().join(numbers), values.dtype)


@cache
def class_table() -> tuple[UInt8Array, NDArray[np.uint16], UInt8Array]:
    """Return which bytes are ASCII word characters, uint8 (256,), the page of every code point,
    uint16, and the classes in all pages, uint8."""
    known = character_classes()
    pages, classes = _paged(np.pad(known, (0, _CODES - len(known)), constant_values=BREAK))
    return np.frombuffer(bytearray(ASCII_CLASSES), np.uint8), pages, classes.astype(np.uint8)


@cache
def fold_table() -> tuple[NDArray[np.uint16], NDArray[np.int16], IntArray, UInt8Array]:
    """Return what folding makes of single characters, for texts in which it does not depend on
    their neighbours.

    Returns
    -------
    pages : uint16, the page of every code point
    action : int16, in all pages. 0: stays as it is. Above 0: a combining mark of that class, which
        stays as it is if the mark before it is not of a higher one. ``UNSETTLED``: text with it
        must be normalised as a whole. Below: -1 - r, is replaced by replacement r = 1, 2, ...
    starts : int64, replacement r is ``texts[starts[r - 1] : starts[r]]``
    texts : uint8, the replacements in UTF-8

    Notes
    -----
    Unicode Standard Annex 15, section 9, "Detecting Normalization Forms": a text is normalised if
    its marks are in order and it holds no character that may compose with one before it. Those are
    here all that follow the first in some canonical decomposition. A character is replaced by its
    own folded form if that, and its normal form, hold neither those nor marks: then the same is
    true of the folded text as a whole.
    """
    ignorable = frozenset(map(ord, _expand(IGNORABLE)))
    action = np.zeros(_CODES, np.int16)
    numbers = {"": 1}
    codes: list[int] = []
    forms: list[str] = []
    folds: list[str] = []
    followers: set[str] = set()
    for first in range(0x80, LAST_CODE, 1 << PAGE_BITS):  # ASCII is folded by itself
        if 0xD800 <= first < 0xE000:
            continue  # surrogates, which UTF-8 does not have
        page = list(map(chr, range(first, first + (1 << PAGE_BITS))))
        # A line feed takes part in nothing, so that a page is normalised in one call.
        text = "\n".join(page)
        form = unicodedata.normalize("NFKC", text)
        fold = unicodedata.normalize("NFKC", form.casefold())
        whole = unicodedata.normalize("NFD", text)
        if text == form == fold == whole and not any(map(unicodedata.combining, page)):
            continue
        codes += map(ord, page)
        forms += form.split("\n")
        folds += fold.split("\n")
        followers.update(*(parts[1:] for parts in whole.split("\n")))
    action[[ord(char) for char in followers]] = UNSETTLED
    for code, form, fold in zip(codes, forms, folds, strict=True):
        if code in ignorable or action[code] == UNSETTLED:
            continue
        if chr(code) == form == fold:
            action[code] = unicodedata.combining(form)
        elif any(part in followers or unicodedata.combining(part) for part in form + fold):
            action[code] = UNSETTLED
        else:
            action[code] = UNSETTLED - numbers.setdefault(fold, len(numbers) + 1)
    replacements = [fold.encode("utf-8") for fold in numbers]
    action[list(ignorable)] = UNSETTLED - numbers[""]
    sizes = [0, *map(len, replacements)]
    starts = np.cumsum(sizes, dtype=np.int64)
    pages, actions = _paged(action)
    texts = np.frombuffer(bytearray().join(replacements), np.uint8)
    return pages, actions.astype(np.int16), starts, texts


def _expand(ranges: str) -> frozenset[str]:
    """Return the characters of a class as a regular expression writes it."""
    chars: set[str] = set()
    for part in re.findall(".-.|.", ranges):
        chars.update(map(chr, range(ord(part[0]), ord(part[-1]) + 1)))
    return frozenset(chars)
