"""The shapes of the inputs of one call, from sizes on the command line.

In: what a bundle says of its inputs, the values of ``--shape``. Out: a shape for each input. Not
done here: arrays (``arrays``), profiles of ``compile`` (``usage.profiles``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_build_rules.tools.cli.shell import usage
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.sizes.given_shape import GivenSize, format_shape, format_size, read_shape
from ingot_compiler.ir.suggest import suggest
from ingot_runtime.option_values import shape_options

Declared = Sequence[int | str]
"""The shape of an input in a bundle: sizes, and names of open dimensions."""


def call_shapes(
    inputs: Mapping[str, Declared], given: Sequence[tuple[str, str]]
) -> dict[str, tuple[int, ...]]:
    """The shape of each input; a name has one size over all inputs.

    Raises:
        UserError: a shape that does not fit the bundle, or a dimension that nobody gave a size.
    """
    sizes: dict[str, int] = {}
    for name, text in usage.unique(given, "--shape").items():
        if name not in inputs:
            why, do = f"expected one of {', '.join(map(repr, inputs))}", suggest(name, list(inputs))
            raise UserError(f"the bundle has no input {name!r}", f"--shape {name}", why, do)
        _take_sizes(sizes, name, inputs[name], read_shape(text))
    _require_sizes(inputs, sizes)
    return {
        name: tuple(dim if isinstance(dim, int) else sizes[dim] for dim in declared)
        for name, declared in inputs.items()
    }


def _take_sizes(
    sizes: dict[str, int], name: str, declared: Declared, shape: Sequence[GivenSize]
) -> None:
    where, do = (
        f"--shape {name}={format_shape(tuple(shape))}",
        f"write {shape_options([(name, declared)], sizes)}",
    )
    if len(shape) != len(declared):
        why = f"expected {len(declared)} sizes, got {len(shape)}"
        raise UserError("a shape does not fit the bundle", where, why, do)
    for axis, (dim, size) in enumerate(zip(declared, shape, strict=True)):
        if size is None and isinstance(dim, int):
            continue  # the bundle says it
        if size is None or size[0] != size[1]:
            why = f"expected one number for dimension {axis}, got {format_size(size)}"
            raise UserError("a call has one size for each dimension", where, why, do)
        expected = dim if isinstance(dim, int) else sizes.setdefault(dim, size[0])
        if size[0] != expected:
            named = "" if isinstance(dim, int) else f", as before for {dim!r},"
            why = f"expected {expected}{named} for dimension {axis}, got {size[0]}"
            raise UserError("a shape does not fit the bundle", where, why, do)


def _require_sizes(inputs: Mapping[str, Declared], sizes: Mapping[str, int]) -> None:
    """Refuse a call as long as an input has a dimension without a size; all are told at once."""
    missing = {
        name: declared
        for name, declared in inputs.items()
        if any(isinstance(dim, str) and dim not in sizes for dim in declared)
    }
    if missing:
        names = ", ".join(map(repr, missing))
        where = f"input {names}" if len(missing) == 1 else f"inputs {names}"
        got = ", ".join(f"[{', '.join(map(str, declared))}]" for declared in missing.values())
        options = shape_options(missing.items(), sizes)
        do = f"give sizes, such as {options}, or the arrays with --inputs F.npz"
        what = f"{where} {'has no fixed shape' if len(missing) == 1 else 'have no fixed shapes'}"
        raise UserError(what, where, f"expected sizes, got {got}", do)
