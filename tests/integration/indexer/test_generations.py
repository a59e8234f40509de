"""Another model or other settings make a generation beside the old one; without these a rebuild would take the search away."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from clew.errors import EmbedderMismatchError, OptionError
from clew.indexer import run as run_module
from clew.indexer.garbage import Retention, sweep
from clew.indexer.place import Place
from clew.indexer.report import dry_run
from clew.indexer.run import RunOptions, run_index
from clew.indexer.upkeep import upkeep_of
from clew.query.index import Index

FILES = 12


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of a dozen files, built in batches of two."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(run_module, "GROUP_FILES", 1)
    monkeypatch.setattr(run_module, "FIRST_BATCH", (2, 1 << 20))
    monkeypatch.setattr(run_module, "BATCH_GROWTH", 1)
    root = tmp_path / "docs"
    root.mkdir()
    past = time.time() - 3600  # a file written just before it is read counts as changed: the clock cannot tell
    for number in range(FILES):
        page = root / f"n{number:02}.md"
        page.write_text(
            f"# Page {number}\n\nThe lighthouse keeper of harbour {number}. [next](n{(number + 1) % FILES:02}.md)\n"
        )
        os.utime(page, (past, past))
    build(root)
    return root


def build(root: Path, **options: Any) -> Any:
    return run_index(str(root), RunOptions(**{"embedder": "hashing:16", "workers": 0, **options}))


def seen(root: Path) -> tuple[int, int, int]:
    """What a reader that comes now finds: (files, resolved links, hits)."""
    with Index.open(str(root)) as index:
        files, links = list(index.files()), list(index.links(state="resolved"))
        return len(files), len(links), len(index.search("lighthouse keeper", k=50, hops=0).hits)


def test_searches_go_on_in_the_old_generation_until_all_of_the_new_one_is_there(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that comes after each batch and each later step finds everything, and one snapshot makes the switch."""
    place = Place.open(str(root / ".clew"))
    old = place.snapshots.require()
    looks: list[tuple[int, int, int]] = []
    for name in ("resolve_links", "fill_vectors", "weigh_links", "keep_tidy"):
        step = getattr(run_module, name)

        def watched(*arguments: Any, step: Any = step, **more: Any) -> Any:
            looks.append(seen(root))
            return step(*arguments, **more)

        monkeypatch.setattr(run_module, name, watched)
    commit = run_module.Batch.commit
    monkeypatch.setattr(run_module.Batch, "commit", lambda batch: (commit(batch), looks.append(seen(root)))[0])
    build(root, embedder="hashing:32", full=True)
    assert len(looks) >= FILES // 2 + 4
    assert set(looks) == {(FILES, FILES, FILES)}
    newest = place.snapshots.require()
    assert (newest.number, newest.parent) == (old.number + 1, old.id)
    assert newest.generation != old.generation
    assert seen(root) == (FILES, FILES, FILES)
    with Index.open(str(root)) as index:
        assert index.check(deep=True).findings == ()


def test_first_build_can_be_searched_batch_by_batch(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is there yet, something is better."""
    looks: list[int] = []
    commit, elsewhere = run_module.Batch.commit, str(tmp_path / "place")

    def watched(batch: Any) -> Any:
        done = commit(batch)
        with Index.open(str(root), index=elsewhere) as index:
            looks.append(len(list(index.files())))
        return done

    monkeypatch.setattr(run_module.Batch, "commit", watched)
    build(root, index=elsewhere)
    assert looks == list(range(2, FILES + 1, 2))


def test_rebuild_that_dies_leaves_the_old_generation_and_garbage(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run goes on with the old one; a sweep takes what was built of the other."""
    old = Place.open(str(root / ".clew")).snapshots.require()

    def dies(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(run_module, "fill_vectors", dies)
        with pytest.raises(KeyboardInterrupt):
            build(root, embedder="hashing:32", full=True)
    assert seen(root) == (FILES, FILES, FILES)
    (root / "late.md").write_text("# Late\n\nThe lighthouse keeper came late.\n")
    outcome = build(root)
    assert outcome.snapshot.generation == old.generation
    place = Place.open(str(root / ".clew"))
    with upkeep_of(place) as upkeep:
        sweep(upkeep, Retention(superseded=0, older_than=0))
    assert {stored.name.split("/")[1] for stored in place.store.list("generations/")} == {old.generation}
    assert seen(root) == (FILES + 1, FILES, FILES + 1)


def test_other_model_or_settings_are_told_with_what_they_cost(root: Path) -> None:
    """In the refusal, and in a dry run, which counts everything as to be read."""
    with pytest.raises(
        EmbedderMismatchError, match=r"12 files .* are read and about \d+ passages embedded .*--dry-run"
    ):
        build(root, embedder="hashing:32")
    with pytest.raises(OptionError, match=r"\(chunk\).* 12 files .* are read"):
        build(root, settings={"chunk": {"tokens": 100}})
    for options in ({"embedder": "hashing:32"}, {"settings": {"chunk": {"tokens": 100}}}, {"full": True}):
        plan = dry_run(str(root), RunOptions(**options))
        assert (plan.files.added, plan.files.unchanged, plan.rebuild) == (FILES, 0, True)
        assert plan.bytes > 0
    plan = dry_run(str(root), RunOptions())
    assert (plan.files.added, plan.files.unchanged, plan.rebuild) == (0, FILES, False)
