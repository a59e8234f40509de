// What the page says, in three languages. {name} is filled in; a plural is a set of forms by Intl.PluralRules.

const en = {
  skip: "Skip to content", nav: "Views", search: "Search", ask: "Ask", status: "Status", collection: "Collection", language: "Language",
  dark: "Dark mode", forget: "Forget the API key",
  question: "Search", placeholder: "Words, names, or a question", go: "Search", clear: "Clear",
  keys: "to search", keysMove: "to move", keysOpen: "to open", keysBack: "to go back",
  passages: { one: "{n} passage", other: "{n} passages" }, firstPassages: "The first {n} passages", inTime: "{n} ms", morePassages: "More passages",
  noPassages: "Nothing found.", noPassagesDetail: "No passage matches these words and filters.", dropFilters: "Remove all filters",
  unsure: "Nothing here seems to answer this.", unsureDetail: "These passages come nearest.",
  degraded: "Part of the search is missing or incomplete", files: { one: "{n} file", other: "{n} files" }, moreFiles: "More files",
  results: "Results", allFiles: "Files", hello: "Follow the thread",
  helloDetail: "Search by meaning, by words and by names at once. Links between the files lead on from the best passages.",
  filters: "Filters", removeFilter: "Remove the filter {value}", filterLabel: "Filter", filterHint: "size:>1MB", add: "Add",
  filterWrong: "This filter cannot be read", type: "Type", lang: "Language", folder: "Folder", tag: "Tag", more: "More", fewer: "Fewer",
  links: "Links", follow: "Follow links", followNone: "not at all", followOne: "one step", followTwo: "two steps",
  dense: "Dense", bm25: "BM25", tfidf: "TF-IDF", attributes: "Attributes",
  denseHelp: "nearness in meaning", bm25Help: "words, weighed by rarity and length", tfidfHelp: "words, by frequency", attributesHelp: "names, folders and tags",
  score: "Score", scores: "Scores", raw: "raw {raw}, weight {weight}", rankOn: "rank {n} on this path", notCandidate: "not among the candidates of this path",
  trail: "How links led here", linkedFrom: "is linked from here", page: "page {n}", line: "line {n}", slide: "slide {n}", sheet: "sheet {n}", cell: "cell {n}", entry: "{n}",
  record: "record {n}", open: "Open the original", back: "Back to the results", text: "Text", picture: "Links",
  earlier: "Earlier text", later: "Later text", cited: "The passage that was found", noText: "The index holds no text of this file.",
  out: { one: "Links to {n}", other: "Links to {n}" }, in: { one: "Linked from {n}", other: "Linked from {n}" }, noOut: "Links to nothing", noIn: "Linked from nowhere",
  dangling: "leads nowhere", external: "elsewhere", times: { one: "{n} link", other: "{n} links" }, neighbourhood: "Links around {name}", moreLinks: "More links",
  inPicture: { one: "and {n} more, in the list", other: "and {n} more, in the list" },
  askLabel: "Question", askPlaceholder: "A question to the whole collection", askGo: "Ask", asking: "Reading…", route: "Route", auto: "automatic", local: "local", mixed: "mixed",
  global: "global", drift: "drift", none: "none", answer: "Answer", sources: "Sources", source: "Source {n}", abstained: "No answer is given.",
  abstainedDetail: "Nothing in this collection supports one.", askHello: "An answer, and where it stands",
  askHelloDetail: "Every statement carries its source. The route says how it was found: in passages, along links, or over the reports of the graph.",
  noAsk: "This service does not answer questions; search does.", followUps: "Followed up", cost: "Cost", calls: { one: "{n} model call", other: "{n} model calls" },
  context: "{n} characters read", reports: { one: "{n} report used", other: "{n} reports used" }, considered: { one: "{n} community considered", other: "{n} communities considered" },
  freshness: "Freshness", snapshot: "Snapshot", published: "Published", serving: "Served", loading: "Snapshot {n} is being loaded", current: "up to date", upkeep: "Upkeep", phase: "State",
  commits: "Snapshots published", events: "Changes waiting", delay: "From a change to searchable", failures: "Failures in a row", notHere: "This service answers and does not index.",
  contents: "Contents", documents: "Documents", passagesLabel: "Passages", vectors: "With vectors", filesLabel: "Files", linksLabel: "Links", size: "Size of the index", embedder: "Embedder", languages: "Languages",
  unknown: "unknown", indexed: "indexed", failed: "failed", skipped: "skipped", resolved: "resolved", danglingState: "dangling", externalState: "external",
  ledger: "Errors", noErrors: "Every file could be read.", path: "File", stage: "Stage", reason: "Reason", attempts: "Attempts", next: "Next try", moreErrors: "More errors",
  snapshots: "Snapshots", snapshotsHidden: "Not shown to this key.", pins: "Pinned as", refresh: "Look at everything again", refreshing: "Asked for.", live: "live",
  "phase.starting": "starting", "phase.waiting for its turn": "waiting for its turn", "phase.indexing": "indexing", "phase.watching": "watching", "phase.failing": "failing", "phase.stopped": "stopped",
  "stage.Starting": "Starting", "stage.Listing": "Looking at files", "stage.Reading": "Reading", "stage.Embedding": "Making vectors", "stage.Resolving links": "Resolving links", "stage.Weighing links": "Weighing links", "stage.Reading for the graph": "Reading for the graph", "stage.Embedding names": "Vectors of names", "stage.Resolving names": "Telling names apart", "stage.Relating entities": "Relating entities", "stage.Grouping entities": "Grouping entities", "stage.Writing reports": "Writing reports", doneOf: "{done} of {total}",
  keyTitle: "This service asks for an API key", keyLabel: "API key", keyHint: "It is kept in this tab, until it is closed.", keyWrong: "This key was not accepted.", use: "Use it", cancel: "Cancel",
  failedTitle: "That did not work", offline: "The service does not answer. It may be starting again.", retry: "Try again", loadingText: "Loading", notReady: "The index is being built", notReadyDetail: "The first snapshot is not there yet. This page looks again by itself.",
  noCollections: "There is no collection to be seen with this key.", noDocument: "No such document",
};

