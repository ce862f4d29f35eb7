"""The examples do what they promise."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

import neardup

EXAMPLES = Path(__file__).parent.parent / "examples"


def expected() -> set[tuple[str, str, str]]:
    with open(EXAMPLES / "expected_pairs.csv", encoding="utf-8", newline="") as file:
        return {(row["left"], row["right"], row["relation"]) for row in csv.DictReader(file)}


def test_the_example_corpus_has_the_expected_pairs() -> None:
    result = neardup.scan(EXAMPLES / "docs", all_pairs=True)
    assert {(pair.left, pair.right, pair.relation) for pair in result} == expected()
    assert not result.skipped


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_the_example_scripts_run(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stderr == ""


def test_the_example_shell_script_runs(tmp_path: Path) -> None:
    bin = Path(sys.executable).parent
    done = subprocess.run(
        ["sh", EXAMPLES / "command_line.sh"],
        cwd=tmp_path,
        env={"PATH": f"{bin}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "pairs.csv").exists()
