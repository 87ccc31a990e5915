"""The plan of a bundle: what the loader reads first, without code and weights.

In: ``BundleContents``. Out: ``BundlePlan``. Not done here: its bytes (``encode_plan``).
"""

from ingot_artifacts.bundle.contents import (
    BundleContents,
    BundleTensor,
    LibrarySpec,
    VariantImage,
)
from ingot_artifacts.bundle.symbols import dims_of
from ingot_runtime.format.dtypes import DTYPE_CODES
from ingot_runtime.format.plan import (
    BundlePlan,
    DevicePlan,
    LibraryPlan,
    StatePlan,
    TensorPlan,
    VariantPlan,
)


def plan_of(contents: BundleContents) -> BundlePlan:
    """Return the plan that describes `contents`."""
    symbols = contents.symbols
    devices = [
        DevicePlan(device.name, device.kind, device.id, device.scope, device.library)
        for device in contents.devices
    ]
    plan = BundlePlan(
        model=contents.model,
        devices=tuple(devices),
        libraries=tuple(map(library_plan, contents.libraries)),
        symbols=symbols,
        inputs=_tensor_plans(contents.inputs, symbols),
        outputs=_tensor_plans(contents.outputs, symbols),
        variants=tuple(map(_variant_plan, contents.variants)),
    )
    plan.states = tuple(StatePlan(it.input, it.output, it.axis) for it in contents.states)
    return plan


def library_plan(library: LibrarySpec) -> LibraryPlan:
    """Return what the plan says of a library."""
    return LibraryPlan(library.kind, library.target, library.features, len(library.kernels))


def _tensor_plans(
    tensors: tuple[BundleTensor, ...], symbols: tuple[str, ...]
) -> tuple[TensorPlan, ...]:
    return tuple(
        TensorPlan(tensor.name, DTYPE_CODES[tensor.dtype], dims_of(tensor.shape, symbols))
        for tensor in tensors
    )


def _variant_plan(variant: VariantImage) -> VariantPlan:
    return VariantPlan(
        target=variant.target,
        rank=variant.rank,
        features=variant.features,
        kernel_count=len(variant.kernels),
        workspace_bytes=variant.workspace_bytes,
        ranges=tuple((offset, size) for offset, size in variant.weight_ranges if size),
        processors=variant.processors,
    )
