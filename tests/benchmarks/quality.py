"""Precision, recall and F1 of neardup's pairs on labelled sets.

    python tests/benchmarks/quality.py [DIR...]

A labelled set is a folder (DIR itself, or one below it) with ``docs.jsonl`` and
``oracle_pairs.csv`` (id1,id2,jaccard). A pair is positive if the oracle says 0.8 or more, negative
if it says less than 0.5 or does not know the pair, and ignored in between. A set without an oracle
file is a negative control: nothing should be found. Shares are rounded down: 1.000 means all.

Which hash a recipe uses is chance: with another one, a few large families are found or missed as a
whole. So the recipes are also compared over many hash seeds, ``fmix64(h ^ fmix64(seed))`` in place
of ``fmix64(h)``; seed 0 is the recipe as it is.

Without DIR only the examples and the effect of small edits are measured. Exits 1 if the examples
do not give exactly the expected pairs.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import end_to_end
import peers

# isort: split

import numpy as np

import neardup
from neardup.evaluate import POSITIVE, Evaluation, evaluate
from neardup.index import pairs as pairs_within
from neardup.settings import RECOMMENDED
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
from neardup.sketch.tokens import unicode_words
from neardup.tables import UInt64Array
from neardup.verify import jaccard as similarities
from neardup.verify import shingles

SKETCHES = tuple(RECOMMENDED)
THRESHOLDS = (3, 6, 8, 10, 12, 14)

# Of the sketches whose hashes are mixed; and the F1 they should reach whatever the seed.
SEEDED = {"simhash": (10, 11, 12, 13), "minhash": (8, 9, 10, 11)}
BAR = {"simhash": 0.98, "minhash": 0.995}
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

EDITED_WORDS = (500, 100)
EDITED_PERCENT = (1, 2, 5, 10, 20)

Pair = frozenset[str]


@dataclass(frozen=True)
class LabelledSet:
    """Documents, and the similarity of the pairs the oracle knows; None without an oracle."""

    name: str
    docs: Path
    oracle: dict[Pair, float] | None

    def positives(self) -> int:
        return sum(similarity >= POSITIVE for similarity in (self.oracle or {}).values())


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure precision and recall.")
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--seeds", type=peers.positive, default=32, metavar="N")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="wrong pairs to list")
    parser.add_argument("--edited-texts", type=peers.positive, default=500, metavar="N")
    options = parser.parse_args()

    sets = [read_set(folder) for folder in find_folders(options.folders)]
    if sets:
        print(peers.heading("Quality with default settings, and other packages"))
        print(peers.table(*headline(sets)))
    else:
        print("No data folder given: no labelled sets.\n")
    for labelled in sets:
        print(peers.heading(f"Quality by recipe and threshold: {labelled.name}"))
        print(peers.table(*sweep(labelled)))
    labelled_sets = [one for one in sets if one.positives()]
    if labelled_sets:
        print(peers.heading(f"Quality over {options.seeds} hash seeds"))
        print("Recall and F1: mean / worst. Candidates and false pairs are before verification.\n")
        print(peers.table(*over_seeds(labelled_sets, options.seeds)))
        print(peers.heading("Wrong pairs with default settings"))
        for labelled in labelled_sets:
            show_wrong(labelled, options.show)
    print(peers.heading("Examples"))
    correct = examples()
    print(peers.heading("How far small edits move a fingerprint"))
    print(
        f"{options.edited_texts} generated texts a row, any of their words replaced by new ones; "
        "recipe simhash. Found: within the threshold, before verification.\n"
    )
    print(peers.table(*small_edits(options.edited_texts)))
    return 0 if correct else 1


def find_folders(given: list[Path]) -> Iterator[Path]:
    for folder in given:
        if not folder.is_dir():
            raise peers.MissingError(f"no folder {folder}")
        found = [
            inside
            for inside in (folder, *sorted(folder.iterdir()))
            if (inside / "docs.jsonl").is_file()
        ]
        if not found:
            raise peers.MissingError(f"no docs.jsonl in {folder} or in a folder inside it")
        yield from found


def read_set(folder: Path) -> LabelledSet:
    file = folder / "oracle_pairs.csv"
    oracle = None
    if file.is_file():
        with file.open(encoding="utf-8", newline="") as lines:
            try:
                oracle = {
                    frozenset((row["id1"], row["id2"])): float(row["jaccard"])
                    for row in csv.DictReader(lines)
                }
            except (KeyError, TypeError, ValueError):
                raise peers.MissingError(f"{file}: expected columns id1,id2,jaccard") from None
    return LabelledSet(folder.resolve().name, folder / "docs.jsonl", oracle)


def scan(labelled: LabelledSet, settings: neardup.Settings) -> neardup.ScanResult:
    try:
        result = neardup.scan([labelled.docs], settings)
    except neardup.NeardupError as error:
        raise peers.MissingError(f"{labelled.docs.parent}: {error}") from None
    unknown = set().union(*(labelled.oracle or ())) - set(result.ids)
    if unknown:
        raise peers.MissingError(f"{labelled.docs}: no document {min(unknown)}, the oracle has one")
    return result


def score(labelled: LabelledSet, pairs: Iterable[tuple[str, str]]) -> Evaluation:
    oracle = labelled.oracle or {}
    return evaluate(pairs, {(min(pair), max(pair)): value for pair, value in oracle.items()})


def shares(labelled: LabelledSet, scored: Evaluation) -> list[str]:
    """Return precision, recall and F1, rounded down to three digits."""
    if labelled.oracle is None:
        return ["–"] * 3
    values = (scored.precision, scored.recall, scored.f1)
    return ["–" if value is None else f"{int(1000 * value + 1e-9) / 1000:.3f}" for value in values]


def headline(sets: list[LabelledSet]) -> tuple[list[str], list[list[object]]]:
    """Score the pairs that ``neardup scan docs.jsonl`` lists, and those of other packages."""
    rows: list[list[object]] = []
    for labelled in sets:
        for how, found in contenders(labelled).items():
            try:
                pairs = list(found())
            except peers.MissingError as error:
                rows.append([labelled.name, f"{how}: {error}", *[""] * 6])
                continue
            scored = score(labelled, pairs)
            known = labelled.oracle is not None
            rows.append(
                [
                    labelled.name,
                    how,
                    labelled.positives() if known else "no labels",
                    scored.pairs,
                    scored.ignored if known else "–",
                    *shares(labelled, scored),
                ]
            )
    columns = ["set", "how", "positive pairs", "found", "ignored", "precision", "recall", "F1"]
    return columns, rows


def contenders(labelled: LabelledSet) -> dict[str, Callable[[], Iterable[tuple[str, str]]]]:
    def ours(sketch: str, all_pairs: bool) -> Iterator[tuple[str, str]]:
        for row in scan(labelled, neardup.Settings(sketch=sketch, all_pairs=all_pairs)):
            yield row.left, row.right

    def theirs(script: Callable[[Path], Iterable[end_to_end.Row]]) -> Iterator[tuple[str, str]]:
        for left, right, _ in script(labelled.docs):
            yield left, right

    found: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {}
    for sketch, threshold in RECOMMENDED.items():
        name = f"neardup {sketch}, k = {threshold}"
        found[name] = partial(ours, sketch, False)
        found[f"{name}, --all-pairs"] = partial(ours, sketch, True)
    found["rensa, 3-shingles, verified"] = partial(theirs, end_to_end.rensa)
    found["datasketch, 3-shingles, verified"] = partial(theirs, end_to_end.datasketch)
    found["rensa, words, its own estimate"] = partial(theirs, end_to_end.rensa_words)
    found["gaoya, words, 5 bits, not verified"] = partial(theirs, end_to_end.gaoya)
    return found


def sweep(labelled: LabelledSet) -> tuple[list[str], list[list[object]]]:
    """Score all pairs, before and after verification, by recipe and threshold."""
    rows: list[list[object]] = []
    for sketch in SKETCHES:
        for threshold in THRESHOLDS:
            for similarity in (0.0, 0.8):
                settings = neardup.Settings(threshold, similarity, sketch, all_pairs=True)
                result = scan(labelled, settings)
                scored = score(labelled, ((row.left, row.right) for row in result))
                verified = f"≥ {similarity}" if similarity else "no"
                counts = [result.candidates, len(result)]
                found = shares(labelled, scored)
                rows.append([sketch, threshold, verified, *counts, *found])
    columns = ["recipe", "threshold", "verified", "candidates", "pairs"]
    if labelled.oracle is None:
        return columns, [row[: len(columns)] for row in rows]
    return [*columns, "precision", "recall", "F1"], rows


def over_seeds(sets: list[LabelledSet], seeds: int) -> tuple[list[str], list[list[object]]]:
    """Score the recipes with many hashes."""
    rows: list[list[object]] = []
    for labelled in sets:
        ids, texts = end_to_end.read_corpus(labelled.docs)
        row_of = {id: row for row, id in enumerate(ids)}
        assert labelled.oracle is not None
        known = np.array([[row_of[id] for id in sorted(pair)] for pair in labelled.oracle])
        left, right = np.sort(known, axis=1)[np.lexsort(np.sort(known, axis=1).T[::-1])].T
        oracle = [
            labelled.oracle[frozenset((ids[one], ids[other]))]
            for one, other in zip(left.tolist(), right.tolist(), strict=True)
        ]
        positive = np.array(oracle) >= POSITIVE
        # What verification leaves of the oracle's pairs; no other pair comes near.
        confirmed = similarities(shingles(texts), left, right) >= POSITIVE
        for sketch, thresholds in SEEDED.items():
            seeded = with_seeds(sketch, texts)
            if not np.array_equal(seeded(0), neardup.fingerprint(texts, sketch)):
                raise AssertionError(f"seed 0 is not the recipe {sketch}")
            counted = []
            for seed in range(seeds):
                bits = seeded(seed)
                candidates = pairs_within(bits, max(thresholds)).distance
                near = np.bitwise_count(bits[left] ^ bits[right])
                counted.append(
                    [
                        (
                            (positive & (near <= k)).sum(),
                            (positive & confirmed & (near <= k)).sum(),
                            (candidates <= k).sum(),
                            (candidates <= k).sum() - (near <= k).sum(),
                        )
                        for k in thresholds
                    ]
                )
            for place, k in enumerate(thresholds):
                found, true, proposed, false = np.array(counted)[:, place].T
                recall, f1 = found / positive.sum(), 2 * true / (true + positive.sum())
                rows.append(
                    [
                        labelled.name,
                        sketch,
                        k,
                        f"{proposed.mean():.0f}",
                        f"{false.mean():.1f}",
                        f"{recall.mean():.3f} / {recall.min():.3f}",
                        f"{f1.mean():.3f} / {f1.min():.3f}",
                        f"{(f1 >= BAR[sketch]).mean():.0%} ≥ {BAR[sketch]}",
                    ]
                )
    columns = ["set", "recipe", "threshold", "candidates", "false pairs", "recall before"]
    return [*columns, "F1 verified", "seeds with F1"], rows


def with_seeds(sketch: str, texts: list[str]) -> Callable[[int], UInt64Array]:
    """Return what makes the fingerprints of the texts with a hash seed."""
    words = unicode_words(texts)
    single = word_hashes(words)
    features = [distinct(single), distinct(pair_hashes(words, single))]
    shingled = pairs_or_word(words)

    def mixed(hashes: Hashes, seed: int) -> Hashes:
        of_seed = fmix64(np.array([seed], np.uint64))
        return Hashes(fmix64(hashes.values ^ of_seed), hashes.offsets)

    def simhash(seed: int) -> UInt64Array:
        votes, total = np.zeros((len(texts), 64), np.int64), np.zeros(len(texts), np.int64)
        for factor, (hashes, counts) in enumerate(features, 1):
            some, weight = weigh(mixed(hashes, seed), np.frexp(counts)[1].astype(np.int64))
            votes += factor * some
            total += factor * weight
        return majority(votes, total)

    def minhash(seed: int) -> UInt64Array:
        return one_bit(densify(*smallest(rising(mixed(shingled, seed)))))

    return {"simhash": simhash, "minhash": minhash}[sketch]


def show_wrong(labelled: LabelledSet, count: int) -> None:
    """Print some of the pairs that are wrong, with what may tell why."""
    with labelled.docs.open(encoding="utf-8") as lines:
        texts = {record["id"]: record["text"] for record in map(json.loads, lines)}
    assert labelled.oracle is not None
    for sketch in SEEDED:
        result = scan(labelled, neardup.Settings(sketch=sketch, all_pairs=True))
        scored = score(labelled, ((row.left, row.right) for row in result))
        wrong = {"false": scored.false_pairs, "missed": scored.missed_pairs}
        for kind, found in wrong.items():
            print(f"{labelled.name}, {sketch}: {len(found)} {kind}")
            for left, right in found[:count]:
                both = [texts[left], texts[right]]
                bits = neardup.fingerprint(both, sketch)
                exact = similarities(shingles(both), np.array([0]), np.array([1]))[0]
                print(
                    f"- {left}, {right}: {int(bits[0] ^ bits[1]).bit_count()} bits, similarity "
                    f"{exact:.4f}, oracle {labelled.oracle.get(frozenset((left, right)), 0)}, "
                    f"{len(both[0].split())} and {len(both[1].split())} words"
                )
    print()


def examples() -> bool:
    """Print whether the examples give exactly the pairs they should."""
    file = EXAMPLES / "expected_pairs.csv"
    if not file.is_file():
        raise peers.MissingError(f"no {file}")
    with file.open(encoding="utf-8", newline="") as lines:
        expected = {(row["left"], row["right"], row["relation"]) for row in csv.DictReader(lines)}
    result = neardup.scan([EXAMPLES / "docs"], all_pairs=True)
    found = {(row.left, row.right, row.relation) for row in result}
    right = len(found & expected)
    columns = ["set", "documents", "expected pairs", "found", "not expected"]
    print(
        peers.table(
            columns, [["examples/docs", len(result.ids), len(expected), right, len(found) - right]]
        )
    )
    for kind, wrong in (("missing", expected - found), ("not expected", found - expected)):
        for left, other, relation in sorted(wrong):
            print(f"- {kind}: {left}, {other} ({relation})")
    return found == expected


def small_edits(texts: int) -> tuple[list[str], list[list[object]]]:
    """Replace words of generated texts and see how far the fingerprints move."""
    writer = peers.Writer(seed=2)
    rows: list[list[object]] = []
    for size in EDITED_WORDS:
        originals = [writer.words(size) for _ in range(texts)]
        before = neardup.fingerprint([peers.prose(words) for words in originals])
        for percent in EDITED_PERCENT:
            edited = [writer.edited(words, size * percent // 100) for words in originals]
            after = neardup.fingerprint([peers.prose(words) for words in edited])
            distance = np.bitwise_count(before ^ after)
            similarity = [jaccard(a, b) for a, b in zip(originals, edited, strict=True)]
            rows.append(
                [
                    f"{size} words",
                    f"{percent} %",
                    f"{distance.mean():.1f}",
                    distance.max(),
                    f"{np.mean(similarity):.2f}",
                    *(np.count_nonzero(distance <= threshold) for threshold in THRESHOLDS),
                ]
            )
    columns = ["text", "replaced", "mean distance", "largest", "mean Jaccard"]
    return [*columns, *(f"found at {threshold}" for threshold in THRESHOLDS)], rows


def jaccard(one: list[str], other: list[str]) -> float:
    """Return the Jaccard similarity of the sets of word 3-shingles."""
    a, b = (set(zip(words, words[1:], words[2:], strict=False)) for words in (one, other))
    return len(a & b) / len(a | b)


if __name__ == "__main__":
    peers.run(main)
