"""The whole scan: identical texts, verification, clusters, and what must not change the answer."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import neardup
from neardup import pipeline
from neardup.corpus.decode import read_bytes
from neardup.errors import UsageError
from neardup.progress import Progress
from neardup.result import ScanResult
from neardup.settings import Settings
from neardup.tables import Pairs, UInt64Array

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in ("n", "r", "st", "l", "mp")]


def prose(seed: int, count: int) -> list[str]:
    return random.Random(seed).choices(WORDS, k=count)


def edited(words: list[str], seed: int, count: int) -> list[str]:
    chooser = random.Random(seed)
    words = list(words)
    for place in chooser.sample(range(len(words)), count):
        words[place] = f"new{seed}x{place}"
    return words


def family(seed: int, size: int, words: int = 120) -> list[str]:
    text = prose(seed, words)
    return [" ".join(edited(text, seed * 100 + i, i % 4)) for i in range(size)]


def corpus() -> list[str]:
    texts = [" ".join(prose(1000 + i, 80)) for i in range(30)]
    for seed in range(6):
        texts += family(seed, 2 + seed)
    texts += [texts[3]] * 3 + [texts[35]] * 2 + ["", "  ", "short text", "short text"]
    random.Random(5).shuffle(texts)
    return texts


def named(result: ScanResult) -> set[tuple[str, str, str, int, float | None]]:
    return {
        (*sorted((pair.left, pair.right)), pair.relation, pair.distance, pair.similarity)  # type: ignore[misc]
        for pair in result
    }


def clusters(result: ScanResult) -> set[tuple[str, ...]]:
    return {
        tuple(sorted(result.ids[row] for row in rows.tolist()))
        for rows in result.clusters.members()
    }


def test_identical_texts_are_a_star() -> None:
    result = neardup.find(["the same text again and again"] * 10_000)
    assert len(result) == 9_999
    assert result.total_pairs == 10_000 * 9_999 // 2
    assert result.candidates == 0
    assert result.redundant == 9_999
    assert len(result.clusters) == 1
    assert {pair.relation for pair in result} == {"exact"}
    assert all(pair.left == "0" for pair in result)


def test_all_pairs_lists_what_follows_from_identical_texts() -> None:
    one, other = family(1, 2)
    result = neardup.find([one, one, other, other, other], all_pairs=True)
    assert len(result) == result.total_pairs == 10
    assert sum(pair.relation == "exact" for pair in result) == 4
    star = neardup.find([one, one, other, other, other])
    assert len(star) == 4
    assert star.total_pairs == 10


def test_texts_without_words_are_never_a_pair() -> None:
    result = neardup.find(["", "", "!!!", "!!!", "🎉", " \n"], min_similarity=0, threshold=64)
    assert len(result) == 0
    assert result.compared == 0
    assert {skip.reason for skip in result.skipped} == {"no usable text"}
    assert len(result.skipped) == 6


def test_identical_texts_whatever_makes_the_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own hash is only taken where its key is secret and all processes have it."""
    texts = [*corpus(), "lone \ud800 half", "lone ? half", "lone \ud801 half", "lone \ud800 half"]
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    usual = neardup.find(texts, threshold=4)
    assert pipeline._digest(1) is hash
    assert (pipeline._digest(4) is hash) == (sys.platform == "linux")
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    other = pipeline._digest(1)
    assert other(b"text") != pipeline._digest(1)(b"text")
    seeded = neardup.find(texts, threshold=4)
    assert seeded.original.tolist() == usual.original.tolist()
    assert seeded.original.tolist() == [texts.index(text) for text in texts]
    monkeypatch.delenv("PYTHONHASHSEED")
    monkeypatch.setattr(pipeline, "forks", lambda: False)
    assert pipeline._digest(1) is hash
    assert pipeline._digest(2) is not hash


