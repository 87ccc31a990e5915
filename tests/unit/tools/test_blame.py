"""Comparison of what two bundles record: each ingredient by name, and the first stage that differs
by itself."""

from __future__ import annotations

from dataclasses import replace

from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.stages.lock_file import CodeRecord
from ingot_build_rules.tools.reproduce.blame import Blame, option_blames, tool_blames, weight_blames
from ingot_build_rules.tools.reproduce.bundle_record import BundleRecord, RecordedKernel, Stage
from ingot_build_rules.tools.reproduce.changed_code import ChangedCode
from ingot_build_rules.tools.reproduce.stage_origins import find_origins, unexplained

ORDER = (
    "infer_types",
    "optimize",
    "place",
    "fuse",
    "lower",
    "codegen",
    "plan_memory",
    "codegen_main",
    "link",
)


def record(changed: str = "") -> BundleRecord:
    """Every stage of one target, with other results from ``changed`` on; of kernels, only code
    changes in ``codegen``."""
    is_new, stages = False, list[Stage]()
    for rule in ORDER:
        is_new |= rule == changed
        loops = "other" if is_new and changed != "codegen" else "loops"
        kernels = (
            RecordedKernel(f"k_{loops}", loops, "new" if is_new else "code"),
            RecordedKernel("k_same", "same", "same"),
        )
        target = "" if rule in ORDER[:3] else "x86-64-v3"
        is_kernels = rule in ("lower", "codegen")
        stages.append(
            Stage(rule, target, kernels=kernels)
            if is_kernels
            else Stage(rule, target, f"{rule} {is_new}")
        )
    return BundleRecord("g", (), CompileOptions(()), {}, {}, tuple(stages), {}, {})


def test_the_first_stage_that_differs_is_the_origin() -> None:
    """Whatever a stage changes after itself, it alone is named; equal builds have no origin."""
    assert find_origins(record(), record()) == []
    for rule in ORDER:
        assert [origin.rule for origin in find_origins(record(), record(rule))][:1] == [rule]
    assert [origin.rule for origin in find_origins(record(), record("optimize"))] == ["optimize"]


def test_independent_stages_are_both_origins() -> None:
    """The memory plan and the kernels come from the same graph: when both differ, nobody knows
    which came first."""
    new = record("plan_memory")
    kernels = tuple(
        replace(stage, kernels=stage.kernels[1:]) if stage.rule == "lower" else stage
        for stage in new.stages
    )
    origins = find_origins(record(), replace(new, stages=kernels))
    assert [origin.rule for origin in origins] == ["lower", "plan_memory"]
    assert (origins[0].recorded, origins[0].present) == ("kernel k_loops", "")


def test_other_code_of_the_same_loops() -> None:
    """The kernel is named with both digests."""
    (origin,) = find_origins(record(), record("codegen"))[:1]
    assert (origin.kernel, origin.recorded, origin.present) == ("k_loops", "code", "new")


def test_tools_explain_their_own_stages() -> None:
    """Another linker explains another image, and nothing before it; another Ingot explains
    everything."""
    linked, optimized = (
        find_origins(record(), record("link")),
        find_origins(record(), record("optimize")),
    )
    assert unexplained(linked, ["ziglang"]) == []
    assert unexplained(optimized, ["ziglang", "llvmlite"]) == optimized
    assert unexplained(optimized, ["ingot"]) == []


def test_weights_by_number_and_by_content() -> None:
    """The same count: by number. Another count: those that are new, those that are gone. Many: the
    first eight and a count."""
    (changed,) = weight_blames(["a", "b"], ["a", "c"], ["x", "y"])
    assert (changed.name, changed.recorded, changed.present) == ("weight 1 'y'", "b", "c")
    (added,) = weight_blames(["a", "b"], ["a", "c", "b"], ["x", "y", "z"])
    assert (added.name, added.recorded, added.present) == (
        "weight 1 'y'",
        "no bytes of its own",
        "c",
    )
    (gone,) = weight_blames(["a", "b"], ["b"], ["y"])
    assert (gone.name, gone.recorded, gone.present) == (
        "weight 0 of the recorded ones",
        "a",
        "no bytes of its own",
    )
    many = weight_blames(["a"] * 20, ["b"] * 20, [str(number) for number in range(20)])
    assert (len(many), many[7].name, many[-1].present) == (9, "weight 7 '7'", "12 that differ")
    assert weight_blames(["a"], ["a"], ["x"]) == []


def test_options_and_tools_by_name() -> None:
    """Only what differs, in sorted order; what only one side has is compared with nothing."""
    found = option_blames(
        {"planner": "best", "place": [], "old": 1}, {"planner": "best_fit", "place": []}, "here"
    )
    assert [(item.name, item.recorded, item.present) for item in found] == [
        ("option old", "1", ""),
        ("option planner", '"best"', '"best_fit"'),
    ]
    (tool,) = tool_blames(
        {"llvmlite": "0.45", "ziglang": "1"}, {"llvmlite": "0.46", "ziglang": "1"}
    )
    assert str(tool) == "llvmlite: recorded 0.45, present 0.46"


def test_digests_are_cut_and_nothing_else() -> None:
    """In text a digest has 16 digits; every other value is whole."""
    assert (
        str(Blame("weight", "w", "a" * 64, "g" * 64, "d"))
        == f"w: recorded {'a' * 16}, present {'g' * 64}; d"
    )


def test_changed_code_by_rule_alone() -> None:
    """A lock file without files knows whether the rule's code is another one; one without anything
    says nothing."""
    then, now = (
        CodeRecord((("link", digest), ("place", "same")), (), (("numpy", f"2.1{digest}"),))
        for digest in "ab"
    )
    code = ChangedCode(then, now)
    assert (code.text(("link",)), code.text(("place",))) == ("its code has changed", "")
    assert [(item.name, item.recorded, item.present) for item in code.libraries()] == [
        ("numpy", "2.1a", "2.1b")
    ]
    assert (ChangedCode().text(("link",)), ChangedCode().libraries()) == ("", [])
