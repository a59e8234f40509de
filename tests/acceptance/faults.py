"""Faults that are put into a run: an extractor that never returns, one that dies, a reader without a superuser's rights.

As a module (`python -m tests.acceptance.faults COMMAND …`) it is the command `clew` with these faults in it: `.adoc` files
hang, every file is a group of its own, and two groups make a batch.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from clew.indexer.extract.document import Extraction, Kind, Source
from clew.indexer.intake import Intake

FILES_OF_A_BATCH = 2


def hang(source: Source, kind: Kind) -> Extraction:
    """Never returns, and cannot be told to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(3600)


def die(source: Source, kind: Kind) -> Extraction:
    """Takes the process down, as a fault in a parser written in C does."""
    os.abort()


class FaultyIntake(Intake):
    """Reads files with a faulty extractor for AsciiDoc, in whatever process it runs."""

    fault = "hang"

    def warm(self) -> None:
        super().warm()
        from clew.indexer.extract import registry

        registry.EXTRACTORS["asciidoc"] = f"tests.acceptance.faults:{self.fault}"


class DyingIntake(FaultyIntake):
    """Likewise, with one that dies."""

    fault = "die"


#: Capabilities that let a superuser read what its mode forbids: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
_READ_ANYTHING = 1 << 1 | 1 << 2
_CAPABILITY_VERSION_3 = 0x20080522


@contextlib.contextmanager
def ordinary_rights() -> Iterator[None]:
    """Inside, a mode of 000 keeps this thread from reading a file, whoever it runs as. Skips where that cannot be had."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("a superuser reads every file")
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    before = (ctypes.c_uint32 * 6)()  # twice: effective, permitted, inheritable
    without = (ctypes.c_uint32 * 6)()
    if libc.capget(header, before):
        pytest.skip("the capabilities of this process cannot be read")
    without[:] = before[:]
    without[0] &= ~_READ_ANYTHING
    if libc.capset(header, without):
        pytest.skip("the capabilities of this process cannot be given up")
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0


def _main() -> None:
    import clew.indexer.run as run
    from clew.cli.main import main

    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have had it ignored
    run.Intake = FaultyIntake  # type: ignore[misc]
    run.GROUP_FILES = 1  # type: ignore[misc]
    run.FIRST_BATCH = (FILES_OF_A_BATCH, 1 << 30)  # type: ignore[misc]
    main(sys.argv[1:])


if __name__ == "__main__":
    # The processes of the sandbox import what they run: it must not lie in __main__.
    from tests.acceptance.faults import _main as begin

    begin()
