"""The functions of `main` that are the same for every program, as LLVM IR in ``ll/``.

In: the frame, the numbers of a program. Out: IR text. Not done here: the steps of a program, which
call them (``steps``).

The files hold ``$NAME`` where a number belongs. ``$call_FIELD``, ``$tensor_FIELD`` and
``$device_FIELD`` are offsets in the structs of ``abi``, ``$frame_FIELD`` those in the frame of
`main`; ``abi`` has ``$rc_NAME`` and ``$pool_FIELD`` as well. Between functions that return a code, 0 goes on and
anything else ends `main`.
"""

from collections.abc import Mapping
from importlib.resources import files
from string import Template

from ingot_compiler.backends.host.main.frame import MainFrame
from ingot_runtime.format import abi

SIZES_DONE = -1
"""Returned by ``main.begin`` when the caller asked for sizes only."""

BUFFER_KINDS = {
    "buffer_input": 0,
    "buffer_output": 1,
    "buffer_weights": 2,
    "buffer_workspace": 3,
    "buffer_device_weights": 4,
}
"""Opcode that places a buffer -> kind in a row of the table of ``main.buffers``."""

_TEXTS = {
    "counts": "the number of inputs, outputs or devices is not the program's",
    "weights": "the weights are smaller than the program's",
    "tensor": (
        "a tensor's rank, element type, shape or size in bytes is not what the program expects"
    ),
    "workspace": "a workspace is smaller than the program needs",
    "frame": "the frame is smaller than the program needs",
    "grow": "no memory for a result whose size depends on data",
    "device": "a device cannot copy or launch",
}
_RETURN_CODES = {
    "abi": abi.RC_ABI,
    "bad_input": abi.RC_BAD_INPUT,
    "cancelled": abi.RC_CANCELLED,
    "device": abi.RC_DEVICE,
    "limit": abi.RC_LIMIT,
    "ok": abi.RC_OK,
}
_NUMBERS: dict[str, int] = {
    "abi_version": abi.ABI_VERSION,
    "call_size_bytes": abi.CALL.size_bytes,
    "tensor_size_bytes": abi.TENSOR.size_bytes,
    "device_size_bytes": abi.DEVICE.size_bytes,
    "flag_sizes_only": abi.FLAG_SIZES_ONLY,
    "sizes_done": SIZES_DONE,
    "check_shape": 1,
    "check_bytes": 2,
    "check_shape_and_bytes": 3,
    "profile_begin": 0,
    "profile_end": 1,
    **BUFFER_KINDS,
    **{f"call_{name}": offset for name, offset in abi.CALL.offsets.items()},
    **{f"tensor_{name}": offset for name, offset in abi.TENSOR.offsets.items()},
    **{f"device_{name}": offset for name, offset in abi.DEVICE.offsets.items()},
    **{f"pool_{name}": abi.POOL_OFFSETS[name] for name in ("work", "work_before")},
    **{f"rc_{name}": code for name, code in _RETURN_CODES.items()},
    **{f"text_{name}_size_bytes": len(text) for name, text in _TEXTS.items()},
}
"""What does not depend on the program."""


def frame_numbers(frame: MainFrame) -> dict[str, int]:
    """Return the numbers of the files that follow from a frame."""
    return {
        "device_count": frame.device_count,
        "frame_scratch_needed": frame.scratch_needed_at,
        "frame_workspaces_needed": frame.workspaces_needed_at,
        "frame_workspaces_size_bytes": 8 * frame.device_count,
        "frame_registers": frame.registers_at,
        "frame_registers_size_bytes": 8 * frame.register_count,
        "frame_buffers": frame.buffers_at,
        "frame_arguments": frame.arguments_at,
        "frame_scalars": frame.scalars_at,
        "frame_size_bytes": frame.size_bytes,
    }


def write_helpers(numbers: Mapping[str, int], attributes: str) -> str:
    """Write what the steps call: declarations, error texts, functions.

    Args:
        numbers: those of `frame_numbers`; ``input_count`` and ``output_count``, ``weights_bytes``
            of the program.
        attributes: those of every function.
    """
    functions = ("checks", "buffers", "launches")
    parts = [fill_in("declarations", numbers), *map(_error_text, _TEXTS)]
    parts += [fill_in(name, numbers, attributes=attributes) for name in functions]
    return "".join(parts)


def fill_in(name: str, numbers: Mapping[str, int], **texts: str) -> str:
    """Write the file ``ll/NAME.ll``.

    Raises:
        KeyError: the file names what is neither among the numbers nor among the texts.
    """
    folder = files("ingot_compiler.backends.host.main.ll")
    template = Template((folder / f"{name}.ll").read_text(encoding="utf-8"))
    return template.substitute({**_NUMBERS, **numbers, **texts})


def _error_text(name: str) -> str:
    text = _TEXTS[name]
    return f'@text.{name} = private constant [{len(text)} x i8] c"{text}"\n'
