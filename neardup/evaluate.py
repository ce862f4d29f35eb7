"""Precision, recall and F1 of pairs that were found, against labelled ones.

Identical texts are listed as pairs of each copy with one original; the other pairs follow. Scored
by what it lists, a result would miss them, so it can be scored with what follows as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from neardup.cluster import components
from neardup.errors import NeardupError, UsageError

POSITIVE, NEGATIVE = 0.8, 0.5

ID_COLUMNS = (
    ("left", "right"),
    ("id1", "id2"),
    ("id_1", "id_2"),
    ("id_a", "id_b"),
    ("a", "b"),
    ("doc1", "doc2"),
    ("source", "target"),
)
SIMILARITY_COLUMNS = ("similarity", "jaccard", "score")
# NaN is on neither side of any limit.
WORDS = {
    **dict.fromkeys(("duplicate", "yes", "1", "true"), 1.0),
    **dict.fromkeys(("not", "no", "0", "false"), 0.0),
    **dict.fromkeys(("unsure", ""), math.nan),
}

Pair = tuple[str, str]
# A table as it is read: the number of the line and the cells of each row, the column names first.
Rows = Iterator[tuple[int, list[str]]]


@dataclass(frozen=True)
class Evaluation:
    """How pairs that were found agree with labels.

    pairs : int, how many were found, with those that follow from identical texts if asked for
    positives, negatives, undecided : int, what the labels say of the pairs they list
    ignored : int, pairs found that the labels leave undecided
    unlisted : int, false pairs that the labels do not list, rather than call negative
    false_pairs : the false pairs, without those that follow from identical texts
    missed_pairs : the positive pairs that were not found
    """

    pairs: int
    positives: int
    negatives: int
    undecided: int
    ignored: int
    unlisted: int
    false_pairs: tuple[Pair, ...] = field(repr=False)
    missed_pairs: tuple[Pair, ...] = field(repr=False)

    @property
    def missed(self) -> int:
        return len(self.missed_pairs)

    @property
    def true(self) -> int:
        return self.positives - self.missed

    @property
    def false(self) -> int:
        return self.pairs - self.true - self.ignored

    @property
    def precision(self) -> float | None:
        """The share of the pairs found that is right; None when there are none."""
        return _share(self.true, self.true + self.false)

    @property
    def recall(self) -> float | None:
        """The share of the positive pairs that was found; None when there are none."""
        return _share(self.true, self.positives)

    @property
    def f1(self) -> float | None:
        """The harmonic mean of the two, 0 when nothing is right; None when there was nothing to
        find and nothing was found."""
        return _share(2 * self.true, self.true + self.false + self.positives)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def evaluate(
    pairs: Iterable[Pair],
    labels: Mapping[Pair, float],
    identical: Iterable[Pair] = (),
    positive: float = POSITIVE,
    negative: float = NEGATIVE,
) -> Evaluation:
    """Score pairs of ids against labelled ones.

    The order of the two ids never matters, a pair given again counts once, and a document with
    itself is no pair.

    Parameters
    ----------
    pairs : pairs of ids that were found
    labels : similarity of labelled pairs, 0 to 1
        Positive from ``positive`` on; negative below ``negative``, as is every pair that is not
        listed; ignored in between and when NaN.
    identical : pairs of ids of identical texts
        The pairs that follow from them count as found, too: all pairs of copies of one text, and
        all pairs of a copy of one text with a copy of another if ``pairs`` has one such pair.

    Raises
    ------
    UsageError
        Not 0 <= negative <= positive <= 1.
    """
    check_limits(positive, negative)
    listed, labelled = _once(pairs), _once(labels)
    found = _Found(listed, identical)
    verdicts = {key: _verdict(labels[pair], positive, negative) for key, pair in labelled.items()}
    counts = Counter((verdict, key in found) for key, verdict in verdicts.items())
    true, ignored = counts[True, True], counts[None, True]
    return Evaluation(
        pairs=len(found),
        positives=true + counts[True, False],
        negatives=counts[False, True] + counts[False, False],
        undecided=ignored + counts[None, False],
        ignored=ignored,
        unlisted=len(found) - true - ignored - counts[False, True],
        false_pairs=tuple(
            pair for key, pair in listed.items() if verdicts.get(key, False) is False
        ),
        missed_pairs=tuple(
            labelled[key] for key, verdict in verdicts.items() if verdict and key not in found
        ),
    )


def check_limits(positive: float, negative: float) -> None:
    """Raise UsageError unless 0 <= negative <= positive <= 1."""
    if not 0 <= negative <= positive <= 1:
        raise UsageError(
            "labels are positive from a similarity on and negative below another: from 0 to 1, "
            f"the first not below the second; got {positive:g} and {negative:g}"
        )


def _verdict(similarity: float, positive: float, negative: float) -> bool | None:
    if similarity >= positive:
        return True
    return False if similarity < negative else None


def _key(pair: Pair) -> Pair:
    return pair if pair[0] <= pair[1] else (pair[1], pair[0])


def _once(pairs: Iterable[Pair]) -> dict[Pair, Pair]:
    """Return each pair of different ids once, as first given, by its key."""
    once: dict[Pair, Pair] = {}
    for pair in pairs:
        if pair[0] != pair[1]:
            once.setdefault(_key(pair), pair)
    return once


class _Found:
    """The pairs of a result with those that follow from identical texts.

    They can be counted and asked for without being listed, of which there may be millions: an id
    stands for the class of texts identical with its own, a pair for a pair of classes.
    """

    def __init__(self, pairs: Iterable[Pair], identical: Iterable[Pair]) -> None:
        number: dict[str, int] = {}
        edges = [[number.setdefault(id, len(number)) for id in pair] for pair in identical]
        left, right = np.array(edges, np.int64).reshape(-1, 2).T
        names = list(number)
        root = components(len(names), left, right).tolist()
        # Of the ids that have copies: the name of the class, and of that the size.
        self._class = {id: names[first] for id, first in zip(names, root, strict=True)}
        self._size = Counter(self._class.values())
        self._joined = {self._classes(pair) for pair in pairs}

    def _classes(self, pair: Pair) -> Pair:
        return _key((self._class.get(pair[0], pair[0]), self._class.get(pair[1], pair[1])))

    def __contains__(self, pair: Pair) -> bool:
        classes = self._classes(pair)
        return classes[0] == classes[1] or classes in self._joined

    def __len__(self) -> int:
        size = self._size
        within = sum(n * (n - 1) // 2 for n in size.values())
        return within + sum((size[a] or 1) * (size[b] or 1) for a, b in self._joined if a != b)


@dataclass(frozen=True)
class Listed:
    """What a table of pairs says: the pairs, those of them that are of identical texts, all ids
    that occur, and what is worth saying about the table."""

    pairs: list[Pair]
    identical: list[Pair]
    ids: set[str]
    notes: list[str]


@dataclass(frozen=True)
class Labels:
    """What a table of labels says: the similarity of each pair, NaN when undecided, 1 or 0 where
    there are words; the same as it is written; all ids; what is worth saying about the table."""

    similarity: dict[Pair, float]
    written: dict[Pair, str]
    ids: set[str]
    notes: list[str]


def listed_pairs(name: str, rows: Rows, min_similarity: float | None = None) -> Listed:
    """Read the pairs of a result; ``name`` is what messages call the table.

    Raises
    ------
    UsageError
        ``min_similarity`` is out of range, or there is no similarity to compare it with.
    NeardupError
        The table is not one of pairs; the message names the line.
    """
    if min_similarity is not None and not 0 <= min_similarity <= 1:
        raise UsageError(f"the smallest similarity is a number from 0 to 1, not {min_similarity:g}")
    table = _PairTable(name, rows)
    relation = table.place("relation")
    similarity = table.place(*SIMILARITY_COLUMNS)
    if min_similarity is not None and similarity is None and table.columns:
        raise UsageError(f"{name}: no column similarity for --min-similarity to look at")
    pairs, identical = [], []
    for line, pair, cells in table:
        if min_similarity is not None and similarity is not None:
            if not cells[similarity]:
                raise UsageError(
                    f"{name}: line {line}: no similarity for --min-similarity to look at"
                )
            if table.number(line, cells[similarity]) < min_similarity:
                continue
        pairs.append(pair)
        if relation is not None and cells[relation] == "exact":
            identical.append(pair)
    once = list(_once(pairs).values())
    return Listed(once, identical, set(table.ids), table.notes(len(pairs) - len(once)))


def labelled_pairs(
    name: str, rows: Rows, positive: float = POSITIVE, negative: float = NEGATIVE
) -> Labels:
    """Read labels: from a column ``label`` of words, else from one of similarities (an empty cell
    is undecided), else every pair listed is positive. ``name`` is what messages call the table.

    Raises
    ------
    NeardupError
        A label cannot be read, or a pair has both a positive and a negative label; the message
        names the line.
    """
    check_limits(positive, negative)
    table = _PairTable(name, rows)
    word, number = table.place("label"), table.place(*SIMILARITY_COLUMNS)
    relation = table.place("relation")
    first: dict[Pair, Pair] = {}
    similarity: dict[Pair, float] = {}
    written: dict[Pair, str] = {}
    identical: list[Pair] = []
    again = 0
    for line, pair, cells in table:
        if relation is not None and cells[relation] == "exact":
            identical.append(pair)
        value, text = 1.0, "listed"
        if word is not None:
            text = cells[word].strip()
            if text.casefold() not in WORDS:
                raise NeardupError(
                    f"{name}: line {line}: unknown label {text!r}; known are duplicate, not and "
                    "unsure, also yes and no, 1 and 0, true and false"
                )
            value = WORDS[text.casefold()]
        elif number is not None:
            text = cells[number]
            value = table.number(line, text) if text else math.nan
        before = first.setdefault(_key(pair), pair)
        if before not in similarity:
            similarity[before], written[before] = value, text
            continue
        again += 1
        verdicts = (_verdict(one, positive, negative) for one in (similarity[before], value))
        if len(set(verdicts)) > 1:
            raise NeardupError(
                f"{name}: line {line}: {pair[0]}, {pair[1]} had another label before: "
                f"{written[before] or 'none'}, now {text or 'none'}"
            )
    notes = table.notes(again)
    # Labels are taken at their word, so that none contradicts another.
    implied = len(_Found(similarity, identical)) - len(similarity)
    if implied:
        notes.append(
            f"{name}: pairs that follow from its identical texts, but are not listed and so count "
            f"as negative: {implied:,} (scan --all-pairs lists them)"
        )
    return Labels(similarity, written, set(table.ids), notes)


def strangers(listed: Listed, labels: Labels) -> str | None:
    """Return a warning when result and labels have no id in common."""
    if not listed.ids or not labels.ids or listed.ids & labels.ids:
        return None
    return (
        "no id of the labels occurs in the result: are they written the same way? "
        f"{min(labels.ids)!r} in the labels, {min(listed.ids)!r} in the result"
    )


class _PairTable:
    """Iterating over it gives line, pair and cells of each row; pairs of a document with itself are
    left out."""

    def __init__(self, name: str, rows: Rows) -> None:
        self.ids: dict[str, str] = {}
        self._name = name
        self._rows = rows
        self._with_itself = 0
        self._said: list[str] = []
        header = next(rows, (0, []))[1]
        self.columns = [column.strip().casefold() for column in header]
        if self.columns:  # JSON lines without a record have none
            self._left, self._right = self._id_columns()

    def _id_columns(self) -> tuple[int, int]:
        columns = self.columns
        for names in ID_COLUMNS:
            if set(names) <= set(columns):
                return columns.index(names[0]), columns.index(names[1])
        # The first column of a table without a name counts its rows.
        named = [place for place, column in enumerate(columns) if column]
        # A list of clusters, of what was skipped or of fingerprints has one id a row.
        if len(named) < 2 or "id" in columns:
            raise NeardupError(
                f"{self._name}: not a table of pairs: it needs a header with two columns of ids, "
                "such as left,right, separated by commas"
            )
        left, right = named[:2]
        self._said.append(
            f"{self._name}: ids are read from its columns {columns[left]!r} and {columns[right]!r}"
        )
        return left, right

    def place(self, *names: str) -> int | None:
        """Return which column has one of these names."""
        return next((self.columns.index(name) for name in names if name in self.columns), None)

    def number(self, line: int, text: str) -> float:
        """Read a similarity. Those of other tools can be a hair above 1, and cosines negative; a
        percentage is none."""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not value <= 1 + 1e-6:
            raise NeardupError(
                f"{self._name}: line {line}: a similarity is a number from 0 to 1, not {text!r}"
            )
        return value

    def __iter__(self) -> Iterator[tuple[int, Pair, list[str]]]:
        one = self.ids.setdefault  # an id that occurs in many pairs is kept once
        for line, cells in self._rows:
            if len(cells) > len(self.columns):
                raise NeardupError(
                    f"{self._name}: line {line}: {len(cells)} cells, but {len(self.columns)} "
                    "columns; a comma inside an id needs quotes around it"
                )
            # Spreadsheets leave out empty cells at the end.
            cells += [""] * (len(self.columns) - len(cells))
            left, right = cells[self._left], cells[self._right]
            if not left or not right:
                raise NeardupError(f"{self._name}: line {line}: a pair needs two ids")
            if left == right:
                self._with_itself += 1
                continue
            yield line, (one(left, left), one(right, right)), cells

    def notes(self, again: int) -> list[str]:
        """Say what was read in another way than might be expected."""
        said = list(self._said)
        if self._with_itself:
            said.append(
                f"{self._name}: left out pairs of a document with itself: {self._with_itself:,}"
            )
        if again:
            said.append(f"{self._name}: pairs listed again, which count once: {again:,}")
        return said
