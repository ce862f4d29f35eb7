"""Workers: results in order whatever their number, loud failures, no hang."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import neardup
from neardup.errors import NeardupError
from neardup.workers import cores, in_order


def late_if_even(number: int) -> tuple[int, int]:
    if number % 2 == 0:
        time.sleep(0.01)
    return number, os.getpid()


def fail_at(bad: int, number: int) -> int:
    if number == bad:
        raise LookupError(f"no {number}")
    return number


def die_at(bad: int, number: int) -> int:
    if number == bad:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


class UnpicklableError(Exception):
    def __reduce__(self) -> str:
        raise TypeError("cannot be sent")


def fail_oddly(number: int) -> int:
    raise UnpicklableError("odd")


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("tasks", [0, 1, 2, 50])
def test_results_come_in_order(count: int, tasks: int) -> None:
    results = list(in_order(late_if_even, range(tasks), count))
    assert [number for number, _ in results] == list(range(tasks))
    others = {pid for _, pid in results} - {os.getpid()}
    assert len(others) <= count
    assert bool(others) == (min(count, tasks) > 1)


def test_results_are_not_piled_up() -> None:
    """Workers do not run away from whoever takes the results."""
    stream = in_order(late_if_even, range(1000), 2)
    next(stream)
    time.sleep(0.3)
    stream.close()  # type: ignore[attr-defined]
    assert multiprocessing.active_children() == []


def test_large_tasks_and_results() -> None:
    tasks = [bytes([number]) * 3_000_000 for number in range(6)]
    assert list(in_order(bytes.upper, tasks, 2)) == [task.upper() for task in tasks]


def test_an_error_in_a_worker_is_the_error_here() -> None:
    for bad in (0, 7):
        got: list[int] = []
        with pytest.raises(LookupError, match=f"no {bad}"):
            got.extend(in_order(partial(fail_at, bad), range(20), 2))
        assert multiprocessing.active_children() == []
    with pytest.raises(RuntimeError, match="UnpicklableError"):
        list(in_order(fail_oddly, range(4), 2))


def test_a_killed_worker_is_loud() -> None:
    for bad in (0, 3, 19):
        with pytest.raises(NeardupError, match="a worker process was killed"):
            list(in_order(partial(die_at, bad), range(20), 2))
        assert multiprocessing.active_children() == []


def test_workers_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", no_fork)
    with pytest.raises(NeardupError, match="resource temporarily unavailable; --workers 1"):
        list(in_order(late_if_even, range(5), 2))
    assert multiprocessing.active_children() == []


def test_spawned_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where processes are not forked."""
    monkeypatch.setattr("neardup.workers.sys.platform", "darwin")
    results = in_order(partial(fail_at, -1), range(9), 2)
    assert list(results) == list(range(9))


def test_a_scan_with_spawned_workers(tmp_path: Path) -> None:
    """What the workers need can be sent to them."""
    for number in range(60):
        text = " ".join(f"w{number // 2 * 100 + place}" for place in range(40)) + f" {number}"
        (tmp_path / f"{number:02}.txt").write_text(text)
    script = tmp_path / "spawn.py"
    script.write_text(
        "import sys, neardup\n"
        "from neardup import verify\n"
        "from neardup.corpus import sources\n"
        "if __name__ == '__main__':\n"
        "    sys.platform = 'darwin'\n"
        "    sources._PART_BYTES = verify._TEXT_AT_ONCE = 2000\n"
        "    verify._SHINGLES_AT_ONCE = 300\n"
        "    for pair in neardup.scan(sys.argv[1], workers=2):\n"
        "        print(pair.left, pair.right)\n"
    )
    docs = tmp_path / "docs"
    docs.mkdir()
    for path in tmp_path.glob("*.txt"):
        path.rename(docs / path.name)
    command = [sys.executable, str(script), str(docs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.split() == [f"{number:02}.txt" for number in range(60)]


def test_cores() -> None:
    assert cores() >= 1


# Through the command line


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus file of several parts."""
    path = tmp_path_factory.mktemp("corpus") / "docs.jsonl"
    with path.open("w") as file:
        for number in range(6000):
            base = number % 5000
            words = [f"w{(base * 7919 + place * place) % 99991}" for place in range(250)]
            file.write(json.dumps({"text": " ".join(words) + f" {number}"}) + "\n")
    assert path.stat().st_size > 10_000_000
    return path


def run(*arguments: object, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "neardup", *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload,no-any-return]


def test_the_number_of_workers_changes_nothing(corpus: Path, tmp_path: Path) -> None:
    results = []
    for count in (1, 2, 3):
        out = tmp_path / f"{count}.csv"
        with run("scan", corpus, "-o", out, "--workers", count) as process:
            assert process.wait() == 0
        results.append(out.read_bytes())
    assert results[0].count(b"\n") == 1001
    assert results[1:] == results[:1] * 2


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_workers_at_once(
    corpus: Path, tmp_path: Path, signal_number: int
) -> None:
    out = tmp_path / "pairs.csv"
    with run("scan", corpus, "-o", out, "--workers", 2, start_new_session=True) as process:
        time.sleep(0.1)
        while len(children(process.pid)) < 2 and process.poll() is None:
            time.sleep(0.005)
        group = children(process.pid)
        assert len(group) == 2
        os.killpg(process.pid, signal_number) if signal_number == signal.SIGINT else os.kill(
            process.pid, signal_number
        )
        assert process.wait(timeout=20) == 128 + signal_number
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert not [pid for pid in group if alive(pid)]
    assert list(tmp_path.iterdir()) == []


def test_a_worker_killed_in_a_scan_is_one_line(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs.csv"
    with run("scan", corpus, "-o", out, "--workers", 2) as process:
        while not children(process.pid) and process.poll() is None:
            time.sleep(0.005)
        os.kill(children(process.pid)[0], signal.SIGKILL)
        assert process.wait(timeout=20) == 3
        assert process.stderr is not None
        (line,) = process.stderr.read().splitlines()
    assert "a worker process was killed" in line
    assert list(tmp_path.iterdir()) == []


def children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    if not path.exists():
        pytest.skip("needs /proc")
    return [int(child) for child in path.read_text().split()]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_workers_must_be_a_whole_number() -> None:
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(neardup.UsageError, match="at least 1 worker"):
            neardup.find(["a", "b"], workers=wrong)
