"""Checks the references between tables: the models, bundles, targets and devices that they name.

In: checked values. Out: problems. Not done here: outputs that collide (``outputs``), files
(``expand``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ingot_build_rules.making.options.compile_options import AUTO, HOST
from ingot_build_rules.making.options.configure import KINDS
from ingot_build_rules.making.options.option_rows import NATIVE
from ingot_build_rules.making.project.lines import Path
from ingot_build_rules.making.project.model import STEM
from ingot_build_rules.making.project.names import is_known, is_plain
from ingot_build_rules.making.project.problems import Findings, did_you_mean, one_of
from ingot_build_rules.making.project.tables import Tables, Values
from ingot_build_rules.making.project.values import header
from ingot_compiler.backends.target_forms import GivenTarget, read_target
from ingot_compiler.ir.errors import UserError
from ingot_runtime.errors import InputError
from ingot_runtime.format.device_text import read_device_text


def check_references(tables: Tables, findings: Findings) -> None:
    """Note every name that leads nowhere, and every ``{stem}`` too few or too many."""
    for name, values in tables.named["target"].items():
        _check_named_target(name, values, findings)
    _check_targets(("defaults",), tables.settings["defaults"], tables, findings)
    for name, values in tables.named["bundle"].items():
        _check_bundle(name, values, tables, findings)
    for name, values in tables.named["export"].items():
        _check_export(name, values, tables, findings)
    for name, values in tables.named["test"].items():
        _check_test(name, values, tables, findings)
    if not tables.named["bundle"] and not findings.problems:
        do = 'add [model.a] with source = "a.onnx" and [bundle.a] with model = "a"'
        findings.add((), "the project is empty", "expected at least one [bundle.NAME]", do)
    _check_default_targets(tables, findings)


def _check_bundle(name: str, values: Values, tables: Tables, findings: Findings) -> None:
    path = ("bundle", name)
    if _check_reference(path, "model", values, tables, findings):
        _check_output((*path, "output"), values, name in tables.groups["bundle"], findings)
    _check_targets(path, values, tables, findings)
    devices = dict(values.get("devices", ()))
    _check_devices((*path, "devices"), devices, findings)
    _check_placements(path, values, {HOST, AUTO, *devices}, findings)


def _check_export(name: str, values: Values, tables: Tables, findings: Findings) -> None:
    path, output = ("export", name), values.get("output", "")
    if not _check_reference(path, "bundle", values, tables, findings):
        return
    many = name in tables.groups["export"]
    if STEM in output and not many:
        _refuse_stem((*path, "output"), "bundle", findings)
    if many and STEM not in output:
        why = f"expected {STEM} in it: the bundle stands for many, each with its own"
        do = f"write for example: dist/{STEM}"
        findings.add((*path, "output"), f"the output {output!r} is one place", why, do)


def _check_test(name: str, values: Values, tables: Tables, findings: Findings) -> None:
    is_known = _check_reference(("test", name), "bundle", values, tables, findings)
    for key in ("inputs", "outputs"):
        if is_known and name not in tables.groups["test"] and STEM in values.get(key, ""):
            _refuse_stem(("test", name, key), "bundle", findings)


def _check_reference(
    path: Path, kind: str, values: Values, tables: Tables, findings: Findings
) -> bool:
    name, declared = values.get(kind), tables.named[kind]
    if name is not None and not is_known(name, declared, tables.groups[kind]):
        otherwise = (
            f"declare it with {header((kind, name))}" if is_plain(name) else "choose one of these"
        )
        do = did_you_mean(name, declared, otherwise)
        findings.add((*path, kind), f"unknown {kind} {name!r}", one_of(declared), do)
        return False
    return name is not None


def _check_named_target(name: str, values: Values, findings: Findings) -> None:
    if name == NATIVE or _target_error(name) is None:
        why = f"{name!r} is a target that is always there"
        findings.add(("target", name), f"target name {name!r} is taken", why, "choose another name")
    path = ("target", name)
    if "target" not in values:
        _check_attributes(path, values, findings)
    elif len(values) > 1:
        others = ", ".join(sorted(set(values) - {"target"}))
        what, why = f"{header(path)} has 'target' and {others}", "expected one or the other"
        findings.add(path, what, why, "leave 'target' out, or all others")
    else:
        _check_target((*path, "target"), values["target"], (), findings)


def _check_attributes(path: Path, values: Values, findings: Findings) -> None:
    """A target that is given by its attributes."""
    if "level" not in values:
        what, why = f"{header(path)} lacks 'target'", "expected target = ..., got no such key"
        do = 'add for example: target = "x86-64-v4"'
        findings.add(path, what, why, do)
    elif error := _target_error(values):
        findings.add(path, error.what, error.why, error.do)


def _check_targets(path: Path, values: Values, tables: Tables, findings: Findings) -> None:
    for index, text in enumerate(values.get("targets", ())):
        _check_target((*path, "targets", str(index)), text, tables.named["target"], findings)


def _check_target(path: Path, text: str, declared: Collection[str], findings: Findings) -> None:
    """A target is one of the ``declared`` names, or a text that code generation reads."""
    if text in declared or text == NATIVE:
        return
    error = _target_error(text)
    if error is not None:
        also = f"; declared are {', '.join(sorted(declared))}" if declared else ""
        findings.add(
            path, error.what, error.why + also, did_you_mean(text, {*declared, NATIVE}, error.do)
        )


def _target_error(given: GivenTarget) -> UserError | None:
    try:
        read_target(HOST, given)
    except UserError as error:
        return error
    return None


def _check_devices(path: Path, devices: Mapping[str, str], findings: Findings) -> None:
    for name, meaning in ((HOST, "is always there"), (AUTO, "leaves a node to the cost model")):
        if name in devices:
            what, why = f"device name {name!r} is taken", f"{name!r} {meaning}"
            findings.add((*path, name), what, why, "choose another name")
    for name, text in devices.items():
        try:
            read_device_text(text, "", KINDS)
        except InputError as error:
            what = f"wrong value of 'devices.{name}' in {header(path[:-1])}"
            findings.add((*path, name), what, f"{error.what}: {error.why}", error.do)


def _check_placements(
    path: Path, values: Values, devices: Collection[str], findings: Findings
) -> None:
    for glob, device in values.get("place", ()):
        if device not in devices:
            do = did_you_mean(device, devices, f"declare it below {header((*path, 'devices'))}")
            findings.add((*path, "place", glob), f"unknown device {device!r}", one_of(devices), do)


def _check_output(path: Path, values: Values, many: bool, findings: Findings) -> None:
    output = values.get("output")
    if output is None:
        return
    if output.endswith("/"):
        findings.add(
            path, f"the output {output!r} is a folder", "expected a file", "add a file name"
        )
    elif many and STEM not in output:
        why = f"expected {STEM} in it: the model stands for many files, each with its bundle"
        findings.add(
            path, f"the output {output!r} is one file", why, f"write for example: dist/{STEM}.ingot"
        )
    elif STEM in output and not many:
        _refuse_stem(path, "model", findings)


def _refuse_stem(path: Path, of: str, findings: Findings) -> None:
    why = f"expected a {of} that stands for many files, got one file"
    findings.add(path, f"nothing to put in the place of {STEM}", why, "write the whole path")


def _check_default_targets(tables: Tables, findings: Findings) -> None:
    """A name alone, or with its kind before it, since a test may be called like its bundle."""
    names: set[str] = set()
    groups: set[str] = set()
    for kind in ("bundle", "test"):
        for prefix in ("", f"{kind}."):
            names |= {prefix + name for name in tables.named[kind]}
            groups |= {prefix + name for name in tables.groups[kind]}
    plain = {*tables.named["bundle"], *tables.named["test"]}
    for index, name in enumerate(tables.settings["project"].get("default-targets", ())):
        if not is_known(name, names, groups):
            do = did_you_mean(name, names, "name a bundle or a test")
            findings.add(
                ("project", "default-targets", str(index)),
                f"nothing is called {name!r}",
                one_of(plain),
                do,
            )
