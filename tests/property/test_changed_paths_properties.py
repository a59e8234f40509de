"""A path index with changes on top answers as a fresh one. Without this test links would depend on the history of
commits."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.indexer.links.changed_paths import ChangedPaths
from clew.indexer.links.path_index import PathIndex
from clew.indexer.links.paths import page_key

PATH = st.builds(
    lambda folders, name: "/".join([*folders, name]),
    st.lists(st.sampled_from(["a", "b", "A"]), max_size=2),
    st.sampled_from(["x.md", "X.md", "index.md", "x.html", "y.png", "2020-01-02-x.md", "é.md"]),
)
URLS = st.lists(st.sampled_from(["/u", "/v", "slug", "label:l"]), max_size=2).map(tuple)
FILES = st.dictionaries(PATH, URLS, max_size=12)
STEP = st.tuples(st.sets(PATH, max_size=4), FILES)


@given(FILES, st.lists(STEP, max_size=3))
@settings(max_examples=120, deadline=None)
def test_changes_answer_as_a_fresh_index(files: dict[str, tuple[str, ...]], steps: list[tuple[set[str], dict]]) -> None:
    """After any sequence of removals and additions."""
    state = {path: (urls, number) for number, (path, urls) in enumerate(files.items())}
    index = ChangedPaths(PathIndex(list(state), [urls for urls, _ in state.values()], [i for _, i in state.values()]))
    number = 100
    for removed, added in steps:
        facts = {}
        for path, urls in added.items():
            facts[path] = (urls, number)
            number += 1
        index = index.changed(removed=removed, added=facts)
        state = {path: fact for path, fact in state.items() if path not in removed} | facts
    fresh = PathIndex(list(state), [urls for urls, _ in state.values()], [i for _, i in state.values()])
    assert len(index) == len(fresh)
    for path in {*files, *state, *(path for removed, added in steps for path in {*removed, *added}), "none.md"}:
        assert (path in index) == (path in fresh)
        assert index.id_of(path) == fresh.id_of(path)
        assert index.pages(page_key(path)) == fresh.pages(page_key(path))
    for stem in ("x", "index", "a", "y", "slug", "é"):
        assert index.named(stem) == fresh.named(stem)
        assert index.named(stem, 2) == fresh.named(stem, 2)
        for folder in ("", "a", "a/b", "b/a/c"):
            assert index.nearest(stem, folder) == fresh.nearest(stem, folder)
    for url in ("/u", "/v", "/a/slug", "label:l", "name:slug", "/a/2020/01/02/x"):
        assert index.with_url(url) == fresh.with_url(url)
