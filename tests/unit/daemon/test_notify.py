"""What systemd hears: without these, `Type=notify` would kill a healthy service as one that never became ready."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from clew.daemon.notify import notify, reloading, watchdog_seconds


def test_lines_arrive_as_one_datagram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "n"))
        receiver.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "n"))
        assert notify("READY=1", "STATUS=two collections")
        assert receiver.recv(4096) == b"READY=1\nSTATUS=two collections"
        assert reloading()
        first, second = receiver.recv(4096).decode().splitlines()
        assert first == "RELOADING=1"
        assert int(second.removeprefix("MONOTONIC_USEC=")) > 0


@pytest.mark.parametrize("address", ["", "relative", "/nowhere/at/all"])
def test_nobody_to_tell_is_no_error(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert not notify("READY=1")


@pytest.mark.parametrize(
    ("microseconds", "process", "expected"),
    [("10000000", None, 5.0), ("10000000", "1", None), ("", None, None), ("x", None, None), ("0", None, None)],
)
def test_watchdog_is_told_twice_as_often_as_it_asks(
    monkeypatch: pytest.MonkeyPatch, microseconds: str, process: str | None, expected: float | None
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    monkeypatch.setenv("WATCHDOG_PID", process or str(os.getpid()))
    assert watchdog_seconds() == expected
