"""A worker process: runs actions that it is told, until its standard input ends.

In: (number, rule, inputs by digests) on standard input. Out: outcomes on standard output. Not done here: choosing, keys,
records; a worker writes blobs and nothing else.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
from typing import cast

from ingot_artifacts.store.blobs import BlobStore
from ingot_build_rules.engine.codec import Codec
from ingot_build_rules.engine.perform import Outcome, perform
from ingot_build_rules.engine.rule import Rulebook
from ingot_build_rules.engine.values import Values
from ingot_build_rules.engine.wire import plain_outcome, read_message, write_message

_PR_SET_PDEATHSIG = 1


def serve(where: str, joined: str) -> None:
    """Run actions of the rulebook at ``where`` ("module:attribute") over blobs in the ``joined`` folders, the first one written to."""
    # Ctrl-C reaches the whole group: the parent reports it and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with(os.getppid())
    module, attribute = where.split(":")
    rulebook = cast("Rulebook", getattr(importlib.import_module(module), attribute))
    folder, *lower = joined.split(os.pathsep)
    values = Values(BlobStore(folder, lower), Codec(rulebook.types))
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print must not get between messages
    while (message := read_message(source)) is not None:
        number, rule, content = message
        try:
            inputs = values.codec.decode(content, values)
        except ValueError as error:
            raise SystemExit(f"worker: {error}") from None
        outcome: Outcome = perform(rulebook.by_name[rule], inputs, values, rulebook.errors)
        write_message(sink, [number, plain_outcome(outcome)])


def _die_with(parent: int) -> None:
    """End when the parent does, however it ends; where the system cannot promise that, the end of the pipe does it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
