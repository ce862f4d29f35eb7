"""Precision, recall and F1: against brute force, by hand, and as a user meets them."""

from __future__ import annotations

import inspect
import json
import math
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cli import neardup as run

import neardup
from neardup import cli
from neardup.errors import NeardupError, UsageError
from neardup.evaluate import (
    NEGATIVE,
    POSITIVE,
    Evaluation,
    Pair,
    evaluate,
    labelled_pairs,
    listed_pairs,
)
from neardup.report.pairs import read_rows

EXAMPLES = Path(__file__).parent.parent / "examples"
HEADER = "left,right,relation,distance,similarity,cluster\n"
IDS = "abcdefgh"

IdPairs = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)), max_size=14)
Similarities = st.sampled_from([0.0, 0.49, 0.5, 0.6, 0.79, 0.8, 1.0, math.nan])


def follow(pairs: list[Pair], identical: list[Pair]) -> set[frozenset[str]]:
    """Everything that follows, by trying all pairs until nothing new turns up."""
    same = {(a, b) for pair in identical for a, b in (pair, pair[::-1])}
    same |= {(a, a) for a in IDS}
    while True:
        more = same | {(a, d) for a, b in same for c, d in same if b == c}
        if more == same:
            break
        same = more
    found = {frozenset(pair) for pair in pairs}
    return {
        frozenset((a, b))
        for a, b in combinations(IDS, 2)
        if (a, b) in same
        or any({a, b} == {x, y} for x, y in pairs)
        or any((a, x) in same and (b, y) in same for one in found for x in one for y in one - {x})
    }


@given(IdPairs, IdPairs, st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS))), st.data())
def test_as_brute_force_counts(
    pairs: list[Pair], labelled: list[Pair], identical: list[Pair], data: st.DataObject
) -> None:
    labels: dict[Pair, float] = {}
    for a, b in labelled:
        if (b, a) not in labels:
            labels[a, b] = data.draw(Similarities)
    label_of = {frozenset(pair): value for pair, value in labels.items()}
    for copies in ([], identical):
        found = follow(pairs, copies)
        result = evaluate(pairs, labels, copies)
        assert result.pairs == len(found)
        everything = [frozenset(pair) for pair in combinations(IDS, 2)]
        positive = {pair for pair in everything if label_of.get(pair, 0) >= 0.8}
        negative = {pair for pair in everything if label_of.get(pair, 0) < 0.5}
        assert result.true == len(found & positive)
        assert result.false == len(found & negative)
        assert result.missed == len(positive - found)
        assert result.ignored == len(found - positive - negative)
        assert result.unlisted == len(found - label_of.keys())
        assert result.positives == len(positive)
        assert result.negatives == len(negative & label_of.keys())
        assert result.undecided == len(set(everything) - positive - negative)
        listed = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
        assert {frozenset(pair) for pair in result.false_pairs} == listed & negative
        assert {frozenset(pair) for pair in result.missed_pairs} == positive - found


def test_exact_values() -> None:
    labels = {("a", "b"): 0.8, ("a", "c"): 0.79, ("b", "c"): 0.5, ("c", "d"): 0.49, ("e", "f"): 1.0}
    result = evaluate([("b", "a"), ("a", "c"), ("d", "c"), ("x", "y"), ("a", "b")], labels)
    assert (result.pairs, result.true, result.false, result.missed) == (4, 1, 2, 1)
    assert (result.ignored, result.undecided, result.unlisted) == (1, 2, 1)
    assert (result.precision, result.recall, result.f1) == (1 / 3, 1 / 2, 2 / 5)
    assert result.false_pairs == (("d", "c"), ("x", "y"))
    assert result.missed_pairs == (("e", "f"),)
    stricter = evaluate([("a", "b")], labels, positive=0.9, negative=0.9)
    assert (stricter.precision, stricter.positives, stricter.negatives) == (0, 1, 4)


def test_shares_that_are_undefined() -> None:
    def shares(one: Evaluation) -> tuple[float | None, ...]:
        return one.precision, one.recall, one.f1

    assert shares(evaluate([], {})) == (None, None, None)
    assert shares(evaluate([], {("a", "b"): 1.0})) == (None, 0, 0)
    assert shares(evaluate([("a", "b")], {})) == (0, None, 0)
    assert shares(evaluate([("a", "b")], {("a", "b"): 0.6})) == (None, None, None)


