"""A collection of two tenants that name each other everywhere, made from a seed."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

TENANTS = ("alder", "birch")
#: Words that only the other tenant's texts hold, and those that both do.
OWN = {
    "alder": ["keel", "mast", "rudder", "anchor", "halyard", "bilge", "cleat", "fender"],
    "birch": ["furnace", "ingot", "crucible", "anvil", "bellows", "slag", "tongs", "alloy"],
}
SHARED = [
    "inspection",
    "schedule",
    "report",
    "supplier",
    "approval",
    "budget",
    "safety",
    "training",
    "delivery",
    "audit",
]
NAMES = [
    "plan",
    "index",
    "report",
    "notes",
    "audit",
    "contact",
    "people/roles",
    "people/leave",
    "ops/check",
    "ops/stock",
]
#: What each says of subjects that both name, and of its own: a page a subject.
FACTS = {
    "alder": {
        "Harbour Authority": "The Harbour Authority (HA) is an office that inspects every keel. HA answers to the Keel Register.",
        "Northgate Terminal": "Northgate Terminal is a pier of the Harbour Authority. The Northgate Terminal costs 400 euros a day.",
        "Keel Register": "The Keel Register is a list of ships kept by the Harbour Authority and the Mast Office.",
        "Mast Office": "The Mast Office is a bureau at Northgate Terminal. It is confirmed that the Mast Office requires Form 12.",
    },
    "birch": {
        "Harbour Authority": "The Harbour Authority is a guild that taxes every furnace. The Harbor Authority answers to the Slag Council.",
        "Northgate Terminal": "Northgate Terminal is a forge of the Slag Council. The Northgate Terminal costs 900 euros a day.",
        "Slag Council": "The Slag Council is a board of the Anvil Guild and the Harbour Authority.",
        "Anvil Guild": "The Anvil Guild is a union at Northgate Terminal. It is disputed that the Mast Office requires Form 12.",
    },
}
SETTINGS = "site:\n  url_template: https://intranet.example/{path}\n  base_urls: [https://intranet.example]\nexclude: [clew.yaml]\n"


def write_collection(folder: Path, *, seed: int, tenants: tuple[str, ...] = TENANTS) -> None:
    """Write the files of these tenants; each tenant's are the same whoever else is there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "clew.yaml").write_text(SETTINGS, "utf-8")
    for tenant in tenants:
        _write_tenant(folder, tenant, random.Random(f"{seed}-{tenant}"))
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


def _write_tenant(folder: Path, tenant: str, chance: random.Random) -> None:
    other = TENANTS[1 - TENANTS.index(tenant)]
    home = folder / tenant
    for number, name in enumerate(NAMES):
        path = home / f"{name}.{'html' if number % 4 == 3 else 'md'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_page(tenant, other, name, path.suffix, chance), "utf-8")
    rows = [
        {
            "id": f"{tenant[0]}-{number}",
            "title": f"{_words(tenant, chance, 2)} {number}",
            "text": _words(tenant, chance, 30),
            "links": [f"{tenant[0]}-{(number + 1) % 4}", f"{other[0]}-{number}", f"both-{(number + 1) % 4}"],
            "owner": tenant,
        }
        for number in range(4)
    ]
    rows += [{**row, "id": f"both-{number}", "title": "a part of both"} for number, row in enumerate(rows)]
    (home / "parts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for number, (title, text) in enumerate(FACTS[tenant].items()):
        (home / f"facts/{number}.md").parent.mkdir(exist_ok=True)
        (home / f"facts/{number}.md").write_text(f"# {title}\n\n{text}\n", "utf-8")
    (home / "broken.pdf").write_bytes(b"%PDF-1.4 of " + tenant.encode())
    (home / "empty.md").write_bytes(b"")


def _words(tenant: str, chance: random.Random, count: int) -> str:
    return " ".join(chance.choice(OWN[tenant] if chance.random() < 0.4 else SHARED) for _ in range(count))


def _page(tenant: str, other: str, name: str, suffix: str, chance: random.Random) -> str:
    up = "../" * (name.count("/") + 1)
    targets = [f"{up}{owner}/{one}.md" for owner in (tenant, tenant, other) for one in chance.sample(NAMES, 2)]
    targets += [
        f"https://intranet.example/{chance.choice((tenant, other))}/{chance.choice(NAMES)}.md",
        f"/{other}/plan.md",
        f"{up}{other}/secret-{chance.randrange(9)}.md",
        f"{chance.choice(NAMES)}.md#{chance.choice(SHARED)}",
        "https://elsewhere.example/",
    ]
    chance.shuffle(targets)
    sections = []
    for number, target in enumerate(targets):
        anchor, before, after = _words(tenant, chance, 2), _words(tenant, chance, 25), _words(tenant, chance, 25)
        heading = f"{SHARED[number % len(SHARED)]} {number}"
        if suffix == ".html":
            sections.append(f'<h2>{heading}</h2><p>{before} <a href="{target}">{anchor}</a> {after}</p>')
        else:
            sections.append(f"## {heading}\n\n{before} [{anchor}]({target}) {after}\n")
    if suffix == ".html":
        return f"<html><head><title>{name}</title></head><body><h1>{name}</h1>{''.join(sections)}</body></html>"
    wiki = f"\n[[{chance.choice(NAMES).rpartition('/')[2]}]] and [[{other}/plan]] and [[parts]] and [[roles|{_words(tenant, chance, 2)}]]\n"
    tags = f"---\ntags: [{tenant}, {chance.choice(SHARED)}]\n---\n"
    return f"{tags}# {name}\n\n" + "\n".join(sections) + wiki
