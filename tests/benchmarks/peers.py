"""What the benchmarks share: one core, the peers, English text, interleaved rounds, tables.

Import it before numpy. Two peers install a module of the same name, ``simhash``; each lives in a
folder of its own below the one given as ``--peers``:

    pip install --no-deps --target .venv-bench/peers/simhash simhash==2.1.2
    pip install --no-deps --target .venv-bench/peers/simhash-pybind simhash-pybind==0.0.3
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import distributions, version
from importlib.util import find_spec, module_from_spec
from itertools import accumulate, cycle
from pathlib import Path
from statistics import median
from typing import Any

# Read by numeric libraries when they are loaded.
for _variable in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "RAYON"):
    os.environ[f"{_variable}_NUM_THREADS"] = "1"

for _name in ("numpy", "neardup"):
    if find_spec(_name) is None:
        print(f"error: no module {_name}; install neardup: pip install -e .", file=sys.stderr)
        sys.exit(2)

PEERS = Path(os.environ.get("NEARDUP_PEERS", ".venv-bench/peers"))
VERSIONS = {"simhash": "2.1.2", "simhash-pybind": "0.0.3"}

ONSETS = "b bl br c ch cl d dr f fl g gr h j k l m n p pl pr qu r s sh sl st t th tr v w"
VOWELS = "a e i o u ai ea ee ou"
CODAS = "  ck d l ll m n nd r s st t"  # the first two are empty
COMMON = """the of and to in a is that it was for on are as with his they at be this have from or
one had by not but what some we can out other were all there when up use your how said an each she
which do their time if will way about many then them"""


class MissingError(Exception):
    """Something needed is not there. The message is one line."""


def run(main: Callable[[], int]) -> None:
    """Run a script: exit with what it returns, or with one line and 2 if something is missing."""
    try:
        status = main()
        sys.stdout.flush()
        sys.exit(status)
    except BrokenPipeError:
        # Whoever read this has seen enough; without this Python complains once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except MissingError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def add_peers_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--peers",
        type=Path,
        default=PEERS,
        metavar="DIR",
        help="folder with a sub-folder for each package that installs a module called simhash "
        "(default: $NEARDUP_PEERS or %(default)s)",
    )


def positive(text: str) -> int:
    """An argparse type: a whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def one_core() -> None:
    """Stay on one core, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def installed(module: str) -> Any:
    """Import a peer from the environment."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingError(
            f"no module {module}; install it: pip install -r tests/benchmarks/requirements.txt"
        ) from None


def load_simhash(peers: Path, package: str) -> Any:
    """Import the module ``simhash`` of that package from its own folder and from nowhere else."""
    folder = peers / package
    how = f"pip install --no-deps --target {folder} {package}=={VERSIONS[package]}"
    spec = PathFinder.find_spec("simhash", [str(folder)])
    if spec is None or spec.loader is None:
        raise MissingError(f"no {package} in {folder}; make it: {how}")
    module = module_from_spec(spec)
    sys.modules["simhash"] = module
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        reason = str(error).splitlines()[0]
        raise MissingError(f"{package} in {folder} does not load ({reason}); {how}") from None
    return module


def version_in(folder: Path) -> str:
    """Return the version of the only package installed in a folder."""
    return next((found.version for found in distributions(path=[str(folder)])), "?")


def interleaved(
    contenders: Mapping[str, Callable[[], object]], rounds: int
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Call every contender once a round, each round beginning with another one.

    Returns the processor seconds of each call and the last result of each contender. Processor
    time does not count what other programs take of the core.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    results: dict[str, Any] = {}
    names = list(contenders)
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            start = time.process_time()
            result = contenders[name]()
            seconds[name].append(time.process_time() - start)
            results[name] = result
    return seconds, results


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the median over the rounds of one / other: what slows a whole round cancels out."""
    return median(a / b for a, b in zip(one, other, strict=True))


def heading(title: str, **peers: str) -> str:
    """Return a Markdown heading that tells the date and all versions."""
    versions = {"numpy": version("numpy"), "neardup": version("neardup"), **peers}
    return f"### {title} ({date.today()}, {', '.join(f'{n} {v}' for n, v in versions.items())})\n"


def machine() -> str:
    """Return a line that tells where times were measured."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    values = dict(line.replace("\t", "").split(": ", 1) for line in lines if ": " in line)
    processor = values.get("model name") or platform.processor() or "unknown processor"
    family = f" family {values['cpu family']}" if "cpu family" in values else ""
    return (
        f"One core of {processor}{family}; Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}. Seconds are processor time.\n"
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a GitHub-flavoured Markdown table; all columns but the first are right-aligned."""
    cells = [list(columns), *([str(value) for value in row] for row in rows)]
    widths = [max(len(value) for value in column) for column in zip(*cells, strict=True)]
    rules = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [
        "| " + " | ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + " |"
        for row in (cells[0], rules, *cells[1:])
    ]
    return "\n".join(lines) + "\n"


class Writer:
    """Writes English-looking text: real function words, then invented words, by Zipf's law.

    The same seed gives the same text.
    """

    def __init__(self, seed: int, vocabulary: int = 20_000) -> None:
        self._random = random.Random(seed)
        self._syllable = [part.split(" ") for part in (ONSETS, VOWELS, CODAS)]
        common = COMMON.split()
        self._taken = set(common)
        self._words = common + [self.new_word() for _ in range(vocabulary - len(common))]
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(1, vocabulary + 1)))

    def new_word(self) -> str:
        """Return a word that is in no text of this writer."""
        choice = self._random.choice
        while True:
            syllables = self._syllable * choice((1, 2, 2, 3))
            word = "".join(choice(parts) for parts in syllables)
            if word not in self._taken:
                self._taken.add(word)
                return word

    def words(self, count: int) -> list[str]:
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def edited(self, words: Sequence[str], count: int) -> list[str]:
        """Return the words with ``count`` of them, anywhere, replaced by new ones."""
        changed = list(words)
        for place in self._random.sample(range(len(words)), count):
            changed[place] = self.new_word()
        return changed


def prose(words: Sequence[str]) -> str:
    """Set words as sentences and paragraphs."""
    return "\n\n".join(" ".join(paragraph) for paragraph in _paragraphs(words))


def _paragraphs(words: Sequence[str]) -> Iterator[list[str]]:
    sentences = []
    start = 0
    for length in cycle((12, 19, 8, 23, 15)):
        sentence = " ".join(words[start : start + length])
        if not sentence:
            break
        sentences.append(f"{sentence[0].upper()}{sentence[1:]}.")
        start += length
    for first in range(0, len(sentences), 5):
        yield sentences[first : first + 5]
