"""A JSON lines file in, duplicate pairs out: neardup beside rensa, gaoya and datasketch.

    python tests/benchmarks/end_to_end.py --data DIR [--megabytes 500] [--corpus FILE]

The corpus is recombined from real texts: runs of 5 to 12 words, four in five of them from one part
of the real texts, so that a document has a subject. Half of the bytes are families of 2 to 500
versions with scattered edits, half are texts that are similar to nothing. It is made of blocks of
10 MB with whole families, all shuffled together; a slow contender can be given the documents of the
first blocks alone, which are like the whole (--datasketch-megabytes 50).

Each contender is a process of its own, timed from its start to its end, and may use all cores. The
peers' scripts are below, as one would write them from the packages' READMEs, with the batch calls
where there are any. Those of rensa and datasketch do what neardup does: read the lines, sketch the
word 3-shingles, look up candidates, compute the exact Jaccard similarity of the candidates, write
the pairs. Most of that is Python. The others take the package's shortest way, which is words in
place of shingles and nothing read twice: rensa with its own estimate of the similarity, gaoya with
the distance of the fingerprints.

What share of the pairs is found is counted on the documents that all contenders had, against the
exact similarity of all pairs of each family.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import peers

# isort: split

import numpy as np

ENGLISH = ("pep_versions", "license_texts", "sotu")
GENERATED_WORDS = 2_000_000

BLOCK_BYTES = 10_000_000
LARGEST_FAMILY = 500
FEWEST_WORDS, MEDIAN_WORDS, MOST_WORDS = 100, 600, 4000
RUN_OF_WORDS = 5, 12
SUBJECT_WORDS, SUBJECT_SHARE = 5000, 0.8
EDITED_SHARE = 0.003, 0.037  # 3 edited words in 1000: similarity 0.98 to the original; 37: 0.8

MIN_SIMILARITY = 0.8
PERMUTATIONS, BANDS = 128, 16  # the chance to find a pair of similarity 0.8 is 0.95, of 0.9 is 1.00
SEED = 42
DOCUMENTS_AT_ONCE = 10_000

Row = tuple[str, str, float | str]


@dataclass(frozen=True)
class Contender:
    """A program that reads a corpus and writes pairs."""

    name: str
    how: str
    megabytes: int
    command: Sequence[str]  # with IN and OUT in place of files
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Run:
    seconds: float
    processor_seconds: float
    peak_bytes: int


def main() -> int:
    parser = argparse.ArgumentParser(description="Time JSON lines in, duplicate pairs out.")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"folder with {', '.join(ENGLISH)}, each with a docs.jsonl (default: generated text)",
    )
    parser.add_argument("--corpus", type=Path, metavar="FILE", help="made if it is not there")
    parser.add_argument("--megabytes", type=peers.positive, default=500)
    for name, megabytes in (("rensa", 500), ("gaoya", 500), ("datasketch", 500)):
        parser.add_argument(
            f"--{name}-megabytes",
            type=peers.positive,
            default=megabytes,
            metavar="MB",
            help=f"what {name} gets of it (default: %(default)s)",
        )
    parser.add_argument("--rounds", type=peers.positive, default=1)
    parser.add_argument(
        "--workers",
        type=peers.positive,
        nargs="+",
        default=[2, 1],
        metavar="N",
        help="run neardup with each, if its scan has the option (default: 2 1)",
    )
    parser.add_argument("--run", nargs=3, metavar=("PEER", "IN", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    all_cores()
    if options.run:
        name, source, target = options.run
        run_peer(name, Path(source), Path(target), options)
        return 0

    contenders = [
        *neardups(options.megabytes, options.workers),
        peer("rensa", "3-shingles, verified", options.rensa_megabytes),
        peer("datasketch", "3-shingles, verified", options.datasketch_megabytes),
        peer("rensa-words", "words, estimated", options.rensa_megabytes),
        peer("gaoya", "words, up to 4 bits, not verified", options.gaoya_megabytes),
    ]
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        corpus = options.corpus or Path(folder, "corpus.jsonl")
        source = "built earlier"
        if not corpus.is_file():
            build_in_a_process(corpus, options)
            found = ", ".join(file.parent.name for file in real_texts(options.data))
            source = f"recombined from {found or 'generated English-looking text'}"
        compare(contenders, corpus, source, Path(folder), options.rounds)
    return 0


def all_cores() -> None:
    """Take back what ``peers`` set on import, for this process and those it starts."""
    for name in [name for name in os.environ if name.endswith("_NUM_THREADS")]:
        del os.environ[name]


def neardups(megabytes: int, workers: Sequence[int]) -> Iterator[Contender]:
    """Yield neardup by number of workers and with and without its compiled kernels, so far as the
    installed one has them."""
    scan = [sys.executable, "-P", "-m", "neardup", "scan"]
    shown = subprocess.run(
        [*scan, "--help"], capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"}
    ).stdout
    has_workers = re.search(r"--workers\b", re.sub(r"\x1b\[[\d;]*m", "", shown))
    spec = find_spec("neardup")
    folders = spec.submodule_search_locations if spec else None
    has_kernels = find_spec("numba") and any(
        "NEARDUP_COMPILED" in file.read_text(encoding="utf-8")
        for folder in folders or ()
        for file in Path(folder).rglob("*.py")
    )
    os.environ.pop("NEARDUP_COMPILED", None)
    for kernels in ("numba", "numpy") if has_kernels else ("",):
        for count in workers if has_workers else (0,):
            how = ["defaults"]
            more: list[str] = []
            if count:
                how.append(f"{count} worker{'s' * (count > 1)}")
                more = ["--workers", str(count)]
            if kernels:
                how.append(kernels)
            yield Contender(
                "neardup",
                ", ".join(how),
                megabytes,
                [*scan, "IN", "-o", "OUT", *more],
                (("NEARDUP_COMPILED", "0"),) if kernels == "numpy" else (),
            )


def peer(name: str, how: str, megabytes: int) -> Contender:
    package = name.partition("-")[0]
    if find_spec(package) is None:
        peers.installed(package)  # says how to get it
    command = [sys.executable, __file__, "--run", name, "IN", "OUT"]
    return Contender(package, how, megabytes, command)


def run_peer(name: str, source: Path, target: Path, options: argparse.Namespace) -> None:
    if name == "build":
        build(target, options.data, options.megabytes)
        return
    scripts = {
        "rensa": rensa,
        "rensa-words": rensa_words,
        "datasketch": datasketch,
        "gaoya": gaoya,
    }
    pairs = scripts[name](source)
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("left", "right", "similarity"))
        writer.writerows(pairs)


# The peers' scripts.


def read_corpus(file: Path) -> tuple[list[str], list[str]]:
    """Return ids and texts."""
    with file.open(encoding="utf-8") as lines:
        records = map(json.loads, lines)
        ids, texts = zip(*((record["id"], record["text"]) for record in records), strict=True)
    return list(ids), list(texts)


def shingles(text: str) -> set[str]:
    words = re.findall(r"\w+", text.lower())
    return set(map(" ".join, zip(words, words[1:], words[2:], strict=False)))


def rensa(file: Path) -> Iterator[Row]:
    ids, texts = read_corpus(file)
    _, found = rensa_candidates(texts, shingles)
    return confirmed(ids, texts, found)


def rensa_words(file: Path) -> Iterator[Row]:
    ids, texts = read_corpus(file)
    sketches, found = rensa_candidates(texts, str.split)
    for row, others in enumerate(found):
        for other in others:
            if row < other:
                similarity = sketches[row].jaccard(sketches[other])
                if similarity >= MIN_SIMILARITY:
                    yield ids[row], ids[other], similarity


def rensa_candidates(
    texts: list[str], tokens: Callable[[str], Iterable[str]]
) -> tuple[list[Any], list[list[int]]]:
    """Return the sketch of every text, and the rows of the texts that share a band with it."""
    package = peers.installed("rensa")
    lsh = package.RMinHashLSH(threshold=MIN_SIMILARITY, num_perm=PERMUTATIONS, num_bands=BANDS)
    sketches: list[Any] = []
    for start in range(0, len(texts), DOCUMENTS_AT_ONCE):
        sets = map(tokens, texts[start : start + DOCUMENTS_AT_ONCE])
        some = package.RMinHash.from_token_sets(sets, num_perm=PERMUTATIONS, seed=SEED)
        lsh.insert_many(some, start)
        sketches += some
    return sketches, lsh.query_all(sketches)


def datasketch(file: Path) -> Iterator[Row]:
    package = peers.installed("datasketch")
    ids, texts = read_corpus(file)
    lsh = package.MinHashLSH(
        MIN_SIMILARITY, num_perm=PERMUTATIONS, params=(BANDS, PERMUTATIONS // BANDS)
    )
    sets = ([shingle.encode() for shingle in shingles(text)] for text in texts)
    sketches = package.MinHash.bulk(sets, num_perm=PERMUTATIONS)
    with lsh.insertion_session() as session:
        for row, sketch in enumerate(sketches):
            session.insert(row, sketch)
    return confirmed(ids, texts, map(lsh.query, sketches))


def gaoya(file: Path) -> Iterator[Row]:
    ids, texts = read_corpus(file)
    index = peers.installed("gaoya.simhash").SimHashStringIndex(64, 6, 5, "word", True, (1, 1))
    # The bulk call that inserts is only on what this class wraps.
    for start in range(0, len(texts), DOCUMENTS_AT_ONCE):
        some = texts[start : start + DOCUMENTS_AT_ONCE]
        index.index.par_bulk_insert_docs(list(range(start, start + len(some))), some)
    for start in range(0, len(texts), DOCUMENTS_AT_ONCE):
        found = index.par_bulk_query(texts[start : start + DOCUMENTS_AT_ONCE])
        for row, others in enumerate(found, start):
            for other in others:
                if row < other:
                    yield ids[row], ids[other], ""


def confirmed(ids: list[str], texts: list[str], found: Iterable[list[int]]) -> Iterator[Row]:
    """Yield the candidates that are similar enough. Those that are connected are compared together,
    so that the shingles of a document are made once and not kept for long."""
    partners = {row: [one for one in others if one != row] for row, others in enumerate(found)}
    seen = [False] * len(texts)
    for first in partners:
        if seen[first]:
            continue
        seen[first] = True
        group = [first]
        for row in group:
            for other in partners[row]:
                if not seen[other]:
                    seen[other] = True
                    group.append(other)
        if len(group) < 2:
            continue
        sets = {row: shingles(texts[row]) for row in group}
        for row in group:
            one = sets[row]
            for other in partners[row]:
                if row < other:
                    common = len(one & sets[other])
                    similarity = common / (len(one) + len(sets[other]) - common)
                    if similarity >= MIN_SIMILARITY:
                        yield ids[row], ids[other], similarity


# The corpus.


def build_in_a_process(corpus: Path, options: argparse.Namespace) -> None:
    """Build the corpus: in a process, since what this one takes is counted as its children's."""
    command = [sys.executable, __file__, "--run", "build", "-", str(corpus)]
    command += ["--megabytes", str(options.megabytes)]
    if options.data is not None:
        command += ["--data", str(options.data)]
    run = watch(command, dict(os.environ))
    print(f"Built {corpus.stat().st_size / 1e6:.0f} MB in {run.seconds:.0f} s.", file=sys.stderr)


