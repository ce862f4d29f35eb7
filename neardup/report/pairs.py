"""Pairs, clusters and skipped documents as CSV or JSON lines.

The columns and their order are part of the interface:

- pairs: left, right, relation, distance, similarity, cluster
- clusters: cluster, id, role, of, relation, distance, similarity
- skipped: id, stage, reason
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TextIO

from neardup.report.output import Output
from neardup.result import Row, ScanResult

CLUSTERS = ("cluster", "id", "role", "of", "relation", "distance", "similarity")
SKIPPED = ("id", "stage", "reason")

Value = str | int | float | None

_NEEDS_QUOTES = re.compile(r'[,"\r\n]|^\s|\s$')
_FORMULA = re.compile(r"^[=+\-@\t\r]")


def is_result(path: str) -> bool:
    """Return whether a file is empty or begins like one that neardup has written."""
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        line = file.readline(1 << 16).rstrip("\n")
    try:
        columns = tuple(json.loads(line))
    except (ValueError, TypeError):
        columns = tuple(line.split(","))
    return line == "" or columns in (Row._fields, CLUSTERS, SKIPPED)


def write_pairs(result: ScanResult, output: Output, spreadsheet: bool = False) -> None:
    """Write the pairs, by ids; ``similarity`` is empty when not verified."""
    _write(Row._fields, result, output, spreadsheet)


def write_clusters(result: ScanResult, output: Output, spreadsheet: bool = False) -> None:
    """Write every document that is in a cluster. ``role`` is ``kept`` or ``redundant``; a redundant
    document names in ``of`` the kept one it is a near-duplicate of, with relation, distance and
    similarity of the two."""
    links, kept_by = result.links(), result.clusters.kept_by

    def table() -> Iterable[Sequence[Value]]:
        for number, members in enumerate(result.clusters.members(), 1):
            for row in members.tolist():
                if kept_by[row] == row:
                    yield number, result.ids[row], "kept", None, None, None, None
                    continue
                similarity = float(links.similarity[row])
                yield (
                    number,
                    result.ids[row],
                    "redundant",
                    result.ids[int(kept_by[row])],
                    "exact" if links.identical[row] else "near",
                    int(links.distance[row]),
                    None if math.isnan(similarity) else similarity,
                )

    _write(CLUSTERS, table(), output, spreadsheet)


def write_skipped(result: ScanResult, output: Output, spreadsheet: bool = False) -> None:
    """Write what took no part, with the stage it was left out at and the reason."""
    rows = ((skip.id, skip.stage, skip.reason) for skip in result.skipped)
    _write(SKIPPED, rows, output, spreadsheet)


def write_fingerprints(ids: Iterable[str], bits: Iterable[int], output: Output) -> None:
    """Write id and fingerprint of every document, as ``0x`` and 16 hexadecimal digits."""
    rows = ((id, f"0x{value:016X}") for id, value in zip(ids, bits, strict=True))
    _write(("id", "fingerprint"), rows, output, spreadsheet=False)


def _write(
    columns: Sequence[str], rows: Iterable[Sequence[Value]], output: Output, spreadsheet: bool
) -> None:
    """Write JSON lines if the name says so, else CSV: RFC 4180, but lines end with LF.

    For a spreadsheet the file begins with a byte order mark, without which Excel takes UTF-8 for
    something else, and a cell that would run as a formula gets an apostrophe in front.
    """
    if output.path.lower().endswith((".jsonl", ".ndjson")):
        with output.open() as file:
            for row in rows:
                record = {
                    name: floor(value) if isinstance(value, float) else value
                    for name, value in zip(columns, row, strict=True)
                }
                file.write(json.dumps(record) + "\n")
        return
    with output.open("utf-8-sig" if spreadsheet else "utf-8") as file:
        write_csv(file, columns, rows, spreadsheet)


def write_csv(
    file: TextIO,
    columns: Sequence[str],
    rows: Iterable[Sequence[Value]],
    spreadsheet: bool = False,
) -> None:
    """Write CSV rows. The csv module leaves a lone CR without quotes before Python 3.13."""
    file.write(",".join(columns) + "\n")
    for row in rows:
        file.write(",".join([_cell(value, spreadsheet) for value in row]) + "\n")


@lru_cache(1 << 16, typed=True)  # ids and numbers come again and again
def _cell(value: Value, spreadsheet: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{floor(value):.4f}"
    if isinstance(value, int):
        return str(value)
    if spreadsheet and _FORMULA.match(value):
        value = "'" + value
    if _NEEDS_QUOTES.search(value):
        return '"' + value.replace('"', '""') + '"'
    return value


def floor(similarity: float) -> float:
    """Cut to four digits, below 1 unless it is 1. The small term is for fractions such as 57 / 100
    that become a hair less when multiplied."""
    if similarity >= 1:
        return 1.0
    return min(math.floor(similarity * 10_000 + 1e-6) / 10_000, 0.9999)