def test_what_follows_is_counted_without_being_listed() -> None:
    """A star of 100,000 copies of each of two similar texts has twenty thousand million pairs."""
    n = 100_000
    stars = [(f"{side}0", f"{side}{i}") for side in "ab" for i in range(1, n)]
    result = evaluate([*stars, ("a0", "b0")], {("b7", "a9"): 0.9, ("a3", "a4"): 1.0}, stars)
    assert result.pairs == n * (n - 1) + n * n
    assert (result.true, result.missed) == (2, 0)


@pytest.mark.parametrize(
    ("positive", "negative"),
    [(0.4, 0.5), (1.1, 0.5), (0.8, -0.1), (math.nan, 0.5), (0.8, math.nan)],
)
def test_limits_out_of_order(positive: float, negative: float) -> None:
    with pytest.raises(UsageError, match="from 0 to 1"):
        evaluate([], {}, (), positive, negative)


def test_the_defaults_of_the_command_are_those_of_the_function() -> None:
    """The command line repeats them, so that --help does not load numpy."""
    defaults = inspect.signature(cli.evaluate).parameters
    assert defaults["positive"].default == POSITIVE
    assert defaults["negative"].default == NEGATIVE


# Tables.


def listed(tmp_path: Path, text: str | bytes, min_similarity: float | None = None) -> list[Pair]:
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return listed_pairs("pairs", read_rows(str(path)), min_similarity).pairs


def labelled(tmp_path: Path, text: str) -> dict[Pair, float]:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return labelled_pairs("labels", read_rows(str(path))).similarity


@pytest.mark.parametrize(
    "text",
    [
        HEADER + "a,b,near,3,0.9,1\n",
        "left,right\na,b\n",
        "score,id1,id2\n0.5,a,b\n",
        "\ufeffA,B\r\na,b\r\n\r\n",
        '"x ","y"\n"a","b"\n',
        "n,source,target\n1,a,b\n",
        ",this,that\n0,a,b\n",
        "left,right,similarity\na,b\n",
        '{"left": "a", "right": "b", "similarity": null}\n',
        "\n" * 2 + "left,right\na,b",
    ],
)
def test_tables_of_many_tools(tmp_path: Path, text: str) -> None:
    assert listed(tmp_path, text) == [("a", "b")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("one\na\n", "two columns of ids"),
        ("left;right\na;b\n", "separated by commas"),
        ("cluster,id,role,of,relation,distance,similarity\n1,a,kept,,,,\n", "not a table of pairs"),
        ("id,fingerprint\na,0x0\n", "not a table of pairs"),
        ("left,right\na,b,c\n", "line 2: 3 cells, but 2 columns"),
        ("left,right\na,b\na,\n", "line 3: a pair needs two ids"),
        ("left,right\na\n", "line 2: a pair needs two ids"),
        ('left,right\n"a\n\nc",d\n"a"b,c\n', "line 5: not CSV"),
        ('left,right\n"a,b\n', "line 2: not CSV"),
        ("left,right\n" + "a" * 200_000 + ",b\n", "line 2: not CSV"),
        ('{"left": "a"\n', "line 1: not JSON"),
        ('{"left": "a", "right": "b"}\n[]\n', "line 2: not a JSON object"),
        ('{"left": "a", "right": "b"}\n{"left": "a", "rihgt": "b"}\n', "line 2: field 'rihgt'"),
        ('{"left": "a", "right": ["b"]}\n', "line 1: neither text nor number"),
        ('{"left": ' + "[" * 100_000, "line 1: not JSON"),
        ("left,right\na,b\n".encode("utf-16"), "neither CSV nor JSON lines"),
        (b"PK\x03\x04\x14\x00\x08\x00", "neither CSV nor JSON lines"),
    ],
)
def test_what_is_no_table_of_pairs(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(NeardupError) as error:
        listed(tmp_path, text)
    assert message in str(error.value)
    assert not isinstance(error.value, UsageError)


def test_min_similarity_filters_and_needs_the_column(tmp_path: Path) -> None:
    text = "left,right,similarity\na,b,0.9\na,c,0.8\nb,c,0.7999\n"
    assert listed(tmp_path, text, 0.8) == [("a", "b"), ("a", "c")]
    with pytest.raises(UsageError, match="no column similarity"):
        listed(tmp_path, "left,right\na,b\n", 0.8)
    with pytest.raises(UsageError, match="line 2: no similarity"):
        listed(tmp_path, "left,right,similarity\na,b,\n", 0.8)
    with pytest.raises(NeardupError, match="line 2: a similarity is a number from 0 to 1"):
        listed(tmp_path, "left,right,similarity\na,b,90%\n", 0.8)
    with pytest.raises(UsageError, match="0 to 1"):
        listed(tmp_path, text, 80)


def test_labels_of_every_kind(tmp_path: Path) -> None:
    numbers = labelled(tmp_path, "id1,id2,jaccard\na,b,0.9\nc,d,\n")
    assert numbers[("a", "b")] == 0.9
    assert math.isnan(numbers["c", "d"])
    words = labelled(
        tmp_path,
        "left,right,similarity,label\na,b,0.1,Duplicate\na,c,1,not\na,d,,unsure \na,e,1,\n"
        "b,c,,1\nb,d,,FALSE\n",
    )
    assert [value for value in words.values() if value == value] == [1, 0, 1, 0]
    assert len(words) == 6
    assert labelled(tmp_path, "left,right\nb,a\n") == {("b", "a"): 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,label\nx,y,yes\nx,z,maybe\n", "labels: line 3: unknown label 'maybe'"),
        ("a,b,score\nx,y,85\n", "line 2: a similarity is a number from 0 to 1, not '85'"),
        ("a,b,score\nx,y,nan\n", "not 'nan'"),
        ("a,b,score\nx,y,0.9\ny,x,0.4\n", "line 3: y, x had another label before: 0.9, now 0.4"),
        ("a,b,label\nx,y,\ny,x,not\n", "another label before: none, now not"),
    ],
)
def test_labels_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(NeardupError) as error:
        labelled(tmp_path, text)
    assert message in str(error.value)


