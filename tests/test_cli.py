"""The command line: output, messages and exit codes, as a user meets them."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden" / "classic_simhash.json"
WORDS = ["river", "ferry", "island", "market", "letter", "harbour", "bridge", "garden", "winter"]


def neardup(
    *arguments: object,
    code: int = 0,
    cwd: Path | None = None,
    stdin: str = "",
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run neardup in a process of its own; its exit code must be as expected, and there must be no
    traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "neardup", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        input=stdin,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Two near-duplicates, a copy, and a document of its own."""
    folder = tmp_path / "docs"
    folder.mkdir()
    words = random.Random(1).choices([a + b for a in WORDS for b in WORDS], k=150)
    (folder / "a.txt").write_text(" ".join(words))
    (folder / "b.txt").write_text(" ".join([*words[:-1], "changed"]))
    (folder / "copy of a.txt").write_text(" ".join(words))
    (folder / "c.txt").write_text(" ".join(random.Random(2).choices(WORDS, k=150)))
    return folder


def test_scan_writes_pairs_clusters_and_a_summary(docs: Path, tmp_path: Path) -> None:
    out, clusters = tmp_path / "pairs.csv", tmp_path / "clusters.csv"
    done = neardup("scan", docs, "-o", out, "--clusters", clusters)
    assert done.stdout == ""
    pairs = table(out.read_text())
    assert [(p["left"], p["right"], p["relation"]) for p in pairs] == [
        ("a.txt", "b.txt", "near"),
        ("a.txt", "copy of a.txt", "exact"),
    ]
    assert [c["role"] for c in table(clusters.read_text())] == ["kept", "redundant", "redundant"]
    for part in (
        "4 documents read",
        "exact",
        "1 confirmed",
        "3 pairs; 2 listed",
        "MB/s",
        "1 cluster with 3 documents: 2 redundant, 2 left",
        f"wrote {out}",
    ):
        assert part in done.stderr


def test_without_output_the_pairs_go_to_standard_output(docs: Path) -> None:
    done = neardup("scan", docs)
    assert len(table(done.stdout)) == 2
    assert "Documents" in done.stderr
    assert neardup("scan", docs, "-q", "-o", "-").stdout == done.stdout
    assert neardup("scan", docs, "-q").stderr == ""


def test_show_draws_the_clusters(docs: Path, tmp_path: Path) -> None:
    done = neardup("scan", docs, "-o", tmp_path / "p.csv", "--show")
    assert "Cluster 1  3 documents" in done.stdout
    assert "○  copy of a.txt  exact  1.0000" in done.stdout
    to_stderr = neardup("scan", docs, "--show")
    assert to_stderr.stdout.startswith("left,right")
    assert "Cluster 1" in to_stderr.stderr


def test_json_lines_by_the_name_of_the_output(docs: Path, tmp_path: Path) -> None:
    neardup("scan", docs, "-q", "-o", tmp_path / "p.jsonl")
    records = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [r["relation"] for r in records] == ["near", "exact"]


def test_check_and_strict_set_the_exit_code(docs: Path) -> None:
    neardup("scan", docs, "-q", "--check", code=1)
    neardup("scan", docs / "c.txt", "-q", "--check", code=0)
    (docs / "binary").write_bytes(bytes(100))
    neardup("scan", docs, "-q", code=0)
    neardup("scan", docs, "-q", "--strict", code=3)


@pytest.mark.parametrize("value", ["-1", "65", "1000", "0.9", "90%", "abc", ""])
def test_a_threshold_out_of_range_is_one_clear_line(docs: Path, tmp_path: Path, value: str) -> None:
    out = tmp_path / "p.csv"
    done = neardup("scan", docs, "-o", out, f"--threshold={value}", code=2)
    assert len(done.stderr.splitlines()) == 1
    assert "whole number of bits from 0 to 64" in done.stderr
    assert ("--min-similarity" in done.stderr) == (value in ("0.9", "90%"))
    assert not out.exists()


