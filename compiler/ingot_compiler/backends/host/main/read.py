"""Reading one element of a buffer as an integer, for sizes that depend on data.

In: dtype code, names of address and index. Out: lines of IR. Not done here: checking the index.
"""

from ingot_runtime.format.dtypes import DTYPE_NAMES, DTYPE_SIZES_BYTES

_FLOATS = {"f32": "float", "f64": "double", "f16": "half", "bf16": "bfloat"}


def read_element(dtype: int, address: str, index: str, value: str) -> list[str]:
    """Define `value`: element `index` of the buffer at `address`, floats rounded towards zero,
    saturated, NaN as 0."""
    name, size_bytes = DTYPE_NAMES[dtype], DTYPE_SIZES_BYTES[dtype]
    bits = f"i{8 * size_bytes}"
    lines = [
        f"  {value}.at = getelementptr {bits}, ptr {address}, i64 {index}",
        f"  {value}.bits = load {bits}, ptr {value}.at, align {size_bytes}",
    ]
    if name in _FLOATS:
        return lines + _float(name, bits, value)
    if size_bytes == 8:
        return [*lines, f"  {value} = add i64 0, {value}.bits"]
    # Of types whose bits are a code, the code.
    widen = "sext" if name in ("i8", "i16", "i32") else "zext"
    return [*lines, f"  {value} = {widen} {bits} {value}.bits to i64"]


def _float(name: str, bits: str, value: str) -> list[str]:
    lines: list[str] = []
    if name == "bf16":
        lines += [
            f"  {value}.wide = zext i16 {value}.bits to i32",
            f"  {value}.up = shl i32 {value}.wide, 16",
        ]
        lines.append(f"  {value}.float = bitcast i32 {value}.up to float")
    elif name == "f16":
        lines += [
            f"  {value}.half = bitcast i16 {value}.bits to half",
            f"  {value}.float = fpext half {value}.half to float",
        ]
    else:
        lines.append(f"  {value}.float = bitcast {bits} {value}.bits to {_FLOATS[name]}")
    kind = "double" if name == "f64" else "float"
    suffix = "f64" if name == "f64" else "f32"
    return [*lines, f"  {value} = call i64 @llvm.fptosi.sat.i64.{suffix}({kind} {value}.float)"]
