"""How sure a text is of what its sentence states: cues of doubt, each with the clause that it governs.

A cue stands in one of four places, and only there it speaks of the statement: before it ("It is rumoured that", "O fabricante nega que"),
between subject and verb ("reportedly", "is believed to", ", по-видимому,"), behind it and pointing back at it (", but this has not
been verified", "(не подтверждено)"), or as the adjective of what something is said to be ("is an alleged copy"). What stands elsewhere
is about something else: "handles disputed charges" disputes nothing. Cues are taken out of the sentence, so the plain
patterns read what is left: "The gate is probably a door" as "The gate is a door".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

SUSPECTED, UNVERIFIED, DISPUTED = "suspected", "unverified", "disputed"
#: Of several cues in one sentence the gravest stands.
_GRAVITY = (DISPUTED, UNVERIFIED, SUSPECTED)

Patterns = Mapping[str, Mapping[str, str]]  # language → status → pattern

#: Who denies or claims something: up to six words without marks.
_WHO = r"(?:[^\s,.;:()]+ ){1,6}?"

_LEAD: Patterns = {
    "en": {
        DISPUTED: r"it (?:is|has been|remains) (?:hotly |widely |still )?(?:disputed|contested|controversial|debated|denied|contradicted) (?:that|whether|if) "
        rf"|{_WHO}(?:den(?:y|ies|ied)|disput(?:e|es|ed)|contest(?:s|ed)?|contradict(?:s|ed)?|refut(?:e|es|ed)|reject(?:s|ed)?) (?:the (?:claim|idea|report|statement|view|suggestion)s? )?that "
        r"|(?:some |the )?critics (?:say|argue|claim|object)(?: that)? ",
        UNVERIFIED: r"(?:reportedly|allegedly|supposedly|purportedly),? "
        r"|according to (?:unconfirmed|unverified|anonymous) (?:reports?|sources?|rumou?rs?|data|information),? "
        r"|according to rumou?rs?,? |(?:unconfirmed|unverified) (?:reports?|sources?|rumou?rs?) (?:say|claim|suggest|state|indicate)s? (?:that )?|rumou?r has it that "
        r"|it (?:is|was|has been) (?:rumou?red|alleged|claimed|said|reported) that "
        r"|it has (?:not|not yet|never|yet to) (?:yet )?(?:been|be) (?:verified|confirmed|proven|proved|established) (?:that|whether|if) "
        r"|it is (?:not|not yet|still not) (?:yet )?(?:verified|confirmed|clear|known|certain|established|proven) (?:that|whether|if) "
        r"|it (?:is|remains) (?:still )?(?:unconfirmed|unverified|unclear|unknown|uncertain) (?:that|whether|if) "
        r"|(?:we|i) (?:could not|have not|cannot|were unable to) (?:yet )?(?:verif(?:y|ied)|confirm(?:ed)?) (?:that|whether|if) "
        rf"|{_WHO}(?<!volume )(?<!token )(?<!the )(?<!custom )(?:claims|claimed|alleges?|alleged) that ",
        SUSPECTED: r"(?:probably|possibly|perhaps|maybe|presumably|apparently|seemingly|most likely|very likely),? "
        r"|it (?:seems|appears)(?: likely)? that |it is (?:quite |very |widely |generally )?(?:likely|probable|possible|believed|suspected|thought) that "
        r"|(?:we|i) (?:believe|suspect|guess|presume)(?: that)? |there is (?:some )?(?:reason|evidence) to (?:believe|suspect) that ",
    },
    "pt": {
        DISPUTED: r"(?:é|foi|está sendo) (?:contestado|discutido|controverso|discutível|disputado|negado) (?:que|se) |há controvérsia sobre se |discute-se se |contesta-se que "
        rf"|{_WHO}(?:nega|negam|negou|negaram|contesta|contestam|contestou|refuta|refutam|refutou|desmente|desmentem|desmentiu) que |(?:os )?críticos (?:dizem|afirmam|argumentam) que ",
        UNVERIFIED: r"(?:supostamente|alegadamente|pretensamente),? |(?:segundo|conforme|de acordo com) (?:rumores|boatos|(?:relatos|informações|fontes|dados|notícias) não (?:confirmad|verificad)[oa]s),? "
        r"|(?:diz-se|dizem|consta|especula-se|comenta-se|alega-se) que |há (?:rumores|boatos|relatos) de que "
        r"|(?:ainda )?não (?:foi|está|se) (?:ainda )?(?:confirmad[oa]|verificad[oa]|comprovad[oa]|confirmou|verificou|sabe) (?:que|se) |não (?:é|está) (?:claro|certo|confirmado) (?:que|se) "
        rf"|{_WHO}(?:alega|alegam|alegou) que ",
        SUSPECTED: r"(?:provavelmente|possivelmente|talvez|aparentemente|presumivelmente|ao que parece|pelo visto|ao que tudo indica),? "
        r"|(?:tudo indica|acredita-se|suspeita-se|supõe-se|presume-se|parece|é provável|é possível|acreditamos|suspeitamos) que ",
    },
    "es": {
        DISPUTED: r"(?:es|fue) (?:discutido|controvertido|polémico|disputado|cuestionado) (?:que|si) |se (?:discute|cuestiona|niega) (?:que|si) "
        rf"|{_WHO}(?:niega|niegan|negó|negaron|desmiente|desmienten|desmintió|refuta|refutan|refutó|rechaza) que |(?:los )?críticos (?:dicen|afirman|sostienen) que ",
        UNVERIFIED: r"(?:supuestamente|presuntamente),? |según (?:rumores|(?:informes|fuentes|datos|informaciones|noticias) (?:no|sin) (?:confirmad[oa]s|verificad[oa]s|confirmar|verificar)),? "
        r"|(?:se dice|dicen|se rumorea|se alega|se especula) que |hay (?:rumores|informes) de que "
        r"|(?:aún |todavía )?no (?:se ha|ha sido|está) (?:aún |todavía )?(?:confirmado|verificado|comprobado) (?:que|si) |no (?:es|está) (?:claro|seguro|confirmado) (?:que|si) "
        rf"|{_WHO}(?:alega|alegan|alegó) que ",
        SUSPECTED: r"(?:probablemente|posiblemente|quizás?|tal vez|aparentemente|presumiblemente|al parecer|por lo visto|seguramente),? "
        r"|(?:se cree|se sospecha|se supone|se presume|parece|es probable|es posible|todo indica|creemos|sospechamos) que ",
    },
    "ru": {
        DISPUTED: r"(?:оспаривается|спорно|отрицается)(?: то)?, что "
        rf"|{_WHO}(?:отрица(?:ет|ют|ла?|ли)|оспарива(?:ет|ют|ла?|ли)|опроверга(?:ет|ют)|опроверг(?:ла|ли)?)(?: (?:утверждение|то|тот факт))?, что |критики (?:утверждают|говорят|считают), что ",
        UNVERIFIED: r"по (?:неподтвержд[её]нным|непроверенным) (?:данным|сведениям|сообщениям|слухам),? |(?:по слухам|якобы|как (?:утверждается|сообщается|говорят)),? "
        r"|(?:говорят|утверждается|сообщается|ходят слухи), что |(?:пока |ещё |еще )?не (?:подтвержд[её]но|проверено|доказано|установлено|ясно|известно), что "
        rf"|{_WHO}утвержда(?:ет|ют), что ",
        SUSPECTED: r"(?:предположительно|вероятно|вероятнее всего|возможно|по-видимому|по всей видимости|видимо|похоже|кажется|наверное|скорее всего|может быть|судя по всему),? (?:что )?"
        r"|(?:считается|предполагается|полагают|есть предположение|мы полагаем|мы считаем), что ",
    },
}  # fmt: skip

_ADVERBS: Patterns = {
    "en": {
        UNVERIFIED: r"reportedly|allegedly|supposedly|purportedly|by all accounts",
        SUSPECTED: r"probably|possibly|perhaps|maybe|presumably|apparently|seemingly|most likely|very likely|it seems|it appears|we believe|we suspect",
    },
    "pt": {
        UNVERIFIED: r"supostamente|alegadamente|pretensamente|segundo rumores|segundo boatos|diz-se",
        SUSPECTED: r"provavelmente|possivelmente|talvez|aparentemente|presumivelmente|ao que parece|pelo visto|ao que tudo indica|acredita-se",
    },
    "es": {
        UNVERIFIED: r"supuestamente|presuntamente|según rumores|según se dice",
        SUSPECTED: r"probablemente|posiblemente|quizás?|tal vez|aparentemente|presumiblemente|al parecer|por lo visto|según parece",
    },
    "ru": {
        UNVERIFIED: r"якобы|по слухам|как утверждается|как сообщается|как говорят|по (?:неподтвержд[её]нным|непроверенным) (?:данным|сведениям|сообщениям)",
        SUSPECTED: r"предположительно|вероятно|вероятнее всего|возможно|по-видимому|по всей видимости|видимо|похоже|кажется|наверное|скорее всего|судя по всему",
    },
}  # fmt: skip

#: Doubt in the verb itself: (status, pattern, what it leaves). An empty rest is followed by a bare verb.
_TO = ((r"have been ", "was "), (r"be ", "is "), (r"(?=[a-z]{3})", ""))
_TO_VERBS = (
    (UNVERIFIED, r"(?:is|are|was|were) (?:also |widely |commonly )?(?:said|rumou?red|alleged|reported|claimed|purported)"),
    (UNVERIFIED, r"(?:claims?|purports?)"),
    (SUSPECTED, r"(?:is|are|was|were) (?:also |widely |generally |commonly )?(?:believed|thought|suspected|likely|presumed)"),
    (SUSPECTED, r"(?:seems?|appears?|is expected(?= to be (?:released|published|launched|removed|deprecated|added)))"),
)  # fmt: skip
_AUXILIARIES: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "en": (
        *((status, rf"{verb} to {form}", left) for status, verb in _TO_VERBS for form, left in _TO),
        (SUSPECTED, r"(?:may|might) have been ", "was "),
    ),
    "pt": (
        (SUSPECTED, r"parecem? ser ", "é "), (UNVERIFIED, r"teriam? sido ", "foi "),
        (SUSPECTED, r"parecem? (?=\w+r\b)", ""), (UNVERIFIED, r"alegam? (?=\w+r\b)", ""),
    ),
    "es": (
        (SUSPECTED, r"parecen? ser ", "es "), (UNVERIFIED, r"habrían? sido ", "fue "),
        (SUSPECTED, r"parecen? (?=\w+r\b)", ""), (UNVERIFIED, r"(?:alegan?|dicen?) (?=\w+r\b)", ""),
    ),
    "ru": (),
}  # fmt: skip

#: What something may be: doubt where it is of one thing with a name; "the item may be a file or a string" allows both.
_MODALS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "en": ((r"(?:may|might|could) (?:also |well )?be (?=an? |the )", "is "),),
    "pt": ((r"(?:poderia|pode) ser (?=uma? |[oa] )", "é "), (r"poderiam? (?=\w+r\b)", "")),
    "es": ((r"(?:podría|puede) ser (?=una? |el |la )", "es "), (r"podrían? (?=\w+r\b)", "")),
    "ru": (),
}  # fmt: skip
_ALTERNATIVES = re.compile(
    r"\b(?:or|ou|o|following|seguintes?|siguientes?|e\.g\.|etc|such as|for example|bit)\b", re.IGNORECASE
)
NAMED = re.compile(r"(?<=.)(?<!\w)[^\W\d_a-zа-яё]")  # a capital that no sentence begins with

#: What parts a remark from the clause that it points back to.
_THEN = {
    "en": r"(?:\b(?:but|though|although|and|however),? |[;(—–-] ?)(?:this|that|it|the claim) |, (?:which|a claim that) ",
    "pt": r"(?:\b(?:mas|embora|porém|e) |[;(—–-] ?)(?:isso|isto|tal|a informação) |, o que ",
    "es": r"(?:\b(?:pero|aunque|y) |[;(—–-] ?)(?:esto|eso|tal|la información) |, (?:lo que|lo cual) ",
    "ru": r"(?:\b(?:но|хотя|однако|и) |[;(—–-] ?)(?:это|эти данные) |, что ",
}  # fmt: skip
_BACK: Patterns = {
    "en": {
        DISPUTED: rf"(?:{_THEN['en']})(?:is|has been|was|remains) (?:hotly |widely |still |also )?(?:disputed|contested|controversial)\b"
        r"|(?:, which|\bbut|\bthough|\balthough) (?:[^\s,.;:]+ ){1,4}?(?:den(?:y|ies|ied)|disputes?d?|contests?|contested|contradicts?|contradicted)(?: (?:this|it|that))?(?=[\s.!]*$)",
        UNVERIFIED: rf"(?:{_THEN['en']})(?:ha(?:s|d) (?:not|never)(?: yet)? been (?:independently )?(?:verified|confirmed|proven|proved|established|tested)"
        r"|(?:is|was|remains) (?:still |yet |as yet )?(?:to be (?:verified|confirmed)|un(?:confirmed|verified|proven)|not (?:yet )?(?:verified|confirmed|certain|proven)))\b"
        r"|(?:\bbut |, )(?:not yet|yet to be|still to be) (?:verified|confirmed)(?=[\s.!)]*$)|\((?:unconfirmed|unverified|not verified|not confirmed|not yet (?:verified|confirmed)|to be confirmed|TBC)\)|, (?:reportedly|allegedly|supposedly)(?=[\s.!]*$)",
        SUSPECTED: r", (?:probably|presumably|apparently|we (?:believe|think|suspect)|it (?:seems|appears))(?=[\s.!]*$)",
    },
    "pt": {
        DISPUTED: rf"(?:{_THEN['pt']})(?:é|foi|está sendo|tem sido) (?:contestad|disputad|discutid|controvers|desmentid)[oa]\b"
        r"|(?:, o que|\bmas|\bembora) (?:[^\s,.;:]+ ){1,4}?(?:o )?(?:nega|negam|negue|conteste|contesta|contestam|desmente|desmentem)(?: isso)?(?=[\s.!]*$)",
        UNVERIFIED: rf"(?:{_THEN['pt']})(?:ainda )?não (?:foi|está|é) (?:ainda )?(?:confirmad|verificad|comprovad|testad)[oa]\b"
        r"|(?:\bmas |, )ainda (?:não|sem) (?:foi )?(?:confirmad[oa]s?|verificad[oa]s?|comprovad[oa]s?|confirmação|verificação)\b|\((?:(?:ainda )?não (?:confirmad|verificad)[oa]s?|a confirmar)\)|, (?:por|a) (?:confirmar|verificar)(?=[\s.!]*$)",
        SUSPECTED: r", (?:provavelmente|ao que parece|pelo visto|aparentemente|acredita-se)(?=[\s.!]*$)",
    },
    "es": {
        DISPUTED: rf"(?:{_THEN['es']})(?:es|fue|está|ha sido) (?:discutid|disputad|cuestionad|desmentid|controvertid)[oa]\b"
        r"|(?:, lo que|, lo cual|\bpero|\baunque) (?:[^\s,.;:]+ ){1,4}?(?:lo )?(?:niega|niegan|desmiente|desmienten|disputa|cuestiona|cuestionan)(?=[\s.!]*$)",
        UNVERIFIED: rf"(?:{_THEN['es']})(?:aún |todavía )?no (?:ha sido|se ha|está|fue) (?:confirmad|verificad|comprobad|probad)[oa]\b"
        r"|(?:\bpero |, )(?:aún|todavía) (?:no|sin) (?:confirmad[oa]s?|verificad[oa]s?|confirmar|verificar|comprobar)\b|\((?:(?:aún )?no (?:confirmad|verificad)[oa]s?|sin confirmar|sin verificar)\)|, (?:aún |todavía )?sin (?:confirmar|verificar)(?=[\s.!]*$)",
        SUSPECTED: r", (?:probablemente|al parecer|por lo visto|según parece|aparentemente)(?=[\s.!]*$)",
    },
    "ru": {
        DISPUTED: rf"(?:{_THEN['ru']})(?:\w+ )?(?:оспаривается|спорно|опровергается)\b"
        r"|(?:\bно|\bхотя|\bоднако|, что) (?:[^\s,.;:]+ ){1,4}?(?:отрица(?:ет|ют)|оспарива(?:ет|ют)|опроверга(?:ет|ют))(?: это)?(?=[\s.!]*$)",
        UNVERIFIED: rf"(?:{_THEN['ru']})(?:пока |ещё |еще |так и )?не (?:было )?(?:подтвержд[её]но|подтверждается|проверено|проверялось|доказано)\b"
        r"|(?:\bно |, )(?:пока|ещё|еще) не (?:подтвержд[её]н[оаы]?|проверен[оаы]?)\b|\((?:(?:пока |ещё |еще )?не (?:подтвержд[её]но|проверено)|неподтвержд[её]нн\w+ данн\w+)\)",
        SUSPECTED: r", (?:вероятно|видимо|по-видимому|похоже|кажется|предположительно)(?=[\s.!]*$)",
    },
}  # fmt: skip

#: Adjectives of what something is said to be; they stay where they are.
_ADJECTIVES: Patterns = {
    "en": {
        DISPUTED: r"\b(?:is|are|was|were) (?:an?|the|one of the) (?:disputed|contested|controversial)\b",
        UNVERIFIED: r"\b(?:is|are|was|were) (?:an?|the|one of the) (?:alleged|purported|supposed|unconfirmed|unverified|rumou?red)\b",
        SUSPECTED: r"\b(?:is|are|was|were) (?:an?|the|one of the) (?:suspected|presumed|probable|likely)\b",
    },
    "pt": {
        DISPUTED: r"\b(?:é|são|era|foi) (?:um|uma|o|a) \w+ (?:contestad|disputad|controvers|polêmic)[oa]\b",
        UNVERIFIED: r"\b(?:é|são|era|foi) (?:um|uma|o|a) (?:(?:supost|alegad)[oa]|\w+ não (?:confirmad|verificad)[oa])\b",
        SUSPECTED: r"\b(?:é|são|era|foi) (?:um|uma|o|a) (?:provável|presumível)\b",
    },
    "es": {
        DISPUTED: r"\b(?:es|son|era|fue) (?:un|una|el|la) \w+ (?:disputad|controvertid|polémic|discutid)[oa]\b",
        UNVERIFIED: r"\b(?:es|son|era|fue) (?:un|una|el|la) (?:(?:supuest|presunt)[oa]|\w+ sin (?:confirmar|verificar))\b",
        SUSPECTED: r"\b(?:es|son|era|fue) (?:un|una|el|la) (?:probable|posible)\b",
    },
    "ru": {
        DISPUTED: r"[—–] (?:это )?(?:спорн|оспариваем)\w+ ", UNVERIFIED: r"[—–] (?:это )?(?:неподтвержд[её]нн|непроверенн)\w+ ",
        SUSPECTED: r"[—–] (?:это )?(?:предполагаем|вероятн)\w+ ",
    },
}  # fmt: skip

#: "The claim that the gate is a door is disputed": whose doubt follows.
_CLAIM: Mapping[str, tuple[str, str]] = {
    "en": (r"(?:the |a )?(?:claim|assertion|report|allegation|rumou?r|idea)s? that ", r" (?:is|was|are|were|has been|have been|remains?) (?:still |widely |hotly )?(?=(?:not|un|dis|con|den|yet))"),
    "pt": (r"(?:a |o )?(?:alegação|afirmação|notícia|boato|rumor|ideia) de que ", r" (?:é|foi|está|continua) (?:ainda )?(?=(?:não|cont|disp|neg|desm|por))"),
    "es": (r"(?:la |el )?(?:afirmación|noticia|rumor|idea|acusación) de que ", r" (?:es|fue|está|sigue|ha sido) (?:aún |todavía )?(?=(?:no|sin|disc|disp|neg|desm|cuest))"),
    "ru": (r"(?:утверждение|слух|сообщение|мнение)(?: о том)?, что ", r",? (?:пока |ещё |еще )?(?=(?:не |оспар|опров|отриц|спорн))"),
}  # fmt: skip
_VERDICT: Mapping[str, tuple[tuple[str, str], ...]] = {
    "en": ((DISPUTED, r"(?:disputed|contested|denied|contradicted|controversial)"), (UNVERIFIED, r"(?:not (?:yet )?(?:been )?(?:verified|confirmed|proven)|un(?:verified|confirmed|proven)|yet to be (?:verified|confirmed))")),
    "pt": ((DISPUTED, r"(?:contestad|disputad|negad|desmentid)[oa]"), (UNVERIFIED, r"(?:não (?:foi )?(?:confirmad|verificad|comprovad)[oa]|por (?:confirmar|verificar))")),
    "es": ((DISPUTED, r"(?:discutid|disputad|negad|desmentid|cuestionad)[oa]"), (UNVERIFIED, r"(?:no (?:ha sido )?(?:confirmad|verificad|comprobad)[oa]|sin (?:confirmar|verificar))")),
    "ru": ((DISPUTED, r"(?:оспаривается|опроверга\w+|отрицается|спорно)"), (UNVERIFIED, r"не (?:подтвержд\w+|проверен\w*|доказан\w*)")),
}  # fmt: skip

#: One of these stands in every cue: a sentence without them is read as it is, at the price of a few substring searches.
_SIGNS: Mapping[str, tuple[str, ...]] = {
    "en": (
        "reported", "alleg", "suppos", "purport", "rumo", "confirm", "verif", "claim", "probabl", "possib", "perhaps", "maybe", "presum",
        "apparent", "seem", "likely", "believe", "suspect", "thought", "assume", "may ", "might ", "could ", "appear", "disput", "contest",
        "controver", "debated", "denie", "deny", "contradict", "refut", "reject", "critics", "said ", "unclear", "unknown", "uncertain", "proven",
        "by all accounts", "guess", "expected", "not clear", "not known", "we think", "tested",
    ),
    "pt": (
        "suposta", "suposto", "alega", "pretens", "rumor", "boato", "confirm", "verific", "comprov", "provavel", "provável", "possivel",
        "possível", "talvez", "aparente", "presum", "parece", "visto", "indica", "acredit", "suspeit", "supõe", "poderia", "pode ser", "teria", "contest",
        "discut", "controv", "disput", "neg", "refut", "desment", "críticos", "diz-se", "dizem", "consta", "especula", "comenta", "claro",
        "sabe", "polêmic", "relatos",
    ),
    "es": (
        "supuest", "presunt", "rumor", "confirm", "verific", "comprob", "probable", "posibl", "quiz", "tal vez", "aparente", "presum",
        "parec", "visto", "cree", "sospech", "supone", "podría", "puede ser", "habría", "discut", "controv", "disput", "cuestion", "nieg", "neg", "desmient",
        "desmint", "refut", "rechaza", "críticos", "se dice", "dicen", "dice ", "alega", "especula", "claro", "seguro", "indica", "polémic",
    ),
    "ru": (
        "подтвержд", "провер", "слух", "якобы", "утвержда", "сообща", "говорят", "предпол", "вероятн", "возможно", "видим", "похоже",
        "кажется", "наверн", "скорее", "судя", "может быть", "считает", "считаем", "полага", "оспар", "спорн", "отриц", "опровер", "критики",
        "доказан", "установлено", "ясно", "известно",
    ),
}  # fmt: skip
REACH = 110  # characters of a sentence in which subject and verb stand
SHORTEST = 12  # characters of a clause that something may point back to


@dataclass(frozen=True, kw_only=True, slots=True)
class Clause:
    """A sentence without its cues, and what they say."""

    text: str  # empty where the sentence states nothing by itself
    status: str = "confirmed"
    bare: bool = False  # whether an auxiliary went that leaves its verb without an ending
    led: bool = (
        False  # whether the clause depends on what led it in: in Portuguese and Spanish often in the subjunctive
    )


def signs_in(text: str, language: str) -> tuple[str, ...]:
    """What stands in a text, in small letters, of the signs of which every cue holds one."""
    lowered = text.lower()
    return tuple(sign for sign in _SIGNS[language] if sign in lowered)


def clause_of(sentence: str, language: str, verbs: re.Pattern[str], signs: tuple[str, ...]) -> Clause:
    """A sentence read for its cues.

    Args:
        sentence: the sentence.
        language: one that has cues.
        verbs: finds the verb that a statement hangs on; a cue behind it is the object's own.
        signs: of the text around it (`signs_in`), so that a sentence is searched for the few that are there alone.
    """
    lowered = sentence.lower() if signs else ""
    if not any(sign in lowered for sign in signs):
        return Clause(text=sentence)
    found: list[str] = []
    text = sentence
    about = _claim(language)[0].match(text)
    if about is not None:
        cut = _claim(language)[1].search(text, about.end())
        verdict = _verdict(text[cut.end() :], language) if cut else None
        if cut is None or verdict is None:
            return Clause(text="")  # something is told of a claim: whether it holds is not
        found.append(verdict)
        text = text[about.end() : cut.start()] + "."
    lead = _compiled(language, "lead").match(text)
    if lead is not None:
        found.append(_status(lead))
        text = text[lead.end() :]
    back = _compiled(language, "back").search(text)
    if back is not None and back.start() > SHORTEST:
        found.append(_status(back))
        text = _TAIL.sub("", text[: back.start()]) + "."
    text, bare = _without_auxiliary(text, language, verbs, found)
    cue = _compiled(language, "adverb").search(text, 0, REACH)
    if cue is not None:
        told = text[: cue.start()] + " " + text[cue.end() :]
        verb = verbs.search(told, 2, REACH)
        # Behind the verb only between commas ("requires, apparently, two"): else the cue is of what the object holds.
        between = text[cue.start()] == "," == cue.group().rstrip()[-1]
        if verb is not None and cue.start() < verb.end() + between:
            text = told
            found.append(_status(cue))
    told_of = _compiled(language, "adjective").search(text, 0, REACH)
    if told_of is not None:
        found.append(_status(told_of))
    status = next((one for one in _GRAVITY if one in found), "confirmed")
    return Clause(text=text, status=status, bare=bare, led=lead is not None or about is not None)


def _without_auxiliary(text: str, language: str, verbs: re.Pattern[str], found: list[str]) -> tuple[str, bool]:
    """(the clause without a verb of doubt, whether that left a bare verb); what it says is added to `found`."""
    for status, pattern, left, modal in _auxiliaries(language):
        cue = pattern.search(text, 0, REACH)
        if cue is None or (modal and not _doubts(text, cue)):
            continue
        rest = text[cue.end() :]
        told = text[: cue.start()] + left + (_finite(rest, language) if not left else rest)
        verb = verbs.search(told, 2, REACH)
        if verb is not None and verb.start() == cue.start():
            found.append(status)
            return told, not left
        break
    return text, False


def _doubts(text: str, modal: re.Match[str]) -> bool:
    """Whether what something may be is in doubt, and not one of several things that it can be."""
    return NAMED.search(text, 0, modal.start()) is not None and _ALTERNATIVES.search(text, modal.end()) is None


_FINITE = {
    "pt": {"conter": "contém", "incluir": "inclui", "requerer": "requer"},
    "es": {"contener": "contiene", "incluir": "incluye", "requerir": "requiere"},
}  # fmt: skip


def _finite(text: str, language: str) -> str:
    """A clause that begins with an infinitive of Portuguese or Spanish, with the verb as "it" has it."""
    if language not in _FINITE:
        return text
    verb, space, rest = text.partition(" ")
    ending = {"ar": "a", "er": "e", "ir": "e"}.get(verb[-2:], verb[-2:])
    return _FINITE[language].get(verb, verb[:-2] + ending) + space + rest


_TAIL = re.compile(
    r"[\s,;(—–-]*(?:\b(?:but|though|although|however|and|mas|embora|porém|e|pero|aunque|y|но|хотя|однако|а|и)\b)?[\s,;(—–-]*$",
    re.IGNORECASE,
)


@cache
def _compiled(language: str, place: str) -> re.Pattern[str]:
    source = {"lead": _LEAD, "adverb": _ADVERBS, "back": _BACK, "adjective": _ADJECTIVES}[place][language]
    groups = "|".join(f"(?P<{status}>{pattern})" for status, pattern in source.items())
    if place == "adverb":
        # Behind the subject, before or behind the verb "to be": not within what follows it.
        return re.compile(rf"(?<=\w)(?:,\s*|\s+)(?:{groups})(?:,\s*|\s+)(?=\S)", re.IGNORECASE)
    return re.compile(groups, re.IGNORECASE)


def _status(match: re.Match[str]) -> str:
    return next(name for name in _GRAVITY if match.groupdict().get(name) is not None)


@cache
def _auxiliaries(language: str) -> tuple[tuple[str, re.Pattern[str], str, bool], ...]:
    """(status, pattern, what it leaves, whether it is a modal verb)."""
    told = [(*one, False) for one in _AUXILIARIES[language]]
    told += [(SUSPECTED, pattern, left, True) for pattern, left in _MODALS[language]]
    return tuple(
        (status, re.compile(rf"(?<=\w )(?:{pattern})", re.IGNORECASE), left, modal)
        for status, pattern, left, modal in told
    )


@cache
def _claim(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    one, two = _CLAIM[language]
    return re.compile(one, re.IGNORECASE), re.compile(two, re.IGNORECASE)


def _verdict(text: str, language: str) -> str | None:
    return next((name for name, told in _VERDICT[language] if re.match(told, text, re.IGNORECASE)), None)