const pt = {
  skip: "Ir para o conteúdo", nav: "Vistas", search: "Pesquisa", ask: "Pergunta", status: "Estado", collection: "Coleção", language: "Idioma",
  dark: "Modo escuro", forget: "Esquecer a chave de API",
  question: "Pesquisa", placeholder: "Palavras, nomes ou uma pergunta", go: "Pesquisar", clear: "Limpar",
  keys: "para pesquisar", keysMove: "para percorrer", keysOpen: "para abrir", keysBack: "para voltar",
  passages: { one: "{n} trecho", many: "{n} trechos", other: "{n} trechos" }, firstPassages: "Os primeiros {n} trechos", inTime: "{n} ms", morePassages: "Mais trechos",
  noPassages: "Nada encontrado.", noPassagesDetail: "Nenhum trecho corresponde a estas palavras e filtros.", dropFilters: "Remover todos os filtros",
  unsure: "Nada aqui parece responder a isto.", unsureDetail: "Estes são os trechos mais próximos.",
  degraded: "Parte da pesquisa falta ou está incompleta", files: { one: "{n} ficheiro", many: "{n} ficheiros", other: "{n} ficheiros" }, moreFiles: "Mais ficheiros",
  results: "Resultados", allFiles: "Ficheiros", hello: "Siga o fio",
  helloDetail: "Pesquise por sentido, por palavras e por nomes ao mesmo tempo. As ligações entre os ficheiros levam adiante a partir dos melhores trechos.",
  filters: "Filtros", removeFilter: "Remover o filtro {value}", filterLabel: "Filtro", filterHint: "size:>1MB", add: "Juntar",
  filterWrong: "Não é possível ler este filtro", type: "Tipo", lang: "Idioma", folder: "Pasta", tag: "Etiqueta", more: "Mais", fewer: "Menos",
  links: "Ligações", follow: "Seguir ligações", followNone: "não", followOne: "um passo", followTwo: "dois passos",
  dense: "Denso", bm25: "BM25", tfidf: "TF-IDF", attributes: "Atributos",
  denseHelp: "proximidade de sentido", bm25Help: "palavras, pesadas por raridade e comprimento", tfidfHelp: "palavras, por frequência", attributesHelp: "nomes, pastas e etiquetas",
  score: "Pontuação", scores: "Pontuações", raw: "bruto {raw}, peso {weight}", rankOn: "posição {n} neste caminho", notCandidate: "não está entre os candidatos deste caminho",
  trail: "Como as ligações levaram até aqui", linkedFrom: "tem ligação daqui", page: "página {n}", line: "linha {n}", slide: "diapositivo {n}", sheet: "folha {n}", cell: "célula {n}", entry: "{n}",
  record: "registo {n}", open: "Abrir o original", back: "Voltar aos resultados", text: "Texto", picture: "Ligações",
  earlier: "Texto anterior", later: "Texto seguinte", cited: "O trecho encontrado", noText: "O índice não tem texto deste ficheiro.",
  out: { one: "Liga a {n}", many: "Liga a {n}", other: "Liga a {n}" }, in: { one: "Ligado de {n}", many: "Ligado de {n}", other: "Ligado de {n}" }, noOut: "Não liga a nada", noIn: "Nada liga para aqui",
  dangling: "não leva a lado nenhum", external: "exterior", times: { one: "{n} ligação", many: "{n} ligações", other: "{n} ligações" }, neighbourhood: "Ligações à volta de {name}", moreLinks: "Mais ligações",
  inPicture: { one: "e mais {n}, na lista", many: "e mais {n}, na lista", other: "e mais {n}, na lista" },
  askLabel: "Pergunta", askPlaceholder: "Uma pergunta a toda a coleção", askGo: "Perguntar", asking: "A ler…", route: "Via", auto: "automática", local: "local", mixed: "mista",
  global: "global", drift: "drift", none: "nenhuma", answer: "Resposta", sources: "Fontes", source: "Fonte {n}", abstained: "Não há resposta.",
  abstainedDetail: "Nada nesta coleção a sustenta.", askHello: "Uma resposta, e onde está escrita",
  askHelloDetail: "Cada afirmação traz a sua fonte. A via diz como foi encontrada: em trechos, ao longo de ligações ou nos relatórios do grafo.",
  noAsk: "Este serviço não responde a perguntas; a pesquisa sim.", followUps: "Perguntas seguintes", cost: "Custo", calls: { one: "{n} chamada ao modelo", many: "{n} chamadas ao modelo", other: "{n} chamadas ao modelo" },
  context: "{n} caracteres lidos", reports: { one: "{n} relatório usado", many: "{n} relatórios usados", other: "{n} relatórios usados" }, considered: { one: "{n} comunidade considerada", many: "{n} comunidades consideradas", other: "{n} comunidades consideradas" },
  freshness: "Atualidade", snapshot: "Instantâneo", published: "Publicado", serving: "Servido", loading: "O instantâneo {n} está a ser carregado", current: "atualizado", upkeep: "Manutenção", phase: "Estado",
  commits: "Instantâneos publicados", events: "Alterações em espera", delay: "Da alteração à pesquisa", failures: "Falhas seguidas", notHere: "Este serviço responde e não indexa.",
  contents: "Conteúdo", documents: "Documentos", passagesLabel: "Trechos", vectors: "Com vetores", filesLabel: "Ficheiros", linksLabel: "Ligações", size: "Tamanho do índice", embedder: "Modelo de vetores", languages: "Idiomas",
  unknown: "desconhecido", indexed: "indexados", failed: "falhados", skipped: "omitidos", resolved: "resolvidas", danglingState: "sem destino", externalState: "exteriores",
  ledger: "Erros", noErrors: "Todos os ficheiros puderam ser lidos.", path: "Ficheiro", stage: "Fase", reason: "Motivo", attempts: "Tentativas", next: "Próxima tentativa", moreErrors: "Mais erros",
  snapshots: "Instantâneos", snapshotsHidden: "Não são mostrados a esta chave.", pins: "Fixado como", refresh: "Ver tudo de novo", refreshing: "Pedido feito.", live: "ao vivo",
  "phase.starting": "a começar", "phase.waiting for its turn": "à espera da sua vez", "phase.indexing": "a indexar", "phase.watching": "a observar", "phase.failing": "com falhas", "phase.stopped": "parado",
  "stage.Starting": "A começar", "stage.Listing": "A ver os ficheiros", "stage.Reading": "A ler", "stage.Embedding": "A criar vetores", "stage.Resolving links": "A seguir as ligações", "stage.Weighing links": "A pesar as ligações", "stage.Reading for the graph": "A ler para o grafo", "stage.Embedding names": "Vetores dos nomes", "stage.Resolving names": "A distinguir os nomes", "stage.Relating entities": "A relacionar as entidades", "stage.Grouping entities": "A agrupar as entidades", "stage.Writing reports": "A escrever os relatórios", doneOf: "{done} de {total}",
  keyTitle: "Este serviço pede uma chave de API", keyLabel: "Chave de API", keyHint: "Fica neste separador até ser fechado.", keyWrong: "Esta chave não foi aceite.", use: "Usar", cancel: "Cancelar",
  failedTitle: "Isso não resultou", offline: "O serviço não responde. Pode estar a recomeçar.", retry: "Tentar de novo", loadingText: "A carregar", notReady: "O índice está a ser construído", notReadyDetail: "Ainda não há um primeiro instantâneo. Esta página volta a ver por si.",
  noCollections: "Não há nenhuma coleção visível com esta chave.", noDocument: "Esse documento não existe",
};

