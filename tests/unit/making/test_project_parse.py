"""``ingot.toml`` becomes the data that it says, with every default filled in."""

from __future__ import annotations

import json

import pytest
from tests.harness.project_harness import GLOB, SMALL, parse

import ingot_build_rules.making.project.model as data
from ingot_build_rules.engine.actions.content import digest
from ingot_build_rules.making.options import configure as configure_module
from ingot_build_rules.making.options.option_rows import Choices, by_field
from ingot_build_rules.making.project.compile_requests import compile_requests
from ingot_build_rules.making.project.config import split_config
from ingot_build_rules.making.project.lines import find_lines
from ingot_build_rules.making.project.plain import plain
from ingot_build_rules.making.project.selection import Selection, select
from ingot_compiler.ir.errors import UnsupportedError, UserError

FULL = """\
[project]
name = "camera"
cache = ".ingot/cache"
default-targets = ["b", "slow"]

[defaults]
targets = ["server", "x86-64-v2"]
planner = "best_fit"
shape.x = "1x3"

[target.server]
target = "x86-64-v4+amx-tile"

[model.b]
source = "models/b.onnx"

[model.a]
source = "models/a.onnx"
shape = { y = [2, 4], x = "scalar" }

[bundle.b]
model = "b"

[bundle.a]
model = "a"
targets = ["native"]
planner = "hill_climb"
output = "out/a.ingot"

[bundle.a.devices]
dsp = "opencl"
acc = "cuda"

[bundle.a.place]
"/z/*" = "acc"
"/a/*" = "host"

[test.slow]
bundle = "b"
inputs = "data/b.npz"
outputs = "data/b.out.npz"

[test.a]
bundle = "a"
inputs = "data/a.npz"
outputs = "data/a.out.npz"
tolerance = 1e-3
absolute-tolerance = 1
threads = 2
executor = "vm"
"""


def test_every_key() -> None:
    """Tables are sorted by name, defaults fill what a table leaves out, the order of placements is
    kept."""
    files = "data/a.npz", "data/a.out.npz"
    assert parse(FULL) == data.ProjectModel(
        name="camera",
        cache=".ingot/cache",
        default_targets=("b", "slow"),
        targets=(data.TargetSpec("server", "x86-64-v4+amx-tile"),),
        models=(
            data.ModelSpec("a", "models/a.onnx", ((("x", "scalar"), ("y", "2x4")),)),
            data.ModelSpec("b", "models/b.onnx", ((("x", "1x3"),),)),
        ),
        bundles=(
            data.BundleSpec(
                "a",
                "a",
                "out/a.ingot",
                data.OF_THE_MODEL._replace(
                    devices=(("acc", "cuda"), ("dsp", "opencl")),
                    place=(("/z/*", "acc"), ("/a/*", "host")),
                    choices=Choices(planner="hill_climb"),
                ),
            ),
            data.BundleSpec(
                "b",
                "b",
                "dist/b.ingot",
                data.OF_THE_MODEL._replace(
                    targets=("server", "x86-64-v2"), choices=Choices(planner="best_fit")
                ),
            ),
        ),
        tests=(
            data.TestSpec(
                "a",
                "a",
                *files,
                relative_tolerance=1e-3,
                absolute_tolerance=1.0,
                threads=2,
                executor="vm",
            ),
            data.TestSpec("slow", "b", "data/b.npz", "data/b.out.npz", 1e-4, 0.0, 1, "aot"),
        ),
    )


def test_lines_are_told_and_do_not_count() -> None:
    """Each table knows its line; a project moved down in its file is the same project, for digests
    too."""
    moved = parse("# above\n\n" + FULL)
    assert [spec.line for spec in parse(FULL).bundles] == [24, 21]
    assert [spec.line for spec in moved.bundles] == [26, 23]
    assert moved == parse(FULL)
    assert digest(moved) == digest(parse(FULL))


def test_the_least() -> None:
    """A model and a bundle are enough: this machine, the best planner, ``dist``."""
    (bundle,) = parse(SMALL).bundles
    assert bundle == data.BundleSpec("a", "a", "dist/a.ingot")
    assert bundle.options.targets == ("native",)
    assert bundle.options.choices.planner == "best"


def test_windows_line_ends_and_mark() -> None:
    """A file that an editor on Windows saved reads the same."""
    assert parse("\ufeff" + FULL.replace("\n", "\r\n")) == parse(FULL)


