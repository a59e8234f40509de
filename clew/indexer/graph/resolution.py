"""Which forms are one entity: exact name, then normalised form, then what a text itself says, then closeness of meaning.

A form is a name as written, with the type that its places give it. Forms are merged in that order, each time only where nothing
speaks against it; every merge keeps its reason, and one that was undone by hand never comes again. No step compares all with all:
forms meet only where a key they share brings them together.

Homonyms stay apart: forms of one name whose types disagree, each in documents enough, are two entities, and so are the senses of one form
that `homonyms` tells apart; a short form that could
stand for two is neither; what differs in a number ("v1.2", "v1.3") is never one thing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clew.indexer.graph.lexicon import PERSONAL_TITLES, lexicon

HOMONYM_DOCUMENTS = 2  # a type counts as a reading of its own from so many documents on,
HOMONYM_SHARE = 0.25  # and from such a share of the name's typed documents
TYPED_SHARE = (
    0.2  # of the documents that name an entity: one place in a thousand that calls it a person does not make it one
)
SIMILAR = 0.90  # cosine of two names' vectors
NEAREST_NAMES = 12  # of a block: compared with each other; larger blocks are cut by order of spelling
_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"\w+")


class Form(NamedTuple):
    """A name as written, and what the collection holds of it. A tuple: every build makes thousands, at a third of the time."""

    key: int
    name: str
    type: str
    documents: int
    mentions: int
    weight: int  # of its kinds: titles before headings before names; decides which form is canonical
    sense: str = ""  # of a name that stands for several things: which; '' for the commonest (see `homonyms`)


class Alias(NamedTuple):
    """Which entity a form stands for, and why. An entity's key is that of its canonical form."""

    form: Form
    entity: int
    how: str
    reason: str
    similarity: float | None = None


@dataclass(kw_only=True)
class _Groups:
    """Forms that are one, as a forest: the root of a tree is its canonical form."""

    forms: dict[int, Form]
    apart: frozenset[tuple[int, int]]  # pairs of forms that were parted by hand
    parent: dict[int, int] = field(default_factory=dict)
    why: dict[int, tuple[str, str, float | None]] = field(default_factory=dict)
    members: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parent = {key: key for key in self.forms}
        self.members = {key: [key] for key in self.forms}

    def root(self, key: int) -> int:
        while self.parent[key] != key:
            key = self.parent[key]
        return key

    def type_of(self, root: int) -> str:
        """The type that its members have most often, if often enough; '' where most places say nothing."""
        return type_of([self.forms[key] for key in self.members[root]])

    def merge(self, one: int, other: int, how: str, reason: str, similarity: float | None = None) -> bool:
        """Make two groups one, unless a hand parted any of their forms. The better known form is canonical."""
        a, b = self.root(one), self.root(other)
        if a == b:
            return False
        if any((x, y) in self.apart or (y, x) in self.apart for x in self.members[a] for y in self.members[b]):
            return False
        if _order(self.forms[b]) < _order(self.forms[a]):
            a, b = b, a
        self.parent[b] = a
        self.why[b] = (how, reason, similarity)
        self.members[a] += self.members.pop(b)
        return True


def type_of(forms: Iterable[Form]) -> str:
    """The type of forms that are one: that of most documents, if those are TYPED_SHARE of all."""
    documents: dict[str, int] = defaultdict(int)
    for form in forms:
        documents[form.type] += form.documents
    total = sum(documents.values())
    documents.pop("", None)
    best = min(documents, key=lambda kind: (-documents[kind], kind), default="")
    return best if best and documents[best] >= TYPED_SHARE * total else ""


def _order(form: Form) -> tuple[int, int, int, str, str]:
    return (-form.weight, -form.documents, -form.mentions, form.name, form.type)


def resolve(
    forms: Sequence[Form],
    *,
    abbreviations: Iterable[tuple[str, str]] = (),
    apart: Iterable[tuple[int, int]] = (),
    embed: Callable[[Sequence[str]], NDArray[np.float32]] | None = None,
    senses: Mapping[tuple[str, str], str] | None = None,
    together: Callable[[Form, Form], bool] | None = None,
) -> list[Alias]:
    """An alias a form, by form key.

    Args:
        forms: all of them.
        abbreviations: (short, long) as texts say.
        apart: forms that a hand parted, in pairs.
        embed: vectors of names, of length 1; None where there is no embedder.
        together: whether two forms stand in one document; None: as if they did.
        senses: (name, sense) → why that sense stands by itself. Such forms join those of the same name and sense alone.
    """
    ordered = sorted(forms, key=_order)
    groups = _Groups(forms={form.key: form for form in ordered}, apart=frozenset(apart))
    _merge_exact(groups, ordered)
    common = [form for form in ordered if not form.sense]
    by_norm: dict[str, list[Form]] = {}
    for form in common:
        by_norm.setdefault(normalised(form.name), []).append(form)
    _merge_normalised(groups, by_norm)
    _merge_abbreviations(groups, common, by_norm, abbreviations)
    _merge_surnames(groups, ordered, together)
    if embed is not None:
        _merge_similar(groups, common, embed)
    aliases: list[Alias] = []
    for form in sorted(forms, key=lambda one: one.key):
        root = groups.root(form.key)
        how, reason, similarity = groups.why.get(form.key, ("self", "", None))
        if root == form.key and form.sense:
            how, reason = "homonym", (senses or {}).get((form.name, form.sense), "")
        aliases.append(Alias(form=form, entity=root, how=how, reason=reason, similarity=similarity))
    return aliases


