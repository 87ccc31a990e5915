"""One file that is a program and a bundle: the loader in C, and a bundle behind it.

In: an open build, a bundle. Out: a file. FORMAT.md, "Executable". Not done here: the loader
(``rules.compile_loader``), checking every byte of the bundle (``check.verify_bundle``).
"""

from __future__ import annotations

import os

from ingot_artifacts.inspect.describe import opened
from ingot_artifacts.store.atomic import atomic_file, sync_folders
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.rules.compile_loader import COMPILE_LOADER, LoaderInputs
from ingot_build_rules.tools.export.loader_sources import loader_sources
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.targets.target import parse_target
from ingot_runtime.format.file import TRAILER, TRAILER_MAGIC
from ingot_runtime.format.limits import ALIGNMENT_MAPPED_BYTES
from ingot_runtime.format.plan import BundlePlan
from ingot_runtime.format.source import Source, read_plan
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

_CHUNK_BYTES = 1 << 24
# The oldest glibc that programs are linked against, by processor.
_GLIBC = {"riscv64": "2.27"}
_GLIBC_ELSEWHERE = "2.17"


@dataclass(frozen=True, slots=True)
class Executable:
    """``loader_bytes``: of the program before the bundle; ``digest``: the bundle's root digest."""

    triple: str
    loader_bytes: int
    size_bytes: int
    digest: str


def write_executable(
    build: Scheduler, bundle: str, output: str, *, dynamic: bool = False
) -> Executable:
    """Write the file, and wait until it is on the disk.

    Args:
        build: makes the loader.
        bundle: the path of what is behind it.
        output: the path of the file.
        dynamic: whether it is linked with the machine's glibc when it starts, which devices beside
            the host need.

    Raises:
        BundleError: no bundle. UnsupportedError: one that the loader in C cannot run, or for
            several kinds of processors. OutputError: no space.
    """
    with opened(bundle) as source:
        plan = read_plan(source)
        if not dynamic:
            _require_host(bundle, plan)
        triple = _triple(bundle, plan, dynamic=dynamic)
        made = build.run(
            build.need(COMPILE_LOADER, LoaderInputs(loader_sources(), triple), "loader")
        )
        loader = bytes(made.value())
        start = -(-len(loader) // ALIGNMENT_MAPPED_BYTES) * ALIGNMENT_MAPPED_BYTES
        with atomic_file(output, lasting=True, runs=True) as file:
            file.write(loader.ljust(start, b"\0"))
            for at in range(0, source.size_bytes, _CHUNK_BYTES):
                file.write(_chunk(source, at))
            file.write(TRAILER.pack(start, source.size_bytes, TRAILER_MAGIC))
        source.require_unchanged()
        sync_folders([os.path.dirname(os.path.abspath(output))])
        size_bytes = start + source.size_bytes + TRAILER.size
        return Executable(triple, len(loader), size_bytes, source.root_digest.hex())


def _chunk(source: Source, at: int) -> bytes:
    return source.read(at, min(_CHUNK_BYTES, source.size_bytes - at))


def _require_host(bundle: str, plan: BundlePlan) -> None:
    beside = [device for device in plan.devices if device.kind != "host"]
    if beside:
        why = f"the bundle has the device {beside[0].name!r} of kind {beside[0].kind}"
        what = "a static program has no devices beside the host"
        raise UnsupportedError(what, bundle, why, ("make it a dynamic one: ", OptionRef("dynamic")))


def _triple(bundle: str, plan: BundlePlan, *, dynamic: bool) -> str:
    architectures = sorted({parse_target(variant.target).arch for variant in plan.variants})
    if len(architectures) > 1:
        why = f"the bundle has code for {', '.join(architectures)}, an executable runs on one"
        do = "compile the model for one of them"
        raise UnsupportedError("a bundle for several kinds of processors", bundle, why, do)
    arch = architectures[0].replace("x86-64", "x86_64")
    libc = f"gnu.{_GLIBC.get(arch, _GLIBC_ELSEWHERE)}" if dynamic else "musl"
    return f"{arch}-linux-{libc}"
