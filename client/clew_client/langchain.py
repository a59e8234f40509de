"""A LangChain retriever over a client or an embedded index. Needs `langchain-core`; import it from here only."""

from __future__ import annotations

from typing import Any, Protocol

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from clew_client.types import Hit, SearchResult


class Searches(Protocol):
    """`clew.Client` and `clew.Index` do."""

    def search(self, text: str, **options: Any) -> SearchResult:
        """Search."""
        ...


class ClewRetriever(BaseRetriever):  # type: ignore[misc]  # nothing is known of it where it is not installed
    """Hits as documents: the passage as content; where it stands, its score and the links that led to it as metadata.

    `options` are those of `search`: `ClewRetriever(source=client, options={"k": 5, "hops": 2})`.
    """

    source: Any  # Searches; pydantic cannot check a protocol without methods being called
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        source: Searches = self.source
        return [_document(hit) for hit in source.search(query, **self.options).hits]


def _document(hit: Hit) -> Document:
    metadata = hit.model_dump(mode="json", exclude={"text", "sources", "explain"}, exclude_none=True)
    return Document(page_content=hit.text, metadata={**metadata, "source": hit.url or hit.path})