def build(file: Path, data: Path | None, megabytes: int) -> None:
    """Write the corpus. Ids are block-family-version; a single is the only one of its family."""
    pool = real_words(data)
    lines = []
    for block in range(n_blocks(megabytes)):
        lines += block_lines(pool, block)
    order = np.random.default_rng(SEED).permutation(len(lines)).tolist()
    unfinished = file.with_name(f"{file.name}.unfinished")
    with unfinished.open("wb") as out:
        out.writelines(lines[place] for place in order)
    unfinished.replace(file)


def n_blocks(megabytes: int) -> int:
    return max(megabytes * 1_000_000 // BLOCK_BYTES, 1)


def real_texts(data: Path | None) -> list[Path]:
    files = [data / name / "docs.jsonl" for name in ENGLISH] if data is not None else []
    return [file for file in files if file.is_file()]


def real_words(data: Path | None) -> list[str]:
    """Return the words of all texts, each with the punctuation and the blanks behind it."""
    texts = []
    for file in real_texts(data):
        with file.open(encoding="utf-8") as lines:
            try:
                texts += [json.loads(line)["text"] for line in lines]
            except (ValueError, LookupError, TypeError):
                raise peers.MissingError(f"{file}: expected lines with id and text") from None
    if not texts:
        texts = [peers.prose(peers.Writer(seed=1).words(GENERATED_WORDS))]
    return re.findall(r"\S+\s+", "\n\n".join(texts))


def block_lines(pool: list[str], block: int) -> list[bytes]:
    """Return the documents of a block as JSON lines: families until it is half full, then
    singles."""
    rng = np.random.default_rng((SEED, block))
    sizes = np.arange(2, LARGEST_FAMILY + 1)
    weights = 1 / sizes**2
    lines: list[bytes] = []
    written = family = 0
    while written < BLOCK_BYTES:
        size = 1
        if written < BLOCK_BYTES // 2:
            size = int(rng.choice(sizes, p=weights / weights.sum()))
        words = recombined(pool, rng)
        texts = ["".join(words)]
        while len(texts) < size and (len(texts) < 2 or written < BLOCK_BYTES // 2):
            text = "".join(edited(words, pool, rng))
            if text not in texts:  # identical texts are another matter
                texts.append(text)
                written += len(text)
        for number, text in enumerate(texts):
            name = f"{block:05}-{family:05}-{number:03}"
            lines.append(json.dumps({"id": name, "text": text}).encode() + b"\n")
        written = sum(map(len, lines))
        family += 1
    return lines


def recombined(pool: list[str], rng: np.random.Generator) -> list[str]:
    """Return runs of words, most of them from one part of the pool."""
    count = float(np.clip(rng.lognormal(np.log(MEDIAN_WORDS), 0.6), FEWEST_WORDS, MOST_WORDS))
    low, high = RUN_OF_WORDS
    runs = round(2 * count / (low + high))
    lengths = rng.integers(low, high + 1, runs)
    anywhere = rng.integers(0, len(pool) - high, runs)
    part = min(SUBJECT_WORDS, len(pool) - high)
    near = rng.integers(0, len(pool) - high - part + 1) + rng.integers(0, part, runs)
    starts = np.where(rng.random(runs) < SUBJECT_SHARE, near, anywhere)
    words: list[str] = []
    for start, end in zip(starts.tolist(), (starts + lengths).tolist(), strict=True):
        words += pool[start:end]
    return words


def edited(words: list[str], pool: list[str], rng: np.random.Generator) -> list[str]:
    """Return the words with some of them replaced, left out or preceded by another one."""
    low, high = EDITED_SHARE
    count = max(round(len(words) * low * (high / low) ** rng.random()), 1)
    changed = words.copy()
    places, others = rng.integers(0, len(words), count), rng.integers(0, len(pool), count)
    kinds = rng.choice(("replace", "leave out", "insert"), count, p=(0.5, 0.25, 0.25))
    for place, other, kind in zip(places.tolist(), others.tolist(), kinds, strict=True):
        if kind == "leave out":
            changed[place] = ""
        elif kind == "insert":
            changed[place] = pool[other] + words[place]
        else:
            changed[place] = pool[other]
    return changed


def block_of(name: str) -> int:
    return int(name[:5])


def family_of(name: str) -> str:
    return name[:11]


def names_and_lines(corpus: Path) -> Iterator[tuple[str, bytes]]:
    name = re.compile(rb'\{"id": "(\d{5}-\d{5}-\d{3})"')
    with corpus.open("rb") as lines:
        for line in lines:
            found = name.match(line)
            if found is None:
                raise peers.MissingError(f"{corpus}: not a corpus that this script has built")
            yield found[1].decode(), line


def first_blocks(corpus: Path, blocks: int, file: Path) -> None:
    with file.open("wb") as out:
        out.writelines(line for name, line in names_and_lines(corpus) if block_of(name) < blocks)


# The comparison.


def compare(
    contenders: list[Contender], corpus: Path, source: str, folder: Path, rounds: int
) -> None:
    whole = 1 + max(block_of(name) for name, _ in names_and_lines(corpus))
    inputs = {}
    for blocks in sorted({min(n_blocks(one.megabytes), whole) for one in contenders}):
        inputs[blocks] = corpus if blocks == whole else Path(folder, f"blocks-{blocks}.jsonl")
        if blocks < whole:
            first_blocks(corpus, blocks, inputs[blocks])
    sources = [inputs[min(n_blocks(one.megabytes), whole)] for one in contenders]
    targets = [Path(folder, f"pairs-{place}.csv") for place in range(len(contenders))]
    common = min(inputs)

    def start(place: int, source: Path) -> Run:
        contender = contenders[place]
        files = {"IN": str(source), "OUT": str(targets[place])}
        command = [files.get(word, word) for word in contender.command]
        return watch(command, {**os.environ, **dict(contender.environment)})

    for place, contender in enumerate(contenders):
        if contender.name == "neardup":
            start(place, inputs[common])  # pays for what is compiled only once
    runs: list[list[Run]] = [[] for _ in contenders]
    for turn in range(rounds):
        for place in np.roll(np.arange(len(contenders)), -turn).tolist():
            runs[place].append(start(place, sources[place]))

    print(
        peers.heading(
            "End to end", **{name: version(name) for name in ("rensa", "datasketch", "gaoya")}
        )
    )
    print(
        peers.machine()
        .replace("One core", f"{os.cpu_count()} cores")
        .replace("Seconds are processor time.", "Seconds are of the clock unless named otherwise.")
    )
    print(f"The corpus, {source}: {make_up(corpus)}\n")
    megabytes = [source.stat().st_size / 1e6 for source in sources]
    costs = [
        [run.seconds / size for run in of_rounds]
        for of_rounds, size in zip(runs, megabytes, strict=True)
    ]
    similar = similar_pairs(inputs[common])
    rows: list[list[object]] = []
    for place, contender in enumerate(contenders):
        pairs, found, others = count_pairs(targets[place], common, similar)
        rows.append(
            [
                contender.name,
                contender.how,
                f"{megabytes[place]:.0f}",
                f"{median(run.seconds for run in runs[place]):.1f}",
                f"{median(run.processor_seconds for run in runs[place]):.1f}",
                f"{1 / median(costs[place]):.1f}",
                f"{peers.ratio(costs[place], costs[0]):.1f}",
                f"{max(run.peak_bytes for run in runs[place]) / 1e6:,.0f}",
                f"{pairs:,}",
                f"{1000 * found // len(similar) / 1000:.3f}",
                f"{others:,}",
            ]
        )
    columns = ["", "how", "MB", "seconds", "processor seconds", "MB/s", "time ÷ neardup", "peak MB"]
    print(peers.table([*columns, "pairs", "recall", "other pairs"], rows))
    print(
        f"Rounds: {rounds} (medians). Every contender is a process of its own that may use all "
        "cores; processor seconds tell whether it did. Time ÷ neardup is by the MB, to the first "
        "line. Recall and other pairs are counted on the "
        f"{inputs[common].stat().st_size / 1e6:.0f} MB that all had, which have {len(similar):,} "
        f"pairs of exact similarity {MIN_SIMILARITY} or more; other pairs are less similar."
    )


def watch(command: Sequence[str], environment: dict[str, str]) -> Run:
    """Run a command and measure it; what it says is shown only if it fails."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
        peak = turn = 0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if turn % 100 == 0:  # slows down what it looks at
                held = sum(map(memory, tree(process.pid))) + files_in_memory(process.pid)
                peak = max(peak, held)
            turn += 1
            time.sleep(0.02)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            reason = lines[-1] if lines else f"exit code {process.returncode}"
            raise peers.MissingError(f"{' '.join(command)}: {reason.removeprefix('error: ')}")
    # The system counts the largest process, not all of them together.
    return Run(seconds, usage.ru_utime + usage.ru_stime, max(peak, usage.ru_maxrss * 1024))


def tree(pid: int) -> Iterator[int]:
    """Yield a process and those below it."""
    yield pid
    try:
        children = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return
    for child in " ".join(children).split():
        yield from tree(int(child))


def memory(pid: int) -> int:
    """Return the bytes a process takes, its part of what it shares with others counted in part;
    files in memory are counted by ``files_in_memory``."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = dict(re.findall(r"^(Pss|Pss_Shmem):\s+(\d+) kB", text, re.MULTILINE))
    return 1024 * (int(found.get("Pss", 0)) - int(found.get("Pss_Shmem", 0)))


def files_in_memory(pid: int) -> int:
    """Return the bytes of the files that a process has open in memory alone (memfd_create(2)),
    which count as no process's."""
    sizes = {}
    with suppress(OSError):  # it may end meanwhile
        for link in Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(link).startswith("/memfd:"):
                status = link.stat()
                sizes[status.st_ino] = 512 * status.st_blocks
    return sum(sizes.values())


def make_up(corpus: Path) -> str:
    versions: defaultdict[str, int] = defaultdict(int)
    size_of_family: defaultdict[str, int] = defaultdict(int)
    for name, line in names_and_lines(corpus):
        versions[family_of(name)] += 1
        size_of_family[family_of(name)] += len(line)
    sizes = np.array(list(versions.values()))
    many = sizes > 1
    size = sum(size_of_family.values())
    inside = sum(count for name, count in size_of_family.items() if versions[name] > 1)
    documents = int(sizes.sum())
    return (
        f"{size / 1e6:.0f} MB, {documents:,} documents, {size / documents / 1000:.1f} kB each. "
        f"{sizes[many].sum():,} documents ({sizes[many].sum() / documents:.0%}, "
        f"{inside / size:.0%} of the bytes) are in {many.sum():,} families of 2 to {sizes.max()}: "
        f"half of the families have {np.median(sizes[many]):.0f} or fewer, "
        f"{np.count_nonzero(sizes >= 100)} have 100 or more; "
        f"{(sizes * (sizes - 1) // 2).sum():,} pairs within families."
    )


def similar_pairs(corpus: Path) -> set[tuple[str, str]]:
    """Return the pairs within families whose exact similarity is high enough."""
    families: defaultdict[str, dict[str, set[str]]] = defaultdict(dict)
    for name, _ in names_and_lines(corpus):
        families[family_of(name)][name] = set()
    for name, line in names_and_lines(corpus):
        if len(families[family_of(name)]) > 1:
            families[family_of(name)][name] = shingles(json.loads(line)["text"])
    similar = set()
    for sets in families.values():
        for one, other in combinations(sorted(sets), 2):
            common = len(sets[one] & sets[other])
            if common >= MIN_SIMILARITY * (len(sets[one]) + len(sets[other]) - common):
                similar.add((one, other))
    return similar


def count_pairs(file: Path, blocks: int, similar: set[tuple[str, str]]) -> tuple[int, int, int]:
    """Return how many pairs there are, and among the first blocks, how many that are similar and
    how many others."""
    count = found = others = 0
    with file.open(encoding="utf-8", newline="") as lines:
        next(lines, None)  # the names of the columns
        for row in csv.reader(lines):
            count += 1
            left, right = sorted(row[:2])
            if block_of(right) < blocks:
                if (left, right) in similar:
                    found += 1
                else:
                    others += 1
    return count, found, others


if __name__ == "__main__":
    peers.run(main)
