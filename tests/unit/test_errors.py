"""The whole tree of errors: what every class owes to callers, to the command line and to other processes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pytest

from clew import errors
from clew.errors import ClewError, ExtractionError, RequestError, ServiceError, SkippedFileError, WhereError


def _tree(kind: type[ClewError] = ClewError) -> Iterator[type[ClewError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _tree(child)


TREE = sorted(set(_tree()), key=lambda kind: kind.__name__)
kinds = pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)


def _example(kind: type[ClewError]) -> ClewError:
    if kind is WhereError:
        return WhereError("A size needs a unit", expression="size:>1XB", column=7)
    return kind("Reading ops/keys.md: permission denied; grant read access and run `clew index` again.")


def test_tree_is_all_there() -> None:
    """A class outside of the tree would reach users as a traceback."""
    public = {value for name, value in vars(errors).items() if isinstance(value, type) and not name.startswith("_")}
    assert public == set(TREE)
    assert len(TREE) >= 30


@kinds
def test_survives_pickling_and_copying_with_its_fields(kind: type[ClewError]) -> None:
    """Errors cross processes and the cluster; one that does not pickle hangs or hides its message."""
    error = _example(kind)
    error.add_note("while reading part 3")
    for again in (*(pickle.loads(pickle.dumps(error, protocol)) for protocol in range(6)), copy.copy(error)):
        assert type(again) is kind
        assert str(again) == str(error)
        assert again.args == error.args
        assert again.__dict__ == error.__dict__


@kinds
def test_default_message_is_the_first_line_of_the_docstring(kind: type[ClewError]) -> None:
    """Without it an error raised bare would say nothing at all."""
    assert kind.__doc__, "every error says in its docstring what happened"
    first = kind.__doc__.strip().splitlines()[0]
    assert first.endswith((".", "?", "!"))
    assert kind.default_message() == first
    if kind is not WhereError:
        assert str(kind()) == first


@kinds
def test_exit_status_follows_from_what_the_caller_must_do(kind: type[ClewError]) -> None:
    """Scripts tell a wrong request (2) from a service to be tried again (3)."""
    if issubclass(kind, RequestError):
        assert kind.exit_code == 2
    else:
        assert kind.exit_code == 3
    assert not (issubclass(kind, RequestError) and issubclass(kind, ServiceError))


@kinds
def test_extraction_errors_have_a_stable_word_for_the_ledger(kind: type[ClewError]) -> None:
    """Filters and the retry rules read `reason` and `state`."""
    if not issubclass(kind, ExtractionError):
        assert not hasattr(kind, "reason")
        return
    assert kind.reason == kind.reason.strip().lower() != ""
    assert kind.state == ("skipped" if issubclass(kind, SkippedFileError) else "failed")


def test_reasons_tell_leaves_apart() -> None:
    """Two leaves with one word could not be told apart in the ledger."""
    leaves = [kind for kind in TREE if issubclass(kind, ExtractionError) and not kind.__subclasses__()]
    words = [kind.reason for kind in leaves]
    assert len(set(words)) == len(words)


def test_where_error_points_at_its_column() -> None:
    """The caret is how a user finds the mistake in a long expression."""
    error = WhereError("A size needs a unit", expression="type:pdf size:>1XB", column=16)
    message, expression, caret = str(error).splitlines()
    assert "column 17" in message
    assert expression.strip() == "type:pdf size:>1XB"
    assert expression[caret.index("^")] == "X"
    again = pickle.loads(pickle.dumps(error))
    assert (again.expression, again.column) == ("type:pdf size:>1XB", 16)
    assert str(again) == str(error)
