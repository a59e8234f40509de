"""What the sandbox's tests run in its processes."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

from clew.errors import EncryptedFileError

_leak: list[bytearray] = []
_started: list[str] = []


def initialise() -> None:
    """Leaves a mark that jobs can see."""
    _started.append("yes")


def initialise_wrongly() -> None:
    """An initializer that cannot work."""
    raise RuntimeError("no such part")


def initialise_deadly() -> None:
    """An initializer that takes the process down."""
    sys.stderr.write("could not map the library\n")
    sys.stderr.flush()
    os.abort()


def work(job: tuple[str, Any]) -> Iterator[Any]:
    """One job: a verb and its argument."""
    verb, argument = job
    if verb == "count":
        yield from range(argument)
    elif verb == "process":
        yield os.getpid()
    elif verb == "started":
        yield len(_started)
    elif verb == "partly":
        yield "partial"
        yield from work(argument)
    elif verb == "spin":
        while True:
            pass
    elif verb == "spin in C":  # holds the GIL: nothing written in Python could stop it from inside
        re.match(r"(a+)+$", "a" * 60 + "b")
    elif verb == "sleep":
        time.sleep(argument)
        yield "awake"
    elif verb == "segv":
        ctypes.string_at(0)
    elif verb == "signal":
        os.kill(os.getpid(), argument)
    elif verb == "exit":
        os._exit(argument)
    elif verb == "sys.exit":
        sys.exit(argument)
    elif verb == "allocate":
        yield len(bytearray(argument))
    elif verb == "leak":
        _leak.append(bytearray(argument))
        yield os.getpid()
    elif verb == "abort with words":
        sys.stderr.write(argument)
        sys.stderr.flush()
        os.abort()
    elif verb == "raise":
        raise argument
    elif verb == "encrypted":
        raise EncryptedFileError("locked: report.pdf")
    elif verb == "print":
        print(argument, flush=True)  # noqa: T201 - that is the test
        os.write(1, argument.encode())
        yield "printed"
    elif verb == "unpicklable":
        yield lambda: None
    elif verb == "table":
        import numpy as np
        import pyarrow as pa

        rows, number = argument
        yield pa.table({"n": np.full(rows, number, dtype=np.int64), "text": pa.repeat("x", rows)})
    elif verb == "write a line":  # tells the parent's test which jobs have begun
        with open(argument, "a") as file:
            file.write("begun\n")
        yield "written"
    elif verb == "bytes":
        for _ in range(argument[0]):
            yield bytes(argument[1])
    elif verb == "length":
        yield len(argument)
    else:
        raise AssertionError(verb)
