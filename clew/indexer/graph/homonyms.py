"""Two things of one name: told apart where texts define them as things of different kinds and tell nothing in common of them.

"Mercury is a project …" in one folder and "Mercury is a supplier …" in another are two nodes; "Helm is a tool" and "Helm is a
project" are one. A name has several senses where

- copular sentences of different documents call it things of classes that exclude each other (a person, an organisation, a place, …), and
  what these documents name beside it overlaps by less than OVERLAP; or call it persons of different callings, in different
  folders, with no other name in common; and
- no document does both, and no link leads from the one to the other.

Documents without a definition go with the sense whose names they share, else with the one whose folder is nearest, else with
the commonest. All of this is a function of the rows of mentions and definitions, so an update tells apart what a fresh build does. A
sense is a form of its own: `form_key` of its mentions and claims is the key of name, type and sense.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.indexer.graph.gathering import Mentions, Phrases, documents_of
from clew.indexer.graph.lexicon import word_set
from clew.indexer.graph.names import key_of
from clew.indexer.graph.occurrences import distinct_by
from clew.indexer.graph.resolution import normalised, singular
from clew.indexer.graph.work import Work
from clew.indexer.number_sets import distinct_numbers, is_among
from clew.indexer.tables import Table, TableChange

Ints = NDArray[np.int64]

OVERLAP = 0.25  # share of the names around one that stand around the other, too (of the smaller set)
GENERIC_SHARE = (
    0.1  # names in more documents say nothing of what a name stands for; in small collections from GENERIC_LEAST on
)
GENERIC_LEAST = 5
LEAST_SHARE = 0.1  # of the documents that define a name: what fewer call it is a turn of phrase ("Kubernetes is a manager"), no sense
MOST_DOCUMENTS = 2000  # that define a name; what is defined so often is a word

#: What a definition's head noun says a thing is. Things made by a project have its name, so those are one class.
_CLASSES = {
    "person": word_set(
        """person man woman engineer director developer designer nurse doctor physician surgeon teacher author writer novelist poet
        journalist actor actress singer musician composer painter artist politician lawyer judge captain officer technician accountant
        architect researcher scientist professor student founder president minister senator secretary employee colleague player
        footballer coach pilot fisherman carpenter welder consultant maintainer electrician plumber economist historian
        pessoa homem mulher engenheiro engenheira diretor diretora enfermeiro enfermeira médico médica professor professora autor autora
        escritor escritora jornalista ator atriz cantor cantora músico pintor pintora artista político política advogado advogada juiz juíza capitão
        técnico técnica contador contadora arquiteto arquiteta pesquisador pesquisadora cientista estudante fundador fundadora ministro
        secretária funcionário funcionária colega jogador piloto pescador carpinteiro soldador consultor consultora
        persona hombre mujer ingeniero ingeniera directora enfermero enfermera profesor profesora escritora periodista actriz cantante músico
        abogado abogada jueza técnico contadora arquitecto arquitecta investigador investigadora científico fundadora empleado jugador pescador
        человек мужчина женщина инженер директор разработчик медсестра врач учитель автор писатель поэт журналист актёр актер
        актриса певец певица музыкант композитор художник политик юрист адвокат судья капитан офицер техник бухгалтер архитектор
        исследователь учёный ученый профессор студент основатель президент министр сотрудник игрок тренер пилот рыбак плотник сварщик"""
    ),
    "organisation": word_set(
        """company supplier vendor manufacturer retailer distributor contractor subcontractor carrier insurer firm agency organisation organization
        association foundation bank university school institute ministry charity cooperative corporation startup wholesaler shipyard
        empresa fornecedor fornecedora fabricante distribuidor distribuidora transportadora seguradora agência organização associação fundação banco
        universidade escola instituto ministério cooperativa corporação estaleiro companhia firma
        proveedor proveedora distribuidor aseguradora agencia organización asociación fundación universidad escuela ministerio corporación astillero
        компания поставщик производитель дистрибьютор подрядчик перевозчик страховщик фирма агентство организация ассоциация фонд банк
        университет школа институт министерство корпорация стартап предприятие завод"""
    ),
    "undertaking": word_set(
        """project programme program initiative campaign tool library framework service system software application app database platform
        server device machine vessel ship boat buoy car engine sensor product plugin extension driver package module api protocol
        projeto iniciativa campanha ferramenta biblioteca serviço sistema aplicativo aplicação plataforma servidor dispositivo máquina navio barco
        boia carro motor sensor produto pacote módulo protocolo programa
        proyecto herramienta biblioteca servicio aplicación plataforma servidor máquina buque barco boya coche producto paquete módulo
        проект программа инициатива кампания инструмент библиотека сервис служба система приложение платформа сервер устройство машина
        судно корабль лодка буй автомобиль двигатель датчик продукт пакет модуль протокол"""
    ),
    "place": word_set(
        """city town village river lake island mountain planet country district harbour harbor street square bay valley beach
        peninsula municipality suburb moon crater
        cidade vila aldeia rio lago ilha montanha planeta país bairro praia península município
        ciudad pueblo río isla montaña barrio playa municipio
        город деревня село река озеро остров гора планета страна район гавань улица площадь залив пляж полуостров"""
    ),
    "substance": word_set("metal element chemical mineral alloy gas elemento mineral liga metal металл элемент минерал сплав газ вещество"),
    "work": word_set(
        """novel film movie album song book play painting opera poem magazine newspaper
        romance filme álbum canção livro peça pintura ópera poema revista jornal novela película canción libro
        роман фильм альбом песня книга пьеса картина опера поэма журнал газета"""
    ),
    "creature": word_set("species bird fish plant insect animal tree espécie pássaro peixe planta inseto especie pájaro pez вид птица рыба растение"),
    "deity": word_set("god goddess deity deus deusa divindade dios diosa бог богиня божество"),
}  # fmt: skip
_CLASS_OF = {word: name for name, words in reversed(_CLASSES.items()) for word in words}
_COPULA = re.compile(
    r"(?:also )?(?:is|are|was|were|é|são|era|foi|es|son|fue|является|представляет собой)\b|[—–-] (?:это)?",
    re.IGNORECASE,
)
_NOUN_PHRASE = re.compile(
    r"[,.;:()]| (?:of|that|which|who|for|in|on|at|to|by|with|from|and|or|as|where|whose|de|do|da|dos|das|del|que|para|em|no|na|en|con|com|e|y|ou|o"
    r"|который|которая|которое|в|на|для|с|по|из|и|от)(?= |$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sense:
    """One of the things that a name stands for."""

    sign: str  # its class and head noun; '' of the commonest, which keeps the name's own key
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Senses:
    """What names of several senses stand for, document by document."""

    of: Mapping[str, Mapping[int, Sense]]  # name → document → sense; documents that are not there have the commonest

    def key(self, name: str, type_: str, document: int) -> int:
        """The form's key there."""
        sense = self.of[name].get(document)
        return key_of(name, type_) if sense is None or not sense.sign else sense_key(name, type_, sense.sign)

    def told(self) -> dict[tuple[str, str], str]:
        """(name, sign) → why it stands by itself."""
        return {(name, one.sign): one.reason for name, homes in self.of.items() for one in homes.values() if one.sign}


