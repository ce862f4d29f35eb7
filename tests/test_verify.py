"""Exact Jaccard similarity: equal to that of the oracle's sets, and each document read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, pairwise

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import verify
from neardup.tables import IntArray, Pairs

# Few words, so that texts share shingles; in unspaced scripts every character is one.
WORDS = st.sampled_from(["a", "b", "c", "Straße", "STRASSE", "x_1", "東京", "ไทย", "\u00ad", "!"])
TEXT = st.one_of(
    st.lists(WORDS, max_size=3).map(" ".join),
    st.lists(WORDS, max_size=14).map(" ".join),
    st.lists(st.sampled_from(["one two three", "four five", "six"]), max_size=8).map(" ".join),
)
TEXTS = st.lists(TEXT, min_size=2, max_size=8)
THRESHOLDS = st.one_of(st.sampled_from([0.01, 1 / 3, 0.5, 2 / 3, 0.8, 1.0]), st.floats(0.001, 1.0))


class Reader:
    """Gives texts again and counts how often each was asked for."""

    def __init__(self, texts: Sequence[str], lost: Collection[int] = ()) -> None:
        self.texts, self.lost = texts, lost
        self.reads: Counter[int] = Counter()

    def __call__(self, rows: IntArray) -> Iterator[tuple[int, str]]:
        assert rows.tolist() == sorted(set(rows.tolist()))
        for row in rows.tolist():
            self.reads[row] += 1
            if row not in self.lost:
                yield row, self.texts[row]


def candidates(edges: Sequence[tuple[int, int]]) -> Pairs:
    """Candidate pairs; their distances are only passed through."""
    left, right = np.array(edges, np.int64).reshape(-1, 2).T
    return Pairs.candidates(left, right, np.arange(len(edges)).astype(np.uint8))


def confirm(
    texts: Sequence[str],
    edges: Sequence[tuple[int, int]],
    min_similarity: float,
    lost: Collection[int] = (),
) -> list[tuple[int, int, int, float]]:
    """Confirm and check what must hold for every input."""
    reader = Reader(texts, lost)
    sizes = np.array([len(text) for text in texts], np.int64)
    done: list[int] = []
    pairs = verify.confirm(candidates(edges), sizes, reader, min_similarity, done.append)
    assert sum(done) == len(edges)
    assert reader.reads == dict.fromkeys({row for edge in edges for row in edge}, 1)
    assert not pairs.identical.any()
    return list(
        zip(
            pairs.left.tolist(),
            pairs.right.tolist(),
            pairs.distance.tolist(),
            pairs.similarity.tolist(),
            strict=True,
        )
    )


def expected(
    texts: Sequence[str], edges: Sequence[tuple[int, int]], min_similarity: float
) -> list[tuple[int, int, int, float]]:
    """What the oracle confirms."""
    sets = [naive.shingles(text) for text in texts]
    found = []
    for distance, (i, j) in enumerate(edges):
        similarity = naive.jaccard(sets[i], sets[j])
        if similarity >= min_similarity:
            found.append((i, j, distance, similarity))
    return found


def all_edges(texts: Sequence[str]) -> list[tuple[int, int]]:
    return list(combinations(range(len(texts)), 2))


# Shingles and their similarity


def test_shingles_of_known_texts() -> None:
    texts = [
        "",
        "...",
        "one",
        "one two",
        "one two three",
        "a b c d",
        "a a a a a",
        "東京都庁",
        "a b",
    ]
    sizes = np.diff(verify.shingles(texts).offsets).tolist()
    assert sizes == [0, 0, 1, 1, 1, 2, 1, 2, 1]
    assert sizes == [len(naive.shingles(text)) for text in texts]


@given(TEXTS)
def test_shingles(texts: list[str]) -> None:
    made = verify.shingles(texts)
    assert len(made.offsets) == len(texts) + 1
    hashes = np.split(made.values, made.offsets[1:-1])
    sets = [naive.shingles(text) for text in texts]
    assert [len(one) for one in hashes] == [len(one) for one in sets]
    for one in hashes:
        assert one.tolist() == sorted(set(one.tolist()))
    for i, j in all_edges(texts):
        assert len(set(hashes[i].tolist()) & set(hashes[j].tolist())) == len(sets[i] & sets[j])


def test_order_of_words_matters() -> None:
    texts = ["a b c", "c b a", "a b", "b a", "b a c"]
    assert len(set(verify.shingles(texts).values.tolist())) == len(texts)


def test_shingles_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join("abcdefgh"[i * n % 8] for i in range(3 * n)) for n in range(12)]
    whole = verify.shingles(texts)
    monkeypatch.setattr("neardup.sketch.BATCH", 10)
    parts = verify.shingles(texts)
    assert parts.values.tolist() == whole.values.tolist()
    assert parts.offsets.tolist() == whole.offsets.tolist()
    assert len(verify.shingles([]).offsets) == 1


@given(TEXTS)
def test_jaccard(texts: list[str]) -> None:
    edges = all_edges(texts)
    left, right = np.array(edges).T
    sets = [naive.shingles(text) for text in texts]
    found = verify.jaccard(verify.shingles(texts), left, right).tolist()
    assert found == [naive.jaccard(sets[i], sets[j]) for i, j in edges]


# Confirmation


@given(st.data(), TEXTS, THRESHOLDS)
def test_confirm(data: st.DataObject, texts: list[str], min_similarity: float) -> None:
    edges = sorted(data.draw(st.sets(st.sampled_from(all_edges(texts)))))
    assert confirm(texts, edges, min_similarity) == expected(texts, edges, min_similarity)


def test_threshold_is_included() -> None:
    """Four of five shingles are common: 0.8 is enough for 0.8."""
    texts = ["a b c d e f", "a b c d e f g"]
    assert len(confirm(texts, [(0, 1)], 0.8)) == 1
    assert confirm(texts, [(0, 1)], float(np.nextafter(0.8, 1))) == []


def test_no_candidates() -> None:
    assert confirm(["a b c", "a b c"], [], 0.5) == []
    assert confirm([], [], 0.5) == []


def test_texts_without_words_are_similar_to_nothing() -> None:
    assert confirm(["", "...", "a b c"], [(0, 1), (0, 2), (1, 2)], 1e-9) == []


@given(st.data(), TEXTS)
def test_lost_documents_confirm_nothing(data: st.DataObject, texts: list[str]) -> None:
    edges = all_edges(texts)
    lost = data.draw(st.sets(st.integers(0, len(texts) - 1), min_size=1))
    rest = [pair for pair in expected(texts, edges, 0.01) if not lost & set(pair[:2])]
    assert confirm(texts, edges, 0.01, lost) == rest


MANY = [
    " ".join("abcdefghij"[(i * step + i // 7) % 10] for i in range(size))
    for step, size in [(1, 40), (1, 42), (1, 45), (3, 40), (3, 41), (7, 5), (7, 6), (9, 2), (9, 0)]
] * 3
# Several groups, one of them a chain, some rows in none.
MANY_EDGES = [(0, 1), (0, 9), (0, 10), (1, 2), (2, 11), (3, 4), (3, 12), (5, 6), (7, 16), (8, 17)]
# A part read early may hold a late pair.
MANY_EDGES.append((11, 20))


@pytest.mark.parametrize("name", ["_BYTES_AT_ONCE", "_LOOKUPS_AT_ONCE"])
@pytest.mark.parametrize("size", [1, 2, 5, 30, 100])
def test_sizes_of_parts_do_not_matter(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, name, size)
    for edges in (MANY_EDGES, all_edges(MANY)):
        wanted = expected(MANY, edges, 0.2)
        assert len(wanted) >= 5
        # Distances are numbered modulo 256 here.
        wanted = [(i, j, distance % 256, similarity) for i, j, distance, similarity in wanted]
        assert confirm(MANY, edges, 0.2) == wanted


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 200))
def test_lookups_are_bounded(sizes: list[int], most: int) -> None:
    """Parts follow each other, none is much too large and not many are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "_LOOKUPS_AT_ONCE", most)
        parts = list(verify._parts(7, np.array(sizes)))
    bounds = [part.start - 7 for part in parts] + [len(sizes)]
    assert [part.stop - 7 for part in parts] == bounds[1:]
    assert bounds[0] == 0
    assert all(sum(sizes[i:j]) < most + max(sizes) for i, j in pairwise(bounds))
    assert len(parts) <= sum(sizes) // most + 1


