"""Which variant runs here: the best whose needs this machine meets, or a refusal that names what is
missing.

In: the plan, the machine's features, the user's wish. Out: a variant's index. Not done here:
reading any code.
"""

from ..errors import IncompatibleError, InputError
from ..format.features import LEVELS
from ..format.plan import BundlePlan, LibraryPlan, VariantPlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_AMX = "amx-"


def choose_variant(
    plan: BundlePlan,
    features: frozenset[str],
    architecture: str,
    wished: str | None,
    name: str,
    request_amx: "Callable[[], bool]",
) -> int:
    """Return the index of the variant of highest rank that can run; `wished` (a target) may only go
    down.

    `request_amx` is asked at most once, and only when a variant that would be taken wants AMX:
    CPUID alone does not allow a tile instruction.

    Raises:
        InputError: no variant is called `wished`. IncompatibleError: none can run; the message
            names the features.
    """
    candidates = sorted(
        range(len(plan.variants)), key=lambda index: (-plan.variants[index].rank, index)
    )
    if wished is not None:
        candidates = [index for index in candidates if plan.variants[index].target == wished]
        if not candidates:
            raise _unknown_variant(plan, wished, name)
    refusals: list[str] = []
    for index in candidates:
        variant = plan.variants[index]
        missing = missing_features(variant, features, architecture)
        if (
            not missing
            and any(feature.startswith(_AMX) for feature in variant.features)
            and not request_amx()
        ):
            features = frozenset(feature for feature in features if not feature.startswith(_AMX))
            missing = missing_features(variant, features, architecture)
        if not missing:
            return index
        refusals.append(f"{variant.target} lacks {', '.join(missing)}")
    raise _refusal(refusals, features, architecture, name)


def missing_features(
    code: "VariantPlan | LibraryPlan", features: frozenset[str], architecture: str
) -> list[str]:
    """Return what host code needs and this machine lacks."""
    missing = [feature for feature in code.features if feature not in features]
    if not code.target.startswith(architecture):
        missing.append(f"this processor ({architecture})")
    return missing


def level_of(features: frozenset[str], architecture: str) -> str:
    """Return the highest level of `architecture` that `features` cover, or "" if they cover
    none."""
    levels = [
        level
        for level in LEVELS
        if level.startswith(architecture) and features.issuperset(LEVELS[level])
    ]
    return levels[-1] if levels else ""


def _refusal(
    refusals: list[str], features: frozenset[str], architecture: str, name: str
) -> IncompatibleError:
    level = level_of(features, architecture)
    machine = f"{level or architecture} ({', '.join(sorted(features)) or 'no named feature'})"
    return IncompatibleError(
        f"no variant of {name} can run here: {'; '.join(refusals)}",
        name,
        f"this machine: {machine}",
        f"compile with --target {level}"
        if level
        else "this machine is below every level that ingot compiles for",
    )


def _unknown_variant(plan: BundlePlan, wished: str, name: str) -> InputError:
    import difflib

    targets = [variant.target for variant in plan.variants]
    close = difflib.get_close_matches(wished, targets, n=1)
    do = f"did you mean {close[0]!r}?" if close else "leave variant out to take the best"
    return InputError(f"no variant {wished!r}", name, f"the bundle has {', '.join(targets)}", do)
