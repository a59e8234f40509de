"""A small service that speaks OpenAI's `/embeddings` on loopback, and can be told to misbehave."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from clew.indexer.embedders.hashing import HashingEmbedder


@dataclass
class Behaviour:
    """What the service does, and what it has seen."""

    dimension: int = 32
    most_texts: int = 1_000  # more are refused: 413
    most_characters: int = 1_000_000  # of one text; more are refused: 400
    key: str | None = None  # wanted
    answers: list[tuple[int, dict[str, str], str]] = field(default_factory=list)  # given first: status, headers, body
    requests: list[dict[str, Any]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    hang: threading.Event | None = None  # requests wait for it


@contextmanager
def service(behaviour: Behaviour) -> Iterator[str]:
    """The address of a running service."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                behaviour.requests.append(body)
                behaviour.authorizations.append(self.headers.get("Authorization"))
                behaviour.times.append(time.monotonic())
                scripted = behaviour.answers.pop(0) if behaviour.answers else None
            if behaviour.hang is not None:
                behaviour.hang.wait(30)
            status, headers, text = scripted or self.answer(body)
            content = text.encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, str], str]:
            texts = body["input"]
            if self.path != "/v1/embeddings":
                return 404, {}, "not here"
            if behaviour.key is not None and self.headers.get("Authorization") != f"Bearer {behaviour.key}":
                return 401, {}, json.dumps({"error": {"message": "Incorrect API key provided"}})
            if body["model"] == "unknown":
                return 404, {}, json.dumps({"error": {"message": "The model 'unknown' does not exist"}})
            if len(texts) > behaviour.most_texts:
                return 413, {}, "Payload Too Large"
            if any(not text for text in texts):
                return 400, {}, json.dumps({"error": {"message": "input cannot be an empty string"}})
            if any(len(text) > behaviour.most_characters for text in texts):
                message = "This model's maximum context length is 8192 tokens"
                return 400, {}, json.dumps({"error": {"message": message}})
            vectors = HashingEmbedder(behaviour.dimension).embed_passages(texts) * 3.0
            rows = [{"object": "embedding", "index": n, "embedding": v.tolist()} for n, v in enumerate(vectors)]
            return 200, {"Content-Type": "application/json"}, json.dumps({"data": rows[::-1], "model": body["model"]})

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        if behaviour.hang is not None:
            behaviour.hang.set()
        server.shutdown()
        server.server_close()
        thread.join()
