"""What sentences state, by plain patterns: subject, predicate, object, kind, and how sure the text itself is.

A pattern is a verb that tells what kind of statement this is; the subject is what stands before it in the sentence, if that is
a short noun phrase, and the object what follows. Sentences that ask, tell the reader what to do, or begin with a pronoun or
a subordinate clause state nothing of a subject by this rule, and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from clew.indexer.graph.hedges import NAMED, REACH, clause_of, signs_in
from clew.indexer.graph.lexicon import lexicon, word_set
from clew.indexer.sentences import line_spans, paragraph_spans, sentence_spans

LONGEST_SUBJECT = 6  # words
LONGEST_SENTENCE = 600  # characters; what is longer is a list or a table


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """A sentence at text[start:end] that states something of its subject."""

    start: int
    end: int
    subject: str
    subject_start: int
    abbreviation: str | None  # in brackets behind the subject
    predicate: str
    object: str
    kind: str
    status: str
    negated: bool

    @property
    def definition_score(self) -> float:
        """How good an answer to "what is it" the sentence is: 0 … 1."""
        base = {"definition": 0.8, "capability": 0.5, "requirement": 0.35, "quantity": 0.3, "compatibility": 0.3}
        score = base.get(self.kind, 0.25)
        length = self.end - self.start
        score += 0.1 if 40 <= length <= 240 else 0.0
        return score - 0.2 * (self.negated or self.status != "confirmed")


_VERBS = {
    "en": {
        "definition": r"(?:is|are|was|were)(?: not)? (?:also )?(?:an?|one of|any|the (?:name|process|term|act|ability|set|collection|default|primary|main|first|core|component|part|way|smallest|largest))\b|(?:(?:do|does) not |don't |doesn't |can(?:not|'t)? )?refers? to\b|stands for\b|means\b|denotes?\b",
        "compatibility": r"(?:is|are)(?: not)? compatible with\b|works? with\b|integrates? with\b",
        "certification": r"(?:is|are|was|were)(?: not)? (?:certified|accredited|licensed)\b(?: (?:to|by|under|for|as))?|compl(?:ies|y) with\b|conforms? to\b",
        "price": r"costs?\b|(?:is|are) priced at\b",
        "date": r"(?:was|were|is|are|has been|have been)(?: not)? (?:released|introduced|founded|born|published|launched|established|deprecated|removed|announced|added|built) (?:in|on|since|as of)\b",
        "state": r"(?:is|are|was|has been|have been)(?: not)? (?=deprecated|removed|stable|unsupported|obsolete|in beta|in alpha|generally available|disabled by|enabled by|immutable|optional|mandatory)",
        "quantity": r"defaults? to\b|has a (?:maximum|minimum|limit) of\b|(?:is|are) limited to\b",
        "requirement": r"(?:(?:do|does)(?: not|n't) )?(?:requires?|needs?|depends? on|relies on|rely on)\b|must (?:not )?(?=be|have|run|use|contain|match)",
        "capability": r"(?:(?:do|does)(?: not|n't) |can(?:not|'t| not)? |may (?:not )?|might (?:not )?|could )?(?:supports?|allows?|enables?|provides?|lets|offers?|manages?|ensures?|contains?|includes?|uses|stores?|creates?|implements?|defines?|represents?|describes?|specif(?:ies|y)|controls?(?! (?:for|and|that|are|is|will|to|in|of|on|can|must)\b)|protects?|handles?|exposes?)\b",
    },
    "pt": {
        "definition": r"(?:não )?(?:é|são|era|foi) (?:um|uma|uns|umas|o (?:nome|processo|conjunto|prazo|ato|documento)|a (?:parte|forma|unidade|área|cláusula))\b|(?:se refere|refere-se) (?:a|à|ao)\b|significa\b|denomina-se\b|consiste em\b|corresponde (?:a|à|ao)\b",
        "compatibility": r"(?:não )?(?:é|são) compatíve(?:l|is) com\b|(?:não )?funciona(?:m)? com\b|integra(?:m)?-se (?:com|a|ao|à)\b",
        "certification": r"(?:não )?(?:é|são|foi|foram) (?:certificad|homologad|credenciad)[oa]s?\b(?: (?:pel[oa]|por|segundo|conforme))?|(?:não )?cumprem? (?:a norma|as normas|os requisitos)\b",
        "price": r"custam?\b|tem preço de\b|sai por\b",
        "date": r"(?:não )?(?:foi|foram) (?:lançad|publicad|fundad|criad|introduzid|revogad|instituíd)[oa]s? em\b|nasceu em\b|entr(?:ou|a) em vigor em\b",
        "state": r"(?:não )?(?:é|está|estão|são) (?=obsolet|descontinuad|suspens|vigente|ativ|opciona|obrigatóri|revogad)",
        "quantity": r"(?:é|são) de (?=(?:até |no máximo )?\d)|limita(?:m)?-se a\b",
        "requirement": r"(?:não )?(?:exigem?|requerem?|dependem? d[aeo]s?|precisam? d[aeo]s?|precisam?)\b|(?:não )?deve(?:m)? (?=ser|ter|usar|conter|passar|estar)",
        "capability": r"(?:não )?(?:(?:pode|podem) )?(?:suporta|permite|oferece|fornece|garante|contém|inclui|usa|utiliza|define|registra|armazena|cria|executa|representa|descreve|controla|gerencia|protege|cobre|autoriza|gera|guarda)m?\b",
    },
    "es": {
        "definition": r"(?:no )?(?:es|son|era|fue) (?:un|una|unos|unas|el (?:nombre|proceso|conjunto)|la (?:parte|forma|unidad))\b|se refiere a\b|significa\b|consiste en\b",
        "compatibility": r"(?:no )?(?:es|son) compatibles? con\b|funcionan? con\b",
        "certification": r"(?:no )?(?:está|están|fue) (?:certificad|homologad)[oa]s?\b|cumplen? con\b",
        "price": r"cuestan?\b",
        "date": r"(?:fue|fueron) (?:lanzad|publicad|fundad|cread|introducid)[oa]s? en\b|nació en\b",
        "state": r"(?:no )?(?:es|está|están|son) (?=obsolet|suspendid|vigente|activ|opcional|obligatori)",
        "quantity": r"(?:es|son) de (?=\d)|se limitan? a\b",
        "requirement": r"(?:no )?(?:exigen?|requieren?|dependen? de|necesitan?)\b|deben? (?=ser|tener|usar)",
        "capability": r"(?:no )?(?:pueden? )?(?:soporta|permite|ofrece|proporciona|garantiza|contiene|incluye|usa|utiliza|define|registra|almacena|crea|ejecuta|representa|describe|controla|gestiona|protege)n?\b",
    },
    "ru": {
        "definition": r"[—–-] это(?: не)?\b|(?:не )?явля(?:ется|ются)\b|представля(?:ет|ют) собой\b|называ(?:ется|ются)\b|означает\b|[—–] (?!например|то есть|как правило)(?=[а-яё])",
        "compatibility": r"(?:не )?совместим[аоы]? с(?:о)?\b|(?:не )?работа(?:ет|ют) с(?:о)?\b",
        "certification": r"(?:не )?сертифицирован[аоы]?\b|соответству(?:ет|ют) (?:стандарту|требованиям)\b",
        "price": r"стоит\b|стоят\b",
        "date": r"(?:не )?(?:был[аои]? )?(?:выпущен|создан|основан|опубликован|удал[её]н|представлен)[аоы]? в\b",
        "state": r"(?:не )?(?:был[аои]? )?(?=устарел|стабил|отключ[её]н|включ[её]н по)",
        "quantity": r"по умолчанию рав(?:ен|на|но|ны)\b|ограничен[аоы]?\b",
        "requirement": r"(?:не )?(?:требу(?:ет|ют)|нужда(?:ется|ются) в|завис(?:ит|ят) от)\b|долж(?:ен|на|но|ны)\b",
        "capability": r"(?:не )?(?:мо(?:жет|гут) )?(?:поддержива(?:ет|ют)|позволя(?:ет|ют)|обеспечива(?:ет|ют)|предоставля(?:ет|ют)|содерж(?:ит|ат)|использу(?:ет|ют)|включа(?:ет|ют)(?: в себя)?|хран(?:ит|ят)|созда[её]т|создают|определя(?:ет|ют)|запуска(?:ет|ют)|управля(?:ет|ют))\b",
    },
}  # fmt: skip

_NEGATION = {
    "en": r"\b(?:not|never|cannot|no longer)\b|n't\b", "pt": r"\b(?:não|nunca|jamais)\b", "es": r"\b(?:no|nunca|jamás)\b",
    "ru": r"\b(?:не|никогда|нельзя)\b",
}  # fmt: skip
#: Verbs behind "é possível que", "es probable que": in the subjunctive.
_SUBJUNCTIVE = {
    "pt": {
        "definition": r"(?:não )?(?:seja|sejam|fosse|fossem) (?:um|uma|uns|umas|o|a)\b",
        "requirement": r"(?:não )?(?:exija|requeira|dependa d[aeo]s?|precise(?: d[aeo]s?)?)m?\b",
        "capability": r"(?:não )?(?:suporte|permita|ofereça|forneça|garanta|contenha|inclua|use|utilize|defina|armazene|crie|gere|proteja)m?\b",
    },
    "es": {
        "definition": r"(?:no )?(?:sea|sean|fuera|fueran) (?:un|una|unos|unas|el|la)\b",
        "requirement": r"(?:no )?(?:exija|requiera|dependa de|necesite)n?\b",
        "capability": r"(?:no )?(?:soporte|permita|ofrezca|proporcione|garantice|contenga|incluya|use|utilice|defina|almacene|cree|proteja)n?\b",
    },
}  # fmt: skip
#: "May contain" allows and "could include" lists: neither doubts. (Of 40 claims that were taken for suspected in a manual, 27 were such.)
_MODAL = re.compile(
    r"\b(?:may|might|could)\b(?! (?:not )?(?:contain|include|specif|define|describe|represent|store|create|use|expose)s?)",
    re.IGNORECASE,
)
_MIGHT = re.compile(r"\bmight\b", re.IGNORECASE)
_LATER = re.compile(
    r"\b(?:soon|later|eventually|some ?day|future|next (?:year|month|week|release|version)|by 20\d\d)\b"
)
_DO = re.compile(r"^(?:does|do) ")  # of English; "lançado em" ends with it, too
#: "A plugin may offer": what things of a kind may do is no doubt about one of them.
_ANY = re.compile(r"(?:an?|some|any|each|every|other|such|most|many|all)\b|\w+(?: \w+)*(?<![su])s\b", re.IGNORECASE)
#: No subject begins with these, or has them inside.
_NO_SUBJECT = word_set(
    """i you we they he she it this that these those there here who which what when where why how if while although because
    since after before once to for in on at by with from as but and or so then also however instead note please let let's
    see both each add use run see set make check want suppose consider deploy define depending given using create
    following example for just only first second third next finally similarly otherwise currently additionally thus hence
    you'll you're you've you'd we'll we're we've they'll they're they've i'll i'm i've it's it'll that's there's here's let's whether therefore not until unless return prefer enables public private
    thereby meanwhile não leia veja no не то затем потом поэтому однако например иначе тогда
    yes no would will should many most some all any such another other others none nothing everything something anyone
    someone everyone one eu tu você vocês nós eles elas ele ela isto isso aquilo este esta esse essa estes estas quem qual
    quais quando onde como se que porque pois embora enquanto após antes para por com em de mas e ou assim então também
    aqui ali há isso tudo nada algo alguém yo usted ustedes nosotros ellos ellas él ella esto eso quien cuando donde si
    porque aunque mientras después pero y o aquí hay я ты вы мы они он она оно это этот эта эти что кто который которая
    которые когда где как если хотя после перед для при в на с по из но и или так также здесь там все всё каждый"""
)
_INSIDE = word_set(
    """not never não nunca that which who whom whose what how why whether i you we they it if when where que quem qual cujo который которая которое которые что если"""
)
_ADVERBS = word_set(
    """also now automatically still only currently already simply typically usually often always generally then even just
    também agora ainda só apenas sempre geralmente já también ahora todavía siempre также теперь ещё уже всегда обычно"""
)
#: A noun phrase does not end with these: what stands before the verb is more than its subject.
_OPEN = word_set(
    """these those this some more to will would should can cannot can't could may might must not of and or the a an for with by at is are was were be been has have
    had do does did who that in on as se si de da do e ou que para com por не и или в на с"""
)
_ABBREVIATION = re.compile(r"\s*\(([^()\s]{2,12}|[^()]{2,40})\)$")
_CLAUSE_END = re.compile(
    r"[;\n]|, (?:which|who|but|so|and then|while|whereas|que|mas|o que|porém|который|которая|которые|но|а|pero)\b|(?: — | – )"
)
_FIGURE = re.compile(r"\d|[$€£₽]|R\$|\bfree\b|\bgrátis\b")
#: A subject that points elsewhere: what it stands for is not in the sentence.
_POINTS = word_set(
    """this these that those our your my his her their its such este esta estes estas esse essa esses essas aquele aquela seu
    sua seus suas meu minha nosso nossa ese esos esas aquel aquella su sus nuestro nuestra этот эта это эти тот та те его
    её их наш наша"""
)
_STRIP = re.compile(r"^[\s\"'“”«»*_`•>#|\-–—]+|[\s\"'“”«»*_`,:|\-–—]+$")
_NUMBERED = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?|[a-z]\)) +(?=\w)")
_TARGET = re.compile(r"\]\([^)]*\)|https?://\S+")  # where a link leads says nothing of what the sentence states


@cache
def _verbs(language: str, *, subjunctive: bool = False) -> re.Pattern[str]:
    kinds = _VERBS[language]
    if subjunctive:
        more = _SUBJUNCTIVE.get(language, {})
        kinds = {kind: f"{pattern}|{more[kind]}" if kind in more else pattern for kind, pattern in kinds.items()}
    return re.compile("|".join(rf"(?P<{kind}>(?<![\w-])(?:{pattern}))" for kind, pattern in kinds.items()))


@cache
def _negation(language: str) -> re.Pattern[str]:
    return re.compile(_NEGATION[language], re.IGNORECASE)


def sentences(text: str, language: str | None) -> Iterator[tuple[int, int]]:
    """Sentences of running text, in order; lines of lists and tables count for themselves."""
    for start, end in paragraph_spans(text, 0, len(text)):
        for one, other in line_spans(text, start, end):
            yield from sentence_spans(text, one, other, language or "en")


def statements(text: str, language: str | None) -> Iterator[Statement]:
    """What the sentences of a text state, in order."""
    code = language if language in _VERBS else "en"
    signs = signs_in(text, code)
    for start, end in sentences(text, language):
        if 16 <= end - start <= LONGEST_SENTENCE and text[end - 1] != "?":
            found = statement(text, start, end, code, signs)
            if found is not None:
                yield found


def statement(text: str, start: int, end: int, language: str, signs: tuple[str, ...]) -> Statement | None:
    """What one sentence states; None where no pattern fits. `signs`: of doubt, in the text around it."""
    sentence = text[start:end]
    clause = clause_of(sentence, language, _verbs(language), signs)
    said = clause.text
    verb = _verbs(language, subjunctive=clause.led).search(said, 2, REACH)
    if verb is None or verb.lastgroup is None:
        return None
    lead = said[: verb.start()]
    subject, abbreviation, offset = _subject(lead, language)
    if subject is None:
        return None
    if said is not sentence:  # a cue was taken out of it
        offset = sentence.find(subject)
        if offset < 0:
            return None
    rest = said[verb.end() :]
    cut = _CLAUSE_END.search(rest)
    goal = _STRIP.sub("", (rest[: cut.start()] if cut else rest).rstrip(".!… "))
    if (len(goal) < 2 and verb.lastgroup != "state") or goal.endswith(("{", "(", "=")):
        return None  # the latter: code
    if goal.rpartition(" ")[2].lower() in _OPEN:
        return None  # cut off at the end of a line
    if verb.lastgroup in ("price", "date", "quantity") and not _FIGURE.search(_TARGET.sub("", goal)):
        return None
    negation = _negation(language)
    predicate = " ".join(_DO.sub("", negation.sub(" ", verb.group())).split())
    if verb.lastgroup == "capability" and language == "en" and not clause.bare and not _agrees(subject, verb.group()):
        return None
    status = clause.status
    if status == "confirmed" and _MODAL.search(verb.group()) and _doubted(said, lead, verb.group()):
        status = "suspected"
    negated = negation.search(verb.group()) is not None or negation.match(rest.lstrip()) is not None
    return Statement(
        start=start, end=end, subject=subject, subject_start=start + offset, abbreviation=abbreviation,
        predicate=predicate.lower() or verb.group().strip(), object=goal[:160].rstrip(), kind=verb.lastgroup, status=status,
        negated=negated,
    )  # fmt: skip


def _doubted(clause: str, lead: str, verb: str) -> bool:
    """Whether "may" doubts: "might" does, "may" of something with a name or of what is to come; else it is leave to do it."""
    if _ANY.match(_STRIP.sub("", lead)):
        return False
    return (_MIGHT.search(verb) or NAMED.search(lead) or _LATER.search(clause)) is not None


def _agrees(subject: str, verb: str) -> bool:
    """Whether an English verb fits its subject: "access control" is no statement that access controls something."""
    words = verb.split()
    if verb == "control":  # "Kubernetes control plane"
        return False
    return len(words) > 1 or verb.endswith("s") or subject.endswith("s") or " and " in subject


def _subject(lead: str, language: str) -> tuple[str | None, str | None, int]:
    """(subject, what stands in brackets behind it, where it begins) of what stands before a verb."""
    if lead.rstrip().endswith(":"):
        return None, None, 0
    stripped = _NUMBERED.sub("", _STRIP.sub("", lead))
    bracket = _ABBREVIATION.search(stripped)
    short = bracket.group(1).strip() if bracket else None
    if bracket:
        stripped = stripped[: bracket.start()]
    words = stripped.replace("’", "'").split()
    if words and words[0].lower() in _POINTS:
        return None, None, 0
    articles = lexicon(language).articles
    while len(words) > 1 and words[0].lower() in articles:
        words = words[1:]
    while len(words) > 1 and words[-1].lower() in _ADVERBS:
        words = words[:-1]
    if not words or len(words) > LONGEST_SUBJECT or words[0].lower() in _NO_SUBJECT or words[-1].lower() in _OPEN:
        return None, None, 0
    if language == "en" and len(words) == 1 and words[0] in lexicon(language).common:
        return None, None, 0  # "the approach": of which, another sentence tells
    if any(word.lower().strip(",") in _INSIDE or word.endswith("n't") for word in words) or any(
        mark in stripped for mark in (*",;:!?()[]{}=<>|\n→", "**", " - ", "—", '"', "“")
    ):
        return None, None, 0
    begin = stripped.find(words[0])
    subject = _STRIP.sub("", stripped[begin : stripped.rfind(words[-1]) + len(words[-1])])
    if (
        subject[:1] in "$/\\+=~&%@"
        or "$ " in lead
        or (len(words) == 1 and subject.islower() and language == "en" and len(subject) < 4)
    ):
        return None, None, 0
    if not any(character.isalpha() for character in subject) or len(subject) < 2:
        return None, None, 0
    return subject, short, max(0, lead.find(subject))
