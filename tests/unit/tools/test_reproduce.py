"""``ingot reproduce``: the same source gives the same bytes; after one change, the change is
named."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from onnx import helper
from tests.harness.reproduce_harness import (
    Built,
    command,
    copy_of_compiler,
    copy_of_zig,
    external,
    flip_weight,
    forge,
    network,
    replace_text,
    share,
    write_project,
)
from tests.json_schemas import checked
from tests.unit.runtime.test_signatures import Owner, sign

from ingot_build_rules.tools.cli.main import main

ROOT = Path(__file__).parents[3]
Output = pytest.CaptureFixture[str]


def build(built: Built) -> Built:
    """Build a project by the command, with its lock file."""
    assert main(["build", "-C", str(built.folder), "-q", "-j1", "--cache", str(built.cache)]) == 0
    return built


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The project of all tests here; they copy it."""
    folder = tmp_path_factory.mktemp("built")
    write_project(folder / "project")
    return build(Built(folder / "project", folder / "cache"))


def report(capsys: Output, arguments: list[str], code: int) -> dict[str, Any]:
    """Run the command, which ends with ``code``; its JSON, with what it printed to standard
    error."""
    capsys.readouterr()
    assert main([*arguments, "--json"]) == code
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    return {**checked("reproduce", output.out), "err": output.err}


def blamed(capsys: Output, built: Built, *more: str) -> dict[str, Any]:
    """What the first blame of a bundle that differs says, with the place."""
    found = report(capsys, built.arguments(*more), 4)
    assert not found["equal"]
    assert found["digest"] != found["present_digest"]
    assert "the bundle that was made again is another one" in found["err"]
    return {**found, **found["blame"][0]}


@pytest.mark.broad
def test_the_same_source_gives_the_same_bytes(built: Built, tmp_path: Path, capsys: Output) -> None:
    """In another folder, with and without the lock file; from the model's file alone, of a bundle
    that was signed."""
    copy = built.copy(tmp_path / "b")
    digest = report(capsys, copy.arguments(), 0)["digest"]
    found = report(capsys, copy.without_lock().arguments(), 0)
    assert found["equal"]
    assert (found["digest"], found["model"]) == (digest, "models/net.onnx")
    sign(copy.bundle, Owner(tmp_path, "alice", 1))
    capsys.readouterr()
    arguments = [
        "reproduce",
        str(copy.bundle),
        "--source",
        str(copy.folder / "models" / "net.onnx"),
        "-q",
        "-j1",
    ]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith(f"reproduced: {digest}\n  from net.onnx in ")


def test_without_a_lock_file_the_model_is_found_by_content(
    built: Built, tmp_path: Path, capsys: Output
) -> None:
    """Other models and broken files in the folder do not matter, nor what the right one is
    called."""
    copy = built.copy(tmp_path / "c").without_lock()
    (copy.folder / "ingot.toml").unlink()
    models = copy.folder / "models"
    (models / "net.onnx").rename(models / "z.onnx")
    (models / "net.onnx").write_bytes(b"no model")
    (models / "a.onnx").write_bytes((models / "z.onnx").read_bytes())
    (models / "a.onnx").rename(models / "net.onnx")
    copy.edit_model(lambda model: flip_weight(model, "w1"))
    (models / "broken.onnx").write_bytes(b"\x08\x09")
    assert report(capsys, copy.arguments(), 0)["model"] == "models/z.onnx"


@pytest.mark.broad
def test_a_bundle_over_two_devices(tmp_path: Path, capsys: Output) -> None:
    """Devices and placement are in its record: made again it has the same bytes; a weight that a
    device alone reads is named."""
    model, bundle = network(), tmp_path / "two.ingot"
    (tmp_path / "two.onnx").write_bytes(model.SerializeToString())
    options = [
        "--device",
        "acc=null",
        "--device",
        "other=null:1",
        "--place",
        "/m*=acc",
        "--place",
        "/layer_norm=other",
    ]
    options += [
        "--target",
        "x86-64-v2",
        "--target",
        "x86-64-v3",
        "--cache",
        str(tmp_path / "cache"),
        "-q",
        "-j1",
    ]
    assert main(["compile", str(tmp_path / "two.onnx"), "-o", str(bundle), *options]) == 0
    arguments = [
        "reproduce",
        str(bundle),
        "--source",
        str(tmp_path / "two.onnx"),
        "-q",
        "-j1",
        "--json",
    ]
    assert report(capsys, arguments, 0)["equal"]
    flip_weight(model, "w1")
    (tmp_path / "two.onnx").write_bytes(model.SerializeToString())
    found = report(capsys, arguments, 4)
    assert (found["blame"][0]["name"], found["section"]) == ("weight 5 'w1'", "weights 1")


