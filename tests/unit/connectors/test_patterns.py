"""Without these, a file could be indexed that was left out on purpose, or be left out without anybody's wish."""

from __future__ import annotations

import pickle

import pytest

from clew.connectors.patterns import Selection, escape, folders_above
from clew.errors import OptionError


def test_everything_visible_belongs_by_default() -> None:
    selection = Selection()
    assert selection.admits("a.md")
    assert selection.admits("deep/er/[x] 100%#?.md")


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        "web/node_modules/left-pad/readme.md",
        "tool/__pycache__/a.txt",
        "lib/python3.12/site-packages/numpy/readme.md",
        ".DS_Store",
        "a/Thumbs.db",
        "a/~$report.docx",
        "a/.~lock.report.odt#",
        "a/report.md~",
        ".secret.md",
        ".hidden/a.md",
        "Icon\r",
    ],
)
def test_machinery_and_hidden_names_are_left_out(path: str) -> None:
    assert not Selection().admits(path)
    assert Selection(default_excludes=False, hidden=True).admits(path)


@pytest.mark.parametrize("path", [".clew/snapshots/1", "sub/.clew/x", "c.jsonl.clew/x", "c.jsonl.gz.clew/x"])
def test_an_index_never_belongs_whatever_is_asked(path: str) -> None:
    greedy = Selection(default_excludes=False, hidden=True, include=("**", ".clew/**"), exclude=("!.clew/",))
    assert not greedy.admits(path)
    assert not greedy.descends(path.rpartition("/")[0])


def test_a_folder_that_only_looks_like_an_index_belongs() -> None:
    assert Selection().admits("project.clew/readme.md")


def test_include_globs_match_at_any_depth_unless_anchored() -> None:
    assert Selection(include=("*.md",)).admits("a/b/c.md")
    assert not Selection(include=("*.md",)).admits("a/b/c.txt")
    assert Selection(include=("/*.md",)).admits("c.md")
    assert not Selection(include=("/*.md",)).admits("a/c.md")
    nested = Selection(include=("docs/**/guide/*.md",))
    assert nested.admits("docs/guide/a.md")
    assert nested.admits("docs/en/v2/guide/a.md")
    assert not nested.admits("docs/en/v2/guide/deeper/a.md")


def test_folders_that_cannot_hold_anything_included_are_not_entered() -> None:
    selection = Selection(include=("docs/en/**/*.md", "/notes/*.txt"))
    assert selection.descends("docs")
    assert selection.descends("docs/en/any/where")
    assert selection.descends("notes")
    assert not selection.descends("docs/pt")
    assert not selection.descends("src")


def test_heads_name_the_least_to_be_listed() -> None:
    assert Selection(include=("docs/en/**", "docs/en/a/*.md", "/notes/*.txt")).heads() == ("docs/en", "notes")
    assert Selection(include=("*.md", "docs/**")).heads() == ("",)
    assert Selection().heads() == ("",)
    assert Selection(include=("docs/*", "docs-old/*")).heads() == ("docs",), "one begins the other: a text prefix"


def test_a_hidden_folder_named_by_an_include_belongs() -> None:
    selection = Selection(include=(".github/**/*.md",))
    assert selection.admits(".github/workflows/readme.md")
    assert not selection.admits(".gitlab/readme.md")
    assert not selection.admits(".github/.secret/a.md")


def test_exclude_wins_over_include_and_can_take_back_a_default() -> None:
    assert not Selection(include=("*.md",), exclude=("drafts/",)).admits("drafts/a.md")
    taken_back = Selection(exclude=("*.log", "!important.log", "!node_modules/", "!.well-known/"))
    assert taken_back.admits("important.log")
    assert not taken_back.admits("other.log")
    assert taken_back.admits("node_modules/a.md")
    assert taken_back.admits(".well-known/a.md")
    assert not taken_back.admits(".other/a.md")


def test_ignore_files_rule_below_their_folder_and_the_deepest_decides() -> None:
    selection = Selection().with_rules("", "*.tmp\n/build\n").with_rules("sub", "!keep.tmp\nbuild/\n")
    assert not selection.admits("a.tmp")
    assert not selection.admits("build/a.md")
    assert selection.admits("sub/keep.tmp")
    assert not selection.admits("keep.tmp")
    assert not selection.admits("sub/x/build/a.md")
    assert selection.admits("x/build/a.md")


