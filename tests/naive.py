"""One slow, obvious implementation of every algorithm, written from its specification.

The tests hold neardup against it. Plain Python integers, strings and sets; nothing of neardup.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import pairwise

MASK = 2**64 - 1

# Unicode's Default_Ignorable_Code_Point, as far as it is assigned: first and last.
IGNORABLE = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)

# The blocks of scripts written without blanks between words: first and last.
UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x19E0, 0x19FF),
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3041, 0x3096),
    (0x309D, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFF),
)


def fnv1a(data: bytes) -> int:
    """64-bit FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in data:
        value ^= byte
        value = value * 0x100000001B3 & MASK
    return value


def fmix64(value: int) -> int:
    """The 64-bit finaliser of MurmurHash3."""
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & MASK
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & MASK
    return value ^ value >> 33


def adjacent(words: Sequence[str]) -> list[str]:
    """The pairs of neighbouring words, joined by a blank."""
    return [f"{one} {two}" for one, two in pairwise(words)]


def majority(weight_of: dict[int, int]) -> int:
    """Bit i is set when the weight of the hashes with it is above that of those without it."""
    bits = 0
    for i in range(64):
        votes = 0
        for value, weight in weight_of.items():
            votes += weight if value >> i & 1 else -weight
        if votes > 0:
            bits |= 1 << i
    return bits


def classic(text: str) -> tuple[int, int]:
    """The textbook SimHash: fingerprint and number of distinct features."""
    words = re.findall("[a-z0-9_]{2,}", text.lower())
    single, double = Counter(words), Counter(adjacent(words))
    weight_of: dict[int, int] = Counter()
    for word, count in single.items():
        weight_of[fnv1a(word.encode())] += count
    for pair, count in double.items():
        weight_of[fnv1a(pair.encode())] += 2 * count
    return majority(weight_of), len(single) + len(double)


def within(char: str, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= ord(char) <= last for first, last in ranges)


def fold(text: str) -> str:
    """Cut marks in a row to 30, drop what is invisible, then normalise, fold case, normalise."""
    kept, marks = [], 0
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= 30:
            kept.append(char)
    text = "".join(char for char in kept if not within(char, IGNORABLE))
    text = unicodedata.normalize("NFKC", text)
    return unicodedata.normalize("NFKC", text.casefold())


def words(text: str) -> list[str]:
    """Runs of letters, marks, numbers and ``_`` that do not begin with a mark; every character
    alone in unspaced scripts."""
    found = []
    run = ""
    for char in fold(text) + "\n":
        kind = unicodedata.category(char)[0]
        alone = kind in "LMN" and within(char, UNSPACED)
        is_word = alone or char == "_" or kind in "LN" or (kind == "M" and run != "")
        if is_word and not alone:
            run += char
        else:
            if run:
                found.append(run)
                run = ""
            if alone:
                found.append(char)
    return found


def simhash(text: str) -> tuple[int, int]:
    """The default recipe: fingerprint and number of distinct features."""
    sequence = words(text)
    single, double = Counter(sequence), Counter(adjacent(sequence))
    weight_of: dict[int, int] = Counter()
    for word, count in single.items():
        weight_of[fmix64(fnv1a(word.encode()))] += count.bit_length()
    for pair, count in double.items():
        weight_of[fmix64(fnv1a(pair.encode()))] += 2 * count.bit_length()
    return majority(weight_of), len(single) + len(double)


def minhash(text: str) -> tuple[int, int]:
    """The minwise recipe: fingerprint and number of features, each as often as it occurs."""
    sequence = words(text)
    features = adjacent(sequence) if len(sequence) > 1 else sequence
    if not features:
        return 0, 0
    low: dict[int, int] = {}
    for feature in features:
        value = fmix64(fnv1a(feature.encode()))
        low[value >> 58] = min(value, low.get(value >> 58, MASK))
    bits = 0
    for b in range(64):
        lender, attempt = b, 0
        while lender not in low:
            attempt += 1
            lender = fmix64((b << 32) + attempt) >> 58
        bits |= (fmix64((low[lender] + 0x9E3779B97F4A7C15 * b) & MASK) & 1) << b
    return bits, len(features)


