"""The command line: parse, build Settings, call the pipeline, choose reporters, exit code.

Exit codes: 0 done, 1 duplicates found under --check, 2 wrong usage, 3 could not finish, 128 and
the number of the signal when interrupted. Everything but typer is imported when a command runs, so
that --help is quick.
"""

from __future__ import annotations

import io
import os
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from neardup import __version__
from neardup.errors import NeardupError, UsageError
from neardup.settings import (
    DEFAULT_ROTATIONS,
    DEFAULT_WINDOW,
    RECOMMENDED,
    Settings,
    parse_threshold,
)

if TYPE_CHECKING:
    from neardup.report.output import Output
    from neardup.tables import Skipped

DONE, FOUND, USAGE, UNFINISHED = range(4)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line."""
    if sys.stderr is None:  # closed
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A locale without the characters we draw with is no reason to stop.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Turn errors and signals into one line and an exit code."""
    signal.signal(signal.SIGTERM, _stop)
    # nohup has the hang-up ignored; a plain one must not leave a half-written file.
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) == signal.SIG_DFL:
        signal.signal(hang_up, _stop)
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except NeardupError as error:
        from neardup.report.terminal import complain

        complain(*error.args)
        raise typer.Exit(USAGE if isinstance(error, UsageError) else UNFINISHED) from None
    except OSError as error:  # standard output or standard error is full
        from neardup.report.output import abandon_stdout

        abandon_stdout()
        with suppress(OSError):
            sys.stderr.write(f"neardup: cannot write: {(error.strerror or str(error)).lower()}\n")
        raise typer.Exit(UNFINISHED) from None
    except KeyboardInterrupt:
        sys.stderr.write("\nneardup: interrupted\n")
        raise typer.Exit(130) from None
    except MemoryError:
        sys.stderr.write("neardup: out of memory\n")
        raise typer.Exit(UNFINISHED) from None


def _stop(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"neardup {__version__}")
        raise typer.Exit


