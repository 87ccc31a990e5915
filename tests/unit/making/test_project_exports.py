"""``[export.NAME]``: what a bundle is exported as is written when the bundle is built, and left
alone while nothing has changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_type_hints

import pytest
from onnx import ModelProto, helper
from tests.hostile.model_builder import model, value
from tests.unit.runtime.test_signatures import Owner, sign

import ingot_runtime
from ingot_build_rules.making.options.export_rows import EXPORT_ROWS, FIELD_ROWS, ExportKeywords
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.export.export_kinds import WRITERS
from ingot_runtime.command import main as runtime_main

PROJECT = """\
[model.m]
source = "m.onnx"
[bundle.b]
model = "m"
targets = ["x86-64-v3"]
pools = ["fast=4kB", "slow"]
[export.lib]
bundle = "b"
kind = "library"
output = "dist/lib"
shared = true
name = "net"
pools = ["fast=internal"]
tensors-in = "workspace"
[export.archive]
bundle = "b"
kind = "module-archive"
output = "dist/net.tar"
"""


def chain(op: str) -> ModelProto:
    """Two ops in a row, the first of which is ``op``."""
    nodes = [
        helper.make_node(op, ["x"], ["h"], "/first"),
        helper.make_node("Softmax", ["h"], ["y"], "/second"),
    ]
    return model(nodes, [value("x", [2, 8])], [value("y", [2, 8])])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.onnx").write_bytes(chain("Relu").SerializeToString())
    (tmp_path / "ingot.toml").write_text(PROJECT)
    return tmp_path


def build(folder: Path, *options: str, code: int = 0) -> None:
    assert main(["build", "-C", str(folder), *options]) == code


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and time of each exported file."""
    files = [*(folder / "dist/lib").iterdir(), folder / "dist/net.tar"]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_every_kind_is_written() -> None:
    """Each row has its writer, and each field a kind that takes it; a project's keywords are the
    fields' keys."""
    assert list(EXPORT_ROWS) == list(WRITERS)
    assert {kind for row in FIELD_ROWS.values() for kind in row.kinds} <= set(EXPORT_ROWS)
    fields = {
        "shape" if field == "shapes" else field for field, row in FIELD_ROWS.items() if row.key
    }
    assert set(get_type_hints(ExportKeywords)) == fields


@pytest.mark.broad
def test_exports_are_built_and_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """First they are written; then nothing has changed; a file that is gone or another one is
    written again, with the same bytes."""
    build(folder)
    assert "built export.lib" in capsys.readouterr().out
    first = contents(folder)
    assert sorted(first) == ["libnet.so", "net.h", "net.tar"]
    assert "_map_inputs" in first["net.h"][0].decode()
    build(folder)
    assert "built" not in capsys.readouterr().out
    assert contents(folder) == first
    (folder / "dist/lib/net.h").unlink()
    (folder / "dist/net.tar").write_bytes(b"another")
    build(folder)
    again = contents(folder)
    assert {name: item[0] for name, item in again.items()} == {
        name: item[0] for name, item in first.items()
    }
    assert again["libnet.so"] == first["libnet.so"]
    assert [name for name in os.listdir(folder / "dist/lib") if name.startswith(".")] == []


@pytest.mark.broad
def test_another_model_is_exported_anew(folder: Path) -> None:
    """An export follows its bundle; a dry run says so and writes nothing."""
    build(folder)
    first = contents(folder)
    (folder / "m.onnx").write_bytes(chain("Neg").SerializeToString())
    build(folder, "--dry-run")
    assert contents(folder) == first
    build(folder)
    after = contents(folder)
    assert after["libnet.so"][0] != first["libnet.so"][0]


def test_a_failed_export_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its name, while the bundle is built and the other exports too."""
    text = PROJECT.replace('pools = ["fast=internal"]', 'pools = ["quick=internal"]')
    (folder / "ingot.toml").write_text(text)
    build(folder, code=1)
    assert "no pool 'quick'" in capsys.readouterr().err
    assert (folder / "dist/b.ingot").exists()
    assert (folder / "dist/net.tar").exists()
    assert not list((folder / "dist/lib").iterdir())
    (folder / "ingot.toml").write_text(
        PROJECT.replace('"module-archive"', '"executable"\nshared = true')
    )
    build(folder, code=1)
    assert "key 'shared' does not fit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "library"', 'kind = "libary"', "libary"),
        ('bundle = "b"\nkind = "library"', 'bundle = "c"\nkind = "library"', "unknown bundle 'c'"),
        ('"dist/net.tar"', '"dist/b.ingot"', "two tables have the output 'dist/b.ingot'"),
        ('"dist/net.tar"', '"dist/{stem}.tar"', "nothing to put in the place of {stem}"),
        ('"dist/net.tar"', '"../net.tar"', "would write outside of its folder"),
    ],
)  # fmt: skip
def test_wrong_exports(
    folder: Path, old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is refused before anything is built."""
    assert old in PROJECT
    (folder / "ingot.toml").write_text(PROJECT.replace(old, new))
    build(folder, code=1)
    assert said in capsys.readouterr().err
    assert not (folder / "dist").exists()


def test_one_export_for_each_of_many(tmp_path: Path) -> None:
    """A bundle of a glob has an export for each file."""
    for name, op in (("one", "Relu"), ("two", "Neg")):
        (tmp_path / f"{name}.onnx").write_bytes(chain(op).SerializeToString())
    (tmp_path / "ingot.toml").write_text(
        '[model.m]\nsource = "*.onnx"\n[bundle.b]\nmodel = "m"\ntargets = ["x86-64-v3"]\noutput = "dist/{stem}.ingot"\n'
        '[export.lib]\nbundle = "b"\nkind = "library"\noutput = "dist/{stem}"\n'
    )
    build(tmp_path)
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("dist/*/*"))
    assert found == ["dist/one/libone.a", "dist/one/one.h", "dist/two/libtwo.a", "dist/two/two.h"]