def test_a_weight(built: Built, tmp_path: Path, capsys: Output) -> None:
    """One byte of one weight: its name, number and both digests; with the lock file its source
    file, too."""
    copy = built.copy(tmp_path / "w")
    copy.edit_model(lambda model: flip_weight(model, "w1"))
    found = blamed(capsys, copy)
    assert (found["kind"], found["name"], found["section"]) == (
        "weight",
        "weight 5 'w1'",
        "weights 0",
    )
    assert len(found["blame"]) == 1
    assert found["recorded"][:16] in found["err"]
    assert found["present"][:16] in found["err"]
    assert found["notes"][0].startswith("source models/net.onnx: recorded ")
    again = blamed(capsys, copy.without_lock())
    assert (again["name"], again["recorded"]) == (found["name"], found["recorded"])


@pytest.mark.broad
def test_a_weight_that_was_equal_to_another(built: Built, tmp_path: Path, capsys: Output) -> None:
    """Equal tensors are one constant: one that becomes different gives the others new numbers, and
    is named all the same."""
    copy = built.copy(tmp_path / "s")
    copy.edit_model(lambda model: share(model, "shift", "mean"))
    build(copy)
    copy.edit_model(lambda model: flip_weight(model, "mean"))
    found = blamed(capsys, copy)
    assert [(item["kind"], item["name"]) for item in found["blame"]] == [
        ("weight", "weight 3 'mean'")
    ]
    digest = found["present_digest"]
    build(copy)
    copy.edit_model(lambda model: share(model, "shift", "mean"))
    found = blamed(capsys, copy)
    assert found["digest"] == digest
    assert [item["name"] for item in found["blame"]] == ["weight 3 of the recorded ones"]


@pytest.mark.broad
def test_external_data(tmp_path: Path, capsys: Output) -> None:
    """A byte of a file beside the model: the weight, and that file."""
    write_project(tmp_path / "e")
    copy = Built(tmp_path / "e", tmp_path / "cache")
    copy.edit_model(lambda model: external(model, copy.folder, "w0"))
    build(copy)
    data = copy.folder / "models" / "weights.bin"
    content = bytearray(data.read_bytes())
    content[100] ^= 1
    data.write_bytes(content)
    found = blamed(capsys, copy)
    assert found["name"] == "weight 0 'w0'"
    assert [note.split(":")[0] for note in found["notes"]] == ["source models/weights.bin"]


@pytest.mark.broad
def test_an_attribute(built: Built, tmp_path: Path, capsys: Output) -> None:
    """Another attribute: the kernel and node that differ, the old value and the new one; with and
    without the old graph."""
    copy = built.copy(tmp_path / "a")
    copy.edit_model(
        lambda model: (
            model.graph.node[6].attribute[0].CopyFrom(helper.make_attribute("epsilon", 2e-5))
        )
    )
    for more in ((), ("--cache", str(tmp_path / "no cache"))):
        found = blamed(capsys, copy, *more)
        assert (found["kind"], found["name"]) == ("model", "graph of models/net.onnx")
        assert found["kernel"]["nodes"] == [["/layer_norm", "LayerNormalization"]]
        assert "e-06" in found["detail"].split("became")[0]
        assert "e-05" in found["detail"].split("became")[1]


def test_a_name(built: Built, tmp_path: Path, capsys: Output) -> None:
    """A renamed node changes no code: the name is what differs."""
    copy = built.copy(tmp_path / "n")
    copy.edit_model(lambda model: setattr(model.graph.node[2], "name", "/other"))
    found = blamed(capsys, copy)
    assert (found["kind"], found["recorded"], found["present"]) == ("names", "/relu", "/other")
    assert (found["section"], found["kernel"]) == ("debug 0", None)


@pytest.mark.broad
def test_an_option_of_the_project(built: Built, tmp_path: Path, capsys: Output) -> None:
    """The recorded option makes the bundle, the project asks for another one: both are named."""
    copy = built.copy(tmp_path / "o")
    copy.edit_project("2x3x8x8", "3x3x8x8")
    found = blamed(capsys, copy)
    assert (found["kind"], found["name"]) == ("option", "option shapes")
    assert (found["recorded"], found["present"]) == ('[{"x": "2x3x8x8"}]', '[{"x": "3x3x8x8"}]')
    assert found["section"] == "code 0"
    copy.edit_project('"x86-64-v2", "aarch64"', '"native"')
    assert [item["name"] for item in blamed(capsys, copy)["blame"]] == ["option shapes"]


