"""If, Loop and Scan: text, types, oracle, kernels under a poisoned memory plan, and bundles that
aot and vm run alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import parser
from tests.harness.lowering_harness import compile_graph, run_compiled
from tests.harness.weights import Weights

import ingot
import ingot_runtime
from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.infer_types import infer_types
from ingot_compiler.ir.errors import ModelError, UnsupportedError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.ir.verify import verify
from ingot_compiler.oracles.interpret import interpret
from ingot_compiler.passes.pipeline import optimize

Array = npt.NDArray[Any]
Feeds = dict[str, Array]
_HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'

GROWING = """graph(%0: i64[], %1: f32[s0, 3]) {
  %2 = literal() {dtype="bool", shape=[], value=[true]} : bool[]
  %3, %4 = loop(%0, %2, %1) {iterations=n, symbols=["n", "last"]} {(%3: i64[], %4: bool[], %5: f32[rows, 3])
    %6 = concat(%5, %1) {axis=0} : f32[rows + s0, 3]
    %7 = reduce(%6) {axes=[0], function="sum", keepdims=false} : f32[3]
    return %4, %6, %7
  } : f32[last, 3], f32[n, 3]
  return %3, %4
}
"""

CASES: dict[str, tuple[str, list[Feeds]]] = {}


def numbers(*shape: int, seed: int = 1) -> Array:
    """Normally distributed f32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def i64(number: int) -> Array:
    """An i64 of rank 0."""
    return np.array(number, np.int64)


def _case(name: str, text: str, feeds: list[Feeds]) -> None:
    CASES[name] = text, feeds