def test_a_senseless_threshold_is_warned_about(docs: Path) -> None:
    assert "mostly chance" in neardup("scan", docs, "-k", 40).stderr
    assert "mostly chance" not in neardup("scan", docs, "-k", 16).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sketch", "nope"], "no sketch 'nope'"),
        (["--min-similarity", "3"], "from 0 to 1"),
        (["--window", "0"], "at least 1"),
        (["--rotations", "65"], "1 to 64"),
        (["-o", "no/such/folder.csv"], "cannot write no/such/folder.csv"),
        (["-o", "."], "is a directory"),
        (["-o", "x.csv", "--clusters", "./x.csv"], "same name"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(docs: Path, arguments: list[str], message: str) -> None:
    done = neardup("scan", docs, *arguments, code=2, cwd=docs.parent)
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
    assert sorted(os.listdir(docs.parent)) == ["docs"]


def test_paths_that_are_missing(docs: Path, tmp_path: Path) -> None:
    done = neardup("scan", tmp_path / "nope", code=2)
    assert done.stderr.strip().endswith("nope: no such file or directory")
    out = tmp_path / "p.csv"
    done = neardup("scan", docs, tmp_path / "nope", "-o", out, code=3)
    assert "nope: no such file or directory" in done.stderr
    assert len(table(out.read_text())) == 2
    assert "nope" in neardup("scan", docs, tmp_path / "nope", "-q", "-o", out, code=3).stderr
    assert "standard input" in neardup("scan", "-", code=2).stderr


def test_nothing_to_read_is_an_error_and_one_document_is_not(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = neardup("scan", tmp_path / "empty", "-o", tmp_path / "p.csv", code=3)
    assert "no readable document" in done.stderr
    assert not (tmp_path / "p.csv").exists()
    (tmp_path / "one.txt").write_text("only one document, of a few words")
    done = neardup("scan", tmp_path / "one.txt", "-o", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == "left,right,relation,distance,similarity,cluster\n"
    assert "1 document read" in done.stderr


def test_skipped_documents_are_named_and_listed(docs: Path, tmp_path: Path) -> None:
    for number in range(5):
        (docs / f"empty{number}.txt").write_text("")
    (docs / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    done = neardup("scan", docs, "-o", tmp_path / "p.csv", "--skipped", tmp_path / "s.csv")
    assert "5 no usable text: empty0.txt, empty1.txt, empty2.txt and 2 more" in done.stderr
    assert "1 unsupported format: picture.png" in done.stderr
    assert len(table((tmp_path / "s.csv").read_text())) == 6
    verbose = neardup("scan", docs, "-v", "-o", tmp_path / "p.csv").stderr
    assert "empty4.txt" in verbose


def test_an_output_never_replaces_an_input(docs: Path) -> None:
    """As when the name after -o is forgotten: scan -o a.txt b.txt c.txt."""
    before = (docs / "a.txt").read_text()
    for inputs in (["a.txt", "b.txt"], ["./a.txt"]):
        done = neardup("scan", *inputs, "-o", "a.txt", code=2, cwd=docs)
        assert "one of the documents" in done.stderr
    # Or scan . -o *.txt
    done = neardup("scan", ".", "-o", "a.txt", code=2, cwd=docs)
    assert "one of the documents" in done.stderr
    assert (docs / "a.txt").read_text() == before


def test_closed_and_full_streams_end_in_one_line(docs: Path) -> None:
    command = f"{sys.executable} -m neardup"
    for arguments, code in (
        ("compare a.txt b.txt > /dev/full", 3),
        ("scan . > /dev/full", 3),
        ("scan nope 2> /dev/full", 2),
        ("scan . -o p.csv 2>&-", 0),
        ("scan . >&-", 3),
        ("compare a.txt b.txt >&-", 3),
        ("compare - b.txt <&-", 2),
        ("scan . -o /dev/stdout | head -n 1", 0),
        ("compare a.txt b.txt | true", 0),
        ("scan . -o p.csv --show --check | true", 1),
        ("compare a.txt /dev/fd/3 3< b.txt", 0),
        (f"cat a.txt | {command} compare /dev/stdin b.txt", 0),
    ):
        script = arguments if "cat" in arguments else f"{command} {arguments}"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", script], cwd=docs, capture_output=True, text=True
        )
        assert done.returncode == code, (arguments, done.stderr)
        assert "Traceback" not in done.stderr, arguments
        assert "Exception ignored" not in done.stderr, arguments


def test_a_named_file_of_another_format_is_skipped_like_any_other(docs: Path) -> None:
    (docs / "scan.pdf").write_bytes(b"%PDF-1.4")
    done = neardup("scan", docs / "a.txt", docs / "scan.pdf")
    assert "1 unsupported format" in done.stderr


def test_own_output_in_the_scanned_folder_is_not_read(docs: Path) -> None:
    arguments = ("scan", docs, "-o", docs / "pairs.csv", "--clusters", docs / "clusters.csv")
    neardup(*arguments)
    first = (docs / "pairs.csv").read_bytes()
    done = neardup(*arguments)
    assert (docs / "pairs.csv").read_bytes() == first
    assert "outputs of this run left out: 2" in done.stderr


def test_names_like_options_are_files(docs: Path, tmp_path: Path) -> None:
    text = (docs / "a.txt").read_text()
    for name in ("-rf.txt", "--help.txt", "-", "@list.txt"):
        (tmp_path / name).write_text(text)
    done = neardup("scan", "-q", "--", "-rf.txt", "--help.txt", "-", "@list.txt", cwd=tmp_path)
    assert len(table(done.stdout)) == 3


def test_locale_and_home_do_not_matter(docs: Path) -> None:
    (docs / "café.txt").write_text("Ça coûte très cher à Zürich. " + (docs / "a.txt").read_text())
    expected = neardup("scan", docs, "-q").stdout
    assert "café.txt" in expected
    for env in (
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"HOME": "/nonexistent", "TMPDIR": "/nonexistent", "TERM": ""},
    ):
        assert neardup("scan", docs, "-q", env=env).stdout == expected


def test_window_mode_is_labelled_approximate(docs: Path) -> None:
    done = neardup("scan", docs, "--rotations", 8, "--window", 2)
    assert "approximate" in done.stderr
    assert len(table(done.stdout)) == 2


def test_a_closed_pipe_is_a_quiet_end(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "".join(json.dumps({"id": i, "text": "the same"}) + "\n" for i in range(50_000))
    )
    for unbuffered in ("", "1"):
        run = subprocess.Popen(
            [
                sys.executable,
                *("-m", "neardup", "scan", "rows.jsonl", "-q"),
                *("--check", "--clusters", "clusters.csv"),
            ],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.readline().startswith(b"left,")
        run.stdout.close()
        assert run.stderr.read() == b""
        run.stderr.close()
        # The rest of the work is done all the same.
        assert run.wait() == 1
        assert len(table((tmp_path / "clusters.csv").read_text())) == 50_000
        (tmp_path / "clusters.csv").unlink()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupt_leaves_nothing_half_written(
    docs: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """The run is stopped in the middle of writing: the output is a FIFO nobody empties."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "pairs.csv").write_text("older result")
    os.mkfifo(out / "clusters.csv")
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "".join(json.dumps({"id": i, "text": "the same"}) + "\n" for i in range(20_000))
    )
    run = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "neardup",
            "scan",
            str(rows),
            "--clusters",
            str(out / "clusters.csv"),
            "-o",
            str(out / "pairs.csv"),
        ],
        stderr=subprocess.PIPE,
    )
    fifo = os.open(out / "clusters.csv", os.O_RDONLY | os.O_NONBLOCK)
    try:
        beginning = b""
        while b"\n" not in beginning and run.poll() is None:
            with suppress(BlockingIOError):
                beginning += os.read(fifo, 100)
        assert beginning.startswith(b"cluster,id,role")
        run.send_signal(number)
        while run.poll() is None:  # let it write what it still has in its buffers
            with suppress(BlockingIOError):
                os.read(fifo, 1 << 16)
        assert run.returncode == code
    finally:
        os.close(fifo)
        run.kill()
    assert run.stderr is not None
    message = run.stderr.read().decode()
    run.stderr.close()
    assert "Traceback" not in message
    assert sorted(os.listdir(out)) == ["clusters.csv", "pairs.csv"]
    assert (out / "pairs.csv").read_text() == "older result"


def test_compare_gives_the_textbook_numbers(tmp_path: Path) -> None:
    golden = json.loads(GOLDEN.read_text())
    pair = golden["pairs"][0]
    texts = [golden["documents"][pair[side]] for side in ("a", "b")]
    for name, text in zip("ab", texts, strict=True):
        (tmp_path / name).write_text(text["text"])
    done = neardup("compare", "a", "b", "--sketch", "classic", cwd=tmp_path)
    for text in texts:
        assert text["fingerprint"] in done.stdout
        assert f"{int(text['fingerprint'], 16):064b}" in done.stdout.replace(" ", "")
    assert f"{pair['hamming']} of 64 bits" in done.stdout
    assert f"{pair['similarity']} %" in done.stdout
    assert "very similar" in done.stdout
    marks = next(
        line for line in done.stdout.splitlines() if line.strip(" ^") == "" and "^" in line
    )
    assert marks.count("^") == pair["hamming"]
    assert "-The quick brown fox jumps over the lazy dog" in done.stdout
    assert "+The quick brown fox leaps over the lazy dog" in done.stdout


def test_compare_reads_standard_input_once(docs: Path) -> None:
    text = (docs / "a.txt").read_text()
    done = neardup("compare", docs / "a.txt", "-", stdin=text)
    assert "0 of 64 bits" in done.stdout
    assert "the texts are identical" in done.stdout
    assert "only be one" in neardup("compare", "-", "-", code=2).stderr
    assert "no such file" in neardup("compare", "nope", docs / "a.txt", code=2).stderr
    (docs / "binary").write_bytes(bytes(50))
    assert "binary" in neardup("compare", docs / "binary", docs / "a.txt", code=3).stderr


def test_fingerprint_prints_id_and_hex(docs: Path) -> None:
    done = neardup("fingerprint", docs)
    rows = table(done.stdout)
    assert [row["id"] for row in rows] == ["a.txt", "b.txt", "c.txt", "copy of a.txt"]
    assert all(len(row["fingerprint"]) == 18 and int(row["fingerprint"], 16) for row in rows)
    assert rows[0]["fingerprint"] == rows[3]["fingerprint"]


def test_help_and_version_are_there() -> None:
    assert "scan" in neardup("--help").stdout
    assert "--threshold" in neardup("scan", "--help").stdout
    assert neardup("--version").stdout.startswith("neardup ")
    assert "Missing argument" in neardup("scan", code=2).stderr
