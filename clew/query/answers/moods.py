"""The grammar of deliberation: how people ask who have something to decide, whatever it is about.

A question for a fact is asked in the indicative. Who weighs something puts it in a mood of its own: what *would* follow *if* we did, what
one *ought* to look at, which *options* there are, what to do *first*, beginning with what *we want*. Closed classes of words (modal verbs,
endings of the conditional and the subjunctive, persons) say so without any list of subjects. Texts are folded as in
`clew.query.answers.markers`, of which these are a part: (group, weight, pattern) of the kind "choice".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

DELIBERATION: Mapping[str, Sequence[tuple[str, float, str]]] = {
    "en": (
        ("hypothesis", 1.0, r"\b(?:what|who|which|where|how) (?:\w+ ){0,3}would (?:\w+ ){0,12}?(?:if|without|should)\b|\bif (?:we|i|they|one|our|the) .{2,80}\bwould\b"),
        ("hypothesis", 1.0, r"\bif (?:we|i) (?:\w+ ){0,2}(?:\w{2,}ed|were|had|lost|left|went|bought|sold|cut|let|shut|ran|gave|took|made|put)\b|\bsuppose (?:we|i|that|our|the)\b|\bwhat if\b|\bwould (?:follow|have to change|break|suffer)\b|\bwhat would (?:that|this|it) (?:do|mean|change|cost|take)\b"),
        ("plan", 1.0, r"\b(?:we|i)(?: are|'re| am|'m)? (?:(?:really|seriously|just) )?(?:want|wish|plan|planning|intend|consider|considering|thinking|hope|hoping|tempted|torn|would like|'d like)(?: of| about)? (?!(?:to )?(?:know|understand|learn|see|read|hear|find out|an?|the|all|everything)\b)\w+"),
        ("options", 1.0, r"\b(?:options|alternatives|avenues|possibilities|trade-?offs|next steps|pitfalls|best course|way forward|ways (?:to|of|could))\b"),
        ("explore", 1.0, r"(?:^|[.!?:;,] |\band |\bplease )(?:explore|investigate|examine|weigh|assess|evaluate|brainstorm|dig into|look into|think through|work through)\b"),
        ("ought", 1.0, r"\b(?:should|ought|shall) (?:we|i)\b|\bwhat (?:would|should) (?:we|i) (?:\w+ )?(?:look|check|watch|consider|do|prepare|change|try|start|begin)\b|\bwhere (?:to|do (?:we|i)|should (?:we|i)) (?:start|begin)\b"),
    ),
    "pt": (
        ("hypothesis", 1.0, r"\bse (?:[\w-]+ ){0,4}(?!(?:n|d|inter)esses?\b)\w+(?:asse|esse|isse|fosse)(?:m|mos)?\b|\b(?:seria|teria|poderia|haveria|faria|ficaria|deveria|estaria)(?:m|mos)?\b|\w{2,}riamos\b|\be se\b"),
        ("plan", 1.0, r"\b(?:quero|queremos|queriamos|queria|pretend(?:o|emos)|tenciono|tencionamos|pens(?:o|amos) em|estou a pensar|estamos a pensar|gostava|gostavamos|gostaria|estou indecis[oa]|estamos indecis[oa]s|hesito|hesitamos) (?!(?:perceber|entender|saber|conhecer|ver|ler|aprender|compreender|um|uma|o|a|os|as|tudo)\b)\w+"),
        ("options", 1.0, r"\b(?:opcoes|alternativas|hipoteses|possibilidades|saidas|caminhos|pistas|pontas soltas|proximos passos|maneiras de|formas de)\b"),
        ("explore", 1.0, r"(?:^|[.!?:;,] |\be )(?:explor[ae]|investig(?:a|ue)|examin[ae]|analis[ae]|avali[ae]|ponder[ae]|pes[ae] os|estud[ae])\b"),
        ("ought", 1.0, r"\b(?:devo|devia|deviamos|devemos|deveria|deveriamos)\b|\bpor onde (?:\w+ )?comec\w+|\bo que (?:\w+ ){0,2}(?:fazer|ponderar|verificar|rever|mudar|prever|preparar|ver primeiro)\b|\bem risco\b"),
    ),
    "es": (
        ("hypothesis", 1.0, r"\bsi (?:[\w-]+ ){0,4}\w+(?:ara|iera|ase|iese|aran|ieran|aramos|ieramos)\b|\b(?:seria|tendria|podria|habria|haria|quedaria|deberia|estaria)(?:n|mos|s)?\b|\w{2,}riamos\b|\by si\b"),
        ("plan", 1.0, r"\b(?:quiero|queremos|querria|querriamos|pretend(?:o|emos)|pienso|pensamos|estoy pensando|estamos pensando|me gustaria|nos gustaria|dudo|dudamos|estoy indecis[oa]) (?!(?:entender|saber|conocer|ver|leer|aprender|comprender|un|una|el|la|los|las|todo)\b)\w+"),
        ("options", 1.0, r"\b(?:opciones|alternativas|posibilidades|salidas|caminos|vias|pistas|proximos pasos|maneras de|formas de)\b"),
        ("explore", 1.0, r"(?:^|[.!?:;,] |\by )(?:explora|investiga|examina|analiza|evalua|sopesa|valora|estudia|busca ideas)\b"),
        ("ought", 1.0, r"\b(?:debo|debemos|deberia|deberiamos|tendria que|tendriamos que|habria que)\b|\bpor donde (?:\w+ )?(?:empez|empiez|comenz|comienz)\w+|\bque (?:\w+ ){0,2}(?:hacer|sopesar|mirar|revisar|cambiar|prever|preparar|comprobar)\b|\ben riesgo\b|\btorcerse\b"),
    ),
    "ru": (
        ("hypothesis", 1.0, r"\b(?:что|кто|как|какие|чем|куда|где) (?:\w+ ){0,3}бы\b|\bбы (?:что|как|мы|нам)\b|\bесли (?:бы|мы|вдруг|завтра)\b|\bа если\b|(?:^|[.!?] )если .{3,80}, (?:то )?(?:что|чем|где|у кого)\b"),
        ("plan", 1.0, r"\b(?:хочу|хотим|хотели бы|планиру(?:ю|ем)|собира(?:юсь|емся)|дума(?:ю|ем) (?:о|об|над)?|подумываем|намерены|решаем|сомнева(?:юсь|емся)) (?!(?:понять|узнать|знать|прочитать|разобраться|увидеть)\b)\w+"),
        ("options", 1.0, r"\b(?:варианты|вариантов|альтернатив\w*|возможности|пути|способы|версии|меры|узкое место|узкие места|подводные камни)\b"),
        ("explore", 1.0, r"(?:^|[.!?:;,] |\bи )(?:изучи|исследуй|проанализируй|оцени|взвесь|продумай|рассмотри|поищи)\w*\b"),
        ("ought", 1.0, r"(?:^|[.!?:,] (?!что)|\bи )(?:что|какие \w+|кого|куда|с чего|с какой стороны) (?:\w+ )?\w{2,}(?:ать|ить|еть|ять|йти|сти|чь)(?:ся)?\b|\bс чего начать\b|\bпод угрозой\b"),
    ),
}  # fmt: skip
