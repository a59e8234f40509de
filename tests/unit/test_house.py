"""The repository itself: nothing private is committed, versions agree, documents point at things that exist."""

from __future__ import annotations

import re
import subprocess
import tomllib
from functools import cache
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote

import pytest

HOUSE = Path(__file__).parents[2]

#: Put together here, so that this file does not name them itself.
REGISTRIES = ("py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "npm" + "js.com", "deb.debian" + ".org")
PRIVATE_PATHS = ("/wo" + "rk/", "/ro" + "ot/", "/home" + "/", "/opt/" + "py", "/tmp/" + "data")


@cache
def committed() -> tuple[Path, ...]:
    """Every file of the repository, ignored ones aside."""
    command = ["git", "-C", str(HOUSE), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout (an unpacked sdist?)")
    return tuple(path for name in listed.decode().split("\0") if name and (path := HOUSE / name).is_file())


def _documents() -> list[Path]:
    """The Markdown that people read, the example collection aside."""
    return [path for path in committed() if path.suffix == ".md" and "examples" not in path.relative_to(HOUSE).parts]


def _texts() -> list[tuple[Path, str]]:
    found = []
    for path in committed():
        try:
            found.append((path, path.read_bytes().decode("utf-8")))
        except UnicodeDecodeError:
            continue
    assert len(found) > 100
    return found


@pytest.mark.parametrize("word", [*REGISTRIES, *PRIVATE_PATHS])
def test_no_file_names_a_registry_or_somebodys_machine(word: str) -> None:
    """A path of one machine works on no other, and a registry's host pins users to ours."""
    assert [str(path.relative_to(HOUSE)) for path, text in _texts() if word in text] == []


def test_no_large_file_slips_in() -> None:
    """Data and builds do not belong in the history: they stay there for ever."""
    large = {str(path.relative_to(HOUSE)): path.stat().st_size for path in committed() if path.stat().st_size > 1 << 20}
    assert large == {}


def test_versions_agree() -> None:
    """clew pins its client exactly: a release with two versions could not be installed."""
    clew = tomllib.loads((HOUSE / "pyproject.toml").read_text("utf-8"))["project"]
    client = tomllib.loads((HOUSE / "client/pyproject.toml").read_text("utf-8"))["project"]
    assert clew["version"] == client["version"]
    assert f"clew-client=={client['version']}" in clew["dependencies"]
    heading = re.search(r"^## (\S+)", (HOUSE / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert heading is not None
    assert heading[1] == clew["version"]


@pytest.mark.parametrize("distribution", ["clew", "clew-client"])
def test_installed_version_is_this_one(distribution: str) -> None:
    """An environment that was not brought up to date runs old entry points without anybody noticing."""
    try:
        found = version(distribution)
    except ModuleNotFoundError:
        pytest.skip(f"{distribution} is on the path, but not installed")
    assert found == tomllib.loads((HOUSE / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def test_both_distributions_carry_the_same_licence() -> None:
    """The client's wheel is built from its own folder and needs its own copy."""
    assert (HOUSE / "client/LICENSE").read_bytes() == (HOUSE / "LICENSE").read_bytes()


def test_every_recipe_that_is_named_exists() -> None:
    """A README whose first command fails has no second reader."""
    recipes = set(re.findall(r"^([a-z-]+):", (HOUSE / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {
        (str(path.relative_to(HOUSE)), recipe)
        for path in _documents()
        for words in re.findall(r"(?:^[ \t]+|`)make ([a-z-]+(?: [a-z-]+)*)", path.read_text("utf-8"), re.MULTILINE)
        for recipe in words.split()
    }
    assert ("README.md", "demo") in named
    assert ("README.md", "test") in named
    assert {(path, recipe) for path, recipe in named if recipe not in recipes} == set()
    assert "ci" not in recipes
    run = (HOUSE / ".ci/run").read_text("utf-8")
    wanted = re.search(r"^for recipe in ([a-z -]+);", run, re.MULTILINE)
    assert wanted is not None
    assert set(wanted[1].split()) <= recipes


def _slug(heading: str) -> str:
    text = re.sub(r"`|\*|\[([^]]*)]\([^)]*\)", lambda m: m[1] or "", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def _anchors(path: Path) -> set[str]:
    text = re.sub(r"^(```|~~~).*?^\1", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    slugs = {_slug(heading) for heading in re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)}
    return slugs | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def test_links_between_documents_resolve() -> None:
    """A documentation that is itself a labyrinth would be a poor advertisement."""
    broken: list[str] = []
    count = 0
    for page in _documents():
        text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"`[^`\n]*`", "", text)
        written = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
        for href in written:
            if re.match(r"[a-z]+:", href):
                continue
            count += 1
            name, _, fragment = unquote(href).partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists():
                broken.append(f"{page.relative_to(HOUSE)}: {href}")
            elif fragment and target.suffix == ".md" and fragment not in _anchors(target):
                broken.append(f"{page.relative_to(HOUSE)}: {href} (no such heading)")
    assert count > 20
    assert broken == []


def test_modules_have_nouns_for_names() -> None:
    """A module called utils is where ideas go to be forgotten."""
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "base"}
    code = [
        path for path in committed() if path.suffix == ".py" and path.relative_to(HOUSE).parts[0] in ("clew", "client")
    ]
    assert [str(path.relative_to(HOUSE)) for path in code if path.stem in vague] == []
