"""What a project declares: plain, frozen data, the same from ``ingot.toml`` and from Python.

In: nothing. Out: the dataclasses. Not done here: reading (``parse``), globs (``expand``), the
folder the project lies in.

Paths are relative to the project's folder, with ``/``. ``line`` is where the table begins, 1-based;
0 where there is no file.
"""

from __future__ import annotations

from dataclasses import field

from ingot_build_rules.making.options.export_rows import NOTHING_SAID, ExportFields, Profiles
from ingot_build_rules.making.options.option_rows import GENERAL, NOTHING_GIVEN, GivenOptions
from ingot_runtime.lazy_dataclass import dataclass

FILE_NAME = "ingot.toml"
OF_THE_MODEL = NOTHING_GIVEN._replace(shapes=None, other_shapes=None)
"""What a bundle says of which nothing is said."""
STEM = "{stem}"
"""In a path of a bundle or test that stands for many: replaced by what the model's glob found."""


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A name for a target: ``text`` is what ``--target`` takes."""

    name: str
    text: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model file, or with a glob in ``source`` one model for each file that matches.

    ``shapes``: one profile each, (input name, shape) sorted by name, as ``--shape``.
    """

    name: str
    source: str
    shapes: Profiles = ()
    other_shapes: str = GENERAL
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class BundleSpec:
    """One bundle, or one for each file where ``model`` stands for many: then ``output`` has a
    ``{stem}``.

    ``options``: targets are names of ``ProjectModel.targets``, or their texts; shapes and other
    shapes are in the place of the model's, None for these.
    """

    name: str
    model: str
    output: str
    options: GivenOptions = OF_THE_MODEL
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class TestSpec:
    """Run ``bundle`` on the arrays of ``inputs`` and compare with those of ``outputs``, both
    ``.npz`` files.

    A float may be off by ``absolute_tolerance`` + ``relative_tolerance`` * the largest finite
    magnitude of the expected tensor; everything else must be equal.
    """

    name: str
    bundle: str
    inputs: str
    outputs: str
    relative_tolerance: float
    absolute_tolerance: float
    threads: int
    executor: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ExportSpec:
    """Write ``bundle``, or the model that it is made of, to ``output`` as what ``kind`` names,
    whenever the bundle is built."""

    name: str
    bundle: str
    kind: str
    output: str
    fields: ExportFields = NOTHING_SAID
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ProjectModel:
    """All that a project declares, defaults filled in; each list is sorted by name.

    ``cache``: the cache folder, None for the user's own; ``cache_max``: what it may take, as the
    file says it. ``default_targets``: what is built when
    nothing is named; empty for everything.
    """

    name: str = ""
    cache: str | None = None
    cache_max: str | None = None
    default_targets: tuple[str, ...] = ()
    targets: tuple[TargetSpec, ...] = ()
    models: tuple[ModelSpec, ...] = ()
    bundles: tuple[BundleSpec, ...] = ()
    exports: tuple[ExportSpec, ...] = ()
    tests: tuple[TestSpec, ...] = ()