@app.callback()
def _callback(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find near-duplicate documents.

    [bold]neardup scan DOCS -o pairs.csv[/bold] is where to begin.
    """


Documents = Annotated[
    list[str],
    typer.Argument(
        help="Directories, text files and JSON lines files (.jsonl, .ndjson).",
        metavar="DOCS",
        show_default=False,
    ),
]
Sketch = Annotated[
    str,
    typer.Option(
        help="How fingerprints are made: simhash; minhash, which finds more at fewer bits; or "
        "classic, the textbook's."
    ),
]
TextField = Annotated[str, typer.Option(help="The field of a record that holds its text.")]
IdField = Annotated[
    str, typer.Option(help="The field that holds its id; without one it is FILE:LINE.")
]
Hidden = Annotated[bool, typer.Option("--hidden", help="Read hidden files and folders, too.")]
Workers = Annotated[
    int | None,
    typer.Option(
        help="Processes that share the work: by default one for each core.", show_default=False
    ),
]


@app.command()
def scan(
    docs: Documents,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the pairs: CSV, or JSON lines if it ends in .jsonl; - is "
            "standard output. Without it they go to standard output unless that is a terminal.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        str | None,  # read by parse_threshold, which knows better than "not a valid integer"
        typer.Option(
            "--threshold",
            "-k",
            metavar="BITS",
            help="Largest Hamming distance of a candidate, 0 to 64: by default "
            + ", ".join(f"{bits} for {name}" for name, bits in RECOMMENDED.items())
            + ".",
            show_default=False,
        ),
    ] = None,
    min_similarity: Annotated[
        float,
        typer.Option(help="Smallest exact Jaccard similarity, 0 to 1; 0 lists all candidates."),
    ] = Settings.min_similarity,
    sketch: Sketch = Settings.sketch,
    clusters: Annotated[
        str | None,
        typer.Option(help="Where to write the clusters and what to keep.", show_default=False),
    ] = None,
    skipped: Annotated[
        str | None,
        typer.Option(help="Where to write what was skipped, and why.", show_default=False),
    ] = None,
    all_pairs: Annotated[
        bool,
        typer.Option(
            "--all-pairs",
            help="List every pair among identical texts, not only each copy with its original.",
        ),
    ] = False,
    rotations: Annotated[
        int | None,
        typer.Option(
            help="Search approximately: sort this many rotations "
            f"({DEFAULT_ROTATIONS} with --window alone) ...",
            show_default=False,
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            help="... and compare each with this many next neighbours "
            f"({DEFAULT_WINDOW} with --rotations alone).",
            show_default=False,
        ),
    ] = None,
    text_field: TextField = Settings.text_field,
    id_field: IdField = Settings.id_field,
    hidden: Hidden = Settings.hidden,
    workers: Workers = None,
    show: Annotated[
        bool | None,
        typer.Option(
            "--show/--no-show",
            help="Draw the clusters. By default when standard output is a terminal.",
            show_default=False,
        ),
    ] = None,
    spreadsheet: Annotated[
        bool,
        typer.Option(
            "--spreadsheet",
            help="Write CSV that is safe to open in a spreadsheet: a byte order mark, and an "
            "apostrophe before cells that would run as formulas.",
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 when there are near-duplicates.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 when anything was skipped.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name everything that was skipped.")
    ] = False,
) -> None:
    """Find the near-duplicates among documents and write them as pairs.

    Documents are candidates when their fingerprints are within --threshold
    bits of each other, and a pair when the exact Jaccard similarity of their
    word 3-shingles is at least --min-similarity.
    """
    with _one_line_errors():
        from neardup import pipeline
        from neardup.progress import Bars, Progress
        from neardup.report import pairs as report
        from neardup.report.output import reader_may_leave
        from neardup.workers import cores

        settings = Settings(
            threshold=None if threshold is None else parse_threshold(threshold),
            min_similarity=min_similarity,
            sketch=sketch,
            rotations=rotations,
            window=window,
            all_pairs=all_pairs,
            text_field=text_field,
            id_field=id_field,
            hidden=hidden,
            workers=cores() if workers is None else workers,
        )
        _refuse_stdin(docs)
        terminal = sys.stdout is not None and sys.stdout.isatty()
        if output is None and not terminal:
            output = "-"
        pairs_to, clusters_to, skipped_to = _outputs(docs, output, clusters, skipped)
        chosen = [one for one in (pairs_to, clusters_to, skipped_to) if one is not None]
        watched = sys.stderr is not None and sys.stderr.isatty() and not quiet
        progress = Bars() if watched else Progress()
        result = pipeline.scan(
            docs,
            settings,
            progress=progress,
            leave_out=frozenset(one.key for one in chosen if one.key is not None),
        )
        with progress.timed("write"):
            if skipped_to is not None:
                report.write_skipped(result, skipped_to, spreadsheet)
            if not len(result.ids):
                _explain_nothing([*result.missing, *result.skipped])
            if clusters_to is not None:
                report.write_clusters(result, clusters_to, spreadsheet)
            # Standard output comes last, since its reader may go away.
            if pairs_to is not None:
                report.write_pairs(result, pairs_to, spreadsheet)

        from neardup.report.terminal import complain, show_clusters, show_summary

        if terminal if show is None else show:
            to_stdout = all(one.path != "-" for one in chosen)
            where = "--clusters FILE lists them all" if clusters is None else f"see {clusters}"
            with reader_may_leave():
                show_clusters(result, sys.stdout if to_stdout else sys.stderr, where)
        if not quiet:
            show_summary(result, sys.stderr, verbose)
            for one in chosen:
                if one.path != "-":
                    typer.echo(f"wrote {one.path}", err=True)
        for skip in result.missing:
            complain(f"{skip.id}: {skip.reason}")
        if result.missing or (strict and result.skipped):
            raise typer.Exit(UNFINISHED)
        if check and len(result):
            raise typer.Exit(FOUND)


def _outputs(docs: list[str], *paths: str | None) -> list[Output | None]:
    """Check that all outputs can be written, and are neither the same nor one of the inputs."""
    from neardup.corpus.walk import file_key
    from neardup.report.output import Output
    from neardup.report.pairs import is_result

    given = [os.path.realpath(path) if path != "-" else path for path in paths if path is not None]
    if len(set(given)) < len(given):
        raise UsageError("two outputs have the same name")
    outputs = [None if path is None else Output(path) for path in paths]
    inputs = {file_key(os.stat(path)) for path in docs if os.path.isfile(path)}
    folders = tuple(os.path.join(os.path.realpath(path), "") for path in docs)
    for output in outputs:
        if output is None or output.key is None:
            continue
        inside = os.path.isfile(output.path) and os.path.realpath(output.path).startswith(folders)
        # An older result in a scanned folder may be replaced, a document may not.
        if output.key in inputs or (inside and not is_result(output.path)):
            raise UsageError(f"cannot write {output.path}: it is one of the documents to scan")
    return outputs


def _refuse_stdin(docs: list[str]) -> None:
    if "-" in docs and not os.path.lexists("-"):
        raise UsageError("standard input cannot be scanned; give a file or a directory")


def _explain_nothing(skipped: list[Skipped]) -> NoReturn:
    lines = ["no readable document found, so there are no pairs to write"]
    lines += [f"{skip.id}: {skip.reason}" for skip in skipped[:5]]
    if len(skipped) > 5:
        lines.append(f"and {len(skipped) - 5:,} more skipped")
    raise NeardupError(*lines)


@app.command()
def compare(
    left: Annotated[str, typer.Argument(help="A text file, or - for standard input.")],
    right: Annotated[str, typer.Argument(help="Another one.")],
    sketch: Sketch = Settings.sketch,
) -> None:
    """Compare two texts: fingerprints, distance, similarity, verdict, and what differs."""
    with _one_line_errors():
        from neardup.compare import compare as compare_texts
        from neardup.report.output import reader_may_leave
        from neardup.report.terminal import show_comparison

        if left == right == "-":
            raise UsageError("standard input can only be one of the two texts")
        one, other = _read(left), _read(right)
        result = compare_texts(one, other, sketch)
        if sys.stdout is None:
            raise NeardupError("cannot write standard output: it is closed")
        with reader_may_leave():
            show_comparison(result, (left, one), (right, other), sys.stdout)


def _read(path: str) -> str:
    """Return the text of a file, of standard input, or of a pipe given by its name."""
    from neardup.corpus.decode import decode, read_text
    from neardup.errors import UnreadableError

    if path == "-" and sys.stdin is None:
        raise UsageError("standard input is closed")
    try:
        if path == "-":
            return decode(sys.stdin.buffer.read())[0]
        if stat.S_ISFIFO(os.stat(path).st_mode):
            with open(path, "rb") as pipe:
                return decode(pipe.read())[0]
        return read_text(path)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file or directory") from None
    except UnreadableError as error:
        raise NeardupError(f"{path}: {error}") from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise NeardupError(f"{path}: {reason}") from None


@app.command()
def fingerprint(
    docs: Documents,
    sketch: Sketch = Settings.sketch,
    text_field: TextField = Settings.text_field,
    id_field: IdField = Settings.id_field,
    hidden: Hidden = Settings.hidden,
    workers: Workers = None,
) -> None:
    """Print the id and the fingerprint of every document: CSV with the columns id, fingerprint."""
    with _one_line_errors():
        from neardup import pipeline
        from neardup.report.output import Output
        from neardup.report.pairs import write_fingerprints
        from neardup.report.terminal import complain
        from neardup.workers import cores

        _refuse_stdin(docs)
        settings = Settings(
            sketch=sketch,
            text_field=text_field,
            id_field=id_field,
            hidden=hidden,
            workers=cores() if workers is None else workers,
        )
        ids, prints, tally = pipeline.fingerprint_files(docs, settings)
        if not len(ids):
            _explain_nothing([*tally.missing, *tally.skipped])
        write_fingerprints(ids, prints.bits.tolist(), Output("-"))
        for skip in [*tally.skipped, *tally.missing]:
            complain(f"{skip.id}: {skip.reason}")
        if tally.missing:
            raise typer.Exit(UNFINISHED)


@app.command("eval")
def evaluate(
    pairs: Annotated[
        str,
        typer.Argument(
            help="A result: what scan has written, or CSV of another tool with two columns of ids; "
            "- for standard input."
        ),
    ],
    labels: Annotated[
        str,
        typer.Argument(
            help="Labelled pairs: CSV with two columns of ids and a column similarity, jaccard or "
            "score; or a column label of the words duplicate, not, unsure; with neither, all "
            "are duplicates."
        ),
    ],
    positive: Annotated[
        float, typer.Option(help="A labelled pair is positive from this similarity on ...")
    ] = 0.8,
    negative: Annotated[
        float, typer.Option(help="... and negative below this one; between them it is ignored.")
    ] = 0.5,
    min_similarity: Annotated[
        float | None,
        typer.Option(
            help="Leave out pairs of the result below this similarity.", show_default=False
        ),
    ] = None,
    show: Annotated[
        int, typer.Option(metavar="N", help="List this many of the false and the missed pairs.")
    ] = 10,
) -> None:
    """Hold a result against labelled pairs: precision, recall, F1, and what is wrong.

    A pair that the labels do not list counts as negative.
    """
    with _one_line_errors():
        from neardup import evaluate as evaluation
        from neardup.report.output import reader_may_leave
        from neardup.report.pairs import read_rows
        from neardup.report.terminal import complain, show_evaluation

        if show < 0:
            raise UsageError(f"--show is a number of pairs, not {show}")
        if pairs == labels == "-":
            raise UsageError("standard input can only be one of the two tables")
        result = evaluation.listed_pairs(pairs, read_rows(pairs), min_similarity)
        truth = evaluation.labelled_pairs(labels, read_rows(labels), positive, negative)
        limits = positive, negative
        listed = evaluation.evaluate(result.pairs, truth.similarity, (), *limits)
        implied = None
        if result.identical:
            implied = evaluation.evaluate(result.pairs, truth.similarity, result.identical, *limits)
            if implied.pairs == listed.pairs:
                implied = None
        complain(*result.notes, *truth.notes)
        stranger = evaluation.strangers(result, truth)
        if stranger is not None:
            complain(stranger)
        if sys.stdout is None:
            raise NeardupError("cannot write standard output: it is closed")
        with reader_may_leave():
            show_evaluation(listed, implied, limits, truth.written, show, sys.stdout)
