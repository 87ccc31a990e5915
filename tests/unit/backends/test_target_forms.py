"""Targets in every form that a user may give them: tag, text, table, JSON; what follows from them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot_build_rules.engine.cache.file_digests import DiskFiles
from ingot_build_rules.making.options.configure import configure
from ingot_build_rules.making.options.host_target import resolve_target
from ingot_build_rules.making.rules.registry import RULES
from ingot_build_rules.making.stages.own_code import code_digests
from ingot_build_rules.tools.api.arguments import read_targets
from ingot_build_rules.tools.workspace.tools import tools_of
from ingot_compiler.backends.registry import BACKENDS, backend_of
from ingot_compiler.backends.tags.read_tags import TAGS_PATH, read_tags
from ingot_compiler.backends.target_forms import GivenTarget, read_target, target_text
from ingot_compiler.ir.errors import UserError
from ingot_compiler.targets import TARGETS
from ingot_compiler.targets.target import Target, parse_target

ZEN4 = "x86-64-v4:znver4+avx512bf16+avx512vbmi+avx512vnni"
TABLE = {
    "level": "x86-64-v4",
    "cpu": "znver4",
    "features": ["avx512vnni", "+avx512bf16", "avx512vbmi"],
}
TAGS = read_tags(TAGS_PATH.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", [it.kind for it in BACKENDS if it.attributes])
@pytest.mark.parametrize(
    "form",
    ["zen4", ZEN4, TABLE, json.dumps(TABLE), {**TABLE, "features": tuple(TABLE["features"])}],
)
def test_all_forms_of_a_target_are_one_value(kind: str, form: GivenTarget) -> None:
    """Equal, with one text, also for the devices that run the host's code."""
    target = read_target(kind, form)
    assert target == parse_target(ZEN4)
    assert str(target) == ZEN4
    assert hash(target) == hash(parse_target(ZEN4))


@pytest.mark.parametrize("group", list(TAGS))
def test_every_tag_is_a_target(group: str) -> None:
    """In its canonical text, which is no tag; each group is that of some back end."""
    assert group in {backend.tags for backend in BACKENDS}
    kind = next(backend.kind for backend in BACKENDS if backend.tags == group)
    for tag, text in TAGS[group].items():
        assert str(read_target(kind, tag)) == text, tag
        assert text not in TAGS[group]
        with pytest.raises(UserError):
            parse_target(tag)  # no tag hides a target


def test_the_page_lists_every_tag() -> None:
    """``docs/targets.md`` names each tag, and a tag that is misspelled is suggested."""
    page = (Path(__file__).parents[3] / "docs/targets.md").read_text(encoding="utf-8")
    assert [tag for tags in TAGS.values() for tag in tags if f"`{tag}`" not in page] == []
    with pytest.raises(UserError, match="--target raspberry-pi-4"):
        resolve_target("raspberrypi-4")


MISTAKES: dict[str, tuple[GivenTarget, tuple[str, ...]]] = {
    "an unknown attribute": ({"level": "x86-64-v3", "cpus": "zen"}, ("unknown attribute 'cpus'", "did you mean 'cpu'?")),
    "a derived one": ({"level": "x86-64-v3", "vector_bits": 512}, ("'vector_bits' cannot be given", "it follows from level, cpu, features")),
    "a number for a text": ({"level": "x86-64-v3", "cpu": 3}, ("wrong value of attribute 'cpu'", "got 3")),
    "a text for a list": ({"level": "x86-64-v3", "features": "fma"}, ("wrong value of attribute 'features'", "a list of texts")),
    "a list with a number": ({"level": "x86-64-v3", "features": [1]}, ("wrong value of attribute 'features'",)),
    "an empty feature": ({"level": "x86-64-v3", "features": ["+"]}, ("wrong value of attribute 'features'",)),
    "two attributes in one": ({"level": "x86-64-v3:znver3"}, ("wrong value of attribute 'level'",)),
    "no level": ({"cpu": "znver3"}, ("a target without 'level'",)),
    "another kind": ({"kind": "opencl", "level": "x86-64-v3"}, ("a target of another kind", "'opencl'")),
    "a feature twice": ("x86-64-v3+avxvnni+avxvnni", ("feature 'avxvnni' is given twice",)),
    "a feature added and removed": ({"level": "x86-64-v3", "features": ["avxvnni", "-avxvnni"]}, ("feature 'avxvnni' is given twice",)),
    "an attribute twice": ('{"level": "x86-64-v3", "level": "x86-64-v2"}', ("attribute 'level' is given twice",)),
    "no JSON": ('{"level": ', ("a target is not understood",)),
    "an unknown level": ({"level": "x86-64-v9"}, ("unknown target 'x86-64-v9'",)),
    "an unknown feature": ({"level": "x86-64-v3", "features": ["dsp"]}, ("unknown feature 'dsp'",)),
    "a tag and more": ("zen4+avxvnni", ("unknown target 'zen4'",)),
}  # fmt: skip


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_mistakes_in_targets(mistake: str) -> None:
    """Each has an error of its own, in four parts."""
    form, parts = MISTAKES[mistake]
    with pytest.raises(UserError) as caught:
        read_target("host", form)
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert all(map(str, caught.value.parts))


