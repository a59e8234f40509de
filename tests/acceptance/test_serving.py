"""`clew serve` and `clew keys` as an operator uses them, as processes; without these the parts could work and the whole not."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.acceptance.commands import clew

pytestmark = [pytest.mark.acceptance, pytest.mark.xdist_group("serving")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serving")
    for name, text in (
        ("ops/keel.md", "# Keel\n\nA keel of oak. [Mast](../mast.md)"),
        ("mast.md", "# Mast\n\nA mast of pine."),
    ):
        path = folder / "boats" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


@contextmanager
def serving(*arguments: str | Path) -> Iterator[tuple[httpx.Client, list[str]]]:
    """A running service, a client of it and what it says; ended by SIGTERM."""
    command = [sys.executable, "-m", "clew", "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
    said: list[str] = []
    try:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"Listening on (http://[0-9.]+:[0-9]+)", line):
                break
        else:
            raise AssertionError("".join(said))
        with httpx.Client(base_url=found[1], timeout=30) as client:
            until(lambda: client.get("/readyz").status_code == 200)
            yield client, said
    finally:
        process.send_signal(signal.SIGTERM)
        said.append(process.communicate(timeout=60)[1])
    assert process.returncode == 0, said


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.05)


def search(client: httpx.Client, text: str, key: str | None = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return client.post("/v1/collections/boats/search", json={"text": text, "k": 5}, headers=headers)


def test_root_is_indexed_served_followed_and_locked_by_its_first_key(folder: Path) -> None:
    root = folder / "boats"
    with serving(root, "--embedder", "none") as (client, said):
        assert [one["name"] for one in client.get("/v1/collections").json()["collections"]] == ["boats"]
        first = search(client, "keel").json()
        printed = clew("search", root, "keel", "-k", "5", "--json")
        assert first["hits"] == json.loads(printed.out)["hits"]
        (root / "rudder.md").write_text("# Rudder\n\nA rudder of elm.", "utf-8")
        until(lambda: search(client, "rudder").json()["hits"])
        assert client.post("/v1/collections/boats/reindex").json() == {"accepted": True, "full": False}

        made = json.loads(clew("keys", "create", root, "--path", "ops", "--json").out)
        assert made["key"].startswith(f"clew_{made['id']}_")
        until(lambda: search(client, "keel").status_code == 401)
        answer = search(client, "keel", made["key"])
        assert {hit["path"] for hit in answer.json()["hits"]} == {"ops/keel.md"}
        assert "mast.md" not in json.dumps([hit["trail"] for hit in answer.json()["hits"]])
        listed = json.loads(clew("keys", "list", root, "--json").out)
        assert (listed["id"], listed["paths"], listed["valid"]) == (made["id"], ["ops"], True)
        later = clew("keys", "revoke", root, made["id"], "--after", "1h")
        assert (later.status, later.out) == (0, "")
        assert later.err.startswith(f"Key {made['id']} is valid until 2")
        assert clew("keys", "revoke", root, made["id"], "--json").object["valid"] is False
        until(lambda: search(client, "keel", made["key"]).status_code == 401)
    secret = made["key"].rpartition(f"{made['id']}_")[2]
    assert secret not in "".join(said)
    assert not any(secret.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_configuration_keeps_its_keys_beside_itself(folder: Path) -> None:
    config = folder / "fleet.yaml"
    config.write_text("server: {log: json}\ncollections:\n  boats: {root: boats, embedder: none}\n", "utf-8")
    made = json.loads(clew("keys", "create", config, "--scope", "full", "--json").out)
    assert (folder / "fleet.keys" / "keys" / made["id"]).is_file()
    with serving(config) as (client, said):
        assert search(client, "mast").status_code == 401
        assert search(client, "mast", made["key"]).json()["hits"]
        client.get("/metrics", headers={"Authorization": f"Bearer {made['key']}"}).raise_for_status()
    lines = [json.loads(line) for line in "".join(said).splitlines()]
    asked = [line for line in lines if line.get("path") == "/v1/collections/boats/search"]
    assert {line["status"] for line in asked if "status" in line} == {200, 401}
    assert all(line["request_id"] for line in asked)
    assert any(line["logger"] == "clew.audit" and line.get("key") == made["id"] for line in asked)


def test_strangers_are_not_let_in_without_a_key(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "open"
    root.mkdir()
    refused = clew("serve", root, "--host", "0.0.0.0", "--port", "0")
    assert refused.status == 2
    assert "clew keys create" in refused.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "--scope", "all"), "search or full"),
        (("create", "--path", "../x"), "no path below the root"),
        (("create", "--expires", "soon"), "30d"),
        (("create", "--rate", "0"), "a number of requests a second"),
        (("revoke", "0123456789abcdef"), "There is no key"),
    ],
)
def test_keys_that_make_no_sense_are_refused(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    command, *rest = arguments
    done = clew("keys", command, tmp_path, *rest)
    assert done.status == 2
    assert said in done.err
