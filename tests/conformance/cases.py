"""The backend cases of the ``onnx`` package, by name: node, simple, pytorch-converted,
pytorch-operator.

In: kinds, or modules of node cases. Out: ``Case`` by name. Not done here: running one
(``run_case``).
"""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx.backend.test.case.node as node_cases
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
RANDOM = re.compile(r"test_(bernoulli\w*|training_dropout(_default)?(_mask)?)$")
"""Cases whose numbers are those of numpy's generator."""
_EXPANDED = re.compile(r"_expanded(_ver\d+)?$")


@dataclass(frozen=True, slots=True)
class Case:
    """One case. ``op``: the ONNX op that it is about, or its kind when it has several; ``domain``:
    that op's, "" for ONNX's own."""

    name: str
    kind: str
    domain: str
    op: str
    case: TestCase

    def model(self) -> ModelProto:
        """The model, read from disk where it lies there."""
        if self.case.model is not None:
            return self.case.model
        with open(os.path.join(str(self.case.model_dir), "model.onnx"), "rb") as file:
            model = ModelProto()
            model.ParseFromString(file.read())
            return model

    def data_sets(self) -> Sequence[tuple[Sequence[Any], Sequence[Any]]]:
        """(inputs, expected outputs) pairs as numpy arrays; what is no tensor stays as it is."""
        if self.case.data_sets is not None:
            return [
                ([_array(x) for x in inputs], [_array(y) for y in outputs])
                for inputs, outputs in self.case.data_sets
            ]
        folder = str(self.case.model_dir)
        sets = sorted(name for name in os.listdir(folder) if name.startswith("test_data_set_"))
        return [
            (
                _tensors(os.path.join(folder, name), "input"),
                _tensors(os.path.join(folder, name), "output"),
            )
            for name in sets
        ]


def collect(kinds: Iterable[str] = KINDS, modules: Sequence[str] = ()) -> dict[str, Case]:
    """Return the cases of ``kinds``, sorted by name; of node cases only those of ``modules``, where
    some are given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases compute infinities on purpose
        found = [case for kind in kinds for case in _of_kind(kind, modules)]
    bases = {
        case.name: (case.model.graph.node[0].domain, case.model.graph.node[0].op_type)
        for case in found
        if case.model is not None
    }
    cases = [Case(f"{case.kind}/{case.name}", case.kind, *_op(case, bases), case) for case in found]
    return {case.name: case for case in sorted(cases, key=lambda case: case.name)}


def _of_kind(kind: str, modules: Sequence[str]) -> Sequence[TestCase]:
    if kind != "node" or not modules:
        return load_model_tests(kind=kind)
    for module in modules:
        importlib.import_module(f"{node_cases.__name__}.{module}")
    made: list[TestCase] = vars(node_cases)[
        "_NodeTestCases"
    ]  # there is no public way to a part of them
    return list(made)


def _op(case: TestCase, bases: dict[str, tuple[str, str]]) -> tuple[str, str]:
    """The op's domain and name."""
    base = _EXPANDED.sub("", case.name)
    return bases.get(base, ("", case.kind)) if case.kind == "node" else ("", f"({case.kind})")


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def _tensors(folder: str, role: str) -> list[Any]:
    names = [name for name in os.listdir(folder) if name.startswith(f"{role}_")]
    arrays: list[Any] = []
    for name in sorted(names, key=lambda name: int(re.findall(r"\d+", name)[0])):
        tensor = TensorProto()
        with open(os.path.join(folder, name), "rb") as file:
            tensor.ParseFromString(file.read())
        arrays.append(numpy_helper.to_array(tensor))
    return arrays
