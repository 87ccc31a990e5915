"""The file that goes with the text of a graph: the bytes of its constants by number, and what the
user called things.

In: a compilation, or a path. Out: an ``.npz`` file, or ``StageWeights``. Not done here: the graph's
text.

An array per constant, named by its number; ``names`` is JSON in bytes. Without ``names``, inputs
are called ``input0``, outputs ``output0``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ingot_artifacts.store.atomic import atomic_file
from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.ir.graph import Graph, Names, Node

if TYPE_CHECKING:
    import numpy as np

    from ingot_build_rules.compilation.compile_model import CompiledModel

NAMES = "names"
_NUMBER_MAX = 1 << 20  # constants and nodes of a model


@dataclass(frozen=True, slots=True)
class StageWeights:
    """``weights``: bytes by number, those that the file lacks are empty; ``names``: None where it
    says nothing of them."""

    weights: tuple[bytes, ...] = ()
    names: Mapping[str, Any] | None = field(default=None)


def write_weights(compiled: CompiledModel, path: str) -> None:
    """Write all constants of a model, and its names.

    Raises:
        UserError: a bad place. OutputError: no space.
    """
    import numpy as np

    from ingot_compiler.ir.reference_rules import STORAGE_DTYPES
    from ingot_runtime.npz import write_npz

    names = compiled.names
    types = {
        node.text("weight"): compiled.graph.types[node.results[0]]
        for node in compiled.graph.nodes
        if node.op == "constant"
    }
    arrays: dict[str, Any] = {}
    for number in range(len(names.weights)):
        array: np.ndarray[Any, Any] = np.frombuffer(compiled.read_constant(str(number)), np.uint8)
        kind = types.get(str(number))
        if kind is not None:
            array = array.view(STORAGE_DTYPES[kind.dtype]).reshape(
                [int(str(size)) for size in kind.shape]
            )
        arrays[str(number)] = array
    text = {name: getattr(names, name) for name in Names.__dataclass_fields__}
    arrays[NAMES] = np.frombuffer(json.dumps(text).encode(), np.uint8)
    with atomic_file(path) as file:
        write_npz(file, arrays)


def read_weights(path: str) -> StageWeights:
    """Read such a file.

    Raises:
        UserError: no such file, no archive of arrays, an array whose name is no number.
    """
    import numpy as np

    from ingot_runtime.npz import read_npz

    arrays = read_npz(path)
    text = arrays.pop(NAMES, None)
    numbers = sorted(
        int(name)
        for name in arrays
        if name.isascii() and name.isdecimal() and len(name) <= len(str(_NUMBER_MAX))
    )
    if len(numbers) != len(arrays) or (numbers and numbers[-1] >= _NUMBER_MAX):
        strange = [name for name in arrays if not name.isdecimal()]
        why = f"expected numbers of constants below {_NUMBER_MAX}, and {NAMES!r}, got {', '.join(strange[:3]) or 'larger ones'}"
        raise UserError(
            "not a file of weights", path, why, "write it with --to graph --weights FILE.npz"
        )
    weights = [b""] * (numbers[-1] + 1 if numbers else 0)
    for name, array in arrays.items():
        little: np.ndarray[Any, Any] = np.ascontiguousarray(array)
        weights[int(name)] = little.astype(little.dtype.newbyteorder("<"), copy=False).tobytes()
    return StageWeights(tuple(weights), None if text is None else _names_in(path, text.tobytes()))


def _names_in(path: str, content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or set(cast("dict[str, Any]", found)) != set(
        Names.__dataclass_fields__
    ):
        why = f"expected JSON with {', '.join(Names.__dataclass_fields__)} in {NAMES!r}"
        raise UserError(
            "not a file of weights", path, why, "write it with --to graph --weights FILE.npz"
        )
    return cast("dict[str, Any]", found)


def names_of(graph: Graph, given: StageWeights, path: str) -> Names:
    """What things are called: by the file, or by what they are.

    Raises:
        UserError: the names do not fit the graph. ModelError: the text numbers constants or nodes
            beyond any model.
    """
    nodes = list(_nodes(graph))
    node_count = 1 + max((ordinal for node in nodes for ordinal in node.source), default=-1)
    weight_count = 1 + max(map(weight_number, filter(_is_constant, nodes)), default=-1)
    if max(node_count, weight_count) > _NUMBER_MAX:
        why = f"expected at most {_NUMBER_MAX} nodes and constants, got {max(node_count, weight_count)}"
        raise ModelError("ordinals are too large", path, why, "number nodes and constants from 0")
    if given.names is None:
        return Names(
            os.path.splitext(os.path.basename(path))[0],
            tuple(f"input{index}" for index in range(len(graph.inputs))),
            tuple(f"output{index}" for index in range(len(graph.outputs))),
            tuple((f"node{index}", "node") for index in range(node_count)),
            (),
            tuple(f"weight{index}" for index in range(max(weight_count, len(given.weights)))),
        )
    names = _read_names(given.names)
    counts = (len(graph.inputs), len(graph.outputs), node_count, weight_count)
    found = (
        (len(names.inputs), len(names.outputs), len(names.nodes), len(names.weights))
        if names
        else (0, 0, 0, 0)
    )
    if names is None or found[:2] != counts[:2] or found[2] < counts[2] or found[3] < counts[3]:
        why = "expected inputs, outputs, nodes, weights: {}, {}, {}, {} of them, got {}, {}, {}, {}".format(
            *counts, *found
        )
        raise UserError(
            "names of another graph", path, why, "take the file that was written with this text"
        )
    return names


def check_weights(graph: Graph, weights: Sequence[bytes], path: str) -> None:
    """Refuse weights that are missing or of another size than the graph says.

    Raises:
        UserError: names the constant.
    """
    for node in filter(_is_constant, _nodes(graph)):
        number = weight_number(node)
        size_bytes = (
            graph.types[node.results[0]].size_bytes if node.results[0] < len(graph.types) else 0
        )
        found = len(weights[number]) if number < len(weights) else 0
        if found != size_bytes:
            why = f"expected {size_bytes} bytes, got {found}"
            raise UserError(
                "a constant without its weight",
                f"{path}, constant {number}",
                why,
                "give the weights with --weights FILE.npz",
            )


def weight_number(node: Node) -> int:
    """The number of a constant.

    Raises:
        ModelError: it has none.
    """
    text = node.text("weight")
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_NUMBER_MAX))):
        why = f"expected a number below {_NUMBER_MAX}, got {text!r}"
        raise ModelError(
            "a constant without a number", f"node {node.op}", why, "number constants from 0"
        )
    return int(text)


def _is_constant(node: Node) -> bool:
    return node.op == "constant"


def _nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for region in node.regions:
            yield from _nodes(region)


def _read_names(found: Mapping[str, Any]) -> Names | None:
    def texts(name: str) -> tuple[str, ...]:
        return tuple(str(item) for item in found[name])

    def pairs(name: str) -> tuple[tuple[str, str], ...]:
        return tuple((str(first), str(second)) for first, second in found[name])

    try:
        return Names(
            str(found["model"]),
            texts("inputs"),
            texts("outputs"),
            pairs("nodes"),
            pairs("symbols"),
            texts("weights"),
        )
    except (TypeError, ValueError):
        return None
