"""The routes that answer a question: on the route that suits it, or on a certain one; at once, or as events."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response

from clew.daemon.collections import Collection
from clew.daemon.http.access import Access
from clew.daemon.http.answering import SECURED, Answering, Asker, Inside, json_response, leased
from clew.daemon.http.problems import responses
from clew.daemon.http.routes import ALWAYS, Name
from clew.daemon.http.streaming import MEDIA_TYPE, Tell, streamed, wants_events
from clew.errors import OptionError
from clew_client.answers import Answer, AskedRoute, AskRequest
from clew_client.service import RouteChosen

#: Of the time that a request may take, for beginning further steps: the rest is for ending the last one.
SHARE = 0.8
EVENTS = """As one answer, or, for `Accept: text/event-stream`, as events: `route` (which, and why; again where another one
is taken instead), a `statement` and a `citation` each, and `done` with the whole answer; or `error` with a problem."""
Question = Annotated[
    AskRequest,
    Body(
        openapi_examples={
            "local": {"summary": "A question of fact", "value": {"question": "Who approves a new signing key?"}},
            "global": {
                "summary": "A question of the whole",
                "value": {"question": "Which themes dominate here?", "level": 0},
            },
        }
    ),
]
OK: dict[int | str, dict[str, Any]] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "string", "description": "Server-sent events."}}}}
}

router = APIRouter(prefix="/v1/collections/{name}", dependencies=SECURED)


@router.post(
    "/ask",
    response_model=Answer,
    operation_id="ask",
    summary="Ask",
    tags=["questions"],
    description=f"Answer a question on the route that suits it, with its reason; every statement is cited. {EVENTS}",
    responses={**OK, **responses(400, 404, 413, 422, *ALWAYS)},
)
async def ask(name: Name, request: Request, inside: Inside, access: Asker, question: Question) -> Response:
    """See the description."""
    return await _answered(inside, request, inside.collection(name, access), access, question)


@router.post(
    "/graph/global-search",
    response_model=Answer,
    operation_id="graph_global_search",
    summary="Ask the reports",
    tags=["graph"],
    description=f"Answer from the reports of a level: what dominates, what there is of a kind. {EVENTS}",
    responses={**OK, **responses(400, 404, 413, 422, *ALWAYS)},
)
async def global_search(name: Name, request: Request, inside: Inside, access: Asker, question: Question) -> Response:
    """See the description."""
    return await _answered(inside, request, inside.collection(name, access), access, _on("global", question))


@router.post(
    "/graph/drift-search",
    response_model=Answer,
    operation_id="graph_drift_search",
    summary="Ask the reports, then the passages",
    tags=["graph"],
    description=f"A first answer from the reports, follow-up questions to the passages, and what both say. {EVENTS}",
    responses={**OK, **responses(400, 404, 413, 422, *ALWAYS)},
)
async def drift_search(name: Name, request: Request, inside: Inside, access: Asker, question: Question) -> Response:
    """See the description."""
    return await _answered(inside, request, inside.collection(name, access), access, _on("drift", question))


def _on(route: AskedRoute, question: AskRequest) -> AskRequest:
    if question.route not in ("auto", route):
        raise OptionError(f"This is the {route} route; ask for another one with /ask.")
    return question.model_copy(update={"route": route})


async def _answered(
    inside: Answering, request: Request, collection: Collection, access: Access, question: AskRequest
) -> Response:
    bounded = question.model_copy(update={"seconds": min(question.seconds, SHARE * inside.settings.seconds)})

    def answer(tell: Tell | None) -> Answer:
        began = time.perf_counter()
        with leased(collection, access, snapshot=question.snapshot, as_of=question.as_of) as index:
            found = index.reply(
                bounded,
                (lambda _: None)
                if tell is None
                else lambda decision: tell("route", RouteChosen(route=decision.route, reason=decision.reason)),
            )
        inside.metrics.observe_answer(collection.name, found, time.perf_counter() - began)
        return found

    if not wants_events(request):
        return await inside.admission.run(request, lambda: json_response(answer(None)))

    def events(tell: Tell) -> None:
        found = answer(tell)
        for statement in found.statements:
            tell("statement", statement)
        for citation in found.citations:
            tell("citation", citation)
        tell("done", found)

    return await streamed(inside, request, events)