def _merge_exact(groups: _Groups, forms: Sequence[Form]) -> None:
    """Forms of one name: places that say nothing of the type join those that do; types that disagree may be homonyms."""
    by_name: dict[tuple[str, str], list[Form]] = defaultdict(list)
    for form in forms:
        by_name[form.name, form.sense].append(form)
    for (name, _), same in by_name.items():
        if len(same) < 2:
            continue
        typed = sorted((form for form in same if form.type), key=lambda form: (-form.documents, form.type))
        total = sum(form.documents for form in typed)
        senses = [
            form
            for form in typed
            if form.documents >= HOMONYM_DOCUMENTS
            and form.documents >= HOMONYM_SHARE * total
            and form.type != "identifier"
        ]
        first = senses[0] if senses else (typed[0] if typed else same[0])
        for form in same:
            if form is not first and form not in senses[1:]:
                groups.merge(first.key, form.key, "exact", f"the same name, {name!r}")


def _merge_normalised(groups: _Groups, by_norm: Mapping[str, Sequence[Form]]) -> None:
    """Forms that differ in case, hyphens, accents' composition, plural or a title in front."""
    for norm, same in by_norm.items():
        if len(same) < 2:
            continue
        roots = dict.fromkeys(groups.root(form.key) for form in same)
        if len(roots) < 2 or not norm:
            continue
        by_type: dict[str, int] = {}
        untyped: list[int] = []
        for root in roots:
            kind = groups.type_of(root)
            if kind in ("", "identifier", "term"):
                untyped.append(root)
            elif kind in by_type:
                _explain(groups, by_type[kind], root)
            else:
                by_type[kind] = root
        # Names whose places say nothing of a type go with the only typed one; with two they would have to be guessed.
        if len(by_type) <= 1:
            first = next(iter(by_type.values()), None)
            for root in untyped:
                if first is None:
                    first = root
                else:
                    _explain(groups, first, root)
        elif len(untyped) > 1:
            for root in untyped[1:]:
                _explain(groups, untyped[0], root)


def _explain(groups: _Groups, one: int, other: int) -> None:
    a, b = groups.forms[one].name, groups.forms[other].name
    if a.casefold() == b.casefold():
        reason = f"{a!r} and {b!r} differ in capitals alone"
    elif normalised(a, plural=True) == normalised(b, plural=True):
        reason = f"{a!r} and {b!r} differ in spelling alone (hyphens, spaces, accents, a title in front)"
    else:
        reason = f"{a!r} and {b!r} differ in number alone"
    groups.merge(one, other, "normalised", reason)


_PLURALS = (
    ("ções", "ção"), ("ões", "ão"), ("ães", "ão"), ("ais", "al"), ("éis", "el"), ("ies", "y"), ("sses", "ss"), ("shes", "sh"),
    ("ches", "ch"), ("xes", "x"), ("ss", "ss"), ("us", "us"), ("is", "is"), ("s", ""),
)  # fmt: skip


def singular(word: str) -> str:
    """A word without a plural ending of English, Portuguese or Spanish."""
    if len(word) < 4 or not word.isalpha():
        return word
    for ending, instead in _PLURALS:
        if word.endswith(ending):
            return word[: len(word) - len(ending)] + instead
    return word


@lru_cache(maxsize=1 << 17)
def normalised(name: str, *, plural: bool = False) -> str:
    """What names that are written differently have in common. Short names in capitals keep them: "US" is not "us".

    `plural`: leave plural endings where they are.
    """
    text = unicodedata.normalize("NFKC", name).strip()
    words: list[str] = _WORDS.findall(text.replace("'s", "").replace("’s", ""))
    while len(words) > 1 and words[0].lower() in PERSONAL_TITLES:
        words = words[1:]
    if len(words) == 1 and len(words[0]) <= 5 and words[0].isupper():
        return words[0]
    if len(words) == 1 and len(words[0]) <= 6 and words[0][:-1].isupper() and words[0][-1] == "s":
        return words[0] if plural else words[0][:-1]
    if not plural and words:
        words = [*words[:-1], singular(words[-1].casefold())]
    return "".join(word.casefold() for word in words)


