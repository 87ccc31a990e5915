"""The file beside the text of a graph: the bytes of its constants by number, and the user's names.

In: a compilation, or a path. Out: an ``.npz`` file, or ``StageWeights``. Not done here: the graph's
text.

An array per constant, named by its number; ``names`` is JSON in bytes, and may be missing
(``stage_names``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from ingot_artifacts.store.atomic import atomic_file
from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.ir.graph import Graph, Names, Node
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionClause, OptionRef

if TYPE_CHECKING:
    import numpy as np

    from ingot_build_rules.making.stages.compile_model import CompiledModel
    from ingot_compiler.ir.types import TensorType

NAMES = "names"
NUMBER_MAX = 1 << 20
"""Constants and nodes of a model."""
_DO = "write it: `ingot compile MODEL --to graph --weights FILE.npz`"


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

    from ingot_runtime.npz import write_npz

    names, types = compiled.names, _constant_types(compiled.graph)
    arrays: dict[str, Any] = {}
    for number in map(str, range(len(names.weights))):
        arrays[number] = _array(compiled.read_constant(number), types.get(number))
    text = {name: getattr(names, name) for name in Names.__dataclass_fields__}
    arrays[NAMES] = np.frombuffer(json.dumps(text).encode(), np.uint8)
    with atomic_file(path) as file:
        write_npz(file, arrays)


def _constant_types(graph: Graph) -> dict[str, TensorType]:
    """Number of a constant, as the graph has it -> its type."""
    return {
        node.text("weight"): graph.types[node.results[0]]
        for node in graph.nodes
        if _is_constant(node)
    }


def _array(content: memoryview, tensor_type: TensorType | None) -> np.ndarray[Any, Any]:
    """The array of a constant; plain bytes where no constant says its type."""
    import numpy as np

    from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES

    array: np.ndarray[Any, Any] = np.frombuffer(content, np.uint8)
    if tensor_type is None:
        return array
    return array.view(STORAGE_DTYPES[tensor_type.dtype]).reshape(
        [int(str(size)) for size in tensor_type.shape]
    )


def read_weights(path: str) -> StageWeights:
    """Read such a file.

    Raises:
        UserError: no such file, no archive of arrays, an array whose name is no number.
    """
    import numpy as np

    from ingot_runtime.npz import read_npz

    arrays = read_npz(path)
    text = arrays.pop(NAMES, None)
    _check_numbers(arrays, path)
    weights = [b""] * (1 + max(map(int, arrays), default=-1))
    for name, array in arrays.items():
        little: np.ndarray[Any, Any] = np.ascontiguousarray(array)
        weights[int(name)] = little.astype(little.dtype.newbyteorder("<"), copy=False).tobytes()
    return StageWeights(tuple(weights), None if text is None else _names_in(path, text.tobytes()))


def _check_numbers(names: Collection[str], path: str) -> None:
    """Refuse arrays whose names are not numbers of constants."""
    if all(_is_number(name) and int(name) < NUMBER_MAX for name in names):
        return
    strange = [name for name in names if not name.isdecimal()]
    got = ", ".join(strange[:3]) or "larger ones"
    why = f"expected numbers of constants below {NUMBER_MAX}, and {NAMES!r}, got {got}"
    raise UserError("not a file of weights", path, why, _DO)


def _names_in(path: str, content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    fields = Names.__dataclass_fields__
    if not isinstance(found, dict) or set(cast("dict[str, Any]", found)) != set(fields):
        why = f"expected JSON with {', '.join(fields)} in {NAMES!r}"
        raise UserError("not a file of weights", path, why, _DO)
    return cast("dict[str, Any]", found)


def check_weights(graph: Graph, weights: Sequence[bytes], path: str) -> None:
    """Refuse weights that are missing or of another size than the graph says.

    Raises:
        UserError: names the constant.
    """
    for node in constants_of(graph):
        number, value = weight_number(node), node.results[0]
        size_bytes = graph.types[value].size_bytes if value < len(graph.types) else 0
        found = len(weights[number]) if number < len(weights) else 0
        if found != size_bytes:
            why = f"expected {size_bytes} bytes, got {found}"
            file = OptionRef("weights", "FILE.npz")
            do = OptionClause(file, "give the weights with {}", "put them beside the text")
            raise UserError("a constant without its weight", f"{path}, constant {number}", why, do)


def weight_number(node: Node) -> int:
    """The number of a constant.

    Raises:
        ModelError: it has none.
    """
    text = node.text("weight")
    if not _is_number(text):
        why, do = f"expected a number below {NUMBER_MAX}, got {text!r}", "number constants from 0"
        raise ModelError("a constant without a number", f"node {node.op}", why, do)
    return int(text)


def constants_of(graph: Graph) -> Iterator[Node]:
    """Yield the constants of a graph and of the graphs in it."""
    return filter(_is_constant, nodes_of(graph))


def nodes_of(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph, each followed by those of the graphs in it."""
    for node in graph.nodes:
        yield node
        for region in node.regions:
            yield from nodes_of(region)


def _is_number(text: str) -> bool:
    """Whether a text can be the number of a constant: digits, no more than the largest has."""
    return text.isascii() and text.isdecimal() and len(text) <= len(str(NUMBER_MAX))


def _is_constant(node: Node) -> bool:
    return node.op == "constant"
