"""One bundle over the host and devices with memory of their own: from marks to results, the bits of
the host alone."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import assert_same_bits, make_model, node, reference, tensor
from tests.harness.lowering_harness import normal

import ingot
import ingot_runtime
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import compile_model
from ingot_compiler.ir.errors import UnsupportedError
from ingot_runtime.format.source import Source, read_plan
from ingot_runtime.loader.system import sealed_file

BLOCKS = ("stem", "body", "join", "mean", "dense", "end")
X = np.random.default_rng(5).standard_normal((2, 8, 10, 10)).astype(np.float32)


def network() -> ModelProto:
    """Six blocks: two convolutions, a residual sum, a mean, a dense layer, softmax."""
    nodes = [
        node("Conv", "x w0", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Relu", "a", "b"),
        node("Conv", "b w1", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Add", "b c", "d"),
        node("GlobalAveragePool", "d", "e"),
        node("Flatten", "e", "f"),
        node("Gemm", "f w2 b2", "g"),
        node("Softmax", "g", "y"),
    ]
    for each, block in zip(
        nodes, ("stem", "stem", "body", "join", "mean", "mean", "dense", "end"), strict=True
    ):
        each.name = f"/{block}/{each.op_type}"
    weights = {
        "w0": normal(0, 8, 8, 3, 3),
        "w1": normal(1, 8, 8, 3, 3),
        "w2": normal(2, 8, 5),
        "b2": normal(3, 5),
    }
    return make_model(nodes, [tensor("x", list(X.shape))], [tensor("y", [2, 5])], weights)


@pytest.fixture(scope="module")
def expected() -> bytes:
    """What the host alone gives."""
    return bytes(
        ingot_runtime.load(ingot.compile(network()).to_bytes()).run({"x": X})["y"].tobytes()
    )


def results(places: Sequence[str], devices: dict[str, str]) -> set[bytes]:
    """The outputs of a placement, native and stepped, first and second call."""
    place = {f"/{block}/*": device for block, device in zip(BLOCKS, places, strict=True)}
    bundle = ingot.compile(network(), devices=devices, place=place).to_bytes()
    found: set[bytes] = set()
    for executor in ("aot", "vm"):
        with ingot_runtime.load(bundle, executor=executor) as session:
            found |= {session.run({"x": X})["y"].tobytes() for _ in range(2)}
    return found


@pytest.mark.broad
@pytest.mark.parametrize(
    "places",
    [
        ("acc",) * 6,
        ("host", "acc", "host", "acc", "host", "acc"),
        ("acc", "host", "acc", "host", "acc", "host"),
        ("host", "host", "host", "acc", "acc", "acc"),
    ],
)
def test_some_placements(places: Sequence[str], expected: bytes) -> None:
    """All on the device, in turns, one cut."""
    assert results(places, {"acc": "null"}) == {expected}


def test_two_devices(expected: bytes) -> None:
    """``null:0`` and ``null:1`` have memory apart: what crosses is copied."""
    devices = {"acc": "null:0", "other": "null:1"}
    assert results(("acc", "other", "acc", "other", "host", "other"), devices) == {expected}


def test_ids_are_kept_and_one_bundle_runs_on_other_devices(expected: bytes) -> None:
    """What was declared as ``cpu:3`` and ``cpu:1`` is bound there, and a user may bind either to any
    device that runs its code; two on one device have memory apart."""
    declared = {"acc": "cpu:3", "other": "cpu:1"}
    place = {"*": "acc", "/join/*": "other"}
    bundle = ingot.compile(network(), devices=declared, place=place).to_bytes()
    for bound in ({}, {"acc": "null:2"}, {"acc": "cpu:0", "other": "cpu:0"}):
        with ingot_runtime.load(bundle, devices=bound) as session:
            assert session.devices == {"host": "host:0", **declared, **bound}
            assert session.run({"x": X})["y"].tobytes() == expected
            assert all(session.device_counts().launches.values())


def test_libraries_are_made_before_the_one_main() -> None:
    """All kernels of two kinds of device are linked before `main` is made, which knows them by
    their numbers; there is one `main` and one image of the host."""
    made: list[str] = []
    model = make_model(
        [node("Neg", "x", "a"), node("Abs", "a", "y")], [tensor("x", [8])], [tensor("y", [8])]
    )
    options = make_options(
        ("x86-64-v3",),
        devices={"acc": "null", "other": "cpu"},
        place=[("*", "acc"), ("n1", "other")],
    )
    for each, name in zip(model.graph.node, ("n0", "n1"), strict=True):
        each.name = name

    def note(rule: str, *_: object) -> None:
        made.append(rule)

    compiled = compile_model(model, options, note)
    plan = read_plan(Source(sealed_file(compiled.to_bytes()), "bundle"))
    assert [library.kind for library in plan.libraries] == ["null", "cpu"]
    assert [rule for rule in made if rule in ("link", "codegen_main")] == [
        "link",
        "link",
        "codegen_main",
        "link",
    ]


@pytest.mark.slow
def test_all_placements(expected: bytes) -> None:
    """2^6 of them."""
    for places in itertools.product(("host", "acc"), repeat=6):
        assert results(places, {"acc": "null"}) == {expected}, places


def test_open_sizes(expected: bytes, tmp_path: Path) -> None:
    """Shapes that the call gives: the device's workspace follows them."""
    del expected
    model = make_model(
        [node("MatMul", "x w", "a"), node("Softmax", "a", "b"), node("MatMul", "b v", "y")],
        [tensor("x", ["n", 16])], [tensor("y", ["n", 8])], {"w": normal(0, 16, 32), "v": normal(1, 32, 8)},
    )  # fmt: skip
    for each in model.graph.node:
        each.name = f"/{each.output[0]}"
    ingot.compile(model).save(tmp_path / "host.ingot")
    ingot.compile(model, devices={"acc": "null"}, place={"/b": "acc"}).save(tmp_path / "two.ingot")
    alone, two = (ingot_runtime.load(tmp_path / f"{name}.ingot") for name in ("host", "two"))
    for rows in (3, 1, 50, 0, 3):
        x = np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)
        assert alone.run({"x": x})["y"].tobytes() == two.run({"x": x})["y"].tobytes()


