"""The profiles that the user asks for (``--shape``): checked against the model and one another.

In: what each input says of its dimensions, shapes by input name. Out: profiles by the user's names
of dimensions. Not done here: canonical symbols, types (``input_types``).

A number in the place of a dimension must be the model's own, one in the place of an open dimension
binds its name; a name has one size, or range, over all inputs. Of two profiles that a call may fit
the first one counts, so none may lie inside one before it, and ranges lie apart or inside one
another: which version runs is never a surprise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.message import Text, joined, message
from ingot_compiler.ir.sizes.given_shape import GivenShape, GivenSize, format_shape, format_size
from ingot_compiler.ir.sizes.profile import (
    Profile,
    SizeRange,
    contains,
    crossing,
    fit_together,
    profile_text,
)
from ingot_compiler.ir.suggest import nearest
from ingot_runtime.format.limits import SIZE_BYTES_MAX
from ingot_runtime.option_ref import OptionRef

_DO_EMPTY = (
    "the model says 0 here, a tensor without elements; if it means any size, export the model "
    "with a name for this dimension"
)
Shapes = Sequence[Mapping[str, GivenShape]]
Dims = tuple[int | str, ...]
"""The dimensions of an input: sizes, and the user's names of open dimensions."""


def input_profiles(inputs: Mapping[str, Dims], shapes: Shapes) -> tuple[Profile, ...]:
    """The profiles that name a dimension, in their order; a symbol in one is the user's name.

    Raises:
        UserError: a profile that contradicts itself, the model or another profile.
    """
    found = [(_profile(inputs, each), _options(each)) for each in shapes]
    named = [(profile, where) for profile, where in found if profile]
    for later, (profile, where) in enumerate(named):
        for before, _ in named[:later]:
            _check_pair(before, profile, where)
    return tuple(profile for profile, _ in named)


def check_names(names: Sequence[str], shapes: Shapes) -> None:
    """Refuse a shape of what is no input."""
    listed = ", ".join(map(repr, names))
    for name in sorted({name for each in shapes for name in each} - set(names)):
        close = nearest(name, names)
        do = f"did you mean {close!r}?" if close else f"the inputs are {listed or 'none'}"
        why = f"expected one of {listed or 'none: the model has no inputs'}"
        raise UserError(f"the model has no input {name!r}", OptionRef("shape", name), why, do)


def _option(name: str, shape: GivenShape) -> OptionRef:
    return OptionRef("shape", f"{name}={format_shape(shape)}")


def _options(shapes: Mapping[str, GivenShape]) -> Text:
    return joined(" ", (_option(name, shape) for name, shape in shapes.items()))


def _fitting(name: str, dims: Dims) -> Text:
    """What to do: the shape that the model declares, and how to write one that fits it."""
    declared = f"the model declares {name!r} as [{', '.join(map(str, dims))}]"
    if not dims:
        return message(f"{declared}: write ", OptionRef("shape", f"{name}=scalar"))
    fitting = "x".join(str(dim) if isinstance(dim, int) else "?" for dim in dims)
    shape = OptionRef("shape", f"{name}={fitting}")
    is_open = any(isinstance(dim, str) for dim in dims)
    return message(f"{declared}: write ", shape, ", a size for each ?" if is_open else "")


def _profile(inputs: Mapping[str, Dims], shapes: Mapping[str, GivenShape]) -> Profile:
    sizes: dict[str, SizeRange] = {}
    for name, dims in inputs.items():
        given = shapes.get(name)
        if given is None:
            continue
        where = message(_option(name, given))
        if len(given) != len(dims):
            why = f"expected {len(dims)} sizes, got {len(given)}"
            raise UserError("a shape contradicts the model", where, why, _fitting(name, dims))
        for axis, (dim, size) in enumerate(zip(dims, given, strict=True)):
            if size is not None:
                _take_size(sizes, dim, size, axis, where, _fitting(name, dims))
    return tuple(sizes.values())


def _take_size(
    sizes: dict[str, SizeRange],
    dim: int | str,
    size: tuple[int, int],
    axis: int,
    where: Text,
    do: Text,
) -> None:
    """Put one size into ``sizes``; UserError when it contradicts those there, or the model's."""
    least, most = size
    if most > SIZE_BYTES_MAX:
        raise _contradiction(f"a size from 0 to {SIZE_BYTES_MAX}", size, axis, where, do)
    if isinstance(dim, int):
        if size != (dim, dim):
            raise _contradiction(str(dim), size, axis, where, do if dim else message(_DO_EMPTY))
        return
    if most == 0:
        what, why = "a shape has no elements", f"expected 1 or more for dimension {axis}, got 0"
        raise UserError(what, where, why, "write ? for any size; calls with 0 run without it")
    known = sizes.setdefault(dim, SizeRange(dim, least, most))
    if (known.least, known.most) != size:
        wanted = format_size((known.least, known.most))
        raise _contradiction(f"{wanted}, as another input has {dim!r},", size, axis, where, do)


def _contradiction(expected: str, size: GivenSize, axis: int, where: Text, do: Text) -> UserError:
    why = f"expected {expected} for dimension {axis}, got {format_size(size)}"
    return UserError("a shape contradicts the model", where, why, do)


def _check_pair(before: Profile, later: Profile, where: Text) -> None:
    if contains(before, later) and contains(later, before):
        why, do = "another profile asks for the same sizes", "leave one of them out"
        raise UserError("a shape is given twice", where, why, do)
    if contains(before, later):
        why = f"every call that it is for runs with an earlier one: {profile_text(before)}"
        raise UserError("a shape is never used", where, why, "give the more special one first")
    for left, right in crossing(before, later) if fit_together(before, later) else ():
        low, high = max(left.least, right.least), min(left.most, right.most)
        why = f"expected ranges apart, or one in the other, got {left} and {right}"
        do = f"decide which of them has {format_size((low, high))}"
        raise UserError("two ranges overlap", where, why, do)
