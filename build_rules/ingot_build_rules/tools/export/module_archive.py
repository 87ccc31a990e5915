"""Models as an archive in the Model Library Format: objects, their C, headers, constants, what each
needs.

In: an open build, bundles. Out: a tar file. Not done here: what a library is (``library_facts``),
the metadata (``module_metadata``).

Nothing in it says when, where or by whom it was made: the same bundles give the same bytes.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import BinaryIO

from ingot_artifacts.inspect.describe import opened, variant_program
from ingot_artifacts.store.atomic import atomic_file, sync_folders
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.rules.compile_library import OBJECT, code_file, constants_file
from ingot_build_rules.tools.export.library import compile_library, constants_of
from ingot_build_rules.tools.export.library_facts import LibraryChoices, LibraryFacts, library_facts
from ingot_build_rules.tools.export.library_header import library_header
from ingot_build_rules.tools.export.library_pools import PoolWishes
from ingot_build_rules.tools.export.library_source import library_source
from ingot_build_rules.tools.export.module_metadata import graph_text, metadata_text
from ingot_compiler.host_program.print_program import print_program
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format.header import CODE
from ingot_runtime.format.source import Source, read_plan
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ModuleArchive:
    """``modules``: the models' names; ``digest``: the first bundle's root digest."""

    modules: tuple[str, ...]
    size_bytes: int
    digest: str


def write_module_archive(
    build: Scheduler, bundles: Sequence[str], output: str, choices: LibraryChoices
) -> ModuleArchive:
    """Write an archive of one variant of each bundle; Name, pools and shapes of ``choices`` are the
    first one's, the variant is every one's.

    Raises:
        BundleError: no bundle. UnsupportedError, UserError: as ``library_facts``; two models have
            one name. OutputError: no space.
    """
    with ExitStack() as stack:
        sources = [stack.enter_context(opened(bundle)) for bundle in bundles]
        later = replace(choices, name="", pools=PoolWishes(), shapes=())
        facts = [
            library_facts(bundle, source, later if number else choices)
            for number, (bundle, source) in enumerate(zip(bundles, sources, strict=True))
        ]
        _require_apart(bundles, facts)
        members: dict[str, _Content] = {"metadata.json": metadata_text(facts, sources).encode()}
        for bundle, source, fact in zip(bundles, sources, facts, strict=True):
            members |= _module(build, bundle, source, fact)
        with atomic_file(output, lasting=True) as file:
            _write_tar(file, members)
            size_bytes = file.tell()
        for source in sources:
            source.require_unchanged()
        sync_folders([os.path.dirname(os.path.abspath(output))])
        return ModuleArchive(tuple(fact.model for fact in facts), size_bytes, facts[0].digest)


@dataclass(frozen=True, slots=True)
class _Constants:
    """What is too large to be held in memory."""

    source: Source
    facts: LibraryFacts


_Content = bytes | _Constants


def _module(
    build: Scheduler, bundle: str, source: Source, facts: LibraryFacts
) -> Mapping[str, _Content]:
    """The files of one model, by their names in the archive."""
    model = facts.model
    program = variant_program(source, read_plan(source), facts.variant)
    return {
        f"codegen/host/include/{model}.h": library_header(facts).encode(),
        f"codegen/host/lib/{model}_lib0.o": bytes(compile_library(build, bundle, facts, OBJECT)),
        f"codegen/host/src/{code_file(model)}": source.section(CODE, facts.variant),
        f"codegen/host/src/{model}_lib0.c": library_source(facts).encode(),
        f"executor-config/graph/{model}.graph": graph_text(facts, source).encode(),
        f"parameters/{constants_file(model)}": _Constants(source, facts),
        f"src/{model}.program": print_program(program).encode(),
    }


def _require_apart(bundles: Sequence[str], facts: Sequence[LibraryFacts]) -> None:
    owners: dict[str, str] = {}
    for bundle, fact in zip(bundles, facts, strict=True):
        if fact.model in owners:
            why = f"{owners[fact.model]} and {bundle} are {fact.model} in C"
            raise UserError("two models have one name", bundle, why, "rename one of the files")
        owners[fact.model] = bundle


def _write_tar(file: BinaryIO, members: Mapping[str, _Content]) -> None:
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(members):
            content = members[name]
            row = tarfile.TarInfo(name)
            row.uname = row.gname = "root"  # as the format has it, with numbers 0
            if isinstance(content, bytes):
                row.size = len(content)
                archive.addfile(row, io.BytesIO(content))
            else:
                row.size = content.facts.constants_bytes
                archive.addfile(row, _Stream(constants_of(content.source, content.facts)))


class _Stream(io.RawIOBase):
    """Pieces as a file that is read once."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """Return ``size`` bytes, fewer only at the end."""
        while len(self._rest) < size and (chunk := next(self._chunks, b"")):
            self._rest += chunk
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken
