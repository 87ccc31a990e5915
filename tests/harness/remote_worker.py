"""The other end of ``remote_executor``: one process that runs one action over a folder of blobs.

In: an action on standard input. Out: its outcome on standard output. Not done here: anything that
would need whoever asks.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import cast

from ingot_artifacts.store.blobs import BlobStore
from ingot_artifacts.store.folder_blobs import FolderBlobs
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.perform import perform_action
from ingot_build_rules.engine.actions.rule import Rulebook
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.executors.wire import framed, plain_outcome, read_action, read_message


def serve(where: str, folder: str) -> None:
    """Run one action with the rulebook at ``where`` ("module:attribute")."""
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    action = read_action(read_message(sys.stdin.buffer))
    module, attribute = where.split(":")
    rulebook = cast("Rulebook", getattr(importlib.import_module(module), attribute))
    values = Values(BlobStore([FolderBlobs(folder)]), Codec(rulebook.types))
    outcome = perform_action(action, rulebook, values)
    sink.write(framed(plain_outcome(outcome, values.codec)))
    sink.close()
