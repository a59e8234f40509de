"""The command as scripts meet it: its exit status, what it prints, and what it says on the side."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOUSE = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        """stdout as the one JSON object that it must be."""
        assert self.status in (0, 1), self.err
        assert self.out.count("\n") == 1, self.out[:2000]
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def rows(self) -> list[dict[str, Any]]:
        """stdout as JSON lines."""
        assert self.status == 0, self.err
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def sentence(self) -> str:
        """The one sentence that a refused request gets: nothing on stdout, no traceback, no log lines."""
        assert self.out == ""
        assert "Traceback" not in self.err
        (line,) = self.err.splitlines()
        assert line.startswith("clew: ")
        return line.removeprefix("clew: ")


def clew(*arguments: str | Path) -> Done:
    """Run a command in this process, which spares a second of imports."""
    from clew.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    status: Any = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
    assert isinstance(status, int)
    return Done(status=status, out=out.getvalue(), err=err.getvalue())


def environment(**more: str) -> dict[str, str]:
    """For a process of its own: this repository's clew, whether installed or not."""
    path = os.pathsep.join([str(HOUSE), str(HOUSE / "client"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), **more}


def process(*arguments: str | Path, module: str = "clew", **more: str) -> Done:
    """Run a command as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        timeout=240,
    )
    return Done(status=done.returncode, out=done.stdout, err=done.stderr)


@contextlib.contextmanager
def started(*arguments: str | Path, module: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs while the test goes on; killed at the end if it still does."""
    running = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, old enough that their times are beyond doubt; returns the folder."""
    old = time.time() - 3600
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(path, (old, old))
    return folder
