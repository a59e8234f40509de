"""What in a question asks for the whole collection, for a wide view, or for a choice: patterns that anybody can read and test.

Every marker has a kind, a group and a weight. A question has of a kind the sum of its groups, each counted once with its
heaviest marker, so "main" and "key" together say no more than one of them. From `AGGREGATED` on a question counts as one that no
single passage answers. Portuguese, English, Russian and Spanish are looked for in every question: telling the language of five
words is less sure than not mistaking one language's markers for another's.

Texts are folded before they are matched (lower case, no accents), and so are the patterns: what is typed without accents matches.
All patterns are linear: gaps are bounded, and nothing repeats within a repetition.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from clew.query.answers.moods import DELIBERATION

Kind = Literal["aggregation", "generalisation", "choice", "collection"]
KINDS: tuple[Kind, ...] = ("aggregation", "generalisation", "choice", "collection")
LANGUAGES = ("en", "pt", "ru", "es")
LOOKED_AT = 2_000  # characters of a question


@dataclass(frozen=True, kw_only=True, slots=True)
class Marker:
    """A pattern, and what it says of a question."""

    kind: Kind
    group: str  # markers of one group count once
    language: str  # ISO 639-1
    weight: float  # may be negative: what speaks against the kind
    pattern: re.Pattern[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Marked:
    """What was found in a question."""

    kind: Kind
    group: str
    language: str
    weight: float
    text: str

    def __str__(self) -> str:
        return f"{self.text!r} ({self.group}, {self.language})"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Words:
    """The words of one language that patterns are put together from, folded, as regular expressions without groups."""

    whole: str  # the collection as one thing
    units: str  # its parts, in the plural
    scope: str  # what stands before the collection where all of it is meant
    nouns: str  # what can only be said of many texts together, in the plural
    rank: str  # main, key, largest …
    quantity: str  # often, commonly, usually …
    voices: str  # those who speak in it, in the plural
    saying: str  # what they and its parts do, the beginnings of the verbs
    article: str  # may stand between words; ends in a space


def fold(text: str) -> str:
    """Lower case, without accents, white space folded; `ё` is `е`, `й` stays."""
    kept = text.lower().replace("й", "\0")
    plain = "".join(c for c in unicodedata.normalize("NFKD", kept) if not unicodedata.combining(c))
    return " ".join(plain.replace("\0", "й").replace("’", "'").split())


_EN = _Words(
    whole=r"(?:collection|corpus|archive|library|data ?set|data|knowledge base|repository|material|index|record|series|documentation|docs|handbook|manual|wiki|site|folder|guide|company|organi[sz]ation)",
    units=r"(?:documents|files|articles|pages|texts|reports|transcripts|episodes|interviews|papers|records|notes|stories|posts|"
    r"chapters|books|podcasts|contracts|e-?mails|meetings|sources|materials|discussions|conversations|presentations|talks|"
    r"speeches|calls|guides|manuals|policies|teams|departments|sections|essays|messages|tickets|minutes|volumes|studies|abstracts)",
    scope=r"(?:across|throughout|all over|over all|among all|within all|spanning)",
    nouns=r"(?:themes|topics|subjects|trends|patterns|categories|takeaways|motifs|threads|clusters|narratives|worries|failures|mistakes|errors|habits|questions|insights|perspectives|"
    r"viewpoints|points of view|opinions|attitudes|sentiments|challenges|concerns|priorities|commonalities|similarities|differences|"
    r"lessons|strategies|initiatives|approaches|areas|aspects|kinds|types|sorts|issues|factors|risks|opportunities|goals|principles|"
    r"values|methods|practices|problems|findings|conclusions|arguments|debates|recommendations|developments|changes|metrics|"
    r"drivers|obstacles|barriers|threats|misconceptions|predictions|fields|groups|roles|ideas|ways)",
    rank=r"(?:main|key|major|primary|principal|most important|biggest|largest|top|central|significant|notable|dominant|core|leading|"
    r"most relevant|essential|overarching|prevailing|prominent|greatest|general|broad|chief)",
    quantity=r"(?:often|frequently|commonly|typically|generally|usually|consistently|repeatedly|mostly|widely|collectively|regularly|"
    r"common|frequent|typical|recurring|recurrent|repeated|shared|widespread|various|diverse|different)",
    voices=r"(?:guests|speakers|leaders|interviewees|hosts|participants|panell?ists|experts|authors|writers|contributors|respondents|"
    r"commentators|executives|analysts|witnesses|presenters|founders|interviewers)",
    saying=r"(?:discuss|mention|say|talk|speak|cite|share|describ|express|emphasi[sz]|highlight|believ|think|focus|cover|contain|featur|"
    r"deal|address|explor|see|view|agree|disagree|differ|identif|recommend|address|touch|name|refer|raise|predict|call)",
    article=r"(?:the |these |this |all |our |your |its |their |of |entire |whole |available |current )",
)
_PT = _Words(
    whole=r"(?:acervo|colecao|corpus|arquivo|biblioteca|base(?: de (?:dados|conhecimento))?|conjunto|repositorio|material|documentacao|"
    r"serie|conteudo|indice|manual|guia|wiki|site|sitio|pasta|empresa|organizacao)",
    units=r"(?:documentos|arquivos|ficheiros|artigos|paginas|textos|relatorios|transcricoes|episodios|entrevistas|registros|notas|"
    r"historias|postagens|capitulos|livros|podcasts|contratos|e-?mails|reunioes|fontes|materiais|discussoes|conversas|apresentacoes|"
    r"palestras|guias|manuais|politicas|equipes|departamentos|secoes|atas|normas|volumes|estudos|fichas)",
    scope=r"(?:em tod[oa]s?|ao longo d[oae]s?|por tod[oa]s?|atraves d[oae]s?|entre tod[oa]s|no conjunto d[oae]s?|de tod[oa]s?|"
    r"dentre tod[oa]s|nos diversos|nas diversas)",
    nouns=r"(?:temas|assuntos|topicos|tendencias|padroes|categorias|perspectivas|pontos de vista|opinioes|atitudes|desafios|"
    r"preocupacoes|prioridades|semelhancas|diferencas|licoes|estrategias|iniciativas|abordagens|areas|aspectos|tipos|questoes|"
    r"fatores|riscos|falhas|erros|ensinamentos|habitos|perguntas|duvidas|oportunidades|objetivos|principios|valores|metodos|praticas|problemas|conclusoes|argumentos|debates|"
    r"recomendacoes|mudancas|metricas|obstaculos|barreiras|ameacas|previsoes|grupos|ideias|formas|eixos|linhas|frentes|campos)",
    rank=r"(?:principais|principal|maiores|mais importantes|mais relevantes|centrais|dominantes|predominantes|essenciais|gerais|"
    r"fundamentais|mais (?:citad|mencionad|discutid|abordad|tratad|comentad|presente|recorrente)\w*|chave)",
    quantity=r"(?:frequentemente|geralmente|comumente|normalmente|tipicamente|com (?:mais |maior )?frequencia|repetidamente|"
    r"consistentemente|comuns|recorrentes?|frequentes?|repetid[oa]s|compartilhad[oa]s|divers[oa]s|vari[oa]s|diferentes)",
    voices=r"(?:convidados|oradores|entrevistados|lideres|participantes|especialistas|peritos|autores|executivos|analistas|testemunhas)",
    saying=r"(?:discut|mencion|diz|fal|cit|partilh|compartilh|descrev|express|destac|acredit|pens|foc|cobr|cont|trat|abord|explor|"
    r"concord|identific|recomend|refer|tocam)",
    article=r"(?:o |a |os |as |est[ea]s? |ess[ea]s? |noss[oa]s? |d[oa]s? |n[oa]s? |d?est[ea]s? |d?ess[ea]s? |n?est[ea]s? |inteir[oa] |"
    r"tod[oa]s? |em |de |seu |sua )",
)
_ES = _Words(
    whole=r"(?:acervo|coleccion|corpus|archivo|biblioteca|base(?: de (?:datos|conocimiento))?|conjunto|repositorio|material|"
    r"documentacion|serie|contenido|fondo|indice|manual|guia|wiki|sitio|carpeta|empresa|organizacion)",
    units=r"(?:documentos|archivos|ficheros|articulos|paginas|textos|informes|transcripciones|episodios|entrevistas|registros|notas|"
    r"historias|publicaciones|capitulos|libros|podcasts|contratos|correos|reuniones|fuentes|materiales|discusiones|conversaciones|"
    r"presentaciones|charlas|guias|manuales|politicas|equipos|departamentos|secciones|actas|normas|volumenes|estudios|fichas)",
    scope=r"(?:en tod[oa]s?|a lo largo de|por tod[oa]s?|a traves de|entre tod[oa]s|en el conjunto de|de tod[oa]s?|en los diversos|"
    r"en las diversas)",
    nouns=r"(?:temas|asuntos|topicos|tendencias|patrones|categorias|perspectivas|puntos de vista|opiniones|actitudes|desafios|retos|"
    r"preocupaciones|prioridades|semejanzas|similitudes|diferencias|lecciones|estrategias|iniciativas|enfoques|areas|aspectos|tipos|"
    r"cuestiones|factores|riesgos|fallos|errores|ensenanzas|habitos|preguntas|dudas|oportunidades|objetivos|principios|valores|metodos|practicas|problemas|conclusiones|argumentos|"
    r"debates|recomendaciones|cambios|metricas|obstaculos|barreras|amenazas|previsiones|grupos|ideas|formas|ejes|lineas|campos)",
    rank=r"(?:principales|principal|mayores|mas importantes|mas relevantes|centrales|dominantes|predominantes|esenciales|generales|"
    r"fundamentales|mas (?:citad|mencionad|discutid|abordad|tratad|comentad|presente|recurrente)\w*|clave)",
    quantity=r"(?:frecuentemente|generalmente|comunmente|normalmente|tipicamente|con (?:mas |mayor )?frecuencia|a menudo|"
    r"repetidamente|comunes|recurrentes?|frecuentes?|repetid[oa]s|compartid[oa]s|divers[oa]s|vari[oa]s|diferentes|distint[oa]s)",
    voices=r"(?:invitados|oradores|entrevistados|lideres|participantes|especialistas|expertos|autores|ejecutivos|analistas|testigos)",
    saying=r"(?:discut|mencion|dic|habl|cit|compart|describ|expres|destac|cree|piens|enfo|cubr|conti|trat|abord|explor|"
    r"coincid|identific|recom|refier|tocan)",
    article=r"(?:el |la |los |las |est[eao]s? |es[eao]s? |nuestr[oa]s? |del? |enter[oa] |tod[oa]s? |en |su |sus )",
)
_RU = _Words(
    whole=r"(?:коллекци\w{1,3}|собрани\w{1,3}|корпус\w{0,2}|архив\w{0,2}|библиотек\w{1,2}|баз\w{1,2}(?: знаний| данных)?|набор\w{0,2}|"
    r"хранилищ\w{1,2}|материал\w{0,3}|документаци\w{1,2}|сери\w{1,2}|содержани\w{1,2}|фонд\w{0,2}|массив\w{0,2}|"
    r"справочник\w{0,2}|руководств\w{1,2}|вики|сайт\w{0,2}|папк\w{1,2}|компани\w{1,2}|организаци\w{1,2})",
    units=r"(?:документ(?:ы|ов|ам|ами|ах)|файл(?:ы|ов|ам|ами|ах)|стать(?:и|ям|ями|ях)|статей|страниц(?:ы|ам|ами|ах)?|"
    r"текст(?:ы|ов|ам|ами|ах)|отчет(?:ы|ов|ам|ами|ах)|стенограмм(?:ы|ам|ами|ах)?|выпуск(?:и|ов|ам|ами|ах)|"
    r"интервью|запис(?:и|ей|ям|ями|ях)|замет(?:ки|ок|кам|ках)|глав(?:ы|ах|ам)?|книг(?:и|ах|ам)?|подкаст(?:ы|ов|ах)|"
    r"договор(?:ы|ов|ам|ах)|пис(?:ьма|ем|ьмах)|встреч(?:и|ах)?|источник(?:и|ов|ам|ах)|материал(?:ы|ов|ам|ах)|обсуждени(?:я|й|ям|ях)|"
    r"беседы?|бесед(?:ах|ам)|презентаци(?:и|й|ях)|выступлени(?:я|й|ях)|руководств(?:а|ах)?|инструкци(?:и|й|ях)|политик(?:и|ах)?|"
    r"отдел(?:ы|ов|ах)|команд(?:ы|ах)?|раздел(?:ы|ов|ах)|протокол(?:ы|ов|ах))",
    scope=r"(?:во всех|по всем|во всей|во всем|по всей|по всему|на протяжении|среди всех|из всех|в разных|всех|всей|всего|в целом по)",
    nouns=r"(?:тем(?:ы|ам|ами|ах)|сюжет(?:ы|ов|ах)|тенденци(?:и|й|ях)|тренд(?:ы|ов|ах)|закономерност(?:и|ей|ях)|категори(?:и|й|ях)|"
    r"взгляд(?:ы|ов|ах)|мнени(?:я|й|ях)|точк(?:и|ек) зрения|позици(?:и|й|ях)|вызов(?:ы|ов|ах)|проблем(?:ы|ах)|опасени(?:я|й|ях)|"
    r"приоритет(?:ы|ов|ах)|сходств(?:а|ах)|различи(?:я|й|ях)|урок(?:и|ов|ах)|стратеги(?:и|й|ях)|инициатив(?:ы|ах)|подход(?:ы|ов|ах)|"
    r"област(?:и|ей|ях)|аспект(?:ы|ов|ах)|вид(?:ы|ов|ах)|тип(?:ы|ов|ах)|вопрос(?:ы|ов|ах)|фактор(?:ы|ов|ах)|риск(?:и|ов|ах)|"
    r"возможност(?:и|ей|ях)|ошиб(?:ки|ок|ках)|сбо(?:и|ев|ях)|привычк(?:и|ах)|цел(?:и|ей|ях)|принцип(?:ы|ов|ах)|ценност(?:и|ей|ях)|метод(?:ы|ов|ах)|практик(?:и|ах)|вывод(?:ы|ов|ах)|"
    r"аргумент(?:ы|ов|ах)|рекомендаци(?:и|й|ях)|изменени(?:я|й|ях)|показател(?:и|ей|ях)|препятстви(?:я|й|ях)|угроз(?:ы|ах)|"
    r"прогноз(?:ы|ов|ах)|групп(?:ы|ах)|иде(?:и|й|ях)|направлени(?:я|й|ях)|способ(?:ы|ов|ах)|блок(?:и|ов|ах))",
    rank=r"(?:основн\w{2,3}|главн\w{2,3}|ключев\w{2,3}|важнейш\w{2,3}|крупнейш\w{2,3}|наиболее \w{4,20}|центральн\w{2,3}|"
    r"доминирующ\w{2,3}|преобладающ\w{2,3}|самы[ехм]\w? (?:важн|част|крупн|обсуждаем|заметн|распространенн|упоминаем)\w{1,4}|общи[ехм]\w?)",
    quantity=r"(?:часто|чаще|обычно|как правило|регулярно|постоянно|неоднократно|повторяющи\w{1,3}|повторяются|распространенн\w{1,3}|"
    r"типичн\w{1,3}|разны[ехм]\w?|различны[ехм]\w?)",
    voices=r"(?:гост(?:и|ей|ям)|спикер(?:ы|ов)|собеседник(?:и|ов)|участник(?:и|ов)|эксперт(?:ы|ов)|автор(?:ы|ов)|руководител(?:и|ей)|"
    r"аналитик(?:и|ов)|свидетел(?:и|ей))",
    saying=r"(?:обсужда|упомина|говор|расска|дел|опис|выража|подчёрк|подчерк|счита|дума|каса|посвящ|содерж|рассматр|соглас|назыв|"
    r"отмеч|рекоменд)",
    article=r"(?:в |во |этой |этом |этих |эти |всей |всех |весь |все |нашей |нашем |наших |данной |данном |по |из |о |об )",
)
_ALL: Mapping[str, _Words] = {"en": _EN, "pt": _PT, "ru": _RU, "es": _ES}

#: Patterns of every language, put together from its words: (group, weight, pattern).
_TEMPLATES: tuple[tuple[str, float, str], ...] = (
    ("scope", 1.5, r"\b{scope} {article}{0,3}(?:\w+ )?(?:{whole}|{units})\b"),
    (
        "scope",
        0.5,
        r"\b(?:in|from|by|of|within|em|nos|nas|dos|das|pelos|pelas|en|de|por|в|во|из|по) {article}{0,3}(?:\w+ )?{units}\b",
    ),
    ("rank", 0.5, r"\b{rank}\b"),
    ("quantity", 0.5, r"\b{quantity}\b"),
    ("noun", 0.5, r"\b{nouns}\b"),
)

#: What the languages say each in their own way: (kind, group, weight, pattern). `{units}` and others are those of the language.
_OWN: Mapping[str, Sequence[tuple[Kind, str, float, str]]] = {
    "en": (
        ("collection", "itself", 1.0, r"^(?!.{0,12}\b(?:who|whose|where|when|how (?:many|much|long))\b).*?\b((?:these|the|all|our|its|this|whole) (?:documents|files|pages|texts|reports|minutes|notes|articles|materials?|papers|records|sections|collection|corpus|documentation|docs|handbook|manual|wiki))\b"),
        ("generalisation", "told", 1.0, r"^(?:so |please |can you |could you )?(?:tell|brief|fill) (?:me|us)(?: in)? (?:more )?(?:about|on)\b|\b(?:fits?|belongs?|sits?) (?:in|into|within) (?:everything|all|the rest)\b"),
        ("aggregation", "census", 1.0, r"\b(?:which|what|do|does|did|have|are there|were there|is there|can you find|how do|how many|find|in what) (?:of )?(?:(?!is |was |it |this )[\w-]+ ){0,3}{voices} .{0,60}\b{saying}"),
        ("aggregation", "census", 1.0, r"\b(?:which|do|did|are there|were there|is there|can you find|how many|find|what) (?:(?:any|most|all|specific|certain|particular|some|other|many) ){0,3}{units} .{0,60}\b(?:{saying}|about|where|that|on|which|around)\b"),
        ("aggregation", "told", 0.5, r"\b(?:mentioned|discussed|identified|highlighted|cited|emphasi[sz]ed|described|raised|expressed|addressed|shared|found) (?:\w+ly )?(?:by|in|across|among|as|throughout)\b|\b(?:by|from|among) (?:the |these |our |most |all )?{voices}\b"),
        ("aggregation", "any", 0.5, r"\b(?:are|were) there (?:\w+ )?\w{2,}s\b|\bcan you (?:find|identify|name|list)\b"),
        ("aggregation", "whole", 1.0, r"\bwhat (?:is|are|does) (?:this|the|that|these) (?:{whole}|{units}) (?:all )?(?:is |about|cover|deal|contain|hold)|\b(?:all|everything|whatever) (?:that is |that\'s )?(?:on file|written|said|here|in here)\b|\ball of (?:its|the|our|these) {units}\b"),
        ("aggregation", "recurrence", 1.0, r"\bkeeps? (?:coming|cropping|turning|showing|recurring|returning)\b|\b(?:again and again|time and again|over and over|repeatedly|runs? through)\b"),
        ("generalisation", "all", 1.0, r"\b(?:all|everything|whatever) (?:there is |that is |that\'s |that )?(?:around|surround\w*|connected|related|to do|involv\w*|s?he is|it is|they are)\b|\b(?:the )?whole (?:story|picture) (?:of|about|on|behind)\b|\bwalk me through\b|\bget me up to speed\b|\bbring me up to date\b|\bfrom all sides\b|\bin full\b"),
        ("choice", "cause", 1.0, r"\b(?:cause|causes|reason|reasons|culprit|root cause)\b.{0,30}\b(?:be|lie|for|of|behind)\b|\b(?:what|who) (?:could|might|may) (?:be|have|lie|go)\b|\bwhy (?:might|could|would|may)\b|\b(?:find out|figure out|work out|understand|investigate|diagnose) (?:why|what|how|where|the cause)\b|\bgo(?:es)? wrong\b|\bbottlenecks?\b"),
        ("choice", "help", 1.0, r"\bhelp (?:me|us) (?:to )?(?:decide|choose|find|understand|plan|work|see|figure|pick)\b|\bhow (?:could|can|might|should) (?:we|i|one) (?:make|avoid|prevent|improve|reduce|stop|keep|lower|speed|save)\b|\bwhat would you\b|\bwhich (?:one )?would you\b|\bplan\b.{0,20}\bfor (?:us|me)\b"),
        ("aggregation", "themes", 1.0, r"\b(?:what|which)(?: are| were)?(?: the)?(?: \w+){0,3} (?:themes|topics|subjects|trends|patterns|motifs)\b"),
        ("aggregation", "themes", 1.0, r"\b(?:themes|topics|subjects|trends|patterns)\b.{0,40}\b(?:dominat|recur|emerge|stand out|appear|come up|cover)"),
        ("aggregation", "plural", 0.5, r"\bwhich (?:(?!is |was |does |did |the |of )\w+ ){0,2}(?!does\b|has\b|was\b|is\b|this\b)\w{2,}[^\W\dsui]s\b(?! (?:is|was|does|has)\b)"),
        ("aggregation", "plural", 0.5, r"\bwhat (?:(?!is |was |does |did |the )\w+ ){0,2}\w{2,}[^\W\dsui]s (?:are|were|do|did|have|can|could|should|will|would|exist)\b"),
        ("aggregation", "plural", 0.5, r"\bwhat (?:are|were) (?:the|some|all)\b"),
        ("aggregation", "frequency", 1.0, r"\b(?:most|least) (?:often|frequently|commonly|widely|frequent|common|mentioned|discussed|cited|prominent|prevalent)\b"),
        ("aggregation", "frequency", 1.0, r"\bhow (?:often|frequently|many (?:of )?(?:the )?{units})\b"),
        ("aggregation", "recurrence", 1.0, r"\brecurr(?:ing|ent)\b|\bkeeps? coming up\b|\bin common\b"),
        ("aggregation", "summary", 1.0, r"\b(?:overview|summary|synopsis|outline|survey|map|big picture) of {article}{0,3}(?:{whole}|{units}|everything)\b"),
        ("aggregation", "summary", 1.0, r"\b(?:summari[sz]e|sum up|describe|outline|characteri[sz]e|compare|contrast) {article}{1,3}(?:{whole}|{units})\b|\b(?:summari[sz]e|sum up) everything\b"),
        ("aggregation", "whole", 1.0, r"\bas a whole\b|\bin its entirety\b|\b(?:what|whole|everything) (?:is )?(?:this|the|that) {whole} (?:all )?(?:is )?about\b|\btaken together\b"),
        ("aggregation", "whole", 0.5, r"\boverall\b|\bcollectively\b|\bgenerally\b|\bthe (?:big|overall|general) picture\b"),
        ("aggregation", "change", 1.0, r"\bhow (?:have|has) .{1,80}\b(?:evolved|changed|shifted|developed|progressed|grown|varied)\b"),
        ("aggregation", "change", 0.5, r"\bover (?:time|the (?:years|past|last))\b|\bthrough the years\b|\bevol(?:ve|ution)\b"),
        ("aggregation", "voices", 1.0, r"\bhow do(?: the| most| different| various| these| many| all)? (?:\w+ ){0,2}\w+s (?:\w+ly )?(?:describe|perceive|view|discuss|see|talk about|approach|characteri[sz]e|think about|address|define|portray|treat|feel|balance|respond|differ|compare|vary)\b"),
        ("aggregation", "voices", 1.0, r"\b(?:do|are) (?:most|many|all|several) (?:of the )?\w+s\b"),
        ("aggregation", "any", 0.5, r"\b(?:are there|do|were there|is there|have) any\b|\bacross\b"),
        ("aggregation", "list", 1.0, r"\b(?:list|name|enumerate|give me|show me|count|group|rank|classify) (?:all|every|each)\b"),
        ("aggregation", "ties", 1.0, r"\b(?:relate|connect|link|fit|tie|belong|compare|differ)\w*(?: to| with| from)? (?:each other|one another|together)\b|\bhow (?:does|do|is|are) (?:it|this|everything|all (?:of )?(?:this|that|it|these)) .{0,20}(?:relate|connect|fit|linked)"),
        ("aggregation", "one", -0.5, r"\b(?:this|that) (?:contract|document|file|article|page|paper|report|chapter|section|e-?mail|policy)\b|\baccording to\b"),
        ("generalisation", "general", 1.0, r"\bin general\b|\bgenerally speaking\b|\bin (?:broad|general) terms\b|\bbroadly\b|\bat a high level\b|\bon the whole\b|\boverall\b"),
        ("generalisation", "context", 1.0, r"\b(?:wider|broader|general|bigger|larger|big|overall|full) (?:context|picture|view)\b|\bin context\b|\bthe context (?:of|around|for|behind)\b|\bbackground (?:on|of|to)\b|\blandscape\b"),
        ("generalisation", "overview", 1.0, r"\b(?:overview|panorama|summary|outline|survey|introduction|primer)\b|\bsummari[sz]e\b"),
        ("generalisation", "known", 1.0, r"\beverything (?:about|on|we|you|there)\b|\bwhat (?:do|does|can) (?:we|you|one|they) (?:know|have|learn)(?: us)? (?:about|on)\b|\ball (?:we|you|there is) .{0,12}\b(?:about|on)\b"),
        ("choice", "best", 1.0, r"\b(?:best|better|most suitable|right|safest|cheapest|ideal|preferable|suitable|fit)\b.{0,40}\b(?:for|to|if|when)\b"),
        ("choice", "advice", 1.0, r"\brecommend\w*\b|\bsuggest\b|\badvi[sc]e\b|\bshould (?:i|we|you|one|our)\b|\bis it worth\b|\bworth (?:it|\w+ing)\b"),
        ("choice", "weighing", 1.0, r"\bpros and cons\b|\btrade-?offs?\b|\bversus\b|\bvs\b|\bcompare\b.{1,60}\b(?:and|with|to)\b|\brather than\b|\binstead of\b"),
        ("choice", "more", 0.5, r"\bwhat else\b|\balso need\b|\band (?:what|which|how|why|who|when|where)\b"),
        ("choice", "consequence", 1.0, r"\bwhat (?:would|will|could|might) happen\b|\b(?:consequences|implications|repercussions) (?:of|for)\b|\bwhat if\b|\bwhat (?:do|would|will) (?:i|we) need\b"),
        ("aggregation", "whole", 1.0, r"\b(?:what(?:'s| is|s)?|out of|from|behind) (?:all (?:of )?this|this all|all (?:of )?that|it all)\b(?! \w+s\b)|\b(?:the )?whole (?:lot|thing|shebang|bunch)\b|\ball in all\b|\ball (?:of )?(?:these|the|our|its|those) {units}\b"),
        ("aggregation", "contents", 1.0, r"\bwhat (?:sorts?|kinds?|types?) of (?:things?|stuff|information|content|material|documents|pages|subjects|topics)\b|\bwhat(?:'s| is|s)? (?:all )?in (?:here|{article}{1,3}{whole})\b|\bwhat (?:can|will|would|could|do) (?:i|you|we|one|people) (?:expect to )?(?:find|read|learn|look up) (?:in )?(?:here|this|{article}{1,3}(?:{whole}|{units}))\b"),
        ("aggregation", "lessons", 0.5, r"\b(?:take ?aways?|take away|takes? home|carry away)\b|\b{units} (?:\w+ ){0,2}(?:teach|taught|tell us|show us|reveal)\b"),
        ("aggregation", "summary", 1.0, r"\b(?:gist|digest|essence|rundown|main points|general idea|rough idea|feel|flavou?r|sense) (?:of|from|for) {article}{0,3}(?:{whole}|{units}|lot|everything)\b"),
        ("aggregation", "recurrence", 1.0, r"\btime after time\b|\b(?:over|again) and (?:over|again)\b"),
        ("generalisation", "rest", 1.0, r"\b(?:fit|fits|tie|ties|tied|hang|hangs|connect|connects|connected|relate|relates|related|link|links|linked|belong|belongs|bear|touch|touches)\b(?: together| in| into| on| up| to| with){0,3} (?:the (?:rest|others?|other \w+)|everything else|anything else|other (?:things|parts|people))(?: of (?:our|the|this) (?:work|company|place|business))?\b"),
        ("generalisation", "above", 1.0, r"\blay of the land\b|\bbird'?s?[- ]eye\b|\bfrom above\b|\bin(?:to)? perspective\b|\bzoom(?:ed|ing)? out\b|\bin a nutshell\b|\bin (?:short|brief)$|\b10,?000 feet\b"),
        ("generalisation", "end", 1.0, r"\bfrom (?:start|beginning|top|front|a|end|cover) to (?:finish|end|bottom|back|z|cover)\b|\bthe (?:long|full|complete|unabridged) (?:version|account|run-?down|treatment|works)\b|\bstart to finish\b|\binside out\b"),
        ("generalisation", "deal", 1.0, r"\bwhat(?:'s| is|s)? (?:the )?(?:(?:big )?deal|story|history|situation|state of play|score) (?:with|of|behind|on|around)\b|\bwhere (?:do )?(?:we|things) stand (?:with|on)\b|\bwhat(?:'s| is|s)? (?:up|going on|all this) with\b|\bwhat is all this about (?=\w)"),
        ("generalisation", "idea", 1.0, r"\b(?:get|wrap|put) (?:my|our|your) heads? (?:a)?round\b|\bmake sense of\b|\b(?:general|rough|broad|overall|basic|good|better) (?:idea|understanding|notion|sense|grasp|feel|sketch) (?:of|for|about)\b|\b(?:up to speed|up to date|clued up|briefed) (?:on|about|with)\b|\bcatch me up\b|\b(?:mixed up|tied up|caught up|involved) in$"),
        ("generalisation", "facets", 1.0, r"[:,] (?:\w+ ){0,2}(?:who|what|where|how|why|when|which)\b[^:?]{2,60}(?:,| and) (?:and )?(?:by |with |on )?(?:who|what|where|how|why|when|which|whom)\b(?! {units}\b)"),
    ),
    "pt": (
        ("collection", "itself", 1.0, r"^(?!.{0,12}\b(?:quem|onde|quando|quant[oa]s?)\b).*?\b(documentos|ficheiros|paginas|textos|relatorios|atas|notas|artigos|materiais|regist(?:r)?os|secoes|colecao|acervo|corpus|documentacao|manual|wiki)\b"),
        ("generalisation", "told", 1.0, r"^(?:por favor,? )?(?:fala|fale|conta|conte|diz|diga)(?:-?(?:me|nos))? (?:mais |tudo )?(?:d[oae]s?|sobre)\b|\b(?:em tracos largos|por alto|de uma ponta a outra)\b|\bque papel\b"),
        ("aggregation", "census", 1.0, r"\b(?:que|quais|ha|existem|quant[oa]s) (?:(?:d[oa]s|algum|alguns|algumas|outros|outras) ){0,2}(?:{voices}|{units}) .{0,60}\b(?:{saying}|sobre|em que|nos quais|nas quais|onde)"),
        ("aggregation", "told", 0.5, r"\b(?:mencionad|discutid|identificad|destacad|citad|descrit|referid|abordad|apontad|partilhad|compartilhad)[oa]s? (?:por|pel[oa]s|n[oa]s|em|entre|como)\b|\bpel[oa]s {voices}\b"),
        ("aggregation", "whole", 1.0, r"\b(?:de|do) que (?:e que )?(?:se )?(?:trata|fala)\w* {article}{0,2}{whole}\b|\btudo o que (?:aqui )?(?:esta|ha|existe|se le)\b|\baqui (?:esta )?escrito\b"),
        ("aggregation", "recurrence", 1.0, r"\bvolta\w* (?:sempre )?a (?:aparecer|surgir|acontecer)\b|\b(?:vezes sem conta|repetidas vezes|se repete\w*)\b"),
        ("generalisation", "all", 1.0, r"\btud[oa] (?:o )?que (?:o |a |os |as |se |lhe )?(?:rodeia|envolve|cerca|relaciona|diz respeito|toca|gira)\w*\b|\bcomo um todo\b|\benquadramento\b|\bpor dentro d[oae]\b|\bponto da situacao\b|\bcomplet[oa]\b|\bde A a Z\b|\bhistoria (?:toda|completa)\b"),
        ("choice", "cause", 1.0, r"\bcausas?\b|\b(?:por tras|na origem) d[eoa]\b|\bo que (?:poderia|pode|podera) (?:estar|ter|ser|correr|dar|falhar)\b|\bpor que (?:razao |motivo )?(?:poderia|pode)\w*\b|\binvestig\w+\b|\bdescobrir (?:por que|porque|o que|onde)\b|\bcorrer mal\b|\bdar errado\b|\bgargalo\b"),
        ("choice", "help", 1.0, r"\bajud[ae]\w*-?(?:me|nos)? (?:a )?(?:decidir|escolher|encontrar|entender|perceber|planear|planejar)\b|\bcomo (?:evitar|prevenir|reduzir|melhorar|poderiamos|podemos|posso)\b|\bo que (?:farias|faria|sugeres|sugere|propoe)\b|\bqual (?:escolherias|escolheria)\b|\baconselh\w+\b"),
        ("aggregation", "themes", 1.0, r"\b(?:qua(?:is|l)|que)(?: sao| eram| foram)?(?: os| as)?(?: \w+){0,3} (?:temas|assuntos|topicos|tendencias|padroes)\b"),
        ("aggregation", "themes", 1.0, r"\b(?:temas|assuntos|topicos|tendencias|padroes)\b.{0,40}\b(?:domin|predomin|se repet|repet|aparec|destac|recorr|atravess)"),
        ("aggregation", "themes", 1.0, r"\btematica|\btemario\b|\b(?:do|de) que (?:se )?trata\w* (?:est[ea]|ess[ea]|o|a) {whole}\b|\bsobre o que (?:e|fala|trata) (?:est[ea]|ess[ea]|o|a) {whole}\b"),
        ("aggregation", "plural", 0.5, r"\b(?:quais|que) (?:(?:sao|foram|os|as) )?(?:\w+ )?\w{3,}s\b|\bquais sao\b"),
        ("aggregation", "frequency", 1.0, r"\bmais (?:frequente|comu[mn]|citad|mencionad|discutid|abordad|recorrente|presente|tratad|comentad)\w*\b|\bcom (?:mais|maior|que) frequencia\b"),
        ("aggregation", "frequency", 1.0, r"\bquant[oa]s (?:d[oa]s )?{units}\b"),
        ("aggregation", "recurrence", 1.0, r"\brecorrent\w+\b|\bem comum\b|\bse repetem?\b"),
        ("aggregation", "summary", 1.0, r"\b(?:resum\w+|panorama|visao geral|sintese|apanhado|balanco|mapa)(?: geral| completo)? {article}{1,3}(?:{whole}|{units})\b|\b(?:resum|sintetiz|descrev|compar)\w+(?:-(?:me|nos))? {article}{1,3}(?:{whole}|{units})\b"),
        ("aggregation", "whole", 1.0, r"\bcomo um todo\b|\bn[oa] seu conjunto\b|\bem conjunto\b"),
        ("aggregation", "whole", 0.5, r"\bem geral\b|\bno geral\b|\bde (?:modo|forma|maneira) geral\b"),
        ("aggregation", "change", 1.0, r"\bcomo .{1,80}\b(?:evolu|mud(?:ou|aram)|se transform|variou|variaram)\w*"),
        ("aggregation", "change", 0.5, r"\bao longo d[oa]s? (?:tempo|anos|ultim)\w*|\bevolucao\b"),
        ("aggregation", "voices", 1.0, r"\bcomo (?:os|as|esses|essas|divers[oa]s|diferentes) (?:\w+ ){1,3}(?:descrevem|veem|percebem|discutem|abordam|tratam|encaram|definem|enxergam|avaliam|lidam|falam|comparam)\b"),
        ("aggregation", "list", 1.0, r"\b(?:liste|enumere|cite|mostre|conte|agrupe|classifique|relacione) tod[oa]s\b"),
        ("aggregation", "any", 0.5, r"\bha (?:alg|diferen|divers)\w+|\bexistem\b"),
        ("aggregation", "ties", 1.0, r"\b(?:relaciona|conecta|lig|encaix|diferenci)\w* (?:entre si|uns? (?:com|aos?) (?:os )?outros?)\b|\bentre si\b|\bcomo tudo (?:isso )?se\b"),
        ("aggregation", "one", -0.5, r"\b(?:est[ea]|ess[ea]|dest[ea]|nest[ea]|dess[ea]) (?:contrato|documento|arquivo|artigo|pagina|relatorio|capitulo|secao|e-?mail|politica)\b|\b(?:de acordo com|segundo)\b"),
        ("generalisation", "general", 1.0, r"\b(?:de (?:forma|modo|maneira) geral|no geral|em geral|em termos gerais|em linhas gerais|no todo)\b"),
        ("generalisation", "context", 1.0, r"\bcontexto\b|\bquadro (?:geral|amplo|mais amplo)\b|\bvisao (?:ampla|de conjunto)\b|\bcenario\b"),
        ("generalisation", "overview", 1.0, r"\bpanorama\b|\bvisao geral\b|\bresum\w+\b|\bapanhado\b|\bsintese\b|\bintroducao\b"),
        ("generalisation", "known", 1.0, r"\btudo (?:sobre|o que)\b|\bo que (?:se sabe|sabemos|ha|temos|existe) (?:sobre|a respeito)\b"),
        ("choice", "best", 1.0, r"\b(?:melhor(?:es)?|mais (?:adequad[oa]|indicad[oa]|segur[oa]|barat[oa]|convenient\w*)|ideal|preferivel)\b.{0,40}\b(?:para|se|quando|pra)\b"),
        ("choice", "advice", 1.0, r"\brecomend\w+\b|\bsugir\w*\b|\bsuger\w+\b|\baconselh\w+\b|\b(?:devo|deveria|devemos|deveriamos)\b|\bvale a pena\b"),
        ("choice", "weighing", 1.0, r"\bpros e contras\b|\bvantagens e desvantagens\b|\bversus\b|\bcompar[ae]\w*\b.{1,60}\b(?:e|com)\b|\bem vez de\b|\bao inves de\b"),
        ("choice", "more", 0.5, r"\bo que mais\b|\be (?:o que|qual|quais|como|por que|quem|quando|onde)\b|\balem disso\b"),
        ("choice", "consequence", 1.0, r"\bo que (?:aconteceria|acontece|acontecera) (?:se|com)\b|\bconsequencias (?:d|par)\w+|\bimplicacoes\b|\bo que (?:preciso|precisamos)\b"),
        ("aggregation", "whole", 1.0, r"\b(?:isto|isso|aquilo) (?:aqui )?(?:e |foi )?tudo\b|\btudo (?:isto|isso|o que (?:aqui )?(?:ha|existe|esta|temos aqui))\b|\bd?isto tudo\b|\bn[oa] (?:seu )?(?:todo|conjunto|totalidade|global)\b|\bna sua totalidade\b|\bno fim de contas\b|\btod[oa]s (?:est[ea]s|ess[ea]s|[oa]s|nossos|nossas) {units}\b"),
        ("aggregation", "contents", 1.0, r"\bque (?:tipos?|generos?|especies?|classes?) de (?:coisas?|informac\w+|conteudos?|documentos|paginas|assuntos|materia\w*)\b|\bo que (?:e que )?(?:ha|existe|esta|consta|se (?:pode )?encontra\w*|posso encontrar|vem|se le) (?:aqui|n?{article}{1,3}(?:{whole}|{units}))\b|\bo que (?:traz|cobre|contem|inclui) {article}{1,2}{whole}\b"),
        ("aggregation", "lessons", 0.5, r"\b(?:reter|guardar|levar|tirar) (?:\w+ )?(?:d?isto|d?isso|de tudo|daqui)\b|\b(?:ensina|ensinam|ensinaram|revelam|mostram)(?:-nos)? .{0,20}\b{units}\b|\b{units} .{0,30}\b(?:ensinam|revelam|mostram)\b"),
        ("aggregation", "summary", 1.0, r"\b(?:ideia|nocao|impressao)(?: geral| global| rapida)? (?:de tudo|do que (?:esta|ha|existe|vem|consta) {article}{0,3}(?:{whole}|{units}|aqui))"),
        ("aggregation", "recurrence", 1.0, r"\b(?:mais|tantas|muitas) vezes\b(?! (?:por|ao|a) (?!aqui\b|ca\b)\w+)|\buma e outra vez\b"),
        ("aggregation", "ties", 0.5, r"\bem que (?:e que )?(?:se )?(?:distingu|diferenci|difer|assemelh|parec|coincid)\w*m (?:os|as)\b"),
        ("generalisation", "rest", 1.0, r"\b(?:entra|encaixa|liga|relaciona|cruza|toca|mexe|insere|enquadra|situa)\w*(?:-se)?(?: com| n[oa]s?| a[os]?| em)? (?:o )?(?:resto|demais|restantes?|outr[oa]s (?:coisas|areas|partes|temas))\b"),
        ("generalisation", "above", 1.0, r"\bvist[oa]s? de cima\b|\bde cima\b|\ba voo de passaro\b|\bem perspe(?:c)?tiva\b|\bem poucas palavras\b|\bem (?:resumo|suma)\b"),
        ("generalisation", "end", 1.0, r"\bdo (?:principio|inicio|comeco) ao fim\b|\bde (?:a a z|ponta a ponta|fio a pavio|tras para a frente)\b|\ba versao (?:longa|completa|alargada|comprida)\b|\bao pormenor\b|\bde alto a baixo\b"),
        ("generalisation", "deal", 1.0, r"\bo que e (?:que e )?(?:isso|isto|essa coisa|essa historia) d[aeo]s?\b|\bqual e a (?:historia|situacao) d[aeo]s?\b|\bo que (?:e que )?se passa com\b|\bque (?:historia|coisa) e essa d[aeo]s?\b|\bem que pe esta\b|\b(?:com|em) que (?:e que )?(?:tem a ver|anda metid[oa]|esta metid[oa]|anda envolvid[oa])\b"),
        ("generalisation", "idea", 1.0, r"\b(?:ideia|nocao|compreensao|percecao|percepcao) (?:geral|global|aproximada|de conjunto) d[aeo]s?\b|\ba par d[aeo]s?\b|\bpor dentro d[aeo]s?\b|\bsituar(?:-me)? (?:n|sobre)\w*\b|\bpo[er]\w*(?:-me|-nos)? a par\b|\bconta(?:-me|-nos)? a historia\b"),
        ("generalisation", "facets", 1.0, r"[:,] (?:\w+ ){0,2}(?:quem|o que|que|onde|como|quando|porque|por que|qual|quais|por quem)\b[^:?]{2,60}(?:,| e) (?:e )?(?:por |com |de )?(?:quem|o que|que|onde|como|quando|porque|qual|quais)\b"),
    ),
    "es": (
        ("collection", "itself", 1.0, r"^(?!.{0,12}\b(?:quien|quienes|donde|cuando|cuant[oa]s?)\b).*?\b(documentos|ficheros|archivos|paginas|textos|informes|actas|notas|articulos|materiales|registros|secciones|coleccion|acervo|corpus|documentacion|manual|wiki)\b"),
        ("generalisation", "told", 1.0, r"^(?:por favor,? )?(?:habla(?:me|nos)?|hableme|cuenta(?:me|nos)?|cuenteme|dime|digame) (?:mas |todo )?(?:de|del|sobre|acerca)\b|\b(?:cuent\w+|todo)lo todo\b|\bcuent\w+ todo\b|\bque papel\b"),
        ("aggregation", "census", 1.0, r"\b(?:que|cuales|hay|existen|cuant[oa]s) (?:(?:de l[oa]s|alguno|algunos|algunas|otros|otras) ){0,2}(?:{voices}|{units}) .{0,60}\b(?:{saying}|sobre|en que|en los que|en las que|donde)"),
        ("aggregation", "told", 0.5, r"\b(?:mencionad|discutid|identificad|destacad|citad|descrit|referid|abordad|senalad|compartid)[oa]s? (?:por|en|entre|como)\b|\bpor l[oa]s {voices}\b"),
        ("aggregation", "whole", 1.0, r"\bde que (?:va|trata|habla)\w* {article}{0,2}{whole}\b|\btodo lo que (?:aqui )?(?:esta|hay|existe|se lee)\b|\baqui escrito\b"),
        ("aggregation", "recurrence", 1.0, r"\bvuelve\w* (?:siempre )?a (?:aparecer|surgir|pasar)\b|\b(?:una y otra vez|repetidas veces|se repite\w*)\b"),
        ("generalisation", "all", 1.0, r"\btodo lo que (?:lo |la |los |las |le |les |se )?(?:rodea|envuelve|relaciona|concierne|toca|gira)\w*\b|\bcomo un todo\b|\ba fondo\b|\bponme al (?:dia|corriente)\b|\bcomplet[oa]\b|\bampli[oa]\b|\btoda la historia\b"),
        ("choice", "cause", 1.0, r"\bcausas?\b|\b(?:detras|en el origen) del?\b|\bque (?:podria|puede|podra) (?:estar|haber|ser|salir|fallar|torcerse)\b|\bpor que (?:razon |motivo )?(?:podria|puede)\w*\b|\binvestiga\w*\b|\bdescubrir (?:por que|que|donde)\b|\bsalir mal\b|\bcuello de botella\b"),
        ("choice", "help", 1.0, r"\bayuda\w*(?:me|nos)? (?:a )?(?:decidir|elegir|encontrar|entender|planear|planificar)\b|\bayudame\b|\bcomo (?:evitar|prevenir|reducir|mejorar|podriamos|podemos|puedo)\b|\bque (?:harias|haria|sugieres|propones)\b|\bcual (?:elegirias|elegiria)\b|\bconvendria\b"),
        ("aggregation", "themes", 1.0, r"\b(?:cual(?:es)?|que)(?: son| eran| fueron)?(?: los| las)?(?: \w+){0,3} (?:temas|asuntos|topicos|tendencias|patrones)\b"),
        ("aggregation", "themes", 1.0, r"\b(?:temas|asuntos|topicos|tendencias|patrones)\b.{0,40}\b(?:domin|predomin|se repit|aparec|destac|recurr|atravies)"),
        ("aggregation", "themes", 1.0, r"\btematica|\b(?:de que (?:se )?trata\w*|sobre que (?:es|trata|versa)) (?:est[ea]|es[ea]|el|la) {whole}\b"),
        ("aggregation", "plural", 0.5, r"\b(?:cuales|que) (?:(?:son|fueron|los|las) )?(?:\w+ )?\w{3,}s\b|\bcuales son\b"),
        ("aggregation", "frequency", 1.0, r"\bmas (?:frecuente|comun|citad|mencionad|discutid|abordad|recurrente|presente|tratad|comentad)\w*\b|\bcon (?:mas|mayor|que) frecuencia\b|\bmas a menudo\b"),
        ("aggregation", "frequency", 1.0, r"\bcuant[oa]s (?:de l[oa]s )?{units}\b"),
        ("aggregation", "recurrence", 1.0, r"\brecurrent\w+\b|\ben comun\b|\bse repiten?\b"),
        ("aggregation", "summary", 1.0, r"\b(?:resum\w+|panorama|vision general|sintesis|balance|mapa)(?: general| completo)? {article}{1,3}(?:{whole}|{units})\b|\b(?:resum|sintetiz|describ|compar)\w+ {article}{1,3}(?:{whole}|{units})\b"),
        ("aggregation", "whole", 1.0, r"\bcomo un todo\b|\ben su conjunto\b|\ben conjunto\b"),
        ("aggregation", "whole", 0.5, r"\ben general\b|\ben lo general\b|\bde (?:modo|forma|manera) general\b"),
        ("aggregation", "change", 1.0, r"\bcomo (?:ha|han) .{1,80}\b(?:evolucionado|cambiado|variado|transformado)\b|\bcomo .{1,80}\b(?:evoluciono|evolucionaron|cambiaron)\b|\bcomo (?:ha|han) (?:evolucionado|cambiado|variado)\b"),
        ("aggregation", "change", 0.5, r"\ba lo largo del? (?:tiempo|los anos|los ultimos)|\bevolucion\b"),
        ("aggregation", "voices", 1.0, r"\bcomo (?:describen|ven|perciben|discuten|abordan|tratan|definen|valoran|hablan|comparan)\b|\bcomo (?:los|las|esos|esas|divers[oa]s|diferentes) (?:\w+ ){1,3}(?:describen|ven|perciben|discuten|abordan|tratan|definen|valoran|hablan)\b"),
        ("aggregation", "list", 1.0, r"\b(?:lista|listar|enumera|enumere|cita|muestra|muestre|cuenta|agrupa|clasifica) tod[oa]s\b"),
        ("aggregation", "any", 0.5, r"\bhay (?:alg|diferen|divers)\w+|\bexisten\b"),
        ("aggregation", "ties", 1.0, r"\bentre si\b|\bun[oa]s? con otr[oa]s?\b|\bcomo se (?:relaciona|conecta) todo\b"),
        ("aggregation", "one", -0.5, r"\b(?:est[ea]|es[ea]) (?:contrato|documento|archivo|articulo|pagina|informe|capitulo|seccion|correo|politica)\b|\b(?:de acuerdo con|segun)\b"),
        ("generalisation", "general", 1.0, r"\b(?:de (?:forma|modo|manera) general|en general|en terminos generales|a grandes rasgos|en lineas generales)\b"),
        ("generalisation", "context", 1.0, r"\bcontexto\b|\bcuadro (?:general|amplio)\b|\bvision (?:amplia|de conjunto)\b"),
        ("generalisation", "overview", 1.0, r"\bpanorama\b|\bvision general\b|\bresum\w+\b|\bsintesis\b|\bintroduccion\b"),
        ("generalisation", "known", 1.0, r"\btodo (?:sobre|lo que)\b|\bque (?:se sabe|sabemos|hay|tenemos|existe) (?:sobre|acerca)\b"),
        ("choice", "best", 1.0, r"\b(?:mejor(?:es)?|mas (?:adecuad[oa]|indicad[oa]|segur[oa]|barat[oa]|convenient\w*)|ideal|preferible)\b.{0,40}\b(?:para|si|cuando)\b"),
        ("choice", "advice", 1.0, r"\brecomiend\w+\b|\brecomend\w+\b|\bsugier\w+\b|\baconsej\w+\b|\b(?:debo|deberia|debemos|deberiamos)\b|\bvale la pena\b|\bconviene\b"),
        ("choice", "weighing", 1.0, r"\bpros y contras\b|\bventajas y desventajas\b|\bversus\b|\bcompar[ae]\w*\b.{1,60}\b(?:y|con)\b|\ben (?:vez|lugar) de\b"),
        ("choice", "more", 0.5, r"\bque mas\b|\by (?:que|cual|cuales|como|por que|quien|cuando|donde)\b|\bademas\b"),
        ("choice", "consequence", 1.0, r"\bque (?:pasaria|sucederia|ocurriria|pasa|ocurre) (?:si|con)\b|\bconsecuencias\b|\bimplicaciones\b|\bque (?:necesito|necesitamos)\b"),
        ("aggregation", "whole", 1.0, r"\btodo (?:esto|eso|aquello|lo que (?:aqui )?(?:hay|existe|esta|tenemos aqui))\b|\besto todo\b|\ben su (?:totalidad|conjunto)\b|\bal fin y al cabo\b|\bel conjunto de {article}{0,3}(?:{whole}|{units})\b|\btod[oa]s (?:est[oa]s|es[oa]s|l[oa]s|nuestr[oa]s) {units}\b"),
        ("aggregation", "contents", 1.0, r"\bque (?:tipos?|clases?|generos?|especies?) de (?:cosas?|informacion\w*|contenidos?|documentos|paginas|asuntos|temas|material\w*)\b|\bque (?:hay|existe|viene|consta|se (?:puede )?encuentra\w*|puedo encontrar|se lee) (?:aqui|en {article}{1,3}(?:{whole}|{units}))\b|\bque (?:trae|cubre|contiene|incluye) {article}{1,2}{whole}\b"),
        ("aggregation", "lessons", 0.5, r"\b(?:quedo|quedar(?:me|nos)?|llevo|saco|sacar|retener|recordar) (?:\w+ )?de (?:todo|esto|aqui)\b|\b(?:ensena|ensenan|revelan|muestran)(?:nos)? .{0,20}\b{units}\b|\b{units} .{0,30}\b(?:ensenan|revelan|muestran)\b"),
        ("aggregation", "summary", 1.0, r"\b(?:idea|nocion|impresion)(?: general| global| rapida)? de (?:todo|lo que (?:hay|existe|viene|consta|esta) {article}{0,3}(?:{whole}|{units}|aqui))"),
        ("aggregation", "recurrence", 1.0, r"\b(?:mas|tantas|muchas) veces\b(?! (?:por|al|a) (?!aqui\b|aca\b)\w+)"),
        ("aggregation", "ties", 0.5, r"\ben que (?:se )?(?:distingu|diferenci|difier|asemej|parec|coincid)\w*n (?:los|las)\b"),
        ("generalisation", "rest", 1.0, r"\b(?:entra|encaja|enlaza|relaciona|conecta|cruza|toca|inserta|enmarca|situa)\w*(?: con| en| a)? (?:lo |el |los |las )?(?:resto|demas|otr[oa]s (?:cosas|areas|partes|temas))\b"),
        ("generalisation", "above", 1.0, r"\bvist[oa]s? desde arriba\b|\bdesde arriba\b|\ba vista de pajaro\b|\ben perspectiva\b|\ben pocas palabras\b|\ben (?:resumen|suma|sintesis)\b"),
        ("generalisation", "end", 1.0, r"\bd?e?l? ?(?:principio|inicio|comienzo|cabo) a(?:l)? (?:fin|final|rabo)\b|\bde (?:a a z|la a a la z|punta a punta|cabo a rabo|arriba abajo)\b|\bla version (?:larga|completa|extendida)\b|\bcon (?:todo )?detalle\b|\bcon pelos y senales\b"),
        ("generalisation", "deal", 1.0, r"\bque es (?:eso|esto|esa cosa|esa historia) del?\b|\bcual es la (?:historia|situacion) del?\b|\bque (?:pasa|ocurre|hay) con\b|\ben que (?:punto|estado) esta\b|\b(?:con|en) que (?:tiene que ver|anda metid[oa]|esta metid[oa]|anda)\b"),
        ("generalisation", "idea", 1.0, r"\b(?:idea|nocion|comprension|imagen) (?:general|global|aproximada|de conjunto) del?\b|\bal (?:tanto|corriente|dia)(?: del?| sobre| con)?\b|\bsituar(?:me|nos)? (?:en|sobre)\b|\bcuenta\w* la historia\b"),
        ("generalisation", "facets", 1.0, r"[:,] (?:\w+ ){0,2}(?:quien|quienes|que|donde|como|cuando|por que|cual|cuales)\b[^:?]{2,60}(?:,| y) (?:por |con |de )?(?:quien|quienes|que|donde|como|cuando|por que|cual|cuales)\b"),
    ),
    "ru": (
        ("collection", "itself", 1.0, r"^(?!.{0,12}\b(?:кто|кому|где|куда|когда|сколько)\b).*?\b(документ(?:ы|ов|ам|ами|ах)|страниц(?:ы|ам|ами|ах)?|отчет(?:ы|ов|ам|ами|ах)|материал(?:ы|ов|ам|ами|ах)|раздел(?:ы|ов|ам|ами|ах)|протокол(?:ы|ов|ам|ами|ах)|стать(?:и|ям|ями|ях)|статей|заметки|справочник\w{0,2}|документаци\w{1,2}|собрани\w{1,3}|коллекци\w{1,3})\b"),
        ("generalisation", "told", 1.0, r"^(?:пожалуйста,? )?расска(?:жи|жите) (?:мне |нам )?(?:все )?(?:о|об|обо|про)\b|\bкакую роль\b|\bкраткий рассказ\b"),
        ("aggregation", "census", 1.0, r"\b(?:какие|каких|есть ли|сколько|кто из) (?:\w+ ){0,2}(?:{voices}|{units}) .{0,60}\b(?:{saying}|про|о|об|где|в которых)"),
        ("aggregation", "told", 0.5, r"\b(?:упоминаются|обсуждаются|названы|упомянуты|отмечаются|описываются|называют|упоминают|отмечают)\b"),
        ("aggregation", "whole", 1.0, r"\bо чем (?:говорит|рассказывает|повествует|вообще|в целом)? ?(?:этот|эта|это|эти|весь|вся|все|наш\w*)? ?(?:{whole}|{units})\b|\bвсе(?:го|м|му)?,? (?:что )?(?:здесь|тут) (?:написан|собран|есть|сказан)\w*|\b(?:выжимк|итог)\w+ .{0,20}(?:{whole}|{units})\b|\bпо всем (?:\w+ )?{units}\b"),
        ("aggregation", "recurrence", 1.0, r"\b(?:снова и снова|раз за разом|красной нитью|постоянно всплыва\w+|то и дело)\b"),
        ("generalisation", "all", 1.0, r"\bвсе,? что с (?:ним|ней|ними|этим) связано\b|\bцеликом\b|\bобо всем\b|\bв курс дела\b|\bсо всех сторон\b|\bподробно\b|\bполностью\b|\bвсе вокруг\b|\bв полном объеме\b"),
        ("choice", "cause", 1.0, r"\bпричин\w+\b|\bчто (?:может|могло|могут) (?:стоять|быть|случиться|пойти|привести|вызвать)\b|\bпочему (?:может|могло|могла|мог|бы)\b|\bразбер\w+\b|\bвыясн\w+\b|\bвинов\w+\b.{0,20}\bмогл?\w*|\bпойти не так\b|\bузко[ем]\w* мест\w+"),
        ("choice", "help", 1.0, r"\bпомоги\w* (?:мне |нам )?(?:решить|выбрать|найти|понять|разобраться|спланировать|определ\w+)\b|\bкак (?:избежать|предотвратить|снизить|уменьшить|улучшить|нам |бы нам )\b|\bчто бы (?:ты|вы) \w+\b|\bчто (?:лучше )?(?:делать|сделать)\b"),
        ("aggregation", "themes", 1.0, r"\b(?:как(?:ие|их|им|ими|ова|овы)|что за)(?: \w+){0,3} (?:тем(?:ы|ам|ах)|тенденци\w+|тренд\w+|закономерност\w+|сюжет\w+)\b"),
        ("aggregation", "themes", 1.0, r"\b(?:тем(?:ы|ам|ах)|тенденци\w+|сюжет\w+)\b.{0,40}\b(?:преоблада|доминиру|повторя|встреча|выделя|объединя)"),
        ("aggregation", "themes", 1.0, r"\bтематик\w+|\bо чем (?:эт[аои]т?|вс[ея]|наш\w*|данн\w+)? ?{whole}\b|\bчему посвящен\w* {article}{0,2}(?:{whole}|{units})\b"),
        ("aggregation", "plural", 0.5, r"\bкакие\b|\bкаких\b|\bкаковы\b"),
        ("aggregation", "frequency", 1.0, r"\bчаще всего\b|\bнаиболее (?:част|распространенн|упоминаем|обсуждаем|заметн)\w+|\bсамы[ехм]\w? (?:част|распространенн|упоминаем|обсуждаем)\w+|\bкак часто\b"),
        ("aggregation", "frequency", 1.0, r"\bсколько (?:\w+ )?{units}\b"),
        ("aggregation", "recurrence", 1.0, r"\bповторя(?:ются|ется|ющи\w+)\b|\bчто общего\b|\bобщего у\b|\bиз раза в раз\b"),
        ("aggregation", "summary", 1.0, r"\b(?:обзор|сводк\w|резюме|обобщени\w|краткое содержание|картин\w|обобщи\w*|подытожь\w*|опиши\w*|сравни\w*) {article}{0,3}(?:{whole}|{units})\b"),
        ("aggregation", "whole", 1.0, r"\bкак единое целое\b|\bв совокупности\b|\b(?:{whole}|{units}) в целом\b|\bвся картина\b"),
        ("aggregation", "whole", 0.5, r"\bв целом\b|\bв общем\b"),
        ("aggregation", "change", 1.0, r"\bкак .{0,80}\b(?:менял|изменил|изменял|развивал|эволюционир)\w+"),
        ("aggregation", "change", 0.5, r"\bсо временем\b|\bс годами\b|\bза (?:последние|эти|прошедшие) \w+|\bэволюци\w+"),
        ("aggregation", "voices", 1.0, r"\bкак (?:разные |различные |эти |все )?(?:\w+ ){0,2}(?:описывают|воспринимают|видят|обсуждают|оценивают|относятся|понимают|рассматривают|отзываются|говорят)\b"),
        ("aggregation", "list", 1.0, r"\b(?:перечисли\w*|назови\w*|покажи\w*|сгруппируй\w*|посчитай\w*|составь\w* список) (?:все|всех|каждый|каждую)\b"),
        ("aggregation", "any", 0.5, r"\bесть ли\b|\bсуществуют ли\b"),
        ("aggregation", "ties", 1.0, r"\b(?:между собой|друг с другом|друг от друга)\b|\bкак (?:все )?это (?:все )?связано\b"),
        ("aggregation", "one", -0.5, r"\b(?:эт(?:от|ом|ого|а|ой)|данн\w{2,3}) (?:договор|документ|файл|стать|страниц|отчет|глав|раздел|письм)\w*|\bсогласно\b"),
        ("generalisation", "general", 1.0, r"\bв целом\b|\bв общем\b|\bв общих чертах\b|\bвообще\b|\bв общих словах\b"),
        ("generalisation", "context", 1.0, r"\bконтекст\w*\b|\bобщ\w+ картин\w+|\bшире\b|\bобщее представление\b"),
        ("generalisation", "overview", 1.0, r"\bобзор\w*\b|\bсводк\w+\b|\bрезюме\b|\bобобщ\w+\b|\bвведение\b"),
        ("generalisation", "known", 1.0, r"\bвсе (?:о|об|про|что)\b|\bчто (?:известно|мы знаем|есть|имеется) (?:о|об|про)\b"),
        ("choice", "best", 1.0, r"\b(?:лучш\w{2,3}|лучше|наилучш\w{2,3}|подходящ\w{2,3}|подойдет|подходит|оптимальн\w{2,3}|предпочтительн\w{2,3})\b.{0,40}\b(?:для|если|когда|чтобы|при)\b"),
        ("choice", "advice", 1.0, r"\bпосовет\w+\b|\bпорекоменд\w+\b|\bрекомендуе\w+\b|\bстоит ли\b|\bследует ли\b|\bчто выбрать\b|\bвыбрать\b|\bлучше (?:использовать|взять|выбрать)\b"),
        ("choice", "weighing", 1.0, r"\bплюсы и минусы\b|\bпреимущества и недостатки\b|\bза и против\b|\bсравни\w*\b.{1,60}\b(?:и|с|со)\b|\bвместо\b|\bили лучше\b"),
        ("choice", "more", 0.5, r"\bчто еще\b|\bи (?:что|как|какой|какая|какие|почему|кто|когда|где|зачем)\b"),
        ("choice", "consequence", 1.0, r"\bчто (?:будет|произойдет|случится) (?:если|с|при)\b|\bпоследстви\w+\b|\bчто (?:мне |нам )?(?:нужно|потребуется|понадобится)\b"),
        ("aggregation", "whole", 1.0, r"\bо ч[её]м (?:вообще |в целом )?(?:вс[её] (?:это|эти \w+)|это вс[её])\b|\b(?:всего|всем|всему) (?:этого|этом|этому)\b|\bиз (?:этого всего|всего этого)\b|\bесли (?:взять|смотреть|посмотреть) (?:на )?(?:их |все )?(?:все|вместе|разом|целиком)\b|\bвместе взят\w+\b|\bвс(?:е|ем|ех) (?:эти |этим |этих |наши )?{units}\b"),
        ("aggregation", "contents", 1.0, r"\bчто (?:вообще |тут |здесь )*(?:можно )?(?:найти|прочитать|узнать|есть|лежит|собрано|содержится|находится|написано|описано) (?:в|на) {article}{0,3}(?:{whole}|{units})\b|\bчто (?:вообще )?(?:тут|здесь) (?:есть|лежит|собрано|описано|можно найти)\b|\b(?:какие|каких|какого рода) (?:вообще )?(?:вещи|вещей|сведения|сведений|материалы|материалов|документы|документов|информаци\w)\b|\bвид(?:ов|ы) {units}\b"),
        ("aggregation", "lessons", 0.5, r"\b(?:вынести|запомнить|усвоить|извлечь|взять) из (?:всего|этого|них|эти\w)\b|\b(?:учит|учат|научили|показывают|говорят нам)\b.{0,20}\b{units}\b"),
        ("aggregation", "summary", 1.0, r"\b(?:общее )?(?:представление|понимание|впечатление) (?:о том|обо всем|о), ?(?:что (?:лежит|есть|собрано|написано|описано) )?{article}{0,3}(?:{whole}|{units}|здесь|тут)"),
        ("aggregation", "recurrence", 1.0, r"\b(?:из раза в раз|раз за разом|по кругу|опять и опять)\b"),
        ("generalisation", "rest", 1.0, r"\b(?:связан\w{0,2}|сочета\w+|вписыва\w+|соотнос\w+|относится|пересека\w+|сцеплен\w{0,2}|влия\w+|зависит)\b(?: \w+)? (?:со? |в |на |к |от )?(?:остальн\w+|всем прочим|прочим\w?|друг\w+ (?:частями|делами|вещами|темами))\b"),
        ("generalisation", "above", 1.0, r"\bс высоты(?: птичьего полета)?\b|\bс птичьего полета\b|\bвкратце\b|\bв двух словах\b|\bв перспективе\b"),
        ("generalisation", "end", 1.0, r"\bот начала (?:и )?до конца\b|\bот а до я\b|\bот и до\b|\bразвернут\w+\b|\bво всех подробностях\b|\bполн(?:ая|ую) (?:версия|версию|история|историю)\b|\bдлинн(?:ая|ую) верси\w\b"),
        ("generalisation", "deal", 1.0, r"^(?:а |и |ну )?что за\b(?! (?:последние|это|год))|\bчто это (?:за|такое)\b|\bчто там (?:с|со|у)\b|\b(?:как обстоят|как) дела (?:с|со|у)\b|\bчто за история с\b|\b(?:к чему|в чем) (?:он |она |оно |они )?(?:причаст|замешан|участв)\w+\b|\bчем (?:он|она|они) (?:вообще )?заним\w+\b"),
        ("generalisation", "idea", 1.0, r"\bобщ(?:ее|ую|его|ей) (?:понимани|представлени|иде|картин)\w+\b|\b(?:введ|введ)\w+ (?:меня |нас )?в курс\b|\bв курс(?:е)?\b (?:дел\w? )?(?:по|насчет|про|относительно)\b|\bрасскаж\w+ (?:всю )?историю\b|\bвсе,? что (?:у нас )?(?:есть|известно|имеется|знаем) (?:по|о|об|про|насчет)\b"),
        ("generalisation", "facets", 1.0, r"[:—–-] (?:\w+ ){0,2}(?:кто|кем|что|чего|где|как|почему|когда|какие|какой|от чего)\b[^:?]{2,60}(?:,| и) (?:и )?(?:с |от |на |по )?(?:кто|кем|кого|что|чего|где|как|почему|когда|какие|какой)\b"),
    ),
}  # fmt: skip


def _made() -> tuple[Marker, ...]:
    made: list[Marker] = []
    for language, words in _ALL.items():
        shared: list[tuple[Kind, str, float, str]] = [("aggregation", *one) for one in _TEMPLATES]
        moods: list[tuple[Kind, str, float, str]] = [("choice", *one) for one in DELIBERATION[language]]
        for kind, group, weight, template in (*shared, *_OWN[language], *moods):
            pattern = re.compile(_filled(template, words))
            made.append(Marker(kind=kind, group=group, language=language, weight=weight, pattern=pattern))
    return tuple(made)


def _filled(template: str, words: _Words) -> str:
    for name in words.__slots__:
        template = template.replace(f"{{{name}}}", getattr(words, name))
    return template


@lru_cache(maxsize=1)
def markers() -> tuple[Marker, ...]:
    """All markers, in a fixed order; put together when first asked for."""
    return _made()


@lru_cache(maxsize=4096)
def of_collections(word: str) -> bool:
    """Whether a word says something of collections or of many texts together: documents, themes, main, often."""
    return any(pattern.fullmatch(fold(word)) for pattern in _collective())


@lru_cache(maxsize=1)
def _collective() -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(f"{words.whole}|{words.units}|{words.nouns}|{words.rank}|{words.quantity}")
        for words in _ALL.values()
    )


def marked(question: str) -> list[Marked]:
    """The markers of a question: of each kind and group the heaviest, the first of those alike."""
    text = fold(question[:LOOKED_AT])
    best: dict[tuple[Kind, str], Marked] = {}
    for marker in markers():
        found = marker.pattern.search(text)
        if found is None:
            continue
        key = (marker.kind, marker.group)
        before = best.get(key)
        if before is None or abs(marker.weight) > abs(before.weight):
            best[key] = Marked(
                kind=marker.kind, group=marker.group, language=marker.language, weight=marker.weight,
                text=(found[1] if marker.kind == "collection" else found[0])[:80].strip(),
            )  # fmt: skip
    return list(best.values())


def weight(found: Sequence[Marked], kind: Kind) -> float:
    """What the markers of a kind say together."""
    return sum(one.weight for one in found if one.kind == kind)
