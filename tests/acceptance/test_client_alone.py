"""The client's distribution in an environment of its own: it brings no indexer, and LangChain takes its hits as documents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(900)]

_USE = """
import importlib.util, json, sys
import httpx
from clew_client import Client
from clew_client.langchain import ClewRetriever

hit = {"rank": 1, "score": 0.5, "path": "ops/keys.md", "chunk_key": 7, "char_start": 0, "char_end": 5, "text": "A key", "title": "Keys"}
asked = []

def service(request):
    asked.append(json.loads(request.content) if request.content else None)
    if request.url.path.endswith("/search"):
        return httpx.Response(200, json={"query": "x", "snapshot": 1, "took_ms": 1.0, "hits": [hit]})
    return httpx.Response(200, json={"collections": [{"name": "handbook", "ready": True}]})

with Client("http://localhost:1", transport=httpx.MockTransport(service)) as client:
    found = client.search("x", k=3, hops=0).hits
    (document,) = ClewRetriever(source=client, options={"k": 2}).invoke("x")
heavy = [name for name in ("ray", "lance", "lancedb", "pyarrow", "onnxruntime", "tantivy", "numpy", "clew") if importlib.util.find_spec(name)]
print(json.dumps({"path": found[0].path, "heavy": heavy, "asked": asked,
                  "content": document.page_content, "source": document.metadata["source"]}))
"""


def test_client_alone_brings_no_indexer_and_serves_langchain(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def run(*command: str | Path) -> str:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=kept, cwd=tmp_path)
        if "install" in command and any(
            word in done.stderr for word in ("Connection", "No matching distribution", "error sending")
        ):
            pytest.skip("the package registry is not reached")
        assert done.returncode == 0, done.stderr
        return done.stdout

    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, environment)
    python = environment / "bin/python"
    run(uv, "pip", "install", "--quiet", "--python", python, HOUSE / "client", "langchain-core")
    said = json.loads(run(python, "-c", _USE))
    assert said["heavy"] == []
    assert (said["path"], said["content"], said["source"]) == ("ops/keys.md", "A key", "ops/keys.md")
    assert said["asked"] == [None, {"text": "x", "k": 3, "expand": {"hops": 0}}, {"text": "x", "k": 2}]
