"""What the documentation says, done as written: a command that fails there loses a reader for good."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed

import clew
from clew.examples import handbook
from tests.acceptance.commands import clew as command

HOUSE = Path(__file__).parents[2]

SERVICES = ("clew serve", "clew mcp", "clew watch")  # run until they are stopped

pytestmark = [pytest.mark.acceptance, pytest.mark.xdist_group("documentation")]


def blocks(page: str) -> list[str]:
    """The indented code blocks of a page, without their indent."""
    found = re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", (HOUSE / page).read_text("utf-8"), re.MULTILINE)
    return [re.sub(r"^ {4}", "", block, flags=re.MULTILINE).strip("\n") for block in found]


def commands(page: str) -> list[str]:
    """The lines of a page's code that call clew, comments taken off."""
    lines = [line.partition("  #")[0].strip() for block in blocks(page) for line in block.splitlines()]
    return [line for line in lines if line.startswith("clew ")]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `handbook/`, indexed."""
    folder = tmp_path_factory.mktemp("workspace")
    shutil.copytree(handbook(), folder / "handbook", ignore=shutil.ignore_patterns(".clew"))
    done = _clew(folder, "clew index ./handbook")
    assert done.returncode == 0, done.stderr
    return folder


def _environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(HOUSE), str(HOUSE / "client"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), "XDG_CACHE_HOME": str(folder / "cache")}


def _clew(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *shlex.split(line)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=_environment(folder))


def _python(folder: Path, script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, env=_environment(folder)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("line", [line for line in commands("README.md") if not line.startswith(SERVICES)])
def test_every_command_of_the_readme_works(workspace: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """The first screen of the project."""
    monkeypatch.chdir(workspace)
    done = command(*shlex.split(line)[1:])
    assert done.status == 0, f"{line}\n{done.err}"
    assert done.out.strip()


def test_hits_of_the_quick_start_are_those_that_are_shown(workspace: Path) -> None:
    """Ranks, places and the trail; scores may move a little with a better fusion, and then the page is written anew."""
    (shown,) = [block for block in blocks("docs/quickstart.md") if block.startswith("clew search handbook")]
    question = shlex.split(shown.splitlines()[0])[3]
    with clew.open(str(workspace / "handbook")) as index:
        hits = index.search(question, k=3).hits
    for number, score in re.findall(r"^ *(\d+)\. .* ([\d.]+)$", shown, re.MULTILINE):
        hit = hits[int(number) - 1]
        assert f"{number}. {hit.title}  {score}" in shown
        assert abs(hit.score - float(score)) < 0.05
        assert hit.path in shown
    assert f"→ from {hits[2].trail[-1].path}" in shown


def test_readme_has_commands_to_try() -> None:
    """If the README were laid out differently, the test above would try nothing."""
    assert len(commands("README.md")) >= 5
    assert len(commands("docs/how-to/filter.md")) >= 1


def test_python_of_the_readme_works(workspace: Path) -> None:
    """Shown with a bucket, tried with a folder: the calls are the same."""
    (script,) = [block for block in blocks("README.md") if block.startswith("import clew")]
    said = _python(workspace, script.replace("s3://bucket/handbook", "handbook"))
    assert "ops/signing-keys.md" in said


def _port_in(log: Path) -> int:
    found = re.search(r"Listening on http://[0-9.]+:([0-9]+)", log.read_text("utf-8"))
    assert found is not None, log.read_text("utf-8")
    return int(found[1])


def test_service_of_the_readme_answers_as_shown(workspace: Path) -> None:
    """`clew serve`, asked with the shown curl line and the shown Python, on a port of this test's own."""
    (line,) = [line for line in commands("README.md") if line.startswith("clew serve")]
    (asked,) = [block for block in blocks("README.md") if "curl " in block]
    (script,) = [block for block in blocks("README.md") if block.startswith("from clew_client")]
    curl = re.search(r"curl (?:.*\\\n)*.*", asked)
    assert curl is not None
    command = [sys.executable, "-m", *shlex.split(line.replace("8610", "0"))]
    # What it says goes to a file: a pipe that nobody empties would stop it in the end.
    with (
        (workspace / "said").open("wb") as said_there,
        subprocess.Popen(command, cwd=workspace, stderr=said_there, env=_environment(workspace)) as service,
    ):
        try:
            retrying = Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.1), reraise=True)
            port = str(retrying(_port_in, workspace / "said"))
            assert retrying(lambda: httpx.get(f"http://localhost:{port}/readyz").raise_for_status()).status_code == 200
            words = shlex.split(curl[0].replace("8610", port).replace("\\\n", " "))
            answer = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            assert json.loads(answer)["hits"][0]["path"] == "ops/signing-keys.md"
            said = _python(workspace, script.replace("8610", port) + "\nprint(client.collections()[0].name)")
            assert said.strip() == "handbook"
        finally:
            service.terminate()
    assert service.returncode == 0


def test_filters_of_the_how_to_are_understood(workspace: Path) -> None:
    """Every expression in the table is parsed and answered."""
    page = (HOUSE / "docs/how-to/filter.md").read_text("utf-8")
    written = [
        part
        for row in re.findall(r"^\| [^|]+ \| (.+) \|$", page, re.MULTILINE)
        for part in re.findall("`([^`]+)`", row)
    ]
    assert len(written) >= 10
    with clew.open(str(workspace / "handbook")) as index:
        found = {expression: len(list(index.files(where=expression))) for expression in written}
    assert found["type:pdf,docx"] == 3
    assert found["path:ops/**"] >= 10
    assert found["lang:pt"] >= 4


def test_mistake_in_the_how_to_is_answered_as_shown(workspace: Path) -> None:
    """The message with its caret is what the page promises."""
    (block,) = [block for block in blocks("docs/how-to/filter.md") if block.startswith("$ clew")]
    line, *shown = block.splitlines()
    done = _clew(workspace, line.removeprefix("$ "))
    assert done.returncode == 2
    assert done.stderr.splitlines() == shown


@pytest.mark.parametrize("reader", ["lancedb", "duckdb"])
def test_other_tools_read_the_tables_as_shown(workspace: Path, reader: str) -> None:
    """Plain Lance stays plain: what we write is no trap for whoever leaves us."""
    pytest.importorskip(reader)
    page = blocks("docs/how-to/read-with-other-tools.md")
    (first,) = [block for block in page if block.startswith("import clew")]
    lance = [block for block in page if block.startswith("import lance\n")]
    (block,) = [block for block in page if f"import {reader}" in block]
    parts = [first, block] if reader == "lancedb" else [first, *(lance if block not in lance else []), block]
    script = "\n".join(parts).replace(".to_pandas()", "")
    said = _python(workspace, script + ("\nprint(chunks.count_rows())" if reader == "lancedb" else ""))
    assert int(said.split()[-1]) > 100 if reader == "lancedb" else "markdown" in said
