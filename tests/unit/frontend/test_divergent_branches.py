"""If whose branches have different ranks, as the older exporter of torch writes ``squeeze``: run by
what follows, in every way of running."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser
from tests.harness.end_to_end_harness import run_all_ways
from tests.harness.frontend_harness import run_model

import ingot
import ingot_runtime
from ingot_compiler.ir.errors import UnsupportedError

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
SQUEEZED = """ s = Shape(x)
 two = Constant<value = int64[1] {2}>()
 one = Constant<value = int64[1] {1}>()
 last = Gather<axis=0>(s, two)
 c = Equal(last, one)
 u = If(c) <then_branch = a () => (float[b,3] t) { t = Squeeze(x, two) },
   else_branch = o () => (float[b,3,n] e) { e = Identity(x) }>
"""


def compiled(tmp_path: Path, declared: str, nodes: str) -> Path:
    """A model of x: float[b, 3, n] in a bundle."""
    model = parser.parse_model(f"{HEAD}m (float[b,3,n] x) => ({declared}) {{\n{SQUEEZED}{nodes}}}")
    ingot.compile(model, targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    return tmp_path / "m.ingot"


def numbers(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Some of them negative."""
    return np.random.default_rng(2).standard_normal(shape).astype(np.float32)


def test_what_follows_fits_one_branch(tmp_path: Path) -> None:
    """Only that branch is in the bundle; a call that would take the other one is refused."""
    path = compiled(tmp_path, "float[b,1] y", """ z = Abs(u)
 w = Constant<value = float[3,1] {1.0, 1.0, 1.0}>()
 [product] y = Gemm(z, w)
""")  # fmt: skip
    x = numbers(4, 3, 1)
    (got,) = run_all_ways(path, [{"x": x}])
    np.testing.assert_allclose(got["y"], np.abs(x[:, :, 0]).sum(1, keepdims=True), rtol=1e-6)
    with pytest.raises(ingot_runtime.IngotError, match="Squeeze"):
        ingot_runtime.load(path).run({"x": numbers(4, 3, 2)})


def test_ranks_agree_behind_it(tmp_path: Path) -> None:
    """Both branches run, with the nodes between them and where they agree; what they read from
    elsewhere, and what reads a result twice, is right."""
    path = compiled(tmp_path, "float[k] y, float[b,3,n] w", """ all = Constant<value = int64[1] {-1}>()
 p = Neg(u)
 w = Exp(x)
 q = Reshape(p, all)
 r = Reshape(u, all)
 m = Sub(q, r)
 f = Reshape(w, all)
 y = Mul(m, f)
""")  # fmt: skip
    feeds = [{"x": numbers(2, 3, size)} for size in (1, 4)]
    for feed, got in zip(feeds, run_all_ways(path, feeds), strict=True):
        expected = -2 * feed["x"].ravel() * np.exp(feed["x"]).ravel()
        np.testing.assert_allclose(got["y"], expected, rtol=1e-5)
        np.testing.assert_allclose(got["w"], np.exp(feed["x"]), rtol=1e-5)


def test_a_node_between_moves_too(tmp_path: Path) -> None:
    """A node that only reads what is alike already moves into the branches where one inside needs
    it."""
    path = compiled(tmp_path, "float[k] y, float z", """ all = Constant<value = int64[1] {-1}>()
 z = ReduceMax<keepdims=0>(u)
 h = Abs(z)
 p = Mul(u, h)
 y = Reshape(p, all)
""")  # fmt: skip
    feeds = [{"x": numbers(2, 3, size)} for size in (1, 4)]
    for feed, got in zip(feeds, run_all_ways(path, feeds), strict=True):
        x = feed["x"]
        np.testing.assert_allclose(got["y"], x.ravel() * np.abs(x.max()), rtol=1e-6)
        assert got["z"] == x.max()


def test_a_check_says_what_cannot_follow(tmp_path: Path) -> None:
    """A call of the branch that cannot go on is refused with what stops it."""
    path = compiled(tmp_path, "float[b,n,3] y", " y = Transpose<perm=[0,2,1]>(u)\n")
    (got,) = run_all_ways(path, [{"x": numbers(2, 3, 2)}])
    np.testing.assert_array_equal(got["y"], numbers(2, 3, 2).transpose(0, 2, 1))
    with pytest.raises(ingot_runtime.IngotError, match=r"else_branch, .*Transpose"):
        ingot_runtime.load(path).run({"x": numbers(2, 3, 1)})


def test_the_declared_rank_of_an_output_decides(tmp_path: Path) -> None:
    """A call that gives the other one is refused."""
    path = compiled(tmp_path, "float[b,3,n] y", " y = Neg(u)\n")
    (got,) = run_all_ways(path, [{"x": numbers(2, 3, 2)}])
    np.testing.assert_array_equal(got["y"], -numbers(2, 3, 2))
    with pytest.raises(ingot_runtime.IngotError, match="declares another type"):
        ingot_runtime.load(path).run({"x": numbers(2, 3, 1)})