_case(
    "early exit",
    """m (int64 n, float[4] x, float limit) => (float[4] a, float[4] b, float[k,4] s) {
 t = Constant<value = bool {1}>()
 a, b, s = Loop(n, t, x, x) <body = g (int64 i, bool c, float[4] p, float[4] q)
     => (bool co, float[4] q2, float[4] p2, float[4] r) {
   one = Constant<value = float {1.0}>()
   p2 = Add(p, one)
   q2 = Mul(q, p2)
   r = Sub(p2, q2)
   su = ReduceMax<keepdims=0>(p2)
   co = Less(su, limit)
 }>
}""",
    [
        {"n": i64(n), "x": numbers(4), "limit": np.array(limit, np.float32)}
        for n, limit in ((5, 3.5), (0, 3.5), (100, 9.5), (1, -3))
    ],
)
_case(
    "values that change places",
    """m (int64 n, float[4] x, float[4] y) => (float[4] a, float[4] b) {
 t = Constant<value = bool {1}>()
 a, b = Loop(n, t, x, y) <body = g (int64 i, bool c, float[4] p, float[4] q) => (bool co, float[4] q2, float[4] p2) {
   co = Identity(c)
   q2 = Identity(q)
   p2 = Identity(p)
 }>
}""",
    [{"n": i64(n), "x": numbers(4), "y": numbers(4, seed=2)} for n in range(4)],
)
_case(
    "a state that its new value reads elsewhere",
    """m (int64 n, float[4,4] x, float[4,4] y) => (float[4,4] a, float[4,4] b) {
 t = Constant<value = bool {1}>()
 a, b = Loop(n, t, x, y) <body = g (int64 i, bool c, float[4,4] p, float[4,4] q)
     => (bool co, float[4,4] p2, float[4,4] q2) {
   co = Identity(c)
   pt = Transpose(p)
   p2 = Add(p, pt)
   q2 = Mul(p, q)
 }>
}""",
    [{"n": i64(n), "x": numbers(4, 4), "y": numbers(4, 4, seed=2)} for n in range(4)],
)
_case(
    "a carried size that grows",
    """m (int64 n, float[b,3] x) => (float[k,3] a, float[j,3] s) {
 t = Constant<value = bool {1}>()
 base = Relu(x)
 a, s = Loop(n, t, x) <body = g (int64 i, bool c, float[z,3] p) => (bool co, float[w,3] p2, float[3] r) {
   co = Identity(c)
   p2 = Concat<axis=0>(p, base)
   r = ReduceMean<axes=[0], keepdims=0>(p2)
 }>
}""",
    [{"n": i64(n), "x": numbers(b, 3)} for n in (0, 1, 2, 9) for b in (1, 2)],
)
_case(
    "nested loops and a branch that read from two levels",
    """m (int64 n, int64 m, float[a,4] x, float[4] y) => (float[4] o, float[k,4] s) {
 t = Constant<value = bool {1}>()
 two = Constant<value = int64 {2}>()
 zero = Constant<value = int64 {0}>()
 z = Exp(y)
 o, s = Loop(n, t, y) <body = g (int64 i, bool c, float[4] p) => (bool co, float[4] p2, float[4] r) {
   co = Identity(c)
   w = Gather(x, i)
   sg = Sigmoid(w)
   p2 = Loop(m, c, p) <body = g2 (int64 j, bool c2, float[4] q) => (bool co2, float[4] q2) {
      co2 = Identity(c2)
      e = Add(sg, z)
      od = Mod(j, two)
      even = Equal(od, zero)
      once = Less(p, q)
      q1 = If(even) <then_branch = tb () => (float[4] u) { u = Where(once, q, e) },
        else_branch = eb () => (float[4] v) { h = Sub(q, w)
          v = Tanh(h) }>
      q2 = Mul(q1, sg)
   }>
   r = Sub(p2, z)
 }>
}""",
    [
        {"n": i64(n), "m": i64(m), "x": numbers(5, 4), "y": numbers(4)}
        for n, m in ((0, 0), (3, 0), (3, 4), (5, 1))
    ],
)
_case(
    "branches of different sizes",
    """m (bool c, float[a,3] x, float[b,3] y) => (float[k,3] o, float[3] q) {
 o1 = If(c) <then_branch = tb () => (float[p,3] u) { u = Exp(x) },
   else_branch = eb () => (float[w,3] v) { v = Concat<axis=0>(x, y) }>
 o = Relu(o1)
 q = ReduceMean<axes=[0], keepdims=0>(o1)
}""",
    [{"c": np.array(c), "x": numbers(2, 3), "y": numbers(3, 3)} for c in (True, False)],
)
_case(
    "a while loop on integers",
    """m (int64 start) => (int64 steps, int64 last) {
 one = Constant<value = int64 {1}>()
 two = Constant<value = int64 {2}>()
 three = Constant<value = int64 {3}>()
 zero = Constant<value = int64 {0}>()
 c0 = Less(one, start)
 steps, last = Loop("", c0, zero, start) <body = g (int64 i, bool c, int64 k, int64 v) => (bool co, int64 k2, int64 v2) {
   od = Mod(v, two)
   isodd = Equal(od, one)
   h = Div(v, two)
   m3 = Mul(v, three)
   m31 = Add(m3, one)
   v2 = Where(isodd, m31, h)
   k2 = Add(k, one)
   co = Less(one, v2)
 }>
}""".replace('""', ""),
    [{"start": i64(start)} for start in (1, 2, 27)],
)
_case(
    "a scan along other axes and backwards",
    """m (float[3,T,2] x, float[3,2] s0) => (float[3,2] sN, float[3,2,T] ys, float[T,3,2] zs) {
 sN, ys, zs = Scan<num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1], scan_output_axes=[2,0],
   scan_output_directions=[0,1], body = g (float[3,2] s, float[3,2] v) => (float[3,2] s2, float[3,2] y, float[3,2] z) {
   s1 = Mul(s, v)
   s2 = Tanh(s1)
   y = Add(s2, v)
   z = Identity(v)
 }>(s0, x)
}""",
    [{"x": numbers(3, t, 2), "s0": numbers(3, 2)} for t in (0, 1, 6)],
)


def _no_external(location: str, offset_bytes: int, size_bytes: int | None) -> memoryview:
    raise AssertionError(location, offset_bytes, size_bytes)


def translated(text: str) -> tuple[Graph, tuple[str, ...], Weights]:
    """The graph of a model in ONNX's text form, its inputs' names, its constants."""
    store = Weights()
    model = parser.parse_model(_HEAD + text).SerializeToString()
    imported, names = import_model(model, _no_external, store.write, [], [])
    graph = infer_types(imported, store.read).graph
    verify(graph)
    return graph, names.inputs, store


def assert_alike(expected: Array, actual: Array) -> None:
    """Same type and shape, equal up to rounding."""
    assert (np.asarray(expected).shape, np.asarray(expected).dtype) == (actual.shape, actual.dtype)
    np.testing.assert_allclose(actual, expected, 1e-5, 1e-6)


