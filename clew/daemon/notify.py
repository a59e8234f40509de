"""What a service tells systemd (sd_notify(3)): datagrams to the socket that `NOTIFY_SOCKET` names. Nothing, elsewhere."""

from __future__ import annotations

import contextlib
import os
import socket
import time


def notify(*lines: str) -> bool:
    """Send `READY=1`, `STATUS=…`, `STOPPING=1`, `WATCHDOG=1`; whether there was anybody to tell."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(address)
        sender.sendall("\n".join(lines).encode())
        return True
    return False


def reloading() -> bool:
    """Say that the configuration is read again; `notify("READY=1")` ends it."""
    return notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


def watchdog_seconds() -> float | None:
    """How often systemd wants to hear of us: half of what it waits for; None when it does not."""
    given = os.environ.get("WATCHDOG_USEC", "")
    meant = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    return int(given) / 2e6 if given.isdigit() and int(given) and meant else None
