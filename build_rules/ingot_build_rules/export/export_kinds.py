"""What a bundle can be exported as: the visible list, one file each.

In: an open build, a bundle, a place, the user's choices. Out: files, and what to say of them. Not
done here: arguments (``cli.export``), checking every byte of the bundle (``check.verify_bundle``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.export.executable import write_executable
from ingot_build_rules.export.library import write_library
from ingot_build_rules.export.library_facts import LibraryChoices


@dataclass(frozen=True, slots=True)
class Exported:
    """``values``: of the JSON report; ``says``: what there is to say for people, with the names of values
    in braces."""

    values: Mapping[str, object]
    says: str


@dataclass(frozen=True, slots=True)
class ExportChoices:
    """``shared``: a library that is loaded when the program starts."""

    library: LibraryChoices = field(default_factory=LibraryChoices)
    shared: bool = False


@dataclass(frozen=True, slots=True)
class ExportKind:
    """``write`` takes a build, a bundle, a place, choices. The place is a file, or where ``in_folder`` is set the folder of
    several. ``takes``: the options of the command that belong to it."""

    write: Callable[[Scheduler, str, str, ExportChoices], Exported]
    takes: frozenset[str] = frozenset()
    in_folder: bool = False


def _executable(build: Scheduler, bundle: str, output: str, choices: ExportChoices) -> Exported:
    del choices
    made = write_executable(build, bundle, output)
    says = "{size_bytes}, of which the loader has {loader_bytes}, for {triple}"
    return Exported(asdict(made), says)


def _library(build: Scheduler, bundle: str, output: str, choices: ExportChoices) -> Exported:
    made = write_library(build, bundle, output, choices.library, shared=choices.shared)
    says = f"{', '.join(made.files)}; the library has {{size_bytes}}, for {{target}}"
    return Exported({**asdict(made), "files": list(made.files)}, says)


KINDS: Mapping[str, ExportKind] = {
    "executable": ExportKind(_executable),
    "library": ExportKind(
        _library, frozenset({"name", "variant", "shared", "pool", "tensors_in"}), in_folder=True
    ),
}