def both_ways(
    model: ModelProto, feed: dict[str, Array], on_device: Sequence[str]
) -> dict[str, Array]:
    """The outputs of a model with these nodes on ``acc``, native and stepped, first and second
    call."""
    place = {"*": "host", **dict.fromkeys(on_device, "acc")}
    bundle = ingot.compile(
        model, targets=["x86-64-v2"], devices={"acc": "null"}, place=place
    ).to_bytes()
    found: list[dict[str, Array]] = []
    for executor in ("aot", "vm"):
        with ingot_runtime.load(bundle, executor=executor) as session:
            found += [session.run(feed) for _ in range(2)]
    for other in found[1:]:
        assert_same_bits(found[0], other)
    return found[0]


def named(model: ModelProto) -> ModelProto:
    """The same model; each node has the name of its first result."""
    for each in model.graph.node:
        each.name = f"/{each.output[0]}"
    return model


@pytest.mark.sweep(6)
@pytest.mark.parametrize("place", [["/y"], ["/v"], ["/u"], ["/v", "/u"]])
def test_buffers_that_fill_whole_pages(place: Sequence[str]) -> None:
    """What is of no size, scratch here, has a place in the pool too where everything before it ends
    with a page."""
    x = normal(7, 1024)
    nodes = [node("Mul", "x x", "v"), node("Exp", "v", "u"), node("Add", "u x", "y")]
    model = named(make_model(nodes, [tensor("x", [1024])], [tensor("y", [1024])]))
    assert_same_bits(both_ways(model, {"x": x}, []), both_ways(model, {"x": x}, place))


def test_a_device_that_only_holds_a_value() -> None:
    """A reshape is no launch: its value goes to the device, and comes back."""
    x = normal(7, 4, 6)
    nodes = [node("Reshape", "x s", "v"), node("Neg", "v", "y")]
    model = named(
        make_model(nodes, [tensor("x", [4, 6])], [tensor("y", [24])], {"s": np.array([24])})
    )
    assert (both_ways(model, {"x": x}, ["/v"])["y"] == -x.ravel()).all()