def test_one_digest_of_different_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are only taken as identical when their fingerprints are, too."""
    monkeypatch.setattr(pipeline, "_digest", lambda workers: len)
    texts = ["one two three", "uno due tre 1", "one two three", "eins zwei 345"]
    assert neardup.find(texts, threshold=0).original.tolist() == [0, 1, 0, 3]


def test_exact_is_only_what_is_identical_to_the_letter() -> None:
    text = " ".join(prose(1, 200))
    result = neardup.find([text, text.upper(), text.replace(" ", "\n"), text])
    relations = {(p.left, p.right): (p.relation, p.similarity) for p in result}
    assert relations == {
        ("0", "1"): ("near", 1.0),
        ("0", "2"): ("near", 1.0),
        ("0", "3"): ("exact", 1.0),
        ("1", "2"): ("near", 1.0),
    }


def test_similarity_decides_and_zero_switches_it_off() -> None:
    texts = corpus()
    candidates = neardup.find(texts, min_similarity=0, threshold=24)
    confirmed = neardup.find(texts, threshold=24)
    assert {p.similarity for p in candidates if p.relation == "near"} == {None}
    assert all(p.similarity is not None and p.similarity >= 0.8 for p in confirmed)
    assert {n[:2] for n in named(confirmed)} <= {n[:2] for n in named(candidates)}
    assert confirmed.candidates == candidates.candidates == candidates.confirmed
    assert 0 < confirmed.confirmed < confirmed.candidates


def test_pairs_grow_with_the_threshold() -> None:
    texts = corpus()
    sizes, before = [], set[tuple[str, str]]()
    for k in (0, 1, 3, 6, 10, 16, 30):
        pairs = {n[:2] for n in named(neardup.find(texts, threshold=k, min_similarity=0))}
        assert before <= pairs
        before = pairs
        sizes.append(len(pairs))
    assert sizes[0] < sizes[3] < sizes[-1]


def test_the_order_of_documents_changes_nothing() -> None:
    texts = corpus()
    ids = [f"doc{i}" for i in range(len(texts))]
    first = neardup.find(texts, ids, all_pairs=True)
    order = list(range(len(texts)))
    random.Random(9).shuffle(order)
    second = neardup.find([texts[i] for i in order], [ids[i] for i in order], all_pairs=True)
    assert named(first) == named(second)
    assert clusters(first) == clusters(second)

    def kept(result: ScanResult) -> dict[str, str]:
        return {result.ids[r]: result.ids[k] for r, k in enumerate(result.clusters.kept_by)}

    assert kept(first) == kept(second)


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus()
    whole = neardup.find(texts)
    monkeypatch.setattr("neardup.sketch.BATCH", 100)
    monkeypatch.setattr("neardup.verify._SHINGLES_AT_ONCE", 10)
    monkeypatch.setattr("neardup.verify._TEXT_AT_ONCE", 10)
    monkeypatch.setattr("neardup.corpus.sources._PART_BYTES", 10)
    parts = neardup.find(texts)
    assert list(whole) == list(parts)


def test_files_records_and_memory_agree(tmp_path: Path) -> None:
    texts = corpus()
    folder = tmp_path / "docs"
    folder.mkdir()
    ids = [f"{i:03}" for i in range(len(texts))]
    rows = tmp_path / "rows.jsonl"
    with rows.open("w") as file:
        for id, text in zip(ids, texts, strict=True):
            (folder / id).write_text(text)
            file.write(json.dumps({"id": id, "text": text}) + "\n")
    memory = neardup.find(texts, ids)
    assert list(memory) == list(neardup.scan(folder)) == list(neardup.scan(rows))


def test_the_hash_seed_changes_nothing(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in corpus()))
    outputs = {
        subprocess.run(
            [sys.executable, "-m", "neardup", "scan", str(rows), "-q"],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "4242")
    }
    assert len(outputs) == 1


def test_every_redundant_document_has_a_confirmed_pair_with_a_kept_one() -> None:
    result = neardup.find(corpus(), all_pairs=True)
    links, kept_by = result.links(), result.clusters.kept_by.tolist()
    redundant = [row for row, kept in enumerate(kept_by) if kept != row]
    assert len(redundant) == result.redundant > 0
    listed = {frozenset(n[:2]): n[2:] for n in named(result)}
    for row in redundant:
        kept = kept_by[row]
        assert kept_by[kept] == kept
        relation = "exact" if links.identical[row] else "near"
        pair = frozenset((result.ids[row], result.ids[kept]))
        assert listed[pair] == (relation, links.distance[row], float(links.similarity[row]))


def test_a_chain_does_not_drop_its_far_end() -> None:
    start, end = prose(1, 200), prose(2, 200)
    order = random.Random(3).sample(range(200), 200)
    steps, words = [], list(start)
    for step in range(40):
        steps.append(" ".join(words))
        for place in order[5 * step : 5 * step + 5]:
            words[place] = end[place]
    result = neardup.find(steps, threshold=16)
    assert len(result.clusters) == 1
    assert ("0", "39") not in {n[:2] for n in named(result)}
    kept = int((result.clusters.kept_by == range(40)).sum())
    assert kept > 1


@pytest.mark.parametrize("change", ["changed while scanning", "vanished while scanning"])
def test_a_text_that_changes_or_vanishes_before_it_is_verified_takes_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Its copy, which is still there, takes its place."""
    one, other = family(1, 2)
    for name, text in (("a.txt", one), ("b.txt", other), ("copy of a.txt", one)):
        (tmp_path / name).write_text(text)
    search = pipeline._search

    def meddling(bits: UInt64Array, settings: Settings, progress: Progress) -> Pairs:
        if change.startswith("changed"):
            (tmp_path / "a.txt").write_text("something else")
        else:
            (tmp_path / "a.txt").unlink(missing_ok=True)
        return search(bits, settings, progress)

    monkeypatch.setattr(pipeline, "_search", meddling)
    result = neardup.scan(tmp_path)
    assert [(pair.left, pair.right, pair.relation) for pair in result] == [
        ("b.txt", "copy of a.txt", "near")
    ]
    assert [(skip.id, skip.reason) for skip in result.skipped] == [("a.txt", change)]
    assert result.compared == 2
    assert result.clusters.label.tolist() == [0, 1, 1]


