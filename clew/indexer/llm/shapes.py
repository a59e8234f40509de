"""Replies of a given shape: the JSON schema a service is told, and reading what came back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from clew.errors import MissingPartError

T = TypeVar("T", bound=BaseModel)
_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
MOST_TOLD = 6  # errors that a model is told of


class ShapeError(Exception):
    """A reply does not have the shape; says what is wrong with it, for the model to mend."""


def strict_schema(shape: type[BaseModel]) -> dict[str, Any]:
    """JSON schema as strict modes want it: nothing optional, nothing additional, no defaults."""
    found = _strict(shape.model_json_schema())
    assert isinstance(found, dict)
    return found


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(one) for one in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _strict(value) for key, value in node.items() if key not in ("default", "title")}
    if isinstance(node.get("properties"), Mapping):
        # A property may be called "title" itself.
        kept["properties"] = {name: _strict(value) for name, value in node["properties"].items()}
        kept["required"] = list(node["properties"])
        kept["additionalProperties"] = False
    return kept


def read(text: str, shape: type[T]) -> T:
    """The reply as an object. Fences, remarks around it, missing brackets, commas and quotes are mended; ShapeError else."""
    text = _THOUGHT.sub("", text)
    fence = _FENCE.match(text)
    text = (fence[1] if fence else text).strip()
    if not text:
        raise ShapeError("The reply was empty.")
    try:
        return shape.model_validate_json(text)
    except ValidationError as error:
        told = error
    mended = _mended(text)
    if isinstance(mended, list) and len(shape.model_fields) == 1:
        mended = {next(iter(shape.model_fields)): mended}  # a bare list where an object around it was asked for
    if isinstance(mended, dict):
        try:
            return shape.model_validate(mended)
        except ValidationError as error:
            told = error
    raise ShapeError(_told(told))


def _mended(text: str) -> Any:
    try:
        from json_repair import repair_json
    except ImportError:
        raise MissingPartError("Language models need a part that is not installed: pip install 'clew[llm]'") from None
    begin = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if begin < 0:
        return None
    try:
        return repair_json(text[begin:], return_objects=True, skip_json_loads=False)
    except (ValueError, RecursionError):
        return None


def _told(error: ValidationError) -> str:
    lines = []
    for one in error.errors(include_url=False, include_input=False)[:MOST_TOLD]:
        place = ".".join(str(part) for part in one["loc"])
        lines.append(f"- {place}: {one['msg']}" if place else f"- {one['msg']}")
    return "\n".join(lines)
