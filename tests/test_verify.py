"""Exact Jaccard similarity: equal to that of the oracle's sets, and each document read once."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations, pairwise
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import verify
from neardup.errors import NeardupError, UnreadableError
from neardup.progress import Advance, Progress
from neardup.sketch.features import Hashes
from neardup.sketch.tokens import utf8
from neardup.tables import IntArray, Pairs, UInt8Array, together
from neardup.verify import shelf, similarity

pytestmark = pytest.mark.usefixtures("kernels")

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

    def __call__(self, rows: IntArray) -> Iterator[tuple[int, bytes | UnreadableError]]:
        assert rows.tolist() == sorted(set(rows.tolist()))
        for row in rows.tolist():
            self.reads[row] += 1
            yield row, UnreadableError("gone") if row in self.lost else utf8(self.texts[row])


class Counted(Progress):
    """Counts how far each phase has come."""

    def __init__(self) -> None:
        super().__init__()
        self.done: Counter[str] = Counter()

    @contextmanager
    def show(self, name: str, total: int | None, unit: str) -> Iterator[Advance]:
        self.done[name] = 0

        def advance(count: int) -> None:
            self.done[name] += count

        yield advance
        assert self.done[name] == total


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
    progress = Counted()
    verified = verify.confirm(candidates(edges), sizes, reader, min_similarity, progress)
    pairs = verified.pairs
    rows = {row for edge in edges for row in edge}
    assert verified.lost == dict.fromkeys(rows & set(lost), "gone")
    assert progress.done == {"shingle": sizes[list(rows)].sum(), "compare": len(edges)}
    assert reader.reads == dict.fromkeys(rows, 1)
    assert not pairs.identical.any()
    return listed(pairs)


def listed(pairs: Pairs) -> list[tuple[int, int, int, float]]:
    columns = pairs.left, pairs.right, pairs.distance, pairs.similarity
    return list(zip(*(column.tolist() for column in columns), strict=True))


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


def shingles(texts: Sequence[str]) -> Hashes:
    return verify.shingles(map(utf8, texts))


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
    sizes = np.diff(shingles(texts).offsets).tolist()
    assert sizes == [0, 0, 1, 1, 1, 2, 1, 2, 1]
    assert sizes == [len(naive.shingles(text)) for text in texts]


@given(TEXTS)
def test_shingles(texts: list[str]) -> None:
    made = shingles(texts)
    assert len(made.offsets) == len(texts) + 1
    hashes = np.split(made.values, made.offsets[1:-1])
    sets = [naive.shingles(text) for text in texts]
    assert [len(one) for one in hashes] == [len(one) for one in sets]
    for one in hashes:
        assert len(one) == len(set(one.tolist()))
    for i, j in all_edges(texts):
        assert len(set(hashes[i].tolist()) & set(hashes[j].tolist())) == len(sets[i] & sets[j])


def test_order_of_words_matters() -> None:
    texts = ["a b c", "c b a", "a b", "b a", "b a c"]
    assert len(set(shingles(texts).values.tolist())) == len(texts)


def test_shingles_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join("abcdefgh"[i * n % 8] for i in range(3 * n)) for n in range(12)]
    whole = shingles(texts)
    monkeypatch.setattr("neardup.sketch.BATCH", 10)
    parts = shingles(texts)
    assert parts.values.tolist() == whole.values.tolist()
    assert parts.offsets.tolist() == whole.offsets.tolist()
    assert len(shingles([]).offsets) == 1


@given(TEXTS)
def test_jaccard(texts: list[str]) -> None:
    edges = all_edges(texts)
    left, right = np.array(edges).T
    sets = [naive.shingles(text) for text in texts]
    found = verify.jaccard(shingles(texts), left, right).tolist()
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


SIZES = {
    "_TEXT_AT_ONCE": verify,
    "_SHINGLES_AT_ONCE": verify,
    "_LARGEST_GROUP": verify,
    "_LOOKUPS_AT_ONCE": similarity,
    "_PAIRS_PER_DOCUMENT": similarity,
    "_BITS_AT_ONCE": similarity,
    "_ROWS_AT_ONCE": similarity,
}


@pytest.mark.parametrize(
    ("name", "size"),
    [("_PAIRS_PER_DOCUMENT", 0), *((name, size) for name in SIZES for size in (1, 2, 5, 30, 100))],
)
def test_sizes_of_parts_do_not_matter(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similarity, "_PAIRS_PER_DOCUMENT", 2)
    if name in ("_SHINGLES_AT_ONCE", "_LARGEST_GROUP"):
        monkeypatch.setattr(verify, "_LARGEST_GROUP", 60)
    monkeypatch.setattr(SIZES[name], name, size)
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
        patch.setattr(similarity, "_LOOKUPS_AT_ONCE", most)
        parts = list(similarity._parts(7, np.array(sizes)))
    bounds = [part.start - 7 for part in parts] + [len(sizes)]
    assert [part.stop - 7 for part in parts] == bounds[1:]
    assert bounds[0] == 0
    assert all(sum(sizes[i:j]) < most + max(sizes) for i, j in pairwise(bounds))
    assert len(parts) <= sum(sizes) // most + 1


def parts_of(edges: Sequence[tuple[int, int]], distance: IntArray, size: int) -> list[list[int]]:
    """The documents of each part, all of ``size`` shingles; asserts that every pair is in one."""
    left, right = np.array(edges).T
    sizes = np.full(int(right.max()) + 1, size)
    parts = verify._parts(left, right, distance.astype(np.uint8), sizes)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(edges)))
    assert all((np.diff(left[part]) >= 0).all() for part in parts)
    return [np.unique(np.concatenate((left[part], right[part]))).tolist() for part in parts]


def test_connected_documents_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = [(0, 4), (1, 2), (2, 5), (6, 7)]
    monkeypatch.setattr(verify, "_SHINGLES_AT_ONCE", 1)
    assert sorted(parts_of(edges, np.full(4, 1), 10)) == [[0, 4], [1, 2, 5], [6, 7]]
    monkeypatch.setattr(verify, "_SHINGLES_AT_ONCE", 50)
    assert sorted(parts_of(edges, np.full(4, 1), 10)) == [[0, 1, 2, 4, 5], [6, 7]]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8), st.booleans())
def test_documents_of_pairs(edges: list[tuple[int, int]], far: bool) -> None:
    factor = 10**6 if far else 1
    left, right = factor * np.array(edges, np.int64).reshape(-1, 2).T
    documents, one, other = together(left, right)
    assert documents.tolist() == sorted({factor * row for edge in edges for row in edge})
    assert documents[one].tolist() == left.tolist()
    assert documents[other].tolist() == right.tolist()


def test_a_large_group_is_cut_where_it_is_thin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two families whose documents alternate, joined by one distant candidate."""
    monkeypatch.setattr(verify, "_SHINGLES_AT_ONCE", 100)
    monkeypatch.setattr(verify, "_LARGEST_GROUP", 100)
    even, odd = combinations(range(0, 20, 2), 2), combinations(range(1, 20, 2), 2)
    edges = sorted([*even, *odd, (0, 1)])
    distance = np.array([9 if edge == (0, 1) else 3 for edge in edges])
    parts = parts_of(edges, distance, 10)
    assert sorted(parts) == [[0, 1], list(range(0, 20, 2)), list(range(1, 20, 2))]


