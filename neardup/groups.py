"""Pairs of groups to pairs of their members.

Where many rows are the same, they are handled as one group, and what is found for groups is
expanded at the end. The members of group g are ``members[starts[g] : starts[g] + sizes[g]]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neardup.tables import IntArray


@dataclass(frozen=True)
class Groups:
    """members : int64 (n,), rows ordered by group; starts, sizes : int64 (g,)"""

    members: IntArray
    starts: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, group: IntArray) -> Groups:
        """Collect rows by the number of their group, int64 (n,)."""
        sizes = np.bincount(group)
        return cls(np.argsort(group, kind="stable"), np.cumsum(sizes) - sizes, sizes)

    def between(self, a: IntArray, b: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return for pairs of groups (a, b) every pair of a member of a with one of b, and which
        pair of groups each comes from."""
        counts = self.sizes[a] * self.sizes[b]
        source = np.repeat(np.arange(len(a)), counts)
        nth = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        width = self.sizes[b][source]
        left = self.members[self.starts[a][source] + nth // width]
        return left, self.members[self.starts[b][source] + nth % width], source

    def within(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield every pair of two members of one group, by their distance in its order."""
        for lag in range(1, int(self.sizes.max(initial=1))):
            large = self.sizes > lag
            counts = self.sizes[large] - lag
            nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            first = np.repeat(self.starts[large], counts) + nth
            yield self.members[first], self.members[first + lag]
