"""Ops that the user defines by programs, as graphs.

In: the contents of files. Out: ``CustomOp`` by domain and name. Not done here: ONNX functions
(``ingot_compiler.frontend.op_files``), inlining (``ingot_compiler.frontend.build.inline_op``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingot_compiler.ir.errors import UserError
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.option_ref import OptionRef

if TYPE_CHECKING:
    from ingot_compiler.frontend.build.custom_op import CustomOp
    from ingot_compiler.frontend.op_files import OpFile
    from ingot_compiler.programs.program import Program


def op_file(op: str, file: str, content: bytes) -> OpFile:
    """The file of an op "domain::Name", as the frontend takes it."""
    from ingot_compiler.frontend.op_files import OpFile

    domain, _, name = op.partition("::")
    return OpFile(domain, name, file, content)


def custom_ops(files: Sequence[OpFile]) -> dict[tuple[str, str], CustomOp]:
    """The definitions of those that are programs.

    Raises:
        UserError: a file that is no program, or has no such function. UnsupportedError: a function
            that is no graph.
    """
    return {file.key: _custom_op(file) for file in files if file.is_program}


def _custom_op(file: OpFile) -> CustomOp:
    from ingot_compiler.frontend.build.custom_op import CustomOp
    from ingot_compiler.programs.lower_program import ENTRY, lower_program
    from ingot_compiler.programs.parse_program import parse_program
    from ingot_compiler.programs.planner.plan import plan

    option = file.option
    try:
        program = _on_host(_with_entry(parse_program(file.content.decode()), file), file)
        made = plan(program).program
        graph = lower_program(made).graph
    except UnicodeDecodeError as error:
        why = f"expected UTF-8, got another byte at {error.start}"
        raise UserError("an op file is no text", option, why, "write it in UTF-8") from None
    except IngotError as error:
        if isinstance(error.where, OptionRef):
            raise
        why = f"{error.where}: {error.why}" if error.where else error.why
        what = f"an op file cannot be used: {error.what}"
        raise type(error)(what, option, why, error.do) from None
    names = tuple(parameter.name for parameter in made.functions[ENTRY].parameters)
    return CustomOp(names, graph)


def _with_entry(program: Program, file: OpFile) -> Program:
    """The program whose ``main`` is the op's function: the one of its name, or the only one."""
    from ingot_compiler.programs.lower_program import ENTRY

    functions = program.functions
    name = file.name if file.name in functions else next(iter(functions), "")
    if name != file.name and len(functions) != 1:
        why = f"expected a function @{file.name}, got {', '.join(functions) or 'none'}"
        do = f"call one of them @{file.name}"
        raise UserError("no definition of the op in the file", file.option, why, do)
    return (
        program
        if name == ENTRY
        else replace(program, functions={**functions, ENTRY: functions[name]})
    )


def _on_host(program: Program, file: OpFile) -> Program:
    """The program on the host alone: a node's device is the model's matter."""
    from ingot_compiler.placement.configuration import HOST
    from ingot_compiler.placement.virtual_device import DeclaredDevice, VirtualDevice

    if program.devices:
        why = f"expected no devices, got {', '.join(one.name for one in program.devices)}"
        do = ("leave them out; ", OptionRef("place"), " puts nodes on devices")
        raise UserError("an op file that declares devices", file.option, why, do)
    return replace(program, devices=(DeclaredDevice(HOST, VirtualDevice(HOST, 0)),))
