"""A service's memory. If this were deleted, each of its threads could keep for itself what superseded snapshots took."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import weakref

import pytest

from clew.daemon import memory

#: Every thread holds memory while the others begin, so that each wants an arena; then glibc is asked how many there are.
ARENAS = """
import ctypes, sys, tempfile, threading
from clew.daemon.memory import bound_arenas, give_back
said = bound_arenas()
together = threading.Barrier(24)
def hold():
    kept = [bytes(600) for _ in range(1000)]
    together.wait()
threads = [threading.Thread(target=hold) for _ in range(24)]
for thread in threads: thread.start()
for thread in threads: thread.join()
give_back()
c = ctypes.CDLL(None)
c.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(c.fopen(file.name.encode(), b"w"))
    c.malloc_info(0, stream)
    c.fclose(stream)
    print(said, file.read().count(b"<heap nr="))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")
def test_threads_share_as_many_arenas_as_there_are_cores() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    told = subprocess.run([sys.executable, "-c", ARENAS], env=environment, capture_output=True, text=True, check=True)
    said, arenas = told.stdout.split()
    assert said == "True"
    assert 1 <= int(arenas) <= max(2, min(8, os.cpu_count() or 2))


class Node:
    """Something that can be part of a cycle."""

    other: Node


def test_what_stays_is_passed_by_and_what_has_become_garbage_goes_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Node(), Node()
    one.other, two.other = two, one
    gone = weakref.ref(one)
    try:
        memory.settle()
        assert gc.get_freeze_count() > 0
        del one, two
        gc.collect()
        assert gone() is not None  # it was alive when everything settled
        monkeypatch.setattr(memory, "COLLECT_SECONDS", 0.0)
        memory.settle()
        assert gone() is None
    finally:
        gc.unfreeze()
