"""One variant of a bundle as a library and its header, to link into a program without Python.

In: an open build, a bundle, the user's choices. Out: two files in a folder, three where the caller
gives the constants. Not done here: what is in them (``library_facts``), checking every byte of the
bundle (``check.verify_bundle``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ingot_artifacts.inspect.describe import opened
from ingot_artifacts.store.atomic import atomic_file, sync_folders
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.rules.compile_library import (
    COMPILE_LIBRARY,
    SHARED,
    STATIC,
    ModelLibraryInputs,
    constants_file,
)
from ingot_build_rules.tools.export.library_facts import LibraryChoices, LibraryFacts, library_facts
from ingot_build_rules.tools.export.library_header import library_header
from ingot_build_rules.tools.export.library_source import library_source
from ingot_runtime.format.header import WEIGHTS
from ingot_runtime.format.source import Source
from ingot_runtime.lazy_dataclass import dataclass

_CHUNK_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class WrittenLibrary:
    """``files``: names in the folder; ``size_bytes``: of the library alone; ``digest``: the
    bundle's root digest."""

    files: tuple[str, ...]
    size_bytes: int
    target: str
    digest: str


def write_library(
    build: Scheduler, bundle: str, folder: str, choices: LibraryChoices, *, shared: bool
) -> WrittenLibrary:
    """Write ``libMODEL.a`` (``shared``: ``.so``) and ``MODEL.h``, and ``MODEL.constants`` where the
    caller gives them.

    Raises:
        BundleError: no bundle. UnsupportedError, UserError: as ``library_facts``. OutputError: no
            folder, no space.
    """
    with opened(bundle) as source:
        facts = library_facts(bundle, source, choices)
        form = SHARED if shared else STATIC
        content = compile_library(build, bundle, facts, form)
        header, name = f"{facts.model}.h", f"lib{facts.model}.{form}"
        _write(os.path.join(folder, header), library_header(facts).encode())
        _write(os.path.join(folder, name), content, runs=shared)
        files = [header, name]
        if any(pool.is_constant and pool.from_caller for pool in facts.pools):
            files.append(constants_file(facts.model))
            write_constants(source, facts, os.path.join(folder, files[-1]))
        source.require_unchanged()
        sync_folders([os.path.abspath(folder)])
        return WrittenLibrary(tuple(files), len(content), facts.target, facts.digest)


def compile_library(build: Scheduler, bundle: str, facts: LibraryFacts, form: str) -> memoryview:
    """Return the bytes of an object or a library; ``form``: of ``rules.compile_library``."""
    sources = (
        (f"{facts.model}.c", library_source(facts)),
        (f"{facts.model}.h", library_header(facts)),
    )
    inside = any(pool.is_constant and not pool.from_caller for pool in facts.pools)
    inputs = ModelLibraryInputs(
        facts.model,
        sources,
        facts.triple,
        facts.digest,
        facts.variant,
        facts.constants_bytes if inside else 0,
        form,
        bundle,
    )
    made = build.run(build.need(COMPILE_LIBRARY, inputs, facts.model))
    return made.value()


def write_constants(source: Source, facts: LibraryFacts, path: str) -> None:
    """Write what the caller of a library is to give."""
    with atomic_file(path, lasting=True) as file:
        for chunk in constants_of(source, facts):
            file.write(chunk)


def constants_of(source: Source, facts: LibraryFacts) -> Iterator[bytes]:
    """Read what lies in the pool of constants, piece by piece."""
    if facts.constants_bytes:
        row = next(row for row in source.sections if row.kind == WEIGHTS and row.id == 0)
        for at in range(0, facts.constants_bytes, _CHUNK_BYTES):
            yield source.read(row.offset + at, min(_CHUNK_BYTES, facts.constants_bytes - at))


def _write(path: str, content: bytes | memoryview, *, runs: bool = False) -> None:
    with atomic_file(path, lasting=True, runs=runs) as file:
        file.write(content)
