"""Further cases of the planner: programs with one plan (D), and programs that have none (N)."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.program_harness import (
    canonical,
    check_plan,
    check_same_results,
    erased,
    planned,
    program_text,
    read,
    weight_bytes,
)
from tests.unit.programs.test_planner_cases import CASES

from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.ir.types import TensorType
from ingot_compiler.oracles.interpret_program import interpret_plan
from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice
from ingot_compiler.programs.expressions import (
    DeviceCopy,
    Expression,
    FunctionLiteral,
    LetIn,
    OnDevice,
    OperatorCall,
    Variable,
)
from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.planner.plan import plan
from ingot_compiler.programs.print_program import print_program
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.verify_plan import find_plan_problems
from ingot_compiler.programs.walk import post_order

C = VirtualDevice("cpu", 1, "cpu:x86-64-v3")
G = VirtualDevice("cuda", 0, "cuda:sm_80")
CONSTANT = 'constant() {dtype="f32", shape=[5, 7], weight="0"}'
LIST = "data List = Nil() or Cons(T, List)\n"
POSITIVE = {
    "D1 identity": (
        "def @main(%x: T) -> T { %x }",
        "def @main(%x@G: T)@G -> T { %x }",
    ),
    "D2 annotated variable is the body": (
        "def @main(%x: T) -> T { on_device(%x, C) }",
        "def @main(%x@C: T)@C -> T { %x }",
    ),
    "D2' annotated call is the body": (
        "def @main(%x: T) -> T { on_device(neg(%x), C) }",
        "def @main(%x@C: T)@C -> T { neg(%x) }",
    ),
    "D3 unused parameter": (
        "def @main(%x: T, %y: T) -> T { on_device(neg(%x), C) }",
        "def @main(%x@C: T, %y@C: T)@C -> T { neg(%x) }",
    ),
    "D4 unused let value": (
        "def @main(%x: T, %y: T) -> T { let %u = neg(%y); on_device(neg(%x), C) }",
        """def @main(%x@C: T, %y@G: T)@G -> T {
          let %u = fixed(neg(%y), G); device_copy(fixed(neg(%x), C), C -> G)
        }""",
    ),
    "D5 annotated let value": (
        "def @main(%x: T, %z: T) -> T { let %y = on_device(neg(%x), C); add(%y, %z) }",
        "def @main(%x@C: T, %z@C: T)@C -> T { let %y = fixed(neg(%x), C); add(%y, %z) }",
    ),
    "D5' annotated variable as let value": (
        "def @main(%x: T, %z: T) -> T { let %y = on_device(%x, C); add(%y, %z) }",
        "def @main(%x@C: T, %z@C: T)@C -> T { let %y = %x; add(%y, %z) }",
    ),
    "D6 annotated condition": (
        """def @main(%c: bool[], %a: T, %b: T) -> T {
          if (on_device(%c, C)) { %a } else { %b }
        }""",
        """def @main(%c@C: bool[], %a@G: T, %b@G: T)@G -> T {
          if (device_copy(%c, C -> G)) { %a } else { %b }
        }""",
    ),
    "D7 annotated items": (
        "def @main(%a: T, %b: T) -> (T, T) { (on_device(%a, C), on_device(%b, G)) }",
        "def @main(%a@C: T, %b@G: T)@G -> (T, T) { (device_copy(%a, C -> G), %b) }",
    ),
    "D8 two call sites": (
        """def @f(%x: T) -> T { neg(%x) }
        def @main(%a: T, %b: T) -> T { add(@f(on_device(%a, C)), @f(on_device(%b, G))) }""",
        """def @f(%x@G: T)@G -> T { neg(%x) }
        def @main(%a@C: T, %b@G: T)@G -> T { add(@f(device_copy(%a, C -> G)), @f(%b)) }""",
    ),
    "D9 recursion": (
        """def @f(%c: bool[], %x: T) -> T {
          if (%c) { @f(logical_not(%c), on_device(neg(%x), C)) } else { %x }
        }
        def @main(%c: bool[], %x: T) -> T { @f(%c, %x) }""",
        """def @f(%c@C: bool[], %x@C: T)@C -> T {
          if (%c) { @f(logical_not(%c), neg(%x)) } else { %x }
        }
        def @main(%c@C: bool[], %x@C: T)@C -> T { @f(%c, %x) }""",
    ),
    "D10 copy to the same device": (
        "def @main(%x: T) -> T { neg(device_copy(%x, C -> C)) }",
        "def @main(%x@C: T)@C -> T { neg(%x) }",
    ),
    "D13 closure that nobody calls": (
        """def @main(%x: T) -> T {
          let %y = on_device(neg(%x), C); let %f = fn(%a: T) -> T { neg(%a) }; %y
        }""",
        """def @main(%x@C: T)@C -> T {
          let %y = fixed(neg(%x), C); let %f = fn(%a@C: T)@C -> T { neg(%a) }; %y
        }""",
    ),
    "D14 closure over a variable elsewhere": (
        """def @main(%x: T, %y: T) -> T {
          let %f = fn(%a: T) -> T { add(%a, on_device(%x, C)) }; on_device(%f(%y), G)
        }""",
        """def @main(%x@C: T, %y@G: T)@G -> T {
          let %f = fn(%a@G: T)@G -> T { add(%a, device_copy(%x, C -> G)) }; %f(%y)
        }""",
    ),
    "D15 partially applied function": (
        """def @mk(%x: T) -> fn(T) -> T { fn(%y: T) -> T { add(%x, on_device(neg(%y), G)) } }
        def @main(%x: T, %y: T) -> T { (fixed(@mk(%x), C))(%y) }""",
        """def @mk(%x@C: T)@C -> fn(T) -> T {
          fn(%y@G: T)@C -> T { add(%x, device_copy(fixed(neg(%y), G), G -> C)) }
        }
        def @main(%x@C: T, %y@G: T)@C -> T { (@mk(%x))(%y) }""",
    ),
    "D16 one primitive on two devices": (
        "def @main(%x: T, %y: T) -> T { add(on_device(neg(%x), C), on_device(neg(%y), G)) }",
        """def @main(%x@C: T, %y@G: T)@G -> T {
          add(device_copy(fixed(neg(%x), C), C -> G), neg(%y))
        }""",
    ),
    "D17 one annotated arm": (
        LIST
        + """def @main(%x: T, %y: T) -> T {
          match (Cons(%x, Nil())) { Cons(%z, _) -> { %z }, Nil() -> { on_device(neg(%y), C) } }
        }""",
        LIST
        + """def @main(%x@G: T, %y@C: T)@G -> T {
          match (Cons(%x, Nil())) {
            Cons(%z, _) -> { %z }, Nil() -> { device_copy(fixed(neg(%y), C), C -> G) }
          }
        }""",
    ),
    "D17' one fixed arm": (
        LIST
        + """def @main(%x: T, %y: T) -> T {
          match (Cons(%x, Nil())) { Cons(%z, _) -> { %z }, Nil() -> { fixed(neg(%y), C) } }
        }""",
        LIST
        + """def @main(%x@C: T, %y@C: T)@C -> T {
          match (Cons(%x, Nil())) { Cons(%z, _) -> { %z }, Nil() -> { neg(%y) } }
        }""",
    ),
    "D18 reference to a function": (
        """def @main(%x: T) -> T {
          let %r = ref(fn(%a: T) -> T { on_device(neg(%a), C) }); (read(%r))(%x)
        }""",
        """def @main(%x@C: T)@C -> T {
          let %r = fixed(ref(fn(%a@C: T)@C -> T { neg(%a) }), C); (read(%r))(%x)
        }""",
    ),
    "D21 free where nothing is asked": (
        "def @main(%x@C: T, %y@C: T)@C -> T { add(free(%x), free(neg(%y))) }",
        "def @main(%x@C: T, %y@C: T)@C -> T { add(%x, neg(%y)) }",
    ),
    "D22 result only": (
        "def @main(%x@C: T, %y: T) -> T { add(result_on(%x, G), result_on(neg(%y), G)) }",
        "def @main(%x@C: T, %y@G: T)@G -> T { add(device_copy(%x, C -> G), neg(%y)) }",
    ),
    "D24 constant on two devices": (
        f"""def @main(%x: T, %y: T) -> T {{
          %0 = {CONSTANT};
          add(on_device(add(%x, %0), C), on_device(add(%y, %0), G))
        }}""",
        f"""def @main(%x@C: T, %y@G: T)@G -> T {{
          add(device_copy(fixed(add(%x, {CONSTANT}), C), C -> G), add(%y, {CONSTANT}))
        }}""",
    ),
}


@pytest.mark.parametrize("name", POSITIVE)
def test_positive(name: str) -> None:
    """The plan is as written, is its own plan, is sound, runs, and erases to the program."""
    text, expected = POSITIVE[name]
    check_plan(text, expected)
    program = read(text)
    made = plan(program).program
    assert erased(made) == erased(program)
    check_same_results(program, made)


def test_d11_partial_parameter() -> None:
    """A parameter of which the type alone is declared is on the first kernel device of that
    type."""
    program = parse_program(
        program_text('def @main(%x {device="some cpu"}: T) -> T { neg(%x) }').replace(
            "def @main", 'device "some cpu" type "cpu"\ndef @main'
        )
    )
    made = plan(program).program.functions["main"]
    assert made.parameters[0].device == made.device == VirtualDevice("cpu", 1, "cpu:x86-64-v3")


def test_d12_scope_alone() -> None:
    """An annotation of which the scope alone is given is on the default device, in that scope, and
    the plan has a name for it."""
    text = program_text('def @main(%x: T) -> T { on_device(neg(%x), "s") }')
    program = parse_program(text.replace("def @main", 'device "s" scope "fast"\ndef @main'))
    made = plan(program).program
    expected = VirtualDevice("cuda", 0, "cuda:sm_80", "fast")
    assert made.functions["main"].device == expected
    assert {one.device: one.name for one in made.devices}[expected] == "G.fast"
    assert canonical(plan(made).program) == canonical(made)


def test_d19_plans_are_their_own_plans() -> None:
    """Planning a plan changes nothing, for all cases; its text is read back in between."""
    texts = [text for text, _ in (*CASES.values(), *POSITIVE.values())]
    assert len(texts) > 50
    for text in texts:
        assert planned(planned(text)) == planned(text)


def test_d20_order_of_functions() -> None:
    """Permuting the global functions gives the same plan."""
    text = """def @f(%a: T, %b: T) -> T { add(%a, on_device(%b, C)) }
    def @g(%a: T) -> T { neg(@h(%a)) }
    def @h(%a: T) -> T { sub(%a, %a) }
    def @k(%a: T) -> T { @f(%a, @g(%a)) }
    def @main(%x: T, %y: T) -> T { sub(@f(%y, %x), on_device(@k(%x), G)) }"""
    program = read(text)
    expected = canonical(plan(program).program)
    names = list(program.functions)
    for seed in range(8):
        random.Random(seed).shuffle(names)
        functions = {name: program.functions[name] for name in names}
        assert canonical(plan(replace(program, functions=functions)).program) == expected


@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_d23_depth(count: int) -> None:
    """A long chain of bindings, and as many calls in one another, are planned, checked, run and
    written: beyond what recursion could do."""
    start = Variable("x", TensorType("f32", (3,)))
    variables = [start, *(Variable(f"v{number}") for number in range(count))]
    body: Expression = variables[-1]
    for variable, before in zip(reversed(variables[1:]), reversed(variables[:-1]), strict=True):
        body = LetIn(variable, OperatorCall("neg", (before,)), body)
    calls: Expression = body
    for _ in range(count):
        calls = OperatorCall("neg", (calls,))
    main = FunctionLiteral((start,), TensorType("f32", (3,)), OnDevice(calls, C))
    program = replace(read("def @main(%x: T) -> T { %x }"), functions={"main": main})
    made = plan(program).program
    assert made.functions["main"].parameters[0].device == C
    assert list(find_plan_problems(made)) == []
    assert print_program(made).count("let ") == count
    (result,) = interpret_plan(made, [np.ones(3, np.float32)], weight_bytes)
    assert result.tolist() == [1.0, 1.0, 1.0]


NEGATIVE = {
    "N1 items of a tuple": (
        "def @main(%a: T, %b: T) -> (T, T) { (fixed(%a, C), fixed(%b, G)) }",
        ("fixed(%a) at", "fixed(%b) at", "(fixed(%a), fixed(%b)) at", "cpu", "cuda"),
    ),
    "N2 two call sites": (
        """def @f(%x: T) -> T { neg(%x) }
        def @main(%a: T, %b: T) -> T { add(@f(fixed(%a, C)), @f(fixed(%b, G))) }""",
        ("fixed(%a) at", "fixed(%b) at", "@f(fixed(%a)) at", "@f(fixed(%b)) at"),
    ),
    "N3 declared parameter": (
        "def @main(%x@C: T) -> T { fixed(%x, G) }",
        ("%x at line 9, column 11", "fixed(%x) at", "is declared for %x"),
    ),
    "N4 declared result": (
        "def @main(%x: T)@G -> T { on_device(neg(%x), C) }",
        ("fn(%x) at", "on_device(neg(%x)) at", "is the declared result of", "where it is bound"),
    ),
    "N6 shape on a device": (
        """def @main(%x: T, %s@G: i64[1]) -> f32[35] {
          reshape_tensor(%x, %s) {shape=[35]}
        }""",
        ("%s at", "reshape_tensor(%x, %s) at", "is where the host reads operand 1"),
    ),
    "N8 ids": (
        "def @main(%a: T, %b: T) -> T { add(fixed(%a, G), fixed(%b, G1)) }",
        ("fixed(%a) at", "fixed(%b) at", "virtual_device_id=0", "virtual_device_id=1"),
    ),
    "N9 targets": (
        "def @main(%a: T, %b: T) -> T { add(fixed(%a, G), fixed(%b, G2)) }",
        ("fixed(%a) at", "fixed(%b) at", "cuda:sm_80", "cuda:sm_90"),
    ),
    "N10 branches": (
        """def @main(%c: bool[], %a: T, %b: T) -> T {
          if (%c) { fixed(%a, C) } else { fixed(%b, G) }
        }""",
        ("fixed(%a) at", "fixed(%b) at", "if(%c, fixed(%a), fixed(%b)) at"),
    ),
    "N13 fields": (
        """data Two = Pair(T, T)
        def @main(%a: T, %b: T) -> Two { Pair(fixed(%a, C), fixed(%b, G)) }""",
        ("fixed(%a) at", "fixed(%b) at", "Pair(fixed(%a), fixed(%b)) at"),
    ),
    "a call on two devices": (
        "def @main(%x: T) -> T { %0 = neg(%x); add(on_device(%0, C), on_device(%0, G)) }",
        ("on_device(neg(%x)) at", "is asked for by", "a call runs on one device"),
    ),
    "copies in one another": (
        "def @main(%x: T) -> T { device_copy(device_copy(%x, C -> G), H -> C) }",
        ("device_copy(%x) at", "device_copy(device_copy(%x)) at", "is the source of"),
    ),
}


def read_with_more_devices(text: str) -> Program:
    """A program that may also name G1, a second device of G's kind, and G2, of another target."""
    text = re.sub(r"\b(G[12])\b", r'"\1"', program_text(text))
    more = """device "G1" id 1 type "cuda" target "cuda:sm_80"
    device "G2" type "cuda" target "cuda:sm_90"
    """
    return parse_program(more + text)


