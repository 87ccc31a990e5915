"""What a bundle or a model can be exported as: the visible list, one file each.

In: an open build, a bundle, a place, the user's choices. Out: files, and what to say of them. Not
done here: arguments (``cli.export``), checking every byte of the bundle (``check.verify_bundle``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, field

from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.export.c_files import write_c_source
from ingot_build_rules.export.c_source import CChoices
from ingot_build_rules.export.executable import write_executable
from ingot_build_rules.export.library import write_library
from ingot_build_rules.export.library_facts import LibraryChoices
from ingot_build_rules.export.module_archive import write_module_archive
from ingot_build_rules.export.release import ReleaseChoices, write_release
from ingot_build_rules.export.wasm import write_wasm
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


@dataclass(frozen=True, slots=True)
class ExportKind:
    """``write`` takes a build, a bundle, a place, choices. The place is a file, or where
    ``in_folder`` is set the folder of several. ``takes``: the options of the command that belong to
    it. ``of_model``: what is exported is a model, and no bundle. ``of_project``: only a project has
    it, which knows what the bundle was made of."""

    write: Callable[[Scheduler, str, str, ExportChoices], Exported]
    takes: frozenset[str] = frozenset()
    in_folder: bool = False
    of_model: bool = False
    of_project: bool = False


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


KINDS: Mapping[str, ExportKind] = {
    "executable": ExportKind(_executable, frozenset({"dynamic"})),
    "library": ExportKind(
        _library,
        frozenset({"name", "variant", "shared", "pool", "tensors_in", "shape"}),
        in_folder=True,
    ),
    "module-archive": ExportKind(
        _module_archive, frozenset({"name", "variant", "pool", "tensors_in", "also", "shape"})
    ),
    "c-source": ExportKind(
        _c_source,
        frozenset({"name", "shape", "target", "weights_apart", "tensors_in"}),
        in_folder=True,
        of_model=True,
    ),
    "wasm": ExportKind(_wasm, frozenset({"name", "shape"}), in_folder=True, of_model=True),
    "release": ExportKind(
        _release, frozenset({"selftest", "sign", "expires", "number"}), of_project=True
    ),
}
