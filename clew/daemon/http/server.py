"""The app behind a socket, in a thread of the service's process."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from clew.daemon.collections import Collection, Collections
from clew.daemon.configuration import Configured, is_config
from clew.daemon.http.access import is_loopback
from clew.daemon.http.settings import HttpSettings
from clew.daemon.keys import KeyRing
from clew.errors import ConfigurationError, MissingPartError, StorageError

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

    from clew.connectors.objects import ObjectStore
    from clew.daemon.keeper import Keeper
    from clew.daemon.telemetry import OpenTelemetry

STARTING_SECONDS = 30.0
_log = logging.getLogger("clew.service")


class Server:
    """An app that listens, from `start` until `stop`."""

    def __init__(self, app: FastAPI, *, host: str, port: int, settings: HttpSettings) -> None:
        self._app, self._host, self._port, self._settings = app, host, port, settings
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.address: tuple[str, int] | None = None

    def start(self) -> None:
        """Listen. Raises ConfigurationError where the address cannot be had."""
        import uvicorn

        from clew.daemon.http.connection import timed

        listening = _listen(self._host, self._port)
        self.address = listening.getsockname()[:2]
        config = uvicorn.Config(
            self._app,
            http=timed(self._settings.header_seconds),
            ws="none",
            log_config=None,
            access_log=False,  # the guard writes a better one
            server_header=False,
            proxy_headers=False,  # who may ask without a key is decided by the address of the peer itself
            limit_concurrency=self._settings.connections,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=10,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, name="clew-http", daemon=True
        )
        self._thread.start()
        shown = f"[{self.address[0]}]" if ":" in self.address[0] else self.address[0]
        _log.info("Listening on http://%s:%d", shown, self.address[1])

    def stop(self) -> None:
        """Take no more requests, finish those under way."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(STARTING_SECONDS)


class HttpFront:
    """Answers over HTTP for the collections that a service keeps. Satisfies `clew.daemon.service.Front`."""

    def __init__(self, configured: Configured, *, tracer: OpenTelemetry | None = None) -> None:
        """`tracer`: what keeps a span of each request; None: nothing does."""
        self._configured = configured
        self._tracer = tracer
        self.collections = Collections(expected=configured.config.collections)
        self._keys = KeyRing(key_store(configured))
        self._server: Server | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port, once it listens."""
        return None if self._server is None else self._server.address

    def open(self, name: str, configured: Configured, keeper: Keeper | None) -> None:
        """Answer for one more collection."""
        self._configured = configured
        collection = Collection(
            name,
            configured.root(name),
            index=configured.index(name),
            storage_options=configured.storage(name),
            upkeep=keeper,
            expected=lambda: self._keys.restrictions(name),
        )
        self.collections.add(collection)
        collection.start()

    def published(self, name: str) -> None:
        """There is a new snapshot."""
        collection = self.collections.get(name)
        if collection is not None:
            collection.nudge()

    def close(self, name: str) -> None:
        """Answer no more for this collection."""
        self.collections.remove(name)

    def start(self) -> None:
        """Listen. ConfigurationError where strangers could ask without a key, or the address cannot be had."""
        server, settings = self._configured.config.server, self._configured.config.http
        self._refuse_strangers(server.host, settings)
        with suppress(StorageError):
            _ = self._keys.locked  # looked up once, for what keys are limited to is loaded ahead
        self._server = Server(self._app(), host=server.host, port=server.port, settings=settings)
        self._server.start()

    def _app(self) -> FastAPI:
        try:
            from clew.daemon.http.app import create_app
        except ImportError as error:
            raise MissingPartError(
                f"Answering over HTTP takes packages that are not installed ({error.name}): pip install 'clew[serve]'."
            ) from error
        settings = self._configured.config.http
        return create_app(self.collections, settings=settings, keys=self._keys, tracer=self._tracer)

    def stop(self) -> None:
        """End the server, then the collections."""
        if self._server is not None:
            self._server.stop()
        self.collections.close()

    def _refuse_strangers(self, host: str, settings: HttpSettings) -> None:
        if settings.trust_peer or host == "localhost" or is_loopback(host) or self._keys.locked:
            return
        raise ConfigurationError(
            f"Listening on {host} would let anybody ask, as there is no key yet. Make one first: "
            f"`clew keys create {self._configured.source} --scope full`; or listen on 127.0.0.1."
        )


def key_store(configured: Configured) -> ObjectStore:
    """Where the keys of a service lie: in the index place of a root served on its own; of a configuration in the folder
    that `server.keys` names, or else in `NAME.keys` beside the file."""
    from pathlib import Path

    from clew.connectors.location import Root
    from clew.connectors.objects import ObjectStore

    if configured.config.server.keys is not None:
        return ObjectStore.open(configured.placed(configured.config.server.keys))
    if is_config(configured.source):
        return ObjectStore.open(str(configured.folder / f"{Path(configured.source).stem}.keys"))
    name = next(iter(configured.config.collections))
    options = configured.storage(name)
    return ObjectStore.open(Root.parse(configured.root(name), options).index_place(configured.index(name)), options)


def _listen(host: str, port: int) -> socket.socket:
    bare = host.strip("[]")
    try:
        found: Iterable[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]]
        found = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)  # type: ignore[assignment]
        family, kind, protocol, _, address = next(iter(found))
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(2048)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise ConfigurationError(
            f"Listening on {host}:{port}: {error.strerror or error}. Choose another --port, or 0 for a free one."
        ) from error
    listening.setblocking(False)
    return listening
