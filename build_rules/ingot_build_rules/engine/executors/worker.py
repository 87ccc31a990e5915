"""A worker process: runs actions that it is told, until its standard input ends.

In: actions on standard input. Out: that it listens, then outcomes, on standard output. Not done
here: choosing, keys, records; a worker writes blobs and nothing else.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import IO, cast

from ingot_artifacts.store.layers import open_blobs
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.perform import perform_action
from ingot_build_rules.engine.actions.rule import Rulebook
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.executors.garbage import collect_rarely
from ingot_build_rules.engine.executors.wire import framed, plain_outcome, read_action, read_message

_PR_SET_PDEATHSIG = 1


def serve(
    where: str, temporary: str, addresses: Sequence[str], outside: Sequence[str] = ()
) -> None:
    """Run actions of the rulebook at ``where`` ("module:attribute") over the blobs of a cache whose
    layers have these addresses.

    Temporary files lie in the folder ``temporary``; ``outside``: code that the user has named
    (``Rulebook.outside``).
    """
    _die_with(os.getppid())
    collect_rarely()
    module, attribute = where.split(":")
    known = cast("Rulebook", getattr(importlib.import_module(module), attribute))
    rulebook = replace(known, outside=tuple(outside))
    values = Values(open_blobs(addresses), Codec(rulebook.types))
    source, sink = _take_pipes()
    tempfile.tempdir = temporary
    _send(sink, b"+")  # it listens
    while (message := read_message(source)) is not None:
        outcome = perform_action(read_action(message), rulebook, values)
        _send(sink, framed(plain_outcome(outcome, values.codec)))


def _send(sink: IO[bytes], content: bytes) -> None:
    try:
        sink.write(content)
        sink.flush()
    except BrokenPipeError:  # the scheduler is gone; at a normal end the rest would be tried again
        os._exit(1)


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Keep the pipes for messages: rules and the programs that they call read nothing, and what
    they print goes to the errors."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _die_with(parent: int) -> None:
    """End when the parent does, however it ends; where the system cannot promise that, the end of
    the pipe does it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
