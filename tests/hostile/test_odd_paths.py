"""Every verb, with paths that nobody chooses: the bytes of a path survive everywhere, and what
cannot be done is refused in four parts; nothing is a bug in Ingot."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.harness.build_harness import TARGET, chain, make_cache

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.roots import Roots
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.cli.shell.verbs import VERBS
from ingot_runtime import command

PIECES = [
    b"\xff\xfe", b"\xed\xa0\x80", b"\n", b"\r\t", b"'", b'"', b"-", b"--json", b" ", b"\\", b"$(x)", b"`", b";", b"*", b"%s", b"{0}", b"#", b":",
    b"=", b",", "\U0001f600".encode(), "\u202e".encode(), b"\x1b[2J", b"\x7f", b"~", b"x" * 120, b".", b"a.b",
]  # fmt: skip
PROJECT = """
[defaults]
targets = [{target!r}]
[model.a]
source = "a.onnx"
[bundle.a]
model = "a"
"""


def odd_name(seed: int) -> str:
    """Return a name of a few odd pieces; the first ones have one each."""
    generator = random.Random(seed)
    pieces = [PIECES[seed]] if seed < len(PIECES) else generator.choices(PIECES, k=3)
    name = b"".join(pieces)
    return os.fsdecode(name if name.strip(b".") else name + b"_")


def commands(name: str) -> dict[str, list[list[str]]]:
    """Return the calls of each verb, in a folder with a model, its inputs and a project; names of
    files begin with ``./`` or with the odd name itself."""
    odd, bundle, dist = f"./{name}", f"./{name}.ingot", "dist/a.ingot"
    return {
        "compile": [
            ["a.onnx", "-o", bundle, "--target", TARGET, "--depfile", f"{odd}.d"],
            [f"{odd}.onnx", "--target", TARGET, "--to", "fused", "-o", f"{odd}.txt"],
            [f"{odd}.none"], [f"--output={name}/none", "a.onnx"],
        ],
        "build": [
            ["--trace", f"{odd}.json", "--events", f"{odd}.events", "--depfile", f"{odd}.d"],
            [], ["--json"], [name], ["-C", odd], ["--cache", f"{odd}.cache", "--rehash"], ["--explain", "-n"],
        ],
        "why": [["-C", "."], ["a", "--json"], [name]],
        "log": [["a"], ["a", "--json"], [name]],
        "query": [[], ["--actions"], [name]],
        "run": [[bundle, "--inputs", "x.npz", "--outputs", f"{odd}.npz"], [bundle, "--inputs", odd], [name]],
        "inspect": [[bundle], [bundle, "--json"], [name]],
        "verify": [[bundle], [bundle, "--json"], [name]],
        "diff": [[bundle, dist], [bundle, name, "--json"]],
        "bench": [[bundle, "--seconds", "0.01", "--anyway"], [odd]],
        "report": [[bundle, "-o", f"{odd}.html"], [odd]],
        "export": [[bundle, "--c-source", "-o", odd], [name, "--library", "-o", odd]],
        "reproduce": [[bundle, "--source", odd], [odd, "--lock", odd]],
        "sign": [[bundle, "--key", odd]],
        "thin": [[bundle, "--target", TARGET, "-o", f"{odd}.thin"]],
        "share": [[bundle, dist, "-o", f"{odd}.share"]],
        "delta": [[bundle, dist, "-o", f"{odd}.delta"]],
        "sbom": [[bundle], [odd]],
        "quantize": [["a.onnx", "-o", f"{odd}.q.onnx"], [odd]],
        "why-device": [[bundle, name], [odd, "x"]],
        "tune": [[odd], [f"{odd}.none", "-o", odd]],
        "cache": [
            ["stat", "--cache", f"{odd}.cache"], ["verify", "--cache", f"{odd}.cache", "--json"],
            ["gc", "--max", "0", "--cache", f"{odd}.cache"], ["why", name],
        ],
        "init": [[odd], [f"{odd}.folder"]],
        "identify": [[name]], "man": [[name]], "completion": [[name]],
        "watch": [["-C", odd]],
        "clean": [["-n"], [name], []],
    }  # fmt: skip


def test_every_verb_is_tried() -> None:
    """The table has all of them."""
    assert set(commands("x")) == {name for name, _ in VERBS}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Make a project in a folder of that name, and go there."""

    def make(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        model = chain([8, 16]).SerializeToString()
        for file in ("a.onnx", f"{name}.onnx"):
            (folder / file).write_bytes(model)
        (folder / f"{name}.folder").mkdir()
        (folder / f"{name}.folder" / f"{name}.onnx").write_bytes(model)
        (folder / "ingot.toml").write_text(PROJECT.format(target=TARGET))
        np.savez(folder / "x.npz", x=np.ones((2, 8), np.float32))
        monkeypatch.chdir(folder)
        monkeypatch.setenv("INGOT_CACHE", str(make_cache(tmp_path / f"cache{name}")))
        return folder

    return make


@pytest.mark.sweep(56)
@pytest.mark.parametrize("seed", range(len(PIECES) + 10))
def test_no_path_is_a_bug(
    seed: int, place: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """Each verb does its work or refuses in four parts, whatever the folder, the bundle, the output
    and its words are called; what is built is there."""
    name = odd_name(seed)
    folder = place(name)
    for verb, calls in commands(name).items():
        for words in calls:
            code = main([verb, *words])
            printed = capfd.readouterr()
            told = (verb, words, code, printed.err)
            assert code in range(6), told
            assert "a bug in Ingot" not in printed.err + printed.out, told
            assert "Traceback" not in printed.err, told
            if code and "--json" not in words and printed.err.startswith("error: "):
                assert "\n  do: " in printed.err, told
        if verb == "build":
            assert (folder / "dist" / "a.ingot").exists()
            assert main(["build", "--expect-cached"]) == 0
    assert command.main(["run", f"./{name}.ingot", "--inputs", "x.npz"]) == 0
    assert command.main(["run", name]) == 1
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("name", ["", "a/b", *map(odd_name, range(len(PIECES)))])
def test_roots_keep_the_bytes_of_a_path(tmp_path: Path, name: str) -> None:
    """A root is found, kept and removed by any name; two names that differ in a byte are two."""
    cache = Cache(str(tmp_path))
    cache.roots.add(name, [bytes(32)])
    cache.roots.add(name + os.fsdecode(b"\xfe"), [])
    roots = Roots(cache.folder).roots()
    assert {root.name for root in roots} == {name, name + os.fsdecode(b"\xfe")}
    assert cache.roots.damaged() == ()
    assert cache.roots.remove(name)


@pytest.mark.parametrize(
    "odd",
    [
        "\u00b2\u00b2\u00b2\u00b2\u00b2\u00b2-x.ingot",
        "\u0661" * 6 + "-x.ingot",
        os.fsdecode(b"\xff-x.ingot"),
        "-.ingot",
        "\n",
    ],
)
@pytest.mark.parametrize("is_link", [False, True])
def test_an_installation_with_odd_names(
    tmp_path: Path, odd: str, is_link: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Files of any name in the folder, also as what is current, are nobody's numbers."""
    model = tmp_path / "a.onnx"
    model.write_bytes(chain([8, 16]).SerializeToString())
    bundle = str(tmp_path / "a.ingot")
    assert main(["compile", str(model), "-o", bundle, "--target", TARGET]) == 0
    folder = tmp_path / "installed"
    folder.mkdir()
    (folder / odd).write_bytes(b"")
    if is_link:
        (folder / "current.ingot").symlink_to(odd)
    for words in (
        ["install", bundle, "--to", str(folder)],
        ["install", bundle, "--to", str(folder)],
        ["rollback", str(folder)],
    ):
        assert command.main(words) == 0, capfd.readouterr().err
    assert "Traceback" not in capfd.readouterr().err
    assert os.readlink(folder / "current.ingot").startswith("000001-")
