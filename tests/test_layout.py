"""Imports go downward only, and what is optional or heavy is imported in one place."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import neardup

PACKAGE = Path(neardup.__file__).parent

BASE = {"errors", "tables", "settings", "groups", "progress", "fast", "workers"}
STAGES = BASE | {"sketch", "index", "cluster", "verify", "compare", "evaluate"}
OUTER = STAGES | {"result"}
# What each file or folder may import of neardup, beside itself.
MAY_IMPORT = {
    "errors": set(),
    "tables": {"errors"},
    "settings": {"errors"},
    "groups": {"errors", "tables"},
    "progress": set(),
    "fast": set(),
    "workers": {"errors"},
    "result": BASE,
    "sketch": BASE,
    "index": BASE,
    "cluster": STAGES,
    "verify": STAGES,
    "compare": STAGES,
    "evaluate": STAGES,
    "corpus": OUTER,
    "report": OUTER,
    "store": OUTER,
    "pipeline": OUTER | {"corpus", "store"},
}
# Free: the public names, imported when used, and the command line.
TOP = {"__init__", "__main__", "cli"}
# Light enough to be imported for a message.
NO_NUMPY = {"errors", "settings", "progress", "fast", "workers"}
ONLY_IN = {
    "typer": {"cli.py"},
    "rich": {"cli.py", "report/terminal.py"},
    "tqdm": {"progress.py"},
    "orjson": {"corpus/records.py"},
    "numba": {"index/compiled.py", "sketch/compiled.py", "verify/compiled.py"},
}


def imported(tree: ast.AST) -> Iterator[str]:
    """The dotted name of everything imported, at whatever depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names)


def violations(name: str, source: str) -> list[str]:
    """What a file of the package imports against the rules."""
    unit = name.removesuffix(".py").split("/")[0]
    allowed = MAY_IMPORT.get(unit, set()) | {unit, "__version__"}
    tree = ast.parse(source)
    first = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    late = not any(target.startswith("tqdm") for node in first for target in imported(node))
    wrong = [] if unit in TOP | set(MAY_IMPORT) else [f"{name} is in no layer"]
    for target in imported(tree):
        package, _, rest = target.partition(".")
        if package == "neardup":
            fine = unit in TOP or rest.split(".")[0] in allowed
        elif package == "numpy":
            fine = unit not in NO_NUMPY
        elif package in ONLY_IN:
            fine = name in ONLY_IN[package] and (package != "tqdm" or late)
        else:
            fine = package in sys.stdlib_module_names
        if not fine:
            wrong.append(f"{name} imports {target}")
    return wrong


FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("name", FILES)
def test_imports_go_downward(name: str) -> None:
    assert violations(name, (PACKAGE / name).read_text("utf-8")) == []


def test_files_are_found() -> None:
    assert {"errors.py", "sketch/hashing.py", "index/plan.py", "pipeline.py"} <= set(FILES)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("errors.py", "import neardup.tables"),
        ("settings.py", "import numpy as np"),
        ("index/plan.py", "from neardup.sketch import hashing"),
        ("sketch/tokens.py", "def f():\n    from neardup import verify"),
        ("progress.py", "from neardup.tables import Pairs"),
        ("verify.py", "if TYPE_CHECKING:\n    from neardup.corpus.walk import walk"),
        ("report/html.py", "from neardup.corpus.walk import ARGUMENT"),
        ("evaluate.py", "from neardup.report.pairs import read_rows"),
        ("report/pairs.py", "from neardup.pipeline import ScanResult"),
        ("report/pairs.py", "from rich.text import Text"),
        ("store.py", "import neardup.report.pairs"),
        ("corpus/walk.py", "import neardup"),
        ("pipeline.py", "from neardup.report import pairs"),
        ("pipeline.py", "from neardup import cli"),
        ("pipeline.py", "from tqdm import tqdm"),
        ("progress.py", "from tqdm import tqdm"),
        ("report/terminal.py", "import typer"),
        ("cli.py", "import click"),
        ("cluster.py", "from .tables import Pairs"),
        ("helpers.py", ""),
    ],
)
def test_wrong_imports_are_seen(name: str, source: str) -> None:
    assert len(violations(name, source)) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("cli.py", "import typer, rich.console\nfrom neardup.report import pairs"),
        ("progress.py", "def f():\n    from tqdm import tqdm"),
        ("report/html.py", "from neardup import __version__"),
        ("report/terminal.py", "import rich.table\nfrom neardup.report.pairs import floor"),
        ("pipeline.py", "from neardup.corpus.walk import walk"),
        ("verify.py", "import os.path\nfrom neardup.sketch.tokens import fold"),
    ],
)
def test_right_imports_pass(name: str, source: str) -> None:
    assert violations(name, source) == []


def test_importing_neardup_is_light() -> None:
    code = "import sys, neardup; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert "neardup" in loaded
    assert not loaded & {"numpy", "typer", "rich", "tqdm", "click"}