def sense_key(name: str, type_: str, sign: str) -> int:
    """The key of a form in a sense of its own."""
    return key_of(name, type_, "sense", sign)


def head_of(predicate: str, goal: str) -> tuple[str, str] | None:
    """(class, head noun) of what a definition calls its subject; None where it calls it nothing that tells."""
    if _COPULA.match(predicate) is None:
        return None
    cut = _NOUN_PHRASE.search(goal)
    words = [singular(word) for word in re.findall(r"\w+", (goal[: cut.start()] if cut else goal).lower())][:8]
    known = [word for word in words if word in _CLASS_OF]
    if not known:
        return None
    # English has the head last; Portuguese and Spanish have it first, and Russian has one such word in most phrases.
    head = known[-1] if predicate.lower().split(" ")[0] in ("is", "are", "was", "were", "also") else known[0]
    return _CLASS_OF[head], head


def told_apart(work: Work, mentions: Mentions, one_by_hand: set[str], documents: int) -> Senses | None:
    """The names that have several senses; None where there are none. `one_by_hand`: names that a hand declared to be of one."""
    heads = {name: found for name, found in _definitions(work).items() if name not in one_by_hand and _disagree(found)}
    if not heads:
        return None
    around = _Around.of(work, mentions, heads, documents)
    found: dict[str, dict[int, Sense]] = {}
    for name in sorted(heads):
        homes = around.senses(name, heads[name])
        if homes is not None:
            found[name] = homes
    return Senses(of=found) if found else None


