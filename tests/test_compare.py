"""Two texts side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neardup.compare import compare, differing_lines, verdict

GOLDEN = json.loads((Path(__file__).parent / "golden" / "classic_simhash.json").read_text())


@pytest.mark.parametrize("pair", GOLDEN["pairs"])
def test_golden_pairs(pair: dict[str, int]) -> None:
    left, right = GOLDEN["documents"][pair["a"]], GOLDEN["documents"][pair["b"]]
    result = compare(left["text"], right["text"], "classic")
    assert result.distance == pair["hamming"]
    assert result.similarity == pair["similarity"]
    for side, golden in ((result.left, left), (result.right, right)):
        assert side.bits == int(golden["fingerprint"], 16)
        for what in ("characters", "words", "features"):
            assert getattr(side, what) == golden[what]


def test_verdicts_change_where_they_should() -> None:
    names = [verdict(distance) for distance in range(65)]
    assert names[:4] == ["near-identical"] * 4
    assert names[4:11] == ["very similar"] * 7
    assert names[11:21] == ["related"] * 10
    assert set(names[21:]) == {"different"}


def test_texts_without_words_are_not_judged() -> None:
    result = compare("!!!", "???")
    assert result.distance == 0
    assert result.jaccard == 0
    assert "no usable text" in result.verdict


def test_lines_that_differ() -> None:
    left, right = "one\ntwo\nthree\n", "one\n2\nthree\nfour\n"
    assert [line for line in differing_lines(left, right) if line[0] != "@"] == [
        "-two",
        "+2",
        "+four",
    ]
    assert list(differing_lines(left, left)) == []
