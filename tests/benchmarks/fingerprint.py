"""Fingerprint about 40 MB of English text on one core, beside gaoya and the simhash package.

    python tests/benchmarks/fingerprint.py --data DIR --peers DIR

All contenders get the same list of str and take turns over several rounds in one process. Figures
are medians over the rounds, of processor time. gaoya also puts each fingerprint into its index,
which costs little beside making it. The simhash package (pure Python) gets a sample only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median

import peers

# isort: split

import neardup

ENGLISH = ("pep_versions", "license_texts", "sotu")
SAMPLE_BYTES = 400_000


def main() -> int:
    parser = argparse.ArgumentParser(description="Time fingerprinting on one core.")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"folder with {', '.join(ENGLISH)}, each with a docs.jsonl (default: generated text)",
    )
    parser.add_argument("--megabytes", type=peers.positive, default=40)
    parser.add_argument("--rounds", type=peers.positive, default=7)
    peers.add_peers_option(parser)
    options = parser.parse_args()

    simhash = peers.load_simhash(options.peers, "simhash")
    gaoya_index = peers.installed("gaoya.simhash").SimHashStringIndex
    peers.one_core()
    size = options.megabytes * 1_000_000
    if options.data is None:
        texts, source = generate(size), "Generated English-looking text, as no --data is given"
    elif not options.data.is_dir():
        texts, source = generate(size), f"Generated English-looking text (no {options.data})"
    else:
        texts, source = read(options.data, size)
    size = n_bytes(texts)
    sample = texts[:: max(size // SAMPLE_BYTES, 1)]

    def insert_all(ngrams: tuple[int, int]) -> None:
        index = gaoya_index(64, 6, 5, "word", True, ngrams)
        for row, text in enumerate(texts):
            index.insert_document(row, text)

    slow = "simhash package"
    contenders: dict[str, Callable[[], object]] = {
        "neardup classic": partial(neardup.fingerprint, texts, "classic"),
        "neardup simhash": partial(neardup.fingerprint, texts, "simhash"),
        "gaoya (1, 1)": partial(insert_all, (1, 1)),
        "gaoya (1, 2)": partial(insert_all, (1, 2)),
        slow: lambda: [simhash.Simhash(text).value for text in sample],
    }
    features = {
        "neardup classic": "words, pairs; ASCII",
        "neardup simhash": "words, pairs; Unicode, counts damped",
        "gaoya (1, 1)": "words",
        "gaoya (1, 2)": "words, pairs",
        slow: "4 characters",
    }
    neardup.fingerprint(texts[:100])  # pays for what is loaded on first use
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
        f"{source}: {len(texts)} documents, {size / 1e6:.1f} MB of UTF-8, medians of "
        f"{options.rounds} interleaved rounds. The simhash package had a sample of "
        f"{len(sample)} documents, {n_bytes(sample) / 1e6:.2f} MB.\n"
    )
    per_byte = {
        name: [spent / n_bytes(sample if name == slow else texts) for spent in of_rounds]
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
    return 0


def n_bytes(texts: Sequence[str]) -> int:
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def read(data: Path, size: int) -> tuple[list[str], str]:
    """Return the English documents, repeated until there is enough: each time some 2 % of the
    words of every document are new, so that no repetition is identical."""
    originals: list[str] = []
    found = []
    for name in ENGLISH:
        file = data / name / "docs.jsonl"
        if file.is_file():
            with file.open(encoding="utf-8") as lines:
                try:
                    originals += [json.loads(line)["text"] for line in lines]
                except (ValueError, LookupError, TypeError):
                    raise peers.MissingError(f"{file}: expected lines with id and text") from None
            found.append(name)
    if not originals:
        raise peers.MissingError(f"no {' or '.join(ENGLISH)} with a docs.jsonl in {data}")
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
