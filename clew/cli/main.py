"""The command line: `clew` and `python -m clew`.

Human output goes to stdout, progress and messages to stderr. Exit status: 0 done, 1 something was found wrong, 2 the
request is wrong, 3 storage or a service failed, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from functools import cache
from typing import Any

import typer
from typer.core import TyperGroup

from clew.errors import ClewError

# typer carries a click of its own since 0.20 and exports no UsageError, but one of its children.
UsageError: Any = typer.BadParameter.__base__


class Commands(TyperGroup):
    """The list of commands with whole sentences, wrapped, where the library would cut them off."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """See the library."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, each.get_short_help_str(200)) for name, each in commands if each is not None and not each.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


app = typer.Typer(
    name="clew",
    cls=Commands,
    help="An index that lives with your documents: build it, search it four ways, follow the links.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        import clew

        typer.echo(f"clew {clew.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and stop."
    ),
) -> None:
    """An index that lives with your documents."""


@cache  # once a process: registering them again would make every later call slower
def _commands() -> None:
    from clew.cli import (
        asking,
        contexts,
        demo,
        evaluating,
        graph,
        indexing,
        inspecting,
        keys,
        mcp,
        searching,
        serving,
        upkeep,
        watching,
    )

    for module in (
        indexing,
        watching,
        searching,
        asking,
        contexts,
        inspecting,
        upkeep,
        evaluating,
        graph,
        serving,
        keys,
        mcp,
        demo,
    ):
        module.register(app)


def main(arguments: list[str] | None = None) -> None:
    """Run one command, and end the process with its exit status."""
    _open_closed_streams()
    status, former = 0, _end_as_by_control_c()
    try:
        _commands()
        result = app(args=arguments, prog_name="clew", standalone_mode=False)
        status = result if isinstance(result, int) else 0
        if status == 130:  # what typer makes of an interrupt
            raise KeyboardInterrupt
        sys.stdout.flush()  # short output meets a reader that has gone only here
    except typer.Exit as stop:
        status = stop.exit_code
    except UsageError as error:
        command = error.ctx.command_path if error.ctx else "clew"
        message = error.format_message()
        if message.startswith("Usage:"):  # no command at all: the message is the help
            print(message)
        else:
            message = message if message.endswith("?") else f"{message.rstrip('.')}."
            _say(f"{message} See `{command} --help`.")
        status = 2
    except (typer.Abort, KeyboardInterrupt):
        _say("Interrupted. What was published stands; the next run goes on from there.")
        status = 130
    except BrokenPipeError:  # the reader of our output has gone (`| head`)
        _discard_output()
    except ClewError as error:
        _say(str(error))
        status = error.exit_code
    except OSError as error:
        _say(_system_fault(error))
        status = 3
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    try:
        sys.stdout.flush()
    except OSError as error:  # what an error left unwritten
        _discard_output()
        if not isinstance(error, BrokenPipeError):
            _say(_system_fault(error))
            status = status or 3
    raise SystemExit(status)


def _end_as_by_control_c() -> dict[int, Any]:
    """SIGTERM and SIGHUP (a stopped container, a closed terminal) end a command as Ctrl-C does: what was begun is put away,
    and the next writer, on whatever machine, need not wait for this one. Gives the handlers that there were.

    Whoever ignores a signal (`nohup`) goes on to; commands that run until stopped have handlers of their own.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    return {number: signal.signal(number, signal.default_int_handler) for number in numbers}


def _open_closed_streams() -> None:
    """Where a stream was closed by who started this process (`>&-`), what goes there is dropped.

    Its number is taken: the next file that is opened would get it, a file of the index, say, and libraries that are not
    Python's write their warnings to number 2 whatever that is.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process


def _discard_output() -> None:
    """What could not be written is not tried again as the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _system_fault(error: OSError) -> str:
    """An error of the system that no part of clew expected where it came; of our own output, if it names no file."""
    from clew.connectors.retries import advice, reason

    if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF):
        _discard_output()
        return f"The output cannot be written: {reason(error)}. What comes out here is not complete."
    name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    return f"{name}{reason(error)}. {advice(error)}"


def _say(message: str) -> None:
    from clew.cli.output import say

    say(f"clew: {message}")
