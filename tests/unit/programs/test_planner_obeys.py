"""A call that is annotated runs where the annotation says; its operands are copied to it where they
may be, and where they may not the error names both."""

from __future__ import annotations

import pytest
from tests.harness.program_harness import (
    canonical,
    check_plan,
    check_same_results,
    program_text,
    read,
)

from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import LetIn
from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.planner.plan import plan
from ingot_compiler.programs.verify_plan import find_plan_problems
from ingot_compiler.programs.walk import post_order

OBEYED = {
    "operands that are declared elsewhere": (
        "def @main(%x@H: T) -> T { neg(on_device(add(%x, %x), C)) }",
        """def @main(%x@H: T)@G -> T {
          %0 = device_copy(%x, H -> C);
          neg(device_copy(fixed(add(%0, %0), C), C -> G))
        }""",
    ),
    "one operand that is declared elsewhere": (
        "def @main(%x@C: T, %y: T) -> T { on_device(add(%x, %y), G) }",
        "def @main(%x@C: T, %y@G: T)@G -> T { add(device_copy(%x, C -> G), %y) }",
    ),
    "a variable that is declared elsewhere": (
        "def @main(%x: T) -> T { let %v@C = neg(%x); on_device(neg(%v), G) }",
        """def @main(%x@C: T)@G -> T {
          let %v@C = fixed(neg(%x), C); neg(device_copy(%v, C -> G))
        }""",
    ),
    "a result that is declared elsewhere": (
        """def @f(%a: T)@C -> T { neg(%a) }
        def @main(%x@H: T) -> T { neg(on_device(add(@f(%x), %x), G)) }""",
        """def @f(%a@H: T)@C -> T { neg(device_copy(%a, H -> C)) }
        def @main(%x@H: T)@G -> T {
          neg(add(device_copy(fixed(@f(%x), C), C -> G), device_copy(%x, H -> G)))
        }""",
    ),
    "a call of a function": (
        """def @f(%a: T) -> T { neg(%a) }
        def @main(%x@G: T) -> T { neg(on_device(@f(%x), C)) }""",
        """def @f(%a@G: T)@C -> T { neg(device_copy(%a, G -> C)) }
        def @main(%x@G: T)@G -> T { neg(device_copy(fixed(@f(%x), C), C -> G)) }""",
    ),
    "a kernel": (
        """kernel @k(%a: T) -> T { neg(%a) } buffers (A: T, B: T)
        def @main(%x@H: T) -> T { neg(on_device(@k(%x), C)) }""",
        """kernel @k(%a: T) -> T { neg(%a) } buffers (A: T, B: T)
        def @main(%x@H: T)@G -> T {
          neg(device_copy(fixed(@k(device_copy(%x, H -> C)), C), C -> G))
        }""",
    ),
    "a call of which an item is read": (
        """def @main(%x@G: f32[2, 5]) -> f32[1, 5] {
          neg(on_device(split(%x) {axis=0, parts=2}, C).0)
        }""",
        """def @main(%x@G: f32[2, 5])@G -> f32[1, 5] {
          neg(device_copy(fixed(split(device_copy(%x, G -> C)) {axis=0, parts=2}.0, C), C -> G))
        }""",
    ),
    "a call in a branch": (
        "def @main(%c@H: bool[], %x@H: T)@H -> T { if (%c) { on_device(neg(%x), G) } else { %x } }",
        """def @main(%c@H: bool[], %x@H: T)@H -> T {
          if (%c) { device_copy(fixed(neg(device_copy(%x, H -> G)), G), G -> H) } else { %x }
        }""",
    ),
    "a call that is copied": (
        "def @main(%x@H: T) -> T { device_copy(neg(%x), C -> G) }",
        """def @main(%x@H: T)@G -> T {
          device_copy(fixed(neg(device_copy(%x, H -> C)), C), C -> G)
        }""",
    ),
}
CONTRADICTING = {
    "a fixed operand": (
        "def @main(%x: T) -> T { neg(on_device(add(fixed(%x, H), %x), C)) }",
        ("fixed(%x) at line 7", "on_device(add(fixed(%x), %x)) at line 7"),
        "def @main(%x: T) -> T { neg(on_device(add(on_device(%x, H), %x), C)) }",
    ),
    "a copied operand": (
        "def @main(%x: T) -> T { neg(on_device(add(device_copy(%x, G -> H), %x), C)) }",
        ("device_copy(%x) at line 7", "on_device(add(device_copy(%x), %x)) at line 7"),
        "def @main(%x: T) -> T { neg(add(device_copy(%x, G -> H), result_on(%x, H))) }",
    ),
    "two annotations": (
        "def @main(%x: T) -> T { %0 = neg(%x); add(on_device(%0, C), on_device(%0, G)) }",
        ("on_device(neg(%x)) at line 7, column 59", "on_device(neg(%x)) at line 7, column 79"),
        "def @main(%x: T) -> T { %0 = neg(%x); add(on_device(%0, C), result_on(%0, G)) }",
    ),
    "an annotation of a shape": (
        "def @main(%x: T) -> i64[2] { on_device(shape_of(%x), G) }",
        ("shape_of(%x) at line 7", "on_device(shape_of(%x)) at line 7"),
        "def @main(%x: T) -> i64[2] { result_on(shape_of(%x), G) }",
    ),
    "a kernel": (
        """kernel @k(%a: T) -> T { neg(%a) } buffers (A: T, B: T)
        def @main(%x: T) -> T { neg(on_device(@k(fixed(%x, H)), C)) }""",
        ("fixed(%x) at line 8", "on_device(free(@k(...))) at line 8"),
        """kernel @k(%a: T) -> T { neg(%a) } buffers (A: T, B: T)
        def @main(%x: T) -> T { neg(on_device(@k(on_device(%x, H)), C)) }""",
    ),
    "memory that cannot be copied": (
        """def @main(%s@C: storage, %o@H: i64[], %n@H: i64[1]) -> f32[3] {
          on_device(alloc_tensor(%s, %o, %n) {dtype="f32", shape=[3]}, G)
        }""",
        ("%s at line 7", "on_device(alloc_tensor(%s, %o, %n)) at line 8"),
        """def @main(%s@C: storage, %o@H: i64[], %n@H: i64[1]) -> f32[3] {
          on_device(alloc_tensor(%s, %o, %n) {dtype="f32", shape=[3]}, C)
        }""",
    ),
}


