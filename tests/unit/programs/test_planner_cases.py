"""The reference cases of the planner, by number and name: one program each, its plan, and the plan
of its plan."""

from __future__ import annotations

import pytest
from tests.harness.program_harness import (
    check_plan,
    check_same_results,
    erased,
    planned,
    read,
)

from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import FunctionCall
from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.planner.plan import plan
from ingot_compiler.programs.recover_devices import recover_devices
from ingot_compiler.programs.show import show
from ingot_compiler.programs.verify_plan import find_plan_problems
from ingot_compiler.programs.walk import post_order

FOUR = "%a: T, %b: T, %c: T, %d: T"

CASES = {
    "01 plain": (
        f"def @main({FOUR}) -> T {{ sub(add(%a, %b), add(%c, %d)) }}",
        "def @main(%a@G: T, %b@G: T, %c@G: T, %d@G: T)@G -> T { sub(add(%a, %b), add(%c, %d)) }",
    ),
    "02 left add on cpu": (
        f"def @main({FOUR}) -> T {{ sub(on_device(add(%a, %b), C), add(%c, %d)) }}",
        """def @main(%a@C: T, %b@C: T, %c@G: T, %d@G: T)@G -> T {
          sub(device_copy(fixed(add(%a, %b), C), C -> G), add(%c, %d))
        }""",
    ),
    "03 left add on cpu via copy": (
        f"def @main({FOUR}) -> T {{ sub(device_copy(add(%a, %b), C -> G), add(%c, %d)) }}",
        """def @main(%a@C: T, %b@C: T, %c@G: T, %d@G: T)@G -> T {
          sub(device_copy(fixed(add(%a, %b), C), C -> G), add(%c, %d))
        }""",
    ),
    "05 both adds on cpu": (
        f"def @main({FOUR}) -> T {{ sub(on_device(add(%a, %b), C), on_device(add(%c, %d), C)) }}",
        """def @main(%a@C: T, %b@C: T, %c@C: T, %d@C: T)@G -> T {
          sub(device_copy(fixed(add(%a, %b), C), C -> G),
              device_copy(fixed(add(%c, %d), C), C -> G))
        }""",
    ),
    "06 sharing": (
        """def @main(%a: T, %b: T) -> T {
          %0 = add(%a, %b); sub(on_device(%0, C), on_device(%0, C))
        }""",
        """def @main(%a@C: T, %b@C: T)@G -> T {
          %0 = add(%a, %b);
          sub(device_copy(fixed(%0, C), C -> G), device_copy(fixed(%0, C), C -> G))
        }""",
    ),
    "07 let on cpu": (
        f"""def @main({FOUR}) -> T {{
          let %l = add(%a, %b); let %r = add(%c, %d); sub(on_device(%l, C), %r)
        }}""",
        """def @main(%a@C: T, %b@C: T, %c@G: T, %d@G: T)@G -> T {
          let %l = fixed(add(%a, %b), C); let %r = fixed(add(%c, %d), G);
          sub(device_copy(%l, C -> G), %r)
        }""",
    ),
    "08 func param on cpu": (
        f"""def @main({FOUR}) -> T {{
          let %f = fn(%x: T, %y: T) -> T {{ on_device(add(%x, %y), C) }};
          sub(%f(%a, %b), add(%c, %d))
        }}""",
        """def @main(%a@C: T, %b@C: T, %c@C: T, %d@C: T)@C -> T {
          let %f = fn(%x@C: T, %y@C: T)@C -> T { add(%x, %y) };
          sub(%f(%a, %b), add(%c, %d))
        }""",
    ),
    "09 func result on cpu": (
        f"""def @main({FOUR}) -> T {{
          let %f = fn(%x: T, %y: T) -> T {{ add(%x, %y) }};
          sub(on_device(%f(%a, %b), C), add(%c, %d))
        }}""",
        """def @main(%a@C: T, %b@C: T, %c@G: T, %d@G: T)@G -> T {
          let %f = fn(%x@C: T, %y@C: T)@C -> T { add(%x, %y) };
          sub(device_copy(fixed(%f(%a, %b), C), C -> G), add(%c, %d))
        }""",
    ),
    "10 higher order": (
        """def @main(%x: T, %y: T) -> T {
          let %f = fn(%g: fn(T) -> T) -> fn(T) -> T {
            fn(%p: T) -> T { add(%g(on_device(%p, C)), %x) }
          };
          let %h = fn(%b: T) -> T { neg(%b) };
          sub(%x, (%f(%h))(%y))
        }""",
        """def @main(%x@G: T, %y@C: T)@G -> T {
          let %f = fn(%g@G: fn(T) -> T)@G -> fn(T) -> T {
            fn(%p@C: T)@G -> T { add(%g(device_copy(%p, C -> G)), %x) }
          };
          let %h = fn(%b@G: T)@G -> T { neg(%b) };
          sub(%x, (%f(%h))(%y))
        }""",
    ),
    "11 function in tuple": (
        """def @main(%x: T, %y: T) -> T {
          let %f = fn(%a: T, %b: T) -> T { add(%a, on_device(%b, C)) };
          let %t = (%f, %x);
          (%t.0)(%t.1, %y)
        }""",
        """def @main(%x@C: T, %y@C: T)@C -> T {
          let %f = fn(%a@C: T, %b@C: T)@C -> T { add(%a, %b) };
          let %t = fixed((%f, %x), C);
          (%t.0)(%t.1, %y)
        }""",
    ),
    "12 device copy": (
        """def @main(%x: T) -> T {
          add(device_copy(%x, C -> G), constant() {dtype="f32", shape=[5, 7], weight="0"})
        }""",
        """def @main(%x@C: T)@G -> T {
          add(device_copy(%x, C -> G), constant() {dtype="f32", shape=[5, 7], weight="0"})
        }""",
    ),
    "13 shape of": (
        "def @main(%x: f32[n, m]) -> i64[2] { shape_of(fixed(%x, G)) }",
        "def @main(%x@G: f32[n, m])@H -> i64[2] { shape_of(%x) }",
    ),
    "14 alloc storage": (
        """def @main(%size: i64[], %align: i64[]) -> storage {
          alloc_storage(%size, literal() {dtype="i64", shape=[2], value=[5, 7]}, %align)
          {device="G"}
        }""",
        """def @main(%size@H: i64[], %align@H: i64[])@G -> storage {
          alloc_storage(%size, fixed(literal() {dtype="i64", shape=[2], value=[5, 7]}, H), %align)
          {device="G"}
        }""",
    ),
    "15 alloc tensor": (
        """def @main(%sto: storage) -> T {
          alloc_tensor(%sto, literal() {dtype="i64", shape=[], value=[0]},
            literal() {dtype="i64", shape=[2], value=[5, 7]}) {dtype="f32", shape=[5, 7]}
        }""",
        """def @main(%sto@G: storage)@G -> T {
          alloc_tensor(%sto, fixed(literal() {dtype="i64", shape=[], value=[0]}, H),
            fixed(literal() {dtype="i64", shape=[2], value=[5, 7]}, H))
            {dtype="f32", shape=[5, 7]}
        }""",
    ),
    "16 reshape tensor": (
        """def @main(%x: T) -> f32[35] {
          reshape_tensor(%x, literal() {dtype="i64", shape=[1], value=[35]}) {shape=[35]}
        }""",
        """def @main(%x@G: T)@G -> f32[35] {
          reshape_tensor(%x, fixed(literal() {dtype="i64", shape=[1], value=[35]}, H)) {shape=[35]}
        }""",
    ),
    "17 dynamic input": (
        "def @main(%x0: f32[n, m], %x1: f32[n, m]) -> f32[n, m] { add(%x0, %x1) }",
        "def @main(%x0@G: f32[n, m], %x1@G: f32[n, m])@G -> f32[n, m] { add(%x0, %x1) }",
    ),
    "18 redundant annotation": (
        """def @main(%x: T, %y: T, %z: T) -> T {
          %0 = add(%x, %y); add(sub(on_device(%0, C), %z), on_device(%0, C))
        }""",
        """def @main(%x@C: T, %y@C: T, %z@G: T)@G -> T {
          %0 = add(%x, %y);
          add(sub(device_copy(fixed(%0, C), C -> G), %z), device_copy(fixed(%0, C), C -> G))
        }""",
    ),
    "19 annotate expr": (
        """def @main(%x: T, %y: T, %z: T) -> T {
          on_device(sub(on_device(add(%x, %y), G), %z), C)
        }""",
        """def @main(%x@G: T, %y@G: T, %z@C: T)@C -> T {
          sub(device_copy(fixed(add(%x, %y), G), G -> C), %z)
        }""",
    ),
    "20 annotate all": (
        """def @main(%x: T, %y: T, %z: T) -> T {
          on_device(sub(on_device(add(%x, %y), C), %z), C)
        }""",
        "def @main(%x@C: T, %y@C: T, %z@C: T)@C -> T { sub(add(%x, %y), %z) }",
    ),
    "21 conv network": (
        """def @main(%d1: f32[7, 7], %d2: f32[7, 7], %w: f32[7, 7]) -> f32[7, 7] {
          %0 = matmul(%d1, %w); %1 = matmul(%d2, %w);
          %2 = add(on_device(%0, C), on_device(%1, C));
          on_device(matmul(on_device(%2, G), %w), C)
        }""",
        """def @main(%d1@C: f32[7, 7], %d2@C: f32[7, 7], %w@C: f32[7, 7])@C -> f32[7, 7] {
          matmul(device_copy(fixed(add(
            device_copy(fixed(matmul(%d1, %w), C), C -> G),
            device_copy(fixed(matmul(%d2, %w), C), C -> G)), G), G -> C), %w)
        }""",
    ),
    "22 tuple get item": (
        """def @main(%x: f32[3, 5]) -> f32[1, 5] {
          let %t = split(%x) {axis=0, parts=3};
          on_device(sub(on_device(%t, C).0, on_device(%t, C).1), G)
        }""",
        """def @main(%x@C: f32[3, 5])@G -> f32[1, 5] {
          let %t = fixed(split(%x) {axis=0, parts=3}, C);
          sub(device_copy(fixed(%t.0, C), C -> G), device_copy(fixed(%t.1, C), C -> G))
        }""",
    ),
    "23 propagation": (
        """def @main(%x: T) -> T {
          %0 = neg(%x); %1 = neg(on_device(%0, C)); %2 = neg(on_device(%0, C));
          on_device(neg(on_device(add(on_device(%1, G), on_device(%2, G)), G)), C)
        }""",
        """def @main(%x@C: T)@C -> T {
          %0 = neg(%x);
          neg(device_copy(fixed(add(neg(device_copy(fixed(%0, C), C -> G)),
            neg(device_copy(fixed(%0, C), C -> G))), G), G -> C))
        }""",
    ),
    "24 fusible network": (
        """def @main(%x: T, %y: T) -> T {
          %0 = add(%x, %y); %1 = neg(on_device(%0, G)); %2 = neg(%0);
          on_device(neg(on_device(add(on_device(%1, C), %2), G)), C)
        }""",
        """def @main(%x@G: T, %y@G: T)@C -> T {
          %0 = add(%x, %y);
          neg(device_copy(fixed(add(device_copy(fixed(neg(device_copy(fixed(%0, G), G -> C)), C),
            C -> G), neg(%0)), G), G -> C))
        }""",
    ),
    "25 unpropagatable graph": (
        f"""def @main({FOUR}) -> T {{
          on_device(sub(on_device(add(%a, %b), C), on_device(mul(%c, %d), G)), C)
        }}""",
        """def @main(%a@C: T, %b@C: T, %c@G: T, %d@G: T)@C -> T {
          sub(add(%a, %b), device_copy(fixed(mul(%c, %d), G), G -> C))
        }""",
    ),
    "26 conditional": (
        """def @main(%x: bool[], %y: T, %z: T) -> T {
          let %f = fn(%a: T) -> T { add(%a, fixed(%y, C)) };
          let %g = fn(%a1: T) -> T { sub(%a1, %y) };
          let %h = if (%x) { %f } else { %g };
          %h(%z)
        }""",
        """def @main(%x@C: bool[], %y@C: T, %z@C: T)@C -> T {
          let %f = fn(%a@C: T)@C -> T { add(%a, %y) };
          let %g = fn(%a1@C: T)@C -> T { sub(%a1, %y) };
          let %h = fixed(if (%x) { %f } else { %g }, C);
          %h(%z)
        }""",
    ),
    "27 global": (
        """def @f(%a: T, %b: T) -> T { add(%a, on_device(%b, C)) }
        def @main(%x: T, %y: T) -> T { @f(%y, %x) }""",
        """def @f(%a@G: T, %b@C: T)@G -> T { add(%a, device_copy(%b, C -> G)) }
        def @main(%x@C: T, %y@G: T)@G -> T { @f(%y, %x) }""",
    ),
    "28 ref": (
        """def @main(%x: T, %y: T) -> T {
          let %r = ref(%x); let %u = write(%r, on_device(%y, C)); add(%x, read(%r))
        }""",
        """def @main(%x@G: T, %y@C: T)@G -> T {
          let %r = fixed(ref(%x), G); let %u = fixed(write(%r, device_copy(%y, C -> G)), G);
          add(%x, read(%r))
        }""",
    ),
    "29 adt": (
        """data List = Nil() or Cons(T, List)
        def @main(%x: T, %y: T) -> T {
          let %l = Cons(%x, Cons(fixed(%y, C), Nil()));
          match (%l) { Cons(%z, _) -> { %z }, Nil() -> { %x } }
        }""",
        """data List = Nil() or Cons(T, List)
        def @main(%x@C: T, %y@C: T)@C -> T {
          let %l = fixed(Cons(%x, Cons(%y, Nil())), C);
          match (%l) { Cons(%z, _) -> { %z }, Nil() -> { %x } }
        }""",
    ),
    "30 free on device": (
        """def @s(%x@CB: T)@CB -> T { %x }
        def @main(%a@C: T, %b@CA: T, %c@CB: T)@CA -> T {
          free(add(add(@s(free(%a)), @s(free(%b))), @s(free(%c))))
        }""",
        """def @s(%x@CB: T)@CB -> T { %x }
        def @main(%a@CB: T, %b@CA: T, %c@CB: T)@CA -> T {
          device_copy(fixed(add(add(@s(%a), @s(device_copy(%b, CA -> CB))), @s(%c)), CB), CB -> CA)
        }""",
    ),
    "31 lowered": (
        """kernel @gem(%a: T, %b: T, %c: T) -> T { add(add(%a, %b), %c) }
        buffers (A: T scope "scopeA", B: T, C1: T scope "scopeB", D: T scope "scopeA")
        def @main(%x@C: T, %y@CB: T, %z@CA: T)@CB -> T { @gem(%x, %y, %z) }""",
        """kernel @gem(%a: T, %b: T, %c: T) -> T { add(add(%a, %b), %c) }
        buffers (A: T scope "scopeA", B: T scope "scopeB", C1: T scope "scopeB",
                 D: T scope "scopeA")
        def @main(%x@CA: T, %y@CB: T, %z@CA: T)@CB -> T {
          device_copy(fixed(@gem(%x, %y, fixed(device_copy(%z, CA -> CB), CB)), CA), CA -> CB)
        }""",
    ),
    "34 conflicted inputs": (
        """def @main(%a: T, %b: T, %c: T) -> T {
          sub(on_device(add(%a, %b), C), on_device(add(%b, %c), G))
        }""",
        """def @main(%a@C: T, %b@C: T, %c@G: T)@G -> T {
          sub(device_copy(fixed(add(%a, %b), C), C -> G), add(device_copy(%b, C -> G), %c))
        }""",
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_reference_case(name: str) -> None:
    """The plan is the reference's, and is its own plan."""
    check_plan(*CASES[name])


NOT_RUN = ("14", "15", "31")  # no arrays go in; or the memory scopes of one device differ


@pytest.mark.parametrize("name", [name for name in sorted(CASES) if name[:2] not in NOT_RUN])
def test_reference_case_runs(name: str) -> None:
    """On devices with separate memories the plan gives what the program gives without devices."""
    program = read(CASES[name][0])
    check_same_results(program, plan(program).program)


@pytest.mark.parametrize("name", sorted(CASES))
def test_reference_case_is_sound_and_erases(name: str) -> None:
    """A checker that knows nothing of the planner accepts the plan; without devices, annotations
    and copies it is the program."""
    program = read(CASES[name][0])
    planned_program = plan(program).program
    assert list(find_plan_problems(planned_program)) == []
    if not name.startswith("22"):  # items are projected before they are copied
        assert erased(planned_program) == erased(program)


def test_04_left_add_on_cpu_via_copy_as_map() -> None:
    """The device of every expression of case 3, read from the text of its plan, in post-order."""
    program = plan(read(CASES["03 left add on cpu via copy"][0])).program
    devices = recover_devices(program).devices
    names = {
        VirtualDevice("cpu", 1, "cpu:x86-64-v3"): "C",
        VirtualDevice("cuda", 0, "cuda:sm_80"): "G",
    }
    found = [
        (show(one).split("(")[0], names[devices[one]])
        for one in post_order([program.functions["main"]])
    ]
    assert found == [
        ("%a", "C"), ("%b", "C"), ("add", "C"), ("fixed", "C"), ("device_copy", "G"),
        ("%c", "G"), ("%d", "G"), ("add", "G"), ("sub", "G"), ("fn", "G"),
    ]  # fmt: skip


def test_32_stack_overflow() -> None:
    """1,555 additions in a chain are planned, printed and read without deep recursion."""
    text = "%a"
    lines: list[str] = []
    for number in range(1555):
        lines.append(f"%{number} = add({text}, %{'abcd'[number % 4]});")
        text = f"%{number}"
    source = f"def @main({FOUR}) -> T {{ {' '.join(lines)} {text} }}"
    assert planned(source) == planned(planned_text(source))


def planned_text(source: str) -> str:
    """The plan of a text as a text without devices' table."""
    return planned(source)


def test_33_primitive() -> None:
    """Annotations of primitive functions hold at their calls, though their bodies are opaque; what
    is not annotated is on one device, in any scope."""
    program = parse_program(
        """device "host" id 0 type "host"
        device "G" id 0 type "cuda" target "cuda:sm_80" default
        device "global" scope "global"
        device "texture" scope "global.texture"
        def @main(%d1: f32[3], %d2: f32[3]) -> f32[3] {
          let %p = primitive fn(%a: f32[3]) -> f32[3] { relu(%a) };
          let %q = primitive fn(%a {device="global"}: f32[3], %b {device="global"}: f32[3])
            {device="texture"} -> f32[3] { add(%a, %b) };
          let %r = primitive fn(%a: f32[3]) {device="global"} -> f32[3] { neg(%a) };
          %r(%q(%p(%d1), %p(%d2)))
        }"""
    )
    planned_program = plan(program).program
    found = recover_devices(planned_program)
    assert found.problems == []
    calls = {
        show(call.callee): devices.memory_scope
        for call, devices in found.devices.items()
        if isinstance(call, FunctionCall)
    }
    assert calls == {"%p": "global", "%q": "global.texture", "%r": "global"}
    assert all(device.device_type == "cuda" for device in found.devices.values())
