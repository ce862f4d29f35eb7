"""Precision, recall and F1 of neardup's pairs on labelled sets.

    python tests/benchmarks/quality.py [DIR...]

A labelled set is a folder (DIR itself, or one below it) with ``docs.jsonl`` and
``oracle_pairs.csv`` (id1,id2,jaccard). A pair is positive if the oracle says 0.8 or more, negative
if it says less than 0.5 or does not know the pair, and ignored in between. A set without an oracle
file is a negative control: nothing should be found. Shares are rounded down: 1.000 means all.

Without DIR only the examples and the effect of small edits are measured. Exits 1 if the examples
do not give exactly the expected pairs.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import peers

# isort: split

import numpy as np

import neardup

POSITIVE, NEGATIVE = 0.8, 0.5
SKETCHES = ("simhash", "classic")
THRESHOLDS = (3, 6, 8, 10, 12)
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
    parser.add_argument("--edited-texts", type=peers.positive, default=500, metavar="N")
    options = parser.parse_args()

    sets = [read_set(folder) for folder in find_folders(options.folders)]
    if sets:
        overview = peers.table(*headline(sets))
        print(peers.heading("Quality with default settings"))
        print(overview)
    else:
        print("No data folder given: no labelled sets.\n")
    for labelled in sets:
        print(peers.heading(f"Quality by recipe and threshold: {labelled.name}"))
        print(peers.table(*sweep(labelled)))
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


def scores(result: neardup.ScanResult, labelled: LabelledSet) -> tuple[int, list[str]]:
    """Return how many pairs are ignored, and precision, recall and F1."""
    if labelled.oracle is None:
        return 0, ["–"] * 3
    similarity = [labelled.oracle.get(frozenset((row.left, row.right)), 0.0) for row in result]
    true = sum(value >= POSITIVE for value in similarity)
    false = sum(value < NEGATIVE for value in similarity)
    positives = labelled.positives()
    return len(similarity) - true - false, [
        share(true, true + false),
        share(true, positives),
        share(2 * true, true + false + positives),
    ]


def share(part: int, whole: int) -> str:
    return f"{1000 * part // whole / 1000:.3f}" if whole else "–"


def headline(sets: list[LabelledSet]) -> tuple[list[str], list[list[object]]]:
    """Score the pairs that ``neardup scan docs.jsonl`` lists."""
    rows: list[list[object]] = []
    for labelled in sets:
        result = scan(labelled, neardup.Settings())
        ignored, shares = scores(result, labelled)
        known = labelled.oracle is not None
        rows.append(
            [
                labelled.name,
                len(result.ids),
                labelled.positives() if known else "no labels",
                len(result),
                ignored if known else "–",
                *shares,
            ]
        )
    columns = ["set", "documents", "positive pairs", "listed", "ignored"]
    return [*columns, "precision", "recall", "F1"], rows


def sweep(labelled: LabelledSet) -> tuple[list[str], list[list[object]]]:
    """Score all pairs, before and after verification, by recipe and threshold."""
    rows: list[list[object]] = []
    for sketch in SKETCHES:
        for threshold in THRESHOLDS:
            for similarity in (0.0, 0.8):
                settings = neardup.Settings(threshold, similarity, sketch, all_pairs=True)
                result = scan(labelled, settings)
                _, shares = scores(result, labelled)
                verified = f"≥ {similarity}" if similarity else "no"
                rows.append([sketch, threshold, verified, result.candidates, len(result), *shares])
    columns = ["recipe", "threshold", "verified", "candidates", "pairs"]
    if labelled.oracle is None:
        return columns, [row[: len(columns)] for row in rows]
    return [*columns, "precision", "recall", "F1"], rows


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
