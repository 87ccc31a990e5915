"""What the user asks of one compilation, checked and in canonical form.

In: what a face was given, the folder that its paths begin in. Out: ``CompileOptions``. Not done
here: the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

from ingot_build_rules.making.options.bf16_targets import require_bf16
from ingot_build_rules.making.options.compile_options import AUTO, CompileOptions, PluginOption
from ingot_build_rules.making.options.configure import configure, device_options
from ingot_build_rules.making.options.op_option import OpOption
from ingot_build_rules.making.options.op_options import read_ops
from ingot_build_rules.making.options.option_rows import (
    GENERAL,
    REFUSE,
    ROWS,
    ChoiceKeywords,
    GivenOptions,
    Pairs,
    Shapes,
    given_options,
    spelling,
)
from ingot_build_rules.making.options.plugins import read_plugins
from ingot_build_rules.making.options.pool_option import read_pools
from ingot_build_rules.making.options.strict_targets import check_devices, strict_targets
from ingot_build_rules.making.options.tuning_file import read_tuning, require_class
from ingot_build_rules.making.options.tuning_option import TuningOption
from ingot_compiler.backends.target_forms import GivenTarget, GivenTargets
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.message import joined, message
from ingot_compiler.ir.precision import BF16, SIZE, STRICT
from ingot_compiler.ir.sizes.given_shape import shape_text
from ingot_compiler.ir.suggest import suggest
from ingot_compiler.memory.planners import PLANNERS
from ingot_compiler.placement.configuration import Configuration
from ingot_compiler.targets.target import parse_target
from ingot_runtime.format.device_text import suggest_name
from ingot_runtime.option_ref import OptionRef

ALL_PLANNERS = ("best", *PLANNERS)
ANY_OTHER = ""
"""In the place of a glob: the nodes that no glob places."""


def read_options(
    given: GivenOptions,
    folder: str | None = None,
    named_targets: Mapping[str, GivenTarget] | None = None,
) -> CompileOptions:
    """Read what a face was given, and the files that it names.

    Args:
        given: of any face.
        folder: where relative paths begin, and where modules of plug-ins are found that Python does
            not find; None for the current folder, and for what Python finds alone.
        named_targets: further names that ``target=NAME`` of a device may say.

    Raises:
        UserError, UnsupportedError: as ``make_options``; a file that is none. PluginError: a plug-in
        that is none. BuildError: the disk failed.
    """
    below = folder or ""
    return make_options(
        given.targets,
        given.shapes,
        dict(given.devices),
        given.place,
        other_shapes=given.other_shapes or GENERAL,
        plugins=read_plugins(given.plugins, folder),
        named_targets=named_targets,
        ops=read_ops(given.ops, below),
        tuning=read_tuning(given.tuning, below),
        **given.choices._asdict(),
    )


def make_options(
    targets: GivenTargets = (),
    shapes: Shapes | Sequence[Pairs] | None = None,
    devices: Mapping[str, str] | None = None,
    place: Sequence[tuple[str, str]] = (),
    *,
    other_shapes: str = GENERAL,
    plugins: Sequence[PluginOption] = (),
    named_targets: Mapping[str, GivenTarget] | None = None,
    ops: Sequence[OpOption] = (),
    tuning: TuningOption | None = None,
    **choices: Unpack[ChoiceKeywords],
) -> CompileOptions:
    """Check and order the options; ``configure`` says what is assumed of targets and devices.

    Raises:
        UserError: an unknown target, feature, device kind, device or planner, or a shape that is
        none.
        UnsupportedError: a device kind that is known and not built yet.
    """
    chosen = given_options(choices).choices
    for field, value in {"other_shapes": other_shapes, **chosen._asdict()}.items():
        _check_word(field, value)
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
        other_shapes=other_shapes,
        values=chosen._replace(pools=read_pools(chosen.pools, configuration.names)),
        plugins=tuple(plugins),
        ops=tuple(ops),
        tuning=_checked_tuning(tuning, configuration, chosen.optimize),
    )


def words_of(field: str) -> tuple[str, ...]:
    """Return what an option may be; empty if it may be anything. Planners are known where there is
    a compiler, not where there are rows alone."""
    return ALL_PLANNERS if field == "planner" else ROWS[field].words


def _checked_tuning(
    tuning: TuningOption | None, configuration: Configuration, optimize: str
) -> TuningOption | None:
    """Refuse measurements that cannot count.

    Raises:
        UserError: of another target or class of processors, or of kernels that are faster for
        kernels that are small.
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
    require_class(parse_target(tuning.target), tuning.processor, OptionRef("tuning"))
    return tuning


def _strict(
    configuration: Configuration,
    devices: Mapping[str, str] | None,
    named_targets: Mapping[str, GivenTarget] | None,
) -> Configuration:
    """Return the configuration for targets whose code is strict."""
    targets = strict_targets(configuration.host_targets)
    strict = configure(targets, devices, named_targets)
    check_devices(device_options(strict), targets)
    return strict


def _ordered(place: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What is for all other nodes comes first: any glob that matches wins."""
    others = [("*", device) for glob, device in place if glob == ANY_OTHER]
    return (*others, *((glob, device) for glob, device in place if glob != ANY_OTHER))


def _check_word(field: str, given: str) -> None:
    words = words_of(field)
    if words and given not in words:
        what, where = f"unknown {ROWS[field].name} {given!r}", OptionRef(spelling(field), given)
        why = f"expected one of {', '.join(words)}"
        raise UserError(what, where, why, suggest(given, words))


def _check_device(glob: str, device: str, declared: Sequence[str]) -> None:
    if device not in (AUTO, *declared):
        what, where = f"unknown device {device!r}", OptionRef("place", f"{glob}={device}")
        why = f"declared devices are {', '.join(declared)}"
        declare = message("declare it with ", OptionRef("device", f"{device}=KIND"))
        raise UserError(what, where, why, suggest_name(device, (AUTO, *declared)) or declare)


def _profiles(shapes: Shapes | Sequence[Pairs] | None, *, required: bool) -> tuple[Pairs, ...]:
    """Shapes in canonical form; one table is one profile; at least one where that is required."""
    given = [shapes] if isinstance(shapes, Mapping) else shapes or ()
    found: list[Pairs] = []
    for each in filter(None, given):
        pairs = each.items() if isinstance(each, Mapping) else each
        profile = tuple(sorted((name, _shape(name, shape)) for name, shape in pairs))
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
