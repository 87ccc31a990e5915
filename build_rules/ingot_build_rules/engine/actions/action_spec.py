"""An action as an executor gets it: one frozen value that names everything that running it takes.

In: a rule, a key, inputs. Out: ``ActionSpec``. Not done here: what becomes of an action in a build
(``action``), the value as bytes (``wire``), running it (``perform``).

An executor on another machine needs the blobs, the tools and a program that knows the rule in this
version, and nothing else of the machine that asks; an action that ``reads_files`` is the exception
and can only run where these files are.
"""

from __future__ import annotations

from dataclasses import field

from ingot_artifacts.store.blobs import blob_missing
from ingot_build_rules.engine.actions.key import LOADED, Key
from ingot_build_rules.engine.actions.rule import AnyRule
from ingot_build_rules.engine.actions.values import Values
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Blob:
    """``digest``: 64 hex digits of sha256 over the bytes."""

    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that the rule calls: its name in the rule, and 64 hex digits of sha256 over the
    program's file."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class LoadedCode:
    """A "module:attribute" that the action loads because its inputs name it, and the digest of the
    code that it can run."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What actions of the same rule took lately, one on average; None where none is known to have
    run."""

    seconds: float | None = None
    result_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """``key``: 32 bytes that name the result; ``rule``, ``version``, ``code``: the rule, and the
    digest of its code; ``loaded``: code that the inputs name beside it.

    ``inputs``: as ``Codec`` encodes them; ``blobs``: the artifacts that they name. ``reads_files``:
    the action reads files that its inputs name by path. ``cost`` is an estimate and decides no
    result.
    """

    key: bytes
    rule: str
    version: int
    code: str
    inputs: bytes
    blobs: tuple[Blob, ...]
    tools: tuple[Tool, ...] = ()
    loaded: tuple[LoadedCode, ...] = ()
    reads_files: bool = False
    cost: Cost = field(default=Cost(), compare=False)


def specify(rule: AnyRule, key: Key, inputs: object, values: Values, cost: Cost) -> ActionSpec:
    """Return the action of ``rule`` on ``inputs``.

    Raises:
        BlobMissing: an artifact that the inputs name is not there.
    """
    content, refs = values.codec.encode(inputs)
    digests = {item.name: item.digest for item in key.ingredients}
    return ActionSpec(
        key=key.digest,
        rule=rule.name,
        version=rule.version,
        code=digests["code"],
        inputs=content,
        blobs=tuple(_blob(ref, values) for ref in refs),
        tools=tuple(Tool(name, digests[f"tool {name}"]) for name in rule.tools),
        loaded=tuple(
            LoadedCode(name.removeprefix(LOADED), digest)
            for name, digest in digests.items()
            if name.startswith(LOADED)
        ),
        reads_files=rule.reads_files,
        cost=cost,
    )


def _blob(digest: str, values: Values) -> Blob:
    size_bytes = values.blobs.size_bytes(digest)
    if size_bytes is None:
        raise blob_missing(digest)
    return Blob(digest, size_bytes)
