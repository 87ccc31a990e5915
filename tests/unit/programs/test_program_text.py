"""The text of programs: what is printed is read back, and what cannot be read is refused by line,
column and rule."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import cast

import pytest
from tests.harness.program_harness import DEVICES, canonical, program_text, read
from tests.unit.programs.test_planner_cases import CASES
from tests.unit.programs.test_planner_more_cases import POSITIVE

from ingot_compiler.ir.errors import InternalError, ModelError
from ingot_compiler.placement.virtual_device import DeclaredDevice, VirtualDevice
from ingot_compiler.programs.expressions import Expression, FunctionLiteral, TextSpan, Variable
from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.planner.plan import plan
from ingot_compiler.programs.print_program import print_program
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.walk import post_order

TEXTS = [text for text, _ in (*CASES.values(), *POSITIVE.values())]


def test_programs_and_plans_are_read_back() -> None:
    """What is printed prints the same again, before and after planning."""
    assert len(TEXTS) > 50
    for text in TEXTS:
        program = read(text)
        for one in (program, plan(program).program):
            printed = print_program(one)
            again = parse_program(printed)
            assert print_program(again) == printed
            assert canonical(again) == canonical(one)
            assert again.devices == one.devices


def test_items_of_items() -> None:
    """An item of an item, however deep, is read without parentheses, and with them."""
    text = "def @main(%x: ((((T, T), T), T), T)) -> T { add(%x.0.0.0.1, %x.0.0.1) }"
    program = read(text)
    same = read(text.replace("%x.0.0.0.1", "(((%x.0).0).0).1").replace("%x.0.0.1", "((%x.0).0).1"))
    assert canonical(program) == canonical(same)
    assert canonical(parse_program(print_program(program))) == canonical(program)


def test_sharing_is_kept() -> None:
    """An expression with a number is one expression; the same text twice is two."""
    once = read("def @main(%x: T) -> T { %0 = neg(%x); add(%0, %0) }")
    twice = read("def @main(%x: T) -> T { add(neg(%x), neg(%x)) }")
    counts = [len(list(post_order(one.functions.values()))) for one in (once, twice)]
    assert counts == [4, 5]
    assert canonical(once) != canonical(twice)


def test_names_do_not_matter() -> None:
    """The canonical text is the same for programs that differ in the names of variables and in the
    order of functions."""
    one = "def @f(%a: T) -> T { neg(%a) } def @main(%x: T) -> T { let %y = @f(%x); %y }"
    other = "def @main(%p: T) -> T { let %q = @f(%p); %q } def @f(%b: T) -> T { neg(%b) }"
    assert canonical(read(one)) == canonical(read(other))


def test_variables_of_one_name() -> None:
    """Variables that have one name by chance are told apart in the text."""
    program = read("def @main(%x: T) -> T { let %y = neg(%x); %y }")
    main = program.functions["main"]
    clash = Variable("y", main.parameters[0].type)
    body = parse_body(program, clash)
    assert "%y_1" in print_program(body)
    assert print_program(parse_program(print_program(body))) == print_program(body)


def parse_body(program: Program, parameter: Variable) -> Program:
    """``main`` with a second parameter that nobody reads."""
    main = program.functions["main"]
    made = FunctionLiteral((*main.parameters, parameter), main.result_type, main.body)
    return Program({"main": made}, program.devices, program.data, {}, program.default)


def test_every_expression_has_its_place() -> None:
    """Spans count lines and columns from 1."""
    program = parse_program("def @main(%x: f32[3]) -> f32[3] {\n  add(neg(%x),\n    %x)\n}\n")
    found = {
        type(one).__name__ + str(getattr(one, "operator", "")): one.span
        for one in post_order(program.functions.values())
    }
    assert found == {
        "Variable": TextSpan(1, 11),
        "OperatorCallneg": TextSpan(2, 7),
        "OperatorCalladd": TextSpan(2, 3),
        "FunctionLiteral": TextSpan(1, 1),
    }


def test_rebuilding_keeps_devices_and_places() -> None:
    """An expression with other operands keeps its device, its span, and all else."""
    kinds: set[str] = set()
    for text in TEXTS:
        for one in post_order(plan(read(text)).program.functions.values()):
            again = one.with_operands([replacement(operand) for operand in one.operands])
            names = {field.name for field in fields(one)} - operand_fields(one)
            assert {"span"} <= names
            assert all(getattr(one, name) == getattr(again, name) for name in names)
            kinds.add(type(one).__name__)
    assert len(kinds) >= 15


def replacement(_operand: Expression) -> Expression:
    """Some other expression."""
    return Variable("other")


def operand_fields(expression: Expression) -> set[str]:
    """The attributes that hold operands."""
    found: set[str] = set()
    for field in fields(expression):
        value: object = getattr(expression, field.name)
        items = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        if any(item in expression.operands for item in items if isinstance(item, Expression)):
            found.add(field.name)
    return found


MALFORMED = {
    "%x {}: T": ("}", "expected one entry, device=\"NAME\", got '}'"),
    "%x {color=1}: T": ("color", "expected one entry, device=\"NAME\", got 'color'"),
    '%x {device="C", a=1}: T': (", a", 'expected "}" behind the one entry device="NAME", got'),
    '%x {device="C", device="G"}: T': (', device="G"', 'expected "}" behind the one entry'),
    "%x {device=7}: T": ("7}", "expected a string, got '7'"),
    '%x {device="D"}: T': ('"D"}', 'expected a device out of "host", "C", "G", "CA", "CB", got'),
    '%x: T {device="C"}': ('{device="C"}', 'expected "," or ")", got \'{\''),
}


def check_refused(text: str, place: str, why: str) -> None:
    """The text is refused where ``place`` begins, by line and column."""
    with pytest.raises(ModelError) as found:
        read(text)
    line, column = map(int, re.findall(r"\d+", found.value.where)[:2])
    assert program_text(text).split("\n")[line - 1][column - 1 :].startswith(place)
    assert found.value.where.startswith(f"line {line}, column {column}: ")
    assert why in found.value.why


@pytest.mark.parametrize("block", MALFORMED)
def test_malformed_blocks(block: str) -> None:
    """A block of a parameter that is not exactly one device is refused at its place."""
    check_refused(f"def @main({block}) -> T {{ %x }}", *MALFORMED[block])


REFUSED = {
    "def @main(%x: T) -> T { %y }": ("%y }", "a variable that is bound here, got '%y'"),
    "def @main(%x: T, %x: T) -> T { %x }": ("%x: f32[5, 7]) ", "a name that is not in use here"),
    "def @main(%x: T) -> T { let %x = neg(%x); %x }": ("%x = ", "a name that is not in use here"),
    "def @main(%x: T) -> T { frob(%x) }": ("frob", "frob(%x): expected an operator, got frob"),
    "def @main(%x: T) -> T { add(%x) }": ("add", "add(%x): expected 2 operands, got 1"),
    "def @main(%x: T) -> f32[3] { %x }": ("def", "expected a body of type f32[3], got f32[5, 7]"),
    "def @main(%x: T) -> T { @f(%x) }": ("@f", "@f: expected a function out of @main, got @f"),
    "def @main(%x: T) -> T { %x(%x) }": ("%x(", "%x(%x): expected a function, got f32[5, 7]"),
    "def @main(%x: T) -> T { %x.1 }": ("%x.1", "expected a tuple with an item 1, got f32[5, 7]"),
    "def @main(%x: T) -> T { (%x, %x).2 }": ("(%x, %x).2", "expected a tuple with an item 2"),
    "def @main(%x: T) -> T { read(%x) }": ("read", "read(%x): expected a reference, got f32[5, 7]"),
    "def @main(%x: T) -> T { if (%x) { %x } else { %x } }": ("if", "a condition of type bool[]"),
    "def @main(%x: T) -> T { on_device(%x) }": (") }", 'expected ",", got \')\''),
    "def @main(%x: T) -> T { device_copy(%x, C) }": (") }", 'expected "->", got \')\''),
    "def @main(%x: T) -> T { %x": ("", 'expected "}", got the end of the text'),
    "def @main(%x: T) -> T { %x } def @main(%x: T) -> T { %x }": ("def", "@main twice"),
    "data L = N() or N() def @main(%x: T) -> T { %x }": ("N() def", "every constructor once, got N"),
    "data L = N() data L = M() def @main(%x: T) -> T { %x }": ("L = M", "every data type once"),
    "data L = N() or M() def @main(%x: T) -> T { match (N()) { N() -> { %x } } }": (
        "match", "expected a pattern for each of M N, got N",
    ),
    "def @main(%x: T) -> T { match (%x) { } }": ("match", "a value of a data type, got f32[5, 7]"),
    'def @main(%n: i64[]) -> storage { alloc_storage(%n, %n, %n) {device="X"} }': (
        "alloc", "expected a device out of host, C, G, CA, CB, got X",
    ),
    "def @main(%x: (T, T)) -> T { %x.0.1 }": ("%x.0.1", "expected a tuple with an item 1"),
    "def @main(%x: (T, T)) -> T { %x.1e0 }": ("1e0", "expected an integer, got '1e0'"),
    "data L = N(T) def @main(%x: T) -> L { N() }": ("N() }", "N(): expected 1 fields, got 0"),
    "def @f(%x: T) -> T { let %y = %y; %y } def @main(%x: T) -> T { %x }": (
        "%y = %y", "expected a value that does not read itself, got %y",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    """What is no program is refused at the line and column where it begins, by a rule."""
    check_refused(text, *REFUSED[text])


def test_devices_are_refused() -> None:
    """Devices declared twice, with a target of another type, or open where one is asked for."""
    main = 'def @main(%x: f32[3]) -> f32[3] { on_device(%x, "a") }'
    for lines, why in (
        ('device "a" id 0 type "null"\ndevice "a" id 1 type "null"', "every device once, got a"),
        ('device "a" id 0 type "null" target "cuda:sm_80"', "target cuda:sm_80 is for cuda"),
        ('device "a"', "expected a device with a field that is given, got an open one"),
        ('device "b" id 0 type "null"', 'expected a device out of "b", got "a"'),
        (
            'device "a" id 0 type "null" default\ndevice "b" id 1 type "null" default',
            "expected one default device, got a before",
        ),
    ):
        with pytest.raises(ModelError) as found:
            parse_program(f"{lines}\n{main}")
        assert why in found.value.why
        assert found.value.where.startswith("line ")


def test_deep_texts_are_refused() -> None:
    """A text that is nested more deeply than it can be read is refused, and no crash."""
    deep = "neg(" * 400 + "%x" + ")" * 400
    with pytest.raises(ModelError, match="levels inside one another"):
        read(f"def @main(%x: T) -> T {{ {deep} }}")


def test_a_device_without_a_name_cannot_be_printed() -> None:
    """A program whose table lacks a device that it uses is our mistake."""
    program = read("def @main(%x: T) -> T { on_device(%x, C) }")
    bare = Program(program.functions, (DeclaredDevice("host", VirtualDevice("host", 0)),))
    with pytest.raises(InternalError, match="a device without a name"):
        print_program(bare)


def test_the_host_and_the_default_must_be_declared() -> None:
    """A program that declares no host, or whose default is none of its devices, has no plan."""
    text = program_text("def @main(%x: T) -> T { %x }")
    assert text.startswith(DEVICES)
    with pytest.raises(Exception, match="no host device"):
        plan(parse_program(text.replace('device "host" id 0 type "host"\n', "")))


def test_functions_devices_count_when_programs_are_compared() -> None:
    """Programs that differ in the device of one parameter, result, annotation or copy have
    different canonical texts."""
    text = "def @main(%x@C: T)@G -> T { device_copy(fixed(neg(%x), C), C -> G) }"
    others = (
        text.replace("x@C", "x@G"),
        text.replace(")@G", ")@C"),
        text.replace("), C)", "), G)"),
    )
    assert (
        len({canonical(read(one)) for one in (text, *others, text.replace("C -> G", "C -> H"))})
        == 5
    )


def test_a_mistake_leads_to_the_rules() -> None:
    """No stage prints what a program looks like: the page with its rules is named."""
    with pytest.raises(ModelError) as caught:
        parse_program("def main")
    assert caught.value.do == "compare with the rules of docs/programs.md"