def test_a_model_may_stand_for_many() -> None:
    """The output of a bundle over a glob has a place for each file; single files of it can be
    named."""
    one = '[bundle.one]\nmodel = "vision/a"\n[test.one]\nbundle = "vision/b"\ninputs = "x.npz"\noutputs = "y.npz"\n'
    project = parse(GLOB + one)
    assert [bundle.output for bundle in project.bundles] == [
        "dist/one.ingot",
        "dist/vision/{stem}.ingot",
    ]


def test_plain_is_json() -> None:
    """The plain form survives JSON and has the same text however the file is ordered."""
    forms = plain(parse(FULL))
    assert json.loads(json.dumps(forms)) == forms
    assert list(forms["bundles"]) == ["a", "b"]
    assert forms["models"]["a"] == {
        "source": "models/a.onnx",
        "shapes": [{"x": "scalar", "y": "2x4"}],
        "other_shapes": "general",
    }
    assert forms["tests"]["a"]["tolerance"] == 1e-3


@pytest.mark.parametrize(
    ("path", "value", "got"),
    [
        ("bundle.b.planner", "best", "best"),
        ("bundle.b.targets", "x86-64-v3, native", ("x86-64-v3", "native")),
        ("bundle.b.targets", '["x86-64-v3"]', ("x86-64-v3",)),
        ('bundle."b".output', "o.ingot", "o.ingot"),
        ("defaults.targets", "native", ("native",)),
        ('bundle.b.place."/x=y/*"', "host", (("/x=y/*", "host"),)),
    ],
)
def test_config_replaces_a_value_of_a_bundle(path: str, value: str, got: object) -> None:
    """``--config`` reads its text as the key wants it: text without quotes, lists with commas or as
    TOML."""
    config = split_config([f"{path}={value}"])
    assert config == {path: value}
    bundle = parse(FULL, **config).bundles[1]
    name = path.split(".")[2] if path.startswith("bundle") else "targets"
    assert {"output": bundle.output, **by_field(bundle.options)}[name] == got


def test_config_replaces_other_values() -> None:
    """Numbers, shapes, targets, settings."""
    project = parse(
        FULL,
        test__a__threads="4",
        test__a__tolerance="1e-2",
        model__b__shape__x="7x8",
        model__a__shape="{ x = [5] }",
        target__server__target="x86-64-v3",
        project__name="other",
    )
    assert (project.tests[0].threads, project.tests[0].relative_tolerance) == (4, 1e-2)
    assert [model.shapes for model in project.models] == [((("x", "5"),),), ((("x", "7x8"),),)]
    assert project.targets[0].text == "x86-64-v3"
    assert project.name == "other"


def test_the_last_of_equal_settings_counts() -> None:
    """As on other command lines."""
    assert split_config(["a.b=1", "c=d=e", "a.b=2"]) == {"a.b": "2", "c": "d=e"}


def test_several_profiles() -> None:
    """A list of tables, or ``[[model.NAME.shape]]``; what serves other shapes."""
    project = parse(
        """
        [defaults]
        other-shapes = "refuse"
        [model.a]
        source = "a.onnx"
        shape = [{ x = "?x3" }, { y = [1, "2..4"], x = "4x?" }]
        [model.b]
        source = "b.onnx"
        other-shapes = "general"
        [[model.b.shape]]
        x = "scalar"
        [bundle.a]
        model = "a"
        [bundle.b]
        model = "a"
        shape.x = "7x3"
        other-shapes = "general"
        """
    )
    requests = compile_requests(project, {"a", "b"})
    asked = [(each.options.shapes, each.options.other_shapes) for each in requests]
    assert asked == [
        (project.models[0].shapes, "refuse"),
        (((("x", "7x3"),),), "general"),
    ]
    found = [(model.shapes, model.other_shapes) for model in project.models]
    assert found == [
        (((("x", "?x3"),), (("x", "4x?"), ("y", "1x2..4"))), "refuse"),
        (((("x", "scalar"),),), "general"),
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('shape = [{ x = "3x" }]', ("wrong value of 'shape.0.x'", "expected a shape", "'3x'")),
        ('shape = ["3x3"]', ("wrong value of 'shape.0'", "expected a table", "'3x3'")),
        ('shape = { x = "8..1" }', ("wrong value of 'shape.x'", "expected a shape", "'8..1'")),
        ('other-shapes = "none"', ("wrong value of 'other-shapes'", "general, refuse", "'none'")),
    ],
)  # fmt: skip
def test_wrong_profiles(value: str, words: tuple[str, ...]) -> None:
    """The part that is at fault is named."""
    with pytest.raises(UserError) as caught:
        parse(f'[model.a]\nsource = "a.onnx"\n{value}\n')
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_compile_requests() -> None:
    """Names of targets become targets, shapes come from the model, everything in canonical form."""
    project = parse(FULL.replace("[bundle.a.devices]\n", "").replace('dsp = "opencl"\nacc = "cuda"\n', "").replace(
        '"/z/*" = "acc"', '"/z/*" = "host"'
    ))  # fmt: skip
    a, b = compile_requests(project, {"a", "b"})
    assert [str(target) for target in b.options.targets] == ["x86-64-v2", "x86-64-v4+amx-tile"]
    assert (b.source, b.options.shapes, b.options.choices.planner) == (
        "models/b.onnx",
        ((("x", "1x3"),),),
        "best_fit",
    )
    assert "native" not in map(str, a.options.targets)
    assert a.options.place == (("/z/*", "host"), ("/a/*", "host"))


