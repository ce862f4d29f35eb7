"""Search random fingerprints with planted pairs, beside simhash-pybind; then neardup alone.

    python tests/benchmarks/index.py --peers DIR

simhash-pybind works on a set of distinct values. It gets that set ready-made, neardup gets the
whole array. Pairs at distance 0 are pairs of rows with one value: only neardup can report them, so
the two results are compared as pairs of different values, and what neardup reports at distance 0
is checked against what was planted. Exits 1 if a planted pair is missed or the results differ.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import peers

# isort: split

import numpy as np

from neardup.index import pairs
from neardup.index.search import plan_for
from neardup.tables import Pairs, UInt64Array

K = 3
BLOCKS = (4, 5, 6)
SLOW = 2  # seconds; what takes longer is measured once
PLANTED_SHARE = 100  # one planted pair for so many rows


def main() -> int:
    parser = argparse.ArgumentParser(description="Time the exact search for pairs.")
    parser.add_argument("--rows", type=peers.positive, default=1_000_000)
    parser.add_argument("--rounds", type=peers.positive, default=5)
    peers.add_peers_option(parser)
    options = parser.parse_args()
    if options.rows < 1000:
        parser.error("--rows must be at least 1000")

    simhash = peers.load_simhash(options.peers, "simhash-pybind")
    peers.one_core()
    print(
        peers.heading(
            "Searching", **{"simhash-pybind": peers.version_in(options.peers / "simhash-pybind")}
        )
    )
    print(peers.machine())
    agreed = compare(simhash, options.rows, options.rounds)
    complete = neardup_alone((options.rows // 10, options.rows), (3, 6, 10), options.rounds)
    return 0 if agreed and complete else 1


def compare(simhash: Any, n: int, rounds: int) -> bool:
    """Print neardup beside simhash-pybind; return whether nothing was missed."""
    bits = plant(n, K)
    values = set(bits.tolist())

    contenders: dict[str, Callable[[], object]] = {"neardup.index.pairs": partial(pairs, bits, K)}
    for blocks in BLOCKS:
        contenders[f"simhash-pybind, {blocks} blocks"] = partial(
            simhash.find_all, values, blocks, K
        )
    seconds, results = peers.interleaved(contenders, rounds)

    found: Pairs = results.pop("neardup.index.pairs")
    mine = value_pairs(np.column_stack((bits[found.left], bits[found.right])))
    theirs = {
        name: value_pairs(np.array(list(result), np.uint64).reshape(-1, 2))
        for name, result in results.items()
    }
    equal = found.distance == 0
    print(
        f"n = {n:,} random fingerprints, {n // PLANTED_SHARE:,} of them planted at distance 0 to "
        f"{K} of another one; k = {K}, exact, medians of {rounds} interleaved rounds.\n"
    )
    columns = [
        "",
        "seconds",
        "time ÷ neardup",
        "pairs of different values",
        "pairs of equal values",
    ]
    rows: list[list[object]] = []
    for name, spent in seconds.items():
        own = name not in theirs
        rows.append(
            [
                name,
                f"{median(spent):.3f}",
                f"{peers.ratio(spent, seconds['neardup.index.pairs']):.1f}",
                f"{len(mine) if own else len(theirs[name]):,}",
                f"{np.count_nonzero(equal):,}" if own else "takes a set",
            ]
        )
    print(peers.table(columns, rows))
    complete = planted_found(found, n, K) == n // PLANTED_SHARE
    same = all(np.array_equal(mine, other) for other in theirs.values())
    print(f"neardup found every planted pair: {'yes' if complete else 'NO'}.")
    print(f"All agree on the pairs of different values: {'yes' if same else 'NO'}.\n")
    return complete and same


def neardup_alone(sizes: tuple[int, ...], thresholds: tuple[int, ...], rounds: int) -> bool:
    """Print what plans are chosen and how long they take; return whether nothing was missed."""
    rows: list[list[object]] = []
    complete = True
    for n in sizes:
        for k in thresholds:
            bits = plant(n, k)
            plan = plan_for(n, k)
            search = {"": partial(pairs, bits, k)}
            seconds, results = peers.interleaved(search, 1)
            if seconds[""][0] < SLOW:
                seconds, results = peers.interleaved(search, rounds)
            key_bits = np.bitwise_count(plan.masks)
            planted = planted_found(results[""], n, k)
            complete = complete and planted == n // PLANTED_SHARE
            low, high = key_bits.min(), key_bits.max()
            rows.append(
                [
                    f"{n:,}",
                    k,
                    len(plan.masks),
                    low if low == high else f"{low}–{high}",
                    f"{plan.candidates:.1e}",
                    f"{median(seconds['']):.3f}",
                    f"{len(results['']):,}",
                    f"{planted:,} of {n // PLANTED_SHARE:,}",
                ]
            )
    print(
        f"neardup alone; medians of {rounds} rounds, one round where it takes more than {SLOW} s. "
        "Pairs beyond the planted ones are chance.\n"
    )
    columns = ["n", "k", "tables", "key bits", "expected candidates", "seconds", "pairs", "planted"]
    print(peers.table(columns, rows))
    return complete


def plant(n: int, k: int) -> UInt64Array:
    """Return random fingerprints whose last rows are the first ones with 0 to k bits flipped."""
    rng = np.random.default_rng(n + k)
    bits = rng.integers(0, 2**64, n, np.uint64)
    count = n // PLANTED_SHARE
    places = rng.permuted(np.tile(np.arange(64, dtype=np.uint64), (count, 1)), axis=1)[:, :k]
    flips = np.where(np.arange(k) < np.arange(count)[:, None] % (k + 1), np.uint64(1) << places, 0)
    bits[n - count :] = bits[:count] ^ np.bitwise_or.reduce(flips.astype(np.uint64), axis=1)
    return bits


def planted_found(found: Pairs, n: int, k: int) -> int:
    """Return how many of the pairs that ``plant`` planted are found, at the right distance."""
    count = n // PLANTED_SHARE
    wanted = np.arange(count)
    keys = np.column_stack((found.left, found.right, found.distance))
    planted = np.column_stack((wanted, wanted + n - count, wanted % (k + 1)))
    return len(set(map(tuple, keys.tolist())) & set(map(tuple, planted.tolist())))


def value_pairs(values: UInt64Array) -> UInt64Array:
    """Return the distinct pairs of different values, the smaller first, in a fixed order."""
    low, high = values.min(axis=1), values.max(axis=1)
    different = np.column_stack((low, high))[low != high]
    return np.unique(different, axis=0)


if __name__ == "__main__":
    peers.run(main)
