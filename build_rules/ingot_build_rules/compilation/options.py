"""What the user asks of one compilation, checked and in canonical form.

In: texts of the command line, or arguments of ``ingot.compile``. Out: ``CompileOptions``. Not done
here: the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

from ingot_build_rules.compilation.bf16_targets import require_bf16
from ingot_build_rules.compilation.configure import configure, device_options
from ingot_build_rules.compilation.pool_option import read_pools
from ingot_build_rules.compilation.strict_targets import check_devices, strict_targets
from ingot_build_rules.compilation.suggest import suggest
from ingot_build_rules.rules.choices import ROWS, ChoiceKeywords, Choices, spelling
from ingot_build_rules.rules.compile_options import (
    AUTO,
    GENERAL,
    OTHER_SHAPES,
    REFUSE,
    CompileOptions,
    PluginOption,
)
from ingot_build_rules.rules.op_option import OpOption
from ingot_build_rules.rules.tuning_option import TuningOption
from ingot_compiler.backends.target_forms import GivenTarget, GivenTargets
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.given_shape import shape_text
from ingot_compiler.ir.message import OptionRef, joined, message
from ingot_compiler.ir.optimize_for import SIZE
from ingot_compiler.ir.precision import BF16, STRICT
from ingot_compiler.memory.planners import PLANNERS
from ingot_compiler.placement.configuration import Configuration
from ingot_runtime.format.device_text import meant

Shape = str | Sequence[int | str | tuple[int, int] | None]
"""``"?x3x224x224"``, or its sizes one by one: None is any, a pair a range."""
Shapes = Mapping[str, Shape] | Sequence[Mapping[str, Shape]]
"""Input name -> shape: of one profile, or of several in the order of preference."""
ALL_PLANNERS = ("best", *PLANNERS)
ANY_OTHER = ""
"""In the place of a glob: the nodes that no glob places."""


def make_options(
    targets: GivenTargets = (),
    shapes: Shapes | None = None,
    devices: Mapping[str, str] | None = None,
    place: Sequence[tuple[str, str]] = (),
    planner: str = "best",
    other_shapes: str = GENERAL,
    *,
    plugins: Sequence[PluginOption] = (),
    named_targets: Mapping[str, GivenTarget] | None = None,
    ops: Sequence[OpOption] = (),
    tuning: TuningOption | None = None,
    pools: Sequence[str] = (),
    **choices: Unpack[ChoiceKeywords],
) -> CompileOptions:
    """Check and order the options; ``configure`` says what is assumed of targets and devices.

    Raises:
        UserError: an unknown target, feature, device kind, device or planner, or a shape that is
        none.
        UnsupportedError: a device kind that is known and not built yet.
    """
    _check_choice("memory planner", "planner", planner, ALL_PLANNERS)
    _check_choice("choice of other shapes", "other-shapes", other_shapes, OTHER_SHAPES)
    chosen = _checked(Choices(**choices))
    if AUTO in (devices or {}):
        where, why = OptionRef("device", AUTO), f"{AUTO!r} leaves a node to the cost model"
        raise UserError("device name taken", where, why, "choose another name")
    configuration = configure(targets, devices, named_targets)
    if chosen.precision == STRICT:
        configuration = _strict(configuration, devices, named_targets)
    elif chosen.precision == BF16:
        require_bf16(configuration.host_targets, device_options(configuration))
    for glob, device in place:
        _check_device(glob, device, configuration.names)
    profiles = _profiles(shapes, required=other_shapes == REFUSE)
    return CompileOptions(
        targets=configuration.host_targets,
        shapes=profiles,
        devices=device_options(configuration),
        place=_ordered(place),
        planner=planner,
        other_shapes=other_shapes,
        values=chosen,
        plugins=tuple(plugins),
        ops=tuple(ops),
        tuning=_checked_tuning(tuning, configuration, chosen.optimize),
        pools=read_pools(pools, configuration.names),
    )


def _checked(choices: Choices) -> Choices:
    for field, value in choices._asdict().items():
        row = ROWS[field]
        if row.words:
            _check_choice(row.name, spelling(field), value, row.words)
    return choices


def _checked_tuning(
    tuning: TuningOption | None, configuration: Configuration, optimize: str
) -> TuningOption | None:
    """Refuse measurements that cannot count.

    Raises:
        UserError: of another target, or of kernels that are faster for kernels that are small.
    """
    if tuning is None:
        return None
    if optimize == SIZE:
        why, do = "measured methods are for speed", "leave one of them out"
        where = joined(", ", (OptionRef("optimize", SIZE), OptionRef("tuning")))
        raise UserError("size and measurements", where, why, do)
    if tuning.target not in configuration.host_targets:
        got = ", ".join(configuration.host_targets)
        why = f"it was measured for {tuning.target}, the bundle is for {got}"
        do = "leave it out, or measure on such a machine: `ingot tune MODEL`"
        raise UserError("a tuning file of another target", OptionRef("tuning"), why, do)
    return tuning


def _strict(
    configuration: Configuration,
    devices: Mapping[str, str] | None,
    named_targets: Mapping[str, GivenTarget] | None,
) -> Configuration:
    """The same for targets whose code is strict."""
    targets = strict_targets(configuration.host_targets)
    strict = configure(targets, devices, named_targets)
    check_devices(device_options(strict), targets)
    return strict


def _ordered(place: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What is for all other nodes comes first: any glob that matches wins."""
    others = [("*", device) for glob, device in place if glob == ANY_OTHER]
    return (*others, *((glob, device) for glob, device in place if glob != ANY_OTHER))


def _check_choice(what: str, option: str, given: str, choices: Sequence[str]) -> None:
    if given not in choices:
        why = f"expected one of {', '.join(choices)}"
        raise UserError(
            f"unknown {what} {given!r}", OptionRef(option, given), why, suggest(given, choices)
        )


def _check_device(glob: str, device: str, declared: Sequence[str]) -> None:
    if device not in (AUTO, *declared):
        what, where = f"unknown device {device!r}", OptionRef("place", f"{glob}={device}")
        why = f"declared devices are {', '.join(declared)}"
        declare = message("declare it with ", OptionRef("device", f"{device}=KIND"))
        raise UserError(what, where, why, meant(device, (AUTO, *declared)) or declare)


def _profiles(shapes: Shapes | None, *, required: bool) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Shapes in canonical form; one table is one profile; at least one where that is required."""
    given = [shapes] if isinstance(shapes, Mapping) else shapes or ()
    found: list[tuple[tuple[str, str], ...]] = []
    for each in filter(None, given):
        profile = tuple(sorted((name, _shape(name, shape)) for name, shape in each.items()))
        if profile in found:
            where = joined(" ", (OptionRef("shape", f"{name}={shape}") for name, shape in profile))
            do = "leave one of them out"
            raise UserError("a shape is given twice", where, "it has its own kernels already", do)
        found.append(profile)
    if required and not found:
        what, why = "every call would be refused", "other shapes are refused, and no shape is given"
        give = message("give ", OptionRef("shape", "NAME=1x3x224x224"))
        raise UserError(what, OptionRef("other-shapes", REFUSE), why, give)
    return tuple(found)


def _shape(name: str, given: object) -> str:
    try:
        return shape_text(given)
    except ValueError as error:
        what, do = f"wrong shape of input {name!r}", "write ? for any size, 1..8 for a range"
        raise UserError(what, OptionRef("shape", name), str(error), do) from None
