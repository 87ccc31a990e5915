"""``memcpy``, ``memmove``, ``memset``, ``memcmp``, ``bcmp``: what LLVM calls by itself, for images that have no libc.

In: a target. Out: IR of the five, hidden. Not done here: speed beyond one plain vector loop.
They carry "no-builtins": otherwise their own loops would become calls of themselves.
"""

from ingot_compiler.backends.host.support.parts import attributes, vector
from ingot_compiler.backends.host.targets.target import Target


def write_memory(target: Target) -> str:
    """Write all five."""
    return _move(target) + _set(target) + _compare(target)


def _move(target: Target) -> str:
    """Write ``memmove`` and ``memcpy``: blocks forwards or backwards; the odd end is read before anything is written.

    Forwards, block i is read before block i - 1 + one block is written over it only if the target lies below the
    source; backwards is the mirror image. Short ones go byte by byte in the same direction.
    """
    size = 4 * target.f32_lanes
    return f"""
define hidden ptr @memcpy(ptr %to, ptr %from, i64 %n) {attributes(target, "memcpy")} {{
  %r = call ptr @memmove(ptr %to, ptr %from, i64 %n)
  ret ptr %to
}}
define hidden ptr @memmove(ptr %to, ptr %from, i64 %n) {attributes(target, "memmove")} {{
entry:
  %to.i = ptrtoint ptr %to to i64
  %from.i = ptrtoint ptr %from to i64
  %distance = sub i64 %to.i, %from.i
  %backwards = icmp ult i64 %distance, %n
  %short = icmp ult i64 %n, {size}
  br i1 %short, label %bytes, label %blocks
bytes:
  %none = icmp eq i64 %n, 0
  br i1 %none, label %done, label %byte
byte:
  %b = phi i64 [ 0, %bytes ], [ %b.next, %byte ]
  %b.up = sub i64 %n, %b
  %b.down = sub i64 %b.up, 1
  %b.at = select i1 %backwards, i64 %b.down, i64 %b
  %b.from = getelementptr i8, ptr %from, i64 %b.at
  %b.value = load i8, ptr %b.from, align 1
  %b.to = getelementptr i8, ptr %to, i64 %b.at
  store i8 %b.value, ptr %b.to, align 1
  %b.next = add i64 %b, 1
  %b.more = icmp ult i64 %b.next, %n
  br i1 %b.more, label %byte, label %done
{_move_blocks(target)}"""


def _move_blocks(target: Target) -> str:
    """Write the rest of ``memmove``, for at least one vector; the two ends may overlap what lies between."""
    size, vec = 4 * target.f32_lanes, vector(target)
    return f"""\
blocks:
  %end = sub i64 %n, {size}
  %end.from = getelementptr i8, ptr %from, i64 %end
  %end.to = getelementptr i8, ptr %to, i64 %end
  %end.value = load {vec}, ptr %end.from, align 1
  %start.value = load {vec}, ptr %from, align 1
  br i1 %backwards, label %down, label %up
up:
  %u = phi i64 [ 0, %blocks ], [ %u.next, %up.step ]
  %u.more = icmp ult i64 %u, %end
  br i1 %u.more, label %up.step, label %up.end
up.step:
  %u.from = getelementptr i8, ptr %from, i64 %u
  %u.value = load {vec}, ptr %u.from, align 1
  %u.to = getelementptr i8, ptr %to, i64 %u
  store {vec} %u.value, ptr %u.to, align 1
  %u.next = add i64 %u, {size}
  br label %up
up.end:
  store {vec} %end.value, ptr %end.to, align 1
  br label %done
down:
  %d = phi i64 [ %end, %blocks ], [ %d.next, %down.step ]
  %d.more = icmp sgt i64 %d, 0
  br i1 %d.more, label %down.step, label %down.end
down.step:
  %d.from = getelementptr i8, ptr %from, i64 %d
  %d.value = load {vec}, ptr %d.from, align 1
  %d.to = getelementptr i8, ptr %to, i64 %d
  store {vec} %d.value, ptr %d.to, align 1
  %d.next = sub i64 %d, {size}
  br label %down
down.end:
  store {vec} %start.value, ptr %to, align 1
  br label %done
done:
  ret ptr %to
}}
"""


def _set(target: Target) -> str:
    size = 4 * target.f32_lanes
    vec = f"<{size} x i8>"
    return f"""
define hidden ptr @memset(ptr %to, i32 %value, i64 %n) {attributes(target, "memset")} {{
entry:
  %byte = trunc i32 %value to i8
  %one = insertelement {vec} poison, i8 %byte, i32 0
  %all = shufflevector {vec} %one, {vec} poison, <{size} x i32> zeroinitializer
  %short = icmp ult i64 %n, {size}
  br i1 %short, label %bytes, label %blocks
bytes:
  %none = icmp eq i64 %n, 0
  br i1 %none, label %done, label %next
next:
  %b = phi i64 [ 0, %bytes ], [ %b.next, %next ]
  %b.to = getelementptr i8, ptr %to, i64 %b
  store i8 %byte, ptr %b.to, align 1
  %b.next = add i64 %b, 1
  %b.more = icmp ult i64 %b.next, %n
  br i1 %b.more, label %next, label %done
blocks:
  %end = sub i64 %n, {size}
  br label %block
block:
  %u = phi i64 [ 0, %blocks ], [ %u.next, %block.step ]
  %u.more = icmp ult i64 %u, %end
  br i1 %u.more, label %block.step, label %block.end
block.step:
  %u.to = getelementptr i8, ptr %to, i64 %u
  store {vec} %all, ptr %u.to, align 1
  %u.next = add i64 %u, {size}
  br label %block
block.end:
  %end.to = getelementptr i8, ptr %to, i64 %end
  store {vec} %all, ptr %end.to, align 1
  br label %done
done:
  ret ptr %to
}}
"""


def _compare(target: Target) -> str:
    return f"""
define hidden i32 @bcmp(ptr %a, ptr %b, i64 %n) {attributes(target, "bcmp")} {{
  %r = call i32 @memcmp(ptr %a, ptr %b, i64 %n)
  ret i32 %r
}}
define hidden i32 @memcmp(ptr %a, ptr %b, i64 %n) {attributes(target, "memcmp")} {{
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i.next, %same ]
  %some = icmp ult i64 %i, %n
  br i1 %some, label %byte, label %equal
equal:
  ret i32 0
byte:
  %a.p = getelementptr i8, ptr %a, i64 %i
  %b.p = getelementptr i8, ptr %b, i64 %i
  %x = load i8, ptr %a.p, align 1
  %y = load i8, ptr %b.p, align 1
  %differ = icmp ne i8 %x, %y
  br i1 %differ, label %order, label %same
same:
  %i.next = add i64 %i, 1
  br label %look
order:
  %x.w = zext i8 %x to i32
  %y.w = zext i8 %y to i32
  %difference = sub i32 %x.w, %y.w
  ret i32 %difference
}}
"""
