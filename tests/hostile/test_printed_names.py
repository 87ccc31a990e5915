"""Names are shown, never obeyed: whatever a forged bundle, a model, an archive or a path is called,
a terminal only shows it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.hostile.reseal import Parts
from tests.hostile.tiny import WIDTH, tiny_contents, tree_entry

import ingot
import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.errors import ArtifactError
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.ir.errors import UserError
from ingot_runtime import command
from ingot_runtime.format import header as head
from ingot_runtime.format.plan import BundlePlan
from ingot_runtime.format.schema import FORBIDDEN_RANGES, forbidden_character
from ingot_runtime.ingot_error import error_text
from ingot_runtime.npz import read_npz, write_npz
from ingot_runtime.printable import printable

Output = pytest.CaptureFixture[str]
EVIL = "\x1b[2K\rverified all\n\x9b1m\u202e\u2028\x7f"
# Every border of every range, and one inside. Surrogates cannot be written into a file.
FORBIDDEN = sorted(
    {
        chr(code)
        for first, last in FORBIDDEN_RANGES
        for code in (first, (first + last) // 2, last)
        if first != 0xD800
    }
)
KEPT = (
    "a b",
    "name/with:dots.0",
    "\u540d\u524d",
    "\u00e9\u0301",
    "\u200d\U0001f469",
    "\u2027\u202f\u2065\u206a",
    "\u00a0",
    "'\"\\",
)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "tiny.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    return path


def assert_harmless(text: str) -> None:
    """Every line of the text is printable."""
    assert all(line.isprintable() for line in text.split("\n")), ascii(text)


def _model(plan: BundlePlan) -> None:
    plan.model = f"m{EVIL}"


def _input(plan: BundlePlan) -> None:
    plan.inputs[0].name += EVIL


def _output(plan: BundlePlan) -> None:
    plan.outputs[0].name = EVIL


def _device(plan: BundlePlan) -> None:
    plan.devices[0].name = EVIL


def _target(plan: BundlePlan) -> None:
    plan.variants[0].target = EVIL


def _feature(plan: BundlePlan) -> None:
    plan.variants[0].features = (EVIL, *plan.variants[0].features)


@pytest.mark.parametrize("change", [_model, _input, _output, _device, _target, _feature])
def test_forged_plan(
    bundle: Path, tmp_path: Path, capsys: Output, change: Callable[[BundlePlan], None]
) -> None:
    """A control character in any name of a plan is refused by every reader, and told of without
    harm."""
    parts = Parts(bundle.read_bytes())
    parts.change_plan(change)
    path = tmp_path / "m.ingot"
    path.write_bytes(parts.sealed())
    with pytest.raises(ingot_runtime.FormatError, match="control character") as caught:
        ingot_runtime.load(path)
    assert_harmless(str(caught.value))
    for verb in (
        ["verify"],
        ["inspect"],
        ["run"],
        ["diff", str(bundle)],
        ["inspect", "--json"],
        ["bench"],
    ):
        assert main([verb[0], str(path), *verb[1:]]) == 4
    for verb in (["run"], ["inspect"], ["inspect", "--json"]):
        assert command.main([verb[0], str(path), *verb[1:]]) == 4
    printed = capsys.readouterr()
    assert printed.out.count("control character") == 2  # --json: the errors, for programs
    assert_harmless(printed.out)
    assert printed.err.count("control character") == 9
    assert_harmless(printed.err)


@pytest.mark.parametrize("section", ["program", "debug", "lock"])
def test_forged_texts(bundle: Path, tmp_path: Path, capsys: Output, section: str) -> None:
    """So is one in a program's message, in the debug section and in the lock."""
    parts = Parts(bundle.read_bytes())
    if section == "program":
        parts.change_program(lambda program: setattr(program, "messages", (EVIL,)))
    else:
        kind = head.DEBUG if section == "debug" else head.LOCK
        parts.change_record(kind, lambda record: record.__setitem__(EVIL, EVIL))
    path = tmp_path / "m.ingot"
    path.write_bytes(parts.sealed())
    assert main(["verify", str(path)]) == 4
    if section != "program":
        assert main(["inspect", str(path)]) == 4
        assert main(["diff", str(path), str(bundle)]) == 4
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "control character" in printed.err
    assert_harmless(printed.err)


