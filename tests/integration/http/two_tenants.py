"""Collections of two tenants that name each other everywhere, made from seeds: as they are, with the files alone that a key may
see, and with all others in disguise."""

from __future__ import annotations

import codecs
import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clew.query.restriction import Restriction

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


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A collection, and what of it a key may see."""

    seed: int
    mine: str  # the tenant whose key it is
    paths: tuple[str, ...]  # of the key

    @property
    def theirs(self) -> str:
        """The other tenant."""
        return TENANTS[1 - TENANTS.index(self.mine)]

    def allows(self, path: str) -> bool:
        """Whether the key may see a file."""
        return Restriction.of(self.paths).allows(path)

    def write(self, folder: Path, *, others: str = "as they are") -> None:
        """Write the collection with what the key may not see `as they are`, `absent`, or `in disguise`: other names, links that
        lead elsewhere, and the same words in another order, so that lexical statistics, and nothing else of them, are the same."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "clew.yaml").write_text(SETTINGS, "utf-8")
        for tenant in (*TENANTS, ""):
            chance = random.Random(f"{self.seed}-{tenant}")
            for path, hidden, plain in _files(tenant, chance):
                if self.allows(path):
                    content = plain
                elif others == "absent":
                    continue
                else:
                    path, content = (_other(path), hidden) if others == "in disguise" else (path, plain)
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content.encode())
        for path in folder.rglob("*"):
            os.utime(path, (1_700_000_000, 1_700_000_000))


def scene(seed: int) -> Scene:
    """Of every two seeds one key sees a tenant's folder, the other some files and folders of the other tenant's."""
    if seed % 2:
        return Scene(seed=seed, mine="birch", paths=("birch",))
    parts = ("plan.md", "ops", "people", "facts", "parts.jsonl", "broken.pdf", "empty.md", "copy.md", "index.md")
    return Scene(seed=seed, mine="alder", paths=tuple(f"alder/{part}" for part in parts))


def _files(tenant: str, chance: random.Random) -> list[tuple[str, str, str]]:
    """(path, content in disguise, content) of a tenant's files; of "": of those that are nobody's."""
    if not tenant:
        common = [("plan", "alias"), ("ops/check", ""), ("roles", "")]
        return [
            (f"{name}.md", *_both(lambda say, name=name, alias=alias: _common(name, alias, say)))  # type: ignore[misc]
            for name, alias in common
        ]
    other = TENANTS[1 - TENANTS.index(tenant)]
    found = []
    for number, name in enumerate(NAMES):
        suffix = ".html" if number % 4 == 3 else ".md"
        seed = chance.random()
        pages = _both(lambda say, name=name, suffix=suffix, seed=seed: _page(tenant, other, name, suffix, seed, say))  # type: ignore[misc]
        found.append((f"{tenant}/{name}{suffix}", *pages))
    for number, (title, text) in enumerate(FACTS[tenant].items()):
        pages = _both(lambda say, title=title, text=text: f"# {say(title)}\n\n{say(text)}\n")  # type: ignore[misc]
        found.append((f"{tenant}/facts/{number}.md", *pages))
    rows = [
        {"title": f"{_words(tenant, chance, 2)} {number}", "text": _words(tenant, chance, 30), "owner": tenant}
        for number in range(4)
    ]
    for file, ids in (("parts", [f"{tenant[0]}-{{}}", "both-{}"]), ("more", ["shared-{}", "only-in-more-{}"])):
        found.append((f"{tenant}/{file}.jsonl", *_both(lambda say, ids=ids: _records(tenant, other, rows, ids, say))))  # type: ignore[misc]
    found += [
        (f"{tenant}/copy.md", *_both(lambda say: f"# {say('the same')}\n\n{say('one report of the safety of all')}\n")),
        (f"{tenant}/broken.pdf", f"%PDF-1.4 of {_other(tenant)}", f"%PDF-1.4 of {tenant}"),
        (f"{tenant}/empty.md", "", ""),
    ]
    return found