const ru = {
  skip: "К содержанию", nav: "Разделы", search: "Поиск", ask: "Вопрос", status: "Состояние", collection: "Коллекция", language: "Язык",
  dark: "Тёмная тема", forget: "Забыть ключ API",
  question: "Поиск", placeholder: "Слова, имена или вопрос", go: "Искать", clear: "Очистить",
  keys: "к поиску", keysMove: "по списку", keysOpen: "открыть", keysBack: "назад",
  passages: { one: "{n} отрывок", few: "{n} отрывка", many: "{n} отрывков", other: "{n} отрывка" }, firstPassages: "Первые {n} отрывков", inTime: "{n} мс", morePassages: "Ещё отрывки",
  noPassages: "Ничего не найдено.", noPassagesDetail: "Этим словам и фильтрам не отвечает ни один отрывок.", dropFilters: "Убрать все фильтры",
  unsure: "Похоже, ответа на это здесь нет.", unsureDetail: "Вот самые близкие отрывки.",
  degraded: "Часть поиска недоступна или неполна", files: { one: "{n} файл", few: "{n} файла", many: "{n} файлов", other: "{n} файла" }, moreFiles: "Ещё файлы",
  results: "Результаты", allFiles: "Файлы", hello: "Следуйте за нитью",
  helloDetail: "Поиск сразу по смыслу, по словам и по именам. От лучших отрывков ведут дальше ссылки между файлами.",
  filters: "Фильтры", removeFilter: "Убрать фильтр {value}", filterLabel: "Фильтр", filterHint: "size:>1MB", add: "Добавить",
  filterWrong: "Этот фильтр не читается", type: "Тип", lang: "Язык", folder: "Папка", tag: "Метка", more: "Ещё", fewer: "Меньше",
  links: "Ссылки", follow: "Идти по ссылкам", followNone: "нет", followOne: "один шаг", followTwo: "два шага",
  dense: "Векторы", bm25: "BM25", tfidf: "TF-IDF", attributes: "Атрибуты",
  denseHelp: "близость по смыслу", bm25Help: "слова с учётом редкости и длины", tfidfHelp: "слова по частоте", attributesHelp: "имена, папки и метки",
  score: "Оценка", scores: "Оценки", raw: "исходная {raw}, вес {weight}", rankOn: "место {n} на этом пути", notCandidate: "не среди кандидатов этого пути",
  trail: "Как сюда привели ссылки", linkedFrom: "сюда ведёт ссылка отсюда", page: "страница {n}", line: "строка {n}", slide: "слайд {n}", sheet: "лист {n}", cell: "ячейка {n}", entry: "{n}",
  record: "запись {n}", open: "Открыть оригинал", back: "К результатам", text: "Текст", picture: "Ссылки",
  earlier: "Текст выше", later: "Текст ниже", cited: "Найденный отрывок", noText: "В индексе нет текста этого файла.",
  out: { one: "Ссылается на {n}", few: "Ссылается на {n}", many: "Ссылается на {n}", other: "Ссылается на {n}" }, in: { one: "Ссылаются из {n}", few: "Ссылаются из {n}", many: "Ссылаются из {n}", other: "Ссылаются из {n}" }, noOut: "Ни на что не ссылается", noIn: "Никто не ссылается",
  dangling: "никуда не ведёт", external: "наружу", times: { one: "{n} ссылка", few: "{n} ссылки", many: "{n} ссылок", other: "{n} ссылки" }, neighbourhood: "Ссылки вокруг {name}", moreLinks: "Ещё ссылки",
  inPicture: { one: "и ещё {n} в списке", few: "и ещё {n} в списке", many: "и ещё {n} в списке", other: "и ещё {n} в списке" },
  askLabel: "Вопрос", askPlaceholder: "Вопрос ко всей коллекции", askGo: "Спросить", asking: "Читаю…", route: "Путь", auto: "автоматически", local: "локальный", mixed: "смешанный",
  global: "глобальный", drift: "drift", none: "нет", answer: "Ответ", sources: "Источники", source: "Источник {n}", abstained: "Ответа нет.",
  abstainedDetail: "В этой коллекции его ничто не подтверждает.", askHello: "Ответ и место, где он написан",
  askHelloDetail: "У каждого утверждения есть источник. Путь говорит, как ответ найден: в отрывках, по ссылкам или в отчётах графа.",
  noAsk: "Эта служба на вопросы не отвечает; поиск работает.", followUps: "Уточняющие вопросы", cost: "Стоимость", calls: { one: "{n} вызов модели", few: "{n} вызова модели", many: "{n} вызовов модели", other: "{n} вызова модели" },
  context: "прочитано знаков: {n}", reports: { one: "использован {n} отчёт", few: "использовано {n} отчёта", many: "использовано {n} отчётов", other: "использовано {n} отчёта" }, considered: { one: "рассмотрено {n} сообщество", few: "рассмотрено {n} сообщества", many: "рассмотрено {n} сообществ", other: "рассмотрено {n} сообщества" },
  freshness: "Свежесть", snapshot: "Снимок", published: "Опубликован", serving: "Отдаётся", loading: "Загружается снимок {n}", current: "актуален", upkeep: "Обновление", phase: "Состояние",
  commits: "Опубликовано снимков", events: "Изменений в очереди", delay: "От изменения до поиска", failures: "Сбоев подряд", notHere: "Эта служба отвечает, но не индексирует.",
  contents: "Содержимое", documents: "Документы", passagesLabel: "Отрывки", vectors: "С векторами", filesLabel: "Файлы", linksLabel: "Ссылки", size: "Размер индекса", embedder: "Модель векторов", languages: "Языки",
  unknown: "неизвестно", indexed: "в индексе", failed: "с ошибкой", skipped: "пропущено", resolved: "ведут к файлам", danglingState: "никуда", externalState: "наружу",
  ledger: "Ошибки", noErrors: "Прочитаны все файлы.", path: "Файл", stage: "Этап", reason: "Причина", attempts: "Попытки", next: "Следующая попытка", moreErrors: "Ещё ошибки",
  snapshots: "Снимки", snapshotsHidden: "Этому ключу не показываются.", pins: "Закреплён как", refresh: "Просмотреть всё заново", refreshing: "Запрошено.", live: "вживую",
  "phase.starting": "запускается", "phase.waiting for its turn": "ждёт очереди", "phase.indexing": "индексирует", "phase.watching": "следит", "phase.failing": "сбои", "phase.stopped": "остановлено",
  "stage.Starting": "Начало", "stage.Listing": "Просмотр файлов", "stage.Reading": "Чтение", "stage.Embedding": "Создание векторов", "stage.Resolving links": "Разбор ссылок", "stage.Weighing links": "Взвешивание ссылок", "stage.Reading for the graph": "Чтение для графа", "stage.Embedding names": "Векторы имён", "stage.Resolving names": "Различение имён", "stage.Relating entities": "Связи сущностей", "stage.Grouping entities": "Группы сущностей", "stage.Writing reports": "Составление отчётов", doneOf: "{done} из {total}",
  keyTitle: "Эта служба просит ключ API", keyLabel: "Ключ API", keyHint: "Он хранится в этой вкладке, пока она открыта.", keyWrong: "Этот ключ не принят.", use: "Использовать", cancel: "Отмена",
  failedTitle: "Не получилось", offline: "Служба не отвечает. Возможно, она перезапускается.", retry: "Повторить", loadingText: "Загрузка", notReady: "Индекс строится", notReadyDetail: "Первого снимка ещё нет. Страница проверит сама.",
  noCollections: "С этим ключом не видно ни одной коллекции.", noDocument: "Такого документа нет",
};

