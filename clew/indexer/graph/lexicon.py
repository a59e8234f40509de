"""What the rules know of each language: ordinary words, words that join names, and words that tell what a name names.

The ordinary words are those written with a small letter nearly always (four times in five and more) in running text; a name that
begins a sentence with one of them begins behind it. All lists are in lower case.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files


def word_set(text: str) -> frozenset[str]:
    """Words of a text, parted by white space."""
    return frozenset(text.split())


@dataclass(frozen=True, kw_only=True, slots=True)
class Lexicon:
    """One language's lists."""

    common: frozenset[str]  # ordinary words
    joins: frozenset[str]  # small words inside names
    articles: frozenset[str]


_JOINS = {
    "en": word_set("of the for and de la von van der del di du da"),
    "pt": word_set("de da do das dos e d'"),
    "es": word_set("de del la las los y"),
    "ru": word_set("и по"),
}
_ARTICLES = {
    "en": word_set("the a an this these its their our your my his her"),
    "pt": word_set("o a os as um uma uns umas no na nos nas do da dos das ao à pelo pela este esta esse essa cada"),
    "es": word_set("el la los las un una unos unas lo al del este esta cada"),
    "ru": word_set("этот эта это эти каждый каждая"),
}
LANGUAGES = tuple(_JOINS)


@cache
def lexicon(language: str | None) -> Lexicon:
    """The lists of a language; of English, and the neutral ones, where there are none."""
    code = language if language in _JOINS else "en"
    words = set[str]()
    # English words stand in texts of every language; theirs do not stand in English ones.
    for one in {code, "en"}:
        words |= set((files("clew.indexer.graph") / "words" / f"{one}.txt").read_text("utf-8").split())
    return Lexicon(
        common=frozenset(words | _COMMON_EVERYWHERE), joins=_JOINS[code], articles=_ARTICLES[code] | _ARTICLES["en"]
    )


_COMMON_EVERYWHERE = word_set(
    """it they we he she you this that these those there here what who whom whose which why how when where is are was were be been
    do does did have has had not and or but if so as at by from in into of off on out over to up with us me him her them my your our
    their its no nor any all both each every some such than then too very can will would could should may might must shall
    aaa e é são foi ser está não se que qual quais quem quando onde como por para com sem sob sobre entre até mas ou nem também já ainda
    isto isso aquilo ele ela eles elas seu sua seus suas este esta esses essas aquele aquela todo toda todos todas assim então pois
    и в на не но а что это как он она они мы вы я его её их ее все всё так же уже еще ещё или если когда где кто при по из за для от до
    i i'm i'll i've i'd it's that's don't can't rt lol omg wtf lmao haha ok okay yes yeah no oh hey hi hello thanks thank please wow
    new best big good great happy watch watching check come go get got let love need see just today tonight tomorrow yesterday
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october
    november december mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec am pm est pst gmt utc
    mr mrs ms dr st vs via re fw fyi faq todo note tip warning caution important example examples figure table section chapter
    janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro segunda-feira terça-feira
    quarta-feira quinta-feira sexta-feira sábado domingo понедельник вторник среда четверг пятница суббота воскресенье
    января февраля марта апреля мая июня июля августа сентября октября ноября декабря"""
)

#: Titles in front of a person's name; they are not part of it.
HONORIFICS = word_set(
    """mr mrs ms miss dr prof professor sir lord lady captain capt gen colonel col sergeant sgt lieutenant lt president
    senator sen governor gov mayor minister judge justice king queen prince princess pope saint rev reverend coach chairman ceo
    sr sra srta dom dona ministro ministra min des desembargador desembargadora juiz juíza relator relatora rel deputado deputada
    senador senadora presidente governador governadora prefeito prefeita doutor doutora dra professora advogado advogada
    señor señora don doña rey reina procurador procuradora delegado sargento capitão coronel general
    президент министр премьер-министр губернатор мэр депутат сенатор председатель директор генерал полковник майор господин г-н
    доктор профессор академик режиссер режиссёр писатель певец певица актер актёр актриса глава"""
)

#: Those that make one name of two ("Captain Ahab"); offices are words of other names, too ("председатель SIG Docs").
PERSONAL_TITLES = HONORIFICS - word_set(
    """president minister judge justice coach chairman mayor governor ministro ministra relator relatora presidente juiz juíza general
    procurador procuradora президент министр председатель директор генерал глава режиссёр режиссер депутат saint don min rel"""
)

#: A word in a name that says it is an organisation.
ORGANISATION = word_set(
    """university institute institution department ministry inc corp corporation ltd llc plc gmbh co company foundation association
    committee commission council agency bank group union party club society team school college church court police bureau
    federation league press news times magazine records band orchestra museum hospital centre center army navy force airlines
    airways motors studios entertainment networks network systems technologies labs laboratories consortium alliance
    tribunal ministério câmara turma conselho supremo superior secretaria instituto universidade banco partido companhia associação
    federação procuradoria polícia departamento agência fundação comissão prefeitura assembleia assembléia senado congresso plenário
    corte justiça seção vara juizado defensoria receita exército marinha aeronáutica sindicato empresa faculdade escola hospital
    igreja clube caixa infraestrutura auditoria promotoria juízo coordenação diretoria superintendência gabinete ltda s/a s.a.
    ministerio universidad fundación asociación comisión consejo corte academia colegio compañía sociedad
    министерство суд банк университет институт компания партия совет дума агентство комитет ооо оао зао пао фонд академия школа
    правительство парламент корпорация союз ассоциация федерация клуб прокуратура полиция мвд театр газета"""
)

