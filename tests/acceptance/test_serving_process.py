"""`clew serve` as a service manager runs it: without these, systemd would kill it, or lose what a reload was to change."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.commands import clew, environment, write
from tests.servers import wait_until

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]


class Manager:
    """What a service manager hears."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)
        self.heard: list[str] = []

    def hears(self, line: str) -> bool:
        try:
            while True:
                self.heard += self._socket.recv(65536).decode().splitlines()
        except BlockingIOError:
            return line in self.heard

    def close(self) -> None:
        self._socket.close()


@contextmanager
def serving(*arguments: str, notify: Path, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], Manager]]:
    manager = Manager(notify)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "clew", "serve", *arguments, "--port", "0"],
            stdout=subprocess.DEVNULL,
            stderr=output,
            env=environment(NOTIFY_SOCKET=str(notify), WATCHDOG_USEC="600000000"),
        )
    try:
        yield process, manager
    finally:
        process.kill()
        process.wait()
        manager.close()


def ready(log: Path) -> bool:
    found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
    if found is None:
        return False
    try:
        with urllib.request.urlopen(f"{found[0]}/readyz", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_a_service_manager_is_told_of_readiness_reload_and_end(tmp_path: Path) -> None:
    write(tmp_path / "one", {"a.md": "# A\n"})
    write(tmp_path / "two", {"b.md": "# B\n"})
    config, log = tmp_path / "service.yaml", tmp_path / "log"
    entry = "{root: %s, embedder: none, workers: 0}"
    config.write_text("server: {log: json}\ncollections:\n  one: " + entry % "one" + "\n")
    with serving(str(config), notify=tmp_path / "n", log=log) as (process, manager):
        wait_until(lambda: manager.hears("READY=1"), seconds=120, what="READY=1")
        wait_until(lambda: ready(log), seconds=120, what="readiness")
        config.write_text(config.read_text() + "  two: " + entry % "two" + "\n")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: manager.hears("RELOADING=1"), seconds=60, what="RELOADING=1")
        wait_until(lambda: (tmp_path / "two/.clew/snapshots/000000000002").exists(), seconds=120, what="the new one")
        wait_until(lambda: manager.hears("WATCHDOG=1"), seconds=60, what="WATCHDOG=1")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert manager.hears("STOPPING=1")
    assert manager.heard.count("READY=1") == 2
    for name in ("one", "two"):
        assert sorted((tmp_path / name / ".clew/epochs").glob("*.heartbeat"))[-1].read_bytes() == b"released"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"at", "level", "logger", "message"} <= set(lines[0])
    assert any("was read again: 2 collections" in line["message"] for line in lines)


def test_a_wrong_setting_is_one_sentence_with_its_line(tmp_path: Path) -> None:
    config = tmp_path / "service.yaml"
    config.write_text("collections:\n  docs:\n    root: docs\n    shedule: '* * * * *'\n")
    for command in ("serve", "check"):
        done = clew(*(("config", "check") if command == "check" else ("serve",)), config)
        assert done.status == 2
        assert "line 4: collections.docs.shedule: unknown key; did you mean schedule?" in done.err
    assert "Traceback" not in done.err
    found = clew("config", "check", config, "--json")
    (finding,) = json.loads(found.out)["findings"]
    assert (finding["key"], finding["line"]) == ("collections.docs.shedule", 4)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["nowhere"], "There is no folder or record file"),
        (["nowhere.yaml"], "No such file"),
        (["docs.yaml", "--embedder", "none"], "go with a ROOT"),
    ],
)
def test_an_impossible_wish_is_one_sentence(tmp_path: Path, arguments: list[str], hint: str) -> None:
    name, *rest = arguments
    done = clew("serve", tmp_path / name, *rest)
    assert done.status == 2
    assert hint in done.sentence