@pytest.mark.broad
def test_a_forged_option(built: Built, tmp_path: Path, capsys: Output) -> None:
    """A bundle that records another option than it was made with: the lock file says so, or its own
    contents do."""
    copy = built.copy(tmp_path / "f")
    forge(copy.bundle, lambda lock: lock["options"].update(planner="greedy_by_size"))
    found = blamed(capsys, copy)
    assert (found["name"], found["recorded"], found["present"]) == (
        "option planner",
        '"hill_climb"',
        '"greedy_by_size"',
    )
    assert any("net.lock.json is of another bundle" in note for note in found["notes"])
    other = built.copy(tmp_path / "g").without_lock()
    forge(other.bundle, lambda lock: lock["options"].update(targets=["x86-64-v3", "aarch64"]))
    found = blamed(capsys, other)
    assert (found["name"], found["recorded"]) == ("option targets", "['aarch64', 'x86-64-v3']")


def test_another_lock_file(built: Built, tmp_path: Path, capsys: Output) -> None:
    """A bundle that its source makes is reproduced whatever its lock file says; what is wrong there
    is told."""
    copy = built.copy(tmp_path / "l")
    lock = copy.folder / "dist" / "net.lock.json"
    replace_text(lock, '"hill_climb"', '"hill_climc"')
    (note,) = report(capsys, copy.arguments(), 0)["notes"]
    assert note.startswith(
        'net.lock.json has another option planner: recorded "hill_climc", present "hill_climb"'
    )
    replace_text(lock, '"hill_climc"', '"hill_climb"')
    copy.edit_model(lambda model: setattr(model, "doc_string", "other"))
    (note,) = report(capsys, copy.arguments(), 0)["notes"]
    assert note.startswith("source models/net.onnx: recorded ")


def test_a_recorded_weight_of_a_forged_bundle(built: Built, tmp_path: Path, capsys: Output) -> None:
    """The lock inside the bundle is compared, too."""
    copy = built.copy(tmp_path / "h").without_lock()
    forge(copy.bundle, lambda lock: lock["weights"].__setitem__(1, "0" * 64))
    assert blamed(capsys, copy)["name"] == "weight 1 'scale'"


@pytest.mark.broad
def test_a_compiler_pass(built: Built, tmp_path: Path) -> None:
    """One byte of a pass: its rule, by the stages that agree before it; with the lock file the
    source file, too."""
    package = copy_of_compiler(tmp_path / "code")
    replace_text(package / "passes" / "pipeline.py", "_ROUNDS_MAX = 6", "_ROUNDS_MAX = 0")
    code, found, error = command(tmp_path / "code", built.arguments())
    assert code == 4, error
    (blame,) = found["blame"]
    assert (blame["kind"], blame["name"]) == (
        "code",
        "optimize gives another result from the same graph",
    )
    assert "became" in blame["detail"]
    assert "ingot_compiler/passes/pipeline.py" in blame["detail"].split("changed since: ")[1]
    assert found["kernel"]["nodes"]


