"""``--json``: every verb's object is as ``docs/json`` says, in success and in failure; the page
shows the schemas. Verbs of projects, caches and devices are held against them where they are
tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from tests.json_page import page_text
from tests.json_schemas import checked, names, schema
from tests.tidy.source import ROOT
from tests.unit.tools.test_report_data import ROWS, WIDTH, matmul_chain

import ingot
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.cli.shell.options import JSON
from ingot_build_rules.tools.cli.shell.verbs import VERBS, read_verb

Json = Callable[..., dict[str, Any]]
_CACHE_ACTIONS = ("stat", "gc", "verify", "why")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundles for one variant and for two with a second device, a damaged one, a model, inputs."""
    made = tmp_path_factory.mktemp("json")
    (made / "m.onnx").write_bytes(matmul_chain("rows"))
    ingot.compile(matmul_chain("rows")).save(made / "a.ingot")
    second = ingot.compile(
        matmul_chain(),
        targets=["x86-64-v2", "aarch64"],
        devices={"acc": "null"},
        place={"second": "acc"},
    )
    second.save(made / "b.ingot")
    damaged = bytearray((made / "a.ingot").read_bytes())
    damaged[-1] ^= 1
    (made / "damaged.ingot").write_bytes(damaged)
    np.savez(made / "x.npz", x=np.ones((ROWS, WIDTH), np.float32))
    return made


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Json:
    """Run a verb with --json in that folder; its object, as its schema says."""
    monkeypatch.chdir(folder)

    def run_verb(line: str, code: int = 0) -> dict[str, Any]:
        verb, *rest = line.split()
        assert main([verb, *rest, "--json"]) == code
        printed = capsys.readouterr()
        found = checked(verb, printed.out)
        assert ("error" in found) == (code != 0)
        assert printed.err.startswith("error: " if code else "")
        return found

    return run_verb


@pytest.mark.sweep(24)
@pytest.mark.parametrize(
    "line",
    [
        "inspect a.ingot",
        "inspect b.ingot --fusion",
        "inspect b.ingot --variant aarch64",
        "why-device a.ingot first",
        "why-device b.ingot second",
        "run a.ingot --inputs x.npz",
        "run a.ingot --inputs x.npz --trace t.json",
        "run a.ingot --inputs x.npz --executor vm --outputs y.npz",
        "bench a.ingot --inputs x.npz --seconds 0.001 --anyway",
        "verify a.ingot b.ingot",
        "identify",
        "report b.ingot --no-run",
        "report a.ingot --inputs x.npz --seconds 0.001 --against b.ingot",
        "compile m.onnx --to graph",
        "compile m.onnx --to graph -o graph.txt",
        "compile m.onnx -o c.ingot",
    ],
)
def test_objects(run: Json, line: str) -> None:
    """What a verb prints is what its schema says."""
    run(line)


def test_one_kernel(run: Json) -> None:
    """The assembly of a kernel, with its target; without --json it is the text alone."""
    kernels = run("inspect a.ingot")["kernels"]
    ((target, symbols),) = kernels.items()
    found = run(f"inspect a.ingot --asm {symbols[0]}")
    assert (found["target"], found["kernel"]) == (target, symbols[0])
    assert f".globl  {symbols[0]}" in found["assembly"].expandtabs()


def test_text_of_a_stage(run: Json, folder: Path) -> None:
    """The text is in the object, unless there is a file for it."""
    shown = run("compile m.onnx --to graph")
    written = run("compile m.onnx --to graph -o graph.txt")
    assert (shown["stage"], shown["output"], written["text"]) == ("graph", None, None)
    assert shown["text"].rstrip("\n") == (folder / written["output"]).read_text().rstrip("\n")


