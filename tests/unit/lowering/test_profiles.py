"""Several profiles of one model (``--shape``): which version runs, its bits, its memory, its weights."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper
from tests.json_schemas import checked

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import compile_model
from ingot_build_rules.tools.cli.inspect import description_lines
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.frontend.model.parse_imported import parse_imported
from ingot_compiler.frontend.model.print_imported import print_imported
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.sizes.profile import SizeRange
from ingot_compiler.lowering.groups.fused import FusedGraph
from ingot_compiler.lowering.groups.parse_fused import parse_fused
from ingot_compiler.lowering.groups.print_fused import print_fused
from ingot_compiler.lowering.groups.verify_fused import verify_fused
from ingot_compiler.lowering.groups.versions import versions_of

WIDTH = 20
PROFILES = [{"x": "4x16x20"}, {"x": "?x16x20"}, {"x": "2..8x?x20"}]
# Rows that each version is for: the general one, then the profiles in their order
CALLS = {
    (9, 9): 0, (1, 1): 0, (0, 3): 0, (4, 16): 1, (5, 16): 2, (0, 16): 2, (9, 16): 2, (2, 9): 3, (8, 1): 3,
}  # fmt: skip


def _model() -> ModelProto:
    generator = np.random.default_rng(0)
    weights = {
        "a": generator.standard_normal((WIDTH, 33)).astype(np.float32),
        "b": generator.standard_normal((33, 7)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "b"], ["z"]),
        helper.make_node("Softmax", ["z"], ["y"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "profiles",
        [helper.make_tensor_value_info("x", 1, ["batch", "steps", WIDTH])],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The model without profiles, and with them."""
    folder = tmp_path_factory.mktemp("profiles")
    ingot.compile(_model()).save(folder / "general.ingot")
    ingot.compile(_model(), shapes=PROFILES, check=True).save(folder / "special.ingot")
    return folder / "general.ingot", folder / "special.ingot"


def _x(rows: tuple[int, int]) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(sum(rows))
    return {"x": generator.standard_normal((*rows, WIDTH)).astype(np.float32)}


@pytest.mark.parametrize("executor", ["aot", "vm"])
def test_every_version_gives_the_bits_of_the_general_one(
    bundles: tuple[Path, Path], executor: str
) -> None:
    """In one session, call after call, whichever version the sizes choose."""
    general, special = (ingot_runtime.load(path, executor=executor) for path in bundles)
    with general, special:
        for rows in (*CALLS, *reversed(CALLS)):
            expected, got = (each.run(_x(rows))["y"] for each in (general, special))
            assert (got.shape, got.tobytes()) == (expected.shape, expected.tobytes())


def test_the_first_profile_that_fits_is_chosen(bundles: tuple[Path, Path]) -> None:
    """``main`` launches the kernels of that version and no others."""
    compiled = compile_model(_model(), make_options(shapes=PROFILES))
    fused = compiled.target_builds[0].expanded
    launches = [len(version.steps) for version in versions_of(fused)]
    firsts = [sum(launches[:number]) for number in range(len(launches))]
    session = ingot_runtime.load(bundles[1], executor="vm")
    for rows, version in CALLS.items():
        seen: list[int] = []
        session.observe(_note(seen))
        session.run(_x(rows))
        assert seen[:1] == [firsts[version]]
        assert len(seen) == launches[version]


def _note(seen: list[int]) -> Callable[[int, str, float, Sequence[memoryview]], None]:
    def note(launch: int, kernel: str, seconds: float, buffers: Sequence[memoryview]) -> None:
        del kernel, seconds, buffers
        seen.append(launch)

    return note


def test_versions_share_their_weights(bundles: tuple[Path, Path]) -> None:
    """Four versions store each packing once: no more bytes of weights than one."""
    sizes = [
        [sizes["weights_bytes"] for sizes in describe_bundle(path)["memory"].values()]
        for path in map(str, bundles)
    ]
    assert sizes[0] == sizes[1]


def test_a_call_has_the_workspace_of_its_own_version() -> None:
    """A version for many rows does not make small calls need its memory."""
    large = ingot.compile(_model(), shapes=[{"x": "512x64x20"}]).to_bytes()
    session = ingot_runtime.load(large, max_bytes=1 << 20)
    session.run(_x((2, 3)))
    with pytest.raises(ingot_runtime.LimitError):
        session.run(_x((512, 64)))


