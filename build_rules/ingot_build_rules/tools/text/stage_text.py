"""The text view of every stage, as ``--to`` prints it.

In: a compilation. Out: text, the same on every machine for the same stage. Not done here: making
the stages.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.tools.text.loops_file import GROUP_TEXTS, TargetGroup
from ingot_compiler.frontend.model.print_imported import print_imported
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.suggest import suggest
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.lowering.groups.fused import groups_of
from ingot_compiler.lowering.groups.print_fused import print_fused
from ingot_compiler.memory.print_memory import print_memory
from ingot_compiler.placement.print_placed import print_placed
from ingot_runtime.format.describe import lines_of

if TYPE_CHECKING:
    from ingot_build_rules.making.stages.compile_model import CompiledModel
    from ingot_build_rules.making.stages.target_build import TargetBuild


def _per_target(view: Callable[[TargetBuild], str]) -> Callable[[CompiledModel], str]:
    """Print a view of each target under the target's name."""

    def text(compiled: CompiledModel) -> str:
        return "".join(
            f'target "{build.target}"\n{view(build)}' for build in compiled.target_builds
        )

    return text


def _groups(view: Callable[[TargetGroup], str]) -> Callable[[CompiledModel], str]:
    """Print a view of what each group becomes, behind the nodes that it is of, and the target where
    that is another."""

    def text(compiled: CompiledModel) -> str:
        parts: list[str] = []
        current = ""
        others = tuple(device.target for device in compiled.options.devices)
        for build in compiled.target_builds:
            for group, lowered in zip(groups_of(build.fused), build.lowered, strict=True):
                target = (str(build.target), *others)[group.device]
                parts += [f'target "{target}"\n'] if target != current else []
                parts.append(f"# nodes {list(group.source)}\n{view(TargetGroup(lowered, target))}")
                current = target
        return "".join(parts)

    return text


def _library(build: TargetBuild) -> str:
    """List the kernels: symbol, how many launches share it, bytes of its object."""
    launches: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for kernel in (build.objects[launch.program] for launch in build.launches):
        launches[kernel.symbol] = launches.get(kernel.symbol, 0) + 1
        sizes[kernel.symbol] = kernel.size_bytes
    return "".join(
        f"{symbol}: {count} launches, {sizes[symbol]} bytes\n" for symbol, count in launches.items()
    )


def _bundle(compiled: CompiledModel) -> str:
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        path = os.path.join(folder, "bundle.ingot")
        compiled.save(path)
        return "\n".join(lines_of(describe_bundle(path)))


STAGE_TEXTS: Mapping[str, Callable[[CompiledModel], str]] = {
    "imported": lambda compiled: print_imported(compiled.imported),
    "graph": lambda compiled: print_graph(compiled.graph),
    "optimized": lambda compiled: print_graph(compiled.optimized.graph),
    "placed": lambda compiled: print_placed(compiled.placed),
    "fused": _per_target(lambda build: print_fused(build.fused)),
    "loops": _groups(GROUP_TEXTS["loops"]),
    "memory": _per_target(lambda build: print_memory(build.plan)),
    "program": _per_target(lambda build: build.variant.main.listing.value()),
    "library": _per_target(_library),
    "assembly": _groups(GROUP_TEXTS["assembly"]),
    "bundle": _bundle,
}


def stage_text(compiled: CompiledModel, stage: str) -> str:
    """Return the text view of a stage of ``stages.STAGES``."""
    return STAGE_TEXTS[stage](compiled)


def check_stage(stage: str) -> None:
    """Refuse a stage that there is none of.

    Raises:
        UserError: says which one was probably meant.
    """
    if stage not in STAGE_TEXTS:
        why = f"expected one of {', '.join(STAGE_TEXTS)}, got {stage!r}"
        do = suggest(str(stage), list(STAGE_TEXTS))
        raise UserError("unknown stage", "argument stage", why, do)
