"""An index, opened for reading: the embedded API."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from clew.connectors.location import Root
from clew.errors import EmbedderMismatchError, NoIndexError, OptionError
from clew.indexer.embedders.protocol import Embedder
from clew.indexer.place import Place
from clew.indexer.snapshots import Snapshot, Statistics
from clew.query import coarse
from clew.query.inspection import Inspector, degraded
from clew.query.pinned import PinnedIndex
from clew.query.restriction import Restriction
from clew.query.turns import turns
from clew_client.answers import Answer, AskRequest
from clew_client.routing import RouteCalibration, RouteReport
from clew_client.rows import Listed
from clew_client.service import ChunkAnswer, Facets, TextPart
from clew_client.types import (
    Calibration,
    CheckReport,
    ContextRequest,
    ContextResult,
    ErrorRow,
    ExpandOptions,
    FileRow,
    LinkRow,
    SearchRequest,
    SearchResult,
    ShownFile,
    Status,
)
from clew_client.upkeep import SnapshotRow

if TYPE_CHECKING:
    from clew.indexer.llm.session import Session
    from clew.indexer.progress import Progress
    from clew.query.answers.asking import Asker
    from clew.query.answers.router import Decision
    from clew.query.knowledge import Knowledge
    from clew.query.search import Searcher
    from clew.query.tokens import Tokenizer

#: Restricted parts of a snapshot that stay in memory. One holds its files' catalog, and arrays over the lexical segments.
PARTS_KEPT = 16
_EXPAND = ("hops", "fanout", "seeds", "min_similarity", "direction", "budget")


class Index:
    """One snapshot of an index, pinned when it is opened. `refresh()` moves to the newest one.

    Safe to share between threads. Reads straight from storage; no daemon is needed.
    """

    def __init__(self, root: Root, place: Place, pinned: PinnedIndex, embedder: Embedder | None = None) -> None:
        self._root = root
        self._place = place
        self._given = embedder
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._whole: Index | None = None  # of a restricted part, what it is a part of
        self._parts: OrderedDict[Restriction, Index] = OrderedDict()
        self._pin(pinned)

    @classmethod
    def open(
        cls,
        root: str,
        *,
        index: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        snapshot: int | None = None,
        as_of: str | None = None,
        embedder: Embedder | None = None,
    ) -> Index:
        """Open the index of a root (or at `index`), at its newest snapshot, at `snapshot`, or at the one in force at
        `as_of` (ISO 8601; UTC where no zone is given).

        `embedder`: an object that embeds questions; by default the one that the index was built with is opened.
        Raises NoIndexError, RootNotFoundError, NoSuchSnapshotError, FormatVersionError, DamagedIndexError.
        """
        parsed = Root.parse(root, storage_options)
        place = Place.open(parsed.index_place(index), storage_options)
        if snapshot is not None and as_of is not None:
            raise OptionError("Give a snapshot's number or a time, not both.")
        try:
            number = snapshot if as_of is None else place.snapshots.at(as_of).number
            return cls(parsed, place, PinnedIndex.open(place, number), embedder)
        except NoIndexError:
            if index is None:
                parsed.require()  # a root that is not there is the better explanation
            raise

    def _pin(self, pinned: PinnedIndex) -> None:
        self._pinned = pinned
        self._inspector = Inspector(pinned)
        self._searcher: Searcher | None = None

    @property
    def snapshot(self) -> int:
        """The number of the pinned snapshot."""
        return self._pinned.snapshot.number

    @property
    def segment_ids(self) -> tuple[str, ...]:
        """The lexical segments of the pinned snapshot, as they are named in the page cache."""
        return tuple(segment.id for segment in self._pinned.snapshot.segments)

    @property
    def has_vectors(self) -> bool:
        """Whether the index has a dense path."""
        return self._pinned.generation.dimension is not None

    @property
    def tables(self) -> str:
        """The folder of Lance tables, for other readers: `lancedb.connect(index.tables)`."""
        return self._place.tables_folder(self._pinned.generation.id)

    def refresh(self) -> int:
        """Pin the newest snapshot; what has not changed stays loaded. Returns its number."""
        newest = self._place.snapshots.require()
        if newest.id != self._pinned.snapshot.id:
            self.close()
            self._pin(self._following(newest))
        return self.snapshot

    def newer(self) -> Index | None:
        """The newest snapshot opened beside this one, which stays as it is; None where this is the newest.

        What a service moves to while requests to this one are still running.
        """
        newest = self._place.snapshots.require()
        return None if newest.id == self._pinned.snapshot.id else self._beside(newest)

    def at(self, *, snapshot: int | None = None, as_of: str | None = None) -> Index:
        """Another snapshot of the same index, by number or time, opened beside this one."""
        if snapshot is not None and as_of is not None:
            raise OptionError("Give a snapshot's number or a time, not both.")
        log = self._place.snapshots
        return self._beside(log.require(snapshot) if as_of is None else log.at(as_of))

    def _beside(self, snapshot: Snapshot) -> Index:
        pinned = self._following(snapshot)
        other = Index(self._root, self._place, pinned, self._given)
        if pinned.generation.fingerprint == self._pinned.generation.fingerprint:
            other._embedder = self._embedder  # a model in memory serves any number of snapshots
        return other

    def _following(self, snapshot: Snapshot) -> PinnedIndex:
        """Another snapshot, with the vectors that this one has in memory: they were three quarters of what a move took."""
        generation = self._place.generation(snapshot)
        # A passage that keeps its text keeps its key; vectors that records bring may have changed all the same.
        same = generation.id == self._pinned.generation.id and not generation.settings.embedder.startswith("given")
        known = self._pinned.known_vectors if same else None
        return PinnedIndex(self._place, snapshot, generation, known=known)

    def kept_snapshots(self) -> list[int]:
        """Numbers of the snapshots that are still there, rising."""
        return self._place.snapshots.numbers()

    @property
    def statistics(self) -> Statistics:
        """Counts of what the pinned snapshot holds."""
        return self._pinned.statistics

    @property
    def etag(self) -> str:
        """What identifies the pinned snapshot, or the allowed part of it, without telling anything of it."""
        pinned = self._pinned
        parts = (pinned.snapshot.id, repr(getattr(pinned, "restriction", None)))
        return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()

    @property
    def published_ns(self) -> int:
        """When the pinned snapshot was published: nanoseconds since 1970, UTC, by the writer's clock."""
        return self._pinned.snapshot.published_ns

    @property
    def knowledge(self) -> Knowledge:
        """The graph of this snapshot, as far as this index may know of it. Raises NoGraphError where none was built."""
        from clew.query.knowledge import Knowledge

        return Knowledge(self._pinned)

    def restricted(self, restriction: Restriction | None) -> Index:
        """The part of this snapshot that a restriction allows, as an index of its own; this one where there is none.

        Everything it gives is what an index of the allowed files alone would give (see `clew.query.restricted`). The parts
        that were used last stay in memory. It is closed with this index, not by itself.
        """
        if restriction is None:
            return self
        from clew.query.restricted import RestrictedIndex

        with self._lock:
            part = self._parts.get(restriction)
            if part is None:
                pinned = RestrictedIndex(self._pinned, restriction, self._open_embedder)
                part = self._parts[restriction] = Index(self._root, self._place, pinned, self._given)
                part._whole = self
            self._parts.move_to_end(restriction)
            while len(self._parts) > PARTS_KEPT:
                self._parts.popitem(last=False)  # whoever searches it holds it, and its threads end with it
        return part

    @property
    def restrictions(self) -> list[Restriction]:
        """Those whose parts are in memory, the one used last at the end."""
        with self._lock:
            return list(self._parts)

    def prepare_graph(self) -> bool:
        """Begin to make the graph that a restricted part is answered from, in the background; whether it is there already."""
        from clew.query.restricted import RestrictedIndex

        pinned = self._pinned
        return not isinstance(pinned, RestrictedIndex) or pinned.snapshot.graph is None or pinned.prepare_graph().done()

    @property
    def has_own_graph(self) -> bool:
        """Whether this is a restricted part whose graph was asked for."""
        return bool(getattr(self._pinned, "has_graph", False))

    def warm(self) -> None:
        """Load what searches need, so that the first one does not wait for it."""
        if not len(self._pinned.universe):
            return
        if self.has_vectors and len(self._pinned.universe) >= coarse.WORTH_IT:
            coarse.load()
        with turns.beside():
            self.answer(SearchRequest(text="warm", k=1))
        self._pinned.keep_particulars()
        if self._pinned.snapshot.edges:
            from clew.query import compiled

            if len(self._pinned.graph) >= compiled.WORTH_IT:
                compiled.load()

    def close(self) -> None:
        """End the threads that searches use."""
        with self._lock:
            parts = list(self._parts.values())
            self._parts.clear()
            searcher, self._searcher = self._searcher, None  # which knows this index: neither would go before the other
        for part in parts:
            part.close()
        if searcher is not None:
            searcher.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_embedder(self) -> Embedder | None:
        if self._whole is not None:
            return self._whole._open_embedder()
        with self._lock:
            generation = self._pinned.generation
            if self._embedder is None and generation.fingerprint is not None:
                from clew.indexer.embedders.registry import open_embedder

                opened = self._given or open_embedder(generation.settings.embedder)
                present = opened.fingerprint.id if opened else None
                if present != generation.fingerprint:
                    raise EmbedderMismatchError(
                        f"The index at {self._place.address} was built with {generation.fingerprint}, but questions would be "
                        f"embedded by {present}. Use the same model, or rebuild the index with --full."
                    )
                self._embedder = opened
            return self._embedder

    # --- questions -----------------------------------------------------------------------------

    def search(self, text: str, **options: Any) -> SearchResult:
        """Search on four paths at once. `options` are the fields of SearchRequest and of ExpandOptions (`hops=0`)."""
        return self.answer(search_request(text, **options))

    def answer(self, request: SearchRequest) -> SearchResult:
        """Answer a whole request."""
        return self._ready().search(request)

    def _ready(self) -> Searcher:
        with self._lock:
            if self._searcher is None:
                from clew.query.search import Searcher

                self._searcher = Searcher(self._pinned, self._open_embedder, self._root)
            return self._searcher

    def ranked_documents(
        self, request: SearchRequest, variants: Sequence[Mapping[str, Any]] = ({},), *, count: int = 100
    ) -> list[list[str]]:
        """Ids of the best `count` distinct documents (a record's id, else the path), for the request and for variants of
        its fusion and expansion: see `Searcher.rankings`. A document counts with its best passage."""
        depth = request.k
        while True:
            rankings = list(self._ready().rankings(request.model_copy(update={"k": depth}), variants))
            found = [self._pinned.catalog.documents_of(ordinals, count) for ordinals in rankings]
            if all(len(ids) >= count or len(one) < depth for ids, one in zip(found, rankings, strict=True)):
                return found
            depth *= 2

    def ask(self, question: str, *, session: Session | None = None, **options: Any) -> Answer:
        """Answer a question on the route that suits it, with its reason, in statements that stand in passages.

        `options` are the fields of AskRequest: `route` (auto, local, mixed, global, drift), `level`, `max_communities`,
        `max_follow_ups`, `hops`, `fanout` … See `clew.query.answers`. `session`: a language model for this question, which weighs and
        words what was found. Raises OptionError, and NoGraphError for a route that needs a graph where none was built.
        """
        return self.reply(ask_request(question, **options), session=session)

    def reply(
        self,
        request: AskRequest,
        told: Callable[[Decision], None] = lambda _: None,
        session: Session | None = None,
    ) -> Answer:
        """Answer a whole request of that kind; `told` hears of the route as soon as it is chosen."""
        return self._asker().ask(request, told, session)

    def evaluate_routes(self, cases: str, *, progress: Progress | None = None, **options: Any) -> RouteReport:
        """How the routes do on the cases of a file: see `clew.query.answers.cases`, and `measuring` for the options."""
        from clew.query.answers import measuring
        from clew.query.answers.cases import read_cases

        chosen = read_cases(cases, options.pop("collection", None))
        searcher = self._ready()
        return measuring.evaluate(
            self._asker(logged=False), self._pinned, chosen, searcher.search, progress=progress, **options
        )

    def calibrate_routes(
        self, cases: str, *, collection: str | None = None, store: bool = True, progress: Progress | None = None
    ) -> RouteCalibration:
        """Fit the thresholds of the router to the cases of a file, and keep them beside the index.

        Takes effect on indexes opened from now on, this one included.
        """
        from clew.indexer.progress import Silence
        from clew.query.answers import fitting, thresholds
        from clew.query.answers.cases import read_cases

        if "dense" in degraded(self._pinned):
            raise OptionError("Not all vectors are there yet, so thresholds would not hold; run `clew index` first.")
        chosen, said, asker = read_cases(cases, collection), progress or Silence(), self._asker()
        start = thresholds.defaults(self._pinned)
        said.begin("Looking", len(chosen), "cases")
        looked = []
        for case in chosen:
            looked.append(fitting.Looked(case=case, seen=asker.inquire(case.question, start).seen()))
            said.advance(1)
        said.end()
        fitted = fitting.fit(looked, start)
        before = fitting.macro(looked, thresholds.thresholds_of(self._pinned))
        after, held_out = fitting.macro(looked, fitted), fitting.held_out(looked, start)
        if store:
            thresholds.keep(self._place, self._pinned.generation.id, fitted)
            self._pinned.forget("routing")
        return RouteCalibration(
            cases=len(looked),
            thresholds=fitted.model_dump(),
            before=before,
            after=after,
            held_out=held_out,
            stored=store,
        )

    def _asker(self, *, logged: bool = True) -> Asker:
        from clew.query.answers.asking import Asker
        from clew.query.answers.decisions import log_of

        return Asker(self._pinned, self._ready(), log_of(self._pinned) if logged else None)

    def context(self, text: str, *, max_tokens: int, tokenizer: str = "minilm", **options: Any) -> ContextResult:
        """Passages for a model, within a budget of tokens. `options` are those of `search`, and `overhead`.

        `tokenizer`: see `clew.query.tokens`; `file:PATH` is a `tokenizer.json` on this machine.
        """
        from clew.query.tokens import open_tokenizer

        counter = open_tokenizer(tokenizer)
        named = {} if tokenizer.startswith("file:") else {"tokenizer": tokenizer}
        return self.passages(_request(ContextRequest, text, max_tokens=max_tokens, **named, **options), counter)

    def calibrate(
        self, questions: Sequence[str] = (), *, store: bool = True, progress: Progress | None = None, **options: Any
    ) -> Calibration:
        """Fit the confidence below which nothing counts as found, and keep it beside the index.

        `questions`: such as the index should answer, one hundred or more; without any, the index's own sentences serve.
        `options` are those of `search`. Takes effect on indexes opened from now on, this one included.
        """
        from clew.indexer.progress import Silence
        from clew.query import calibration
        from clew.query.abstention import function_for

        if "dense" in degraded(self._pinned):
            raise OptionError("Not all vectors are there yet, so a floor would not hold; run `clew index` first.")
        searcher, said = self._ready(), progress or Silence()
        function = function_for(self._pinned.generation.fingerprint)
        request = search_request("a question", **{**options, "abstain": "mark"})
        said.begin("Calibrating", None, "questions")

        def confidence(text: str) -> float:
            said.advance(1)
            judgement = searcher.judge(searcher.find(request.model_copy(update={"text": text})))
            return 0.0 if judgement is None else judgement.confidence

        fitted = calibration.calibrate(self._pinned, function, confidence, list(questions))
        said.end()
        if store:
            calibration.keep(self._place, self._pinned.generation.id, fitted)
            self._pinned.forget("calibration")
        return fitted

    def passages(self, request: ContextRequest, tokenizer: Tokenizer | None = None) -> ContextResult:
        """Answer a whole request for passages; `tokenizer` counts in place of the one that it names."""
        from clew.query.context import ContextBuilder
        from clew.query.tokens import open_tokenizer

        counter = tokenizer or open_tokenizer(request.tokenizer)
        return ContextBuilder(self._pinned, self._ready(), self._root).build(request, counter)

    # --- what the index holds ------------------------------------------------------------------

    def links(
        self, *, path: str | None = None, direction: str | None = None, state: str | None = None, skip: int = 0
    ) -> Listed[LinkRow]:
        """Written links, by source, without the first `skip`; `direction` is `out`, `in` or None for both, of `path`."""
        return Listed(self._inspector.links(path, direction=direction, state=state, skip=skip))

    def files(self, where: str | None = None, *, skip: int = 0) -> Listed[FileRow]:
        """Files by path, without the first `skip`."""
        return Listed(self._inspector.files(where, skip=skip))

    def chunk(self, chunk_key: int) -> ChunkAnswer:
        """A chunk by the key that a hit told, with its document. NoSuchDocumentError where there is none."""
        return self._inspector.chunk(chunk_key, self._root)

    def show(self, path: str, record: str | None = None) -> ShownFile:
        """All that the index holds of one document."""
        return self._inspector.show(path, record)

    def part(
        self, path: str, record: str | None = None, *, start: int = 0, length: int = 20_000, mark: str | None = None
    ) -> TextPart:
        """A part of one document: the passages that touch `length` characters from `start`; `mark`: a question, where the text has
        its words is said as well."""
        return self._inspector.part(path, record, start=start, length=length, mark=mark, root=self._root)

    def facets(self, where: str | None = None, *, below: str | None = None, limit: int = 20) -> Facets:
        """How many of the documents that a filter allows have which type, language, folder (directly in `below`) and tag."""
        from clew.query.facets import facets

        return facets(self._pinned, where, below=below, limit=limit)

    def snapshots(self, newest: int = 20) -> tuple[SnapshotRow, ...]:
        """The newest snapshots that are kept, the last one first, and their pins."""
        from clew.query.kept import kept_snapshots

        return tuple(kept_snapshots(self._place, newest))[::-1]

    def errors(self, *, skip: int = 0) -> Listed[ErrorRow]:
        """The ledger, without the first `skip`."""
        return Listed(self._inspector.errors(skip=skip))

    def status(self) -> Status:
        """How the index is."""
        return self._inspector.status(self._root.display)

    def check(self, *, deep: bool = False) -> CheckReport:
        """Verify the index from outside."""
        from clew.query.check import Check

        return Check(self._pinned).run(deep=deep)

    def evaluate(self, queries: str, qrels: str, **options: Any) -> Any:
        """BEIR-style evaluation: see `clew.query.evaluation.evaluate`."""
        from clew.query.evaluation import evaluate

        return evaluate(self, queries, qrels, **options)


