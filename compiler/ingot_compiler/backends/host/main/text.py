"""Short pieces of IR that the functions of `main` share: fields of the call struct, of the frame,
error texts.

In: names and offsets. Out: lines of IR. Not done here: whole functions.
"""

from ingot_runtime.format import abi

TEXTS = {
    "counts": "the number of inputs, outputs or devices is not the program's",
    "weights": "the weights are smaller than the program's",
    "tensor": "a tensor's rank, element type, shape or size in bytes is not what the program expects",
    "workspace": "a workspace is smaller than the program needs",
    "frame": "the frame is smaller than the program needs",
    "grow": "no memory for a result whose size depends on data",
    "device": "a device cannot copy or launch",
}
"""Error texts of `main` itself, by name."""


def call_load(name: str, kind: str, *, tag: str = "") -> str:
    """Define ``%NAME[tag]``: a field of the call struct ``%call``."""
    at = abi.CALL.offsets[name]
    width = 4 if kind == "i32" else 8
    return (
        f"  %{name}{tag}.p = getelementptr i8, ptr %call, i64 {at}\n"
        f"  %{name}{tag} = load {kind}, ptr %{name}{tag}.p, align {width}"
    )


def frame_field(name: str, at: int) -> str:
    """Define ``%NAME``: an address in ``%frame``."""
    return f"  %{name} = getelementptr i8, ptr %frame, i64 {at}"


def fail_call(name: str) -> str:
    """Call ``main.fail`` with one of `TEXTS`."""
    return f"call void @main.fail(ptr %call, ptr @text.{name}, i64 {len(TEXTS[name])})"
