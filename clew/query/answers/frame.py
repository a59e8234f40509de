"""The frame of a question: words that ask, and say nothing of what is asked about.

What is left of a question without its frame is its subject: of "which themes dominate this collection" nothing, of "an overview
of the collection on office equipment" the office equipment. A subject that a collection does not hold is answered by silence, so
the frame is wide: a word wrongly taken for frame costs a question its subject, a word wrongly left in asks the collection for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from clew.indexer.lexical.analysis import Analyzer, fold, words
from clew.indexer.lexical.questions import MAX_CHARACTERS, AnalyzedQuestion
from clew.query.answers.markers import of_collections
from clew.query.answers.seeds import proper_words
from clew.query.intent import QUESTION_WORDS

_FRAME: dict[str, str] = {
    "en": """
        are is was were be been being have has had not no yes our your their its his her there these those
        what which who whom whose how why when where does did can could would should will may might please tell give show say says said
        describe describes described mention mentions mentioned discuss discusses discussed explain explains talk talks cover covers
        covered contain contains deal deals concern concerns regard regarding about concerning list name find know learn need see
        main key major primary principal important central dominant dominate dominates dominated recurring recurrent recur common
        commonly frequent frequently often general generally overall broad broadly typical typically usual usually whole entire
        entirety all every each any many most more much several various different diverse other others top biggest largest
        significant notable relevant prevalent prominent appear appears emerge emerges stand out
        theme themes topic topics subject subjects matter matters trend trends pattern patterns category categories takeaway takeaways
        insight insights aspect aspects point points idea ideas kind kinds type types sort sorts area areas thread threads issue issues
        overview summary summarise summarize synopsis outline survey panorama picture view context background introduction landscape
        collection corpus archive library dataset data base repository documentation document documents file files article articles
        page pages text texts report reports transcript transcripts episode episodes interview interviews paper papers record
        records note notes story stories post posts chapter chapters book books material materials source sources content contents
        discussion discussions conversation conversations presentation presentations here there together people
        information thing things something everything anything term terms way ways high level speaking
        best better recommend recommended suggest advise should need needs needed else choose choice prefer worth happen happens
        compare comparison difference differences please
        me you we they them us i he she it my mine just quite rather roughly really very too also even still only already yet ever never
        let lets help want wants wanted like try make makes made take takes taking taken go goes going went come comes coming came get
        gets got keep keeps kept put puts give gives given happen happened back around over through from into out up down off than
        then so if whether because while during before after since until again far long little lot few less some
        understand wonder suspect think thinks believe guess judging based according involve involved involves relate related
        connected surround surrounds surrounding cause causes reason reasons behind could might may must shall able possible possibly
        check look looks looking search seek figure work works working use used uses repeat repeats repeated return returns
        lesson lessons worry worries company organisation organization handbook manual guide wiki site folder anybody nobody somebody
        someone anyone one ones two first last new old good bad big small different same such kindly sum list summary short brief
        briefly detail details complete completely full fully half dozen line lines word words sentence sentences paragraph paragraphs
        group groups block blocks divide divided sort sorted split
        do us another stuff gist lot bunch rest teach teaches taught minute minutes five ten away remember carry wich whats
        perspective
        """,
    "pt": """
        são é está estão foi foram era eram ser sido sendo tem têm tinha ter não sim nosso nossa nossos nossas seu sua seus suas até já só
        também então isso isto aquilo esse essa este esta você vocês
        qual quais que quem como por porque quando onde quanto quantos quantas pode podem poderia deve favor diga mostre dizer diz dizem
        dito descreva descreve descrevem mencionar menciona mencionam mencionados citados discute discutem discutido discutidos explica
        explique fala falam falar trata tratam tratado abordar aborda abordam abordados contém conter respeito sobre acerca liste cite saber
        sabe sabemos existe existem há
        principal principais chave maior maiores importante importantes central centrais dominante dominantes dominam domina predomina
        predominam predominante predominantes recorrente recorrentes comum comuns frequente frequentes frequência frequentemente geral
        gerais geralmente todo toda todos todas inteiro inteira cada muitos vários várias diversos diversas diferentes outros mais
        relevante relevantes aparecem aparece destacam destaca
        tema temas assunto assuntos tópico tópicos tendência tendências padrão padrões categoria categorias aspecto aspectos ponto pontos
        ideia ideias tipo tipos área áreas questão questões temática temário
        panorama resumo resuma resumir síntese visão quadro contexto introdução apanhado termos forma modo maneira linhas conjunto
        acervo coleção corpus arquivo arquivos biblioteca base repositório documentação documento documentos ficheiro ficheiros artigo
        artigos página páginas texto textos relatório relatórios transcrição transcrições episódio episódios entrevista entrevistas
        registro nota notas capítulo capítulos livro livros material materiais fonte fontes conteúdo conteúdos discussões conversas
        apresentações aqui informação informações coisa coisas tudo algo
        melhor melhores recomenda recomendam recomendado sugere sugerem devo deveria deveríamos preciso precisamos precisa escolher
        eu tu ele ela nós eles elas me te lhe nos vos se já ainda só muito pouco mesmo assim aí lá cá ali quer quero querem queria perceber
        entender ajuda ajude ajudar tirar tira tiram fazer faz fazem feito farias ter vir vem vêm voltar volta voltam ficar fica dar dá
        pôr ver vê vemos olhando julgar longo desde até durante depois antes sempre nunca quase causa causas razão razões motivo trás
        origem relaciona relacionado relacionada ligado ligada rodeia envolve repete repetem repetidos lição lições manual guia wiki site
        pasta empresa organização escrito escrita novo nova velho bom mau grande pequeno mesma completo completa completamente breve
        brevemente meia meio linha linhas palavra palavras frase frases parágrafo parágrafos grupo grupos bloco blocos divide divididos
        agrupa agrupar classifica classificar grandes pequenos poucos poucas detalhe detalhes investiga investigar possível possíveis enquadramento atas reuniões
        escolha vale pena acontece aconteceria compare comparar comparação diferença diferenças além
        isto disto disso nisto nisso deste desta destes destas neste nesta nestes nestas desse dessa nesse nessa delas deles nelas neles afinal
        resto demais género encontra encontrar encontro vezes ensina ensinam reter minutos cinco dez julgar distinguem distingue corre
        mexe mexem depende dependem entra entram serve servem tenho tens tiveres houver lembrar
        """,
    "es": """
        son es está están fue fueron era eran ser sido siendo tiene tienen tenía tener ha han no sí nuestro nuestra nuestros nuestras su
        sus hasta ya sólo también entonces eso esto aquello ese esa este esta usted ustedes
        cuál cuáles qué quién quiénes cómo por porque cuándo dónde cuánto cuántos cuántas puede pueden podría debe favor diga dime muestra
        decir dice dicen dicho describe describen mencionar menciona mencionan mencionados discute discuten discutidos explica explique
        habla hablan hablar trata tratan tratado aborda abordan abordados contiene contener respecto sobre acerca lista cita saber sabe
        sabemos existe existen hay
        principal principales clave mayor mayores importante importantes central centrales dominante dominantes dominan domina predomina
        predominan recurrente recurrentes común comunes frecuente frecuentes frecuencia frecuentemente menudo general generales
        generalmente todo toda todos todas entero entera cada muchos varios varias diversos diversas diferentes distintos otros más
        relevante relevantes aparecen aparece destacan destaca
        tema temas asunto asuntos tópico tópicos tendencia tendencias patrón patrones categoría categorías aspecto aspectos punto puntos
        idea ideas tipo tipos área áreas cuestión cuestiones temática
        panorama resumen resume resumir síntesis visión cuadro contexto introducción términos forma modo manera rasgos líneas conjunto
        acervo colección corpus archivo archivos biblioteca base repositorio documentación documento documentos fichero ficheros
        artículo artículos página páginas texto textos informe informes transcripción transcripciones episodio episodios entrevista
        entrevistas registro nota notas capítulo capítulos libro libros material materiales fuente fuentes contenido contenidos
        discusiones conversaciones presentaciones aquí información cosa cosas algo
        mejor mejores recomienda recomiendan recomendado sugiere sugieren debo debería deberíamos necesito necesitamos necesita elegir
        yo tú él ella nosotros ellos ellas me te le les nos os se aún muy poco mismo así ahí allá acá allí quiere quiero quieren quería
        entender ayuda ayúdame ayudar sacar saca sacan hacer hace hacen hecho harías venir viene vienen va van volver vuelve vuelven
        quedar dar da poner ver ve vemos mirando juzgar largo desde durante después antes siempre nunca casi causa causas razón razones
        motivo detrás origen relaciona relacionado relacionada ligado ligada rodea envuelve repite repiten enseñanza enseñanzas lección
        lecciones manual guía wiki sitio carpeta empresa organización escrito escrita nuevo nueva viejo bueno malo grande pequeño misma
        media medio línea líneas palabra palabras frase frases párrafo párrafos grupo grupos bloque bloques divide divididos agrupa
        agrupar clasifica clasificar grandes pequeños pocos pocas
        completo completa completamente amplio amplia breve brevemente detalle detalles investiga investigar posible posibles actas
        reuniones podría podrían podríamos convendría
        elección vale pena conviene pasa pasaría ocurre ocurriría compara comparar comparación diferencia diferencias además
        estos estas esos esas ellas resto demás clase género encuentra encuentran encontrar veces enseña enseñan quedo minutos cinco diez
        diferencian distinguen sale toca tocan depende dependen entra entran encaja sirve sirven tengo tengas haya totalidad recordar
        """,
    "ru": """
        это был была было были быть является являются нет да не наш наша наше наши нашей нашем ваш этот эта эти этой этом этих тот та те
        у них него неё его её их там также уже только
        какой какая какое какие каких каким какими какую каком каков какова каковы что чего чему чем кто кого кому кем как почему когда
        где куда сколько можно ли есть скажи расскажи покажи опиши назови перечисли объясни говорит говорится говорят сказано описывает
        описывают описано упоминает упоминают упоминаются упоминается обсуждает обсуждают обсуждаются обсуждается рассматриваются
        рассматривается содержит содержится касается касаются относительно насчёт знать известно существует
        основной основная основное основные основных главный главная главное главные главных ключевой ключевые ключевых важный важные
        важнейшие центральный центральные преобладает преобладают преобладающие доминирует доминируют повторяется повторяются
        повторяющиеся общий общая общее общие часто чаще обычно целом целый вообще весь вся всё все всех всего всей каждый
        многие разные различные другие самый самые наиболее больше всего значимые заметные встречаются встречается
        тема темы тем темам темах тематика тенденция тенденции тенденций закономерность закономерности категория категории аспект
        аспекты вопрос вопросы вопросов сюжет сюжеты идея идеи вид виды тип типы область области направление направления
        обзор сводка резюме обобщение обобщи картина представление контекст контексте контекста введение черты чертах слова
        коллекция коллекции собрание собрании собрания корпус корпусе архив архиве библиотека библиотеке база базе хранилище
        документация документации документ документы документов документах документе файл файлы файлов файлах статья статьи статей
        страница страницы страниц текст тексты текстов текстах отчёт отчёты отчётов стенограмма стенограммы выпуск выпуски интервью
        запись записи заметка заметки глава главы книга книги материал материалы материалов материалах источник источники содержание
        беседа беседы здесь тут информация информации вещь вещи
        лучше лучший лучшая лучшее лучшие посоветуй посоветуйте порекомендуй рекомендуете стоит следует нужно нужен нужна нужны ещё
        я ты он она оно мы вы они мне тебе нам вам меня тебя нас вас себя свой своя свои очень совсем просто почти даже ещё опять снова
        хочу хочет хотим понять помоги помогите помочь разобраться разберись решить сделай сделать делать выяснить найти посмотреть
        смотри подумай думаю кажется могло может могут мог можем должно должен надо причина причины причин почему-то связано связан
        связана связаны занят зависит участвует повторяют повторить урок уроки выжимка выжимку итог итоги кратко подробно целиком
        полностью обо всём курс дела насчёт справочник справочнике руководство сайт папка компания компании организация отдел отделы
        разбей разбить группа группы группам блок блоки посвящён посвящены раздел разделы крупный крупные мелкие пол полстраницы строк слов
        абзац абзаца фраз предложений пара пять десять
        отделам новый новая новые старый хороший плохой большой маленький один одна одно одни шаг шагам место
        выбрать выбор подойдёт подходит будет произойдёт случится сравни сравните сравнение разница отличие отличия пожалуйста
        дай дайте ну и всем всему остальное остальным остальных остальной прочим лежит лежат найти минут учит учат вынести запомнить взять взятые
        отличаются отличается различаются работает работают нужно общем понимание такой такая такое занимается занимаются введи изложи
        раз судя разом вместе
        """,
}


@lru_cache(maxsize=8)
def _tokens(languages: tuple[str, ...]) -> frozenset[str]:
    found: set[str] = set()
    for language, text in _FRAME.items():
        for code in dict.fromkeys((language, *languages)):
            analyzer = Analyzer(code)
            found.update(token for word in text.split() for token in analyzer.tokens(word))
    return frozenset(found)


def subject_terms(question: AnalyzedQuestion, languages: Sequence[str]) -> list[int]:
    """Positions of the terms of a question that are no frame: what it asks about. `languages`: codes of the index."""
    frame = _tokens(tuple(sorted(languages)))
    idle = _stop_words(words(question.text))
    return [
        at
        for at, term in enumerate(question.terms)
        if frame.isdisjoint(term.variants) and term.word not in idle and not of_collections(term.word)
    ]


#: What leads to a subject. Behind a noun of collections Russian needs none: "тенденции продаж".
_LEADING = frozenset(
    """
    about on regarding concerning of for in with around towards against between among at under
    sobre de do da dos das em no na nos nas num numa com para entre acerca quanto del en con
    о об обо про в во с со по для при на у от из насчет относительно между к над
    """.split()  # noqa: SIM905 - four lines instead of sixty
)


#: Behind these nothing is led to any more: "у нас ломается", "among us", "por aqui".
_CLOSING = frozenset(
    """
    us me you them here there nos nós vós mim ti si eles elas aqui aquí ahí allí ali isto isso aquilo esto eso ello nosotros ellos ellas
    нас нам нами вас вам мне меня тебя них ним ними неё нее него здесь тут это этого этом
    """.split()  # noqa: SIM905 - as above
)
MANY = 3


def led_to(question: AnalyzedQuestion, terms: Sequence[int]) -> list[int]:
    """Of the terms of a question that asks for everything, those that name a subject of its own.

    Where a whole collection is meant, a word that is no frame may be a verb that no list holds ("which themes run through it"). A
    subject is led to ("about the helicopter fleet", "trends in cryptocurrency", "тенденции продаж шуб") or is a proper name. Where
    nothing is, `MANY` words or more are a subject all the same: so many are no verb that was forgotten.
    """
    left = {question.terms[at].word: at for at in terms}
    proper = proper_words(question.text)
    found: dict[int, None] = {}
    led = False
    for word in words(question.text):
        if word in left:
            if led or word in proper:
                found[left[word]] = None
                led = True
            continue
        cyrillic = "а" <= word[0] <= "я"
        asking = word in QUESTION_WORDS  # "in what", "en qué": that leads to the question, not to a subject
        through = led and len(word) <= 4 and not asking and word not in _CLOSING
        led = word in _LEADING or through or (cyrillic and of_collections(word))
    return list(found) if found or len(terms) < MANY else list(terms)


def _stop_words(asked: Sequence[str]) -> frozenset[str]:
    """The stop words of a question by the language that has most of them: an index need not hold a question's language."""
    idle = [frozenset(one) for one in _idle(asked).values()]
    return max(idle, key=len) if max(map(len, idle)) >= 2 else frozenset()


def _idle(asked: Sequence[str]) -> dict[str, list[str]]:
    return {code: [word for word in asked if Analyzer(code).stem(word) is None] for code in _FRAME}


@lru_cache(maxsize=1)
def _asking() -> dict[str, frozenset[str]]:
    return {code: frozenset(text.split()) for code, text in _FRAME.items()}


def languages_of(text: str) -> tuple[str, ...]:
    """What a question may be asked in, of the languages that frames are known of: by its script, stop words and frame; () for none.

    Five words tell a statistical detector too little; what they are put together with tells enough (1,000 English, Portuguese and Russian
    questions: none taken for another language of these, 4 % left open, those of SciFact apart, which are no questions).
    """
    asked = words(fold(text[:MAX_CHARACTERS]))
    idle = _idle(asked)
    told = {code: len(idle[code]) + sum(word in frame for word in asked) for code, frame in _asking().items()}
    told["ru"] += any("а" <= word[0] <= "я" for word in asked)
    most = max(told.values())
    return tuple(code for code, count in told.items() if count == most) if most else ()
