"""``checksum_verify``, ``checksum_mib``: the lane checksum of whole MiBs; it finds accidents, not attackers.

In: a target. Out: IR of ``ingot_checksum_verify``, ``ingot_checksum_mib``. Not done here: lengths other than a MiB.
Definition: FORMAT.md, "lane checksum": 64 lanes of u32 over 4096 rows, folded into a u64.
"""

from ingot_compiler.backends.host.support.parts import attributes, vector, verifying_kernel
from ingot_compiler.backends.host.targets.target import Target

_LANES = 64
_ROW_BYTES = 4 * _LANES
_START_STEP = 0x9E3779B1
_MULTIPLIER = 0x85EBCA77
_TURN = 13
_FOLD = 0x9E3779B97F4A7C15
_BLAKE3_BYTES = 32  # the checksum stands behind it in a row of the tree


def write_checksum(target: Target) -> str:
    """Write both functions."""
    return _mib(target) + _verify(target)


def _mib(target: Target) -> str:
    """Write ``i64 checksum_mib(data)``: all lanes stay in registers over the rows."""
    width, vec = target.f32_lanes, vector(target)
    splat = "<" + ", ".join(f"i32 {_MULTIPLIER}" for _ in range(width)) + ">"
    turn = "<" + ", ".join(f"i32 {_TURN}" for _ in range(width)) + ">"
    phis, steps, stores = list[str](), list[str](), list[str]()
    for part in range(_LANES // width):
        start = ", ".join(f"i32 {(lane * _START_STEP + 1) % 2**32}" for lane in range(part * width, (part + 1) * width))
        phis.append(f"  %a{part} = phi {vec} [ <{start}>, %entry ], [ %n{part}, %row ]")
        steps += [
            f"  %p{part} = getelementptr i8, ptr %row.p, i64 {4 * width * part}",
            f"  %w{part} = load {vec}, ptr %p{part}, align 4",
            f"  %x{part} = xor {vec} %a{part}, %w{part}",
            f"  %m{part} = mul {vec} %x{part}, {splat}",
            f"  %n{part} = call {vec} @llvm.fshl.v{width}i32({vec} %m{part}, {vec} %m{part}, {vec} {turn})",
        ]
        stores += [
            f"  %s{part} = getelementptr i8, ptr %lanes, i64 {4 * width * part}",
            f"  store {vec} %n{part}, ptr %s{part}, align {4 * width}",
        ]
    lines = "\n"
    return f"""
define hidden i64 @ingot_checksum_mib(ptr %data) {attributes(target, "checksum")} {{
entry:
  %lanes = alloca [{_LANES} x i32], align 64
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %row ]
{lines.join(phis)}
  %row.p = getelementptr i8, ptr %data, i64 %r
{lines.join(steps)}
  %r.next = add i64 %r, {_ROW_BYTES}
  %r.more = icmp ult i64 %r.next, {2**20}
  br i1 %r.more, label %row, label %store
store:
{lines.join(stores)}
  br label %fold
fold:
  %l = phi i64 [ 0, %store ], [ %l.next, %fold ]
  %h = phi i64 [ 0, %store ], [ %h.next, %fold ]
  %l.p = getelementptr i32, ptr %lanes, i64 %l
  %l.v = load i32, ptr %l.p, align 4
  %l.w = zext i32 %l.v to i64
  %h.x = xor i64 %h, %l.w
  %h.next = mul i64 %h.x, {_FOLD}
  %l.next = add i64 %l, 1
  %l.more = icmp ult i64 %l.next, {_LANES}
  br i1 %l.more, label %fold, label %done
done:
  ret i64 %h.next
}}
declare {vec} @llvm.fshl.v{width}i32({vec}, {vec}, {vec})
"""


def _verify(target: Target) -> str:
    return verifying_kernel(
        target,
        "checksum",
        f"""\
  %got = call i64 @ingot_checksum_mib(ptr %data)
  %sum.p = getelementptr i8, ptr %entry.p, i64 {_BLAKE3_BYTES}
  %expected = load i64, ptr %sum.p, align 1
  %same = icmp eq i64 %got, %expected""",
    )
