"""A small service that speaks OpenAI's `/chat/completions` on loopback, and can be told to misbehave."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Chat:
    """What the service does, and what it has seen."""

    reply: Callable[[dict[str, Any]], str] = lambda _: '{"ok": true}'
    key: str | None = None  # wanted
    refuses: tuple[str, ...] = ()  # names of fields that it does not know
    answers: list[tuple[int, dict[str, str], str]] = field(default_factory=list)  # given first: status, headers, body
    requests: list[dict[str, Any]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)


@contextmanager
def chat_service(chat: Chat) -> Iterator[str]:
    """The address of a running service."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                chat.requests.append(body)
                chat.authorizations.append(self.headers.get("Authorization"))
                scripted = chat.answers.pop(0) if chat.answers else None
            status, headers, text = scripted or self.answer(body)
            content = text.encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, str], str]:
            def refused(status: int, message: str) -> tuple[int, dict[str, str], str]:
                return status, {}, json.dumps({"error": {"message": message}})

            if self.path != "/v1/chat/completions":
                return refused(404, "not here")
            if chat.key is not None and self.headers.get("Authorization") != f"Bearer {chat.key}":
                return refused(401, f"wrong key {self.headers.get('Authorization')}")
            for name in chat.refuses:
                kind = body.get("response_format", {}).get("type")
                if name in body or name == kind:
                    hint = "; use 'max_completion_tokens'" if name == "max_tokens" else ""
                    return refused(
                        400, f"Unsupported parameter: {name if name != kind else 'response_format ' + name}{hint}"
                    )
            text = chat.reply(body)
            reply = {
                "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 11, "completion_tokens": 7},
            }
            return 200, {}, json.dumps(reply)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