def test_a_loop_means_what_numpy_does() -> None:
    """Carried sizes may change, results collect a row per iteration, no iteration gives the initial
    value and no rows."""
    graph = parse_graph(GROWING)
    x = numbers(2, 3)
    for count in (0, 1, 3):
        last, rows = interpret(graph, [i64(count), x], lambda _: memoryview(b""))
        np.testing.assert_array_equal(last, np.concatenate([x] * (count + 1)))
        assert rows.shape == (count, 3)
        for index, row in enumerate(rows):
            np.testing.assert_allclose(row, (index + 2) * x.sum(0), 1e-5)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('["n", "last"]', '["n"]', "1 symbols for sizes known at run time, got 0"),
        ("(%0, %2, %1) {", "(%2, %2, %1) {", "a trip count i64"),
        ("return %4, %6, %7", "return %4", "returns 1 carried values"),
        ("f32[rows, 3])", "f32[2*s0, 3])", "or a fresh symbol"),
        ("f32[rows, 3])", "f64[rows, 3])", "a carried value of one element type"),
    ],
)
def test_loops_that_do_not_fit_are_refused(old: str, new: str, why: str) -> None:
    """Operands, region and symbols of a loop must agree; the message says what does not."""
    with pytest.raises(ModelError) as caught:
        parse_graph(GROWING.replace(old, new))
    assert why in str(caught.value)


@pytest.mark.parametrize("name", CASES)
def test_graphs_with_regions_survive_text_and_passes(name: str) -> None:
    """Reading back what is printed gives the graph; the passes leave a graph that verifies and
    means the same."""
    text, feeds = CASES[name]
    graph, names, store = translated(text)
    optimized = optimize(graph).graph
    verify(optimized)
    for item in (graph, optimized):
        assert parse_graph(print_graph(item)) == item
    for feed in feeds:
        inputs = [np.asarray(feed[name]) for name in names]
        for expected, actual in zip(
            interpret(graph, inputs, store.read),
            interpret(optimized, inputs, store.read),
            strict=True,
        ):
            assert_alike(expected, actual)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", CASES)
def test_kernels_under_the_memory_plan_give_what_the_interpreter_gives(name: str) -> None:
    """Buffers that other iterations or branches need are not overwritten; nothing unwritten is
    read."""
    text, feeds = CASES[name]
    graph, names, store = translated(text)
    compiled = compile_graph(graph)
    for feed in feeds:
        inputs = [np.asarray(feed[name]) for name in names]
        expected = interpret(graph, inputs, store.read)
        for want, have in zip(
            expected, run_compiled(compiled, graph, inputs, store.read), strict=True
        ):
            assert_alike(want, have)


@pytest.mark.sweep(12)
@pytest.mark.parametrize("name", CASES)
def test_bundles_run_alike_as_code_and_in_the_vm(name: str, tmp_path: Path) -> None:
    """A saved bundle gives the interpreter's results, the same bits from aot and vm, again and
    again."""
    text, feeds = CASES[name]
    graph, names, store = translated(text)
    path = tmp_path / "m.ingot"
    ingot.compile(parser.parse_model(_HEAD + text)).save(path)
    sessions = [ingot_runtime.load(str(path), executor=executor) for executor in ("aot", "vm")]
    for feed in [*feeds, feeds[0]]:
        expected = interpret(graph, [np.asarray(feed[name]) for name in names], store.read)
        native, stepped = (session.run(feed) for session in sessions)
        for want, output in zip(expected, sessions[0].outputs, strict=True):
            assert_alike(want, native[output.name])
            assert native[output.name].tobytes() == stepped[output.name].tobytes()


def test_a_known_condition_chooses_now() -> None:
    """Only the branch that runs is in the graph, whatever the other one's type."""
    graph, _, _ = translated(
        """m (float[2,3] x) => (float[2,3] y) {
 t = Constant<value = bool {0}>()
 y = If(t) <then_branch = a () => (float[3] u) { u = ReduceSum<keepdims=0>(x) },
   else_branch = b () => (float[2,3] v) { v = Abs(x) }>
}"""
    )
    assert [node.op for node in graph.nodes if node.op != "literal"] == ["abs"]


def test_an_op_without_translation_inside_a_region_is_listed() -> None:
    """Findings inside regions name the inner node."""
    with pytest.raises(UnsupportedError, match=r"'odd'.*StringConcat"):
        translated(
            """m (bool c, float[4] x) => (float[4] y) {
 y = If(c) <then_branch = a () => (float[4] u) { [odd] u = StringConcat(x, x) }, else_branch = b () => (float[4] v) { v = Abs(x) }>
}"""
        )
