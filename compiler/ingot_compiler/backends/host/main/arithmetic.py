"""Instructions of a program that compute: numbers, sizes of tensors, sizes that `main` reports.

In: an instruction, registers, the frame. Out: lines of IR without branches, over ``%frame`` and
``%call``. Not done here: buffers, launches and flow (``steps``).
"""

from ingot_compiler.backends.host.main.frame import MainFrame, frame_field
from ingot_compiler.backends.host.main.instruction import numbers_of, opcode_name
from ingot_compiler.backends.host.main.read import read_element
from ingot_compiler.backends.host.main.registers import Registers
from ingot_runtime.format import abi
from ingot_runtime.format.program import Instruction

_BIT = "  {v}.bit = icmp {predicate} i64 {a}, {b}\n"
_COMPARED = _BIT + "  {v} = zext i1 {v}.bit to i64"
_SELECTED = _BIT + "  {v} = select i1 {v}.bit, i64 {a}, i64 {b}"
_BINARY = {
    "add": "  {v} = add i64 {a}, {b}",
    "sub": "  {v} = sub i64 {a}, {b}",
    "mul": "  {v} = mul i64 {a}, {b}",
    "floordiv": "  {v} = call i64 @main.floordiv(i64 {a}, i64 {b})",
    "mod": "  {v} = call i64 @main.mod(i64 {a}, i64 {b})",
    "eq": _COMPARED.replace("{predicate}", "eq"),
    "lt": _COMPARED.replace("{predicate}", "slt"),
    "le": _COMPARED.replace("{predicate}", "sle"),
    "min": _SELECTED.replace("{predicate}", "slt"),
    "max": _SELECTED.replace("{predicate}", "sgt"),
}
"""Opcode -> the lines that define ``v`` as a function of ``a`` and ``b``."""


def arithmetic(instruction: Instruction, registers: Registers, frame: MainFrame) -> list[str]:
    """Write one instruction."""
    operands = numbers_of(instruction)
    match opcode_name(instruction):
        case "const":
            return registers.write(operands[0], str(operands[1]))
        case "input_dim":
            return _input_dim(registers, *operands)
        case "held_bytes":
            return _held_bytes(registers, *operands)
        case "output_dim":
            return _output_dim(registers, *operands)
        case "scratch_bytes":
            return _raise_to(registers, operands[0], frame.scratch_needed_at)
        case "workspace_bytes":
            device, register = operands
            return _raise_to(registers, register, frame.workspaces_needed_at + 8 * device)
        case "read":
            return _read_buffer(registers, frame, *operands)
        case name:
            return _binary(registers, name, *operands)


def _binary(registers: Registers, name: str, register: int, left: int, right: int) -> list[str]:
    a, b, value = (registers.fresh(prefix) for prefix in ("a", "b", "v"))
    return [
        *registers.read(left, a),
        *registers.read(right, b),
        _BINARY[name].format(v=value, a=a, b=b),
        *registers.write(register, value),
    ]


def _input_dim(registers: Registers, register: int, tensor: int, axis: int) -> list[str]:
    value, place = registers.fresh("v"), registers.fresh("p")
    return [
        *_dimension("inputs", tensor, axis, place),
        f"  {value} = load i64, ptr {place}, align 8",
        *registers.write(register, value),
    ]


def _held_bytes(registers: Registers, register: int, given: int, made: int) -> list[str]:
    """The bytes of an output that begins where an input does, else 0."""
    value, place = registers.fresh("v"), registers.fresh("p")
    return [
        *_tensor_field("inputs", given, "data", f"{place}.in"),
        *_tensor_field("outputs", made, "data", f"{place}.out"),
        *_tensor_field("outputs", made, "bytes", f"{place}.bytes"),
        f"  {value}.same = icmp eq i64 {place}.in, {place}.out",
        f"  {value} = select i1 {value}.same, i64 {place}.bytes, i64 0",
        *registers.write(register, value),
    ]


def _tensor_field(kind: str, tensor: int, name: str, value: str) -> list[str]:
    """Define ``value``: a field of the caller's struct of a tensor."""
    at = tensor * abi.TENSOR.size_bytes + abi.TENSOR.offsets[name]
    return [
        f"  {value}.list.p = getelementptr i8, ptr %call, i64 {abi.CALL.offsets[kind]}",
        f"  {value}.list = load ptr, ptr {value}.list.p, align 8",
        f"  {value}.p = getelementptr i8, ptr {value}.list, i64 {at}",
        f"  {value} = load i64, ptr {value}.p, align 8",
    ]


def _output_dim(registers: Registers, tensor: int, axis: int, register: int) -> list[str]:
    value, place = registers.fresh("v"), registers.fresh("p")
    return [
        *_dimension("outputs", tensor, axis, place),
        *registers.read(register, value),
        f"  store i64 {value}, ptr {place}, align 8",
    ]


def _dimension(kind: str, tensor: int, axis: int, place: str) -> list[str]:
    """Define ``place``: the address of a dimension in the caller's struct."""
    shape_at = tensor * abi.TENSOR.size_bytes + abi.TENSOR.offsets["shape"]
    return [
        f"  {place}.list.p = getelementptr i8, ptr %call, i64 {abi.CALL.offsets[kind]}",
        f"  {place}.list = load ptr, ptr {place}.list.p, align 8",
        f"  {place}.shape.p = getelementptr i8, ptr {place}.list, i64 {shape_at}",
        f"  {place}.shape = load ptr, ptr {place}.shape.p, align 8",
        f"  {place} = getelementptr i64, ptr {place}.shape, i64 {axis}",
    ]


def _raise_to(registers: Registers, register: int, at: int) -> list[str]:
    """Raise a size in the frame to what a register holds, if that is more."""
    value, place = registers.fresh("v"), registers.fresh("p")
    return [
        *registers.read(register, value),
        frame_field(place, at),
        f"  {value}.old = load i64, ptr {place}, align 8",
        f"  {value}.more = icmp ugt i64 {value}, {value}.old",
        f"  {value}.max = select i1 {value}.more, i64 {value}, i64 {value}.old",
        f"  store i64 {value}.max, ptr {place}, align 8",
    ]


def _read_buffer(
    registers: Registers, frame: MainFrame, register: int, buffer: int, at: int, dtype: int
) -> list[str]:
    """Read one element of a buffer; the register ``at`` holds its index."""
    index, value, address = (registers.fresh(prefix) for prefix in ("i", "v", "p"))
    return [
        *registers.read(at, index),
        frame_field(f"{address}.slot", frame.buffers_at + 8 * buffer),
        f"  {address} = load ptr, ptr {address}.slot, align 8",
        *read_element(dtype, address, index, value),
        *registers.write(register, value),
    ]