@pytest.mark.parametrize("name", NEGATIVE)
def test_negative(name: str) -> None:
    """What contradicts itself is refused; the error names both expressions, both devices, both
    places, and what makes them one device."""
    text, parts = NEGATIVE[name]
    with pytest.raises(ModelError) as found:
        plan(read_with_more_devices(text))
    error = str(found.value)
    assert [part for part in parts if part not in error] == []
    assert len(re.findall(r"line \d+, column \d+", found.value.where)) == 2
    assert found.value.why.count("VirtualDevice(") == 2
    assert "no line" not in error


def test_n5_no_such_device() -> None:
    """An annotation with a kind of device that nobody declares names itself and those declared."""
    text = program_text('def @main(%x: T) -> T { on_device(%x, "any metal") }')
    with pytest.raises(ModelError) as found:
        plan(parse_program('device "any metal" type "metal"\n' + text))
    assert "on_device(%x) at line 8" in found.value.where
    assert "no metal device is declared" in found.value.what
    assert "G (cuda" in found.value.why


def test_n7_two_scopes_in_one_tuple() -> None:
    """A kernel whose tuple argument is in two memory scopes is refused by name."""
    text = """kernel @k(%a: (T, T)) -> T { add(%a.0, %a.1) }
    buffers (A: T scope "scopeA", B: T scope "scopeB", D: T)
    def @main(%x: T, %y: T) -> T { @k((%x, %y)) }"""
    with pytest.raises(ModelError, match="argument 0 of kernel @k is a tuple in two") as found:
        plan(read(text))
    assert "A: scopeA and B: scopeB" in found.value.why


