"""Without these, walking a tree and reading a flat list of keys could select different files of the same collection."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.connectors.patterns import Selection, escape

_ALPHABET = "ab.*?[]!#\\ \t\n%~-\u00fcu\u0308\udce9"
names = st.text(_ALPHABET, min_size=1, max_size=6).filter(lambda name: name not in (".", ".."))
relative = st.lists(names, min_size=1, max_size=4).map("/".join)
globs = st.sampled_from(
    ["*.md", "a/", "/a", "a/**", "**/b", "!a", "!*b", "a/*/b", "*", "[ab]", "a?", "!.a/", ".*", "b/a", "/b/*", "**"]
)


def selections() -> st.SearchStrategy[Selection]:
    rules = st.lists(globs, max_size=3).map(tuple)
    return st.builds(
        Selection, include=rules, exclude=rules, default_excludes=st.booleans(), hidden=st.booleans()
    ).flatmap(
        lambda selection: st.just(selection) | st.lists(globs).map(lambda g: selection.with_rules("a", "\n".join(g)))
    )


@given(names, names)
@settings(max_examples=300, deadline=None)
def test_an_escaped_name_matches_itself_and_nothing_else(name: str, other: str) -> None:
    selection = Selection(exclude=(escape(name),), default_excludes=False, hidden=True)
    assert not selection.admits(name)
    assert selection.admits(other) == (other != name)


@given(selections(), relative)
@settings(max_examples=300, deadline=None)
def test_what_is_admitted_lies_in_folders_that_are_entered(selection: Selection, path: str) -> None:
    folders = ["/".join(path.split("/")[:depth]) for depth in range(1, path.count("/") + 1)]
    if selection.admits(path):
        assert all(selection.descends(folder) for folder in folders)
    walked = all(selection.verdict(folder, is_folder=True) is None for folder in folders)
    assert selection.admits(path) == (walked and selection.verdict(path, is_folder=False) is None)


@given(selections(), relative)
@settings(max_examples=200, deadline=None)
def test_what_is_admitted_lies_below_a_head(selection: Selection, path: str) -> None:
    if selection.admits(path):
        assert any(path.startswith(head) for head in selection.heads())


@given(relative)
@settings(max_examples=100, deadline=None)
def test_no_name_upsets_the_rules(path: str) -> None:
    verdict = Selection(include=("*.md", "x/**"), exclude=("y",)).admits(path)
    hidden = any(re.match(r"\.", segment) for segment in path.split("/"))
    assert isinstance(verdict, bool)
    assert not (verdict and hidden)
