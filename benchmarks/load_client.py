"""What one client of `make load` does, for locust: searches, passages for a model, pages of the list of files, without a pause.

Runs in an environment of its own, which has locust and nothing of clew.
"""

from __future__ import annotations

import os
import random

from locust import FastHttpUser, constant, task

WORDS = os.environ["CLEW_LOAD_WORDS"].split()
COLLECTION = os.environ["CLEW_LOAD_COLLECTION"]
FILES = int(os.environ["CLEW_LOAD_FILES"])


class Asker(FastHttpUser):  # type: ignore[misc]  # locust has no types here
    """Asks again as soon as it was answered; what is refused is counted by itself, and asked again after a tenth of a second."""

    wait_time = constant(0)
    network_timeout = 60.0
    connection_timeout = 60.0

    def on_start(self) -> None:
        """Each client asks other questions."""
        self.chance = random.Random(id(self))

    def _post(self, operation: str, body: dict[str, object]) -> None:
        path = f"/v1/collections/{COLLECTION}/{operation}"
        with self.client.post(path, json=body, name=operation, catch_response=True) as answer:
            self._judge(answer)

    def _judge(self, answer: object) -> None:
        if answer.status_code == 429:  # type: ignore[attr-defined]
            answer.request_meta["name"] = "429"  # type: ignore[attr-defined]
            if "Retry-After" in answer.headers:  # type: ignore[attr-defined]
                answer.success()  # type: ignore[attr-defined]
            else:
                answer.failure("429 without Retry-After")  # type: ignore[attr-defined]

    @task(17)
    def ask_search(self) -> None:
        """Half of the questions name one page, half are three common words."""
        named = self.chance.random() < 0.5
        text = f"marker{self.chance.randrange(FILES)} turn" if named else " ".join(self.chance.sample(WORDS, 3))
        self._post("search", {"text": text, "k": 10})

    @task(2)
    def ask_context(self) -> None:
        """Passages within a budget."""
        self._post("context", {"text": " ".join(self.chance.sample(WORDS, 3)), "max_tokens": 1000})

    @task(1)
    def ask_files(self) -> None:
        """A page of a list."""
        path = f"/v1/collections/{COLLECTION}/files?limit=100&where=path:d{self.chance.randrange(50):02d}/**"
        with self.client.get(path, name="files", catch_response=True) as answer:
            self._judge(answer)