def test_inspect_shows_the_versions(
    bundles: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each with the sizes that it is for, in the user's names, and its launches."""
    lines = description_lines(describe_bundle(bundles[1]))
    titles = [line.partition(" for ")[2] for line in lines if line.startswith("launches of ")]
    assert titles == [
        "any other sizes:",
        "batch = 4, steps = 16:",
        "steps = 16:",
        "batch = 2..8:",
    ]
    assert sum("z (MatMul)" in line for line in lines) == len(titles)
    assert not any("other sizes" in line for line in description_lines(describe_bundle(bundles[0])))
    assert main(["inspect", str(bundles[1]), "--json"]) == 0
    told = checked("inspect", capsys.readouterr().out)["debug"]["versions"]
    assert [[each["sizes"] for each in versions] for versions in told.values()] == [
        [[], [["batch", "4"], ["steps", "16"]], [["steps", "16"]], [["batch", "2..8"]]]
    ]


def test_other_shapes_are_refused_where_the_user_wants_it() -> None:
    """There is no general version: fewer kernels, and calls that fit no profile are told what
    would."""
    bundle = ingot.compile(
        _model(), shapes=[{"x": "4x16x20"}, {"x": "2..8x1x20"}], other_shapes="refuse", check=True
    )
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(bundle.to_bytes(), executor=executor)
        for rows in ((4, 16), (2, 1), (8, 1)):
            assert session.run(_x(rows))["y"].shape == (*rows, 7)
        for rows in ((5, 16), (9, 1), (0, 1), (4, 15)):
            with pytest.raises(ingot_runtime.InputError) as caught:
                session.run(_x(rows))
            assert "batch = 4, steps = 16 or batch = 2 to 8, steps = 1" in str(caught.value)
    compiled = compile_model(_model(), make_options(shapes=PROFILES, other_shapes="refuse"))
    build = compiled.target_builds[0]
    assert len(build.launches) == len(PROFILES) * 3
    verify_fused(build.fused)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"other_shapes": "refuse"}, ("every call would be refused", "no shape is given")),
        ({"other_shapes": "refuze"}, ("unknown choice of other shapes", "did you mean 'refuse'?")),
        ({"shapes": "x=4x16x20"}, ("wrong shapes", "expected a dict", "give")),
        ({"shapes": ["4x16x20"]}, ("wrong shapes", "expected a dict", "give")),
        ({"shapes": {"x": "4xfourx20"}}, ("wrong shapes", "shapes['x']", "4xfourx20", "(1, 8) a range")),
        ({"shapes": {"x": 4}}, ("wrong shapes", "shapes['x']", "got 4", "(1, 8) a range")),
    ],
)  # fmt: skip
def test_wrong_arguments(arguments: dict[str, Any], words: tuple[str, ...]) -> None:
    """Refused before the model is read."""
    with pytest.raises(ingot.UserError) as caught:
        ingot.compile(_model(), **arguments)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_the_texts_of_stages_have_the_profiles() -> None:
    """They are read back as they are written."""
    compiled = compile_model(_model(), make_options(shapes=PROFILES, other_shapes="refuse"))
    text, fused = print_imported(compiled.imported), compiled.target_builds[0].fused
    assert "  specialisation s0 = 4, s1 = 16\n  specialisation s1 = 16\n" in text
    assert "  specialisation s0 = 2 to 8\n" in text
    assert parse_imported(text) == compiled.imported
    assert "where s0 = 2 to 8\n" in print_fused(fused)
    assert parse_fused(print_fused(fused)) == fused


def _changed(fused: FusedGraph, number: int, **changes: Any) -> FusedGraph:
    parts = list(fused.specialisations)
    parts[number] = replace(parts[number], **changes)
    return replace(fused, specialisations=tuple(parts))


def test_versions_that_are_out_of_order_are_found() -> None:
    """By the verifier of the stage."""
    fused = compile_model(_model(), make_options(shapes=PROFILES)).target_builds[0].fused
    verify_fused(fused)
    for wrong, words in (
        (_changed(fused, 1, first_step=0), "first step of the specialisation"),
        (_changed(fused, 2, first_step=99), "first step of the specialisation"),
        (_changed(fused, 2, profile=(SizeRange("s0", 8, 2),)), "a range from 0 on"),
        (_changed(fused, 2, profile=(SizeRange("s7", 2, 8),)), "a size of an input"),
    ):
        with pytest.raises(InternalError, match=words):
            verify_fused(wrong)


_CALLS_ALONE = """
import sys
import numpy
import ingot_runtime

session = ingot_runtime.load(sys.argv[1])
before = set(sys.modules)
for rows in ((4, 16), (1, 1), (3, 16), (2, 9)):
    session.run({"x": numpy.zeros((*rows, 20), numpy.float32)})
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded - {"ingot_runtime"}), [name for name in sys.modules if "llvm" in name])
"""


def test_the_first_call_of_a_new_shape_compiles_nothing(bundles: tuple[Path, Path]) -> None:
    """A process that only calls loads no compiler, whatever the shapes."""
    command = [sys.executable, "-c", _CALLS_ALONE, str(bundles[1])]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == "[] []\n"


def test_sizes_that_no_call_can_have() -> None:
    """Two inputs that do not go together: the node is named, not an internal error."""
    inputs = [
        helper.make_tensor_value_info("x", 1, ["n", 4]),
        helper.make_tensor_value_info("w", 1, ["p", 4]),
    ]
    node = helper.make_node("Add", ["x", "w"], ["y"], "/sum")
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with pytest.raises(ingot.UserError, match="contradicts the model") as caught:
        ingot.compile(model, shapes={"x": "4x4", "w": "3x4"})
    assert caught.value.where == "node '/sum' (Add)"
    assert "with n = 4, p = 3: expected" in caught.value.why
