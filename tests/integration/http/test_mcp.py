"""The MCP server through the official client; without these an assistant could be told nonsense, or nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as McpClient
from mcp import StdioServerParameters

from clew.daemon.collections import Collections
from clew.daemon.mcp import Local, create_server

pytestmark = pytest.mark.xdist_group("http")  # one process indexes what they ask

README = Path(__file__).parents[3] / "README.md"
Ask = Callable[[McpClient], Awaitable[None]]


def talk(collections: Collections, ask: Ask) -> None:
    async def talking() -> None:
        async with McpClient(create_server(Local(collections["handbook"]))) as client:
            await ask(client)

    asyncio.run(talking())


def test_assistant_finds_reads_on_and_follows(collections: Collections) -> None:
    async def ask(client: McpClient) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == {"search", "context", "ask", "follow_links", "read_file", "status"}
        assert all(tool.description and tool.annotations and tool.annotations.read_only_hint for tool in tools)
        found = await _call(client, "search", query="rotate a signing key", k=3)
        assert len(found["passages"]) == 3
        first = found["passages"][0]
        read = await _call(client, "read_file", path=first["path"], start=first["char_start"], length=40)
        assert read["text"] == first["text"][:40]
        assert read["length"] >= first["char_end"]
        links = (await _call(client, "follow_links", path="ops/README.md", limit=2))["links"]
        assert [link["source"] for link in links] == ["ops/README.md"] * 2
        context = await _call(client, "context", question="rotate a signing key", max_tokens=300)
        assert 0 < context["tokens"] <= 300
        assert (await _call(client, "status"))["chunks"] > 0
        answered = await _call(client, "ask", question="What is a signing key?", route="local")
        assert answered["found"]
        assert f"[{answered['citations'][0]['n']}]" in answered["answer"]
        cited = answered["citations"][0]
        read = await _call(
            client, "read_file", path=cited["path"], start=cited["char_start"], length=len(cited["text"])
        )
        assert read["text"] == cited["text"]

    talk(collections, ask)


def test_what_is_wrong_is_said_to_the_assistant(collections: Collections) -> None:
    async def ask(client: McpClient) -> None:
        for tool, arguments, said in (
            ("search", {"query": "x", "where": "colour:red"}, "there is no field 'colour'"),
            ("read_file", {"path": "no/such.md"}, "holds no file 'no/such.md'"),
            ("follow_links", {"path": "no/such.md"}, "holds no file"),
            ("search", {"query": "x", "k": 0}, "greater than or equal to 1"),
            ("ask", {"question": "Which themes dominate?", "route": "global"}, "has no graph"),
        ):
            answer = await client.call_tool(tool, arguments)
            assert answer.is_error
            assert said in answer.content[0].text  # type: ignore[union-attr]

    talk(collections, ask)


def test_command_speaks_over_stdin_and_stdout(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the README has an assistant start, line by line as any assistant writes it; in this process, as another one takes
    1.6 s to start."""
    from clew.cli.main import main

    (shown,) = re.findall(r'^ {4}(\{"mcpServers".*\})$', README.read_text("utf-8"), re.MULTILINE)
    example = json.loads(shown)["mcpServers"]["handbook"]
    assert example["command"] == "clew"
    arguments = [argument.replace("./handbook", str(root)) for argument in example["args"]]
    assert str(root) in arguments
    (server_in, client_out), (client_in, server_out) = os.pipe(), os.pipe()
    with (
        os.fdopen(server_in) as stdin,
        os.fdopen(server_out, "w") as stdout,
        os.fdopen(client_out, "w") as said,
        os.fdopen(client_in) as heard,
        ThreadPoolExecutor(1) as pool,
    ):
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", stdout)
        serving = pool.submit(main, arguments)
        serving.add_done_callback(lambda _: stdout.close())  # whoever still waits for an answer sees that there is none

        def ask(method: str, **params: Any) -> Any:
            said.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
            said.flush()
            return json.loads(heard.readline())["result"]

        hello = ask(
            "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "0"}
        )
        assert hello["serverInfo"]["name"] == "clew"
        said.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        found = ask("tools/call", name="search", arguments={"query": "signing key", "k": 1})
        assert len(found["structuredContent"]["passages"]) == 1
        said.close()  # the assistant has gone: the command ends
        with pytest.raises(SystemExit) as ended:
            serving.result(30)
        assert ended.value.code == 0


@pytest.mark.slow
def test_command_in_a_process_of_its_own_speaks_to_the_official_client(root: Path, session_cache: Path) -> None:
    async def talking() -> None:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "clew", "mcp", str(root)],
            env={**os.environ, "XDG_CACHE_HOME": str(session_cache)},
        )
        async with McpClient(command) as client:
            found = await _call(client, "search", query="signing key", k=1)
            assert len(found["passages"]) == 1

    asyncio.run(talking())


async def _call(client: McpClient, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer
    assert answer.structured_content is not None
    content: dict[str, Any] = answer.structured_content
    return content