R = TypeVar("R", bound=SearchRequest)


def search_request(text: str, **options: Any) -> SearchRequest:
    """A request from flat options. OptionError says which one is wrong, and what is allowed."""
    return _request(SearchRequest, text, **options)


def ask_request(question: str, **options: Any) -> AskRequest:
    """A request for an answer from flat options. OptionError says which one is wrong, and what is allowed."""
    known = set(AskRequest.model_fields) - {"question"}
    for name in options:
        if name not in known:
            raise OptionError(f"There is no option {name!r} of ask; there are {', '.join(sorted(known))}.")
    try:
        return AskRequest(question=question.encode("utf-8", "replace").decode("utf-8"), **options)
    except ValidationError as error:
        raise _refused(error, "ask") from error


def _refused(error: ValidationError, what: str) -> OptionError:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"] if part != "[key]") or "option"
    return OptionError(f"The {what} option {name} is {first['input']!r}: {first['msg'][0].lower()}{first['msg'][1:]}.")


def _request(model: type[R], text: str, **options: Any) -> R:
    expand = {name: options.pop(name) for name in _EXPAND if name in options}
    known = set(model.model_fields) - {"text"}
    for name in options:
        if name not in known:
            allowed = ", ".join(sorted((known - {"expand"}) | set(_EXPAND)))
            raise OptionError(f"There is no search option {name!r}; there are {allowed}.")
    try:
        if expand:
            options["expand"] = ExpandOptions(**expand)
        # Bytes that are no UTF-8 reach a command line as lone surrogates: they match nothing, and are no error.
        return model(text=text.encode("utf-8", "replace").decode("utf-8"), **options)
    except ValidationError as error:
        raise _refused(error, "search") from error