def test_devices_without_code_are_refused_with_their_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kind that the format has and no back end is exit code 3, says where it stands, and stops no
    other bundle."""
    monkeypatch.setattr(configure_module, "KINDS_WITH_CODE", ("cpu", "null"))
    assert [request.source for request in compile_requests(parse(FULL), {"b"})] == ["models/b.onnx"]
    with pytest.raises(UnsupportedError) as caught:
        compile_requests(parse(FULL), {"a"})
    assert caught.value.where == "ingot.toml:24, [bundle.a]"


@pytest.mark.parametrize(
    ("words", "bundles", "tests"),
    [
        ([], ["b"], ["slow"]),
        (["a"], ["a"], []),
        (["test.a"], [], ["a"]),
        (["bundle.a", "dist/b.ingot"], ["a", "b"], []),
        (["./out/a.ingot", "slow"], ["a"], ["slow"]),
    ],
)
def test_select(words: list[str], bundles: list[str], tests: list[str]) -> None:
    """Words mean bundles, outputs and tests; none means the default targets."""
    assert select(parse(FULL), words) == Selection(tuple(bundles), tuple(tests))


def test_select_everything() -> None:
    """Without default targets everything is meant."""
    text = FULL.replace('default-targets = ["b", "slow"]\n', "")
    assert select(parse(text)) == Selection(("a", "b"), ("a", "slow"))


def test_a_default_target_may_say_its_kind() -> None:
    """A test that is called like its bundle can be a default target."""
    text = FULL.replace('["b", "slow"]', '["test.a", "bundle.b"]')
    assert select(parse(text)) == Selection(("b",), ("a",))


def test_select_lists_every_unknown_word() -> None:
    """One error for all words, with what was meant."""
    with pytest.raises(UserError) as caught:
        select(parse(FULL), ["dist/c.ingot", "slwo"])
    assert str(caught.value) == (
        "2 problems\n"
        "  where: command line\n"
        "  why: \n"
        "    command line: nothing is called 'dist/c.ingot': expected one of a, b, slow; did you mean 'dist/b.ingot'?\n"
        "    command line: nothing is called 'slwo': expected one of a, b, slow; did you mean 'slow'?\n"
        "  do: correct these"
    )


def test_lines_of_every_way_to_write_a_key() -> None:
    """Strings of four kinds, comments, lists over lines, inline tables, dotted and quoted keys."""
    text = '''\
a."b.c" = """
[no.table]
x = 1 \\"""" # ] comment
'd' . e = [ # [
  "]",
  {f = 1, g.h = '#'},

  [1, # two
   2]
]
[t . "u\\u0041"]
k = \'\'\'
\'\' [v] \'\'\'\'\'
date = 1979-05-27 07:32:00
[[w]]
z = {}
[[w]]
'''
    lines = find_lines(text)
    assert lines == {
        ("a",): 1, ("a", "b.c"): 1,
        ("d",): 4, ("d", "e"): 4,
        ("d", "e", "0"): 5,
        ("d", "e", "1"): 6, ("d", "e", "1", "f"): 6, ("d", "e", "1", "g"): 6, ("d", "e", "1", "g", "h"): 6,
        ("d", "e", "2"): 8, ("d", "e", "2", "0"): 8, ("d", "e", "2", "1"): 9,
        ("t",): 11, ("t", "uA"): 11, ("t", "uA", "k"): 12, ("t", "uA", "date"): 14,
        ("w",): 15, ("w", "z"): 16,
    }  # fmt: skip