def test_a_rank_that_a_run_decides(tmp_path: Path) -> None:
    """An output that fits what the model declares in no branch has the rank of the branch taken."""
    path = compiled(tmp_path, "float[b] y", " y = Neg(u)\n")
    session = ingot_runtime.load(path)
    assert session.outputs[0].shape == ("?",)
    for size in (1, 2):
        x = numbers(2, 3, size)
        np.testing.assert_array_equal(session.run({"x": x})["y"], -(x[:, :, 0] if size == 1 else x))


OPEN = """m (float[b,4] x) => (float[b] y, float[k] z) {
 s = Squeeze(x)
 e = Exp(s)
 zero = Constant<value = int64[1] {0}>()
 two = Constant<value = int64[1] {2}>()
 y = Slice(e, zero, two)
 all = Constant<value = int64[1] {-1}>()
 z = Reshape(s, all)
}"""


def test_squeeze_without_axes(tmp_path: Path) -> None:
    """Over a size that is open: what follows sees one dimension less where the size is 1, as in ONNX's
    reference, up to an output, whose rank a run decides, or to where both are alike."""
    model = parser.parse_model(HEAD + OPEN)
    ingot.compile(model, targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(tmp_path / "m.ingot", executor=executor)
        for size in (1, 3):
            x = numbers(size, 4)
            got = session.run({"x": x})
            np.testing.assert_allclose(got["y"], np.exp(np.squeeze(x))[:2], rtol=1e-6)
            np.testing.assert_array_equal(got["z"], x.ravel())


@pytest.mark.sweep(6)
@pytest.mark.parametrize("shape", [(1, 4, 1), (3, 4, 1), (1, 4, 5), (3, 4, 5), (0, 4, 1)])
def test_a_squeeze_that_is_an_output(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """Any of its sizes may be 1, and only its shape is what a run decides: a call asks for no
    memory beside that of its outputs, one of whose number of elements is known."""
    model = parser.parse_model(
        HEAD + "m (float[b,4,c] x) => (float[k] y) { e = Neg(x) y = Squeeze(e) }"
    )
    ingot.compile(model, targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    x = numbers(*shape)
    (got,) = run_all_ways(tmp_path / "m.ingot", [{"x": x}])
    np.testing.assert_array_equal(got["y"], -np.squeeze(x))
    program = ingot.compile(model, targets=["x86-64-v3"]).text("program")
    assert "buffer_grow" not in program


def test_a_second_size_that_would_go(tmp_path: Path) -> None:
    """Where an op follows, only the first open size may be 1: a call with another one is refused by
    the node's name, and the next call is right."""
    text = HEAD + "m (float[a,1,b] x) => (float[c,d] y) { [n] s = Squeeze(x) y = Exp(s) }"
    ingot.compile(parser.parse_model(text), targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(tmp_path / "m.ingot", executor=executor)
        with pytest.raises(ingot_runtime.InputError) as caught:
            session.run({"x": numbers(2, 1, 1)})
        assert "expected a size other than 1 at axis 2, or axes, got b" in caught.value.why
        assert "node 'n' (Squeeze)" in caught.value.why
        x = numbers(2, 1, 3)
        np.testing.assert_allclose(session.run({"x": x})["y"], np.exp(x[:, 0]), rtol=1e-6)


SQUEEZES = {
    "one rank fits": ("w = Constant<value = float[4,1] {1.0, 1.0, 1.0, 1.0}>() y = Gemm(s, w)", [1]),
    "the other one fits": ('w = Constant<value = float[4] {1.0, 1.0, 1.0, 1.0}>() y = Einsum<equation = "i,i->">(s, w)', [3]),
    "too many nodes": ("n0 = Neg(s) " + " ".join(f"n{at + 1} = Neg(n{at})" for at in range(128)) + " y = Neg(n128)", [1]),
}  # fmt: skip


@pytest.mark.parametrize("case", SQUEEZES)
def test_squeeze_of_one_rank_alone(case: str) -> None:
    """Where what follows fits one rank alone, or is long, calls of the other are refused."""
    nodes, refused = SQUEEZES[case]
    model = parser.parse_model(
        f"{HEAD}m (float[b,4] x) => (float[k] y) {{ s = Squeeze(x) {nodes} }}"
    )
    for size in (1, 3):
        x = numbers(size, 4)
        want = x.sum(-1, keepdims=case == "one rank fits")
        found = run_model(
            model, [x], [x if case == "too many nodes" else want.squeeze() if size == 1 else want]
        )
        assert (found.kind == "fails") == (size in refused), found


@pytest.mark.parametrize(("declared", "nodes", "reason"), [
    ("float[b] y", " k = Constant<value = float[7,5] {" + ",".join(["1.0"] * 35) + "}>()\n y = Gemm(u, k)\n",
     "neither of which fits"),
])  # fmt: skip
def test_no_type_at_all(tmp_path: Path, declared: str, nodes: str, reason: str) -> None:
    """Where nothing says which branch is meant, the node is refused with both types."""
    with pytest.raises(UnsupportedError, match=rf"(?s)If.*{reason}"):
        compiled(tmp_path, declared, nodes)