@pytest.mark.parametrize(
    "name", ["two\nbundle: verified all", "\x1b[2Jm", "\x9bm", "\u202em", "m\udc80"]
)
def test_paths(
    bundle: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A path is a name too: it takes one line, whatever is in it, in text, in errors and in
    JSON."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(bundle.read_bytes())
    assert main(["verify", name]) == 0
    assert main(["run", name, "--outputs", f"{name}.npz"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    for verb in ("verify", "run", "inspect"):
        assert main([verb, name, "--json"]) == 0
    assert main(["diff", name, name]) == 0
    assert command.main(["run", name, "--inputs", f"none{name}.npz"]) == 1
    assert main(["verify", f"none{name}"]) == 1
    assert main(["run", name, "--inputs", f"none{name}.npz"]) == 1
    printed = capsys.readouterr()
    assert_harmless(printed.out)
    assert_harmless(printed.err)
    assert len(printed.out.splitlines()) == 4
    assert all(
        line.startswith(("error: ", "  where: ", "  why: ", "  do: "))
        for line in printed.err.splitlines()
    )


def test_output_json_is_ascii(bundle: Path, capsys: Output) -> None:
    """What ``--json`` prints has no byte that a terminal obeys, DEL included, and says the same."""
    from ingot_runtime.json_output import json_line

    value = {
        character: character for character in map(chr, (*range(0x110), 0x202E, 0xDC80, 0x1F469))
    }
    line = json_line(value)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == {"version": 1, **value}


@pytest.mark.parametrize("kind", [ingot_runtime.InputError, ArtifactError, UserError])
def test_errors(kind: Callable[..., Exception]) -> None:
    """``str()`` of every family of errors: four parts, each on its line; lists in a reason stay
    lists, and cannot pass for a part."""
    error = kind(EVIL, EVIL, f"a\n    b{EVIL}", EVIL)
    assert_harmless(str(error))
    lines = str(error).split("\n")
    assert [line[:7] for line in lines] == [
        r"\x1b[2K",
        "  where",
        "  why: ",
        "    b\\x",
        "    \\x9",
        "  do: \\",
    ]


@pytest.mark.broad
def test_what_is_forbidden() -> None:
    """Characters are refused as FORMAT.md names them, and no others."""
    text = (Path(__file__).parents[2] / "runtime" / "FORMAT.md").read_text()
    sentence = next(
        line for line in text.split("\n\n") if line.startswith("No text of a bundle MAY hold")
    )
    for first, last in FORBIDDEN_RANGES:
        if first != 0xD800:
            shown = f"U+{first:04X}" if first == last else f"U+{first:04X} to U+{last:04X}"
            assert shown in sentence.replace("U+200E, U+200F", "U+200E to U+200F").replace(
                "\n", " "
            )
    for character in FORBIDDEN:
        assert forbidden_character(f"a{character}") == character
        assert not character.isprintable()
    assert [name for name in KEPT if forbidden_character(name)] == []
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
    assert (
        sum(bool(forbidden_character(character)) for character in every) == 65 + 1 + 2 + 7 + 4 + 1
    )
    assert_harmless(printable(every))
    assert error_text("a", "", "", "") == "a"


def model_of(path: Path, node: str, tensor: str, graph: str = "g", dim: str = "n") -> str:
    """Write y = relu(relu(x)) with these names; the inner tensor has the name `tensor`."""
    nodes = [
        helper.make_node("Relu", ["x"], [tensor], name=node), helper.make_node("Relu", [tensor], ["y"], name="last"),
    ]  # fmt: skip
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [dim, 4]) for name in ("x", "y")
    ]
    made = helper.make_model(
        helper.make_graph(nodes, graph, infos[:1], infos[1:]),
        opset_imports=[helper.make_opsetid("", 20)],
    )
    path.write_bytes(made.SerializeToString())
    return str(path)


@pytest.mark.parametrize(("where", "names"), [
    ("node", ("a\x1b", "t")), ("node", ("", "t\u202e")), ("model", ("a", "t", "g\n")),
])  # fmt: skip
def test_names_of_a_model(
    tmp_path: Path, capsys: Output, where: str, names: tuple[str, ...]
) -> None:
    """A name that a bundle may not hold is refused when the model is compiled, in four parts that
    name it."""
    path = model_of(tmp_path / "m.onnx", *names)
    assert main(["compile", path, "-o", str(tmp_path / "m.ingot"), "-q"]) == 1
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert lines[0] == "error: a name in the model holds a control character"
    assert lines[1].startswith(f"  where: {where} ")
    assert lines[3] == "  do: rename it and export again"
    assert_harmless(printed.err)
    assert not (tmp_path / "m.ingot").exists()


def test_names_that_stay(tmp_path: Path) -> None:
    """Any other name is kept as it is, and so is a model whose inner tensors, which no bundle
    names, are called anything."""
    for number, name in enumerate(KEPT):
        path = model_of(tmp_path / f"{number}.onnx", name, "\x1b[2J", name, name)
        bundle = tmp_path / f"{number}.ingot"
        ingot.compile(path).save(bundle)
        session = ingot_runtime.load(bundle)
        assert session.inputs[0].shape == (name, 4)
        assert (session.run({"x": np.ones((2, 4), np.float32)})["y"] == 1).all()


def test_forged_outputs_of_a_run(bundle: Path, tmp_path: Path) -> None:
    """A name in an archive of inputs is shown without harm, too."""
    path = tmp_path / "x.npz"
    with path.open("wb") as file:
        write_npz(file, {EVIL: np.zeros((4, WIDTH), np.float32)})
    session = ingot_runtime.load(bundle)
    with pytest.raises(ingot_runtime.InputError) as caught:
        session.run(read_npz(os.fspath(path)))
    assert_harmless(str(caught.value))
