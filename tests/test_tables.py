"""The tables refuse what they do not promise."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.tables import Clusters, Fingerprints, Ids, Pairs, SearchPlan, Tally

# Names as the operating system gives them: any bytes, those that are not UTF-8 escaped.
NAMES = st.one_of(
    st.text(max_size=8),
    st.binary(max_size=8).map(lambda name: name.decode("utf-8", "surrogateescape")),
)


# Ids


@given(st.lists(NAMES, max_size=40))
def test_ids_round_trip(names: list[str]) -> None:
    ids = Ids(names)
    assert len(ids) == len(names)
    assert list(ids) == names
    assert [ids[row] for row in range(len(names))] == names
    assert [ids[row - len(names)] for row in range(len(names))] == names


@given(st.lists(NAMES, max_size=12), st.slices(12))
def test_ids_slices(names: list[str], part: slice) -> None:
    assert Ids(names)[part] == names[part]


def test_ids_are_a_sequence() -> None:
    names = ["", "a", "", "b/c", "ü", "\udcff.txt", ""]
    ids = Ids(names)
    assert ids[0] == ids[2] == ids[-1] == ""
    assert ids[-2] == "\udcff.txt"
    assert ids[1:4] == ["a", "", "b/c"]
    assert ids[::-1] == names[::-1]
    assert "b/c" in ids
    assert "c" not in ids
    assert ids.index("ü") == 4
    for row in (7, -8, 100):
        with pytest.raises(IndexError):
            ids[row]
    with pytest.raises(IndexError):
        Ids()[0]
    assert list(Ids()) == []


def test_ids_grow() -> None:
    ids = Ids(["first"])
    for number in range(1000):
        ids.append(str(number))
    assert list(ids) == ["first", *map(str, range(1000))]


@given(st.lists(NAMES, max_size=40))
def test_ids_packed(names: list[str]) -> None:
    buffer, starts, lengths = Ids(names).packed()
    encoded = [name.encode("utf-8", "surrogateescape") for name in names]
    assert buffer.tobytes() == b"".join(encoded) + bytes(8)
    spans = zip(starts.tolist(), lengths.tolist(), strict=True)
    assert [buffer[start : start + size].tobytes() for start, size in spans] == encoded


# Fingerprints and the other tables of columns


def fingerprints(**changed: object) -> Fingerprints:
    columns = {"bits": np.zeros(3, np.uint64), "features": np.zeros(3, np.int32), "recipe": "x/1"}
    return Fingerprints(**(columns | changed))  # type: ignore[arg-type]


def pairs(**changed: object) -> Pairs:
    columns = {
        "left": np.array([0, 0, 1]),
        "right": np.array([1, 2, 2]),
        "distance": np.array([1, 2, 3], np.uint8),
        "similarity": np.array([0.5, 1.0, np.nan]),
        "identical": np.array([False, True, False]),
    }
    return Pairs(**(columns | changed))  # type: ignore[arg-type]


def test_accepted() -> None:
    assert len(fingerprints()) == 3
    assert len(pairs()) == 3
    assert len(Pairs.concatenate([])) == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"bits": np.zeros(3, np.int64)},
        {"bits": np.zeros((3, 1), np.uint64)},
        {"bits": np.array(0, np.uint64)},
        {"bits": np.zeros(4, np.uint64)},
        {"features": np.zeros(3, np.int64)},
        {"features": np.zeros((1, 3), np.int32)},
        {"features": np.zeros(0, np.int32)},
    ],
)
def test_fingerprints_rejects(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="Fingerprints"):
        fingerprints(**changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"left": np.array([0, 0, 1], np.int32)},
        {"left": np.array([[0, 0, 1]])},
        {"left": np.array([0, 0])},
        {"right": np.array([1, 2, 2], np.uint64)},
        {"distance": np.array([1, 2, 3])},
        {"similarity": np.array([0.5, 1.0, 0.0], np.float32)},
        {"identical": np.array([0, 1, 0])},
        {"identical": np.array([False])},
    ],
)
def test_pairs_rejects(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="Pairs"):
        pairs(**changed)


@pytest.mark.parametrize("right", [[1, 2, 1], [1, 2, 0], [-1, 2, 2]])
def test_pairs_rejects_left_not_below_right(right: list[int]) -> None:
    with pytest.raises(ValueError, match="left must be less than right"):
        pairs(right=np.array(right))


def test_search_plan_rejects() -> None:
    assert SearchPlan(np.zeros(2, np.uint64), 3, 0.0).max_distance == 3
    with pytest.raises(ValueError, match=r"SearchPlan\.masks"):
        SearchPlan(np.zeros(2, np.int64), 3, 0.0)


def test_clusters_rejects() -> None:
    rows, one = np.zeros(3, np.int64), np.zeros(1, np.int64)
    assert len(Clusters(rows, one, rows)) == 1
    with pytest.raises(ValueError, match="Clusters"):
        Clusters(rows, one, one)
    with pytest.raises(ValueError, match=r"Clusters\.label"):
        Clusters(rows.astype(np.int32), one, rows)


def test_tables_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        pairs().left = np.zeros(3, np.int64)  # type: ignore[misc]


# What pairs can do


def rows(table: Pairs) -> list[tuple[int, int, int, bool]]:
    columns = (table.left, table.right, table.distance, table.identical)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_pairs_take_and_sort() -> None:
    table = pairs()
    shuffled = table.take(np.array([2, 0, 1]))
    assert rows(shuffled) == [(1, 2, 3, False), (0, 1, 1, False), (0, 2, 2, True)]
    assert rows(shuffled.sorted()) == rows(table)
    assert np.array_equal(shuffled.sorted().similarity, table.similarity, equal_nan=True)
    assert rows(table.take(np.array([False, True, False]))) == [(0, 2, 2, True)]
    both = Pairs.concatenate([table, shuffled])
    assert rows(both) == rows(table) + rows(shuffled)


def test_candidates_are_not_verified() -> None:
    table = Pairs.candidates(np.array([0]), np.array([1]), np.array([7], np.uint8))
    assert rows(table) == [(0, 1, 7, False)]
    assert np.isnan(table.similarity).all()


def test_members_of_clusters() -> None:
    label = np.array([2, 0, 1, 2, 1, 2])
    table = Clusters(label, np.array([4, 0]), np.arange(6))
    assert [member.tolist() for member in table.members()] == [[2, 4], [0, 3, 5]]


def test_tally() -> None:
    tally = Tally()
    tally.skip("a.bin", "read", "not text")
    tally.note("odd", 2)
    tally.note("odd")
    assert (tally.skipped[0].id, tally.skipped[0].stage) == ("a.bin", "read")
    assert tally.notes == {"odd": 3}


def test_many_ids_at_once() -> None:
    names = ["", "a", "é", "\udcff", "東京", "x" * 50]
    ids = Ids(names)
    rows = np.array([0, 5, 3, 3, 1, 4, 2, 0])
    assert ids.take(rows) == [names[row] for row in rows]
    assert ids.take(rows[:0]) == []
