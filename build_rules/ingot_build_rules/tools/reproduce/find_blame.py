"""Why a bundle that was made again is another one: the ingredient that differs, or the first rule
that gave another result.

In: both bundles, described; the lock file; results of the old build as far as a cache has them.
Out: ``Blame``s, the first one first. Not done here: making the bundle again (``reproduce``), which
bytes differ (``bundle_difference``).

A rule is to blame when its result differs though nothing that it was made from does, and no tool
that it uses has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from ingot_build_rules.making.stages.lock_file import LockFile
from ingot_build_rules.tools.reproduce.blame import Blame, option_blames, tool_blames, weight_blames
from ingot_build_rules.tools.reproduce.bundle_difference import BundleDifference, Side
from ingot_build_rules.tools.reproduce.changed_code import ChangedCode
from ingot_build_rules.tools.reproduce.stage_difference import (
    TEXTS,
    program_difference,
    stage_difference,
)
from ingot_build_rules.tools.reproduce.stage_origins import (
    MADE_FROM,
    RULES_OF,
    Origin,
    find_origins,
    unexplained,
)
from ingot_compiler.ir.graph import Names
from ingot_runtime.lazy_dataclass import dataclass

Load = Callable[[str], object]
"""Digest of an artifact -> its value, None where it is not to be had."""
_WITHOUT_LOOPS = ("plan_memory", "codegen_main", "link")


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that blame is found from. ``load_old`` and ``load_new``: values of the stages of both
    builds.

    ``same_source``: every file that the lock file names has its recorded bytes; ``planner_of``:
    digests of memory plans by target -> the planner that makes them, "" if none does.
    """

    old: Side
    new: Side
    difference: BundleDifference
    model: str
    names: Names
    planner_of: Callable[[Mapping[str, str]], str]
    load_old: Load
    load_new: Load
    same_source: bool = False
    lock: LockFile | None = None
    lock_name: str = ""
    code: ChangedCode = field(default_factory=ChangedCode)


def find_blames(evidence: Evidence) -> list[Blame]:
    """Return everything that is not what it was; at least one thing."""
    origins = find_origins(evidence.old.record, evidence.new.record)
    options = _options(evidence) or _planner(evidence, origins)
    if options:
        return options
    model, tools = _model(evidence, origins), _tools(evidence)
    if model and any(origin.rule == "infer_types" for origin in origins):
        return model + tools  # what comes after another graph is of no interest
    rules = unexplained(origins, [item.name for item in tools])
    return model + tools + _rules(evidence, rules) or [_rest(evidence)]


def _options(evidence: Evidence) -> list[Blame]:
    """Options that the lock file or the bundle's own variants contradict."""
    record, lock = evidence.old.record, evidence.lock
    if lock is not None:
        detail = f"{evidence.lock_name} has the one, the bundle the other"
        found = option_blames(lock.options, record.options_text, detail)
        if found:
            return found
    targets = sorted(str(variant["target"]) for variant in evidence.old.described["variants"])
    recorded = sorted(map(str, record.options.targets))
    if targets == recorded:
        return []
    detail = "the bundle's variants are the latter"
    return [Blame("option", "option targets", str(recorded), str(targets), detail)]


def _planner(evidence: Evidence, origins: Sequence[Origin]) -> list[Blame]:
    """Another planner makes the bundle's memory plan: then the recorded one is not the one that was
    used."""
    if not any(origin.rule == "plan_memory" for origin in origins):
        return []
    record = evidence.old.record
    plans = {item.target: item.digest for item in record.stages if item.rule == "plan_memory"}
    planner = evidence.planner_of(plans)
    if not planner:
        return []
    detail = "the latter makes the bundle's memory plan"
    return [Blame("option", "option planner", record.options.choices.planner, planner, detail)]


def _model(evidence: Evidence, origins: Sequence[Origin]) -> list[Blame]:
    """Graph and weights, unless their files are known to be what they were: then our code reads
    them differently.

    Where weights alone differ in the file, another graph is one whose weights have other numbers.
    """
    old, new = evidence.old.record, evidence.new.record
    blames = _graph(evidence, origins)
    blames += weight_blames(old.weights, new.weights, evidence.names.weights)
    if not blames or not evidence.same_source:
        return blames
    rules = RULES_OF["infer_types"]
    name = f"{' or '.join(rules)} gives another result from the same model"
    detail = _joined(str(blames[0]), evidence.code.text(rules))
    return [Blame("code", name, blames[0].recorded, blames[0].present, detail)]


