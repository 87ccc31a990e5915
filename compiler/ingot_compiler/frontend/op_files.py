"""Ops that the user defines: ONNX functions from files of their own, put into the model that calls
them.

In: the contents of the files, a ``ModelProto``. Out: the model with the functions, and which ops
are in Ingot's text form, whose nodes stay (``inline_op``). Not done here: putting bodies into the
place of calls (``read_model``), options (``--op``).

A file is an ONNX model whose functions count (``.onnx``), a program (``.ingot-text``), or one
function in ONNX's own text form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx.parser
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # no types there
from onnx import FunctionProto, ModelProto, NodeProto

from ingot_compiler.frontend.check_nodes import canonical_domain
from ingot_compiler.frontend.model.sort_nodes import all_nodes, describe_node
from ingot_compiler.frontend.op_table import OpKey
from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.ir.suggest import nearest
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

PROGRAM_SUFFIX = ".ingot-text"
MODEL_SUFFIX = ".onnx"


@dataclass(frozen=True, slots=True)
class OpFile:
    """The file that defines an op; ``file`` is what the user calls it."""

    domain: str
    name: str
    file: str
    content: bytes

    @property
    def key(self) -> OpKey:
        """Domain and name."""
        return self.domain, self.name

    @property
    def is_program(self) -> bool:
        """Whether it is in Ingot's text form."""
        return self.file.endswith(PROGRAM_SUFFIX)

    @property
    def option(self) -> OptionRef:
        """How the user names it."""
        return OptionRef("op", f"{self.domain}::{self.name}={self.file}")


def add_op_files(model: ModelProto, files: Sequence[OpFile]) -> frozenset[OpKey]:
    """Put functions into ``model``; return the ops of programs.

    Raises:
        UserError: a file that defines no such op, an op that no node is, or that the model defines.
        ModelError: a node that does not fit its function, functions that call themselves.
    """
    _check_used(model, files)
    own = {_key_of(function) for function in model.functions}
    functions: dict[OpKey, FunctionProto] = {}
    for file in files:
        if file.key in own:
            why, do = "the model has a function of this name", "leave the option out"
            raise UserError("an op has two definitions", file.option, why, do)
        functions |= {} if file.is_program else _functions(file)
    model.functions.extend(function for key, function in functions.items() if key not in own)
    _check_recursion(functions, files)
    for node in _nodes(model):
        function = functions.get(_key_of_node(node))
        if function is not None:
            _check_call(node, function)
    known = {canonical_domain(entry.domain) for entry in model.opset_import}
    domains = {domain for domain, _ in (*functions, *(file.key for file in files))}
    for domain in sorted(domains - known):
        model.opset_import.add(domain=domain, version=1)
    return frozenset(file.key for file in files if file.is_program)


def _check_used(model: ModelProto, files: Sequence[OpFile]) -> None:
    used = {_key_of_node(node) for node in _nodes(model)}
    foreign = sorted(f"{domain}::{name}" for domain, name in used if domain)
    called = {key for file in files if not file.is_program for key in _calls(_functions(file))}
    for file in files:
        if file.key not in used | called:
            close = nearest(f"{file.domain}::{file.name}", foreign)
            why = f"the model has {', '.join(foreign) or 'only ops of ONNX'}"
            do = f"did you mean {close}?" if close else "leave the option out"
            raise UserError("no node of the model is this op", file.option, why, do)


def _functions(file: OpFile) -> dict[OpKey, FunctionProto]:
    """The functions of a file that is no program, the op itself under the name that the user gives
    it."""
    found = _parsed_model(file) if file.file.endswith(MODEL_SUFFIX) else [_parsed_text(file)]
    named = [function for function in found if function.name == file.name]
    exact = [function for function in named if function.domain == file.domain]
    chosen = next(iter(exact or named or (found if len(found) == 1 else ())), None)
    if chosen is None:
        names = ", ".join(function.name for function in found) or "none"
        why, do = f"the file has the functions {names}", "name one of them as the op"
        raise UserError("no definition of the op in the file", file.option, why, do)
    own = FunctionProto()
    own.CopyFrom(chosen)
    own.domain, own.name = file.domain, file.name
    others = {_key_of(function): function for function in found if function is not chosen}
    return {**others, file.key: own}


def _parsed_model(file: OpFile) -> list[FunctionProto]:
    model = ModelProto()
    try:
        model.ParseFromString(file.content)
    except DecodeError as error:
        what, do = "the file is not an ONNX model", "give a model that has functions"
        raise UserError(what, file.option, f"protobuf: {error}", do) from None
    return list(model.functions)


def _parsed_text(file: OpFile) -> FunctionProto:
    do = "write one function in ONNX's text form, or name the file .ingot-text or .onnx"
    try:
        return onnx.parser.parse_function(file.content.decode())
    except (onnx.parser.ParseError, UnicodeDecodeError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        why = "; ".join(lines) or "it cannot be read"
        raise UserError("the file is not a function", file.option, why, do) from None


def _check_call(node: NodeProto, function: FunctionProto) -> None:
    where = describe_node(node)
    for what, got, expected in (
        ("operands", len(node.input), len(function.input)),
        ("results", len(node.output), len(function.output)),
    ):
        if got > expected or (what == "operands" and got < expected):
            why = f"expected {expected}, as {function.name} is defined, got {got}"
            raise ModelError(f"a node has the wrong number of {what}", where, why, _DO)
    given = {attribute.name for attribute in node.attribute}
    for name in function.attribute:
        if name not in given:
            why = f"attribute {name!r} of {function.name} must be given, or have a default there"
            raise ModelError("a node lacks an attribute", where, why, _DO)
    known = {*function.attribute, *(attribute.name for attribute in function.attribute_proto)}
    for name in sorted(given - known):
        why = f"attribute {name!r}; {function.name} has {', '.join(sorted(known)) or 'none'}"
        raise ModelError("a node has an unknown attribute", where, why, _DO)


def _check_recursion(functions: Mapping[OpKey, FunctionProto], files: Sequence[OpFile]) -> None:
    """Refuse an op that calls itself, perhaps by way of others."""
    calls = {key: _calls({key: function}) & functions.keys() for key, function in functions.items()}
    for file in files:
        reached, waiting = set[OpKey](), list(calls.get(file.key, ()))
        while waiting:
            key = waiting.pop()
            if key not in reached:
                reached.add(key)
                waiting += calls[key]
        if file.key in reached:
            why = "its body calls it, perhaps by way of other functions"
            raise UserError(
                "an op that calls itself", file.option, why, "write it without recursion"
            )


def _calls(functions: Mapping[OpKey, FunctionProto]) -> set[OpKey]:
    return {_key_of_node(node) for one in functions.values() for node in all_nodes(one.node)}


def _nodes(model: ModelProto) -> Iterator[NodeProto]:
    yield from all_nodes(model.graph.node)
    for function in model.functions:
        yield from all_nodes(function.node)


def _key_of(function: FunctionProto) -> OpKey:
    return canonical_domain(function.domain), function.name


def _key_of_node(node: NodeProto) -> OpKey:
    return canonical_domain(node.domain), node.op_type


_DO = "correct the model, or the file that defines the op"
