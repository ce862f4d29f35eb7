"""Pairs, clusters and skipped documents as CSV or JSON lines.

The columns and their order are part of the interface:

- pairs: left, right, relation, distance, similarity, cluster
- clusters: cluster, id, role, of, relation, distance, similarity
- skipped: id, stage, reason
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from neardup.errors import NeardupError, UsageError
from neardup.report.output import Output
from neardup.result import Row, ScanResult
from neardup.tables import FloatArray, IntArray
from neardup.workers import in_order

CLUSTERS = ("cluster", "id", "role", "of", "relation", "distance", "similarity")
SKIPPED = ("id", "stage", "reason")

Value = str | int | float | None

_NEEDS_QUOTES = re.compile(r'[,"\r\n]|^\s|\s$')
_FORMULA = re.compile(r"^[=+\-@\t\r]")
_JSON_LINES = (".jsonl", ".ndjson")
STDIN = "-"


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
    if output.path.lower().endswith(_JSON_LINES):
        _write(Row._fields, result, output, spreadsheet)
        return
    with output.open("utf-8-sig" if spreadsheet else "utf-8") as file:
        file.write(",".join(Row._fields) + "\n")
        clusters = np.array([f"{number}\n" for number in range(len(result.clusters) + 1)], object)
        rows = partial(_written, result, clusters, spreadsheet)
        for text in in_order(rows, result.parts(), result.settings.workers):
            file.write(text)


def _written(result: ScanResult, clusters: NDArray[np.object_], spreadsheet: bool, low: int) -> str:
    """Return a part of the pairs as CSV. There can be millions; written cell by cell they would
    take longer than to be found."""
    part, ids, left, right = result.named(low)
    names = np.array([_cell(id, spreadsheet) for id in ids], object)
    cells = np.empty((len(part), 5), object)
    cells[:, 0] = (names + ",")[left]
    cells[:, 1] = names[right]
    cells[:, 2] = _RELATIONS[part.identical.astype(np.int64), part.distance]
    cells[:, 3] = _SIMILARITIES[_ten_thousandths(part.similarity)]
    cells[:, 4] = clusters[result.clusters.label[part.left]]
    return "".join(cells.ravel().tolist())


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
    if output.path.lower().endswith(_JSON_LINES):
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


# Cells with their commas, by number: of Pairs.identical and Pairs.distance, and of
# _ten_thousandths.
_RELATIONS = np.array(
    [[f",{word},{bits}," for bits in range(65)] for word in ("near", "exact")], object
)
_SIMILARITIES = np.array([*(f"{part / 10_000:.4f}," for part in range(10_001)), ","], object)


def _ten_thousandths(similarity: FloatArray) -> IntArray:
    """Return 10,000 times ``floor`` of each, int64 (m,); 10,001 for NaN."""
    known = np.nan_to_num(similarity, nan=2.0)
    parts = np.minimum(np.floor(known * 10_000 + 1e-6), 9_999).astype(np.int64)
    parts[known >= 1] = 10_000
    parts[known == 2] = 10_001
    return parts


def floor(similarity: float) -> float:
    """Cut to four digits, below 1 unless it is 1. The small term is for fractions such as 57 / 100
    that become a hair less when multiplied."""
    if similarity >= 1:
        return 1.0
    return min(math.floor(similarity * 10_000 + 1e-6) / 10_000, 0.9999)


def read_rows(path: str) -> Iterator[tuple[int, list[str]]]:
    """Read a table as it is written here, or by another tool: yield the number of the line and the
    cells of each row, the column names first. ``-`` is standard input.

    Bytes that are not UTF-8 become surrogate escapes. In a file with a byte order mark the
    apostrophe before a formula is taken away again. JSON lines without a record give no column.

    Raises
    ------
    UsageError
        There is no such file.
    NeardupError
        It cannot be read; the message names the line.
    """
    stdin = path == STDIN
    name = "standard input" if stdin else path
    if stdin and sys.stdin is None:
        raise UsageError("standard input is closed")
    try:
        with open(
            sys.stdin.fileno() if stdin else path,
            encoding="utf-8",
            errors="surrogateescape",
            newline="",
            closefd=not stdin,
        ) as file:
            beginning = file.readline()
            first = beginning.removeprefix("\ufeff")
            if "\0" in first:
                raise NeardupError(f"{name}: neither CSV nor JSON lines in UTF-8")
            lines = chain([first], file)
            if path.lower().endswith(_JSON_LINES) or first.startswith("{"):
                yield from _json_rows(name, lines)
            else:
                yield from _csv_rows(name, lines, spreadsheet=first != beginning)
    except FileNotFoundError:
        raise UsageError(f"{name}: no such file or directory") from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise NeardupError(f"{name}: {reason}") from None


def _csv_rows(
    name: str, lines: Iterable[str], spreadsheet: bool
) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, strict=True)
    line, empty = 1, True
    try:
        for cells in reader:
            if spreadsheet:
                cells = [
                    cell[1:] if cell[:1] == "'" and _FORMULA.match(cell[1:]) else cell
                    for cell in cells
                ]
            if cells:
                empty = False
                yield line, cells
            line = reader.line_num + 1  # a cell can have several
    except csv.Error as error:
        raise NeardupError(f"{name}: line {line}: not CSV: {error}") from None
    if empty:
        raise NeardupError(f"{name}: empty; CSV begins with the names of its columns")


def _json_rows(name: str, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    columns: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise NeardupError(f"{name}: line {number}: not JSON: {error}") from None
        if not isinstance(record, dict):
            raise NeardupError(f"{name}: line {number}: not a JSON object")
        if not columns:
            columns = list(record)
            yield number, columns
        new = record.keys() - set(columns)
        if new:
            raise NeardupError(f"{name}: line {number}: field {min(new)!r} is not in line 1")
        yield number, [_text(name, number, record.get(column)) for column in columns]


def _text(name: str, number: int, value: object) -> str:
    """Return a value of a JSON record as CSV would have it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        raise NeardupError(f"{name}: line {number}: neither text nor number: {json.dumps(value)}")
    return json.dumps(value)