def test_results_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    """Awkward ids, as CSV, for a spreadsheet and as JSON lines."""
    folder = tmp_path / "docs"
    folder.mkdir()
    names = [
        "a,b",
        'q"q',
        "new\nline",
        "cr\rcr",
        " x ",
        "=1+1",
        "-rf",
        "'quoted'",
        "caf\udce9",
        "中",
    ]
    for name in names:
        (folder / name).write_text("the same few words in every file of this folder")
    for out, options in (("p.csv", ()), ("s.csv", ("--spreadsheet",)), ("p.jsonl", ())):
        run("scan", folder, "-q", "--all-pairs", "-o", tmp_path / out, *options)
        table = listed_pairs(out, read_rows(str(tmp_path / out)))
        assert table.ids == set(names)
        assert len(table.pairs) == len(table.identical) == 45


# The command.


@pytest.fixture
def scanned(tmp_path: Path) -> Path:
    run("scan", EXAMPLES / "docs", "-q", "-o", tmp_path / "pairs.csv")
    return tmp_path


def cells(text: str) -> dict[str, list[str]]:
    """The table of scores: the cells of each row by its name."""
    lines = text.split("\n\n")[0].splitlines()
    return {line[:19].strip(): line[19:].split() for line in lines if line[0] != " "}


def test_the_examples_are_found(scanned: Path) -> None:
    expected = EXAMPLES / "expected_pairs.csv"
    done = run("eval", scanned / "pairs.csv", expected)
    assert done.stderr == ""
    rows = cells(done.stdout)
    assert rows["Pairs found"] == ["14", "15"]
    assert rows["Recall"] == ["0.9333", "1.0000"]
    assert rows["Precision"] == ["1.0000", "1.0000"]
    assert "missed pair" not in done.stdout
    run("scan", EXAMPLES / "docs", "-q", "--all-pairs", "-o", scanned / "all.csv")
    rows = cells(run("eval", scanned / "all.csv", expected).stdout)
    assert rows["F1"] == ["1.0000"]
    with open(scanned / "pairs.csv") as file:
        assert run("eval", "-", expected, stdin=file.read()).stdout == done.stdout


def test_from_python_with_rows_of_a_scan() -> None:
    result = neardup.scan(EXAMPLES / "docs")
    pairs = [(row.left, row.right) for row in result]
    exact = [(row.left, row.right) for row in result if row.relation == "exact"]
    labels = labelled_pairs("", read_rows(str(EXAMPLES / "expected_pairs.csv"))).similarity
    assert evaluate(pairs, labels).missed == 1
    assert evaluate(pairs, labels, exact).f1 == 1
    assert evaluate(pairs, labels, exact).pairs == result.total_pairs


