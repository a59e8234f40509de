"""Files for the state machine over indexing: each is decided by one number, which is cheap to draw and to shrink."""

from __future__ import annotations

import json
import random

FOLDERS = ("", "ops", "ops/deep", "ref")
NAMES = ("a.md", "b.md", "index.md", "notes.txt", "people.jsonl")
PATHS = tuple(f"{folder}/{name}".lstrip("/") for folder in FOLDERS for name in NAMES)
PAGES = tuple(path for path in PATHS if not path.endswith("jsonl"))
RECORDS = tuple(path for path in PATHS if path.endswith("jsonl"))
GOALS = (*PATHS, "old/a.md", "a.txt", "ref/b.html", "new/b.md")  # of renames
MOVABLE = ("ops", "ops/deep", "ref", "old", "new")  # folders
HEADINGS = ("Keys", "Alarm at night", "What's new?")
SENTENCES = (
    "The tide turns at noon.",
    "Rotate the signing key every quarter, and say so.",
    "The harbour is closed in a storm from the west.",
    "A lamp burns in the window.",
    "Nobody knows why the gulls came back.",
    "The key lies under the lamp.",
)
HREFS = (
    "a.md", "b.md#keys", "../a.md#alarm-at-night", "/ops/a.md#keys", "/ops/", "ops/deep/b.md", "deep/a.md#whats-new", "../ref/b.md",
    "/ref/notes.txt", "index.md#keys", "#keys", "/short", "short", "https://example.org/x", "people.jsonl", "/ops/people.jsonl", "old/a.md",
    "/new/b.md",
)  # fmt: skip
WIKI = ("a", "b#Keys", "deep/a", "nick", "ana", "rui", "people")
FRONT = ("slug: short", "aliases: [/short, nick]", "title: Given", "aliases:\n  - /short")
BROKEN = b"%PDF-1.7 this is no PDF"


def page(number: int) -> bytes:
    """A page: perhaps front matter, a title, sections of a few sentences and links."""
    chance = random.Random(number)
    lines: list[str] = []
    if chance.random() < 0.4:
        lines += ["---", chance.choice(FRONT), "---", ""]
    if chance.random() < 0.5:
        lines += [f"# {chance.choice(('Start', 'Harbour', 'Tides'))}", ""]
    for _ in range(chance.randint(1, 3)):
        if chance.random() < 0.5:
            lines += [f"## {chance.choice(HEADINGS)}", ""]
        lines += [" ".join(chance.choices(SENTENCES, k=chance.randint(1, 3))), ""]
        for href in chance.choices(HREFS, k=chance.randint(1, 3)):
            lines += [f"{chance.choice(SENTENCES)} See [the {href.strip('#/.')}]({href}).", ""]
        if chance.random() < 0.25:
            lines += [f"And [[{chance.choice(WIKI)}]].", ""]
    return "\n".join(lines).encode()


def records(number: int) -> bytes:
    """Rows with ids, texts, citations of each other and of pages."""
    chance = random.Random(number)
    rows = [
        {
            "id": one,
            "text": chance.choice(SENTENCES),
            "links": chance.choices(("ana", "rui", "a.md", "/ops/a.md", "nobody"), k=chance.randint(0, 2)),
        }
        for one in chance.sample(("ana", "rui", "eva", "a"), chance.randint(1, 3))
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