def _definitions(work: Work) -> dict[str, dict[int, set[tuple[str, str]]]]:
    """By name and document, what the document calls it."""
    rows = work.table("claims").read(
        ["subject", "predicate", "object", "file_key", "record_number", "negated", "status"], "kind = 'definition'"
    )
    # What one document alone defines has one sense, whatever it says.
    subject = rows["subject"].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    home = documents_of(rows)
    several = distinct_by(subject, np.searchsorted(distinct_numbers(home), home), int(subject.max(initial=-1)) + 1) > 1
    rows = rows.filter(pa.array(several[subject]))
    found: dict[str, dict[int, set[tuple[str, str]]]] = {}
    columns = (rows[name].to_pylist() for name in ("subject", "predicate", "object", "negated", "status"))
    for name, predicate, goal, negated, status, document in zip(*columns, documents_of(rows).tolist(), strict=True):
        if not negated and status == "confirmed" and (head := head_of(predicate, goal)) is not None:
            found.setdefault(name, {}).setdefault(document, set()).add(head)
    return found


def _disagree(found: Mapping[int, set[tuple[str, str]]]) -> bool:
    """Whether different documents call it different things: a quick look before anything is compared."""
    if not 2 <= len(found) <= MOST_DOCUMENTS:
        return False
    heads = set().union(*found.values())
    return len({kind for kind, _ in heads}) > 1 or (len(heads) > 1 and any(kind == "person" for kind, _ in heads))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Around:
    """What stands around names of which documents say different things."""

    homes: Mapping[str, Sequence[int]]  # name → its documents, by path
    names: Mapping[tuple[str, int], frozenset[str]]  # (name, document) → other names in the same passages
    documents: Mapping[str, int]  # how many documents a name around has
    paths: Mapping[int, str]  # by file key
    links: frozenset[tuple[int, int]]  # between documents, the smaller first

    @classmethod
    def of(cls, work: Work, mentions: Mentions, wanted: Mapping[str, object], documents: int) -> _Around:
        names = [form.name for form in mentions.forms]
        own = np.array([name in wanted for name in names], dtype=bool)[mentions.form]
        near = np.flatnonzero(is_among(mentions.passages, distinct_numbers(mentions.passages[own])))
        generic = max(GENERIC_LEAST, GENERIC_SHARE * documents)
        counts: dict[str, int] = {}
        by_passage: dict[int, tuple[int, set[str], set[str]]] = {}
        for row in near.tolist():
            form = mentions.forms[mentions.form[row]]
            _, theirs, others = by_passage.setdefault(
                int(mentions.passages[row]), (int(mentions.document[row]), set(), set())
            )
            if form.name in wanted:
                theirs.add(form.name)
            if form.documents <= generic:
                others.add(normalised(form.name))
            counts[normalised(form.name)] = max(counts.get(normalised(form.name), 1), form.documents)
        around: dict[tuple[str, int], set[str]] = defaultdict(set)
        for document, theirs, others in by_passage.values():
            for name in theirs:
                around[name, document] |= others - {normalised(name)}
        files = work.table("files").read(["file_key", "path"]) if near.size else None
        paths = dict(zip(files["file_key"].to_pylist(), files["path"].to_pylist(), strict=True)) if files else {}
        homes: dict[str, list[int]] = defaultdict(list)
        for name, document in around:
            homes[name].append(document)
        order = {name: sorted(found, key=lambda one: (paths.get(one >> 32, ""), one)) for name, found in homes.items()}
        return cls(
            homes=order, names={key: frozenset(found) for key, found in around.items()}, documents=counts, paths=paths,
            links=_links(work, np.array(sorted({document for _, document in around}), dtype=np.int64)),
        )  # fmt: skip

    def senses(self, name: str, heads: Mapping[int, set[tuple[str, str]]]) -> dict[int, Sense] | None:
        """The sense of each document; None where there is one for all."""
        plain = {
            one: found for one, found in heads.items() if one in self.homes[name] and len({k for k, _ in found}) == 1
        }
        groups = self._groups(name, plain)
        if len(groups) < 2:
            return None
        signs = [self._sign(group, plain) for group in groups]
        placed = {document: at for at, group in enumerate(groups) for document in group}
        around = [frozenset().union(*(self.names[name, one] for one in group)) for group in groups]
        for document in self.homes[name]:
            if document not in placed and (home := self._home(name, document, groups, around)) is not None:
                placed[document] = home
        sizes = Counter(placed.values())
        main = min(range(len(groups)), key=lambda at: (-sizes[at], signs[at]))
        told = [sign.partition(":")[2] for sign in signs]
        return {
            document: Sense(
                sign="" if at == main else signs[at],
                reason=f"texts call this {name!r} a {told[at]}, another one a {told[main]}, and tell nothing in common of the two",
            )
            for document, at in placed.items()
        }

    def _groups(self, name: str, heads: Mapping[int, set[tuple[str, str]]]) -> list[list[int]]:
        """Documents that define the same thing, as groups."""
        group = {document: document for document in heads}

        def root(one: int) -> int:
            while group[one] != one:
                one = group[one]
            return one

        ordered = [one for one in self.homes[name] if one in heads]
        # Documents that say the same need no comparing with each other: of each wording and folder, the first stands for all.
        first: dict[tuple[frozenset[tuple[str, str]], str], int] = {}
        for document in ordered:
            kind = (frozenset(heads[document]), self._folder(document))
            group[document] = first.setdefault(kind, document)
        for one, other in combinations(dict.fromkeys(first.values()), 2):
            if root(one) != root(other) and self._same(name, one, other, heads):
                group[root(other)] = root(one)
        found: dict[int, list[int]] = {}
        for document in ordered:
            found.setdefault(root(document), []).append(document)
        return [group for group in found.values() if len(group) >= LEAST_SHARE * len(ordered)]

    def _same(self, name: str, one: int, other: int, heads: Mapping[int, set[tuple[str, str]]]) -> bool:
        if heads[one] & heads[other] or (min(one, other), max(one, other)) in self.links:
            return True
        a, b = self.names[name, one], self.names[name, other]
        shared = len(a & b) / max(1, min(len(a), len(b)))
        kinds = {kind for kind, _ in heads[one] | heads[other]}
        if kinds == {"person"}:
            return shared > 0 or self._folder(one) == self._folder(other)
        if len(kinds) == 1:
            return True
        return shared >= OVERLAP or (not (a and b) and self._folder(one) == self._folder(other))

    def _home(
        self, name: str, document: int, groups: Sequence[Sequence[int]], around: Sequence[frozenset[str]]
    ) -> int | None:
        own = self.names[name, document]
        score = [fsum(1.0 / self.documents[one] for one in own & theirs) for theirs in around]
        if score.count(max(score)) == 1:
            return score.index(max(score))
        near = [max(_common(self._folder(document), self._folder(one)) for one in group) for group in groups]
        return near.index(max(near)) if near.count(max(near)) == 1 else None

    def _folder(self, document: int) -> str:
        return self.paths.get(document >> 32, "").rpartition("/")[0]

    @staticmethod
    def _sign(group: Sequence[int], heads: Mapping[int, set[tuple[str, str]]]) -> str:
        counts = Counter(head for document in group for head in heads[document])
        kind, head = min(counts, key=lambda one: (-counts[one], one))
        return f"{kind}:{head}"