def test_n11_open_annotation() -> None:
    """An annotation that constrains with an open device cannot be made; free ones forget theirs."""
    x = Variable("x")
    for body, result in ((True, False), (True, True), (False, True)):
        with pytest.raises(UserError, match="an annotation asks for no device"):
            OnDevice(x, UNCONSTRAINED, body, result)
    assert OnDevice(x, C, constrain_body=False).device == UNCONSTRAINED


def test_n12_open_copy() -> None:
    """A copy with an open end cannot be made."""
    x = Variable("x")
    with pytest.raises(UserError, match="a copy has no source"):
        DeviceCopy(x, UNCONSTRAINED, C)
    with pytest.raises(UserError, match="a copy has no destination"):
        DeviceCopy(x, C, UNCONSTRAINED)


IMPROVED = {
    "copies in one another that fit": (
        "def @main(%x: T) -> T { neg(device_copy(device_copy(%x, C -> G), G -> C)) }",
        """def @main(%x@C: T)@C -> T {
          neg(device_copy(fixed(device_copy(%x, C -> G), G), G -> C))
        }""",
    ),
    "nested annotations copy twice": (
        "def @main(%x: T, %y: T) -> T { add(on_device(on_device(%x, C), G), fixed(%y, C)) }",
        """def @main(%x@C: T, %y@C: T)@C -> T {
          add(device_copy(fixed(device_copy(%x, C -> G), G), G -> C), %y)
        }""",
    ),
    "a value in the middle is copied": (
        "def @main(%x: T, %y: T) -> T { fixed(neg(add(fixed(%x, C), %y)), G) }",
        """def @main(%x@C: T, %y@C: T)@G -> T {
          neg(device_copy(fixed(add(%x, %y), C), C -> G))
        }""",
    ),
    "a size that a device computes": (
        """def @main(%x: T, %s: i64[1]) -> f32[35] {
          reshape_tensor(%x, on_device(neg(%s), G)) {shape=[35]}
        }""",
        """def @main(%x@G: T, %s@G: i64[1])@G -> f32[35] {
          reshape_tensor(%x, fixed(device_copy(fixed(neg(%s), G), G -> H), H)) {shape=[35]}
        }""",
    ),
    "annotations on two devices of one variable": (
        "def @main(%x: T) -> T { let %v = neg(%x); add(on_device(%v, C), on_device(%v, G)) }",
        """def @main(%x@C: T)@G -> T {
          let %v = fixed(neg(%x), C); add(device_copy(%v, C -> G), device_copy(%v, C -> G))
        }""",
    ),
    "one copy for all readers": (
        """def @main(%x: T, %y: T) -> T {
          add(on_device(neg(%x), C), fixed(add(add(%y, %x), mul(%x, %y)), G))
        }""",
        """def @main(%x@G: T, %y@G: T)@G -> T {
          add(device_copy(fixed(neg(device_copy(%x, G -> C)), C), C -> G),
            add(add(%y, %x), mul(%x, %y)))
        }""",
    ),
}


