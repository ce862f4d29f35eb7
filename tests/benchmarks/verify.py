"""Verify planted candidate pairs on one core: neardup alone.

    python tests/benchmarks/verify.py

Two cases: many families of versions of pages, and a single large family. The texts are in memory;
what is timed is making shingles of each document and comparing all pairs of each family. Each case
is a process of its own, so that its memory can be told. Exits 1 if a sample of the pairs is judged
otherwise than by sets of shingles.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import peers

# isort: split

import numpy as np

from neardup.tables import IntArray, Pairs
from neardup.verify import confirm

MIN_SIMILARITY = 0.8
SAMPLE = 500
SLOW = 5  # seconds; what takes longer is measured once


class Case(NamedTuple):
    """Families of so many versions, each with so many of its words replaced."""

    name: str
    documents: int
    words: int
    versions: tuple[int, int]
    edits: tuple[int, int]


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the verification of candidates on one core.")
    parser.add_argument("--documents", type=peers.positive, default=20_000, help="in families")
    parser.add_argument("--versions", type=peers.positive, default=2000, help="in the large family")
    parser.add_argument("--rounds", type=peers.positive, default=3)
    parser.add_argument("--case", choices=("families", "large"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.versions < 2:
        parser.error("--versions must be at least 2")
    peers.one_core()
    cases = {
        "families": Case("families of 2 to 20", options.documents, 500, (2, 20), (0, 15)),
        "large": Case("one family", options.versions, 4000, (options.versions,) * 2, (10, 30)),
    }
    if options.case:
        print(json.dumps(measure(cases[options.case], options.rounds)))
        return 0

    print(peers.heading("Verifying"))
    print(peers.machine())
    print(
        f"All pairs of each family, shingles included; medians of {options.rounds} rounds, one "
        f"round where it takes more than {SLOW} s.\n"
    )
    rows = []
    right = True
    for name, case in cases.items():
        command = [sys.executable, __file__, "--case", name, *sys.argv[1:]]
        result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        right = right and result["right"]
        rows.append(
            [
                case.name,
                f"{result['documents']:,}",
                case.words,
                f"{result['pairs']:,}",
                f"{result['confirmed']:,}",
                f"{result['seconds']:.2f}",
                f"{result['pairs'] / result['seconds']:,.0f}",
                f"{result['documents'] / result['seconds']:,.0f}",
                f"{result['before'] / 1e6:,.0f}",
                f"{result['peak'] / 1e6:,.0f}",
            ]
        )
    columns = ["", "documents", "words each", "pairs", "confirmed", "seconds", "pairs/s"]
    print(peers.table([*columns, "documents/s", "MB before", "peak MB"], rows))
    print("MB before are the texts, the candidates and Python with numpy.\n")
    print(
        f"{SAMPLE} pairs a case, judged by sets of shingles: {'the same' if right else 'NOT SO'}."
    )
    return 0 if right else 1


def measure(case: Case, rounds: int) -> dict[str, float]:
    texts, candidates = plant(case)
    call(texts[:100], candidates.take(candidates.right < 100))  # pays for what is loaded first
    before = peak_bytes()
    verify = {"": partial(call, texts, candidates)}
    seconds, results = peers.interleaved(verify, 1)
    if seconds[""][0] < SLOW:
        seconds, results = peers.interleaved(verify, rounds)
    confirmed: Pairs = results[""]
    return {
        "documents": len(texts),
        "pairs": len(candidates),
        "confirmed": len(confirmed),
        "seconds": median(seconds[""]),
        "before": before,
        "peak": peak_bytes(),
        "right": same_on_a_sample(texts, candidates, confirmed),
    }


def call(texts: list[str], candidates: Pairs) -> Pairs:
    def read_again(rows: IntArray) -> Iterator[tuple[int, bytes]]:
        return ((row, texts[row].encode()) for row in rows.tolist())

    sizes = np.array([len(text.encode()) for text in texts], np.int64)
    return confirm(candidates, sizes, read_again, MIN_SIMILARITY).pairs


def plant(case: Case) -> tuple[list[str], Pairs]:
    """Return texts, in any order, and all pairs within families."""
    rng = random.Random(1)
    writer = peers.Writer(seed=1)
    families = [0]
    texts: list[str] = []
    while len(texts) < case.documents:
        words = writer.words(case.words)
        for _ in range(rng.randint(*case.versions)):
            texts.append(peers.prose(writer.edited(words, rng.randint(*case.edits))))
        families.append(len(texts))
    rows = list(range(len(texts)))
    rng.shuffle(rows)
    pairs = []
    for start, end in pairwise(families):
        family = np.sort(np.array(rows[start:end]))
        pairs.append(family[np.column_stack(np.triu_indices(len(family), 1))])
    left, right = np.concatenate(pairs).T
    order = np.lexsort((right, left))
    candidates = Pairs.candidates(left[order], right[order], np.zeros(len(order), np.uint8))
    in_place = [text for _, text in sorted(zip(rows, texts, strict=True))]
    return in_place, candidates


def same_on_a_sample(texts: list[str], candidates: Pairs, confirmed: Pairs) -> bool:
    similarity = {
        (left, right): value
        for left, right, value in zip(
            confirmed.left.tolist(),
            confirmed.right.tolist(),
            confirmed.similarity.tolist(),
            strict=True,
        )
    }
    for place in random.Random(2).sample(range(len(candidates)), min(SAMPLE, len(candidates))):
        pair = int(candidates.left[place]), int(candidates.right[place])
        exact = jaccard(*(texts[row] for row in pair))
        if similarity.get(pair) != (exact if exact >= MIN_SIMILARITY else None):
            return False
    return True


def jaccard(one: str, other: str) -> float:
    """Return the Jaccard similarity of what ``peers.prose`` made of words."""
    a, b = (
        set(zip(words, words[1:], words[2:], strict=False))
        for words in (text.lower().replace(".", "").split() for text in (one, other))
    )
    return len(a & b) / len(a | b)


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    peers.run(main)