SPARSE = np.array([[1, 0, 2], [0, 0, 3], [4, 0, 0]], np.float32)
S1 = np.array([-1])
# Networks whose sizes the data decide.
LATE: dict[str, ModelProto] = {
    "NonZero": make_model(
        [node("Relu", "x", "r"), node("NonZero", "r", "i"), node("Transpose", "i", "t", perm=[1, 0]), node("GatherND", "r t", "g"),
         node("Mul", "g g", "y")],
        [tensor("x", [3, 3])], [tensor("y", ["n"])],
    ),
    "Compress": make_model(
        [node("Greater", "x z", "b"), node("Reshape", "b s", "c"), node("Compress", "x c", "k"), node("Exp", "k", "y")],
        [tensor("x", [3, 3])], [tensor("y", ["n"])], {"z": np.array(0, np.float32), "s": S1},
    ),
    "Unique": make_model(
        [node("Reshape", "x s", "v"), node("Unique", "v", "u"), node("Add", "u u", "y")],
        [tensor("x", [3, 3])], [tensor("y", ["n"])], {"s": S1},
    ),
    "Range": make_model(
        [node("ReduceMax", "x", "m", keepdims=0), node("Cast", "m", "i", to=7), node("Range", "a i b", "r"), node("Cast", "r", "f", to=1),
         node("Sqrt", "f", "y")],
        [tensor("x", [3, 3])], [tensor("y", ["n"])], {"a": np.array(0), "b": np.array(1)},
    ),
}  # fmt: skip


@pytest.mark.broad
@pytest.mark.parametrize("name", LATE)
def test_sizes_that_the_data_decide(name: str) -> None:
    """Each node alone on the device, all of them, all but the first and all but the last: blocks
    that only `main` asks for lie there."""
    model = named(LATE[name])
    nodes = [each.name for each in model.graph.node]
    alone = both_ways(model, {"x": SPARSE}, [])
    for value, expected in reference(model, {"x": SPARSE}).items():
        assert alone[value].shape == expected.shape
    for place in ([each] for each in nodes):
        assert_same_bits(alone, both_ways(model, {"x": SPARSE}, place))
    for place in (nodes, nodes[1:], nodes[:-1]):
        assert_same_bits(alone, both_ways(model, {"x": SPARSE}, place))


def choice() -> ModelProto:
    """A network with an If."""
    inside = {"then": node("Relu", "x", "t"), "else": node("Neg", "x", "e")}
    for name, each in inside.items():
        each.name = f"/{name}/{each.op_type}"
    branches = {
        f"{name}_branch": helper.make_graph([each], name, [], [tensor(each.output[0], [3, 3])])
        for name, each in inside.items()
    }
    nodes = [node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s z", "c"), node("If", "c", "r", **branches), node("Mul", "r r", "y")]  # fmt: skip
    return named(
        make_model(
            nodes, [tensor("x", [3, 3])], [tensor("y", [3, 3])], {"z": np.array(0, np.float32)}
        )
    )


@pytest.mark.broad
def test_control_flow_beside_a_device() -> None:
    """Nodes around an If run on the device, and its condition comes from there."""
    for x in (SPARSE, -SPARSE):
        alone = both_ways(choice(), {"x": x}, [])
        for place in (["/s"], ["/c"], ["/y"], ["/s", "/c", "/y"]):
            assert_same_bits(alone, both_ways(choice(), {"x": x}, place))


@pytest.mark.parametrize(
    ("glob", "what", "where", "why"),
    [
        ("/r", "if on device acc", "node '/r' (If)", "placed by their own names"),
        ("*", "if on device acc", "node '/r' (If)", "placed by their own names"),
    ],
)
def test_control_flow_on_a_device(glob: str, what: str, where: str, why: str) -> None:
    """It is refused, naming the node."""
    with pytest.raises(UnsupportedError) as caught:
        ingot.compile(choice(), devices={"acc": "null"}, place={glob: "acc"})
    assert (caught.value.what, caught.value.where) == (what, where)
    assert why in caught.value.why
    assert caught.value.do


FOUR = ("stem", "body", "mean", "end")


@pytest.mark.slow
def test_all_placements_over_three(expected: bytes) -> None:
    """3^4 placements of four blocks over the host and two kinds of device with memory of their own;
    what lies between them runs where its operand is."""
    devices = {"acc": "null", "other": "cpu:1"}
    for places in itertools.product(("host", *devices), repeat=4):
        place = {f"/{block}/*": device for block, device in zip(FOUR, places, strict=True)}
        bundle = ingot.compile(network(), devices=devices, place=place).to_bytes()
        for executor in ("aot", "vm"):
            with ingot_runtime.load(bundle, executor=executor) as session:
                assert session.run({"x": X})["y"].tobytes() == expected, places