export const LANGUAGES = { en, pt, ru };

function chosen() {
  let stored = null;
  try { stored = localStorage.getItem("clew-language"); } catch { /* then the browser's languages decide */ }
  const wanted = [stored, ...(navigator.languages ?? [navigator.language])].map((tag) => (tag ?? "").slice(0, 2).toLowerCase());
  return wanted.find((tag) => tag in LANGUAGES) ?? "en";
}

export let language = chosen();
let plurals = new Intl.PluralRules(language);
let region = (navigator.languages ?? []).find((tag) => tag.slice(0, 2) === language) ?? language;

export function speak(tag) {
  language = tag in LANGUAGES ? tag : "en";
  plurals = new Intl.PluralRules(language);
  region = (navigator.languages ?? []).find((one) => one.slice(0, 2) === language) ?? language;
  try { localStorage.setItem("clew-language", language); } catch { /* it holds for this page, then */ }
}

const filled = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));

/** A text by its name; where a number decides the form, it is `values.n`. */
export function t(name, values = {}) {
  const text = LANGUAGES[language][name];
  if (text === undefined) return name;
  if (typeof text === "string") return filled(text, values);
  return filled(text[plurals.select(values.n)] ?? text.other, { ...values, n: number(values.n) });
}

export const number = (value, digits = 0) =>
  new Intl.NumberFormat(region, { maximumFractionDigits: digits, minimumFractionDigits: digits }).format(value);

export function bytes(count) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
  let power = 0;
  while (count >= 1000 && power < units.length - 1) { count /= 1000; power++; }
  return new Intl.NumberFormat(region, { style: "unit", unit: units[power], unitDisplay: power ? "short" : "long", maximumFractionDigits: count < 10 && power ? 1 : 0 }).format(count);
}

export const date = (iso) => new Intl.DateTimeFormat(region, { dateStyle: "medium", timeStyle: "short" }).format(new Date(iso));

/** A span of seconds from now, into the past: "5 minutes ago". */
export function ago(seconds) {
  const steps = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30], ["month", 12], ["year", Infinity]];
  let value = seconds;
  for (const [unit, size] of steps) {
    if (Math.abs(value) < size) return new Intl.RelativeTimeFormat(region, { numeric: "auto" }).format(-Math.round(value), unit);
    value /= size;
  }
}

/** What a language's code is called. */
export function languageName(code) {
  try { return new Intl.DisplayNames(region, { type: "language" }).of(code) ?? code; } catch { return code; }
}
