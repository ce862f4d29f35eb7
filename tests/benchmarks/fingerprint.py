"""Fingerprint about 40 MB of text on one core, beside gaoya and the simhash package.

    python tests/benchmarks/fingerprint.py --data DIR --peers DIR

All contenders get the same list of str and take turns over several rounds in one process. Figures
are medians over the rounds, of processor time. gaoya also puts each fingerprint into its index,
which costs little beside making it. The simhash package (pure Python) gets a sample only.

First ASCII English, for all; then English as it is, with a few typographic characters in most
documents, and Chinese, for neardup's kernels alone.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median

import peers

# isort: split

import neardup
from neardup import fast

ENGLISH = ("pep_versions", "license_texts", "sotu")
CHINESE = ("cn_laws",)
SKETCHES = ("simhash", "minhash", "classic")
FEATURES = {
    "simhash": "words, pairs; Unicode, counts damped",
    "minhash": "pairs; Unicode",
    "classic": "words, pairs; ASCII",
}
SAMPLE_BYTES = 400_000
SAMPLE_CHARACTERS = 2000


def main() -> int:
    parser = argparse.ArgumentParser(description="Time fingerprinting on one core.")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"folder with {', '.join((*ENGLISH, *CHINESE))}, each with a docs.jsonl "
        "(default: generated text)",
    )
    parser.add_argument("--megabytes", type=peers.positive, default=40)
    parser.add_argument("--rounds", type=peers.positive, default=7)
    peers.add_peers_option(parser)
    options = parser.parse_args()

    simhash = peers.load_simhash(options.peers, "simhash")
    gaoya_index = peers.installed("gaoya.simhash").SimHashStringIndex
    peers.one_core()
    size = options.megabytes * 1_000_000
    if options.data is None or not options.data.is_dir():
        texts, source = generate(size), "Generated English-looking text (no folder of --data)"
    else:
        texts, source = read(options.data, ENGLISH, size)
    ascii_texts = [text.encode("ascii", "ignore").decode() for text in texts]
    step = max(n_bytes(ascii_texts) // SAMPLE_BYTES, 1)
    # Cut, for what occurs more than 255 times is more than the simhash package can count.
    sample = [text[:SAMPLE_CHARACTERS] for text in ascii_texts[::step]]

    def insert_all(ngrams: tuple[int, int]) -> None:
        index = gaoya_index(64, 6, 5, "word", True, ngrams)
        for row, text in enumerate(ascii_texts):
            index.insert_document(row, text)

    slow = "simhash package"
    contenders = ours(ascii_texts) | {
        "gaoya (1, 1)": partial(insert_all, (1, 1)),
        "gaoya (1, 2)": partial(insert_all, (1, 2)),
        slow: lambda: [simhash.Simhash(text).value for text in sample],
    }
    features = {f"neardup {sketch}, {kind}": FEATURES[sketch] for kind, sketch in kinds()} | {
        "gaoya (1, 1)": "words",
        "gaoya (1, 2)": "words, pairs",
        slow: "4 characters",
    }
    seconds, _ = peers.interleaved(contenders, options.rounds)

    print(
        peers.heading(
            "Fingerprinting",
            gaoya=version("gaoya"),
            simhash=peers.version_in(options.peers / "simhash"),
        )
    )
    print(peers.machine())
    print(
        f"{source}, other characters than ASCII left out: {len(texts)} documents, "
        f"{n_bytes(ascii_texts) / 1e6:.1f} MB, medians of {options.rounds} interleaved rounds. The "
        f"simhash package had {len(sample)} documents, {n_bytes(sample) / 1e6:.2f} MB.\n"
    )
    per_byte = {
        name: [spent / n_bytes(sample if name == slow else ascii_texts) for spent in of_rounds]
        for name, of_rounds in seconds.items()
    }
    print(
        peers.table(
            ["", "features", "MB/s", "× gaoya words", "× gaoya words, pairs"],
            [
                [
                    name,
                    features[name],
                    f"{1e-6 / median(cost):.2f}" if name == slow else f"{1e-6 / median(cost):.0f}",
                    f"{peers.ratio(per_byte['gaoya (1, 1)'], cost):.2f}",
                    f"{peers.ratio(per_byte['gaoya (1, 2)'], cost):.2f}",
                ]
                for name, cost in per_byte.items()
            ],
        )
    )
    scripts(options.data, texts, ascii_texts, options.rounds)
    return 0


def kinds() -> list[tuple[str, str]]:
    """Return the kernels there are, with each sketch."""
    with_numba = [("compiled", sketch) for sketch in SKETCHES] if use("compiled") else []
    return with_numba + [("numpy", sketch) for sketch in SKETCHES]


def use(kernels: str) -> bool:
    """Choose the kernels; return whether they can be had."""
    os.environ[fast.VARIABLE] = "1" if kernels == "compiled" else "0"
    fast._loaded.clear()
    return (fast.kernels("sketch") is not None) == (kernels == "compiled")


def ours(texts: Sequence[str]) -> dict[str, Callable[[], object]]:
    def fingerprint(kernels: str, sketch: str) -> None:
        use(kernels)
        neardup.fingerprint(texts, sketch)

    contenders: dict[str, Callable[[], object]] = {}
    for kernels, sketch in kinds():
        use(kernels)
        neardup.fingerprint(texts[:100], sketch)  # pays for what is loaded on first use
        contenders[f"neardup {sketch}, {kernels}"] = partial(fingerprint, kernels, sketch)
    return contenders


def scripts(
    data: Path | None, texts: Sequence[str], ascii_texts: Sequence[str], rounds: int
) -> None:
    """Print how much slower other text is than ASCII."""
    corpora = {"ASCII English": list(ascii_texts), "English": list(texts)}
    corpora["English, only documents that are not ASCII"] = [t for t in texts if not t.isascii()]
    if data is not None and (data / CHINESE[0] / "docs.jsonl").is_file():
        corpora["Chinese"] = read(data, CHINESE, 20_000_000)[0]
    contenders: dict[str, Callable[[], object]] = {}
    for name, corpus in corpora.items():
        for contender, run in ours(corpus).items():
            contenders[f"{name}|{contender}"] = run
    seconds, _ = peers.interleaved(contenders, min(rounds, 3))
    per_byte = {
        name: [spent / max(n_bytes(corpora[name.split("|")[0]]), 1) for spent in of_rounds]
        for name, of_rounds in seconds.items()
    }
    names = list(ours([]))

    def rate(corpus: str, name: str) -> str:
        cost = per_byte[f"{corpus}|{name}"]
        ratio = peers.ratio(per_byte[f"ASCII English|{name}"], cost)
        return f"{1e-6 / median(cost):.0f} ({ratio:.2f})"

    print(
        peers.table(
            ["MB/s (× ASCII)", *(name.removeprefix("neardup ") for name in names)],
            [[corpus, *(rate(corpus, name) for name in names)] for corpus in corpora],
        )
    )


def n_bytes(texts: Sequence[str]) -> int:
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def read(data: Path, names: Sequence[str], size: int) -> tuple[list[str], str]:
    """Return the documents of the named sets, repeated until there is enough: each time some 2 % of
    the words of every document are new, so that no repetition is identical."""
    originals: list[str] = []
    found = []
    for name in names:
        file = data / name / "docs.jsonl"
        if file.is_file():
            with file.open(encoding="utf-8") as lines:
                try:
                    originals += [json.loads(line)["text"] for line in lines]
                except (ValueError, LookupError, TypeError):
                    raise peers.MissingError(f"{file}: expected lines with id and text") from None
            found.append(name)
    if not originals:
        raise peers.MissingError(f"no {' or '.join(names)} with a docs.jsonl in {data}")
    writer = peers.Writer(seed=1)
    texts = []
    left = size
    turn = 0
    while left > 0:
        for text in originals:
            if turn:
                words = text.split(" ")
                for place in range(turn % min(50, len(words)), len(words), 50):
                    words[place] = writer.new_word()
                text = " ".join(words)
            texts.append(text)
            left -= len(text.encode("utf-8", "replace"))
            if left <= 0:
                break
        turn += 1
    repeated = f", {turn} times over, with 2 % new words each further time" if turn > 1 else ""
    return texts, f"{', '.join(found)}{repeated}"


def generate(size: int) -> list[str]:
    """Write documents of 100 to 1900 words until there is enough."""
    writer = peers.Writer(seed=1)
    texts: list[str] = []
    left = size
    while left > 0:
        texts.append(peers.prose(writer.words(100 + 300 * (len(texts) % 7))))
        left -= len(texts[-1])
    return texts


if __name__ == "__main__":
    peers.run(main)
