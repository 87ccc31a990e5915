"""Targets from outside: what each hook changes, from a model to the outputs of its bundle."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.plugin_harness import EXAMPLES, chain, compiled, composites, outputs, texts

import ingot
import ingot_runtime
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.perform import perform
from ingot_build_rules.engine.actions.values import MemoryBlobs, Values
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.options.plugins import read_plugins, with_plugins
from ingot_build_rules.making.rules.claim import CLAIM, ClaimInputs
from ingot_build_rules.making.rules.registry import RULEBOOK
from ingot_build_rules.making.stages.compile_model import compile_model
from ingot_build_rules.tools.check.self_check import check_bundle
from ingot_compiler.placement.parse_placed import parse_placed
from ingot_compiler.placement.print_placed import print_placed
from ingot_compiler.plugins.settings import PluginSettings


@pytest.mark.broad
def test_one_extern_call(tmp_path: Path) -> None:
    """A claimed relu is a call of the plug-in's C function, in every way of running, and works on the
    host's memory without a copy; the self-check compares it with the graph that the composite
    holds."""
    made = compiled(chain("Neg", "Relu", "Tanh"), "RELU")
    assert composites(made) == [("relu", "relu")]
    assert "copy" not in [each.op for each in made.placed.graph.nodes]
    path = tmp_path / "a.ingot"
    assert outputs(made, path, [-1, 2]) == pytest.approx([np.tanh(1), 0])
    assert check_bundle(made, str(path), None).plain()["passed"]
    calls = [program for program in made.target_builds[0].programs if "CallExtern" in repr(program)]
    assert len(calls) == 1


def test_a_function_that_fails_ends_the_call(tmp_path: Path) -> None:
    """A status other than 0 is an error with the node's name; the session goes on."""
    made = compiled(chain("Neg", "Relu"), "good_plugins:RELU,limit=5")
    made.save(str(tmp_path / "a.ingot"))
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(tmp_path / "a.ingot", executor=executor)
        with pytest.raises(ingot_runtime.InputError) as caught:
            session.run({"x": np.full((1, 3), -6, np.float32)})
        assert "relu of plug-in relu refuses these values" in caught.value.why
        assert "/relu1" in caught.value.why
        session.run({"x": np.full((1, 3), -5, np.float32)})


def test_a_pass_before_placement(tmp_path: Path) -> None:
    """A plug-in rewrites the graph, told by its attribute: (x + x) becomes (x - x) - 42."""
    made = compiled(chain("Add", "Mul"), "good_plugins:SUBTRACT,example_attribute=42")
    assert outputs(made, tmp_path / "a.ingot", [1, 2]) == [-42, -84]
    plain = compiled(chain("Add", "Mul"), "SUBTRACT")
    assert outputs(plain, tmp_path / "b.ingot", [1, 2]) == [0, 0]


def test_passes_run_in_the_order_of_the_list(tmp_path: Path) -> None:
    """Those of one plug-in, then those of the next: relu before or behind a negation."""
    for names, expected in (("ORDERED", [0, 2]), ("REVERSED", [1, 0])):
        made = compiled(chain("Tanh"), names)
        assert outputs(made, tmp_path / f"{names}.ingot", [1, -2]) == expected


@pytest.mark.parametrize("plugin", ["PRODUCT", "LOOPS"])
def test_code_and_loops_of_its_own(plugin: str, tmp_path: Path) -> None:
    """A plug-in's code generation, or its pass over loops, multiplies where the graph subtracts;
    the host's kernels beside it stay what they are."""
    made = compiled(chain("Neg", "Sub", "Relu", "Sub"), plugin)
    assert [name for _, name in composites(made)] == ["sub", "sub"]
    x = np.array([2.0, -3.0])
    expected = np.maximum(-x * x, 0) * x
    assert outputs(made, tmp_path / "a.ingot", list(x)) == pytest.approx(list(expected))


def test_an_image_as_its_library(tmp_path: Path) -> None:
    """Finished machine code is linked as it is: here a function that does nothing."""
    made = compiled(chain("Neg", "Relu", "Neg"), "IMAGE")
    made.save(str(tmp_path / "a.ingot"))
    session = ingot_runtime.load(tmp_path / "a.ingot")
    assert session.run({"x": np.ones((2, 3), np.float32)})["y"].shape == (2, 3)


def test_equal_groups_are_one_kernel() -> None:
    """Two equal composites are lowered and compiled once, under one symbol."""
    made = compiled(chain("Relu", "Neg", "Relu"), "RELU")
    build = made.target_builds[0]
    assert len(composites(made)) == 2
    assert len(build.launches) == 3
    assert len({kernel.symbol for kernel in build.objects}) == 2
    assert made.counts()["lower_claimed"]["ran"] == 1


