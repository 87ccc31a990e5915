"""Which variant runs here: the best whose needs this machine meets, or a refusal.

In: the variants of a plan, what the machine has and is, the user's wish. Out: a variant's index. Not
done here: reading any code.
"""

from ..errors import IncompatibleError, InputError
from ..format.features import LEVELS
from ..format.plan import LibraryPlan, VariantPlan
from .cpu import without_amx

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def choose_variant(
    variants: "Sequence[VariantPlan]",
    features: frozenset[str],
    architecture: str,
    wished: str | None,
    name: str,
    request_amx: "Callable[[], bool]",
    read_model: "Callable[[], str]",
) -> int:
    """Return the index of the variant of highest rank that can run, or of target `wished`; of equal
    ranks that for this processor, then one for all.

    `request_amx` is asked at most once, and only when a variant that would be taken wants AMX:
    CPUID alone does not allow a tile instruction. `read_model` is asked where variants are for
    some processors.

    Raises:
        InputError: no variant is called `wished`. IncompatibleError: none can run.
    """
    refusals: list[str] = []
    for index in _candidates(variants, wished, name, read_model):
        variant = variants[index]
        missing = missing_features(variant, features, architecture)
        uses_amx = len(without_amx(variant.features)) < len(variant.features)
        if not missing and uses_amx and not request_amx():
            features = without_amx(features)
            missing = missing_features(variant, features, architecture)
        if not missing:
            return index
        refusals.append(f"{variant.target} lacks {', '.join(missing)}")
    raise _refusal(refusals, features, architecture, name)


def _candidates(
    variants: "Sequence[VariantPlan]",
    wished: "str | None",
    name: str,
    read_model: "Callable[[], str]",
) -> list[int]:
    """Return the variants of that target, or all, the best first."""
    model = read_model() if any(variant.processors for variant in variants) else ""

    def order(index: int) -> tuple[int, int]:
        one = variants[index]
        return -one.rank, 0 if model.startswith(one.processors) else 1 + bool(one.processors)

    found = [at for at, one in enumerate(variants) if wished in (None, one.target)]
    if wished is not None and not found:
        raise _unknown_variant(variants, wished, name)
    return sorted(found, key=order)


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
    found = ""
    for level, needed in LEVELS.items():
        if level.startswith(architecture) and features.issuperset(needed):
            found = level
    return found


def _refusal(
    refusals: list[str], features: frozenset[str], architecture: str, name: str
) -> IncompatibleError:
    level = level_of(features, architecture)
    machine = f"{level or architecture} ({', '.join(sorted(features)) or 'no named feature'})"
    what = f"no variant of {name} can run here: {'; '.join(refusals)}"
    do = "this machine is below every level that ingot compiles for"
    if level:
        do = f"`ingot compile MODEL --target {level}` makes one"
    return IncompatibleError(what, name, f"this machine: {machine}", do)


def _unknown_variant(variants: "Sequence[VariantPlan]", wished: str, name: str) -> InputError:
    import difflib

    targets = [variant.target for variant in variants]
    close = difflib.get_close_matches(wished, targets, n=1)
    do = f"did you mean {close[0]!r}?" if close else "leave variant out to take the best"
    return InputError(f"no variant {wished!r}", name, f"the bundle has {', '.join(targets)}", do)