def test_a_kind_without_attributes_takes_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is refused where a target is a text and nothing else."""
    bare = dataclasses.replace(backend_of("cpu"), attributes=(), derived=(), tags="")
    monkeypatch.setattr(
        "ingot_compiler.backends.target_forms.backend_of", {"cpu": bare}.__getitem__
    )
    assert target_text("cpu", "x86-64-v3") == "x86-64-v3"
    with pytest.raises(UserError, match="cpu targets have no attributes"):
        target_text("cpu", {"level": "x86-64-v3"})


@pytest.mark.parametrize("kind", [it.kind for it in BACKENDS if it.derived])
def test_what_follows_from_a_target_is_read_only(kind: str) -> None:
    """Every derived fact can be read, cannot be set, and is no part of what is compared."""
    target = read_target(kind, "zen4")
    assert isinstance(target, Target)
    fields = {it.name for it in dataclasses.fields(target) if it.name != "arch"}
    for name in backend_of(kind).derived:
        assert getattr(target, name) is not None
        assert name not in fields
        with pytest.raises((AttributeError, TypeError)):
            setattr(target, name, 0)
    assert (target.vector_bits, target.has_fma) == (512, True)
    assert read_target(kind, "zen2") == parse_target("x86-64-v3:znver2")


@given(st.sampled_from(TARGETS), st.data())
def test_tables_and_texts_agree(family: object, data: st.DataObject) -> None:
    """Any level, cpu and features give the same target as a table and as a text."""
    known = next(it for it in TARGETS if it is family)
    level = data.draw(st.sampled_from([name for name, _ in known.levels]))
    cpu = data.draw(st.sampled_from(("", *known.tunings)))
    names = data.draw(st.permutations([it.name for it in known.features]))[:3]
    text = level + (f":{cpu}" if cpu else "") + "".join(f"+{name}" for name in names)
    table: dict[str, object] = {"level": level, "features": names}
    table |= {"cpu": cpu} if cpu else {}
    assert read_target("host", table) == parse_target(text)


def test_one_target_a_list_and_a_table_give_the_same_configuration() -> None:
    """One text, a list of one, a table of attributes in a list, and a dict of names; a name may be
    used by a device."""
    forms: list[object] = [
        ZEN4, [ZEN4], ("zen4",), [TABLE], {"edge": "zen4"}, {"edge": TABLE}, {"edge": ZEN4, "same": "zen4"},
    ]  # fmt: skip
    found = [configure(read_targets(form)) for form in forms]
    assert len({it.host_targets for it in found}) == 1
    assert all(it == found[0] for it in found)
    targets = read_targets({"edge": "zen4", "old": "x86-64-v3"})
    device = configure(targets, {"acc": "cpu:1,target=edge"}).named("acc")
    assert device.target == f"cpu:{ZEN4}"
    with pytest.raises(UserError, match="unknown target 'egde'"):
        configure(targets, {"acc": "cpu:1,target=egde"})


@pytest.mark.parametrize(
    "wrong", [3, [3], {"edge": 3}, {1: "zen4"}, {"level": "x86-64-v3", "features": ["fma"]}]
)
def test_what_is_no_target_at_all(wrong: object) -> None:
    """A wrong argument is told before anything is read."""
    with pytest.raises(UserError, match="targets"):
        read_targets(wrong)


def test_a_change_of_the_tags_is_seen_and_is_in_no_key() -> None:
    """A build looks at the file again when it has changed; what a tag stood for is in the options,
    so no rule has the file in its code."""
    digests = code_digests(None)
    assert str(TAGS_PATH) in tools_of(DiskFiles(None), digests).paths
    reached = {path for rule in RULES for path, _ in digests.files_of(rule.compute.__module__)}
    assert reached
    assert not [path for path in reached if path.endswith(TAGS_PATH.name)]
