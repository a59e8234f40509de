"""What was ever found indexed of some bytes: the same bytes must be indexed in the same way, wherever and whenever.

A fresh build of every intermediate state would cost more than all the rest of a sequence. What is found of a file's
content the first time is therefore remembered, for all sequences of a process, and everything later is held against it;
the end of each sequence is compared with a fresh build, so what is remembered wrongly does not stay unnoticed.
"""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from clew.indexer.links.linking import arrival_hashes
from clew.indexer.links.paths import split_name
from clew.query.pinned import PinnedIndex
from tests.property.index_content import WORDS, assert_clean, opened, proposals

FACTS: dict[object, object] = {}
QUESTION = " ".join(WORDS)


def assert_invariants(root: Path, index: PinnedIndex) -> dict[str, str]:
    """Holds of every published snapshot, also of one that an interrupted run left. Returns path → content hash.

    - `clew check --deep` finds nothing.
    - Documents, passages and written links of a file are those that its bytes give, and so is each vector.
    - Each path proposes the passages whose own text matches, and only those.
    - Filters let through the files whose names say so.
    - No link dangles whose target is there (where none is owed a resolution).
    """
    assert_clean(index)
    columns = ["file_key", "path", "state", "content_hash", "extension", "kind", "attempts", "urls"]
    files = index.tables["files"].read(columns).to_pylist()
    documents = index.tables["documents"].read().to_pylist()
    chunks = index.tables["chunks"].read().to_pylist()
    links = index.tables["links"].read()
    content = {row["file_key"]: (row["kind"], row["content_hash"], row["state"]) for row in files}

    facts: dict[int, list[Any]] = defaultdict(list)
    for row in documents:
        facts[row["file_key"]].append(
            ("document", row["record_number"], row["record"], row["title"], row["language"], row["char_count"], repr(row["meta"]))
        )  # fmt: skip
    place: dict[int, tuple[Any, ...]] = {}
    for row in chunks:
        place[row["chunk_key"]] = where = (content[row["file_key"]], row["record_number"], row["char_start"])
        facts[row["file_key"]].append(
            ("passage", row["record_number"], row["char_start"], row["char_end"], row["text"], row["tail"], row["title"],
             tuple(row["heading_path"]), tuple(row["anchors"]), row["content_hash"])
        )  # fmt: skip
        if row["vector"] is not None:
            agree(("vector", row["content_hash"]), tuple(np.round(row["vector"], 5)))
    for row in links.to_pylist():
        facts[row["source_file"]].append(
            ("link", row["source_record"], row["href"], row["kind"], row["anchor"], row["context"],
             place[row["source_chunk"]][1:] if row["source_chunk"] is not None else ())
        )  # fmt: skip
    for key, its in content.items():
        if its[2] == "indexed":
            agree(("file", *its), tuple(sorted(facts[key], key=repr)))

    with opened(root, index) as whole:
        for name, keys in proposals(whole).items():
            found = set(keys)
            assert len(keys) == len(found), f"{name} proposes a passage twice"
            if name == "dense":
                filled = {row["chunk_key"] for row in chunks if row["vector"] is not None}
                assert found == filled, f"{name} proposes {len(found)} passages of {len(filled)} with a vector"
            elif name != "attributes":  # which knows of names, too
                for key, where in place.items():
                    agree((name, where), key in found)
        for where, pattern in (("path:ops/**", "ops/*"), ("type:md", "*.md")):
            through = sorted(row.path for row in whole.files(where=where))
            wanted = sorted(row["path"] for row in files if fnmatch(row["path"], pattern))
            if where == "type:md":  # what moved to another kind of name and could not be read there is what it was
                moved = {row["path"]: row["kind"] == "markdown" for row in files if row["attempts"] and row["kind"]}
                wanted = sorted({*wanted, *moved} - {path for path, is_md in moved.items() if not is_md})
            assert through == wanted, f"{where} lets {through} through, not {wanted}"

    if not index.snapshot.pending.links:
        records = set(arrival_hashes((), [row["record"] for row in documents if row["record"]]).tolist())
        pages: dict[str, set[int]] = defaultdict(set)
        for row in files:
            pages[row["extension"]] |= set(arrival_hashes([(row["path"], row["urls"])]).tolist())
        for row in links.select(["source_file", "href", "kind", "state", "probed"]).to_pylist():
            # A wikilink waits for every file of its last name, whatever folder it names.
            if row["state"] == "dangling" and row["kind"] != "wikilink":
                # A page's key has no extension, as `b.html` is made of `b.md`; but `a.md` is not answered by `a.txt`.
                named = split_name(row["href"].partition("#")[0])[1]
                able = [pages[named]] if named and named != "html" else pages.values()
                lost = set(row["probed"]).intersection(records.union(*able))
                assert not lost, (
                    f"{row['href']} in a file of {content[row['source_file']]} dangles, its target is there"
                )
    return {row["path"]: row["content_hash"] for row in files if row["state"] == "indexed"}


def agree(key: object, fact: object) -> None:
    """The same as whenever this was seen before."""
    known = FACTS.setdefault(key, fact)
    assert known == fact, f"{key}: {fact} now, {known} before"
