"""What went wrong elsewhere when files were read and links followed; each test keeps one such failure away."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import clew
import clew.indexer.run as run
from tests.acceptance.commands import process
from tests.acceptance.faults import FaultyIntake, ordinary_rights
from tests.integration.scenarios.collections import build, indexed, links, paths, write
from tests.samples.office import xlsx
from tests.samples.pdfs import Pdf, paragraphs

PORTUGUESE = "A manutenção da turbina não é fácil: após três inspeções, verificar a válvula e o óleo.\n"
RUSSIAN = "Ключ подписи меняют раз в год, старый ключ остаётся доверенным тридцать суток после смены.\n"
CHINESE = "签名密钥每年轮换一次。旧密钥在三十天内仍然有效，之后必须撤销。维护人员应检查阀门和机油。\n"
JAPANESE = "署名鍵は毎年交換します。古い鍵は三十日間有効です。タービンの整備では弁と油を確認してください。\n"


def test_texts_of_many_encodings_are_read_right_and_their_encoding_is_told(root: Path) -> None:
    """P1: UTF-16 with and without a byte order mark, cp1252, cp1251, koi8-r, GBK and Shift-JIS."""
    written = {
        "utf-16.txt": (PORTUGUESE, "utf-16", "utf-16-le"),  # little-endian behind its mark, as `encode` writes it here
        "utf-16-be.md": (RUSSIAN, "utf-16-be", "utf-16-be"),
        "latin.txt": (PORTUGUESE, "cp1252", "cp1252"),
        "windows.txt": (RUSSIAN, "cp1251", "cp1251"),
        "unix.txt": (RUSSIAN, "koi8-r", "koi8-r"),
        "chinese.txt": (CHINESE, "gbk", "gbk"),
        "japanese.txt": (JAPANESE, "shift_jis", "shift_jis"),
    }
    bom = "id,text\n1,três válvulas\n".encode("utf-8-sig")
    index = indexed(
        root, {name: text.encode(encoding) for name, (text, encoding, _) in written.items()} | {"bom.csv": bom}
    )
    told = {row.path: row.encoding for row in index.files()}
    assert told == {name: encoding for name, (_, _, encoding) in written.items()} | {"bom.csv": "utf-8"}
    for name, (text, _, _) in written.items():
        assert index.show(name).text == text.strip()
    assert index.show("bom.csv", record="1").text == "três válvulas"
    assert set(paths(index.search("manutenção", paths=["bm25"]))) == {"latin.txt", "utf-16.txt"}
    assert set(paths(index.search("доверенным", paths=["bm25"]))) == {"unix.txt", "utf-16-be.md", "windows.txt"}


def test_one_denied_file_among_a_hundred_costs_one_line(root: Path) -> None:
    """P2: 99 are indexed, one is in the ledger."""
    write(root, {f"{number:03}.md": f"# Page {number}\n\nThe text of page {number}.\n" for number in range(100)})
    (root / "042.md").chmod(0)
    with ordinary_rights():
        report = build(root)
    assert (report.files.added, report.files.failed) == (100, 1)
    index = clew.open(str(root))
    assert [(row.path, row.error) for row in index.errors()] == [("042.md", "unreadable")]
    assert len({hit.path for hit in index.search("text of page", k=200).hits}) == 99


def test_memory_does_not_grow_with_the_file(root: Path, tmp_path: Path) -> None:
    """P3: one text file of 16 MB beside one of 4, in the whole process (`indexer/test_memory.py` counts what is held)."""
    peaks = []
    for name, megabytes in (("short", 4), ("long", 16)):
        folder = tmp_path / name
        folder.mkdir()
        with (folder / "report.txt").open("w") as file:
            number = 0
            while file.tell() < megabytes << 20:
                file.writelines(
                    f"Paragraph {n} of a long report. The tide gauge at station {n % 97} read {n * 7 % 1000} "
                    f"millimetres, and the keeper wrote it down in the book of {1900 + n % 120}.\n\n"
                    for n in range(number, number + 1000)
                )
                number += 1000
        done = process(
            *("index", folder, "--embedder", "none", "--workers", "0", "--json"),
            module="tests.integration.scenarios.small_spills",
        )
        assert done.object["files"] == {**done.object["files"], "added": 1, "failed": 0}
        assert done.object["chunks"]["total"] > 1000 * megabytes
        peaks.append(done.object["peak_rss_bytes"])
    assert peaks[1] - peaks[0] < 100 << 20
    assert peaks[1] < 700 << 20  # 400 MB, on a machine under a load of 18, too


def test_file_over_the_limit_is_refused_with_its_reason(root: Path) -> None:
    """P3: what is too large by the settings is said to be, and not read."""
    settings = {"extraction": {"max_file_bytes": 1000}}
    index = indexed(root, {"large.csv": "id,text\n" + "1,word\n" * 1000, "small.md": "# Small\n"}, settings=settings)
    assert [(row.path, row.state, row.error) for row in index.errors()] == [("large.csv", "skipped", "too large")]
    assert index.status().chunks == 1


def test_parsers_that_never_return_are_killed_and_the_worker_is_replaced(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: two hang among thirty, with one process: the other 28 are indexed, and the next run does not try them at once."""
    monkeypatch.setattr(run, "Intake", FaultyIntake)
    files = {f"{number:02}.md": f"# Page {number}\n\nText.\n" for number in range(28)}
    write(root, files | {"07 hangs.adoc": "= Never\n", "21 hangs.adoc": "= Never\n"})
    report = build(root, workers=1, settings={"extraction": {"seconds": 2.0}})
    assert (report.files.added, report.files.failed, report.chunks.total) == (30, 2, 28)
    index = clew.open(str(root))
    assert {(row.path, row.error) for row in index.errors()} == {
        ("07 hangs.adoc", "time limit"),
        ("21 hangs.adoc", "time limit"),
    }
    again = build(root, workers=1)
    assert (again.files.unchanged, again.files.failed) == (30, 2)