@pytest.mark.parametrize("name", IMPROVED)
def test_improved(name: str) -> None:
    """What the reference planners lose, refuse or do by chance."""
    text, expected = IMPROVED[name]
    check_plan(text, expected)


def test_a_copy_with_partial_ends() -> None:
    """A copy of which the kinds of device alone are given goes between the devices of the plan."""
    text = program_text('def @main(%x: T) -> T { neg(device_copy(%x, "a cpu" -> "a gpu")) }')
    partial = 'device "a cpu" type "cpu"\ndevice "a gpu" type "cuda"\n'
    made = plan(parse_program(partial + text)).program
    copies = [one for one in post_order(made.functions.values()) if isinstance(one, DeviceCopy)]
    assert [(copy.source, copy.destination) for copy in copies] == [(C, G)]
    assert canonical(plan(made).program) == canonical(made)


def test_a_primitive_is_on_one_device() -> None:
    """A kernel whose parameters are not annotated reads one device, so an argument from another one
    is copied."""
    check_plan(
        """def @main(%x@C: T, %y@G: T) -> T {
          let %k = primitive fn(%a: T, %b: T) -> T { add(%a, %b) };
          %k(free(%x), free(%y))
        }""",
        """def @main(%x@C: T, %y@G: T)@C -> T {
          let %k = primitive fn(%a: T, %b: T) -> T { add(%a, %b) };
          %k(%x, device_copy(%y, G -> C))
        }""",
    )


def test_kernels_share_their_place() -> None:
    """The buffers of a kernel are on one device, in whatever scopes: two declared devices
    contradict."""
    text = """kernel @k(%a: T, %b: T) -> T { add(%a, %b) }
    buffers (A: T scope "scopeA", B: T scope "scopeB", D: T)
    def @main(%x: T, %y: T) -> T { @k(fixed(%x, C), fixed(%y, G)) }"""
    with pytest.raises(ModelError) as found:
        plan(read(text))
    assert "fixed(%x) at" in found.value.where
    assert "fixed(%y) at" in found.value.where
