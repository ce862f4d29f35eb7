"""Which bits to sort on, and why no pair can be missed.

The 64 bits are cut into v blocks. Two fingerprints at distance <= k differ in at most k blocks, so
at least v - k blocks are equal. Put the blocks into g groups. When (r - 1) g < v - k, the equal
blocks cannot be spread with only r - 1 in each group, so some group has r equal ones. One table
for every choice of r blocks within a group therefore sees every such pair: a pigeonhole argument
twice over.

- r = 1, v = k + 1 is the textbook: k + 1 tables, one block each;
- g = 1 is the design of Manku, Jain, Das Sarma, "Detecting near-duplicates for web crawling" (WWW
  2007), section 3: all choices of v - k blocks;
- in between lie cheaper ones: k = 3, v = 8, r = 3, g = 2 needs 8 tables of 24 bits where the
  textbook's four have 16.

Brute force is the plan with one table and no key bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from neardup.errors import UsageError
from neardup.tables import SearchPlan

BITS = 64


class Costs(NamedTuple):
    """Seconds to bring one row into the order of one table, and to compare one pair. Only their
    ratio matters for the choice."""

    row: float
    pair: float


# Measured with n = 10⁵ and 10⁶ random fingerprints, k = 3 to 12.
NUMPY = Costs(25e-9, 1.3e-9)
# A pair takes 0.07 ns with AVX-512, which counts bits eight words at a time, and 0.3 with AVX2;
# plans chosen by the mean are at most a seventh slower than the best ones in either case.
COMPILED = Costs(17e-9, 0.14e-9)

# Designs of more tables would be somewhat cheaper from 10 million rows at k = 14 on, but to
# enumerate them takes long.
MAX_TABLES = 4096


@dataclass(frozen=True)
class Design:
    """v blocks, keys of r blocks, g groups."""

    blocks: int
    chosen: int
    groups: int

    @property
    def tables(self) -> int:
        sizes = (len(range(g, self.blocks, self.groups)) for g in range(self.groups))
        return sum(comb(size, self.chosen) for size in sizes)

    def masks(self) -> list[int]:
        """Return the key bits of every table."""
        edges = [BITS * i // self.blocks for i in range(self.blocks + 1)]
        blocks = [(1 << end) - (1 << start) for start, end in pairwise(edges)]
        return [
            sum(choice)
            for group in range(self.groups)
            for choice in combinations(blocks[group :: self.groups], self.chosen)
        ]


#: One table whose key has no bits: all rows form one run.
BRUTE_FORCE = Design(1, 0, 1)


@cache
def designs(k: int) -> tuple[Design, ...]:
    """Return every design that is complete for distance k and has not too many tables."""
    found = []
    if k < BITS:
        found.append(Design(k + 1, 1, 1))
    for blocks in range(k + 2, BITS + 1):
        for chosen in range(2, blocks - k + 1):
            groups = (blocks - k - 1) // (chosen - 1)
            design = Design(blocks, chosen, groups)
            if design.tables <= MAX_TABLES:
                found.append(design)
    return tuple(found)


def choose(n: int, k: int, costs: Costs = NUMPY) -> SearchPlan:
    """Return the cheapest complete plan for n fingerprints and threshold k.

    Parameters
    ----------
    n : int, number of fingerprints
    k : int, Hamming threshold in bits, 0 to 64
    costs : Costs of the kernel that will carry it out

    Returns
    -------
    SearchPlan
        Its ``candidates`` are what n uniformly random fingerprints would give. Real fingerprints
        are clustered and give more.
    """
    if not 0 <= k <= BITS:
        raise UsageError(f"the threshold is a number of bits from 0 to {BITS}, not {k}")
    all_pairs = n * (n - 1) / 2
    row_bits = max(n - 1, 1).bit_length()
    best, best_cost, best_candidates = BRUTE_FORCE, all_pairs * costs.pair, all_pairs
    for design in designs(k):
        key_bits = BITS * design.chosen / design.blocks
        # Row numbers are packed below the key, and blocks may be a bit longer than their mean.
        if key_bits + design.chosen > BITS - row_bits:
            continue
        candidates = design.tables * all_pairs / 2.0**key_bits
        cost = design.tables * n * costs.row + candidates * costs.pair
        if cost < best_cost:
            best, best_cost, best_candidates = design, cost, candidates
    return SearchPlan(np.array(best.masks(), np.uint64), k, best_candidates)