def test_locked_documents_are_told_to_be_encrypted(root: Path) -> None:
    """P6: a PDF that asks for a password, and an Office file in its encrypted envelope; one that only forbids printing is read."""
    page = [paragraphs("The keeper of the lighthouse")]
    envelope = bytes.fromhex("D0CF11E0A1B11AE1") + bytes(504) + "EncryptedPackage".encode("utf-16-le") + bytes(2000)
    index = indexed(
        root,
        {
            "locked.pdf": Pdf(pages=page, password="sesame").bytes(),
            "open.pdf": Pdf(pages=page, password="").bytes(),
            "locked.docx": envelope,
        },
    )
    assert {row.path: (row.state, row.error) for row in index.errors()} == {
        "locked.pdf": ("failed", "encrypted"),
        "locked.docx": ("failed", "encrypted"),
    }
    assert index.show("open.pdf").text == "The keeper of the lighthouse"
    assert index.show("locked.pdf").reason == "encrypted"


def test_announced_sizes_are_not_believed(root: Path) -> None:
    """P7: a PDF of 600 bytes with two billion pages, a sheet with a million empty columns: neither time nor memory goes."""
    row = '<row r="1"><c r="A1" t="inlineStr"><is><t>ebb</t></is></c></row>'
    far = '<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>flood</t></is></c></row>'
    sheet = f'<dimension ref="A1:XFD1048576"/><sheetData>{row}{far}</sheetData>'
    began = time.process_time()
    index = indexed(
        root,
        {
            "pages.pdf": Pdf(pages=[paragraphs("The only page")], announced=2_000_000_000).bytes(),
            "cells.xlsx": xlsx({"Wide": sheet}),
        },
    )
    assert time.process_time() - began < 30
    assert list(index.errors()) == []
    assert index.show("pages.pdf").text == "The only page"
    assert index.show("cells.xlsx").text == "Wide\n\nebb\nflood"


ODD_NAMES = (
    "a[1].md", "a1.md", "what?.md", "star*.md", "star2.md", "at%40home.md", "at@home.md", "C#.md", "C", "a+b c.md",
    "100%.md", "semi;colon.md", "quote'.md", 'double".md', "back\\slash.md", "{brace}.md", "~tilde.md", "new\nline.md",
    "caf\u00e9.md", "cafe\u0301.md", "[brackets]/in [folder].md",
)  # fmt: skip