@pytest.mark.slow
def test_ten_bundles(tmp_path: Path, capsys: Output) -> None:
    """What exporters write, with fixed and open shapes, for one target and for two, with and
    without lock files."""
    (tmp_path / "models").mkdir()
    names = (
        "bart",
        "bert",
        "distilbert",
        "gpt2",
        "lstm",
        "mobilenet_v2",
        "swin",
        "resnet",
        "t5",
        "vit",
    )
    project = ""
    for number, name in enumerate(names):
        folder = ROOT / "tests" / "models" / name
        source = (
            folder / "dynamic.onnx"
            if (folder / "dynamic.onnx").exists()
            else folder / "static.onnx"
        )
        shutil.copy(source, tmp_path / "models" / f"{name}.onnx")
        targets = ["x86-64-v3", "aarch64"] if number % 3 else ["native"]
        project += f'[model.{name}]\nsource = "models/{name}.onnx"\n[bundle.{name}]\nmodel = "{name}"\ntargets = {targets}\n'
    (tmp_path / "ingot.toml").write_text(project)
    build(Built(tmp_path, tmp_path / "cache"))
    for number, name in enumerate(names):
        bundle, lock = (
            tmp_path / "dist" / f"{name}{ending}" for ending in (".ingot", ".lock.json")
        )
        if number % 2:
            lock.unlink()
        found = report(
            capsys, ["reproduce", str(bundle), "--source", str(tmp_path), "-q", "-j1", "--json"], 0
        )
        assert (found["equal"], found["model"], found["notes"]) == (True, f"models/{name}.onnx", [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "rule"),
    [
        ("frontend/ops/normalizations.py", "shift, axis=axis, ", "shift, axis=axis * 1, ", ""),
        ("frontend/ops/normalizations.py", "shift, axis=axis, epsilon=epsilon", "shift, axis=axis, epsilon=-epsilon", "import_model or infer_types"),
        ("placement/place.py", 'PlaceReason("input")', 'PlaceReason("default")', "place"),
        ("lowering/kinds/program.py", "UNIT_WORK = 16384", "UNIT_WORK = 16", "lower"),
        ("backends/host/main/main.py", "MAIN_LEVEL: Level = 0", "MAIN_LEVEL: Level = 2", "codegen_main"),
        ("codegen/emit/kernel.py", 'CODEGEN_VERSION = "1"', 'CODEGEN_VERSION = "2"', "codegen"),
        ("memory/memory_plan.py", "ALIGNMENT_BYTES = 64", "ALIGNMENT_BYTES = 4096", "plan_memory"),
        ("lowering/constants/constant_arithmetic.py", "_by(np.multiply)", "_by(np.divide)", "pack_constant"),
        ("backends/host/link.py", ' "--gc-sections",', "", "codegen_support or link"),
    ],
)  # fmt: skip
def test_code_of_other_rules(
    built: Built, tmp_path: Path, file: str, old: str, new: str, rule: str
) -> None:
    """The rule whose result differs is named, and the file that has changed."""
    package = copy_of_compiler(tmp_path / "code")
    replace_text(package / file, old, new)
    code, found, error = command(tmp_path / "code", built.arguments())
    if not rule:
        assert (code, found["equal"]) == (0, True), "other code that makes the same is as good"
        return
    assert code == 4, error
    assert len(found["blame"]) == 1
    assert found["blame"][0]["name"].startswith(f"{rule} gives another result")
    assert f"ingot_compiler/{file}" in found["blame"][0]["detail"].split("changed since: ")[1]


@pytest.mark.broad
def test_another_file_of_the_same_linker(built: Built, tmp_path: Path) -> None:
    """Each kind of machine has another program of one version: what makes the same code makes the
    same bundle, and the same lock file."""
    copy_of_zig(tmp_path / "tools")
    code, found, error = command(tmp_path / "tools", built.arguments())
    assert (code, found.get("equal")) == (0, True), error
    copy = built.copy(tmp_path / "again")
    lock = copy.without_lock().bundle.with_suffix(".lock.json")
    again = ["build", "-C", str(copy.folder), "-j1", "--cache", str(tmp_path / "empty"), "-q"]
    code, _, error = command(tmp_path / "tools", again)
    assert code == 0, error
    assert lock.read_bytes() == built.bundle.with_suffix(".lock.json").read_bytes()
    shutil.rmtree(tmp_path / "tools")


def test_what_cannot_be_reproduced(built: Built, tmp_path: Path, capsys: Output) -> None:
    """No folder, no model, a damaged bundle, one that does not tell its options, wrong lock files:
    four parts each."""
    copy = built.copy(tmp_path / "x")
    (tmp_path / "empty").mkdir()
    bundle, source, cache = (
        str(copy.bundle),
        str(copy.folder),
        ["--cached", "--cache", str(copy.cache)],
    )
    for arguments, code, words in (
        ([bundle, "--source", str(tmp_path / "none")], 1, "no such source folder"),
        (
            [bundle, "--source", str(tmp_path / "empty")],
            1,
            "no model that the bundle could be made from",
        ),
        (
            [bundle, "--source", source, "--lock", str(tmp_path / "none")],
            1,
            "cannot read the lock file",
        ),
        ([bundle, "--source", source, "--lock", bundle], 1, "not a lock file"),
        ([bundle], 1, "--source"),
        ([source, "--source", source], 1, "not a regular file"),
    ):
        assert words in report(capsys, ["reproduce", *arguments, *cache], code)["err"]
    forge(copy.bundle, lambda lock: lock["options"].pop("planner"))
    assert "no key 'planner'" in report(capsys, ["reproduce", bundle, "--source", source], 4)["err"]
    content = bytearray(copy.bundle.read_bytes())
    content[-1] ^= 1
    copy.bundle.write_bytes(content)
    assert (
        "weights are damaged" in report(capsys, ["reproduce", bundle, "--source", source], 4)["err"]
    )