def test_taking_back_a_folder_does_not_take_back_the_hidden_files_in_it() -> None:
    selection = Selection(exclude=("*", "!sub/", "!*.md"))
    assert selection.admits("sub/a.md")
    assert not Selection(exclude=("!sub/",)).admits("sub/.secret")
    assert not Selection().with_rules("", "!sub/\n").admits("sub/.clewignore")


def test_nothing_below_an_excluded_folder_can_be_taken_back() -> None:
    assert not Selection(exclude=("drafts/", "!drafts/keep.md")).admits("drafts/keep.md")
    assert Selection(exclude=("drafts/*", "!drafts/keep.md")).admits("drafts/keep.md")


def test_a_reserved_folder_is_left_out_and_its_namesakes_are_not() -> None:
    selection = Selection(exclude=("!my index/",)).reserving("my index")
    assert not selection.admits("my index/a")
    assert selection.admits("sub/my index/a")


def test_names_are_not_patterns() -> None:
    selection = Selection(exclude=(escape("[draft] *.md"), escape("line\nbreak"), escape(" x\t")))
    assert not selection.admits("[draft] *.md")
    assert selection.admits("d 1.md")
    assert not selection.admits("line\nbreak")
    assert not selection.admits(" x\t")
    assert selection.admits(" x")


def test_a_name_that_ends_in_a_line_break_is_another_name() -> None:
    assert Selection(exclude=("a.md",)).admits("a.md\n")
    assert not Selection(include=("a.md",)).admits("a.md\n")


def test_names_that_are_not_utf8_can_be_judged() -> None:
    assert Selection(exclude=("*.tmp",)).admits("caf\udce9.md")
    assert not Selection(exclude=("caf*",)).admits("caf\udce9.md")


def test_a_bad_pattern_is_named_before_any_work() -> None:
    with pytest.raises(OptionError, match=r"\[z-a\]"):
        Selection(include=("[z-a]",))


def test_a_bad_line_of_an_ignore_file_spoils_no_other(caplog: pytest.LogCaptureFixture) -> None:
    selection = Selection().with_rules("sub", "[z-a]\n*.tmp\n# comment\n\n")
    assert not selection.admits("sub/a.tmp")
    assert selection.admits("sub/a.md")
    assert "sub/.clewignore" in caplog.text


def test_lines_of_an_ignore_file_end_where_gits_do() -> None:
    """A name may hold what Python also takes for the end of a line."""
    selection = Selection().with_rules("", "one\u2028two.md\r\nthree\x0cfour\x85.md\n")
    assert not selection.admits("one\u2028two.md")
    assert not selection.admits("three\x0cfour\x85.md")
    assert selection.admits("two.md")
    assert selection.admits("one")


def test_a_virtual_environment_is_recognised_by_its_marker() -> None:
    assert Selection().marker("tools/venv") == "tools/venv/pyvenv.cfg"
    assert Selection().marker("tools/prevent") is None
    assert Selection(default_excludes=False).marker("venv") is None


def test_only_hidden_tells_a_hidden_target_from_an_excluded_one() -> None:
    selection = Selection(exclude=("drafts/",))
    assert selection.only_hidden(".versions/3/notes", is_folder=True)
    assert not selection.only_hidden("notes", is_folder=True)
    assert not selection.only_hidden(".versions/drafts/a.md", is_folder=False)
    assert not selection.only_hidden(".git/hooks", is_folder=True)


def test_a_selection_travels_to_another_process() -> None:
    selection = Selection(include=("*.md",), exclude=("x/",)).with_rules("sub", "*.tmp\n")
    assert selection.admits("sub/a.md")
    travelled = pickle.loads(pickle.dumps(selection))
    assert travelled == selection
    assert travelled.admits("sub/a.md")
    assert not travelled.admits("x/a.md")


def test_folders_above_go_from_the_root_down() -> None:
    assert list(folders_above("a/b/c.md")) == ["", "a", "a/b"]
    assert list(folders_above("c.md")) == [""]
