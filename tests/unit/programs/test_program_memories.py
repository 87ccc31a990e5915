"""Programs on simulated devices with separate memories: what is on another device than its reader
is an error, and never a value."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.program_harness import random_inputs, read, weight_bytes
from tests.unit.programs.test_planner_cases import CASES

from ingot_compiler.ir.errors import ModelError, VerificationError
from ingot_compiler.oracles.interpret_program import interpret_plan, interpret_program
from ingot_compiler.oracles.memories import Memories
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import Variable
from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.planner.plan import plan
from ingot_compiler.programs.print_program import print_program
from ingot_compiler.programs.recover_devices import recover_devices
from ingot_compiler.programs.verify_plan import find_plan_problems

C, G = VirtualDevice("cpu", 1, "cpu:x86-64-v3"), VirtualDevice("cuda", 0, "cuda:sm_80")

WRONG = {
    "an operand elsewhere": (
        "def @main(%x@C: T, %y@G: T)@G -> T { add(%x, %y) }",
        ("add(%x, %y) at line 7", "operand 0 is where the call is"),
    ),
    "a copy from where its value is not": (
        "def @main(%x@C: T)@G -> T { device_copy(%x, H -> G) }",
        ("device_copy(%x) at line 7", "a copy begins where its value is"),
    ),
    "a size on a device": (
        """def @main(%x@G: T, %s@G: i64[1])@G -> f32[35] {
          reshape_tensor(%x, %s) {shape=[35]}
        }""",
        ("reshape_tensor(%x, %s) at line 8", "operand 1 is on the host"),
    ),
    "an argument elsewhere": (
        """def @f(%x@G: T)@G -> T { neg(%x) }
        def @main(%x@C: T)@G -> T { @f(%x) }""",
        ("@f(%x) at line 8", "the argument for %x"),
    ),
    "a result elsewhere": (
        """def @f(%x@C: T)@C -> T { neg(%x) }
        def @main(%x@C: T)@G -> T { @f(%x) }""",
        ("@f(%x) at line 8", "the result is where the call is"),
    ),
    "an item elsewhere": (
        "def @main(%x@C: T, %y@G: T)@G -> T { (%x, %y).1 }",
        ("(%x, %y) at line 7", "a part is where the whole is"),
    ),
    "a content elsewhere": (
        """def @main(%x@C: T, %y@G: T)@G -> T {
          let %r = fixed(ref(%y), G); let %u = fixed(write(%r, %x), G); read(%r)
        }""",
        ("write(%r, %x) at line 8", "a part is where the whole is"),
    ),
    "a condition elsewhere": (
        "def @main(%c@C: bool[], %x@G: T)@G -> T { if (%c) { %x } else { neg(%x) } }",
        ("if(%c, %x, neg(%x)) at line 7", "a part is where the whole is"),
    ),
    "a fixed value elsewhere": (
        "def @main(%x@C: T)@G -> T { neg(fixed(%x, G)) }",
        ("fixed(%x) at line 7", "the body is where the whole is"),
    ),
    "a function value's argument elsewhere": (
        """def @main(%c@G: bool[], %x@C: T, %y@G: T)@G -> T {
          let %f = fn(%a@G: T)@G -> T { neg(%a) };
          let %h = fixed(if (%c) { %f } else { %f }, G);
          %h(fixed(%x, C))
        }""",
        ("%h(fixed(%x)) at line 10", "the argument for %a"),
    ),
    "the argument of what a call gives elsewhere": (
        """def @mk(%x@G: T)@G -> fn(T) -> T { fn(%y@C: T)@G -> T { %x } }
        def @main(%x@G: T)@G -> T { (@mk(%x))(%x) }""",
        ("@mk(%x)(%x) at line 8", "the argument for %y"),
    ),
    "the argument of a function in a tuple elsewhere": (
        """def @main(%x@G: T)@G -> T {
          let %t = fixed((%x, fn(%y@C: T)@G -> T { %x }), G);
          (%t.1)(%x)
        }""",
        ("%t.1(%x) at line 9", "the argument for %y"),
    ),
    "the argument of a function in data elsewhere": (
        """data D = N() or M(fn(T) -> T)
        def @main(%x@G: T)@G -> T {
          match (M(fn(%y@C: T)@G -> T { %x })) { N() -> { %x }, M(%f) -> { %f(%x) } }
        }""",
        ("%f(%x) at line 9", "the argument for %y"),
    ),
    "the argument of a function that is written elsewhere": (
        """def @main(%x@G: T)@G -> T {
          let %r = fixed(ref(fn(%y@G: T)@G -> T { %y }), G);
          let %u = fixed(write(%r, fn(%z@C: T)@G -> T { %x }), G);
          (read(%r))(%x)
        }""",
        ("read(%r)(%x) at line 10", "the argument for %z"),
    ),
    "the argument of a function that is passed elsewhere": (
        """def @apply(%f@G: fn(T) -> T, %x@G: T)@G -> T { %f(%x) }
        def @main(%x@G: T)@G -> T { @apply(fn(%y@C: T)@G -> T { %x }, %x) }""",
        ("%f(%x) at line 7", "the argument for %y"),
    ),
    "the operand of a kernel elsewhere": (
        """def @main(%x@C: T)@G -> T {
          let %k = primitive fn(%a: T) -> T { neg(%a) };
          %k(%x)
        }""",
        ("%k(%x) at line 9", "the argument for %a"),
    ),
}
STORAGE = """def @main(%n@H: i64[], %o@H: i64[1])@G -> f32[3] {
  alloc_tensor(alloc_storage(%n, %o, %n) {device="C"}, %n, %o) {dtype="f32", shape=[3]}
}"""
WRONG_WITHOUT_A_READ = {
    "storage elsewhere": (STORAGE, "the result is where the call says"),
    "a copy of a function": (
        """def @main(%x@G: T)@G -> T {
          let %f = fn(%y@G: T)@G -> T { %y };
          (device_copy(device_copy(%f, G -> C), C -> G))(%x)
        }""",
        "what is copied is made of tensors",
    ),
    "a function's variable that is declared elsewhere": (
        "def @main(%x@G: T)@G -> T { let %f@C = fn(%y@G: T)@G -> T { %y }; %f(%x) }",
        "%f is declared",
    ),
    "a function's parameter elsewhere": (
        """def @apply(%f@C: fn(T) -> T, %x@G: T)@G -> T { %x }
        def @main(%x@G: T)@G -> T { @apply(fn(%y@G: T)@G -> T { %y }, %x) }""",
        "the argument for %f",
    ),
}


@pytest.mark.parametrize("name", WRONG_WITHOUT_A_READ)
def test_wrong_without_a_read(name: str) -> None:
    """What no run of numbers shows is found without running it."""
    text, rule = WRONG_WITHOUT_A_READ[name]
    assert rule in [problem.rule for problem in find_plan_problems(read(text))]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_device(name: str) -> None:
    """A read on a wrong device is trapped when the program runs, by expression and both devices,
    and found without running it."""
    text, (where, rule) = WRONG[name]
    program = read(text)
    with pytest.raises(VerificationError) as found:
        interpret_plan(program, random_inputs(program), weight_bytes)
    assert where in found.value.where
    assert found.value.why.count("VirtualDevice(") == 2
    assert rule in [problem.rule for problem in find_plan_problems(program)]
    if name != "a size on a device":  # these sizes are no shape
        assert len(interpret_program(program, random_inputs(program), weight_bytes)) == 1


def test_values_that_do_not_fit() -> None:
    """What an operator cannot do with the values of a run is told at its expression."""
    text = """def @main(%x@G: T, %s@H: i64[1])@G -> f32[35] {
      reshape_tensor(%x, %s) {shape=[35]}
    }"""
    program = read(text)
    arrays = [np.ones((5, 7), np.float32), np.array([36])]
    with pytest.raises(ModelError, match="an operator cannot run on these values") as found:
        interpret_plan(program, arrays, weight_bytes)
    assert "reshape_tensor(%x, %s) at line 8" in found.value.where
    assert "cannot reshape array of size 35" in found.value.why


def test_memories_are_apart() -> None:
    """One address is another array on another device; a copy asks for its source."""
    memories = Memories()
    one = memories.store(np.ones(3), C)
    other = memories.store(np.zeros(3), G)
    reader = Variable("reader")
    assert one.address == other.address
    assert memories.load(one, C, reader).sum() == 3
    with pytest.raises(VerificationError, match="on a device that it is not on"):
        memories.load(one, G, reader)
    with pytest.raises(VerificationError, match="on a device that it is not on"):
        memories.copy(one, G, C, reader)
    assert memories.load(memories.copy(one, C, G, reader), G, reader).sum() == 3
    assert memories.copy_count == 2


def test_each_copy_of_a_plan_is_needed() -> None:
    """A plan without any one of its copies is trapped."""
    count = 0
    for name in ("02 left add on cpu", "22 tuple get item", "27 global", "34 conflicted inputs"):
        text = print_program(plan(read(CASES[name][0])).program)
        places = [place for place in range(len(text)) if text.startswith("device_copy(", place)]
        for place in places:
            program = parse_program(without_copy(text, place))
            with pytest.raises(VerificationError):
                interpret_plan(program, random_inputs(program), weight_bytes)
            count += 1
    assert count == 6


def without_copy(text: str, place: int) -> str:
    """The text without the copy that begins at a place: its value stands there."""
    start = place + len("device_copy(")
    depth, end = 0, start
    while depth > 0 or text[end] != ",":
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    close = text.index(")", end)
    return text[:place] + text[start:end] + text[close + 1 :]


def test_recovery_is_strict() -> None:
    """A plan without any one of the devices that it must name is refused by the name of what lacks
    it; annotations that leave something open are no part of a plan."""
    for text, what in (
        ("def @main(%x: T)@G -> T { %x }", "parameter %x"),
        ("def @main(%x@G: T) -> T { %x }", "the result of a function"),
        ("def @main(%x@C: T)@G -> T { on_device(%x, C) }", "an annotation in a plan"),
        ("def @main(%x@C: T)@C -> T { free(%x) }", "an annotation in a plan"),
    ):
        problems = recover_devices(read(text)).problems
        assert what in [problem.rule for problem in problems]


def test_recovery_gives_one_device() -> None:
    """An expression that is read on two devices without a copy is refused."""
    text = "def @main(%x@G: T)@G -> T { %0 = neg(%x); add(%0, fixed(neg(%0), C)) }"
    (problem, *_) = recover_devices(read(text)).problems
    assert (problem.rule, problem.expected, problem.got) == (
        "one device for all readers", str(G), str(C),
    )  # fmt: skip