def _merge_abbreviations(
    groups: _Groups, forms: Sequence[Form], by_norm: Mapping[str, Sequence[Form]], stated: Iterable[tuple[str, str]]
) -> None:
    """A short form and what a text says it stands for, where no text says otherwise."""
    longs: dict[str, set[str]] = defaultdict(set)
    names: dict[tuple[str, str], str] = {}
    for short, long in sorted(set(stated)):
        longs[short].add(normalised(long))
        names.setdefault((short, normalised(long)), long)
    by_name: dict[str, int] = {}
    for form in forms:
        if form.name in longs:
            by_name.setdefault(form.name, form.key)
    for short, expansions in sorted(longs.items()):
        if len(expansions) != 1:
            continue  # two readings: it stays by itself
        norm = next(iter(expansions))
        if short in by_name and norm in by_norm:
            long = names[short, norm]
            groups.merge(
                by_norm[norm][0].key, by_name[short], "abbreviation", f"a text says that {short!r} stands for {long!r}"
            )


def _merge_surnames(groups: _Groups, forms: Sequence[Form], together: Callable[[Form, Form], bool] | None) -> None:
    """A person's last name alone, where all full names that end in it are one person's, and some document has both.

    Without the latter, "Watson" was Thomas Watson in a collection that tells of a machine.
    """
    ordinary = lexicon("en").common
    full: dict[str, set[int]] = defaultdict(set)
    for form in forms:
        if form.type != "person" or groups.type_of(groups.root(form.key)) != "person":
            continue
        words = form.name.split()
        shaped = all(word[:1].isupper() and not word.isupper() for word in words)
        if 2 <= len(words) <= 4 and shaped and len(set(words)) > 1:
            full[words[-1].casefold()].add(groups.root(form.key))
    for form in forms:
        known = None if " " in form.name or form.sense else full.get(form.name.casefold())
        if known is None:
            continue
        owners = known - {groups.root(form.key)}
        if form.type not in ("", "person") or len(owners) != 1 or len(form.name) < 4 or form.name.isupper():
            continue
        root, owner = groups.root(form.key), next(iter(owners))
        known_for = groups.forms[owner].documents >= groups.forms[root].documents
        if (
            groups.type_of(root) in ("", "person")
            and known_for
            and form.name.casefold() not in ordinary
            and (together is None or together(groups.forms[owner], form))
        ):
            full_name = groups.forms[owner].name
            groups.merge(
                owner, root, "abbreviation", f"{full_name!r} is the only full name here that ends in {form.name!r}"
            )


def _merge_similar(
    groups: _Groups, forms: Sequence[Form], embed: Callable[[Sequence[str]], NDArray[np.float32]]
) -> None:
    """Names of one type that are spelt nearly alike and mean nearly the same. Only names that have such a pair are embedded."""
    blocks: dict[tuple[str, str], list[Form]] = defaultdict(list)
    for form in forms:
        if groups.root(form.key) == form.key:
            squashed = normalised(form.name)
            if len(squashed) >= 6:
                blocks[groups.type_of(form.key), squashed[:3]].append(form)
    pairs: list[tuple[Form, Form]] = []
    for block in blocks.values():
        block.sort(key=lambda form: (normalised(form.name), form.key))
        for at, one in enumerate(block):
            near = block[at + 1 : at + 1 + NEAREST_NAMES]
            pairs += [(one, other) for other in near if _spelt_alike(one.name, other.name)]
    if not pairs:
        return
    names = sorted({form.name for pair in pairs for form in pair})
    vectors = dict(zip(names, embed(names), strict=True))
    for one, other in sorted(pairs, key=lambda pair: (_order(pair[0]), _order(pair[1]))):
        cosine = float(vectors[one.name] @ vectors[other.name])
        if cosine >= SIMILAR:
            reason = f"{one.name!r} and {other.name!r} are spelt nearly alike and mean the same (cosine {cosine:.2f})"
            groups.merge(one.key, other.key, "embedding", reason, round(cosine, 4))


def _spelt_alike(one: str, other: str) -> bool:
    """Whether two names differ in one letter of eight at most, in no number, and neither in capitals nor in a negation."""
    a, b = normalised(one), normalised(other)
    if _DIGITS.findall(a) != _DIGITS.findall(b) or a.isupper() != b.isupper():
        return False
    most = max(1, min(len(a), len(b)) // 8)
    return abs(len(a) - len(b)) <= most and a[-1] == b[-1] and distance(a, b, most) <= most


def distance(one: str, other: str, most: int) -> int:
    """Edit distance (insert, delete, replace); `most` + 1 where it is larger than `most`."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
        if min(row) > most:
            return most + 1
    return row[-1]
