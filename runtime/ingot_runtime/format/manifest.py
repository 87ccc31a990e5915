"""The manifest: the plan for people and other programs, in canonical msgpack. FORMAT.md,
"Manifest".

In: a plan. Out: the manifest's only permitted bytes; a loader compares instead of parsing, so
hostile msgpack is never decoded and the two cannot disagree. Not done here: decoding.
"""

from .dtypes import DTYPE_NAMES
from .msgpack_canonical import pack
from .plan import BundlePlan, LibraryPlan, TensorPlan, VariantPlan


def manifest_dict(plan: BundlePlan) -> dict[str, object]:
    """Return the manifest as plain values: model, devices, libraries, symbols, inputs, outputs,
    variants."""

    def tensors(specs: tuple[TensorPlan, ...]) -> list[object]:
        return [
            {
                "name": spec.name,
                "dtype": DTYPE_NAMES[spec.dtype],
                "shape": list(spec.shape(plan.symbols)),
            }
            for spec in specs
        ]

    def code(spec: "VariantPlan | LibraryPlan") -> dict[str, object]:
        return {
            "target": spec.target,
            "features": list(spec.features),
            "kernels": spec.kernel_count,
        }

    return {
        "model": plan.model,
        "devices": [
            {name: getattr(device, name) for name in ("name", "kind", "id", "scope", "library")}
            for device in plan.devices
        ],
        "libraries": [{"kind": library.kind, **code(library)} for library in plan.libraries],
        "symbols": list(plan.symbols),
        "inputs": tensors(plan.inputs),
        "outputs": tensors(plan.outputs),
        "variants": [
            {
                "rank": variant.rank,
                "workspace_bytes": list(variant.workspace_bytes),
                **code(variant),
            }
            for variant in plan.variants
        ],
    }


def manifest_bytes(plan: BundlePlan) -> bytes:
    """Return the bytes that the manifest section of a bundle with `plan` MUST hold."""
    return pack(manifest_dict(plan))
