"""Cases: questions with the route that a careful reader would send them down, from a file of YAML.

language: en                      # of the file; optional
cases:
  - question: which themes dominate this collection
    route: global                 # local | mixed | global | drift | none
    kind: global                  # what accuracy is averaged over; the route by default
    evidence: [ops/backup.md]     # documents that answer it, as paths or record ids
    community: Backup             # an entity that lies in a community the answer is to be made of
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clew.errors import OptionError
from clew_client.answers import RouteName

MOST_BYTES = 20_000_000  # of a file


class Case(BaseModel):
    """A question, and what is expected of its answer."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    question: str = Field(min_length=1, max_length=10_000)
    route: RouteName
    kind: str = ""
    id: str = ""
    language: str | None = None
    collection: str | None = None
    evidence: tuple[str, ...] = ()
    community: str | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore")

    language: str | None = None
    cases: list[dict[str, Any]]


def read_cases(path: str, collection: str | None = None) -> list[Case]:
    """The cases of a file, or of every `.yaml` file of a folder; of one collection where cases name theirs.

    OptionError says what is wrong, and where.
    """
    place = Path(path)
    files = sorted(place.glob("*.yaml")) if place.is_dir() else [place]
    if not files:
        raise OptionError(f"There is no .yaml file in {path}.")
    cases = [case for file in files for case in _read(file)]
    if collection is not None:
        cases = [case for case in cases if case.collection in (None, collection)]
    if not cases:
        raise OptionError(f"{path} holds no cases" + (f" for the collection {collection!r}." if collection else "."))
    return cases


def _read(file: Path) -> list[Case]:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise OptionError(f"{file} is larger than {MOST_BYTES:,} bytes: cases are short questions.")
        content = yaml.safe_load(file.read_text("utf-8"))
    except OSError as error:
        raise OptionError(f"Reading cases from {file}: {error.strerror or error}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise OptionError(f"{file} is no YAML: {' '.join(str(error).split())[:200]}.") from error
    try:
        parsed = _File.model_validate(content)
    except ValidationError as error:
        raise OptionError(f"{file} needs a list `cases`; see `clew graph eval --help`.") from error
    found = []
    for number, row in enumerate(parsed.cases, start=1):
        try:
            case = Case.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"])) or "case"
            raise OptionError(
                f"Case {number} of {file}: {name}: {first['msg'][0].lower()}{first['msg'][1:]}."
            ) from error
        filled = {
            "id": case.id or f"{file.stem}-{number}",
            "kind": case.kind or case.route,
            "language": case.language or parsed.language,
        }
        found.append(case.model_copy(update=filled))
    return found