def test_difference(run: Json) -> None:
    """Each table has what is not the same, before and after; the same bundle has no difference."""
    found = run("diff a.ingot b.ingot")
    assert not found["equal"]
    assert [found[side]["bundle"] for side in ("before", "after")] == ["a.ingot", "b.ingot"]
    tables = found["differences"]
    (change,) = tables["inputs"]
    assert change == {
        "name": "x",
        "before": {"dtype": "f32", "shape": ["rows", WIDTH]},
        "after": {"dtype": "f32", "shape": [ROWS, WIDTH]},
    }
    assert {item["name"] for item in tables["variants"] if item["before"] is None} == {
        "x86-64-v2", "aarch64",
    }  # fmt: skip
    assert {"sections", "devices", "libraries", "memory", "lock", "launches", "kernels"} <= {
        name for name, items in tables.items() if items
    }
    same = run("diff a.ingot a.ingot")
    assert same["equal"]
    assert not any(same["differences"].values())


@pytest.mark.parametrize(
    ("line", "code", "what"),
    [
        ("inspect none.ingot", 1, "cannot open 'none.ingot'"),
        ("inspect a.ingot --asm k_none", 1, "no kernel 'k_none'"),
        ("run a.ingot", 1, "input 'x' has no fixed shape"),
        ("run damaged.ingot --inputs x.npz", 4, "weights are damaged in MiB 0"),
        ("verify a.ingot damaged.ingot none.ingot", 4, "weights are damaged in MiB 0"),
        ("bench", 1, "wrong arguments"),
        ("diff a.ingot x.npz", 1, "not a bundle"),
        ("compile none.onnx -o c.ingot", 1, "no such model file"),
        ("report none.ingot", 1, "cannot open 'none.ingot'"),
    ],
)
def test_errors(run: Json, line: str, code: int, what: str) -> None:
    """A command that fails prints one object with its error, and the text for people; its exit code
    is the same."""
    found = run(line, code)
    assert (found["error"]["what"], found["error"]["exit_code"]) == (what, code)
    assert found["error"]["do"]


def test_no_verb_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    """So does one with a misspelled verb; without --json nothing is on standard output."""
    assert main(["cleam", "--json"]) == 1
    assert checked("clean", capsys.readouterr().out)["error"]["what"] == "unknown verb 'cleam'"
    assert main(["cleam"]) == 1
    assert capsys.readouterr().out == ""


def _objects(value: object) -> Iterator[dict[str, Any]]:
    """Every schema of an object inside of a schema."""
    found: Any = value
    if isinstance(value, dict):
        if found.get("type") == "object" and "properties" in found:
            yield found
        found = list(found.values())
    if isinstance(value, dict | list):
        for item in found:
            yield from _objects(item)


@pytest.mark.parametrize("name", ["common", *names()])
def test_schemas_are_closed(name: str) -> None:
    """A schema is one, and an object in it has no keys but those that are described."""
    Draft202012Validator.check_schema(schema(name))
    found = list(_objects(schema(name)))
    assert found
    assert all(item["additionalProperties"] is False for item in found)
    assert all(set(item["required"]) <= set(item["properties"]) for item in found)


def test_a_new_key_fails() -> None:
    """A key that nobody has described, or one that is missing, is refused."""
    machine = '{"version": 1, "architecture": "x86-64", "level": null, "features": [], '
    machine += '"processor": ""%s}'
    assert checked("device-identify", machine % "")
    with pytest.raises(AssertionError, match="new"):
        checked("device-identify", machine % ', "new": 1')
    with pytest.raises(AssertionError, match="version"):
        checked("device-identify", machine.replace('"version": 1, ', "") % "")


def test_every_verb_has_a_schema() -> None:
    """Each verb's object is described, and no schema is of something that is no verb."""
    told = {name for name, _ in VERBS if JSON in read_verb(name).options}
    assert {"cache", "watch"} < told
    expected = told - {"cache", "watch"}
    expected |= {f"cache-{action}" for action in _CACHE_ACTIONS}
    expected |= {"device-inspect", "device-identify", "device-selftest", "device-install"}
    expected |= {"device-rollback", "device-apply", "event", "trace", "lock"}
    assert set(names()) == expected


@pytest.mark.pages
def test_the_page_shows_the_schemas(bless: bool) -> None:
    """The tables of docs/json.md are made from the schemas."""
    path = ROOT / "docs" / "json.md"
    page = path.read_text(encoding="utf-8")
    if bless:
        path.write_text(page_text(page), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page_text(page)
