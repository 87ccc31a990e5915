"""The manifest: the plan for people and other programs, in canonical msgpack. FORMAT.md,
"Manifest".

In: a plan. Out: the manifest's only permitted bytes; a loader compares instead of parsing, so
hostile msgpack is never decoded and the two cannot disagree. Not done here: decoding.
"""

from .dtypes import DTYPE_NAMES
from .msgpack_canonical import pack
from .plan import BundlePlan, LibraryPlan, TensorPlan, VariantPlan

_DEVICE = ("name", "kind", "id", "scope", "library")


def manifest_dict(plan: BundlePlan) -> dict[str, object]:
    """Return the manifest as plain values."""
    return {
        "model": plan.model,
        "devices": [{name: getattr(device, name) for name in _DEVICE} for device in plan.devices],
        "libraries": list(map(library_dict, plan.libraries)),
        "symbols": list(plan.symbols),
        "inputs": [_tensor(spec, plan.symbols) for spec in plan.inputs],
        "outputs": [_tensor(spec, plan.symbols) for spec in plan.outputs],
        "variants": [
            {
                "rank": variant.rank,
                "workspace_bytes": list(variant.workspace_bytes),
                **_code(variant),
            }
            for variant in plan.variants
        ],
    }


def library_dict(library: LibraryPlan) -> dict[str, object]:
    """Return a library as plain values."""
    return {"kind": library.kind, **_code(library)}


def _tensor(spec: TensorPlan, symbols: tuple[str, ...]) -> dict[str, object]:
    shape = list(spec.shape(symbols))
    return {"name": spec.name, "dtype": DTYPE_NAMES[spec.dtype], "shape": shape}


def _code(spec: "VariantPlan | LibraryPlan") -> dict[str, object]:
    features = list(spec.features)
    return {"target": spec.target, "features": features, "kernels": spec.kernel_count}


def manifest_bytes(plan: BundlePlan) -> bytes:
    """Return the bytes that the manifest section of a bundle with `plan` MUST hold."""
    return pack(manifest_dict(plan))
