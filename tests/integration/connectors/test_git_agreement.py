"""Without this, patterns could mean something else than in the .gitignore files that people know."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from clew.connectors.listing import list_entries
from clew.connectors.location import Root
from clew.connectors.patterns import Selection

_RULES = {
    "": "*.log\n!keep.log\n/top.md\nbuild/\ndocs/**/draft\nname with space.md\n\\#hash.md\n[ab]?.txt\n**/deep/*.tmp\n",
    "docs": "*.md\n!index.md\n!sub/\n",
    "docs/sub": "!*.md\nsecret*\n",
}
_FILES = (
    *("a.log", "keep.log", "x/keep.log", "top.md", "x/top.md", "build/a.md", "x/build/a.md", "build.md", "y/build"),
    *("docs/draft/a.md", "docs/a/draft/a.txt", "docs/a/b/draft", "docs/a.md", "docs/index.md", "docs/x/index.md"),
    *("docs/sub/a.md", "docs/sub/secret.md", "docs/sub/x/secret", "docs/sub/x/y.md", "docs/a.txt"),
    *("name with space.md", "#hash.md", "a1.txt", "c1.txt", "ab.txt", "deep/a.tmp", "x/deep/a.tmp", "x/deep/y/a.tmp"),
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_ignore_files_mean_what_git_means(tmp_path: Path) -> None:
    for path in _FILES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x")
    for folder, rules in _RULES.items():
        (tmp_path / folder / ".clewignore").write_text(rules)
        (tmp_path / folder / ".gitignore").write_text(rules)
    subprocess.run(
        ["git", "init", "-q", str(tmp_path)], check=True, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    )
    command = ["git", "-C", str(tmp_path), "ls-files", "--others", "--exclude-standard", "-z"]
    answer = subprocess.run(
        command, check=True, capture_output=True, env={"HOME": str(tmp_path / "none"), "PATH": "/usr/bin:/bin"}
    )
    by_git = sorted(name for name in answer.stdout.decode().split("\0") if name and "ignore" not in name)
    by_clew = sorted(entry.path for entry in list_entries(Root.parse(tmp_path), Selection(default_excludes=False)))
    assert by_clew == by_git
    assert 10 < len(by_git) < len(_FILES)
