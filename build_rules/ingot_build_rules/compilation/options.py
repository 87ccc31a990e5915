"""What the user asks of one compilation, checked and in canonical form.

In: texts of the command line, or arguments of ``ingot.compile``. Out: ``CompileOptions``. Not done
here: the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_build_rules.compilation.device_options import read_device
from ingot_build_rules.compilation.suggest import suggest
from ingot_build_rules.rules.compile_options import HOST, CompileOptions
from ingot_compiler.backends.host.targets.target import Target, native_target, parse_target
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.message import OptionRef, message
from ingot_compiler.memory.planners import PLANNERS

ALL_PLANNERS = ("best", *PLANNERS)


def make_options(
    targets: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
    devices: Mapping[str, str] | None = None,
    place: Sequence[tuple[str, str]] = (),
    planner: str = "best",
    *,
    strip: bool = False,
) -> CompileOptions:
    """Check and order the options; no target means ``native``.

    Raises:
        UserError: an unknown target, feature, device kind, device or planner, or a negative size.
        UnsupportedError: a device kind that is known and not built yet.
    """
    _check_planner(planner)
    chosen = _distinct_targets(targets or ("native",))
    declared = sorted((devices or {}).items())
    for glob, device in place:
        _check_device(glob, device, [name for name, _ in declared])
    return CompileOptions(
        targets=chosen,
        shapes=tuple(sorted((name, tuple(sizes)) for name, sizes in (shapes or {}).items())),
        devices=tuple(read_device(name, text, chosen) for name, text in declared),
        place=tuple(place),
        planner=planner,
        strip=strip,
    )


def _check_planner(planner: str) -> None:
    if planner not in ALL_PLANNERS:
        what, where = f"unknown memory planner {planner!r}", "option planner"
        why = f"expected one of {', '.join(ALL_PLANNERS)}"
        raise UserError(what, where, why, suggest(planner, ALL_PLANNERS))


def _check_device(glob: str, device: str, declared: Sequence[str]) -> None:
    if device not in (HOST, *declared):
        what, where = f"unknown device {device!r}", OptionRef("place", f"{glob}={device}")
        why = f"declared devices are {', '.join([HOST, *declared])}"
        do = message("declare it with ", OptionRef("device", f"{device}=KIND"))
        raise UserError(what, where, why, do)


def read_sizes(text: str) -> tuple[int, ...]:
    """Read ``1x3x224x224``; ``scalar`` is rank 0.

    Raises:
        ValueError: anything else; the message says what was expected.
    """
    parts = [] if text == "scalar" else text.replace(",", "x").split("x")
    if not all(part.isdecimal() and part.isascii() for part in parts):
        raise ValueError(f"expected sizes such as 1x3x224x224, got {text!r}")
    return tuple(map(int, parts))


def resolve_target(text: str) -> Target:
    """Read one target; ``native`` becomes the explicit features of this machine, found by the
    loader's own probe."""
    if text != "native":
        return parse_target(text)
    from ingot_runtime.loader.cpu import machine_architecture, machine_features

    return native_target(sorted(machine_features()), machine_architecture())


def _distinct_targets(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({str(resolve_target(text)) for text in texts}))