def _graph(evidence: Evidence, origins: Sequence[Origin]) -> list[Blame]:
    graphs = [origin for origin in origins if origin.rule == "infer_types"]
    if not graphs or evidence.difference.section.startswith("weights"):
        return []
    first, digests = graphs[0], (evidence.old.record.graph, evidence.new.record.graph)
    if digests[0] == digests[1]:
        digests = first.recorded, first.present
    return [Blame("model", f"graph of {evidence.model}", *digests, _detail(evidence, first))]


def _tools(evidence: Evidence) -> list[Blame]:
    blames = tool_blames(evidence.old.record.toolchain, evidence.new.record.toolchain)
    known = {item.name for item in blames}
    return blames + [item for item in evidence.code.libraries() if item.name not in known]


def _rules(evidence: Evidence, origins: Sequence[Origin]) -> list[Blame]:
    """One blame per rule, whatever the count of its targets."""
    blames: list[Blame] = []
    for rule in dict.fromkeys(origin.rule for origin in origins):
        found = [origin for origin in origins if origin.rule == rule]
        first, targets = found[0], [origin.target for origin in found if origin.target]
        rules = RULES_OF.get(rule, (rule,))
        name = f"{' or '.join(rules)} gives another result from the same {MADE_FROM[rule]}"
        name += f" for {', '.join(targets)}" if targets else ""
        code, doubt = evidence.code.text(rules), _doubt(evidence, rule)
        detail = _joined(_detail(evidence, first), code, doubt)
        blames.append(Blame("code", name, first.recorded, first.present, detail))
    return blames


def _doubt(evidence: Evidence, rule: str) -> str:
    """Without a lock file nothing confirms an option that the rule depends on."""
    is_asked = rule == "fuse" and evidence.old.record.options.shapes and evidence.lock is None
    doubt = "or the recorded option shapes is not the one that the bundle was made with"
    return doubt if is_asked else ""


def _rest(evidence: Evidence) -> Blame:
    """Nothing that is recorded differs: names, or a rule whose result is not recorded."""
    for left, right in zip(_names(evidence.old), _names(evidence.new), strict=False):
        if left != right and not evidence.same_source:
            return Blame("names", f"a name in {evidence.model}", left, right)
    is_weights = evidence.difference.section.startswith("weights")
    rule, inputs = ("pack_constant", "weights") if is_weights else ("bundle", "parts")
    name = f"{rule} gives another result from the same {inputs}"
    old, new = (side.described["digest"] for side in (evidence.old, evidence.new))
    return Blame("code", name, old, new, evidence.code.text((rule, "names")))


def _detail(evidence: Evidence, origin: Origin) -> str:
    """The first line that differs, if a cache still has the old result; or the loops of the first
    kernel that does."""
    if origin.rule in TEXTS:
        values = evidence.load_old(origin.recorded), evidence.load_new(origin.present)
        if None not in values and type(values[0]) is type(values[1]):
            return stage_difference(origin.rule, *values, evidence.names)
    if origin.kernel:
        return f"kernel {origin.kernel}"
    kernel = evidence.difference.kernel
    if kernel is None or origin.rule in _WITHOUT_LOOPS:
        return ""
    left, right = (
        side.record.programs.get(kernel.target, {}) for side in (evidence.old, evidence.new)
    )
    found = program_difference(left.get(kernel.old, b""), right.get(kernel.new, b""))
    return f"in the kernel's loops: {found}" if found else ""


def _names(side: Side) -> list[str]:
    """Every name of the user's that a bundle has, in order."""
    names = [side.described["model"], *side.described["symbols"]]
    names += [tensor["name"] for kind in ("inputs", "outputs") for tensor in side.described[kind]]
    for _, launches in sorted(side.record.launches.items()):
        names += [name for launch in launches for name, _ in launch.nodes]
    return names


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))
