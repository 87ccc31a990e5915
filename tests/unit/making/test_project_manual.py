"""The manual and the example say what the reader of project files does."""

from __future__ import annotations

import re
from pathlib import Path

from examples.project import make_models

import ingot
from ingot_build_rules.making.project.parse import parse_project
from ingot_build_rules.making.project.schema import TABLES

ROOT = Path(__file__).parents[3]
MANUAL = (ROOT / "docs" / "project-file.md").read_text(encoding="utf-8")


def test_the_manual_has_every_key() -> None:
    """One section for each table, one row for each key, in the order of the schema; required ones
    say so."""
    sections = re.findall(
        r"^### `\[(\w+)(?:\.NAME)?\]`\n(.*?)(?=^##)", MANUAL, re.MULTILINE | re.DOTALL
    )
    rows = {
        kind: [
            (name, default == "required")
            for name, default in re.findall(
                r"^\| `([\w-]+)` \| [^|]* \| ([^|]*) \|", text, re.MULTILINE
            )
        ]
        for kind, text in sections
    }
    assert rows == {
        kind: [(key.name, key.required) for key in table.keys] for kind, table in TABLES.items()
    }


def test_examples_of_the_manual_are_right() -> None:
    """Each block of TOML is a whole project; the block of Python gives the same as the first."""
    texts = re.findall(r"^```toml\n(.*?)^```", MANUAL, re.MULTILINE | re.DOTALL)
    first, *_ = [parse_project(text, "docs/project-file.md") for text in texts]
    (code,) = re.findall(r"^```python\n(.*?)^```", MANUAL, re.MULTILINE | re.DOTALL)
    names: dict[str, ingot.Project] = {}
    exec(code, names)
    assert names["project"].freeze() == first


def test_examples_of_keys_are_right() -> None:
    """What a message offers as an example of a key is accepted for that key."""
    lines: list[str] = []
    for kind, table in TABLES.items():
        lines.append(f"[{kind}.s]" if table.named else f"[{kind}]")
        left_out = ("plugins", "target")
        lines += [f"{key.name} = {key.example}" for key in table.keys if key.name not in left_out]
    text = "\n".join(
        [*lines, '[model.a]\nsource = "b.onnx"', '[bundle.a]\nmodel = "a"\noutput = "o.ingot"']
    )
    whole = TABLES["target"].key("target")
    assert whole is not None
    project = parse_project(f"{text}\n[target.t]\ntarget = {whole.example}", "examples")
    assert [(it.name, it.text) for it in project.targets] == [
        ("s", "x86-64-v4:znver4+avx512vnni"),
        ("t", "x86-64-v4"),
    ]


def test_the_example_is_three_models_with_two_targets_and_a_test(tmp_path: Path) -> None:
    """Its script writes what it names, small, the same bytes each time, and only what changed."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        make_models.write_project(str(folder))
    project = ingot.Project.load(folders[0]).expand().project
    assert [spec.options.targets for spec in project.bundles] == [("desktop", "server")] * 3
    assert [spec.bundle for spec in project.tests] == [spec.name for spec in project.bundles]
    named = {spec.source for spec in project.models} | {
        path for spec in project.tests for path in (spec.inputs, spec.outputs)
    }
    written = {
        str(path.relative_to(folders[0])): path.read_bytes()
        for path in folders[0].rglob("*")
        if path.is_file()
    }
    assert set(written) == named | {"ingot.toml"}
    assert max(map(len, written.values())) < 300_000
    assert all((folders[1] / name).read_bytes() == content for name, content in written.items())
    changed = make_models.write_project(str(folders[1]), edited="mlp")
    assert changed == [str(folders[1] / name) for name in ("models/mlp.onnx", "data/mlp.out.npz")]