#: A word in a name that says it is a place.
PLACE = word_set(
    """city river mountain mount lake street st road rd avenue ave county island islands park airport bay beach hills hill valley bridge
    square station coast province state town village district desert ocean sea peninsula north south east west
    rua avenida av cidade estado município municipio comarca rio praia fazenda bairro distrito praça serra vila região rodovia
    calle ciudad río provincia isla lago
    область край район улица площадь город река озеро республика округ проспект село остров"""
)

#: A word in a name that says it is a norm.
LAW = word_set(
    "lei decreto constituição código resolução portaria act bill regulation directive treaty ley закон кодекс конституция указ"
)

#: Places that everybody knows, so that one word is enough.
GAZETTEER = word_set(
    """america usa us uk eu england britain scotland ireland wales france germany italy spain portugal russia china japan india brazil
    canada mexico australia israel iran iraq syria turkey egypt africa europe asia ukraine poland greece sweden norway finland
    denmark netherlands belgium switzerland austria korea vietnam thailand pakistan afghanistan argentina chile peru colombia cuba
    nigeria kenya ghana london paris berlin rome madrid moscow tokyo beijing sydney toronto chicago boston seattle nyc la miami
    dallas houston austin atlanta philadelphia washington california texas florida ohio hawaii arizona nevada vegas brooklyn
    manhattan detroit denver portland manchester liverpool dublin amsterdam vienna prague dubai mumbai delhi singapore
    brasil brasília portugal lisboa espanha frança alemanha itália inglaterra paraná bahia pernambuco ceará goiás amazonas acre
    maranhão santos curitiba recife salvador fortaleza manaus belém londrina maringá minas uruguai méxico españa
    россия россии россию рф сша москва москвы москве украина украины украине германия германии франция франции китай китая япония
    англия великобритания великобритании европа европы азия америка петербург санкт-петербург киев киева грузия грузии израиль
    польша польши италия италии испания индия белоруссия беларусь казахстан чечня ленинград сибирь урал крым лондон париж берлин"""
)

FIRST_NAMES = word_set(
    """james john robert michael william david richard joseph thomas charles christopher daniel matthew anthony mark donald steven paul
    andrew joshua kenneth kevin brian george edward ronald timothy jason jeffrey ryan jacob gary nicholas eric jonathan stephen
    larry justin scott brandon benjamin samuel gregory frank alexander raymond patrick jack dennis jerry tyler aaron jose adam
    henry nathan douglas zachary peter kyle walter ethan jeremy harold keith christian roger noah gerald carl terry sean austin
    arthur lawrence jesse dylan bryan joe jordan billy bruce albert willie gabriel logan alan juan wayne roy ralph randy eugene
    vincent russell elijah louis bobby philip johnny mary patricia jennifer linda elizabeth barbara susan jessica sarah karen nancy
    lisa betty margaret sandra ashley kimberly emily donna michelle dorothy carol amanda melissa deborah stephanie rebecca sharon
    laura cynthia kathleen amy shirley angela helen anna brenda pamela nicole emma samantha katherine christine debra rachel
    catherine carolyn janet ruth maria heather diane virginia julie joyce victoria olivia kelly christina lauren joan evelyn judith
    megan cheryl andrea hannah jacqueline martha gloria teresa sara madison frances kathryn janice jean alice abigail sophia tom
    jim bob bill mike dave steve chris matt dan ben sam max tim nick alex tony jimmy kate jane lady taylor harry lindsay justin
    josé joão antônio francisco carlos paulo pedro lucas luiz luís marcos gabriel rafael marcelo bruno eduardo felipe raimundo
    rodrigo manoel mateus andré fernando fábio leonardo gustavo guilherme leandro tiago anderson ricardo márcio jorge sebastião
    alexandre roberto edson diego vitor sérgio cláudio ana francisca antônia adriana juliana márcia fernanda patrícia aline sandra
    camila amanda bruna jéssica letícia júlia luciana vanessa mariana gabriela vera vitória larissa cláudia beatriz rita luana sônia
    renata eliane gilmar celso rosa cármen edson dias marco teori luis jesús miguel ángel javier manuel alejandro
    александр сергей владимир андрей алексей дмитрий михаил николай иван юрий виктор евгений анатолий борис игорь олег виталий
    валерий павел константин василий максим роман григорий леонид станислав петр пётр антон илья кирилл денис артем артём вадим
    анна мария елена ольга татьяна наталья ирина светлана екатерина юлия людмила галина надежда валентина марина любовь дарья"""
)
