"""What writes each kind of export: the visible list, one file each.

In: an open build, a bundle, a place, the user's choices. Out: files, and what to say of them. Not
done here: what the user may say (``options.export_rows``), checking every byte of the bundle
(``check.verify_bundle``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, field

from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.options.export_rows import EXPORT_ROWS, ExportFields
from ingot_build_rules.tools.export.c_files import write_c_source
from ingot_build_rules.tools.export.c_source import CChoices, are_tensors_in
from ingot_build_rules.tools.export.executable import write_executable
from ingot_build_rules.tools.export.library import write_library
from ingot_build_rules.tools.export.library_facts import LibraryChoices
from ingot_build_rules.tools.export.library_pools import PoolWishes
from ingot_build_rules.tools.export.module_archive import write_module_archive
from ingot_build_rules.tools.export.release import ReleaseChoices, write_release
from ingot_build_rules.tools.export.wasm import write_wasm
from ingot_compiler.backends.c.c_forms import C_FORMS
from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Exported:
    """``values``: of the JSON report; ``says``: what there is to say for people, with the names of
    values in braces."""

    values: Mapping[str, object]
    says: str


@dataclass(frozen=True, slots=True)
class ExportChoices:
    """``shared``: a library that is loaded when the program starts; ``dynamic``: an executable that
    is linked with glibc when it starts; ``others``: bundles beside the first."""

    library: LibraryChoices = field(default_factory=LibraryChoices)
    shared: bool = False
    others: tuple[str, ...] = ()
    source: CChoices = field(default_factory=CChoices)
    release: ReleaseChoices | None = None
    dynamic: bool = False


def _executable(build: Scheduler, bundle: str, output: str, choices: ExportChoices) -> Exported:
    made = write_executable(build, bundle, output, dynamic=choices.dynamic)
    says = "{size_bytes}, of which the loader has {loader_bytes}, for {triple}"
    return Exported(asdict(made), says)


def _library(build: Scheduler, bundle: str, output: str, choices: ExportChoices) -> Exported:
    made = write_library(build, bundle, output, choices.library, shared=choices.shared)
    says = f"{', '.join(made.files)}; the library has {{size_bytes}}, for {{target}}"
    return Exported({**asdict(made), "files": list(made.files)}, says)


def _module_archive(build: Scheduler, bundle: str, output: str, choices: ExportChoices) -> Exported:
    made = write_module_archive(build, (bundle, *choices.others), output, choices.library)
    says = f"{', '.join(made.modules)}; {{size_bytes}}"
    return Exported({**asdict(made), "modules": list(made.modules)}, says)


def _c_source(build: Scheduler, model: str, output: str, choices: ExportChoices) -> Exported:
    made = write_c_source(build, model, output, choices.source)
    beside = "with" if made.facts.tensors_inside else "beside"
    says = (
        f"{', '.join(made.files)}; RAM {{ram_bytes}} {beside} inputs and outputs, stack "
        "{stack_bytes}, flash {weights_bytes} beside code; {call_count} calls of {kernel_count} kernels"
    )
    target = {"target": made.facts.form}
    return Exported({**target, **made.facts.counts(), "files": list(made.files)}, says)


def _wasm(build: Scheduler, model: str, output: str, choices: ExportChoices) -> Exported:
    made = write_wasm(build, model, output, choices.source)
    counts = {name: value for name, value in made.facts.counts().items() if name != "stack_bytes"}
    values = {**counts, "files": list(made.files), "size_bytes": made.size_bytes}
    return Exported(values, f"{', '.join(made.files)}; the module has {{size_bytes}}")


def _release(build: Scheduler, bundle: str, output: str, choices: ExportChoices) -> Exported:
    assert choices.release is not None, "a project knows what its bundles are made of"
    made = write_release(build, bundle, output, choices.release)
    return Exported(asdict(made), "{size_bytes}, {call_count} calls, {signature_count} signatures")


Writer = Callable[[Scheduler, str, str, ExportChoices], Exported]
"""Takes a build, a bundle or a model, a file or a folder, choices."""
WRITERS: Mapping[str, Writer] = {
    "executable": _executable,
    "library": _library,
    "module-archive": _module_archive,
    "c-source": _c_source,
    "wasm": _wasm,
    "release": _release,
}
"""One for each of ``EXPORT_ROWS``."""


def choices_of(
    kind: str, fields: ExportFields, where: str, release: ReleaseChoices | None = None
) -> ExportChoices:
    """Return what the fields of an export say; ``where`` they stand. ``release``: what a project
    knows of the bundle.

    Raises:
        UserError: a pool without a place, or another than there is.
    """
    shapes = tuple(map(dict, fields.shapes))
    pools = tuple(_pool(text, where) for text in fields.pools)
    wishes, first = PoolWishes(pools, fields.tensors_in), fields.shapes[0] if shapes else ()
    source = CChoices(
        fields.model_name,
        shapes,
        fields.target or C_FORMS[0].name,
        fields.weights_apart,
        EXPORT_ROWS[kind].of_model and are_tensors_in(fields.tensors_in),
        release.options if release else None,
    )
    library = LibraryChoices(fields.model_name, fields.variant, wishes, first)
    return ExportChoices(
        library, fields.shared, fields.also, source, release, dynamic=fields.dynamic
    )


def _pool(text: str, where: str) -> tuple[str, str]:
    name, equals, place = text.partition("=")
    if not equals:
        why = f"expected POOL=PLACE, got {text!r}"
        raise UserError("wrong pool", where, why, f"{name}=internal")
    return name, place
