"""The refusal of bundles with devices beside the host.

In: what is exported, a bundle's plan. Out: nothing. Not done here: what else an export needs.
"""

from __future__ import annotations

from ingot_compiler.ir.errors import UnsupportedError
from ingot_runtime.format.plan import BundlePlan


def require_host(what: str, bundle: str, plan: BundlePlan) -> None:
    """Require a bundle whose devices are all memory of the host.

    Raises:
        UnsupportedError: it has another one.
    """
    beside = [device for device in plan.devices if device.kind != "host"]
    if beside:
        why = f"the bundle has the device {beside[0].name!r} of kind {beside[0].kind}"
        do = "compile it for the host alone, or run it by the Python loader"
        raise UnsupportedError(f"{what} runs on the host alone", bundle, why, do)