def test_window_mode_is_marked_and_finds_a_part() -> None:
    texts = corpus()
    exact = neardup.find(texts, min_similarity=0)
    window = neardup.find(texts, min_similarity=0, rotations=4, window=1)
    assert exact.settings.exact
    assert not window.settings.exact
    assert named(window) <= named(exact)


def test_each_document_is_read_once_and_only_candidates_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [" ".join(prose(i, 60)) for i in range(20)] + family(99, 3)
    for number, text in enumerate(texts):
        (tmp_path / f"{number:02}.txt").write_text(text)
    opened: list[str] = []

    def counting(path: str) -> bytes:
        opened.append(path)
        return read_bytes(path)

    monkeypatch.setattr("neardup.corpus.sources.read_bytes", counting)
    result = neardup.scan(tmp_path)
    assert len(result) == 3
    assert len(opened) == 23 + 3


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": -1},
        {"threshold": 65},
        {"threshold": 0.5},
        {"min_similarity": 1.5},
        {"min_similarity": float("nan")},
        {"rotations": 0},
        {"rotations": 65},
        {"rotations": 2.5},
        {"min_similarity": "0.8"},
        {"window": 0},
        {"sketch": "nope"},
        {"no_such_option": 1},
    ],
)
def test_settings_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        neardup.find(["a", "b"], **options)  # type: ignore[arg-type]


def test_ids_must_fit_the_texts() -> None:
    with pytest.raises(UsageError, match="2 texts but 1 ids"):
        neardup.find(["a", "b"], ["x"])
    with pytest.raises(UsageError, match="unique"):
        neardup.find(["a", "b"], ["x", "x"])
    with pytest.raises(UsageError, match="text 1 is a int"):
        neardup.find(["a", 5])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="one str"):
        neardup.find("a text")


def test_nothing_and_one_document_are_no_error() -> None:
    assert len(neardup.find([])) == 0
    assert len(neardup.find(["one text"])) == 0