@pytest.mark.parametrize("name", OBEYED)
def test_obeyed(name: str) -> None:
    """The call is on its device; what it reads is copied there. The plan runs and is its own."""
    text, expected = OBEYED[name]
    check_plan(text, expected)
    program = read(text)
    check_same_results(program, plan(program).program)


@pytest.mark.parametrize("name", CONTRADICTING)
def test_contradicting(name: str) -> None:
    """Both constraints are named with their places; what the error advises is a plan."""
    text, places, advised = CONTRADICTING[name]
    with pytest.raises(ModelError, match="annotations ask for two devices") as found:
        plan(read(text))
    assert [place for place in places if place not in found.value.where] == []
    assert canonical(plan(read(advised)).program)


SHAPES = {
    "of an annotated call": (
        "def @main(%x: f32[n, m]) -> i64[2] { shape_of(on_device(neg(%x), G)) }",
        "def @main(%x@G: f32[n, m])@H -> i64[2] { shape_of(fixed(neg(%x), G)) }",
    ),
    "of an annotated variable": (
        "def @main(%x: f32[n, m]) -> i64[2] { shape_of(on_device(%x, C)) }",
        "def @main(%x@C: f32[n, m])@H -> i64[2] { shape_of(%x) }",
    ),
    "of a variable that is elsewhere": (
        "def @main(%x@C: f32[n, m]) -> i64[2] { shape_of(on_device(%x, G)) }",
        "def @main(%x@C: f32[n, m])@H -> i64[2] { shape_of(%x) }",
    ),
    "of what may be copied": (
        "def @main(%x@C: f32[n, m]) -> i64[2] { shape_of(free(neg(free(%x)))) }",
        "def @main(%x@C: f32[n, m])@H -> i64[2] { shape_of(fixed(neg(%x), C)) }",
    ),
    "of a value that is also copied": (
        """def @main(%x@C: T) -> T {
          %0 = on_device(%x, C);
          add(reshape_tensor(neg(%0), shape_of(%0)) {shape=[5, 7]}, fixed(%0, G))
        }""",
        """def @main(%x@C: T)@G -> T {
          %0 = device_copy(%x, C -> G);
          add(reshape_tensor(neg(%0), fixed(shape_of(%x), H)) {shape=[5, 7]}, %0)
        }""",
    ),
    "in a function": (
        """def @s(%a: T) -> i64[2] { shape_of(%a) }
        def @main(%x@G: T) -> i64[2] { @s(on_device(neg(%x), C)) }""",
        """def @s(%a@C: T)@H -> i64[2] { shape_of(%a) }
        def @main(%x@G: T)@H -> i64[2] { @s(fixed(neg(device_copy(%x, G -> C)), C)) }""",
    ),
    "of a variable, in a function of a function": (
        """def @s(%a: T) -> i64[2] { let %b = %a; shape_of(%b) }
        def @r(%a: T) -> i64[2] { @s(%a) }
        def @main(%x: T) -> i64[2] { @r(on_device(%x, C)) }""",
        """def @s(%a@C: T)@H -> i64[2] { let %b = %a; shape_of(%b) }
        def @r(%a@C: T)@H -> i64[2] { @s(%a) }
        def @main(%x@C: T)@H -> i64[2] { @r(%x) }""",
    ),
    "of an item": (
        "def @main(%x@G: (T, T)) -> i64[2] { shape_of(on_device(%x, G).1) }",
        "def @main(%x@G: (T, T))@H -> i64[2] { shape_of(fixed(%x.1, G)) }",
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_read_where_they_are(name: str) -> None:
    """No tensor is copied for its shape."""
    check_plan(*SHAPES[name])


OPEN_TABLES = {
    "a kind": ('device "A" type "cuda"', VirtualDevice("cuda", 0)),
    "a kind and an id": ('device "A" id 3 type "opencl"', VirtualDevice("opencl", 3)),
    "a kind and a target": (
        'device "A" type "cuda" target "cuda:sm_90"', VirtualDevice("cuda", 0, "cuda:sm_90")
    ),
    "a kind and a scope": ('device "A" type "cpu" scope "s"', VirtualDevice("cpu", 0, "", "s")),
    "a kind that another device has": (
        'device "B" id 4 type "cpu" target "cpu:x86-64-v3"\ndevice "A" type "cpu"',
        VirtualDevice("cpu", 4, "cpu:x86-64-v3"),
    ),
    "a kind whose first id is taken": (
        """device "A" type "cuda" target "cuda:sm_90"
        device "B" id 0 type "cuda" target "cuda:sm_80\"""",
        VirtualDevice("cuda", 1, "cuda:sm_90"),
    ),
    "an id among entries without targets": (
        'device "A" type "cpu"\ndevice "B" id 2 type "cpu"', VirtualDevice("cpu", 2)
    ),
    "the host": ('device "A" type "host"', VirtualDevice("host", 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN_TABLES)
@pytest.mark.parametrize("default", ["", " default"])
def test_open_devices_are_completed(name: str, default: str) -> None:
    """A device of which a part is open is the first that fits, or itself where none does; the plan
    names it, and is its own plan. It may be the default device."""
    table, expected = OPEN_TABLES[name]
    table = "\n".join(line + default * (' "A"' in line) for line in table.split("\n"))
    use = "%x" if default else 'on_device(%x, "A")'
    text = program_text(
        f"def @main(%x: T) -> T {{ {use} }}", f'device "host" type "host"\n{table}\n'
    )
    made = plan(parse_program(text)).program
    assert made.functions["main"].device == expected
    assert {one.device for one in made.devices} >= {expected, VirtualDevice("host", 0)}
    assert canonical(plan(made).program) == canonical(made)


def test_an_open_device_of_a_variable() -> None:
    """A variable that is declared to be on a kind of device is on one in the plan."""
    text = program_text('def @main(%x: T) -> T { let %y {device="A"} = neg(%x); neg(%y) }')
    made = plan(parse_program(f'device "A" type "cpu"\n{text}')).program
    (variable,) = (
        one.variable for one in post_order(made.functions.values()) if isinstance(one, LetIn)
    )
    assert variable.device == VirtualDevice("cpu", 1, "cpu:x86-64-v3")
    assert list(find_plan_problems(made)) == []


@pytest.mark.parametrize(("use", "default"), [('on_device(%x, "A")', ""), ("%x", " default")])
def test_a_kind_that_there_is_not(use: str, default: str) -> None:
    """The error of a device of an unknown kind says which kinds there are."""
    devices = f'device "host" id 0 type "host"\ndevice "A" type "metal"{default}\n'
    text = program_text(f"def @main(%x: T) -> T {{ {use} }}", devices)
    with pytest.raises((ModelError, UserError), match="no metal device is declared") as found:
        plan(parse_program(text))
    assert found.value.do == "name a kind out of host, cuda, opencl, null, cpu"