def _common(one: str, other: str) -> int:
    """How many folders two paths begin with together."""
    count = 0
    for a, b in zip(one.split("/"), other.split("/"), strict=False):
        if a != b:
            break
        count += 1
    return count


def _links(work: Work, documents: Ints) -> frozenset[tuple[int, int]]:
    """Pairs of these documents with a link from one to the other."""
    links = work.table("links").read(
        ["source_file", "source_record", "target_file", "target_record"], "target_file IS NOT NULL"
    )
    ends = []
    for side in ("source", "target"):
        record = links[f"{side}_record"].fill_null(0).to_numpy().astype(np.int64)
        ends.append((links[f"{side}_file"].to_numpy().astype(np.int64) << 32) | record)
    among = is_among(ends[0], documents) & is_among(ends[1], documents)
    return frozenset(
        (min(a, b), max(a, b)) for a, b in zip(ends[0][among].tolist(), ends[1][among].tolist(), strict=True)
    )


# --- keys in the tables -----------------------------------------------------------------------


def sensed_keys(mentions: Mentions, senses: Senses) -> tuple[Ints, dict[int, str]]:
    """(the form's key of each mention by sense, the sense of each key that has one)."""
    keys: Ints = mentions.form_keys[mentions.form].copy()
    signs: dict[int, str] = {}
    split = np.array([form.name in senses.of for form in mentions.forms], dtype=bool)
    for row in np.flatnonzero(split[mentions.form]).tolist():
        form = mentions.forms[mentions.form[row]]
        sense = senses.of[form.name].get(int(mentions.document[row]))
        if sense is not None and sense.sign:
            keys[row] = sense_key(form.name, form.type, sense.sign)
            signs[int(keys[row])] = sense.sign
    return keys, signs