def test_claims_inside_of_branches(tmp_path: Path) -> None:
    """A plug-in is offered the bodies of branches, too, not the outermost graph alone."""
    then, otherwise = (
        helper.make_graph(
            [node("Relu", "x", f"{name}_r", name=f"/{name}/relu"), node(op, f"{name}_r", name)],
            name,
            [],
            [tensor(name, ["n", 3])],
        )
        for name, op in (("then", "Neg"), ("otherwise", "Tanh"))
    )
    model = make_model(
        [node("If", "c", "y", then_branch=then, else_branch=otherwise)],
        [tensor("c", [], TensorProto.BOOL), tensor("x", ["n", 3])],
        [tensor("y", ["n", 3])],
    )
    made = compiled(model, "RELU")
    (branch,) = [each for each in made.placed.graph.nodes if each.regions]
    assert [region.nodes[0].op for region in branch.regions] == ["composite", "composite"]
    made.save(str(tmp_path / "a.ingot"))
    feeds = [{"c": np.array(c), "x": np.ones((2, 3), np.float32)} for c in (True, False)]
    first, second = run_all_ways(tmp_path / "a.ingot", feeds)
    assert (first["y"][0, 0], second["y"][0, 0]) == pytest.approx((-1, np.tanh(1)))


def test_what_is_left_or_too_dear_falls_back() -> None:
    """A plug-in that declines, or whose claims cost more than the host, changes no byte but the
    record of the options."""
    model = chain("Neg", "Relu")
    sys.path.append(str(EXAMPLES))
    plain = compiled(model)
    for name in ("decline:TARGET", "DEAR"):
        made = compiled(model, name)
        assert composites(made) == []
        assert [each.image.digest for each in made.variants] == [
            each.image.digest for each in plain.variants
        ]


def test_the_order_of_plugins_decides_between_equals() -> None:
    """Two that want the same at the same cost: the one that is named first gets it."""
    for names, winner in ((("RELU", "OTHER"), "relu"), (("OTHER", "RELU"), "other")):
        assert composites(compiled(chain("Neg", "Relu"), *names)) == [(winner, "relu")]
    assert composites(compiled(chain("Neg", "Relu"), "DEAR", "OTHER")) == [("other", "relu")]


def test_several_nodes_in_one_kernel(tmp_path: Path) -> None:
    """A chain that one claim covers is one launch; literals come along."""
    model = make_model(
        [node("Mul", "x two", "a"), node("Relu", "a", "b"), node("Neg", "b", "y")],
        [tensor("x", ["n", 3])],
        [tensor("y", ["n", 3])],
        {"two": np.array(2, np.float32)},
    )
    made = compiled(model, "CHAIN")
    assert len(made.target_builds[0].launches) == 1
    assert outputs(made, tmp_path / "a.ingot", [3, -1]) == [-6, 0]


def test_named_twice_is_named_once() -> None:
    """The same plug-in again is the same build."""
    once, twice = (read_plugins(texts(*names)) for names in (("RELU",), ("RELU", "RELU")))
    assert once == twice


def test_attributes() -> None:
    """Values have the types of their defaults; what is not given has its default."""
    (option,) = read_plugins(["good_plugins:ATTRIBUTES,flag=true,count=-2"])
    assert option.settings.attributes == (("count", -2), ("flag", True), ("text", "a"))


@pytest.mark.broad
def test_the_text_of_a_stage_goes_on(tmp_path: Path) -> None:
    """A placed graph with composites, printed and read back in the middle of a compilation, gives
    the same code."""
    made = compiled(chain("Neg", "Relu", "Tanh"), "RELU")
    text = print_placed(made.placed)
    assert parse_placed(text) == made.placed
    (tmp_path / "a.placed").write_text(text)
    arguments = ["--from", "placed", "--target", "x86-64-v3", "--plugin", texts("RELU")[0]]
    from ingot_build_rules.tools.cli.main import main

    output = tmp_path / "b.ingot"
    cache = str(tmp_path / "cache")
    code = main(
        ["compile", str(tmp_path / "a.placed"), *arguments, "-o", str(output), "--cache", cache]
    )
    assert code == 0
    made.save(str(tmp_path / "c.ingot"))
    x = np.full((2, 3), -0.5, np.float32)
    (y,) = ingot_runtime.load(output).run({"input0": x}).values()
    assert y.tobytes() == ingot_runtime.load(tmp_path / "c.ingot").run({"x": x})["y"].tobytes()


@pytest.mark.broad
def test_from_python_in_several_processes(tmp_path: Path) -> None:
    """``ingot.compile`` takes plug-ins; worker processes load them, and the bundle is the same."""
    sys.path.append(str(EXAMPLES))
    model = chain("Neg", "Relu")
    made = [
        ingot.compile(
            model,
            targets="x86-64-v3",
            plugins=texts("RELU"),
            cache=tmp_path / str(count),
            workers=count,
        ).to_bytes()
        for count in (1, 2)
    ]
    assert made[0] == made[1]
    options = make_options(["x86-64-v3"], plugins=read_plugins(texts("RELU")))
    assert compile_model(model.SerializeToString(), options).to_bytes() == made[0]


def test_an_action_loads_what_the_user_named_alone() -> None:
    """Whatever inputs say, from a cache or a text: a hook that no command has named is not
    imported."""
    texts()
    sys.modules.pop("unnamed_plugin", None)
    values = Values(MemoryBlobs(), Codec(RULEBOOK.types))
    placed = values.keep(compiled(chain("Relu")).placed)
    inputs = ClaimInputs(placed, ("unnamed_plugin:claim",), (PluginSettings("unnamed"),))
    (option,) = read_plugins(texts("RELU"))
    for rulebook in (RULEBOOK, with_plugins(RULEBOOK, [option])):
        outcome = perform(CLAIM, inputs, values, rulebook)
        assert "is not among the code that the action's inputs may name" in str(outcome.error)
    assert "unnamed_plugin" not in sys.modules
