"""The memory that a library needs: pools, each within the library or from its caller.

In: a bundle's plan, what one call of its ``main`` needs, the user's wishes. Out: ``Pool`` of each,
and where in the first one everything lies. Not done here: planning within a pool
(``ingot_compiler.memory``), the C that has them (``library_source``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from ingot_build_rules.tools.export.c_names import c_identifiers
from ingot_build_rules.tools.export.c_tensors import CTensor
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format import abi
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef
from ingot_runtime.option_values import read_size

ALIGNMENT_BYTES = 64
CONSTANTS, WORKSPACE = "constants", "workspace"
CALLER, INTERNAL = "caller", "internal"
_OTHER_MEMBERS = ("message", "message_bytes")  # of the struct that pools are members of


@dataclass(frozen=True, slots=True)
class Pool:
    """One block of memory that begins at a multiple of 64 bytes. ``is_constant``: only read;
    ``from_caller``: its address is a member of the workspace struct; else it is a section of the
    library. ``tensor_offsets``: where inputs, then outputs, lie in it, if they do."""

    name: str
    identifier: str
    size_bytes: int
    is_constant: bool = False
    from_caller: bool = True
    tensor_offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolWishes:
    """``places``: (pool, ``caller`` or ``internal``), perhaps with a limit: ``caller,64kB``; what
    is not named: constants are internal, the rest is the caller's. ``tensors_in``: the pool that
    inputs and outputs lie in, "" for none."""

    places: tuple[tuple[str, str], ...] = ()
    tensors_in: str = ""


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """Offsets in the workspace, behind what is planned there: a scratch, the registers of ``main``,
    the structs of a call."""

    scratch: int
    frame: int
    call: int
    tensors: int
    shapes: int
    workspaces: int
    workspace_sizes: int
    devices: int
    size_bytes: int


def working_memory(
    planned_bytes: int,
    scratch_bytes: int,
    frame_bytes: int,
    tensors: Sequence[CTensor],
    device_count: int,
) -> WorkingMemory:
    """Lay out what a call needs beside its values."""
    rank_total = sum(len(tensor.shape) for tensor in tensors)
    sizes = (
        planned_bytes, scratch_bytes, frame_bytes, abi.CALL.size_bytes,
        len(tensors) * abi.TENSOR.size_bytes, 8 * rank_total, 8 * device_count, 8 * device_count,
        device_count * abi.DEVICE.size_bytes,
    )  # fmt: skip
    return WorkingMemory(*accumulate(map(_rounded, sizes)))


def make_pools(
    planned: Sequence[tuple[str, int]],
    constants_bytes: int,
    tensors: Sequence[CTensor],
    wishes: PoolWishes,
) -> tuple[Pool, ...]:
    """Return the constants, if there are any, and the pools that are written to.

    Args:
        planned: name and bytes of each pool that is written to.
        constants_bytes: of the weights.
        tensors: inputs and outputs.
        wishes: the user's.

    Raises:
        UserError: a wish names no pool, a pool lacks room, or two have one name in C.
    """
    sizes = [*([(CONSTANTS, constants_bytes)] if constants_bytes else []), *planned]
    names = [name for name, _ in sizes]
    _require_known(names, wishes)
    identifiers = c_identifiers([*_OTHER_MEMBERS, *names], "pool")[len(_OTHER_MEMBERS) :]
    places = {name: place.partition(",")[0] for name, place in wishes.places}
    pools = [
        Pool(
            name,
            identifier,
            size_bytes,
            is_constant=name == CONSTANTS,
            from_caller=places.get(name, INTERNAL if name == CONSTANTS else CALLER) == CALLER,
        )
        for (name, size_bytes), identifier in zip(sizes, identifiers, strict=True)
    ]
    made = [
        _with_tensors(pool, tensors) if pool.name == wishes.tensors_in else pool for pool in pools
    ]
    for name, wish in wishes.places:
        _require_size(next(pool for pool in made if pool.name == name), wish)
    return tuple(made)


def _require_size(pool: Pool, wish: str) -> None:
    _, limited, size = wish.partition(",")
    limit = read_size(size) if limited else pool.size_bytes
    if limit is None:
        why = f"expected a size such as 64kB, got {size!r}"
        raise UserError("wrong size of a pool", OptionRef("pool", f"{pool.name}={wish}"), why)
    if pool.size_bytes > limit:
        what = f"pool {pool.name!r} lacks {pool.size_bytes - limit} bytes"
        why = f"expected at most {limit} bytes, got {pool.size_bytes}"
        raise UserError(what, OptionRef("pool", f"{pool.name}={wish}"), why, "allow it more")


def _with_tensors(pool: Pool, tensors: Sequence[CTensor]) -> Pool:
    sizes = [_rounded(tensor.size_bytes) for tensor in tensors]
    *offsets, end = accumulate(sizes, initial=_rounded(pool.size_bytes))
    return replace(pool, size_bytes=end, tensor_offsets=tuple(offsets))


def _require_known(names: Sequence[str], wishes: PoolWishes) -> None:
    written = [name for name in names if name != CONSTANTS]
    for name, place in wishes.places:
        if name not in names:
            raise _unknown("pool", name, names)
        if place.partition(",")[0] not in (CALLER, INTERNAL):
            why = f"expected {CALLER} or {INTERNAL}, got {place!r}"
            raise UserError(
                f"no such place of pool {name!r}", OptionRef("pool"), why, f"{name}={CALLER}"
            )
    if wishes.tensors_in and wishes.tensors_in not in written:
        raise _unknown("tensors-in", wishes.tensors_in, written)


def _unknown(option: str, name: str, names: Sequence[str]) -> UserError:
    why = f"the library has {', '.join(names)}"
    return UserError(f"no pool {name!r}", OptionRef(option), why, "choose one of these")


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
