"""Reads the text form of a program.

In: text, as ``print_program`` writes it or by hand (``#`` starts a comment). Out: a ``Program``, or
``ModelError`` with line and column. Not done here: expressions (``parse_expression``), types and
names of what is called (``verify_program``).

::

    device "host" id 0 type "cpu" target "x86-64-v3" default
    data List = Nil() | Cons(f32[3], List)
    kernel @k(%a: f32[3] scope "s") -> f32[3] { buffers ... }
    def @main(%x {device="host"}: f32[3]) {device="host"} -> f32[3] {
      let %y = add(%x, %x);
      %0 = neg(%y);
      mul(%0, %0)
    }
"""

from __future__ import annotations

from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.placement.configuration import HOST
from ingot_compiler.placement.virtual_device import DeclaredDevice
from ingot_compiler.programs.device_text import read_device
from ingot_compiler.programs.expressions import FunctionLiteral
from ingot_compiler.programs.infer_types import infer_types
from ingot_compiler.programs.parse_expression import ProgramReader
from ingot_compiler.programs.program import (
    Constructor,
    DataDefinition,
    Program,
    ProgramKernel,
)

_RULES = "the rules of docs/programs.md"


def parse_program(text: str) -> Program:
    """The program that ``text`` writes down."""
    source = ProgramReader(Reader("program", text, _RULES), text)
    program = _program(source)
    for problem in infer_types(program).problems:
        why = f"{problem.rule}: expected {problem.expected}, got {problem.got}"
        raise source.reader.fail(why, source.tokens.get(problem.expression))
    return program


def _program(source: ProgramReader) -> Program:
    reader = source.reader
    devices: list[DeclaredDevice] = []
    default = ""
    while reader.at("device"):
        start = reader.token
        declared, is_default = read_device(reader)
        if declared.name in source.devices:
            raise reader.fail(f"expected every device once, got {declared.name} twice", start)
        if is_default and default:
            raise reader.fail(f"expected one default device, got {default} before", start)
        default = declared.name if is_default else default
        devices.append(declared)
        source.devices[declared.name] = declared.device
    data = _data(source)
    kernels: dict[str, ProgramKernel] = {}
    while reader.at("kernel"):
        kernel = source.kernel()
        kernels[kernel.name] = kernel
    functions: dict[str, FunctionLiteral] = {}
    while reader.token.kind != "END":
        start = reader.expect("def")
        reader.expect("@")
        name = reader.name("the name of a function")
        if name in functions or name in kernels:
            raise reader.fail(f"expected every function once, got @{name} twice", start)
        functions[name] = source.function(start)
    return Program(functions, tuple(devices), data, kernels, default or HOST)


def _data(source: ProgramReader) -> tuple[DataDefinition, ...]:
    reader = source.reader
    definitions: list[DataDefinition] = []
    while reader.accept("data"):
        start = reader.token
        name = reader.name("the name of a data type")
        if name in source.data:
            raise reader.fail(f"expected every data type once, got {name} twice", start)
        source.data.add(name)
        reader.expect("=")
        constructors: list[Constructor] = []
        while not constructors or reader.accept("or"):
            constructors.append(_constructor(source))
        definitions.append(DataDefinition(name, tuple(constructors)))
    return tuple(definitions)


def _constructor(source: ProgramReader) -> Constructor:
    reader = source.reader
    start = reader.token
    name = reader.name("the name of a constructor")
    if name in source.constructors:
        raise reader.fail(f"expected every constructor once, got {name} twice", start)
    source.constructors.add(name)
    reader.expect("(")
    return Constructor(name, reader.items(source.type, ")"))