SOURCES = """\
[model.m]
source = "m.onnx"
shape = { x = "2x8" }
[bundle.b]
model = "m"
targets = ["x86-64-v3"]
[export.c]
bundle = "b"
kind = "c-source"
output = "dist/c"
name = "net"
target = "c-128"
weights-apart = true
[export.page]
bundle = "b"
kind = "wasm"
output = "dist/web"
"""


@pytest.mark.broad
def test_models_of_bundles_become_source(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The files are those of the command for the same model and shape; what has not changed is left
    alone, and another model is written anew."""
    nodes = [helper.make_node("Relu", ["x"], ["y"], "/first")]
    made = model(nodes, [value("x", ["n", 8])], [value("y", ["n", 8])])
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    (folder / "ingot.toml").write_text(SOURCES)
    build(folder)
    alone = folder / "alone"
    for kind, output in (
        ("--c-source --target c-128 --name net --weights-apart", "dist/c"),
        ("--wasm", "dist/web"),
    ):
        words = ["export", str(folder / "m.onnx"), *kind.split(), "--shape", "x=2x8"]
        (alone / output).mkdir(parents=True)
        assert main([*words, "-o", str(alone / output)]) == 0
        names = sorted(path.name for path in (folder / output).iterdir())
        assert names == sorted(path.name for path in (alone / output).iterdir())
        for name in names:
            assert (folder / output / name).read_bytes() == (alone / output / name).read_bytes()
    capsys.readouterr()
    build(folder)
    assert "built" not in capsys.readouterr().out
    made.graph.node[0].op_type = "Neg"
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    build(folder)
    assert "built export.c" in capsys.readouterr().out
    assert (folder / "dist/c/net.c").read_bytes() != (alone / "dist/c/net.c").read_bytes()


@pytest.mark.sweep(60)
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('target = "c-128"', 'target = "c-64"', "c-64"),
        ('target = "c-128"', 'variant = "x86-64-v3"', "key 'variant' does not fit"),
        (
            'model = "m"',
            'model = "m"\ndevices = { acc = "null:0" }',
            "C source runs on one processor",
        ),
        ('model = "m"', 'model = "m"\nshape = [{ x = "1x8" }, { x = "2x8" }]', "two shapes"),
    ],
)
def test_wrong_sources(
    folder: Path, old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown form, a key of another kind, another device, two profiles: each is told."""
    nodes = [helper.make_node("Relu", ["x"], ["y"], "/first")]
    made = model(nodes, [value("x", ["n", 8])], [value("y", ["n", 8])])
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    assert old in SOURCES
    (folder / "ingot.toml").write_text(SOURCES.replace(old, new, 1).split("[export.page]")[0])
    build(folder, code=1 if "processor" not in said else 3)
    assert said in capsys.readouterr().err


RELEASE = """\
[model.m]
source = "m.onnx"
[bundle.b]
model = "m"
targets = ["x86-64-v2", "x86-64-v3"]
[export.shipped]
bundle = "b"
kind = "release"
output = "dist/shipped.ingot"
selftest = 2
sign = ["alice.pem", "bob.pem"]
expires = "2999-12-31"
number = 7
"""


def test_a_release_is_proved_and_signed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is that of ``compile --selftest`` and ``sign``, byte for byte; it is left alone
    until another key signs."""
    alice, bob = Owner(folder, "alice", 1), Owner(folder, "bob", 2)
    (folder / "ingot.toml").write_text(RELEASE)
    build(folder)
    shipped, single = folder / "dist/shipped.ingot", folder / "single.ingot"
    words = ["compile", str(folder / "m.onnx"), "-o", str(single), "--selftest", "2", "--quiet"]
    assert main([*words, "--target", "x86-64-v2", "--target", "x86-64-v3"]) == 0
    for owner in (alice, bob):
        sign(single, owner, "--expires", "2999-12-31", "--number", "7")
    assert shipped.read_bytes() == single.read_bytes()
    ingot_runtime.load(shipped, keys=[bob.raw.hex()]).close()
    assert runtime_main(["selftest", str(shipped)]) == 0
    capsys.readouterr()
    build(folder)
    assert "built" not in capsys.readouterr().out
    Owner(folder, "bob", 3)
    build(folder)
    with pytest.raises(ingot_runtime.BundleError, match="not signed by a required key"):
        ingot_runtime.load(shipped, keys=[bob.raw.hex()])
    assert shipped.read_bytes() != single.read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"bob.pem"', '"carol.pem"', "cannot read"),
        ('"bob.pem"', '"m.onnx"', "cannot read the private key"),
        ('"2999-12-31"', '"tomorrow"', "bad day"),
        ('kind = "release"', 'kind = "executable"', "key 'selftest' does not fit"),
    ],
)  # fmt: skip
def test_wrong_releases(
    folder: Path, old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is left at the place of a release that could not be made."""
    for seed, name in enumerate(("alice", "bob"), 1):
        Owner(folder, name, seed)
    (folder / "ingot.toml").write_text(RELEASE.replace(old, new))
    build(folder, code=1)
    assert said in capsys.readouterr().err
    assert not (folder / "dist/shipped.ingot").exists()
