"""Clusters and the keep rule, against breadth-first search and the rule in plain words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.cluster import cluster, components, keep_order
from neardup.tables import Clusters, Ids, IntArray

Edges = Sequence[tuple[int, int]]


def columns(edges: Edges) -> tuple[IntArray, IntArray]:
    left, right = np.array(edges, np.int64).reshape(-1, 2).T
    return left, right


def made(ids: Sequence[str], original: Sequence[int], edges: Edges) -> Clusters:
    return cluster(*columns(edges), np.array(original, np.int64), Ids(ids))


@dataclass(frozen=True)
class Corpus:
    """Documents with copies, and confirmed pairs between originals."""

    ids: list[str]
    original: list[int]
    edges: list[tuple[int, int]]


def corpus(ids: list[str], texts: Sequence[int], wanted: Edges) -> Corpus:
    """Documents with equal ``texts`` are copies; ``wanted`` is moved to their originals."""
    original = list(range(len(ids)))
    for row in reversed(naive.in_keep_order(ids)):
        for other, text in enumerate(texts):
            if text == texts[row]:
                original[other] = row
    moved = {(original[i], original[j]) for i, j in wanted if original[i] != original[j]}
    edges = sorted({(min(edge), max(edge)) for edge in moved})
    return Corpus(ids, original, edges)


@st.composite
def corpora(draw: st.DrawFn, largest: int = 14) -> Corpus:
    ids = draw(st.lists(st.text("ab/é", max_size=4), unique=True, max_size=largest))
    n = len(ids)
    if n == 0:
        return Corpus([], [], [])
    texts = draw(st.lists(st.integers(0, 2 * n), min_size=n, max_size=n))
    row = st.integers(0, n - 1)
    return corpus(ids, texts, draw(st.lists(st.tuples(row, row), max_size=2 * n)))


# Components


@given(st.integers(1, 30), st.data())
def test_components(n: int, data: st.DataObject) -> None:
    row = st.integers(0, n - 1)
    edges = data.draw(st.lists(st.tuples(row, row), max_size=40))
    assert components(n, *columns(edges)).tolist() == naive.components(n, edges)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_components_without_edges(n: int) -> None:
    assert components(n, *columns([])).tolist() == list(range(n))


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0, 3.0])
def test_components_of_large_random_graphs(share: float) -> None:
    rng = random.Random(7)
    n = 3000
    edges = [(rng.randrange(n), rng.randrange(n)) for _ in range(int(n * share))]
    assert components(n, *columns(edges)).tolist() == naive.components(n, edges)


LENGTH = 20_000


def chain(name: str) -> list[tuple[int, int]]:
    """The edges of one path through all nodes."""
    places = list(range(LENGTH))
    if name == "shuffled nodes":
        random.Random(1).shuffle(places)
    elif name == "zigzag":
        places = [place for pair in zip(places, reversed(places), strict=True) for place in pair]
        places = places[:LENGTH]
    edges = list(pairwise(places))
    if name == "backward":
        edges = [(j, i) for i, j in reversed(edges)]
    elif name == "shuffled edges":
        random.Random(2).shuffle(edges)
    return edges


CHAINS = ["forward", "backward", "shuffled edges", "shuffled nodes", "zigzag"]


@pytest.mark.parametrize("name", CHAINS)
def test_long_chains(name: str) -> None:
    edges = chain(name)
    assert components(LENGTH, *columns(edges)).tolist() == [0] * LENGTH
    edges.pop(LENGTH // 2)
    assert components(LENGTH, *columns(edges)).tolist() == naive.components(LENGTH, edges)


def test_star_and_ladder() -> None:
    star = [(i, LENGTH - 1) for i in range(LENGTH - 1)]
    assert components(LENGTH, *columns(star)).tolist() == [0] * LENGTH
    ladder = [(i, i + 2) for i in range(LENGTH - 2)]
    assert components(LENGTH, *columns(ladder)).tolist() == [0, 1] * (LENGTH // 2)


# The keep rule


@given(corpora())
def test_cluster(corpus: Corpus) -> None:
    found = made(corpus.ids, corpus.original, corpus.edges)
    label, representative = naive.clusters(corpus.ids, corpus.original, corpus.edges)
    assert found.label.tolist() == label
    assert found.representative.tolist() == representative
    assert found.kept_by.tolist() == naive.keep(corpus.ids, corpus.original, corpus.edges)
    members = [rows.tolist() for rows in found.members()]
    assert members == [
        [row for row in range(len(label)) if label[row] == number + 1]
        for number in range(len(representative))
    ]


@given(corpora(30))
def test_nothing_is_dropped_for_a_chain(corpus: Corpus) -> None:
    """The promise itself, apart from how it is kept."""
    found = made(corpus.ids, corpus.original, corpus.edges)
    kept_by = found.kept_by.tolist()
    joined = {frozenset(edge) for edge in corpus.edges}
    for row, keeper in enumerate(kept_by):
        first = corpus.original[row]
        assert kept_by[keeper] == keeper
        assert first == keeper or {first, keeper} in joined
        assert found.label[row] == found.label[keeper]
    # No two that are kept make a pair, and what stands for a cluster is kept.
    for one, two in corpus.edges:
        assert kept_by[one] != one or kept_by[two] != two
    for row in found.representative.tolist():
        assert kept_by[row] == row


@given(corpora())
def test_labels_are_numbered_by_first_document(corpus: Corpus) -> None:
    found = made(corpus.ids, corpus.original, corpus.edges)
    labels = [label for label in found.label.tolist() if label]
    assert list(dict.fromkeys(labels)) == list(range(1, len(found) + 1))
    assert all(labels.count(label) > 1 for label in labels)


@given(corpora(), st.randoms(use_true_random=False))
def test_order_of_documents_does_not_matter(one: Corpus, rng: random.Random) -> None:
    n = len(one.ids)
    new_row = list(range(n))
    rng.shuffle(new_row)
    ids, original = [""] * n, [0] * n
    for row in range(n):
        ids[new_row[row]] = one.ids[row]
        original[new_row[row]] = new_row[one.original[row]]
    moved = [(new_row[i], new_row[j]) for i, j in one.edges]
    edges = sorted((min(edge), max(edge)) for edge in moved)
    assert in_ids(one) == in_ids(Corpus(ids, original, edges))


def in_ids(corpus: Corpus) -> tuple[dict[str, str], set[frozenset[str]], set[str]]:
    """Who keeps whom, the clusters and what stands for them, without rows."""
    ids = corpus.ids
    found = made(ids, corpus.original, corpus.edges)
    return (
        {ids[row]: ids[keeper] for row, keeper in enumerate(found.kept_by.tolist())},
        {frozenset(ids[row] for row in rows) for rows in found.members()},
        {ids[row] for row in found.representative.tolist()},
    )


def test_keep_order() -> None:
    ids = ["old/report.txt", "report (copy).txt", "10", "report.txt", "9", "b", "a", ""]
    ordered = ["", "9", "a", "b", "10", "report.txt", "old/report.txt", "report (copy).txt"]
    assert sorted(ids, key=keep_order) == ordered


def test_ends_of_a_chain_are_both_kept() -> None:
    found = made(["a", "b", "c", "d"], [0, 1, 2, 3], [(0, 1), (1, 2)])
    assert found.label.tolist() == [1, 1, 1, 0]
    assert found.kept_by.tolist() == [0, 0, 2, 3]
    assert found.representative.tolist() == [0]
    # In the middle of a star one is enough.
    found = made(["bb", "a", "cc", "dd"], [0, 1, 2, 3], [(0, 1), (1, 2), (1, 3)])
    assert found.kept_by.tolist() == [1, 1, 1, 1]
    assert found.representative.tolist() == [1]


def test_copies_share_the_fate_of_their_original() -> None:
    # ccc repeats bb, ddd repeats a; bb is a near-duplicate of a.
    found = made(["a", "bb", "ccc", "ddd", "e"], [0, 1, 1, 0, 4], [(0, 1)])
    assert found.label.tolist() == [1, 1, 1, 1, 0]
    assert found.kept_by.tolist() == [0, 0, 0, 0, 4]
    # Copies alone make a cluster.
    found = made(["z", "yy", "x"], [0, 2, 2], [])
    assert found.label.tolist() == [0, 1, 1]
    assert found.kept_by.tolist() == [0, 2, 2]
    assert found.representative.tolist() == [2]


def test_nothing_to_cluster() -> None:
    for n in (0, 1, 3):
        found = made([str(i) for i in range(n)], range(n), [])
        assert found.label.tolist() == [0] * n
        assert found.kept_by.tolist() == list(range(n))
        assert len(found) == 0
        assert found.members() == []


@pytest.mark.parametrize("name", ["forward", "shuffled nodes"])
def test_cluster_of_a_long_chain(name: str) -> None:
    """Every document keeps its neighbours away and nothing further."""
    edges = sorted((min(edge), max(edge)) for edge in chain(name))
    ids = [f"{row:05}" for row in range(LENGTH)]
    found = made(ids, range(LENGTH), edges)
    assert found.label.tolist() == [1] * LENGTH
    assert found.representative.tolist() == [0]
    if name == "forward":
        assert found.kept_by.tolist() == [row - row % 2 for row in range(LENGTH)]
    kept = found.kept_by == np.arange(LENGTH)
    left, right = columns(edges)
    assert not (kept[left] & kept[right]).any()
    dropped = np.flatnonzero(~kept).tolist()
    joined = set(edges)
    assert all(
        (min(row, keeper), max(row, keeper)) in joined
        for row, keeper in zip(dropped, found.kept_by[dropped].tolist(), strict=True)
    )
