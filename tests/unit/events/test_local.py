"""Without these, a name that is not UTF-8 would be taken for a kernel that has too few watches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.connectors.events.local import LocalSource
from clew.connectors.events.scope import Scope
from clew.connectors.location import Root
from clew.errors import StorageError


class _Ended(Iterator[Any]):
    """A watch that ends with an error."""

    def __init__(self, said: str) -> None:
        self._said = said

    def __next__(self) -> Any:
        raise RuntimeError(self._said)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('Unable to decode path "/docs/caf\\xE9.md" to string', "is not UTF-8"),
        ("OS file watch limit reached", "Raise fs.inotify.max_user_watches"),
    ],
)
def test_end_of_a_watch_is_told_by_its_cause(tmp_path: Path, said: str, told: str) -> None:
    source = LocalSource(Scope.of(Root.parse(tmp_path), None))
    source._changes = (change for change in _Ended(said))
    with pytest.raises(StorageError) as caught:
        source.receive(0.0)
    assert told in str(caught.value)
    assert ("max_user_watches" in str(caught.value)) == ("limit" in said)
