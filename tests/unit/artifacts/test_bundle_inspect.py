"""Looking at bundles: description, comparison, verification of every byte."""

import json
from pathlib import Path

import pytest
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.hostile.two_devices import TARGET, two_device_contents

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import describe_bundle, opened, verify_bundle
from ingot_artifacts.inspect.diff import diff_bundles


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles") / "m.ingot"
    write_bundle(tiny_contents(targets=("x86-64-v2", "x86-64-v3")), path, tree_entry)
    return path


def test_description(bundle: Path) -> None:
    """The description is JSON and names sections, devices, variants, memory, kernels, source
    nodes."""
    described = describe_bundle(bundle)
    assert described["debug"].pop("programs")["x86-64-v2"] == {"tiny_scale": b"none"}
    assert json.loads(json.dumps(described)) == described
    assert described["devices"] == [
        {"name": "host", "kind": "host", "id": 0, "scope": "", "library": None}
    ]
    assert described["libraries"] == []
    assert described["inputs"] == [{"name": "x", "dtype": "f32", "shape": [4, 8]}]
    assert [variant["target"] for variant in described["variants"]] == ["x86-64-v2", "x86-64-v3"]
    assert described["kernels"] == {"x86-64-v2": ["tiny_scale"], "x86-64-v3": ["tiny_scale"]}
    assert described["memory"]["x86-64-v2"]["workspace_bytes"] == [128]
    assert described["debug"]["launches"]["x86-64-v2"][1]["nodes"] == [["/b", "Mul"]]
    assert described["lock"] == {"toolchain": "none"}
    kinds = [section["kind"] for section in described["sections"]]
    assert kinds == [
        "manifest",
        "plan",
        "tree",
        "lock",
        "program",
        "program",
        "debug",
        "code",
        "code",
        "weights",
    ]


def test_difference(bundle: Path, tmp_path: Path) -> None:
    """Equal bundles have no difference; otherwise sections come first, then entries, then
    kernels."""
    write_bundle(
        tiny_contents(targets=("x86-64-v2", "x86-64-v3")), tmp_path / "same.ingot", tree_entry
    )
    assert diff_bundles(bundle, tmp_path / "same.ingot") == []
    write_bundle(
        tiny_contents(seed=1, targets=("x86-64-v2", "x86-64-v3")),
        tmp_path / "weights.ingot",
        tree_entry,
    )
    lines = diff_bundles(bundle, tmp_path / "weights.ingot")
    assert [line.split(":")[0] for line in lines] == ["section tree 0", "section weights 0"]
    write_bundle(tiny_contents(names=("a", "y")), tmp_path / "other.ingot", tree_entry)
    lines = diff_bundles(bundle, tmp_path / "other.ingot")
    assert "section code 1: only in the first" in lines
    assert lines[-1] == "kernel x86-64-v3/tiny_scale: only in the first"
    assert "input x: only in the first" in lines
    assert "input a: only in the second" in lines


def test_verification_covers_every_byte(bundle: Path, tmp_path: Path) -> None:
    """`verify_bundle` finds a flipped bit in every section, also in those that no run here
    reads."""
    assert verify_bundle(bundle, tree_entry) == 10
    data = bundle.read_bytes()
    with opened(bundle) as source:
        places = [row.offset + row.size_bytes // 3 for row in source.sections]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 4
        (tmp_path / "m.ingot").write_bytes(changed)
        with pytest.raises(ingot_runtime.BundleError):
            verify_bundle(tmp_path / "m.ingot", tree_entry)


def test_several_devices(tmp_path: Path) -> None:
    """Each device with its launches, pool, code and imports; each copy with its ends, its place and
    its bytes."""
    write_bundle(two_device_contents(), tmp_path / "two.ingot", tree_entry)
    use = describe_bundle(tmp_path / "two.ingot")["device_use"][TARGET]
    host, acc = use["devices"]
    assert (host["name"], host["library"], host["imports"]) == ("host", None, [])
    assert (acc["library"], acc["launch_count"], acc["imports"]) == (0, 2, ["launch", "copy"])
    assert (host["launch_count"], acc["pool_bytes"] > 0) == (1, True)
    there, back = ("host", acc["name"]), (acc["name"], "host")
    assert [(copy["source"], copy["destination"]) for copy in use["copies"]] == [there, back] * 2
    assert [copy["before_launch"] for copy in use["copies"]] == [0, 1, 2, 3]
    assert {copy["size_bytes"] for copy in use["copies"]} == {None}  # products of registers