def hamming(a: int, b: int) -> int:
    return (a ^ b).bit_count()


def all_pairs(bits: Sequence[int], k: int) -> list[tuple[int, int, int]]:
    """Every (i, j, distance) with i < j and distance <= k, in order."""
    return [
        (i, j, hamming(bits[i], bits[j]))
        for i in range(len(bits))
        for j in range(i + 1, len(bits))
        if hamming(bits[i], bits[j]) <= k
    ]


def rotate(value: int, places: int) -> int:
    """Turn a 64-bit word left."""
    return (value << places | value >> 64 - places) & MASK


def window_pairs(
    bits: Sequence[int], k: int, rotations: int, width: int
) -> set[tuple[int, int, int]]:
    """The (i, j, distance) with i < j and distance <= k among the next ``width`` neighbours on the
    ring of each sorted rotation."""
    n = len(bits)
    found = set()
    for t in range(rotations):
        turned = [rotate(value, 64 * t // rotations) for value in bits]
        order = sorted(range(n), key=lambda row: turned[row])
        for place in range(n):
            for lag in range(1, width + 1):
                one, two = order[place], order[(place + lag) % n]
                if one != two and hamming(bits[one], bits[two]) <= k:
                    found.add((min(one, two), max(one, two), hamming(bits[one], bits[two])))
    return found


def shingles(text: str) -> set[tuple[str, ...]]:
    """Every run of three words; all words if there are only one or two."""
    sequence = words(text)
    if 1 <= len(sequence) <= 2:
        return {tuple(sequence)}
    return {tuple(sequence[i : i + 3]) for i in range(len(sequence) - 2)}


def jaccard(a: set[tuple[str, ...]], b: set[tuple[str, ...]]) -> float:
    """The share of common elements; 0 for two empty sets."""
    return len(a & b) / len(a | b) if a | b else 0.0


def components(n: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """For each of n nodes the smallest one that can be reached, by breadth-first search."""
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for one, two in edges:
        neighbours[one].append(two)
        neighbours[two].append(one)
    smallest = [-1] * n
    for start in range(n):
        if smallest[start] >= 0:
            continue
        smallest[start] = start
        queue = deque([start])
        while queue:
            for other in neighbours[queue.popleft()]:
                if smallest[other] < 0:
                    smallest[other] = start
                    queue.append(other)
    return smallest


def in_keep_order(ids: Sequence[str]) -> list[int]:
    """The rows, shortest id first, of equally long ones in character order."""
    return sorted(range(len(ids)), key=lambda row: (len(ids[row]), ids[row]))


def keep(
    ids: Sequence[str], original: Sequence[int], edges: Iterable[tuple[int, int]]
) -> list[int]:
    """For each document the kept one it is a near-duplicate of, itself if it is kept.

    In keep order, an original is kept unless it makes a pair with one already kept: the first of
    those keeps it. A copy is kept by what keeps its original.
    """
    joined = {frozenset(edge) for edge in edges}
    kept: list[int] = []
    kept_by = list(range(len(ids)))
    for row in in_keep_order(ids):
        if original[row] != row:
            continue
        rivals = [other for other in kept if {row, other} in joined]
        if rivals:
            kept_by[row] = rivals[0]
        else:
            kept.append(row)
    return [kept_by[original[row]] for row in range(len(ids))]


def clusters(
    ids: Sequence[str], original: Sequence[int], edges: Iterable[tuple[int, int]]
) -> tuple[list[int], list[int]]:
    """The label of each document (0: alone), numbered by first document, and for each cluster
    its document that comes first in keep order."""
    copies = [(row, first) for row, first in enumerate(original) if row != first]
    group = components(len(ids), [*edges, *copies])
    numbers: dict[int, int] = {}
    for root in group:
        if group.count(root) > 1:
            numbers.setdefault(root, len(numbers) + 1)
    label = [numbers.get(root, 0) for root in group]
    representative = [
        next(row for row in in_keep_order(ids) if label[row] == number)
        for number in numbers.values()
    ]
    return label, representative