def test_wrong_pairs_are_shown_with_their_labels(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("left,right\n" + "".join(f"a,x{i}\n" for i in range(12)))
    (tmp_path / "l.csv").write_text("id1,id2,jaccard\nx0,a,0.31\nx1,a,0.62\nb,a,0.93\nx2,a,0.8\n")
    done = run("eval", "p.csv", "l.csv", "--show", 2, cwd=tmp_path)
    rows = cells(done.stdout)
    assert (rows["True"], rows["False"], rows["Missed"]) == (["1"], ["10"], ["1"])
    assert rows["Ignored"] == ["1"]
    assert "10 false pairs\n a  x0               0.31\n a  x3  not in the labels" in done.stdout
    assert "and 8 more" in done.stdout
    assert "1 missed pair\n b  a  0.93\n" in done.stdout
    assert "false pair" not in run("eval", "p.csv", "l.csv", "--show=0", cwd=tmp_path).stdout
    stricter = run("eval", "p.csv", "l.csv", "--positive=0.6", "--negative=0.3", cwd=tmp_path)
    assert cells(stricter.stdout)["True"] == ["2"]


def test_nearly_all_is_not_all(tmp_path: Path) -> None:
    pairs = "left,right\n" + "".join(f"a,{i}\n" for i in range(30_000))
    (tmp_path / "p.csv").write_text(pairs + "a,b\n")
    (tmp_path / "l.csv").write_text(pairs)
    rows = cells(run("eval", "p.csv", "l.csv", cwd=tmp_path).stdout)
    assert rows["Precision"] == ["0.9999"]
    assert rows["Recall"] == ["1.0000"]


def test_what_was_read_otherwise_than_expected_is_said(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("one,two\na,b\nb,a\nc,c\n")
    (tmp_path / "l.csv").write_text("left,right\ndocs/a,docs/b\n")
    done = run("eval", "p.csv", "l.csv", cwd=tmp_path)
    assert done.stderr.splitlines() == [
        "neardup: p.csv: ids are read from its columns 'one' and 'two'",
        "neardup: p.csv: left out pairs of a document with itself: 1",
        "neardup: p.csv: pairs listed again, which count once: 1",
        "neardup: no id of the labels occurs in the result: are they written the same way? "
        "'docs/a' in the labels, 'a' in the result",
    ]
    assert cells(done.stdout)["Recall"] == ["0.0000"]


def test_labels_without_the_pairs_that_follow_are_pointed_out(scanned: Path) -> None:
    """A result taken for labels: the pair that follows from it is not among them."""
    done = run("eval", "pairs.csv", "pairs.csv", cwd=scanned)
    assert cells(done.stdout)["False"] == ["0", "1"]
    assert len(done.stderr.splitlines()) == 1
    assert "pairs that follow from its identical texts" in done.stderr
    assert "count as negative: 1 (scan --all-pairs lists them)" in done.stderr


def test_no_pairs_at_all(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(HEADER)
    (tmp_path / "p.jsonl").write_text("")
    for name in ("p.csv", "p.jsonl"):
        for option in ("--show=1", "--min-similarity=0.9"):
            rows = cells(run("eval", name, name, option, cwd=tmp_path).stdout)
            assert (rows["Pairs found"], rows["Precision"], rows["F1"]) == (["0"], ["–"], ["–"])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nope.csv", "l.csv"], 2, "nope.csv: no such file"),
        (["p.csv", "nope.csv"], 2, "nope.csv: no such file"),
        (["p.csv", "."], 3, ".: is a directory"),
        (["-", "-"], 2, "only be one"),
        (["p.csv", "l.csv", "--positive", "0.4"], 2, "from 0 to 1"),
        (["p.csv", "l.csv", "--min-similarity", "0.4"], 2, "no column similarity"),
        (["p.csv", "l.csv", "--min-similarity", "nan"], 2, "from 0 to 1"),
        (["p.csv", "l.csv", "--show=-1"], 2, "--show"),
        (["p.csv", "bad.csv"], 3, "bad.csv: line 3: unknown label 'perhaps'"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    (tmp_path / "p.csv").write_text("left,right\na,b\n")
    (tmp_path / "l.csv").write_text("left,right\na,b\n")
    (tmp_path / "bad.csv").write_text("left,right,label\na,b,yes\na,c,perhaps\n")
    done = run("eval", *arguments, code=code, cwd=tmp_path)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr


def test_json_ids_that_are_numbers(tmp_path: Path) -> None:
    lines = [json.dumps({"id1": 1, "id2": 2, "score": 0.9}), json.dumps({"id1": 3, "id2": "4"})]
    (tmp_path / "p.jsonl").write_text("\n".join(lines))
    (tmp_path / "l.csv").write_text("left,right\n2,1\n4,3\n")
    assert cells(run("eval", "p.jsonl", "l.csv", cwd=tmp_path).stdout)["F1"] == ["1.0000"]
