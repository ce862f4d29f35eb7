"""The search: complete by enumeration, and equal to brute force whatever the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from math import comb
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import index
from neardup.errors import UsageError
from neardup.index import search
from neardup.index.plan import BRUTE_FORCE, COMPILED, NUMPY, Costs, Design, choose, designs
from neardup.index.search import _squeeze, exact, plan_for, window
from neardup.tables import Pairs, SearchPlan, UInt64Array

pytestmark = pytest.mark.usefixtures("kernels")

Found = list[tuple[int, int, int]]

EDGES = (0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1)


def listed(pairs: Pairs) -> Found:
    """The pairs in the order given, which must be that of left and right."""
    assert np.isnan(pairs.similarity).all()
    assert not pairs.identical.any()
    return list(
        zip(pairs.left.tolist(), pairs.right.tolist(), pairs.distance.tolist(), strict=True)
    )


def words(bits: Sequence[int]) -> UInt64Array:
    return np.array(bits, np.uint64)


def within(pairs: Found, k: int) -> Found:
    return [pair for pair in pairs if pair[2] <= k]


def uniform(seed: int, n: int) -> list[int]:
    rng = np.random.default_rng(seed)
    bits: list[int] = rng.integers(0, 2**64, n, np.uint64).tolist()
    return bits


def families(seed: int, sizes: Sequence[int], farthest: int = 9) -> list[int]:
    """Families of words around a random one, at up to ``farthest`` bits; a third are repeated."""
    rng = np.random.default_rng(seed)
    bits = []
    for size in sizes:
        parent = int(rng.integers(0, 2**64, dtype=np.uint64))
        members = []
        for _ in range(size):
            flipped = rng.choice(64, int(rng.integers(0, farthest + 1)), replace=False)
            members.append(parent ^ sum(1 << int(bit) for bit in flipped))
        members[: size // 3] = [members[-1]] * (size // 3)
        bits += members
    return [bits[row] for row in rng.permutation(len(bits)).tolist()]


def several_tables(k: int) -> SearchPlan:
    """A plan that the planner would not choose for a few rows."""
    plan = choose(10**5, k)
    assert len(plan.masks) > 1 or k == 0
    return plan


DATA = {
    "none": [],
    "one": [5],
    "two equal": [2**63, 2**63],
    "two unlike": [0, 2**64 - 1],
    "all equal": [2**64 - 1] * 40,
    "edges": list(EDGES),
    "single bits": [1 << bit for bit in range(64)],
    "prefixes": [(1 << bit) - 1 for bit in range(65)],
    "small numbers": list(range(200)),
    "uniform": uniform(1, 300),
    "pairs": families(2, [2] * 80, 6),
    "families": families(3, [2, 3, 5, 8, 20, 50, 1, 1, 1]),
    "a large family": families(4, [200, 2]),
    "tight": families(5, [60, 60, 60], 2),
}
PAIRS = {name: naive.all_pairs(bits, 64) for name, bits in DATA.items()}


# Exact search


@pytest.mark.parametrize("k", [*range(17), 20, 32, 63, 64])
@pytest.mark.parametrize("name", DATA)
def test_finds_every_pair(name: str, k: int) -> None:
    bits, expected = words(DATA[name]), within(PAIRS[name], k)
    assert listed(index.pairs(bits, k)) == expected
    if k <= 16:
        assert listed(exact(bits, several_tables(k))) == expected


SMALL_WORD = st.one_of(
    st.integers(0, 2**64 - 1),
    st.sampled_from(EDGES),
    st.integers(0, 63).map(lambda bit: 1 << bit),
    st.integers(0, 7),
)


@given(st.lists(SMALL_WORD, max_size=25), st.integers(0, 64))
def test_finds_every_pair_of_few(bits: list[int], k: int) -> None:
    expected = naive.all_pairs(bits, k)
    assert listed(index.pairs(words(bits), k)) == expected
    if k <= 12:
        assert listed(exact(words(bits), several_tables(k))) == expected


LARGE = uniform(6, 900) + families(7, [2] * 200 + [7] * 30 + [90], 10)


@pytest.fixture(scope="module")
def large_pairs() -> Found:
    return naive.all_pairs(LARGE, 16)


@pytest.mark.parametrize("k", range(17))
def test_finds_every_pair_of_many(k: int, large_pairs: Found) -> None:
    """Enough rows for the planner to choose several tables by itself."""
    plan = choose(len(LARGE), k)
    assert len(plan.masks) > 1 or k in (0, 14, 15, 16)
    assert listed(exact(words(LARGE), plan)) == within(large_pairs, k)
    assert listed(index.pairs(words(LARGE), k)) == within(large_pairs, k)


@given(st.lists(SMALL_WORD, min_size=1, max_size=5), st.integers(0, 2**64 - 1))
def test_keys_hold_all_bits_under_the_mask(bits: list[int], mask: int) -> None:
    """Shorter keys would find the same pairs among more candidates."""
    places = [bit for bit in range(64) if mask >> bit & 1]
    keys = [sum((word >> bit & 1) << i for i, bit in enumerate(places)) for word in bits]
    assert _squeeze(words(bits), mask).tolist() == keys


def test_many_equal_fingerprints_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[UInt64Array] = []

    def tables(bits: UInt64Array, *rest: Any) -> Iterator[search.Found]:
        searched.append(bits)
        return search_tables(bits, *rest)

    search_tables = search._tables
    monkeypatch.setattr(search, "_tables", tables)
    for bits in ([7] * 1000 + [2**63] * 500 + [6], [3] * 5, [9, 4] * 40):
        assert listed(index.pairs(words(bits), 1)) == naive.all_pairs(bits, 1)
        assert searched.pop().tolist() == sorted(set(bits))


def test_does_not_change_its_input() -> None:
    bits = words(LARGE)
    index.pairs(bits, 3)
    window(bits, 3, 4, 2)
    assert bits.tolist() == LARGE


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 16, 17, 64, 100, 1000])
def test_size_of_chunks_does_not_matter(
    chunk: int, large_pairs: Found, kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.index.search._CHUNK", chunk)
    if kernels == "compiled":
        monkeypatch.setattr("neardup.index.compiled._ROOM", chunk)
    # One row at a time is slow: small sets suffice for small chunks.
    names = ["none", "two equal", "edges", "prefixes", "tight"]
    for name in names if chunk < 16 else DATA:
        bits = words(DATA[name])
        for k in (0, 3):
            assert listed(exact(bits, several_tables(k))) == within(PAIRS[name], k)
        assert listed(index.pairs(bits, 7)) == within(PAIRS[name], 7)
    if chunk >= 64:
        assert listed(index.pairs(words(LARGE), 3)) == within(large_pairs, 3)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_do_not_matter(workers: int, large_pairs: Found) -> None:
    done: list[int] = []
    plan = choose(len(LARGE), 3)
    assert listed(exact(words(LARGE), plan, done.append, workers)) == within(large_pairs, 3)
    assert sum(done) == len(plan.masks)


# Plans


def complete(masks: Sequence[int], bits_of_block: Sequence[int], k: int) -> bool:
    """Whether every choice of k blocks leaves some mask untouched."""
    return all(
        any(mask & sum(choice) == 0 for mask in masks) for choice in combinations(bits_of_block, k)
    )


def blocks_of(design: Design) -> list[int]:
    """The bits of each block: v blocks of nearly equal size that make up the word."""
    edges = [64 * i // design.blocks for i in range(design.blocks + 1)]
    return [sum(1 << bit for bit in range(start, end)) for start, end in pairwise(edges)]


def few_tables(k: int, most: int) -> list[Design]:
    return [design for design in designs(k) if design.tables <= most]


@pytest.mark.parametrize("k", range(13))
def test_designs_are_complete(k: int) -> None:
    """Proven by enumeration for the designs with few choices."""
    few = [design for design in few_tables(k, 300) if comb(design.blocks, k) <= 5000]
    assert len(few) >= 4
    for design in few:
        masks, blocks = design.masks(), blocks_of(design)
        assert len(set(masks)) == len(masks) == design.tables
        assert all(0 < mask < 2**64 for mask in masks)
        assert complete(masks, blocks, k), design


@pytest.mark.parametrize("k", range(13))
def test_designs_use_their_keys(k: int) -> None:
    """One more changed block can touch every mask: the designs promise no more than they say."""
    textbook = designs(k)[0]
    assert textbook == Design(k + 1, 1, 1)
    assert not complete(textbook.masks(), blocks_of(textbook), k + 1)


@pytest.mark.parametrize("k", range(13))
def test_every_design_finds_every_pair(k: int) -> None:
    few = few_tables(k, 40)
    assert len(few) > 100
    # Every design on a few words; every ninth on larger sets, too.
    small = families(100 + k, [9, 4, 2, 2, 1, 1], min(k + 1, 9)) + list(EDGES)
    expected = naive.all_pairs(small, k)
    for number, design in enumerate(few):
        plan = SearchPlan(words(design.masks()), k, 0.0)
        assert listed(exact(words(small), plan)) == expected, design
        if number % 9 == 0:
            for name in ("families", "tight", "edges"):
                assert listed(exact(words(DATA[name]), plan)) == within(PAIRS[name], k), design


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("n", [10**3, 10**5, 10**6, 10**7])
@pytest.mark.parametrize("costs", [NUMPY, COMPILED])
def test_chosen_plans_are_complete(n: int, k: int, costs: Costs) -> None:
    """Proven bit by bit: whichever k of the 64 bits differ, some table does not look at them."""
    plan = choose(n, k, costs)
    assert plan.max_distance == k
    assert complete(plan.masks.tolist(), [1 << bit for bit in range(64)], k)


def test_brute_force_for_few() -> None:
    for n in (0, 1, 2, 10, 50):
        for k in (3, 10, 64):
            plan = choose(n, k)
            assert plan.masks.tolist() == BRUTE_FORCE.masks() == [0]
            assert plan.candidates == n * (n - 1) / 2
    # Without a key that is long enough, there is nothing better.
    for k in (40, 63, 64):
        assert choose(10**4, k).masks.tolist() == [0]


@pytest.mark.parametrize("costs", [NUMPY, COMPILED])
def test_costs_of_a_million(costs: Costs) -> None:
    plan = choose(10**6, 3, costs)
    assert 4 <= len(plan.masks) <= 20
    keys = [mask.bit_count() for mask in plan.masks.tolist()]
    assert min(keys) >= 16
    all_pairs = 10**6 * (10**6 - 1) / 2
    assert plan.candidates < all_pairs / 10_000
    # The estimate is that of uniformly random fingerprints.
    assert plan.candidates == pytest.approx(sum(all_pairs / 2.0**key for key in keys), rel=0.25)
    # Key and row number fit into one word.
    assert max(keys) + (10**6 - 1).bit_length() <= 64


@pytest.mark.parametrize("k", [0, 1, 3, 6, 10])
def test_keys_leave_room_for_the_row(k: int) -> None:
    for n in (10**3, 10**6, 10**8, 2**40):
        keys = [mask.bit_count() for mask in choose(n, k).masks.tolist()]
        assert max(keys) + (n - 1).bit_length() <= 64


@pytest.mark.parametrize("costs", [NUMPY, COMPILED])
def test_costs_grow_with_the_threshold(costs: Costs) -> None:
    plans = [choose(10**6, k, costs) for k in range(13)]
    seconds = [plan.candidates * costs.pair + len(plan.masks) * 10**6 * costs.row for plan in plans]
    assert seconds == sorted(seconds)


def test_plans_fit_their_kernel(kernels: str) -> None:
    """Comparing is what compiling makes cheaper: fewer tables, longer runs."""
    plan = plan_for(10**6, 10)
    costs = COMPILED if kernels == "compiled" else NUMPY
    assert plan.masks.tolist() == choose(10**6, 10, costs).masks.tolist()
    assert (len(plan.masks) < len(choose(10**6, 10).masks)) == (kernels == "compiled")


# Window search


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("rotations", [1, 2, 3, 5, 16, 64])
def test_window(name: str, rotations: int) -> None:
    bits, k = DATA[name], 8
    if len(bits) > 150 and rotations > 5:
        bits = bits[:60]
    everything = set(naive.all_pairs(bits, k))
    for width in (1, 2, 7):
        found = listed(window(words(bits), k, rotations, width))
        assert found == sorted(found)
        assert len(set(found)) == len(found)
        assert set(found) == naive.window_pairs(bits, k, rotations, width)
        assert set(found) <= everything


@given(
    st.lists(SMALL_WORD, max_size=12),
    st.integers(0, 64),
    st.integers(1, 64),
    st.integers(1, 15),
)
def test_window_of_few(bits: list[int], k: int, rotations: int, width: int) -> None:
    found = listed(window(words(bits), k, rotations, width))
    assert found == sorted(naive.window_pairs(bits, k, rotations, width))


def test_window_is_a_ring() -> None:
    """After the last word comes the first one; with one rotation nothing else joins these two."""
    bits = [2**64 - 1, 2**62, 2**63 - 1, 2**61 + 2**60]
    first, last = bits.index(min(bits)), bits.index(max(bits))
    distance = naive.hamming(bits[first], bits[last])
    found = listed(window(words(bits), 64, 1, 1))
    assert (min(first, last), max(first, last), distance) in found
    assert len(found) == 4


def test_wide_window_is_exact() -> None:
    for name in ("uniform", "families", "edges"):
        bits = DATA[name]
        for width in (len(bits) // 2, len(bits) - 1, len(bits), 10 * len(bits)):
            assert listed(window(words(bits), 12, 1, width)) == within(PAIRS[name], 12)


def test_ties_keep_document_order() -> None:
    """Of equal words each meets the next one in document order, and only that."""
    bits = [7] * 5 + [2**63] * 5
    found = listed(window(words(bits), 0, 1, 1))
    assert found == [(i, i + 1, 0) for i in (0, 1, 2, 3, 5, 6, 7, 8)]
    assert set(found) == naive.window_pairs(bits, 0, 1, 1)


# The interface


@pytest.mark.parametrize("k", [-1, 65, 1000])
def test_thresholds_out_of_range(k: int) -> None:
    with pytest.raises(UsageError, match="from 0 to 64"):
        index.pairs(words([1, 2]), k)
    with pytest.raises(UsageError, match="from 0 to 64"):
        window(words([1, 2]), k, 4, 2)


@pytest.mark.parametrize(("rotations", "width"), [(0, 1), (65, 1), (-1, 1), (4, 0), (4, -1)])
def test_windows_out_of_range(rotations: int, width: int) -> None:
    with pytest.raises(UsageError, match=r"rotations go from|window is at least"):
        window(words([1, 2]), 3, rotations, width)
