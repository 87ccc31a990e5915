"""What processes tell each other of actions: framed messages of msgpack, never pickle.

In: actions, outcomes. Out: bytes on pipes, and the same again. Not done here: processes (``pool``,
``worker``).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import IO, Any, cast

from ingot_artifacts.errors import ArtifactError, OutputError
from ingot_artifacts.store.blobs import blob_missing
from ingot_build_rules.engine.actions.action_spec import ActionSpec, Blob, Cost, LoadedCode, Tool
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.errors import ActionError
from ingot_build_rules.engine.actions.message_pack import pack, unpack
from ingot_build_rules.engine.actions.perform import Outcome

_LENGTH = struct.Struct("<Q")


def framed(message: object) -> bytes:
    """Return one message, its length before it."""
    content = pack(message)
    return _LENGTH.pack(len(content)) + content


def read_message(source: IO[bytes]) -> Any:
    """Return the next message; None at the end, also in the middle of one."""
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    content = source.read(size)
    return unpack(content) if len(content) == size else None


def plain_action(action: ActionSpec) -> dict[str, object]:
    """Return an action as plain values."""
    return {
        "key": action.key,
        "rule": action.rule,
        "version": action.version,
        "code": action.code,
        "inputs": action.inputs,
        "blobs": [(blob.digest, blob.size_bytes) for blob in action.blobs],
        "tools": [(tool.name, tool.digest) for tool in action.tools],
        "loaded": [(code.name, code.digest) for code in action.loaded],
        "reads_files": action.reads_files,
        "cost": (action.cost.seconds, action.cost.result_bytes),
    }


def read_action(plain: dict[str, Any]) -> ActionSpec:
    """Return the action that plain values are."""
    return ActionSpec(
        key=plain["key"],
        rule=plain["rule"],
        version=plain["version"],
        code=plain["code"],
        inputs=plain["inputs"],
        blobs=tuple(Blob(*blob) for blob in plain["blobs"]),
        tools=tuple(Tool(*tool) for tool in plain["tools"]),
        loaded=tuple(LoadedCode(*code) for code in plain["loaded"]),
        reads_files=plain["reads_files"],
        cost=Cost(*plain["cost"]),
    )


def plain_outcome(outcome: Outcome, codec: Codec) -> dict[str, object]:
    """Return an outcome as plain values."""
    return {
        "result": outcome.result,
        "refs": outcome.refs,
        "reads": outcome.reads,
        "messages": outcome.messages,
        "seconds": outcome.seconds,
        "error": None if outcome.error is None else _plain_error(outcome.error, codec),
        "lost": outcome.lost,
        "cancelled": outcome.cancelled,
    }


def read_outcome(plain: dict[str, Any], errors: Sequence[type[Exception]], codec: Codec) -> Outcome:
    """Return the outcome; its error is of the nearest class that is known here, and refers to what
    it did there."""
    return Outcome(
        result=plain["result"],
        refs=tuple(plain["refs"]),
        reads=tuple(plain["reads"]),
        messages=tuple(plain["messages"]),
        seconds=plain["seconds"],
        error=None if plain["error"] is None else _error(plain["error"], errors, codec),
        lost=plain["lost"],
        cancelled=plain["cancelled"],
    )


def _plain_error(error: Exception, codec: Codec) -> list[object]:
    """Names of its class and of those above; each part as it is encoded among artifacts, or as a
    text."""
    parts = cast("tuple[object, ...]", getattr(error, "parts", (str(error),)))
    return [
        [kind.__qualname__ for kind in type(error).__mro__],
        [_plain_part(part, codec) for part in parts],
    ]


def _plain_part(part: object, codec: Codec) -> bytes:
    try:
        return codec.encode(part)[0]
    except TypeError:
        return codec.encode(str(part))[0]


def _error(plain: list[list[Any]], errors: Sequence[type[Exception]], codec: Codec) -> Exception:
    names, parts = plain
    kinds: dict[str, type[Exception]] = {
        kind.__qualname__: kind for kind in (*errors, ActionError, OutputError, ArtifactError)
    }
    kind = next((kinds[name] for name in names if name in kinds), ActionError)
    return kind(*(codec.decode(part, _NO_ARTIFACTS) for part in parts))


class _NoArtifacts:
    """An error refers to no artifact: none is ever asked for."""

    def load(self, digest: str, *, raw: bool) -> object:
        del raw
        raise blob_missing(digest)


_NO_ARTIFACTS = _NoArtifacts()
