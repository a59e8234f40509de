"""Lists that are longer than one answer: read page by page as they are iterated, all on one snapshot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from clew_client.service import Page
from clew_client.types import rows_to_arrow, rows_to_pandas

T = TypeVar("T", bound=BaseModel)


class Rows(Generic[T]):
    """Rows of a list. Each iteration begins anew with the first page."""

    def __init__(self, fetch: Callable[[str | None], Page], field: str) -> None:
        self._fetch = fetch
        self._field = field

    def __iter__(self) -> Iterator[T]:
        cursor: str | None = None
        while True:
            page = self._fetch(cursor)
            yield from getattr(page, self._field)
            cursor = page.next_cursor
            if cursor is None:
                return

    def to_list(self) -> list[T]:
        """All rows."""
        return list(self)

    def to_arrow(self) -> Any:
        """All rows as a pyarrow Table; needs pyarrow."""
        return rows_to_arrow(tuple(self))

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame; needs pandas."""
        return rows_to_pandas(tuple(self))


class Listed(Iterator[T]):
    """Rows of an index that is read directly, each made as it is asked for: they are gone through once."""

    def __init__(self, rows: Iterator[T]) -> None:
        self._rows = rows

    def __next__(self) -> T:
        return next(self._rows)

    def to_list(self) -> list[T]:
        """All rows that are left."""
        return list(self._rows)

    def to_arrow(self) -> Any:
        """All rows that are left as a pyarrow Table."""
        return rows_to_arrow(tuple(self._rows))

    def to_pandas(self) -> Any:
        """All rows that are left as a pandas DataFrame; needs pandas."""
        return rows_to_pandas(tuple(self._rows))


class AsyncRows(Generic[T]):
    """Likewise, for `async for`."""

    def __init__(self, fetch: Callable[[str | None], Awaitable[Page]], field: str) -> None:
        self._fetch = fetch
        self._field = field

    async def __aiter__(self) -> AsyncIterator[T]:
        cursor: str | None = None
        while True:
            page = await self._fetch(cursor)
            for row in getattr(page, self._field):
                yield row
            cursor = page.next_cursor
            if cursor is None:
                return

    async def to_list(self) -> list[T]:
        """All rows."""
        return [row async for row in self]

    async def to_arrow(self) -> Any:
        """All rows as a pyarrow Table; needs pyarrow."""
        return rows_to_arrow(tuple(await self.to_list()))

    async def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame; needs pandas."""
        return rows_to_pandas(tuple(await self.to_list()))
