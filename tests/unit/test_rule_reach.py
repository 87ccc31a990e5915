"""What a change of code runs again: a rule's key holds all code that it can import, so it must not reach what it does not use."""

from __future__ import annotations

import pytest

from ingot_build_rules.engine.rule import AnyRule
from ingot_build_rules.rules.open_build import code_digests
from ingot_build_rules.rules.registry import RULEBOOK

COMPILER = "ingot_compiler"
FRONTEND, PASSES, OPS = f"{COMPILER}/frontend/", f"{COMPILER}/passes/", f"{COMPILER}/ir/ops/"
LOWERING, CODEGEN = f"{COMPILER}/lowering/", f"{COMPILER}/codegen/"
KINDS, FUSION, PLANNERS = f"{LOWERING}kinds/", f"{LOWERING}fusion/", f"{LOWERING}memory/"
PLACE, EMITTERS, OPTIONS = f"{COMPILER}/placement/place.py", f"{CODEGEN}emit_", "ingot_build_rules/rules/options.py"
ENGINE = tuple(f"ingot_build_rules/engine/{name}.py" for name in ("scheduler", "codec", "pool", "key"))
LOADER = ("ingot_runtime/loader/", "ingot_runtime/executor/", "ingot_runtime/devices/")
# rule -> starts of paths that it must not reach
UNUSED = {
    "import_model": (PASSES, LOWERING, CODEGEN, PLACE),
    "names": (FRONTEND, PASSES, OPS, LOWERING, CODEGEN, PLACE),
    "infer_types": (PASSES, LOWERING, CODEGEN, PLACE),
    "optimize": (FRONTEND, LOWERING, CODEGEN, PLACE),
    "place": (FRONTEND, LOWERING, CODEGEN),
    "fuse": (FRONTEND, PLACE, PLANNERS, EMITTERS),
    "pack_constant": (FRONTEND, PASSES, KINDS, FUSION, PLANNERS, CODEGEN, PLACE),
    "lower": (FRONTEND, PASSES, PLACE, PLANNERS, EMITTERS),
    "plan_memory": (FRONTEND, PASSES, OPS, KINDS, FUSION, CODEGEN, PLACE),
    "codegen": (FRONTEND, PASSES, OPS, KINDS, FUSION, PLANNERS, PLACE),
    "codegen_support": (FRONTEND, PASSES, OPS, LOWERING, PLACE),
    "codegen_main": (FRONTEND, PASSES, OPS, KINDS, FUSION, PLANNERS, EMITTERS, PLACE),
    "link": (FRONTEND, PASSES, OPS, KINDS, FUSION, PLANNERS, PLACE),
    "bundle": (f"{FRONTEND}ops/", PASSES, PLACE, PLANNERS, OPTIONS),
}


@pytest.mark.parametrize("rule", RULEBOOK.rules, ids=lambda rule: rule.name)
def test_a_rule_does_not_reach_what_it_does_not_use(rule: AnyRule) -> None:
    """A change of that code leaves the rule's results as they are, so it must leave its key alone."""
    unused = (*UNUSED.get(rule.name, ()), *ENGINE, *LOADER)
    reached = [path for path, _ in code_digests(None).files_of(rule.compute.__module__) if path.startswith(unused)]
    assert reached == []
