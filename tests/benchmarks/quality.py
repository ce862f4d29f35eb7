"""Precision, recall and F1 of neardup's pairs on labelled sets.

    python tests/benchmarks/quality.py [DIR...]

A labelled set is a folder (DIR itself, or one below it) with ``docs.jsonl`` and
``oracle_pairs.csv`` (id1,id2,jaccard). A pair is positive if the oracle says 0.8 or more, negative
if it says less than 0.5 or does not know the pair, and ignored in between. A set without an oracle
file is a negative control: nothing should be found. Shares are rounded down: 1.000 means all.

Which hash a recipe uses is chance: with another one, a few large families are found or missed as a
whole. So the recipes are also compared over many hash seeds, ``fmix64(h ^ fmix64(seed))`` in place
of ``fmix64(h)``; seed 0 is the recipe as it is. A wrong pair that most seeds get right is bad luck,
one that most get wrong a fault of the recipe.

Without DIR only the examples and the effect of small edits are measured. Exits 1 if the examples
do not give exactly the expected pairs.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from importlib.metadata import version
from pathlib import Path

import end_to_end
import peers

# isort: split

import numpy as np

import neardup
from neardup.evaluate import NEGATIVE, POSITIVE, Evaluation, evaluate, labelled_pairs
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
from neardup.sketch.tokens import unicode_words, utf8
from neardup.tables import Pairs, UInt64Array
from neardup.verify import jaccard as similarities
from neardup.verify import shingles

THRESHOLDS = (3, 6, 8, 10, 11, 12, 14)
MIN_SIMILARITY = 0.8

# Of the sketches whose hashes are mixed; and the F1 they should reach whatever the seed.
SEEDED = {"simhash": (10, 11, 12, 13), "minhash": (8, 9, 10, 11)}
BAR = {"simhash": 0.98, "minhash": 0.995}

GAOYA_USUAL, GAOYA_TRIED = 3, range(1, 11)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

EDITED_WORDS = (500, 100)
EDITED_PERCENT = (1, 2, 5, 10, 20)

Pair = tuple[str, str]
Table = tuple[list[str], list[list[object]]]
Tokens = Callable[[str], set[str]]
# How a package was used, the pairs it found, and the tokens that tell the similarity.
Found = Iterator[tuple[str, list[Pair], Tokens]]


@dataclass(frozen=True)
class LabelledSet:
    """Texts by id, and the similarity of the pairs the oracle knows; None without an oracle."""

    name: str
    docs: Path
    texts: Mapping[str, str]
    oracle: Mapping[Pair, float] | None

    @property
    def positives(self) -> int:
        return score(self, ()).positives


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure precision and recall.")
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--seeds", type=peers.positive, default=32, metavar="N")
    parser.add_argument(
        "--show", type=int, default=5, metavar="N", help="wrong pairs to list, of each kind"
    )
    parser.add_argument("--edited-texts", type=peers.positive, default=500, metavar="N")
    options = parser.parse_args()

    sets = [read_set(folder) for folder in find_folders(options.folders)]
    if sets:
        quality(sets, options.seeds, options.show)
    else:
        print("No data folder given: no labelled sets.\n")
    print(peers.heading("Examples"))
    correct = examples()
    print(peers.heading("How far small edits move a fingerprint"))
    print(
        f"{options.edited_texts} generated texts a row, any of their words replaced by new ones. "
        "k = 3, ...: the share found within k bits, before verification.\n"
    )
    print(peers.table(*small_edits(options.edited_texts)))
    return 0 if correct else 1


def quality(sets: Sequence[LabelledSet], seeds: int, show: int) -> None:
    """Print all that is measured on labelled sets."""
    both = (
        "Candidates: all pairs within k bits, those of identical texts, too. Verified: those of "
        f"them with an exact Jaccard similarity of {MIN_SIMILARITY} or more."
    )
    print(peers.heading("Quality with default settings"))
    print("Listed: the pairs that `neardup scan docs.jsonl` lists.\n")
    print(peers.table(*headline(sets)))

    print(peers.heading("Quality by recipe and threshold"))
    print(f"{both} Bold: the default k.\n")
    for labelled in sets:
        print(f"{described(labelled)}\n")
        print(peers.table(*sweep(labelled)))

    judged = [labelled for labelled in sets if labelled.positives]
    seeded = [
        {sketch: seeded_bits(labelled, sketch, seeds) for sketch in SEEDED} for labelled in judged
    ]
    print(peers.heading(f"Quality over {seeds} hash seeds"))
    print(
        "Recall and F1: mean / worst. Candidates, false pairs among them (both means) and recall "
        "are before verification, F1 is after. Bold: the default k.\n"
    )
    columns = ["set", "recipe", "k", "candidates", "false", "recall", "F1", "seeds with F1"]
    rows = [row for one, bits in zip(judged, seeded, strict=True) for row in over_seeds(one, bits)]
    print(peers.table(columns, rows))

    packages, missing = others()
    versions = {package: version(package) for package in packages}
    print(peers.heading("Quality beside other packages", **versions))
    print(
        f"{both}\n\n"
        "Other packages: candidates are what they return. They were given runs of 3 words (`\\w+`, "
        "so that a word of Chinese is a whole phrase) or of 5 characters, and the exact similarity "
        "is that of the same runs (after single words or pairs, of 3 words). It is that of the "
        "labels only where these are of such runs, too.\n\n"
        f"rensa and datasketch: LSH for {MIN_SIMILARITY}, {end_to_end.PERMUTATIONS} permutations "
        "in bands × rows; 9 × 13 is datasketch's own choice. gaoya: k is its parameter "
        "hamming_distance, which finds pairs of less than k bits; its best is the k of "
        f"{GAOYA_TRIED[0]} to {GAOYA_TRIED[-1]} with the largest F1 of the candidates, chosen with "
        "the labels in hand.\n"
    )
    for labelled in sets:
        print(f"{described(labelled)}\n")
        print(peers.table(*beside_others(labelled, packages)))
    for package, why in missing.items():
        print(f"Without {package}: {why}\n")

    print(peers.heading("Wrong pairs with default settings"))
    print(
        "With --all-pairs; the most similar first. Similarity is what neardup computes. Edits: "
        "runs of words that differ; largest: words in the longest of them. Seeds: of "
        f"{seeds} hash seeds, how many have the pair within k bits.\n"
    )
    for labelled, bits in zip(judged, seeded, strict=True):
        show_wrong(labelled, bits, show)


def described(labelled: LabelledSet) -> str:
    pairs = f"{labelled.positives:,} positive pairs" if labelled.oracle is not None else "no labels"
    return f"**{labelled.name}** ({len(labelled.texts):,} documents, {pairs})"


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
    docs, file = folder / "docs.jsonl", folder / "oracle_pairs.csv"
    try:
        texts = dict(zip(*end_to_end.read_corpus(docs), strict=True))
    except (ValueError, LookupError, TypeError):
        raise peers.MissingError(f"{docs}: expected lines with id and text") from None
    oracle = None
    if file.is_file():
        with file.open(encoding="utf-8", newline="") as lines:
            try:
                labels = labelled_pairs(str(file), enumerate(csv.reader(lines), 1))
            except neardup.NeardupError as error:
                raise peers.MissingError(str(error)) from None
        unknown = labels.ids - texts.keys()
        if unknown:
            raise peers.MissingError(f"{docs}: no document {min(unknown)}, the oracle has one")
        oracle = labels.similarity
    return LabelledSet(folder.resolve().name, docs, texts, oracle)


def scan(labelled: LabelledSet, settings: neardup.Settings) -> list[Pair]:
    """Return the pairs that a scan lists."""
    try:
        return [(row.left, row.right) for row in neardup.scan([labelled.docs], settings)]
    except neardup.NeardupError as error:
        raise peers.MissingError(f"{labelled.docs.parent}: {error}") from None


def score(labelled: LabelledSet, pairs: Iterable[Pair]) -> Evaluation:
    return evaluate(pairs, labelled.oracle or {})


def shares(scored: Evaluation) -> list[str]:
    """Return precision, recall and F1."""
    values = (scored.precision, scored.recall, scored.f1)
    return ["–" if value is None else share(value) for value in values]


def share(value: float) -> str:
    """Return a share, rounded down."""
    return f"{int(1000 * value + 1e-9) / 1000:.3f}"


def both_columns(labelled: LabelledSet) -> list[str]:
    columns = ["candidates", "precision", "recall", "F1"]
    columns += ["verified", "its precision", "its recall", "its F1"]
    return columns if labelled.oracle is not None else [columns[0], columns[4]]


def both_cells(
    labelled: LabelledSet, candidates: Iterable[Pair], verified: Iterable[Pair]
) -> list[object]:
    """Return the cells of the columns above: what the pairs are before and after verification."""
    cells: list[object] = []
    for pairs in (candidates, verified):
        scored = score(labelled, pairs)
        cells.append(scored.pairs)
        if labelled.oracle is not None:
            cells += shares(scored)
    return cells


def marked(sketch: str, k: int) -> str:
    return f"**{k}**" if k == RECOMMENDED[sketch] else str(k)


def headline(sets: Iterable[LabelledSet]) -> Table:
    """Score the pairs that ``neardup scan docs.jsonl`` lists."""
    rows: list[list[object]] = []
    for labelled in sets:
        for sketch, threshold in RECOMMENDED.items():
            scored, with_all = (
                score(labelled, scan(labelled, neardup.Settings(sketch=sketch, all_pairs=every)))
                for every in (False, True)
            )
            first = [labelled.name, sketch, threshold, len(labelled.texts)]
            if labelled.oracle is None:
                rows.append([*first, "no labels", scored.pairs, *["–"] * 5])
            else:
                counts = [scored.positives, scored.pairs, scored.ignored]
                rows.append([*first, *counts, *shares(scored), shares(with_all)[-1]])
    columns = ["set", "sketch", "k", "documents", "positive pairs", "listed", "ignored"]
    return [*columns, "precision", "recall", "F1", "F1 with --all-pairs"], rows


def sweep(labelled: LabelledSet) -> Table:
    """Score all pairs, before and after verification, by recipe and threshold."""
    rows: list[list[object]] = []
    for sketch in RECOMMENDED:
        for k in THRESHOLDS:
            cells = both_cells(
                labelled,
                scan(labelled, neardup.Settings(k, 0, sketch, all_pairs=True)),
                scan(labelled, neardup.Settings(k, MIN_SIMILARITY, sketch, all_pairs=True)),
            )
            rows.append([sketch, marked(sketch, k), *cells])
    return ["recipe", "k", *both_columns(labelled)], rows


# Hash seeds.


def seeded_bits(labelled: LabelledSet, sketch: str, seeds: int) -> UInt64Array:
    """Return the fingerprints of all documents with each seed, uint64 (seeds, n)."""
    texts = list(labelled.texts.values())
    seeded = with_seeds(sketch, texts)
    bits = np.array([seeded(seed) for seed in range(seeds)])
    if not np.array_equal(bits[0], neardup.fingerprint(texts, sketch)):
        raise AssertionError(f"seed 0 is not the recipe {sketch}")
    return bits


def with_seeds(sketch: str, texts: list[str]) -> Callable[[int], UInt64Array]:
    """Return what makes the fingerprints of the texts with a hash seed."""
    words = unicode_words([utf8(text) for text in texts])
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


def over_seeds(labelled: LabelledSet, seeded: Mapping[str, UInt64Array]) -> Iterator[list[object]]:
    """Score a recipe with each seed, before and after verification."""
    documents = len(labelled.texts)
    row = {id: number for number, id in enumerate(labelled.texts)}
    oracle: dict[int, float] = {}
    for pair, similarity in (labelled.oracle or {}).items():
        first, second = sorted(row[id] for id in pair)
        oracle[first * documents + second] = similarity
    positives = labelled.positives
    made = shingles(map(utf8, labelled.texts.values()))
    for sketch, thresholds in SEEDED.items():
        bits = seeded[sketch]
        found = [pairs_within(one, max(thresholds)) for one in bits]
        seed = np.repeat(np.arange(len(bits)), [len(pairs) for pairs in found])
        pairs = Pairs.concatenate(found)
        # Many seeds find the same pairs: look at each once.
        key, place = np.unique(pairs.left * documents + pairs.right, return_inverse=True)
        confirmed = (similarities(made, *np.divmod(key, documents)) >= MIN_SIMILARITY)[place]
        label = np.array([oracle.get(one, 0.0) for one in key.tolist()])[place]
        positive, negative = label >= POSITIVE, label < NEGATIVE
        for k in thresholds:
            near = pairs.distance <= k
            chosen = (near, negative, positive, negative & confirmed, positive & confirmed)
            candidates, false, true, wrong, right = (
                np.bincount(seed[near & some], minlength=len(bits)) for some in chosen
            )
            recall = true / positives
            f1 = 2 * right / (right + wrong + positives)
            good = np.count_nonzero(f1 >= BAR[sketch])
            yield [
                labelled.name,
                sketch,
                marked(sketch, k),
                f"{candidates.mean():.0f}",
                f"{false.mean():.1f}",
                f"{share(recall.mean())} / {share(recall.min())}",
                f"{share(f1.mean())} / {share(f1.min())}",
                f"≥ {BAR[sketch]}: {good} of {len(bits)}",
            ]


# Other packages.


def others() -> tuple[list[str], dict[str, str]]:
    """Return which packages are installed, and of the others how to get them."""
    packages, missing = [], {}
    for package in ("rensa", "datasketch", "gaoya"):
        try:
            peers.installed(package)
            packages.append(package)
        except peers.MissingError as error:
            missing[package] = str(error)
    return packages, missing


def beside_others(labelled: LabelledSet, packages: Iterable[str]) -> Table:
    """Score neardup with default settings, and what other packages find."""
    rows: list[list[object]] = []
    for sketch, k in RECOMMENDED.items():
        cells = both_cells(
            labelled,
            scan(labelled, neardup.Settings(None, 0, sketch, all_pairs=True)),
            scan(labelled, neardup.Settings(None, MIN_SIMILARITY, sketch, all_pairs=True)),
        )
        rows.append([f"neardup {sketch}, k = {k}", *cells])
    scripts = {"rensa": rensa, "datasketch": datasketch, "gaoya": gaoya}
    for package in packages:
        for how, candidates, tokens in scripts[package](labelled):
            verified = confirmed(labelled, candidates, tokens)
            rows.append([f"{package}, {how}", *both_cells(labelled, candidates, verified)])
    return ["how", *both_columns(labelled)], rows


def five_characters(text: str) -> set[str]:
    text = " ".join(text.lower().split())
    return {text[start : start + 5] for start in range(len(text) - 4)}


TOKENS: dict[str, Tokens] = {
    "3 words": end_to_end.shingles,
    "5 characters": five_characters,
}


def rensa(labelled: LabelledSet) -> Found:
    texts = list(labelled.texts.values())
    permutations, bands = end_to_end.PERMUTATIONS, end_to_end.BANDS
    for what, tokens in TOKENS.items():
        _, found = end_to_end.rensa_candidates(texts, tokens)
        yield f"{what}, {bands} × {permutations // bands}", with_ids(labelled, found), tokens
    estimated = [(left, right) for left, right, _ in end_to_end.rensa_words(labelled.docs)]
    yield f"words, its estimate ≥ {MIN_SIMILARITY}", estimated, end_to_end.shingles


def datasketch(labelled: LabelledSet) -> Found:
    package = peers.installed("datasketch")
    permutations, bands = end_to_end.PERMUTATIONS, end_to_end.BANDS
    for what, tokens in TOKENS.items():
        sets = ([token.encode() for token in tokens(text)] for text in labelled.texts.values())
        sketches = package.MinHash.bulk(sets, num_perm=permutations)
        for params in (None, (bands, permutations // bands)):
            lsh = package.MinHashLSH(MIN_SIMILARITY, permutations, params=params)
            for row, sketch in enumerate(sketches):
                lsh.insert(row, sketch)
            yield f"{what}, {lsh.b} × {lsh.r}", with_ids(labelled, map(lsh.query, sketches)), tokens


def gaoya(labelled: LabelledSet) -> Found:
    package = peers.installed("gaoya.simhash")
    ids, texts = list(labelled.texts), list(labelled.texts.values())
    largest = GAOYA_TRIED[-1]
    for what, words in (("words", 1), ("words and pairs", 2)):
        # The bulk calls that insert and tell the distance are only on what this class wraps.
        index = package.SimHashStringIndex(64, largest + 1, largest, "word", True, (1, words)).index
        index.par_bulk_insert_docs(list(range(len(ids))), texts)
        nearest = index.par_bulk_query_return_distance(texts)
        found = {
            k: with_ids(labelled, ([one for one, bits in row if bits < k] for row in nearest))
            for k in GAOYA_TRIED
        }
        best = max(GAOYA_TRIED, key=lambda k: score(labelled, found[k]).f1 or 0)
        for k in sorted({GAOYA_USUAL, best} if labelled.oracle else {GAOYA_USUAL}):
            how = f"{what}, k = {k}" + ", its best" * (k == best and labelled.oracle is not None)
            yield how, found[k], end_to_end.shingles


def with_ids(labelled: LabelledSet, found: Iterable[Iterable[int]]) -> list[Pair]:
    """Return the pairs of each row with those found for it, by id and once each."""
    ids = list(labelled.texts)
    return [
        (ids[row], ids[other])
        for row, others in enumerate(found)
        for other in others
        if row < other
    ]


def confirmed(labelled: LabelledSet, candidates: list[Pair], tokens: Tokens) -> list[Pair]:
    """Return the candidates whose exact similarity is high enough."""
    sets = {id: tokens(labelled.texts[id]) for id in set().union(*candidates)}
    return [
        (left, right)
        for left, right in candidates
        if jaccard(sets[left], sets[right]) >= MIN_SIMILARITY
    ]


def jaccard(one: Set[object], other: Set[object]) -> float:
    return len(one & other) / max(len(one | other), 1)


# Wrong pairs.


def show_wrong(labelled: LabelledSet, seeded: Mapping[str, UInt64Array], most: int) -> None:
    """Print what is wrong by default, and of each kind some pairs, with what may tell why."""
    oracle = labelled.oracle or {}
    row_of = {id: row for row, id in enumerate(labelled.texts)}
    for sketch, k in RECOMMENDED.items():
        scored = score(labelled, scan(labelled, neardup.Settings(sketch=sketch, all_pairs=True)))
        kinds = {"missed": scored.missed_pairs, "false": scored.false_pairs}
        counts = ", ".join(f"{len(pairs)} {kind}" for kind, pairs in kinds.items())
        print(f"**{labelled.name}**, {sketch}, k = {k}: {counts}\n")
        rows = []
        for kind, pairs in kinds.items():
            for pair in sorted(pairs, key=lambda one: -oracle.get(one, 0))[:most]:
                texts = [labelled.texts[id] for id in pair]
                one, other = neardup.fingerprint(texts, sketch).tolist()
                made = shingles(map(utf8, texts))
                similarity = similarities(made, np.array([0]), np.array([1]))[0]
                found = "–"
                if sketch in seeded:
                    left, right = (seeded[sketch][:, row_of[id]] for id in pair)
                    found = str(np.count_nonzero(np.bitwise_count(left ^ right) <= k))
                rows.append(
                    [
                        ", ".join(pair),
                        kind,
                        (one ^ other).bit_count(),
                        f"{similarity:.4f}",
                        oracle.get(pair, oracle.get(pair[::-1], "–")),
                        " / ".join(str(size) for size in np.diff(made.offsets)),
                        *edits(*texts),
                        found,
                    ]
                )
        if rows:
            columns = ["pair", "wrong", "bits", "similarity", "oracle", "shingles", "edits"]
            print(peers.table([*columns, "largest", "seeds"], rows))


def edits(text: str, other: str) -> tuple[int, int]:
    """Return how many runs of words differ, and the words of the longest."""
    one, two = (re.findall(r"\w+", text.lower()) for text in (text, other))
    changes = SequenceMatcher(None, one, two, autojunk=False).get_opcodes()
    sizes = [max(b - a, d - c) for kind, a, b, c, d in changes if kind != "equal"]
    return len(sizes), max(sizes, default=0)


# Examples and edits.


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


def small_edits(texts: int) -> Table:
    """Replace words of generated texts and see how far the fingerprints move."""
    writer = peers.Writer(seed=2)
    rows: dict[str, list[list[object]]] = {"simhash": [], "minhash": []}
    for size in EDITED_WORDS:
        originals = [writer.words(size) for _ in range(texts)]
        for percent in EDITED_PERCENT:
            edited = [writer.edited(words, size * percent // 100) for words in originals]
            similarity = [
                jaccard(three_words(one), three_words(other))
                for one, other in zip(originals, edited, strict=True)
            ]
            for sketch in rows:
                before, after = (
                    neardup.fingerprint(map(peers.prose, all), sketch)
                    for all in (originals, edited)
                )
                distance = np.bitwise_count(before ^ after)
                within = [np.count_nonzero(distance <= k) * 100 // texts for k in THRESHOLDS]
                rows[sketch].append(
                    [
                        sketch,
                        f"{size} words",
                        f"{percent} %",
                        f"{np.mean(similarity):.2f}",
                        f"{distance.mean():.1f}",
                        distance.max(),
                        *(f"{found} %" for found in within),
                    ]
                )
    columns = ["recipe", "text", "replaced", "mean Jaccard", "mean distance", "largest"]
    columns += [f"k = {k}" for k in THRESHOLDS]
    return columns, rows["simhash"] + rows["minhash"]


def three_words(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(words, words[1:], words[2:], strict=False))


if __name__ == "__main__":
    peers.run(main)