def test_odd_names_are_names_and_not_patterns(root: Path) -> None:
    """P8: each is listed, read, shown, filtered, renamed and deleted as itself, and never in another's place."""
    index = indexed(root, {name: f"The file number {n}x.\n" for n, name in enumerate(ODD_NAMES)})
    assert {row.path for row in index.files()} == set(ODD_NAMES)
    for n, name in enumerate(ODD_NAMES):
        assert index.show(name).text == f"The file number {n}x."
    for gone in ("a[1].md", "what?.md", "star*.md", "at%40home.md", "C#.md", "cafe\u0301.md"):
        (root / gone).unlink()
    (root / "[brackets]/in [folder].md").rename(root / "[brackets]/of [folder].md")
    report = build(root)
    assert (report.files.removed, report.files.renamed, report.files.added) == (6, 1, 0)
    index.refresh()
    left = {row.path for row in index.files()}
    assert {"a1.md", "star2.md", "at@home.md", "C", "caf\u00e9.md", "[brackets]/of [folder].md"} <= left
    assert len(left) == len(ODD_NAMES) - 6
    found = {hit.path for hit in index.search("file number", k=100, paths=["bm25"]).hits}
    assert found == left
    assert index.check(deep=True).ok


def test_links_with_odd_names_lead_to_the_right_file_and_none_climbs_out(root: Path) -> None:
    """P9: angle brackets, `%20`, `%2F`, `../` above the root: the right target or none, never another file's."""
    outside = root.parent / "secret.md"
    outside.write_text("# Secret\n")
    page = """# Links

[a](<the brief.md>) [b](the%20brief.md) [c](sub%2Finner.md) [d](../secret.md) [e](..%2Fsecret.md)
[f](/../secret.md) [g](sub/../plain.md) [h](what%3F.md) [i](100%25.md) [j](sub/..%2F..%2Fsecret.md) [k](%2e%2e/secret.md)
[l](plain.md?raw=1#top)
"""
    index = indexed(
        root,
        {
            "index.md": page,
            "the brief.md": "# Brief\n",
            "plain.md": "# Plain\n",
            "what?.md": "# What\n",
            "100%.md": "# All\n",
            "sub/inner.md": "# Inner\n",
        },
    )
    assert {href: target for href, target in links(index, "index.md").items() if target is not None} == {
        "the brief.md": "the brief.md",
        "the%20brief.md": "the brief.md",
        "sub/../plain.md": "plain.md",
        "what%3F.md": "what?.md",
        "100%25.md": "100%.md",
        "plain.md?raw=1#top": "plain.md",
    }
    assert links(index, "index.md")["sub%2Finner.md"] is None  # an encoded slash is part of a name, not a way down
    climbing = [row for row in index.links(path="index.md", direction="out") if "secret" in row.href]
    assert len(climbing) == 5
    assert all(row.target is None and row.state == "dangling" for row in climbing)


def test_wikilink_with_alias_is_an_edge_and_its_missing_target_is_kept_until_it_arrives(root: Path) -> None:
    """P11: `[[Wiki Link|alias]]` leads to the page; one to a page that is not there dangles, and heals."""
    index = indexed(
        root,
        {
            "start.md": "# Start\n\nSee [[Signing Keys|how keys turn]] and [[Night Work|nights]] and [[Signing Keys#Lost]].\n",
            "pages/Signing Keys.md": "# Signing Keys\n\nTurned once a year.\n\n## Lost\n\nRing the keeper.\n",
        },
    )
    before = {(row.href, row.anchor, row.target, row.state) for row in index.links(path="start.md", direction="out")}
    target = "pages/Signing Keys.md"
    assert before == {
        ("Signing Keys", "how keys turn", target, "resolved"),
        ("Night Work", "nights", None, "dangling"),
        ("Signing Keys#Lost", "Signing Keys#Lost", target, "resolved"),
    }
    write(root, {"archive/Night Work.md": "# Night Work\n\nNever alone.\n"})
    report = build(root)
    assert report.files.added == 1
    index.refresh()
    assert links(index, "start.md")["Night Work"] == "archive/Night Work.md"
    reached = index.search("how keys turn", k=20, hops=1)
    assert any(step.href == "Signing Keys" for hit in reached.hits for step in hit.trail)
    os.remove(root / "archive/Night Work.md")
    build(root)
    index.refresh()
    assert links(index, "start.md")["Night Work"] is None