class _Disguised:
    """Says texts with their words in another order and without capitals."""

    def __call__(self, text: str) -> str:
        *words, last = text.lower().split(" ")  # the last one stays there: "12." at the beginning of a line were a list
        return " ".join([*reversed(words), last])

    def where(self, target: str) -> str:
        """A link's target, or a name that others may link to."""
        return _other(target)


class _Plain:
    """Says everything as it is."""

    def __call__(self, text: str) -> str:
        return text

    def where(self, target: str) -> str:
        """A link's target, or a name that others may link to."""
        return target


Say = _Plain | _Disguised


def _both(write: Callable[[Say], str]) -> tuple[str, str]:
    return write(_Disguised()), write(_Plain())


def _other(name: str) -> str:
    """Another name of the same length and form."""
    stem, dot, suffix = name.rpartition(".")
    return codecs.encode(stem, "rot13") + dot + suffix if dot else codecs.encode(name, "rot13")


def _words(tenant: str, chance: random.Random, count: int) -> str:
    return " ".join(chance.choice(OWN[tenant] if chance.random() < 0.4 else SHARED) for _ in range(count))


def _common(name: str, alias: str, say: Say) -> str:
    front = f"---\naliases: [{say.where('handbook')}]\n---\n" if alias else ""
    return f"{front}# {say(f'common {name}')}\n\n{say('a report of the schedule that nobody owns')}\n"


def _records(tenant: str, other: str, rows: list[dict[str, str]], ids: list[str], say: Say) -> str:
    lines = []
    for pattern in ids:
        for number, row in enumerate(rows):
            targets = [f"{tenant[0]}-{(number + 1) % 4}", f"{other[0]}-{number}", f"both-{(number + 1) % 4}"]
            targets += [f"shared-{number}", f"{other}/plan.md"]
            line = {
                "id": say.where(pattern.format(number)),
                "title": say(row["title"]),
                "text": say(row["text"]),
                "links": [say.where(target) for target in targets],
                "owner": say.where(row["owner"]),
            }
            lines.append(json.dumps(line) + "\n")
    return "".join(lines)


def _page(tenant: str, other: str, name: str, suffix: str, seed: float, say: Say) -> str:
    chance = random.Random(seed)
    up = "../" * (name.count("/") + 1)
    targets = [f"{up}{owner}/{one}.md" for owner in (tenant, tenant, other) for one in chance.sample(NAMES, 2)]
    targets += [
        f"https://intranet.example/{chance.choice((tenant, other))}/{chance.choice(NAMES)}.md",
        f"/{other}/plan.md",
        "/plan",
        f"{up}{other}/secret-{chance.randrange(9)}.md",
        f"{chance.choice(NAMES)}.md#{chance.choice(SHARED)}",
        "https://elsewhere.example/",
    ]
    chance.shuffle(targets)
    sections = []
    for number, target in enumerate(targets):
        anchor, before, after = (say(_words(tenant, chance, count)) for count in (2, 12, 12))
        heading, target = say(f"{SHARED[number % len(SHARED)]} {number}"), say.where(target)
        if suffix == ".html":
            sections.append(f'<h2>{heading}</h2><p>{before} <a href="{target}">{anchor}</a> {after}</p>')
        else:
            sections.append(f"## {heading}\n\n{before} [{anchor}]({target}) {after}\n")
    title = say(name.replace("/", " "))
    if suffix == ".html":
        return f"<html><head><title>{title}</title></head><body><h1>{title}</h1>{''.join(sections)}</body></html>"
    wiki = [
        chance.choice(NAMES).rpartition("/")[2],
        f"{other}/plan",
        "parts",
        "roles",
        "handbook",
        "ops/check",
        "report",
    ]
    named = " and ".join(f"[[{say.where(one)}|{say(_words(tenant, chance, 2))}]]" for one in wiki)
    aliases = f"aliases: [{say.where('handbook')}, {say.where(tenant + ' guide')}]\n" if name == "people/roles" else ""
    tags = f"---\ntags: [{say.where(tenant)}, {chance.choice(SHARED)}]\n{aliases}---\n"
    return f"{tags}# {title}\n\n" + "\n".join(sections) + f"\n{named}\n"