@pytest.mark.parametrize("in_memory", [0, 1, 4, 1000])
@pytest.mark.parametrize("workers", [1, 2])
def test_shingles_are_kept_in_memory_and_then_in_files(
    in_memory: int, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither files nor descriptors are left."""
    monkeypatch.setattr(verify, "_TEXT_AT_ONCE", 50)
    monkeypatch.setattr(shelf, "_IN_MEMORY", in_memory)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    files: list[Path] = []
    parts = verify._parts

    def watching(
        left: IntArray, right: IntArray, distance: UInt8Array, sizes: IntArray
    ) -> list[IntArray]:
        files.extend(tmp_path.glob("*/*"))
        return parts(left, right, distance, sizes)

    monkeypatch.setattr(verify, "_parts", watching)
    edges = all_edges(MANY)
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.glob("*")))
    reader, sizes = Reader(MANY), np.array([len(text) for text in MANY])
    pairs = verify.confirm(candidates(edges), sizes, reader, 0.2, workers=workers).pairs
    assert [(i, j, s) for i, j, _, s in listed(pairs)] == [
        (i, j, s) for i, j, _, s in expected(MANY, edges, 0.2)
    ]
    # Documents of fewer than 50 bytes are some in a chunk.
    all_in_memory = in_memory == 1000 and hasattr(os, "memfd_create")
    assert (len(set(files)) == 0) == all_in_memory
    assert len(set(files)) <= workers
    assert not list(tmp_path.iterdir())
    assert len(list(descriptors.glob("*"))) == before


def test_shingles_in_files_where_memory_cannot_be_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "_TEXT_AT_ONCE", 50)
    edges = all_edges(MANY)
    wanted = expected(MANY, edges, 0.2)

    opened: list[int] = []

    def refuse(name: str) -> int:
        if len(opened) == 3:
            raise OSError(errno.EMFILE, "Too many open files")
        opened.append(os.open(os.devnull, os.O_RDONLY))
        return opened[-1]

    monkeypatch.setattr(os, "memfd_create", refuse, raising=False)
    assert len(confirm(MANY, edges, 0.2)) == len(wanted)
    assert len(opened) == 3
    for descriptor in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    monkeypatch.delattr(os, "memfd_create")
    assert len(confirm(MANY, edges, 0.2)) == len(wanted)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(NeardupError, match="TMPDIR names another place"):
        confirm(MANY, edges, 0.2)


def test_a_file_that_was_cut_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "_IN_MEMORY", 0)
    hashes = Hashes(np.arange(10, dtype=np.uint64), np.array([0, 4, 10]))
    with shelf.Shelf(2) as kept:
        made = kept.put(0, hashes)
        kept.add(made)
        assert kept.take(np.array([1])).values.tolist() == list(range(4, 10))
        os.truncate(made.holder, 60)
        assert kept.take(np.array([0])).values.tolist() == list(range(4))
        with pytest.raises(OSError, match="a temporary file has been cut"):
            kept.take(np.array([0, 1]))


def test_a_similarity_is_what_it_says() -> None:
    """As Python's own division: a threshold of 4 / 5 is reached by 4 / 5."""
    texts = ["a " * 3 + " ".join(f"w{i}" for i in range(size)) for size in range(3, 40)]
    sets = [naive.shingles(text) for text in texts]
    confirmed = confirm(texts, all_edges(texts), 0.001)
    assert len(confirmed) == len(all_edges(texts))
    for i, j, _, found in confirmed:
        assert found == naive.jaccard(sets[i], sets[j]) < 1
    assert confirm(["a b c d e f", "a b c d e f g"], [(0, 1)], 4 / 5) == [(0, 1, 0, 4 / 5)]
