"""The long attributes of a node as arrays.

In: a ``NodeProto``. Out: arrays by name, ``TreeError`` where lengths disagree. Not done here: what
they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, NodeProto, numpy_helper

from ingot_compiler.frontend.families.trees.ensemble import Ints, TreeError, require
from ingot_runtime.lazy_dataclass import dataclass

_TEXT_MAX = 16


@dataclass(frozen=True, slots=True)
class NodeArrays:
    """The attributes of one node by name."""

    attributes: Mapping[str, AttributeProto]

    @classmethod
    def of(cls, node: NodeProto) -> NodeArrays:
        """The attributes of ``node`` by name."""
        return cls({attribute.name: attribute for attribute in node.attribute})

    def integer(self, name: str, default: int) -> int:
        """An integer."""
        found = self.attributes.get(name)
        return int(found.i) if found else default

    def ints(self, name: str) -> Ints:
        """A list of integers; empty where the node has none."""
        found = self.attributes.get(name)
        return np.array(found.ints if found else (), np.int64)

    def ints_like(self, name: str, like: Ints, default: int | None = None) -> Ints:
        """A list as long as another; ``default`` stands for one that is not given."""
        found = self.ints(name)
        if default is not None and not len(found):
            return np.full(len(like), default, np.int64)
        require(len(found) == len(like), f"{len(like)} entries of {name}", str(len(found)))
        return found

    def floats(self, name: str, count: int | None) -> tuple[npt.NDArray[np.float64], bool]:
        """The list ``name``, or the tensor of that name that later versions have, and whether it is
        f64 in the file; ``count``: how many there must be."""
        tensor, found = self.attributes.get(f"{name}_as_tensor"), self.attributes.get(name)
        if tensor:
            values = self.tensor(f"{name}_as_tensor")
        else:
            values = np.array(found.floats if found else (), np.float32)
        require(count in (None, len(values)), f"{count} entries of {name}", str(len(values)))
        return values.astype(np.float64), values.dtype == np.float64

    def tensor(self, name: str) -> npt.NDArray[Any]:
        """A tensor, flat; empty where the node has none."""
        found = self.attributes.get(name)
        try:
            return numpy_helper.to_array(found.t).reshape(-1) if found else np.zeros(0, np.float32)
        except (ValueError, TypeError) as error:
            raise TreeError(f"numbers in {name}", str(error)) from None

    def texts(self, name: str) -> npt.NDArray[np.bytes_]:
        """A list of short texts."""
        found = self.attributes.get(name)
        texts = list(found.strings) if found else []
        longest = max(map(len, texts), default=0)
        require(longest <= _TEXT_MAX, f"names of modes in {name}", f"one of {longest} bytes")
        return np.array(texts, f"S{_TEXT_MAX}")
