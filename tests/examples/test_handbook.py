"""The example collection is what the demo, the README and other tests take it for; without these it rots unnoticed."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from clew.examples import handbook, judgements, questions
from tests.examples.documents import DOCUMENTS

#: Pages that are linked to on purpose although they do not exist: a collection has such links, and clew keeps them.
UNWRITTEN = {"ops/night-work.md", "purchasing/contracts/polarband.md"}


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_binary_documents_are_what_their_source_writes(name: str) -> None:
    """Someone would edit a DOCX by hand, and the next run of the writers would undo it."""
    assert (handbook() / name).read_bytes() == DOCUMENTS[name](), "run `python -m tests.examples`"


def test_every_relative_link_of_a_markdown_page_leads_to_a_file() -> None:
    """A renamed page would leave questions whose answers are reached by a link without that link."""
    root = handbook()
    missing: set[str] = set()
    count = 0
    for page in sorted(root.rglob("*.md")):
        for href in re.findall(r"\]\(<?([^)>\s]+)>?\)", page.read_text(encoding="utf-8")):
            path = unquote(href.partition("#")[0])
            if not path or "://" in path:
                continue
            target = root / path.strip("/") if path.startswith("/") else page.parent / path
            count += 1
            if not (target.exists() or target.with_suffix(".md").exists()):
                missing.add(target.resolve().relative_to(root.resolve()).as_posix())
    assert count > 150
    assert missing == UNWRITTEN


def test_judgements_name_documents_and_questions_that_exist() -> None:
    """A judgement of a page that is gone would count as a miss for ever."""
    root = handbook()
    records = {json.loads(line)["_id"] for line in (root / "telemetry/stations.jsonl").read_text("utf-8").splitlines()}
    with (root / "products/compatibility.csv").open(encoding="utf-8", newline="") as rows:
        records |= {row["id"] for row in csv.DictReader(rows)}
    asked = {row["_id"]: row for row in map(json.loads, questions().read_text("utf-8").splitlines())}
    with judgements().open(encoding="utf-8", newline="") as rows:
        judged = list(csv.DictReader(rows, delimiter="\t"))
    assert {row["query-id"] for row in judged} == {i for i, q in asked.items() if q["metadata"]["kind"] != "none"}
    for row in judged:
        assert row["corpus-id"] in records or (root / row["corpus-id"]).is_file(), row
    assert {q["metadata"]["language"] for q in asked.values()} == {"en", "pt", "ru"}


def test_collection_is_small_and_varied() -> None:
    """It ships in the wheel: it may not grow without anybody noticing, nor lose a format."""
    files = [path for path in handbook().rglob("*") if path.is_file() and ".clew" not in path.parts]
    assert 60 <= len(files) <= 90
    assert sum(path.stat().st_size for path in files) < 1_500_000
    kinds = {path.suffix for path in files}
    assert kinds >= {
        ".md",
        ".html",
        ".rst",
        ".adoc",
        ".txt",
        ".pdf",
        ".docx",
        ".pptx",
        ".xlsx",
        ".odt",
        ".epub",
        ".eml",
        ".ipynb",
        ".csv",
        ".jsonl",
        ".py",
    }
    encodings = {"pt/perguntas-frequentes.txt": "cp1252", "ru/glossary.txt": "koi8-r"}
    for name, encoding in encodings.items():
        raw = (Path(handbook()) / name).read_bytes()
        with pytest.raises(UnicodeDecodeError):
            raw.decode("utf-8")
        assert raw.decode(encoding).encode(encoding) == raw
