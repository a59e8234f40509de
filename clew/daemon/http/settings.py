"""How the service speaks HTTP: who may ask from where, and how much at once."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

#: A path that a proxy may offer the service under.
PREFIX = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]{1,100}){1,10}")


def _searches() -> int:
    return max(2, min(16, 2 * (os.cpu_count() or 1)))


class HttpSettings(BaseModel):
    """Limits and origins. The defaults are safe: nobody but this machine's own programs is answered without keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hosts: tuple[str, ...] = Field(
        (),
        description="Names under which the service may be asked, beside localhost and IP addresses; '*.example.org' is "
        "every name below. A page that lets its own name point at this machine (DNS rebinding) is refused.",
    )
    public_url: str | None = Field(
        None,
        description="Where a reverse proxy offers the service, as in https://intranet.example.org/clew: its host and its origin "
        "count as the service's own, and what is asked below its path is answered, whether the proxy takes the path off or not.",
    )
    cors_origins: tuple[str, ...] = Field((), description="Origins whose pages may ask; none by default.")
    concurrency: int = Field(
        default_factory=_searches, ge=1, le=1000, description="Requests that are worked on at once."
    )
    queue: int = Field(32, ge=0, le=100_000, description="Requests that wait for that; beyond, 429 with Retry-After.")
    seconds: float = Field(30.0, gt=0, le=3600, description="Longest time of a request, waiting included.")
    body_bytes: int = Field(1 << 20, ge=1024, description="Largest request body.")
    body_seconds: float = Field(10.0, gt=0, description="Longest time a request body may take to arrive.")
    header_seconds: float = Field(10.0, gt=0, description="Longest time the head of a request may take to arrive.")
    connections: int = Field(1000, ge=1, description="Open connections; beyond, 503.")
    page: int = Field(1000, ge=1, le=10_000, description="Most rows of one page of a list.")
    trust_peer: bool = Field(
        False,
        description="Answer other machines without keys, too: something in front of the service decides who asks.",
    )

    @field_validator("public_url")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        path = parts.path.rstrip("/")
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.query
            or parts.fragment
            or "@" in parts.netloc
        ):
            raise ValueError("give an address like https://intranet.example.org/clew")
        if path and not PREFIX.fullmatch(path):
            raise ValueError("its path may hold letters, digits and . _ ~ - between slashes")
        return f"{parts.scheme}://{parts.netloc}{path}"

    @property
    def public_host(self) -> str | None:
        """The name in `public_url`."""
        return urlsplit(self.public_url).hostname if self.public_url else None

    @property
    def public_origin(self) -> str | None:
        """Scheme, name and port of `public_url`."""
        return None if self.public_url is None else "{0.scheme}://{0.netloc}".format(urlsplit(self.public_url))

    @property
    def prefix(self) -> str:
        """The path of `public_url`; "" where there is none."""
        return urlsplit(self.public_url).path if self.public_url else ""
