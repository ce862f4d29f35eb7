"""What a person reads: clusters, a summary, two texts compared, a result held against labels."""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TextIO

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from neardup import fast
from neardup.compare import Comparison, differing_lines
from neardup.evaluate import Evaluation
from neardup.report.pairs import floor
from neardup.result import ScanResult
from neardup.settings import LARGEST_SENSIBLE_THRESHOLD, Settings

# What a screen holds. What is beyond is counted, and where it can be read is said.
SHOWN_CLUSTERS = 20
SHOWN_MEMBERS = 12
SHOWN_SKIPPED = 3
SHOWN_LINES = 200
SHOWN_CHARACTERS = 2000

# Lines of a text that difflib compares in a moment.
_LINES_TO_COMPARE = 20_000


class Screen:
    """Prints to a terminal or a file.

    rich ends the process itself when the reader of a pipe goes away; here that is an error like any
    other. Blanks that fill the last column of a table are not written.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        if file.isatty():
            self._console = Console(file=file, highlight=False)
        else:
            # Never break a long id in two when nobody watches.
            self._console = Console(file=file, highlight=False, width=10_000, no_color=True)

    def print(self, what: RenderableType = "", soft_wrap: bool = False) -> None:
        with self._console.capture() as capture:
            self._console.print(what, soft_wrap=soft_wrap)
        for line in capture.get().split("\n")[:-1]:
            self._file.write(line.rstrip() + "\n")


def printable(name: str) -> Text:
    """Return a name on one line: what a terminal cannot show is escaped."""
    if name.isprintable():
        return Text(name)
    shown = []
    for char in name:
        if char.isprintable():
            shown.append(char)
        elif 0xDC80 <= ord(char) <= 0xDCFF:  # a byte that is not UTF-8
            shown.append(f"\\x{ord(char) - 0xDC00:02x}")
        else:
            shown.append(char.encode("unicode_escape").decode("ascii"))
    return Text("".join(shown))


def show_clusters(result: ScanResult, file: TextIO, where: str) -> None:
    """Draw the clusters, the largest first; ``where`` says how to see those left out."""
    screen = Screen(file)
    clusters = result.clusters
    members = clusters.members()
    distance, similarity = result.weakest()
    links = result.links()
    short = result.short
    order = sorted(range(len(members)), key=lambda number: (-len(members[number]), number))
    for number in order[:SHOWN_CLUSTERS]:
        representative = int(clusters.representative[number])
        title = Text(f"Cluster {number + 1}", style="bold")
        title.append(f"  {len(members[number])} documents", style="default")
        if len(members[number]) > 2:
            title.append(_weakest(float(similarity[number]), int(distance[number])), "not bold dim")
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for _ in range(3):
            table.add_column(justify="right", no_wrap=True)
        # Each kept document, the representative first, followed by those it makes redundant.
        kept_by = clusters.kept_by[members[number]]
        rank = np.lexsort((members[number] != kept_by, kept_by, kept_by != representative))
        ordered = members[number][rank].tolist()
        for row in ordered[:SHOWN_MEMBERS]:
            name = printable(result.ids[row])
            if short[row]:
                name.append("  short text", style="yellow")
            if clusters.kept_by[row] == row:
                if row != representative:
                    name.append("  kept too: no pair with another kept one", style="green")
                table.add_row(Text("●", style="green"), name)
                continue
            table.add_row(
                Text("○", style="dim"),
                name,
                Text("exact", style="cyan") if links.identical[row] else Text("near"),
                Text(_similarity(float(links.similarity[row]))),
                Text(_count(int(links.distance[row]), "bit"), style="dim"),
            )
        hidden = len(ordered) - len(ordered[:SHOWN_MEMBERS])
        if hidden:
            table.add_row("", Text(f"and {hidden:,} more", style="dim"))
        screen.print(Group(title, Padding(table, (0, 0, 1, 1), expand=False)))
    hidden = len(order) - len(order[:SHOWN_CLUSTERS])
    if hidden:
        screen.print(Text(f"and {hidden:,} smaller clusters; {where}", style="dim"))
        screen.print()


def _similarity(value: float) -> str:
    return "" if math.isnan(value) else f"{floor(value):.4f}"


def _weakest(similarity: float, distance: int) -> str:
    """Describe the least similar and the most distant pair of a cluster."""
    words = ""
    if not math.isnan(similarity):
        words += f", similarity {floor(similarity):.4f}" + (" or more" if similarity < 1 else "")
    return words + f", distance {_count(distance, 'bit')}" + (" or less" if distance else "")


def show_summary(result: ScanResult, file: TextIO, verbose: bool = False) -> None:
    """Say what was read, what was found, what was left out, and where the time went."""
    settings = result.settings
    table = Table.grid(padding=(0, 3))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")

    def row(label: str, text: str | Text, style: str = "") -> None:
        table.add_row(label, Text(text, style=style) if isinstance(text, str) else text)

    skipped = result.skipped
    row(
        "Documents",
        f"{_count(len(result.ids), 'document')} read, {_megabytes(result.bytes_read)}; "
        f"{result.compared:,} compared, {len(skipped):,} skipped",
    )
    for kind, count in Counter(skip.kind for skip in skipped).most_common():
        names = (printable(skip.id) for skip in skipped if skip.kind == kind)
        shown = Text(", ").join(itertools.islice(names, None if verbose else SHOWN_SKIPPED))
        line = Text(f"{count:,} {kind}: ", style="yellow").append_text(shown)
        if not verbose and count > SHOWN_SKIPPED:
            line.append(f" and {count - SHOWN_SKIPPED:,} more (--skipped FILE lists them)")
        row("", line)
    for note, count in result.notes.items():
        row("", f"{note}: {count:,}", "dim")
    if short := int(result.short.sum()):
        row(
            "",
            f"{short:,} short (under some 30 words): near-duplicates can be missed there",
            "yellow",
        )
    if settings.exact:
        row(
            "Search",
            "exact: every pair of fingerprints within "
            f"{_count(settings.max_distance, 'bit')} is a candidate",
        )
    else:
        row("Search", "approximate: pairs within the threshold can be missed (--window)", "yellow")
    if settings.max_distance > LARGEST_SENSIBLE_THRESHOLD:
        row(
            "",
            f"a threshold above {LARGEST_SENSIBLE_THRESHOLD} bits finds mostly chance",
            "yellow",
        )
    candidates = f"{_count(result.candidates, 'candidate')} among different texts"
    if settings.min_similarity > 0:
        row(
            "",
            f"{candidates}, {result.confirmed:,} confirmed at similarity "
            f"{settings.min_similarity:g} or more",
        )
    else:
        row("", f"{candidates}, not verified (--min-similarity 0)", "yellow")
    pairs = _count(result.total_pairs, "pair")
    if result.total_pairs > len(result):
        pairs += (
            f"; {len(result):,} listed, the rest follow from identical texts "
            "(--all-pairs lists them)"
        )
    row("Found", pairs)
    in_clusters = int((result.clusters.label > 0).sum())
    row(
        "",
        f"{_count(len(result.clusters), 'cluster')} with {_count(in_clusters, 'document')}: "
        f"{result.redundant:,} redundant, {result.compared - result.redundant:,} left without them",
    )
    total = sum(result.seconds.values())
    phases = ", ".join(f"{name} {seconds:.2f}" for name, seconds in result.seconds.items())
    row(
        "Time",
        f"{total:.2f} s, {result.bytes_read / 1e6 / max(total, 1e-9):.1f} MB/s ({phases})",
    )
    if verbose:
        row("", f"{_count(settings.workers, 'worker')}, kernels: {fast.how()}")
    Screen(file).print(table)


def complain(*messages: str) -> None:
    """Print what went wrong to standard error, one line each. Where even that is full, the exit
    code must do."""
    with suppress(OSError):
        screen = Screen(sys.stderr)
        for message in messages:
            screen.print(Text("neardup: ", style="bold red") + printable(message), soft_wrap=True)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.2f} MB" if size >= 5_000 else f"{size:,} bytes"


def show_comparison(
    result: Comparison, left: tuple[str, str], right: tuple[str, str], file: TextIO
) -> None:
    """Show two texts compared; ``left`` and ``right`` are name and text."""
    screen = Screen(file)
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(overflow="fold")
    one, other = result.left, result.right
    table.add_row("", printable(left[0]), printable(right[0]), style="bold")
    table.add_row("fingerprint", f"0x{one.bits:016X}", f"0x{other.bits:016X}")
    for what in ("characters", "words", "features"):
        table.add_row(what, f"{getattr(one, what):,}", f"{getattr(other, what):,}")
    screen.print(table)
    screen.print()
    # Differing bits are marked below as well: colours are lost in a file.
    for name, bits in (("left", one.bits), ("right", other.bits)):
        line = Text(f"{name:<11}  ")
        for i in reversed(range(64)):
            differs = (one.bits ^ other.bits) >> i & 1
            line.append(str(bits >> i & 1), style="bold red" if differs else "")
            if i and i % 8 == 0:
                line.append(" ")
        screen.print(line, soft_wrap=True)
    marks = "".join(
        ("^" if (one.bits ^ other.bits) >> i & 1 else " ") + (" " if i % 8 == 0 else "")
        for i in reversed(range(64))
    )
    screen.print(Text(" " * 13 + marks.rstrip(), style="bold red"), soft_wrap=True)
    screen.print()
    summary = Table.grid(padding=(0, 2))
    summary.add_row("distance", f"{result.distance} of 64 bits")
    summary.add_row("similarity", f"{result.similarity} % of the bits are equal")
    summary.add_row("verdict", Text(result.verdict, style="bold"))
    jaccard = f"{floor(result.jaccard):.4f}  (exact, of word 3-shingles)"
    if result.identical:
        jaccard += ", the texts are identical"
    elif result.jaccard >= 1:
        jaccard += ", the same words in other dress"
    summary.add_row("Jaccard", jaccard)
    settings = Settings(sketch=result.sketch)
    pair = result.jaccard >= settings.min_similarity and result.distance <= settings.max_distance
    defaults = f"{settings.max_distance} bits and {settings.min_similarity}"
    summary.add_row("scan", f"{'a pair' if pair else 'no pair'} at its defaults, {defaults}")
    screen.print(summary)
    if not result.identical:
        screen.print()
        _show_lines(left[1], right[1], screen)


def _show_lines(left: str, right: str, screen: Screen) -> None:
    if max(len(left.splitlines()), len(right.splitlines())) > _LINES_TO_COMPARE:
        screen.print(f"more than {_LINES_TO_COMPARE:,} lines: differing lines are not shown")
        return
    styles = {"-": "red", "+": "green", "@": "dim"}
    lines = differing_lines(left, right)
    shown = 0
    for line in itertools.islice(lines, SHOWN_LINES):
        text = printable(line[:SHOWN_CHARACTERS].replace("\t", "    "))
        text.stylize(styles.get(line[:1], ""))
        if len(line) > SHOWN_CHARACTERS:
            text.append(f" and {len(line) - SHOWN_CHARACTERS:,} more characters", style="dim")
        screen.print(text, soft_wrap=True)
        shown += 1
    rest = sum(1 for _ in lines)
    if rest:
        screen.print(Text(f"and {rest:,} more lines that differ", style="dim"))
    if not shown:
        screen.print(Text("the lines are the same; only their ends differ", style="dim"))


def show_evaluation(
    listed: Evaluation,
    implied: Evaluation | None,
    limits: tuple[float, float],
    written: Mapping[tuple[str, str], str],
    show: int,
    file: TextIO,
) -> None:
    """Show how a result agrees with labels.

    Parameters
    ----------
    listed, implied : the result as listed, and with what follows from identical texts, if anything
    limits : labels are positive from the first on and negative below the second
    written : the label of each labelled pair, as it is written
    show : how many of the false and of the missed pairs to list
    """
    screen = Screen(file)
    scores = [listed] if implied is None else [listed, implied]
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    for _ in scores:
        table.add_column(justify="right", no_wrap=True)
    if implied is not None:
        table.add_row("", "as listed", "with copies", style="dim")
    for label, name in (
        ("Pairs found", "pairs"),
        ("Positive labels", "positives"),
        ("True", "true"),
        ("False", "false"),
        ("  not in the labels", "unlisted"),
        ("Missed", "missed"),
        ("Ignored", "ignored"),
    ):
        style = "dim" if label[0] == " " else "bold"
        table.add_row(Text(label, style), *(f"{getattr(one, name):,}" for one in scores))
    for label, name in (("Precision", "precision"), ("Recall", "recall"), ("F1", "f1")):
        shares = (getattr(one, name) for one in scores)
        table.add_row(label, *("–" if share is None else f"{floor(share):.4f}" for share in shares))
    screen.print(table)
    screen.print()
    undecided = f"from {limits[1]:g} to below {limits[0]:g} or unsure"
    screen.print(
        f"Labels: {listed.positives:,} positive, {listed.negatives:,} negative, "
        f"{listed.undecided:,} undecided ({undecided}). Pairs found that are undecided are "
        "ignored; pairs that are not in the labels count as negative."
    )
    if implied is not None:
        screen.print("With copies: also the pairs that follow from identical texts.")
    # What follows from identical texts is not missed, nor is it in the result to be looked at.
    missed = (implied or listed).missed_pairs
    for kind, pairs in (("false", listed.false_pairs), ("missed", missed)):
        _show_pairs(kind, pairs, written, show, screen)


def _show_pairs(
    kind: str,
    pairs: Sequence[tuple[str, str]],
    written: Mapping[tuple[str, str], str],
    show: int,
    screen: Screen,
) -> None:
    """List the first of some pairs with their labels."""
    if not pairs or not show:
        return
    table = Table.grid(padding=(0, 2))
    for _ in range(2):
        table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True, style="dim")
    for left, right in pairs[:show]:
        label = written.get((left, right), written.get((right, left), "not in the labels"))
        table.add_row(printable(left), printable(right), printable(label))
    screen.print()
    screen.print(Text(_count(len(pairs), f"{kind} pair"), style="bold"))
    screen.print(Padding(table, (0, 0, 0, 1), expand=False))
    if len(pairs) > show:
        screen.print(Text(f" and {len(pairs) - show:,} more (--show N lists more)", style="dim"))