def write_keys(work: Work, mentions: Mentions, senses: Senses | None) -> None:
    """Bring `form_key` of stored mentions, and `subject_form` of claims, to the senses as they are now."""
    differ = mentions.stored_keys != mentions.form_keys[mentions.form]
    stale = set(distinct_numbers(mentions.stored_keys[differ]).tolist())
    if differ.any():
        table = work.table("mentions")
        addresses = table.read_with_addresses(["form_key"], "kind != 'phrase'")["_rowaddr"].to_numpy()[differ]
        _set(table, addresses, "form_key", mentions.form_keys[mentions.form][differ])
    if senses is None and not stale:
        return
    table = work.table("claims")
    rows = table.read_with_addresses(["subject_form", "subject", "file_key", "record_number"])
    form_of = {int(key): mentions.forms[form] for key, form in zip(
        mentions.stored_keys[differ].tolist(), mentions.form[differ].tolist(), strict=True
    )} | {form.key: form for form in mentions.forms}  # fmt: skip
    wanted = rows["subject_form"].to_numpy().copy()
    touched = senses.of if senses is not None else {}
    of_touched = pc.is_in(rows["subject"], pa.array(sorted(touched), pa.string())).to_numpy()
    chosen = np.flatnonzero(of_touched | is_among(wanted, np.array(sorted(stale), dtype=np.int64)))
    names, documents = rows["subject"].take(pa.array(chosen)).to_pylist(), documents_of(rows)
    for row, name in zip(chosen.tolist(), names, strict=True):
        form = form_of.get(int(wanted[row]))
        if form is not None:
            here = senses is not None and name in touched
            wanted[row] = (
                senses.key(name, form.type, int(documents[row])) if here and senses else key_of(name, form.type)
            )
    moved = wanted != rows["subject_form"].to_numpy()
    if moved.any():
        _set(table, rows["_rowaddr"].to_numpy()[moved], "subject_form", wanted[moved])


def _set(table: Table, addresses: NDArray[np.uint64], column: str, values: Ints) -> None:
    full = table.take_addresses(addresses, table.schema.names)
    at = full.schema.get_field_index(column)
    full = full.set_column(at, table.schema.field(column), pa.array(values, pa.int64()))
    table.commit(TableChange(delete=addresses, append=table.write(full.cast(table.schema))))


def names_of_one(mentions: Mentions, apart: Mapping[int, int]) -> set[str]:
    """Names of which a hand said that they stand for one thing: a form of theirs is kept apart from itself."""
    return {form.name for form in mentions.forms if apart.get(form.key) == form.key}


def in_their_sense(mentions: Mentions, phrases: Phrases) -> Phrases:
    """Phrases of a name with several senses count for the one that their document names; where it names none or two, for none."""
    split = {one.name for one in mentions.forms if one.sense}
    if not split:
        return phrases
    several = np.array([one.name in split for one in mentions.forms], dtype=bool)
    here: dict[tuple[str, int], set[int]] = defaultdict(set)
    for row in np.flatnonzero(several[mentions.form]).tolist():
        at = int(mentions.form[row])
        here[mentions.forms[at].name, int(mentions.document[row])].add(at)
    form = phrases.form.copy()
    for row in np.flatnonzero(several[form]).tolist():
        found = here[mentions.forms[form[row]].name, int(phrases.document[row])]
        one = len({mentions.forms[at].sense for at in found}) == 1
        form[row] = min(found) if one else -1
    keep = form >= 0
    return Phrases(form=form[keep], passage=phrases.passage[keep], document=phrases.document[keep])
