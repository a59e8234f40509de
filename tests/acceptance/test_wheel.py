"""What is published works: both distributions build, and the wheels run in an environment that has nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from clew.examples import handbook

HOUSE = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(900),  # a fresh environment is some 400 MB of packages
    pytest.mark.xdist_group("wheel"),  # one build and one environment for all of them
]


def _run(
    command: Sequence[str | Path], *, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "CLEW"))}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, env={**kept, **environment}
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and sdist of clew and clew-client. Built from copies, so nothing is left in the sources."""
    out = tmp_path_factory.mktemp("dist")
    for project in (HOUSE, HOUSE / "client"):
        _run([sys.executable, "-m", "hatchling", "build", "-d", out], cwd=project)
    assert len(list(out.glob("*.whl"))) == 2
    assert len(list(out.glob("*.tar.gz"))) == 2
    return out


@pytest.fixture(scope="module")
def fresh(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The `bin` folder of an environment into which the two wheels, and what they depend on, were installed."""
    folder = tmp_path_factory.mktemp("fresh") / "environment"
    venv.create(folder, with_pip=False)
    wheels = sorted(built.glob("*.whl"))
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet", "--no-input"]
    done = subprocess.run([str(part) for part in [*pip, *wheels]], capture_output=True, text=True)
    if done.returncode != 0 and any(
        word in done.stderr for word in ("Connection", "resolution", "No matching distribution")
    ):
        probe = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder), "tenacity"],
            capture_output=True,
        )
        if probe.returncode != 0:
            pytest.skip("no package registry can be reached from here")
    assert done.returncode == 0, done.stderr[-4000:]
    yield folder / "bin"
    shutil.rmtree(folder)  # pytest would keep three of them


def test_wheel_holds_the_examples_and_says_that_it_is_typed(built: Path) -> None:
    """A wheel without its data passes every test that runs from the sources."""
    names = set(zipfile.ZipFile(next(built.glob("clew-*.whl"))).namelist())
    for path in handbook().rglob("*"):
        if path.is_file() and ".clew" not in path.parts:  # somebody may have indexed it in place
            assert f"clew/examples/handbook/{path.relative_to(handbook()).as_posix()}" in names
    assert {"clew/py.typed", "clew/examples/questions.jsonl", "clew/examples/qrels.tsv"} <= names
    for path in (HOUSE / "clew/daemon/web/static").iterdir():
        assert f"clew/daemon/web/static/{path.name}" in names
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"clew"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/NOTICE") for name in names)
    client = zipfile.ZipFile(next(built.glob("clew_client-*.whl"))).namelist()
    assert "clew_client/py.typed" in client
    assert {name.partition("/")[0] for name in client if ".dist-info" not in name} == {"clew_client"}


def test_sdist_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    """Distributions of Linux build from the sdist: what it lacks, they lack."""
    for name in ("clew", "clew_client"):
        with tarfile.open(next(built.glob(f"{name}-*.tar.gz"))) as archive:
            archive.extractall(tmp_path, filter="data")
        source = next(tmp_path.glob(f"{name}-*"))
        _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again"], cwd=source)
        ours = zipfile.ZipFile(next(built.glob(f"{name}-*.whl")))
        theirs = zipfile.ZipFile(next((tmp_path / "again").glob(f"{name}-*.whl")))
        assert {i.filename: i.CRC for i in theirs.infolist()} == {i.filename: i.CRC for i in ours.infolist()}


def test_plain_install_has_nothing_heavy(fresh: Path) -> None:
    """pandas costs every command 0.7 s, torch gigabytes; a dependency of a dependency could bring them in any day."""
    script = "import importlib.metadata as m; print(*sorted(d.name.lower() for d in m.distributions()))"
    installed = set(_run([fresh / "python", "-c", script]).stdout.split())
    assert {"clew", "clew-client", "pylance"} <= installed
    assert installed & {"pandas", "torch", "ray", "lancedb", "scipy", "scikit-learn", "boto3", "s3fs"} == set()


def test_installed_command_knows_its_version(fresh: Path) -> None:
    """The entry point is made at installation; nothing else runs it."""
    said = _run([fresh / "clew", "--version"]).stdout.split()
    assert said == [
        "clew",
        _run([fresh / "python", "-c", "from importlib.metadata import version as v; print(v('clew'))"]).stdout.strip(),
    ]
    assert _run([fresh / "python", "-m", "clew", "--version"]).stdout.split() == said


def test_installed_command_runs_the_demo(fresh: Path, tmp_path: Path) -> None:
    """The first thing a newcomer does: index the collection inside the wheel with the model inside a package, and search."""
    done = _run([fresh / "clew", "demo", "--json"], cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    told = json.loads(done.stdout)
    assert told["index"]["files"]["failed"] == 0
    assert told["index"]["files"]["seen"] >= 60
    assert all(search["result"]["hits"] for search in told["searches"])


def test_light_search_leaves_heavy_parts_alone(fresh: Path, tmp_path: Path) -> None:
    """A search must not import what only indexing, the cluster or other tools need."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("# Tide\n\nThe tide turns at noon.\n", "utf-8")
    cache = str(tmp_path / "cache")
    _run([fresh / "clew", "index", tmp_path / "notes", "--embedder", "none"], XDG_CACHE_HOME=cache)
    script = (
        "import sys; from clew.cli.main import main\n"
        "try: main(['search', sys.argv[1], 'tide', '--json'])\n"
        "except SystemExit as stop: assert not stop.code\n"
        "print(*sorted({'ray', 'lancedb', 'torch', 'pandas', 'boto3', 's3fs', 'lxml', 'pypdfium2'} & set(sys.modules)), file=sys.stderr)"
    )
    done = _run([fresh / "python", "-c", script, tmp_path / "notes"], XDG_CACHE_HOME=cache)
    assert json.loads(done.stdout)["hits"][0]["path"] == "a.md"
    assert done.stderr.strip() == ""
