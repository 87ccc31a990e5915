"""What the user asks of one compilation, checked and in canonical form.

In: texts of the command line, or arguments of ``ingot.compile``. Out: ``CompileOptions``. Not done
here: the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_build_rules.compilation.device_options import read_device
from ingot_build_rules.compilation.suggest import suggest
from ingot_build_rules.rules.compile_options import (
    AUTO,
    FALLBACKS,
    FORBID,
    GENERAL,
    HOST,
    OTHER_SHAPES,
    REFUSE,
    CompileOptions,
)
from ingot_compiler.backends.host.targets.target import Target, native_target, parse_target
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.given_shape import shape_text
from ingot_compiler.ir.message import OptionRef, joined, message
from ingot_compiler.memory.planners import PLANNERS

Shape = str | Sequence[int | str | tuple[int, int] | None]
"""``"?x3x224x224"``, or its sizes one by one: None is any, a pair a range."""
Shapes = Mapping[str, Shape] | Sequence[Mapping[str, Shape]]
"""Input name -> shape: of one profile, or of several in the order of preference."""
ALL_PLANNERS = ("best", *PLANNERS)
ANY_OTHER = ""
"""In the place of a glob: the nodes that no glob places."""


def make_options(
    targets: Sequence[str] = (),
    shapes: Shapes | None = None,
    devices: Mapping[str, str] | None = None,
    place: Sequence[tuple[str, str]] = (),
    planner: str = "best",
    other_shapes: str = GENERAL,
    *,
    strip: bool = False,
    fallback: str = FORBID,
) -> CompileOptions:
    """Check and order the options; no target means ``native``.

    Raises:
        UserError: an unknown target, feature, device kind, device or planner, or a shape that is none.
        UnsupportedError: a device kind that is known and not built yet.
    """
    _check_choice("memory planner", "planner", planner, ALL_PLANNERS)
    _check_choice("choice of other shapes", "other_shapes", other_shapes, OTHER_SHAPES)
    _check_choice("fallback", "fallback", fallback, FALLBACKS)
    chosen = _distinct_targets(targets or ("native",))
    declared = sorted((devices or {}).items())
    if AUTO in dict(declared):
        where, why = OptionRef("device", AUTO), f"{AUTO!r} leaves a node to the cost model"
        raise UserError("device name taken", where, why, "choose another name")
    for glob, device in place:
        _check_device(glob, device, [name for name, _ in declared])
    profiles = _profiles(shapes)
    if other_shapes == REFUSE and not profiles:
        what, why = "every call would be refused", "other shapes are refused, and no shape is given"
        do = message("give ", OptionRef("shape", "NAME=1x3x224x224"))
        raise UserError(what, "option other_shapes", why, do)
    return CompileOptions(
        targets=chosen,
        shapes=profiles,
        devices=tuple(read_device(name, text, chosen) for name, text in declared),
        place=_ordered(place),
        planner=planner,
        strip=strip,
        other_shapes=other_shapes,
        fallback=fallback,
    )


def _ordered(place: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What is for all other nodes comes first: any glob that matches wins."""
    others = [("*", device) for glob, device in place if glob == ANY_OTHER]
    return (*others, *((glob, device) for glob, device in place if glob != ANY_OTHER))


def _check_choice(what: str, option: str, given: str, choices: Sequence[str]) -> None:
    if given not in choices:
        why = f"expected one of {', '.join(choices)}"
        raise UserError(
            f"unknown {what} {given!r}", f"option {option}", why, suggest(given, choices)
        )


def _check_device(glob: str, device: str, declared: Sequence[str]) -> None:
    if device not in (HOST, AUTO, *declared):
        what, where = f"unknown device {device!r}", OptionRef("place", f"{glob}={device}")
        why = f"declared devices are {', '.join([HOST, *declared])}"
        do = message("declare it with ", OptionRef("device", f"{device}=KIND"))
        raise UserError(what, where, why, do)


def _profiles(shapes: Shapes | None) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Shapes in canonical form; one table is one profile."""
    given = [shapes] if isinstance(shapes, Mapping) else shapes or ()
    found: list[tuple[tuple[str, str], ...]] = []
    for each in filter(None, given):
        profile = tuple(sorted((name, _shape(name, shape)) for name, shape in each.items()))
        if profile in found:
            where = joined(" ", (OptionRef("shape", f"{name}={shape}") for name, shape in profile))
            do = "leave one of them out"
            raise UserError("a shape is given twice", where, "it has its own kernels already", do)
        found.append(profile)
    return tuple(found)


def _shape(name: str, given: object) -> str:
    try:
        return shape_text(given)
    except ValueError as error:
        what, do = f"wrong shape of input {name!r}", "write ? for any size, 1..8 for a range"
        raise UserError(what, OptionRef("shape", name), str(error), do) from None


def resolve_target(text: str) -> Target:
    """Read one target; ``native`` becomes the explicit features of this machine, found by the
    loader's own probe.

    Raises:
        UserError: no such target, or a feature that it does not have.
    """
    if text != "native":
        try:
            return parse_target(text)
        except UserError as error:
            from ingot_build_rules.compilation.meant_target import meant_target

            raise meant_target(text, error) from None
    from ingot_runtime.loader.cpu import machine_architecture, machine_features

    return native_target(sorted(machine_features()), machine_architecture())


def _distinct_targets(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({str(resolve_target(text)) for text in texts}))
