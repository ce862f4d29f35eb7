"""Work shared among processes, its results in the order of the tasks.

The standard pools hide what matters here: a worker that is killed must end the run with a word, not
leave it waiting, and Ctrl-C must end it at once, whatever the workers are doing.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, TypeVar

from neardup.errors import NeardupError

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

Task = TypeVar("Task")
Result = TypeVar("Result")

# Tasks handed out beyond the one whose result is waited for, per worker: results that come early
# are kept.
_AHEAD = 4

_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def forks() -> bool:
    """Return whether workers are forked, and so have all that this process has."""
    return sys.platform == "linux"


def in_order(
    work: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Iterator[Result]:
    """Yield ``work(task)`` for every task, in their order, computed by so many processes.

    Parameters
    ----------
    work : callable
        Must not depend on what it did before. Where processes are not forked (all but Linux) it is
        pickled, as tasks and results always are.
    tasks : sequence
    workers : int
        With 1, or a single task, the work is done in this process.

    Raises
    ------
    NeardupError
        A worker has ended before its work was done.
    Exception
        Whatever ``work`` raised in a worker.
    """
    if min(workers, len(tasks)) <= 1:
        yield from map(work, tasks)
        return
    team = _Team(work, min(workers, len(tasks)))
    try:
        yield from team.run(tasks)
    finally:
        team.stop()


@cache
def keep_freed_memory() -> None:
    """Let glibc's allocator keep arrays for the next ones, here and in workers made later.

    Arrays above its threshold (128 KB) are mapped anew each time, and touching them first costs
    a third of all time of fingerprinting (measured). Freeing one larger array raises the threshold
    for good (mallopt(3), M_MMAP_THRESHOLD); nothing is touched, and other allocators do not mind.
    """
    bytes(24 << 20)


class _Team:
    """Processes that each wait for a task, do it, and send the result."""

    def __init__(self, work: Callable[[Task], Result], workers: int) -> None:
        # Forked workers share what is in memory and start in milliseconds. Elsewhere the system's
        # own libraries may not survive a fork.
        context: BaseContext = multiprocessing.get_context("fork" if forks() else "spawn")
        ends = [context.Pipe() for _ in range(workers)]
        self._pipes = [ours for ours, _ in ends]
        self._processes: list[BaseProcess] = []
        for number, (_, theirs) in enumerate(ends):
            # A forked child has all ends; those it keeps open would hide that we are gone.
            others = [end for pair in ends for end in pair if end is not theirs]
            spare = others if context.get_start_method() == "fork" else []
            process = context.Process(  # type: ignore[attr-defined]
                target=_serve, args=(work, theirs, spare), name=f"neardup-{number}", daemon=True
            )
            try:
                with _no_signals(), warnings.catch_warnings():
                    # Python warns of forking beside threads; the only ones are those of numpy's
                    # linear algebra, which is prepared for it and not used here.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
            except OSError as error:
                self.stop()
                raise NeardupError(
                    f"cannot start worker processes: {(error.strerror or str(error)).lower()}; "
                    "--workers 1 needs none"
                ) from None
            self._processes.append(process)
        for _, theirs in ends:
            theirs.close()

    def run(self, tasks: Sequence[Task]) -> Iterator[Result]:
        idle = deque(self._pipes)
        busy: dict[Connection, int] = {}
        done: dict[int, Result] = {}
        given = 0
        for number in range(len(tasks)):
            while True:
                # Also before a result is handed over, so that nobody idles while it is used.
                while idle and given < min(len(tasks), number + _AHEAD * len(self._pipes)):
                    pipe = idle.popleft()
                    busy[pipe] = given
                    with _alive():
                        pipe.send(tasks[given])
                    given += 1
                if number in done:
                    break
                ready = wait(list(busy))
                for pipe in [pipe for pipe in busy if pipe in ready]:
                    with _alive():
                        fine, result = pipe.recv()
                    if not fine:
                        raise result
                    done[busy.pop(pipe)] = result
                    idle.append(pipe)
            yield done.pop(number)

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        for pipe in self._pipes:
            pipe.close()


@contextmanager
def _no_signals() -> Iterator[None]:
    """Keep signals waiting: a child must not meet one before it knows what to do with it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _alive:  # noqa: N801
    """``with _alive():`` turns a broken pipe into an error with a word."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EOFError | ConnectionError):
            raise NeardupError(
                "a worker process was killed, or ran out of memory; --workers 1 needs the least"
            ) from None


def _serve(work: Callable[[Task], Result], pipe: Connection, others: Sequence[Connection]) -> None:
    for end in others:
        end.close()
    # Ctrl-C reaches all processes of a terminal; the one that gave the work stops the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    with suppress(EOFError, ConnectionError):
        while True:
            task = pipe.recv()
            try:
                answer: tuple[bool, object] = True, work(task)
            except Exception as error:
                answer = False, error
            pipe.send_bytes(_pickled(answer))


def _pickled(answer: tuple[bool, object]) -> bytes:
    try:
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # an error that cannot be sent is told in words
        return pickle.dumps((False, RuntimeError(f"{answer[1]!r} ({error!r})")))