def test_memory_is_bounded_by_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are read one after the other when there is no room for two."""
    monkeypatch.setattr(verify, "_BYTES_AT_ONCE", 1)
    batches: list[list[int]] = []

    def read_again(rows: IntArray) -> Iterator[tuple[int, str]]:
        batches.append(rows.tolist())
        return ((row, "a b c") for row in rows.tolist())

    edges = [(0, 4), (1, 2), (2, 5), (6, 7)]
    sizes = np.full(8, 10, np.int64)
    pairs = verify.confirm(candidates(edges), sizes, read_again, 0.8)
    assert sorted(batches) == [[0, 4], [1, 2, 5], [6, 7]]
    assert pairs.left.tolist() == [0, 1, 2, 6]


def test_a_similarity_is_what_it_says() -> None:
    """As Python's own division: a threshold of 4 / 5 is reached by 4 / 5."""
    texts = ["a " * 3 + " ".join(f"w{i}" for i in range(size)) for size in range(3, 40)]
    sets = [naive.shingles(text) for text in texts]
    confirmed = confirm(texts, all_edges(texts), 0.001)
    assert len(confirmed) == len(all_edges(texts))
    for i, j, _, similarity in confirmed:
        assert similarity == naive.jaccard(sets[i], sets[j]) < 1
    assert confirm(["a b c d e f", "a b c d e f g"], [(0, 1)], 4 / 5) == [(0, 1, 0, 4 / 5)]
