"""The root of the `conformance` command: shared options, output, and messages for a user's mistakes."""

import contextlib
import errno
import io
import itertools
import json
import math
import pathlib
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, TypeVar

import click

from conformance import __version__
from conformance.commands.result import Item, Made, Result, printed
from conformance.commands.status import ExitStatus
from conformance.model.errors import UserError
from conformance.model.judging.verdict import MOST_TRIALS
from conformance.support import spelling
from conformance.support.console import Console, mistake, one_line, silence
from conformance.support.notes import Notes

out = Console()
err = Console(stderr=True)


class Finite(click.FloatRange):
    """A finite number: neither infinite nor `nan`, which click takes to be within any range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


class Name(click.Choice[str]):
    """One of many names: a misspelt one is answered with the one that was meant, not with all of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices and (guess := spelling.did_you_mean(value, self.choices)):
            self.fail(f"there is no {value!r}; {guess}", param, ctx)
        return super().convert(value, param, ctx)


#: the option for what a command prints: text for people, or JSON by the schema of its name in conformance/schemas
FORMAT = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="Text for people, or JSON (schema: conformance/schemas) for programs.",
)  # fmt: skip


def out_folder(default: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Return the option --out for the folder that a command writes; the command gets it as `target`."""
    return click.option(
        "--out", "target", default=default, show_default=True, type=click.Path(path_type=pathlib.Path),
        help="Folder to write.",
    )  # fmt: skip


def out_path(about: str, required: bool = False) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Return the option --out for what a command writes only if asked; the command gets the path as `target`."""
    return click.option("--out", "target", required=required, type=click.Path(path_type=pathlib.Path), help=about)


_R = TypeVar("_R", bound=Result)


def progress_console(form: str) -> Console:
    """Return the console for progress: standard error if the format is JSON, which alone goes to standard output."""
    return out if form == "text" else err


def notes(form: str) -> Notes:
    """Return the Notes of a command, which show its progress on progress_console()."""
    from conformance.reporting.text.progress import ConsoleNotes

    return ConsoleNotes(progress_console(form))


def finish(
    result: _R, form: str, show: Callable[[_R, Console], None] = lambda result, console: None,
    lines: Iterable[str] = (),
) -> NoReturn:  # fmt: skip
    """Show a command's result, as text or as JSON, then `lines`, and exit with its status.

    A result that was shown as it came has no `show`.
    """
    if form == "json":
        print_document(result)
    else:
        show(result, out)
    for line in lines:
        progress_console(form).print(line, soft_wrap=True)
    sys.exit(int(result.exit_status))


def finish_made(command: str, items: Iterable[Item], form: str, exit_status: ExitStatus = ExitStatus.DONE) -> NoReturn:
    """Show what a command made, a line for each thing, and exit."""

    def show(built: Made, console: Console) -> None:
        for item in built.items:
            console.print(item.words, soft_wrap=True)

    finish(Made(command=command, items=tuple(items), exit_status=exit_status), form, show)


def print_document(result: Result) -> None:
    """Print a command's result as JSON; do not complain if the reader of standard output has gone."""
    echo(json.dumps(printed(result), indent=1, allow_nan=False) + "\n")


def echo(content: str | bytes) -> None:
    """Write this to standard output as it is; do not complain if the reader of standard output has gone."""
    try:
        click.echo(content, nl=False)
    except BrokenPipeError:
        silence(sys.stdout)


def written(target: pathlib.Path, text: str) -> list[str]:
    """Write the file that `--out` asks for, and return the lines that say so. Raises UserError."""
    from conformance.support import files

    return [f"written: {files.write(target, text.encode(), 'choose another --out')}"]


TRIALS = click.IntRange(1, MOST_TRIALS)
#: the type of a length of time in seconds
SECONDS = Finite(0, min_open=True)
#: seeds that users may choose
SEED = click.IntRange(1, 2**31)


@contextlib.contextmanager
def _ended_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM, with which CI and `timeout` end a command, like Ctrl-C.

    Otherwise Python would end at once, and processes that it started would go on: a build's compilers, for minutes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set a signal handler
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


#: in a context's `meta`: whether its command keeps what it has done, so that it resumes if it is run again
_RESUMES = "conformance.resumes"


def resumes() -> None:
    """Note that the present command, if it is interrupted, goes on where it was when it is run again."""
    click.get_current_context().meta[_RESUMES] = True


#: errors of writing to standard output: disk full, quota, broken device; errors of other files name the file
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
#: how much of an unexpected error's message is printed; its log has all of it
_MOST_LETTERS = 200


class CommandGroup(click.Group):
    """A group of commands that shows a user's mistake as one line, never as a traceback."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command. Raise a UserError if it is behind `conformance dev`, or if an option's value is empty."""
        if ctx.parent is None:
            dev = self.commands.get("dev")
            if args[0] not in self.commands and isinstance(dev, click.Group) and args[0] in dev.commands:
                raise UserError(f"there is no command {args[0]!r}", f"run `conformance dev {args[0]}`")
            _refuse_empty(args)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal may lack some of our signs
        try:
            with _ended_as_interrupted():
                return super().invoke(ctx)
        except UserError as error:
            _refuse(ctx, error)
        except KeyboardInterrupt:
            remedy = "; run the same command again to resume" if ctx.meta.get(_RESUMES) else ""
            err.print(f"conformance: interrupted{remedy}")
            ctx.exit(ExitStatus.INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click has an exit status for each of these
        except Exception as error:
            if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
                silence(sys.stdout)
                why = f"cannot write to standard output: {error.strerror}"
                _refuse(ctx, UserError(why, "free some space, or write elsewhere"))
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
                _refuse(ctx, UserError(f"{error.filename!s:.100}: {error.strerror}", "give a shorter name"))
            _report(error)
            # Python's own status would be 1, which means that a stack violates.
            ctx.exit(ExitStatus.ERROR)


def _refuse_empty(args: Iterable[str]) -> None:
    """Raise UserError if an option's value is empty: a script's variable is not set, and the default is not meant."""
    for option, value in itertools.pairwise([*args, "-"]):
        if option.startswith("--") and (option.endswith("=") or (not value and "=" not in option)):
            raise UserError(f"{option.rstrip('=')} is empty", "give it a value, or leave it out")


def _refuse(ctx: click.Context, error: UserError) -> NoReturn:
    """Show a user's mistake, and exit."""
    err.print(f"conformance: {mistake(error)}", style="red", soft_wrap=True)
    ctx.exit(ExitStatus.MISUSE)


def _report(error: Exception) -> None:
    """Write the traceback of a fault of the suite to a log, and say where that is; if there is no log, print it."""
    text = "".join([f"conformance {__version__}: {sys.argv}\n", *traceback.format_exception(error)])
    try:
        with tempfile.NamedTemporaryFile("w", prefix="conformance-crash-", suffix=".log", delete=False) as log:
            log.write(text)
        lines = f"log {log.name}"
    except OSError:
        err.print(text, soft_wrap=True)
        lines = "lines above"
    what = one_line(f"{type(error).__name__}: {error}")[:_MOST_LETTERS]
    why = f"conformance: the suite itself failed ({what}), so nothing is known about the stack"
    err.print(f"{why}; please report this, with the {lines}", style="red", soft_wrap=True)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="conformance")
def main() -> None:
    """Test the congestion control of TCP and QUIC stacks against what Linux does."""
