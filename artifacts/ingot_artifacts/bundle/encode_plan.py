"""The bytes of the sections of plan and values: FORMAT.md, "Words and texts".

In: a ``BundlePlan``. Out: bytes that ``ingot_runtime.format.plan.decode_plan`` reads back. Not done
here: checking the plan (its reader does).
"""

import struct
from collections.abc import Sequence

from ingot_runtime.format.plan import (
    DEVICE_KINDS,
    PLAN_VERSION,
    BundlePlan,
    DevicePlan,
    LibraryPlan,
    TensorPlan,
    VariantPlan,
)


class PlanWriter:
    """Collects words and texts in the order that ``Reader`` reads them."""

    __slots__ = ("_texts", "_words")

    def __init__(self) -> None:
        self._words: list[int] = []
        self._texts: list[bytes] = []

    def word(self, *values: int) -> None:
        """Append words."""
        self._words += values

    def text(self, text: str) -> None:
        """Append a text and the word with its length in bytes."""
        data = text.encode()
        self._words.append(len(data))
        self._texts.append(data)

    def data(self) -> bytes:
        """Return the whole stream."""
        return struct.pack(f"<q{len(self._words)}q", len(self._words), *self._words) + b"".join(
            self._texts
        )


def encode_plan(plan: BundlePlan) -> bytes:
    """Return the bytes of the plan section."""
    out = PlanWriter()
    out.word(PLAN_VERSION)
    out.text(plan.model)
    out.word(len(plan.devices))
    for device in plan.devices:
        _encode_device(out, device)
    out.word(len(plan.libraries))
    for library in plan.libraries:
        encode_library(out, library)
    _encode_texts(out, plan.symbols)
    _encode_tensors(out, plan.inputs)
    _encode_tensors(out, plan.outputs)
    out.word(len(plan.variants))
    for variant in plan.variants:
        _encode_variant(out, variant)
    return out.data()


def encode_values(values: Sequence[Sequence[tuple[str, str]]]) -> bytes:
    """Return the bytes of the section of values: name and form of all inputs, then of all outputs."""
    out = PlanWriter()
    for named in values:
        out.word(len(named))
        for name, form in named:
            out.text(name)
            out.text(form)
    return out.data()


def _encode_device(out: PlanWriter, device: DevicePlan) -> None:
    out.text(device.name)
    out.word(DEVICE_KINDS.index(device.kind), device.id)
    out.text(device.scope)
    out.word(device.library)


def encode_library(out: PlanWriter, library: LibraryPlan) -> None:
    """Append what a library is."""
    out.word(DEVICE_KINDS.index(library.kind))
    out.text(library.target)
    _encode_texts(out, library.features)
    out.word(library.kernel_count)


def _encode_tensors(out: PlanWriter, tensors: tuple[TensorPlan, ...]) -> None:
    out.word(len(tensors))
    for tensor in tensors:
        out.text(tensor.name)
        out.word(tensor.dtype, len(tensor.dims), *tensor.dims)


def _encode_variant(out: PlanWriter, variant: VariantPlan) -> None:
    out.text(variant.target)
    out.word(variant.rank)
    _encode_texts(out, variant.features)
    out.word(variant.kernel_count, *variant.workspace_bytes, len(variant.ranges))
    for offset, size_bytes in variant.ranges:
        out.word(offset, size_bytes)


def _encode_texts(out: PlanWriter, texts: tuple[str, ...]) -> None:
    out.word(len(texts))
    for text in texts:
        out.text(text)
