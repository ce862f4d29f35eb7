"""Output files: they can be read back, and appear whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.errors import NeardupError, UsageError
from neardup.report import pairs as report
from neardup.report.output import Output
from neardup.report.terminal import printable
from neardup.result import Row
from neardup.tables import Ids, Pairs

AWKWARD = [
    "comma,comma",
    'quote"quote',
    "new\nline",
    "carriage\rreturn",
    "crlf\r\nend",
    "tab\there",
    " leading",
    "trailing ",
    "semi;colon",
    "back\\slash",
    "=1+1",
    "-rf",
    "@cmd",
    "caf\udce9",  # a byte that is not UTF-8
    "cafe\u0301",
    "中文",
]
TEXT = "the ferry leaves at nine and comes back at noon with the mail from the island post office"


def rows(path: Path) -> list[list[str]]:
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return list(csv.reader(file))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=1))
def test_any_cell_can_be_read_back(cells: list[str]) -> None:
    file = io.StringIO()
    report.write_csv(file, ("a",) * len(cells), [cells])
    file.seek(0)
    expected = [] if cells == [""] else cells
    assert list(csv.reader(io.StringIO(file.getvalue(), newline="")))[1] == expected


def test_awkward_names_survive_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in AWKWARD:
        (folder / name).write_text(TEXT)
    result = neardup.scan(folder)
    report.write_pairs(result, Output(str(tmp_path / "pairs.csv")))
    report.write_pairs(result, Output(str(tmp_path / "pairs.jsonl")))
    report.write_clusters(result, Output(str(tmp_path / "clusters.csv")))
    table = rows(tmp_path / "pairs.csv")
    assert table[0] == ["left", "right", "relation", "distance", "similarity", "cluster"]
    assert len(table) == len(AWKWARD)
    assert {name for row in table[1:] for name in row[:2]} == set(AWKWARD)
    records = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert [[r["left"], r["right"]] for r in records] == [row[:2] for row in table[1:]]
    assert sorted(row[1] for row in rows(tmp_path / "clusters.csv")[1:]) == sorted(AWKWARD)
    assert all((folder / row[0]).read_text() == TEXT for row in table[1:])


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_pairs_are_written_in_parts(
    size: int, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [f"word{i}" for i in range(60)]
    texts = [" ".join([*words, f"number{i % 9}"]) for i in range(12)]
    ids = ["plain", 'with "quotes"', "a,b", "\udcff", "new\nline", *map(str, range(7))]
    result = neardup.find(texts, ids, workers=workers)
    expected = [
        (
            row.left,
            row.right,
            row.relation,
            str(row.distance),
            f"{report.floor(row.similarity or 0):.4f}",
            str(row.cluster),
        )
        for row in result
    ]
    assert len(expected) == len(result) > 30
    monkeypatch.setattr("neardup.result._ROWS_AT_ONCE", size)
    report.write_pairs(result, Output(str(tmp_path / "pairs.csv")))
    with (tmp_path / "pairs.csv").open(
        encoding="utf-8", errors="surrogateescape", newline=""
    ) as file:
        assert list(map(tuple, csv.reader(file)))[1:] == expected


def test_similarity_is_never_rounded_up(tmp_path: Path) -> None:
    assert report.floor(1.0) == 1.0
    assert report.floor(0.99999999) == 0.9999
    assert report.floor(0.8) == 0.8
    assert report.floor(0.79999995) == 0.7999
    assert all(report.floor(n / 10_000) == n / 10_000 for n in range(10_001))
    assert report.floor(0.79989) == 0.7998


def test_columns_hold_what_they_say(tmp_path: Path) -> None:
    words = [f"word{i}" for i in range(100)]
    texts = [" ".join(words), " ".join([*words[:-1], "other"]), " ".join(words), "alone"]
    result = neardup.find(texts, ["a", "bb", "c", "d"])
    report.write_pairs(result, Output(str(tmp_path / "p.csv")))
    report.write_clusters(result, Output(str(tmp_path / "c.csv")))
    report.write_skipped(result, Output(str(tmp_path / "s.csv")))
    distance = str(
        (int(result.fingerprints.bits[0]) ^ int(result.fingerprints.bits[1])).bit_count()
    )
    jaccard = f"{int(97 / 99 * 10_000) / 10_000:.4f}"
    assert rows(tmp_path / "p.csv")[1:] == [
        ["a", "bb", "near", distance, jaccard, "1"],
        ["a", "c", "exact", "0", "1.0000", "1"],
    ]
    assert rows(tmp_path / "c.csv")[1:] == [
        ["1", "a", "kept", "", "", "", ""],
        ["1", "bb", "redundant", "a", "near", distance, jaccard],
        ["1", "c", "redundant", "a", "exact", "0", "1.0000"],
    ]
    assert rows(tmp_path / "s.csv") == [["id", "stage", "reason"]]
    unverified = neardup.find(texts, min_similarity=0)
    report.write_pairs(unverified, Output(str(tmp_path / "u.csv")))
    assert rows(tmp_path / "u.csv")[1][4] == ""


def test_a_spreadsheet_gets_no_formulas_and_a_mark(tmp_path: Path) -> None:
    result = neardup.find([TEXT] * 3, ["=1+1", "\t=2", "plain"])
    path = tmp_path / "p.csv"
    report.write_pairs(result, Output(str(path)), spreadsheet=True)
    assert path.read_bytes().startswith(b"\xef\xbb\xbfleft,")
    names = {name for row in rows(path)[1:] for name in row[:2]}
    assert names == {"'=1+1", "'\t=2", "plain"}


def test_output_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("older result")
    output = Output(str(path))
    assert os.listdir(tmp_path) == ["out.csv"]

    def interrupted() -> None:
        with output.open() as file:
            file.write("half")
            file.flush()
            assert len(os.listdir(tmp_path)) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert os.listdir(tmp_path) == ["out.csv"]
    assert path.read_text() == "older result"
    with output.open() as file:
        file.write("new")
    assert os.listdir(tmp_path) == ["out.csv"]
    assert path.read_text() == "new"


def test_the_mode_of_an_older_result_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("older")
    path.chmod(0o640)
    with Output(str(path)).open() as file:
        file.write("new")
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link.csv").symlink_to("target/real.csv")
    with Output(str(tmp_path / "link.csv")).open() as file:
        file.write("x")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "target" / "real.csv").read_text() == "x"


def test_what_cannot_be_written_is_said_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or directory"):
        Output(str(tmp_path / "no" / "out.csv"))
    with pytest.raises(UsageError, match="is a directory"):
        Output(str(tmp_path))
    with pytest.raises(UsageError, match="cannot write"):
        Output("nul\0byte")
    if os.path.exists("/dev/full"):
        with (
            pytest.raises(NeardupError, match="no space left"),
            Output("/dev/full").open() as file,
        ):
            file.write("x")


def test_names_are_shown_on_one_line() -> None:
    assert printable("new\nline\x1b[31m").plain == "new\\nline\\x1b[31m"
    assert printable("caf\udce9").plain == "caf\\xe9"
    assert printable("[bold]中文").plain == "[bold]中文"


@pytest.mark.parametrize("spreadsheet", [False, True])
def test_pairs_are_written_as_cell_by_cell(tmp_path: Path, spreadsheet: bool) -> None:
    """The quick way of writing many pairs gives the bytes of the slow one."""
    count = 400
    rng = np.random.default_rng(1)
    names = ["a", "b, c", 'say "x"', "=cmd()", "line\nbreak", " blank", "é", "x" * 300]
    result = neardup.find([f"text {number}" for number in range(count)], min_similarity=0)
    similarity = rng.choice([0.57, 4 / 5, 0.99999, 1.0, np.nan, 0.12345, 1 / 3, 0.9999], count - 1)
    pairs = Pairs(
        np.arange(count - 1),
        np.arange(1, count),
        rng.integers(0, 65, count - 1).astype(np.uint8),
        similarity,
        rng.random(count - 1) < 0.5,
    )
    ids = Ids(f"{names[number % len(names)]}{number}" for number in range(count))
    result = replace(result, ids=ids, pairs=pairs)
    report.write_pairs(result, Output(str(tmp_path / "pairs.csv")), spreadsheet)
    encoding = "utf-8-sig" if spreadsheet else "utf-8"
    with open(tmp_path / "slow.csv", "w", encoding=encoding, newline="") as file:
        report.write_csv(file, Row._fields, result, spreadsheet)
    assert (tmp_path / "pairs.csv").read_bytes() == (tmp_path / "slow.csv").read_bytes()
    assert (tmp_path / "pairs.csv").read_text(encoding).count(",near,") > 100
