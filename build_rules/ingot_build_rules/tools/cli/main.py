"""The command ``ingot``: finds the verb, runs it, turns every error into a message and an exit
code.

In: the arguments. Out: an exit code (0 ok, 1 user error, 2 build failure, 3 unsupported, 4
verification failed, 5 incompatible target, 130 interrupted). Not done here: the verbs.

What a verb or an error needs is imported with it: ``ingot --help`` is to be there at once.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from types import FrameType
from typing import cast

from ingot_build_rules.engine.executors.garbage import collect_rarely
from ingot_build_rules.tools.cli.shell.verbs import VERBS, module_of, read_verb
from ingot_compiler.ir.errors import UserError
from ingot_runtime import __version__

EXIT_INTERRUPTED = 130
_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EFBIG)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    texts = list(sys.argv[1:] if arguments is None else arguments)
    collect_rarely()
    interrupts: list[int] = []
    with _noted_interrupts(interrupts):
        return _guarded(texts, interrupts)


@contextlib.contextmanager
def _noted_interrupts(interrupts: list[int]) -> Generator[None]:
    """Note each Ctrl-C before it is raised: native libraries that are being imported turn it into
    errors of theirs."""

    def note(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    # As a shell starts what runs in the background.
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        with _lost_interrupts_repeated():
            yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _lost_interrupts_repeated() -> Generator[None]:
    """A Ctrl-C that comes while an object is being deleted goes no further than that: send it
    again, a little later."""
    timers: list[threading.Timer] = []

    def repeat_lost(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(lost)
            return
        timers.append(threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()

    hook, sys.unraisablehook = sys.unraisablehook, repeat_lost
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
            timer.join()
        sys.unraisablehook = hook


def _guarded(texts: Sequence[str], interrupts: list[int]) -> int:
    try:
        code = _dispatch(texts)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Python would complain when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001
        if interrupts:
            return _interrupted()
        return _fail(_of_output(error), texts)
    return code


def _of_output(error: Exception) -> Exception:
    """What has no file's name was written to standard output."""
    if not isinstance(error, OSError) or error.filename is not None:
        return error
    if error.errno not in _NOT_WRITTEN:
        return error
    return UserError(
        "standard output cannot be written",
        "command ingot",
        error.strerror or str(error),
        "free space, or choose another output",
    )


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return EXIT_INTERRUPTED


def help_text() -> str:
    """Return what ``ingot --help`` prints."""
    width = max(len(name) for name, _ in VERBS)
    return "\n".join(
        [
            "usage: ingot VERB ...",
            "",
            "Ingot compiles machine-learning models ahead of time into one file, the bundle.",
            "",
            *(f"  {name.ljust(width)}  {summary}" for name, summary in VERBS),
            "",
            "`ingot help VERB` explains a verb, with examples. `ingot --version` prints the version.",
        ]
    )


def _dispatch(texts: Sequence[str]) -> int:
    if not texts or texts[0] in ("-h", "--help", "help"):
        if len(texts) > 1:
            return _print_help(texts[1:])
        print(help_text())
        return 0 if texts else 1
    if texts[0] == "--version":
        print(f"ingot {__version__}")
        return 0
    return _run_verb(texts[0], texts[1:])


def _print_help(words: Sequence[str]) -> int:
    """``ingot help VERB`` is ``ingot VERB --help``."""
    _check_verb(words[0])
    if len(words) > 1:
        why = f"expected one verb, got {' '.join(words)}"
        raise UserError("help for several verbs", "command ingot help", why, "ask for one")
    from ingot_build_rules.tools.cli.shell.usage import Parser

    Parser(read_verb(words[0])).print_help()
    return 0


def _run_verb(name: str, texts: Sequence[str]) -> int:
    from ingot_build_rules.tools.cli.shell.usage import Parser

    _check_verb(name)
    arguments = Parser(read_verb(name)).parse(texts)
    module = importlib.import_module(f"ingot_build_rules.tools.cli.{module_of(name)}")
    return cast("Callable[[object], int]", module.run)(arguments)


def _check_verb(name: str) -> None:
    names = [known for known, _ in VERBS]
    if name in names:
        return
    from ingot_build_rules.tools.cli.shell.suggestions import suggest_verb

    raise UserError(
        f"unknown {'option' if name.startswith('-') else 'verb'} {name!r}",
        where="command ingot",
        why=f"expected one of {', '.join(names)}",
        do=suggest_verb(name),
    )


def _fail(error: Exception, texts: Sequence[str]) -> int:
    from ingot_build_rules.tools.cli.shell import console
    from ingot_build_rules.tools.cli.shell.failure import print_failure

    if "--debug" in texts:
        import traceback

        console.print_lines(
            *"".join(traceback.format_exception(error)).rstrip().split("\n"), file=sys.stderr
        )
    return print_failure(error, texts[0], as_json="--json" in texts)
