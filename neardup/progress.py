"""One progress object, so that no other module knows tqdm. It imports nothing of neardup, so that
every stage may report what it has done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Called with how much has been done since the last call.
Advance = Callable[[int], object]


def unseen(count: int) -> None:
    """The ``Advance`` of a caller who does not want to know."""


class Progress:
    """Measures phases. Shows nothing; ``Bars`` does."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Time a phase under its name; ``total`` and ``unit`` are for those who show it."""
        with self.timed(name), self.show(name, total, unit) as advance:
            yield advance

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time spent inside to the phase of that name."""
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    @contextmanager
    def shares(self) -> Iterator[Callable[[dict[str, float]], None]]:
        """Divide the time spent inside among several phases that workers go through side by side,
        in proportion to the seconds reported for each."""
        spent: dict[str, float] = {}

        def spend(seconds: dict[str, float]) -> None:
            for name, some in seconds.items():
                spent[name] = spent.get(name, 0.0) + some

        start = time.perf_counter()
        try:
            yield spend
        finally:
            scale = (time.perf_counter() - start) / max(sum(spent.values()), 1e-9)
            for name, some in spent.items():
                self.seconds[name] = self.seconds.get(name, 0.0) + scale * some

    @contextmanager
    def show(self, name: str, total: int | None, unit: str) -> Iterator[Advance]:
        yield unseen


class Bars(Progress):
    """One tqdm line per phase on standard error, gone when the phase ends."""

    @contextmanager
    def show(self, name: str, total: int | None, unit: str) -> Iterator[Advance]:
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # no thread of its own, for workers are forked
        if total is None:
            with tqdm(desc=name, bar_format="{desc} ...", leave=False):
                yield unseen
            return
        with tqdm(
            total=total, desc=name, unit=f" {unit}", unit_scale=True, leave=False, delay=0.3
        ) as bar:
            yield bar.update
