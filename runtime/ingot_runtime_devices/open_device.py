"""The first device of several that this machine has, opened with its code.

In: candidates, an open bundle. Out: an open ``Device``. Not done here: which candidates there are
(``bind_device``), what opening means for a kind (its own file).
"""

from ingot_runtime.errors import IncompatibleError
from ingot_runtime.format import header as head
from ingot_runtime.format.alternative import decode_alternative
from ingot_runtime.format.plan import BundlePlan
from ingot_runtime.format.source import Source

from .bind_device import OWN, Candidate
from .device import Device
from .registry import OPEN


def open_device(
    source: Source,
    plan: BundlePlan,
    index: int,
    candidates: tuple[Candidate, ...],
    features: frozenset[str],
) -> "tuple[Device, Candidate]":
    """Open device `index` of the plan; return it and the candidate that it is.

    Raises:
        BundleError: none is here, each with its reason; or one is here and cannot be opened.
    """
    name, missing = plan.devices[index].name, list[IncompatibleError]()
    for each in candidates:
        code, where = _code(source, plan, index, each)
        try:
            return OPEN[each.kind](name, each.id, each.library, code, where, features), each
        except IncompatibleError as error:
            missing.append(error)
    if len(missing) == 1:
        raise missing[0]
    listed = ", ".join(each.device for each in candidates)
    why = "; ".join(f"{each.what}: {each.why}" for each in missing)
    do = f"{missing[-1].do}; or compile the model for a device that is here"
    raise IncompatibleError(f"no device for {name!r} here: {listed}", source.name, why, do)


def _code(source: Source, plan: BundlePlan, index: int, each: Candidate) -> "tuple[bytes, str]":
    """Return the code that a candidate runs, and the section that has it."""
    if each.alternative == OWN:
        number = plan.devices[index].library
        return source.section(head.LIBRARY, number), f"section library {number}"
    where = f"section alternative {each.alternative}"
    data = source.section(head.ALTERNATIVE, each.alternative)
    return data[decode_alternative(data, plan, where)[1] :], where
