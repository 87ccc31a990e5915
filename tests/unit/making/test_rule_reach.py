"""What a change of code runs again: a rule's key holds all code that it can import, so it must not
reach what it does not use."""

from __future__ import annotations

import pytest
from tests.tidy.source import PACKAGES

from ingot_build_rules.engine.actions.rule import AnyRule
from ingot_build_rules.making.rules.registry import RULEBOOK
from ingot_build_rules.making.stages.own_code import code_digests

COMPILER = "ingot_compiler"
FRONTEND, PASSES, OPS = f"{COMPILER}/frontend/", f"{COMPILER}/passes/", f"{COMPILER}/ir/ops/"
LOWERING, MEMORY, BACKENDS = f"{COMPILER}/lowering/", f"{COMPILER}/memory/", f"{COMPILER}/backends/"
HOST_PROGRAM = f"{COMPILER}/host_program/"
MAIN_PROGRAM = f"{HOST_PROGRAM}main_program.py"
MIDDLE = (LOWERING, MEMORY, HOST_PROGRAM, BACKENDS)
KINDS, FUSION, PLANNERS = f"{LOWERING}kinds/", f"{LOWERING}fusion/", f"{MEMORY}planners/"
PLACE, EMITTERS = f"{COMPILER}/placement/place.py", f"{COMPILER}/codegen/emit/"
HOST, NULL, REGISTRY = f"{BACKENDS}host/", f"{BACKENDS}null/", f"{BACKENDS}registry.py"
OPENCL = f"{BACKENDS}opencl/"
CUDA = f"{BACKENDS}cuda/"
BACK_ENDS = (HOST, NULL, OPENCL, CUDA)
DRIVER = (
    "ingot_build_rules/making/stages/",
    "ingot_build_rules/tools/text/",
    "ingot_build_rules/tools/workspace/",
)
ENGINE = tuple(
    f"ingot_build_rules/engine/{name}"
    for name in (
        "cached_results.py",
        "scheduler.py",
        "tasks.py",
        "actions/codec.py",
        "actions/key.py",
        "executors/",
        "cache/",
        "events/",
    )
)
LOADER = ("ingot_runtime/loader/", "ingot_runtime/executor/", "ingot_runtime_devices/")
# What finds out which code this machine runs, for the rule that runs some while building.
PROBE = {
    f"ingot_runtime/loader/{name}.py" for name in ("__init__", "area", "cpu", "image", "system")
}
# rule -> starts of paths that it must not reach
UNUSED = {
    "import_model": (PASSES, *MIDDLE, PLACE),
    "names": (FRONTEND, PASSES, OPS, *MIDDLE, PLACE),
    "infer_types": (PASSES, *MIDDLE, PLACE),
    "optimize": (FRONTEND, *MIDDLE, PLACE),
    "place": (FRONTEND, *MIDDLE),
    "fuse": (FRONTEND, PLACE, MEMORY, MAIN_PROGRAM, *BACK_ENDS, REGISTRY),
    "pack_constant": (FRONTEND, PASSES, KINDS, FUSION, MEMORY, HOST_PROGRAM, BACKENDS, PLACE),
    "lower": (FRONTEND, PASSES, PLACE, MEMORY, HOST_PROGRAM, KINDS, FUSION, *BACK_ENDS, REGISTRY),
    "plan_memory": (FRONTEND, PASSES, OPS, KINDS, FUSION, HOST_PROGRAM, BACKENDS, PLACE),
    "codegen": (
        FRONTEND,
        PASSES,
        OPS,
        KINDS,
        FUSION,
        MEMORY,
        HOST_PROGRAM,
        PLACE,
        *BACK_ENDS,
        REGISTRY,
    ),
    "codegen_support": (FRONTEND, PASSES, OPS, *MIDDLE, PLACE),
    "codegen_main": (
        FRONTEND,
        PASSES,
        OPS,
        KINDS,
        FUSION,
        PLANNERS,
        EMITTERS,
        NULL,
        REGISTRY,
        PLACE,
    ),
    "link": (FRONTEND, PASSES, OPS, *MIDDLE, PLACE),
    "bundle": (f"{FRONTEND}ops/", PASSES, PLACE, PLANNERS),
    "run_test": (FRONTEND, PASSES, OPS, *MIDDLE, PLACE),
}


@pytest.mark.parametrize("rule", RULEBOOK.rules, ids=lambda rule: rule.name)
def test_a_rule_does_not_reach_what_it_does_not_use(rule: AnyRule) -> None:
    """A change of that code leaves the rule's results as they are, so it must leave its key
    alone."""
    loader = () if rule.name == "run_test" else LOADER
    unused = (*UNUSED.get(rule.name, ()), *ENGINE, *loader, *DRIVER)
    reached = [
        path
        for path, _ in code_digests(None).files_of(rule.compute.__module__)
        if path.startswith(unused) and not (rule.name == "digest_weights" and path in PROBE)
    ]
    assert reached == []


def test_the_key_of_a_test_holds_the_loader() -> None:
    """A pass in the cache was one of this very loader, and of the devices that it opens."""
    rule = RULEBOOK.by_name["run_test"]
    reached = {path for path, _ in code_digests(None).files_of(rule.compute.__module__)}
    files = [
        f"{name}/{path.relative_to(PACKAGES[name])}"
        for name in ("ingot_runtime", "ingot_runtime_devices")
        for path in PACKAGES[name].rglob("*.py")
    ]
    assert {path for path in files if path.startswith(LOADER)} <= reached


def test_the_key_of_an_opencl_library_holds_its_prelude() -> None:
    """A file of C that a hook reads is code of the hook."""
    digests = code_digests(None)
    files = {path for path, _ in digests.files_of("ingot_compiler.backends.opencl.link_library")}
    assert f"{OPENCL}prelude.cl" in files


def test_what_is_not_reached_is_there() -> None:
    """Every start of a path that this page names is one of a file: it did not move away."""
    files = [
        f"{name}/{path.relative_to(folder)}"
        for name, folder in PACKAGES.items()
        for path in folder.rglob("*.py")
    ]
    starts = {start for unused in UNUSED.values() for start in unused} | {*ENGINE, *LOADER, *DRIVER}
    assert {start for start in starts if not any(path.startswith(start) for path in files)} == set()
