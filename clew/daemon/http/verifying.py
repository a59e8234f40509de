"""The routes that look at an index itself: whether its parts agree, and how well it answers judged questions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query, Request, Response

from clew.daemon.http.answering import SECURED, Asker, Inside, json_response, leased
from clew.daemon.http.problems import responses
from clew.daemon.http.routes import ALWAYS, Name
from clew.errors import OptionError
from clew.query.evaluation import answer_all, parse_judged
from clew.query.index import search_request
from clew_client.service import EvaluationRequest
from clew_client.types import CheckReport, EvaluationReport

router = APIRouter(prefix="/v1/collections/{name}", dependencies=SECURED)


@router.get(
    "/check",
    response_model=CheckReport,
    operation_id="check",
    summary="Verify",
    tags=["collections"],
    responses=responses(404, 422, *ALWAYS),
)
async def check(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    deep: Annotated[bool, Query(description="Read every text, posting and vector, too.")] = False,
) -> Response:
    """Whether the parts of the served snapshot agree with each other: what `clew check --json` prints. Takes a key of scope full
    that is not limited to paths. A large index takes longer than a request may: check it beside its storage."""
    collection = inside.collection(name, access)
    access.require_full(whole=True)

    def work() -> Response:
        with leased(collection, access) as index:
            return json_response(index.check(deep=deep))

    return await inside.admission.run(request, work)


@router.post(
    "/evaluate",
    response_model=EvaluationReport,
    operation_id="evaluate",
    summary="Evaluate",
    tags=["collections"],
    responses=responses(400, 404, 413, 422, *ALWAYS),
)
async def evaluate_judged(
    name: Name,
    request: Request,
    inside: Inside,
    access: Asker,
    wish: Annotated[
        EvaluationRequest,
        Body(
            openapi_examples={
                "one": {
                    "summary": "One judged question",
                    "value": {
                        "queries": '{"_id": "1", "text": "rotate a signing key"}',
                        "qrels": "1\\tops/keys.md\\t1",
                        "by_fusion": False,
                    },
                }
            }
        ),
    ],
) -> Response:
    """How well judged questions are answered, by each path, by every fusion, and with and without links: what `clew eval --json` prints.
    As many questions as can be answered in the time of a request; larger sets are for `clew eval`. Takes a key of scope full."""
    collection = inside.collection(name, access)
    access.require_full()
    if "text" in wish.options:
        raise OptionError("The option text is what each question says; give questions in `queries`.")
    options = search_request("", **wish.options).model_dump(exclude={"text"}, exclude_unset=True)

    def work() -> Response:
        with leased(collection, access) as index:
            found = answer_all(
                index, parse_judged(wish.queries, wish.qrels), by_path=wish.by_path, by_fusion=wish.by_fusion,
                cluster=wish.cluster, **options,
            )  # fmt: skip
            return json_response(found.report())

    return await inside.admission.run(request, work)
