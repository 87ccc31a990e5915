"""``blake3_verify``, ``blake3_mib``: BLAKE3 of whole MiBs, as many chunks at once as a vector has lanes.

In: a target. Out: IR of ``ingot_blake3_verify``, ``ingot_blake3_mib``. Not done here: inputs of any other length.
Source: the BLAKE3 specification, sections 2.1-2.4 (unkeyed). One MiB is 1024 chunks of 16 blocks, hence a complete tree.

Scratch (``abi.VERIFY_SCRATCH_BYTES``): 1024 chaining values of 32 bytes, then 16 message vectors, then 8 result vectors.
Rounds are a loop over message vectors in memory, not straight-line code: LLVM's time is quadratic in the length of a
block, and the loads cost nothing beside the arithmetic.
"""

from ingot_compiler.backends.host.support.parts import attributes, vector, verifying_kernel
from ingot_compiler.backends.host.targets.target import Target

_IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
_PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
_ROUNDS = 7
_CHUNK_START, _CHUNK_END, _PARENT, _ROOT = 1, 2, 4, 8
_CHUNKS = 1024
_MESSAGES_AT = 32 * _CHUNKS
_RESULTS_AT = _MESSAGES_AT + 16 * 64
DIGEST_AT = _RESULTS_AT + 8 * 64
"""Offset in the scratch of the 32 bytes that `blake3_verify` compares."""

# The eight G functions of a round: columns, then diagonals.
_QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def write_blake3(target: Target) -> str:
    """Write both functions and what they share."""
    vec = vector(target)
    return (
        _constants(target)
        + _compress(target)
        + _store_chaining_values(target)
        + _mib(target)
        + _verify(target)
        + f"declare {vec} @llvm.fshl.v{target.f32_lanes}i32({vec}, {vec}, {vec})\n"
    )


def _splat(target: Target, value: int) -> str:
    return "<" + ", ".join(f"i32 {value}" for _ in range(target.f32_lanes)) + ">"


def _constants(target: Target) -> str:
    """Write the message order of all rounds as byte offsets of vectors, and the lane numbers."""
    order, rows = list(range(16)), list[str]()
    for _ in range(_ROUNDS):
        rows += [f"i32 {index * 4 * target.f32_lanes}" for index in order]
        order = [order[index] for index in _PERMUTATION]
    return f"@ingot_blake3_order = private constant [{len(rows)} x i32] [{', '.join(rows)}], align 64\n"


def _compress(target: Target) -> str:
    """Write the compression of `blocks` blocks in each of W inputs that lie `stride` bytes apart.

    ``void (data, i64 stride, i64 blocks, i32 counter, i32 counter_step, i32 flags, i32 first, i32 last, scratch)``:
    `flags` in every block, `first` and `last` in these too. The W results are stored as 8 vectors.
    """
    vec = vector(target)
    lanes = ", ".join(f"i32 {lane}" for lane in range(target.f32_lanes))
    initial = "\n".join(
        f"  %h{i} = phi {vec} [ {_splat(target, _IV[i])}, %entry ], [ %n{i}, %finish ]" for i in range(8)
    )
    return f"""
define internal void @ingot_blake3_compress(ptr %data, i64 %stride, i64 %blocks, i32 %counter, i32 %step, i32 %flags,
                                            i32 %first, i32 %last, ptr %scratch) {attributes(target, "blake3")} {{
entry:
  %messages = getelementptr i8, ptr %scratch, i64 {_MESSAGES_AT}
  %results = getelementptr i8, ptr %scratch, i64 {_RESULTS_AT}
{_spread(target, "step")}
  %lane.count = mul {vec} %step.all, <{lanes}>
{_spread(target, "counter")}
  %count = add {vec} %counter.all, %lane.count
  %final = sub i64 %blocks, 1
  br label %block
block:
  %b = phi i64 [ 0, %entry ], [ %b.next, %finish ]
  %f.first = phi i32 [ %first, %entry ], [ 0, %finish ]
{initial}
  %at = mul i64 %b, 64
  %block.p = getelementptr i8, ptr %data, i64 %at
{_transpose(target)}
  %is.last = icmp eq i64 %b, %final
  %f.last = select i1 %is.last, i32 %last, i32 0
  %f1 = or i32 %flags, %f.first
  %flag = or i32 %f1, %f.last
{_spread(target, "flag")}
  br label %round
{_rounds(target)}
  %b.next = add i64 %b, 1
  %more = icmp ult i64 %b.next, %blocks
  br i1 %more, label %block, label %out
out:
{_store_results(target)}
  ret void
}}
"""


def _spread(target: Target, name: str) -> str:
    """Define ``%NAME.all``: the scalar in every lane."""
    vec = vector(target)
    return (
        f"  %{name}.one = insertelement {vec} poison, i32 %{name}, i32 0\n"
        f"  %{name}.all = shufflevector {vec} %{name}.one, {vec} poison, <{target.f32_lanes} x i32> zeroinitializer"
    )


def _transpose(target: Target) -> str:
    """Load one block of every input and store word i of all of them as message vector i.

    W rows of W words at a time: log2(W) exchange steps; in step d, rows r and r+d swap their off-diagonal d x d parts.
    """
    width, vec, lines = target.f32_lanes, vector(target), list[str]()
    for row in range(width):
        lines += [
            f"  %row{row} = mul i64 %stride, {row}",
            f"  %row{row}.p = getelementptr i8, ptr %block.p, i64 %row{row}",
        ]
    for part in range(16 // width):
        rows = [f"%t{part}.0.{row}" for row in range(width)]
        for row in range(width):
            lines += [
                f"  %q{part}.{row} = getelementptr i8, ptr %row{row}.p, i64 {4 * width * part}",
                f"  {rows[row]} = load {vec}, ptr %q{part}.{row}, align 4",
            ]
        distance = 1
        while distance < width:
            rows = _exchange(target, rows, distance, f"%t{part}.{distance}", lines)
            distance *= 2
        for row in range(width):
            at = 4 * width * (part * width + row)
            lines += [
                f"  %m{part}.{row} = getelementptr i8, ptr %messages, i64 {at}",
                f"  store {vec} {rows[row]}, ptr %m{part}.{row}, align {4 * width}",
            ]
    return "\n".join(lines)


def _exchange(target: Target, rows: list[str], distance: int, prefix: str, lines: list[str]) -> list[str]:
    width, vec = target.f32_lanes, vector(target)
    low = [lane if not lane & distance else width + lane - distance for lane in range(width)]
    high = [lane + distance if not lane & distance else width + lane for lane in range(width)]
    result = list(rows)
    for row in range(width):
        if row & distance:
            continue
        for target_row, mask in ((row, low), (row + distance, high)):
            result[target_row] = f"{prefix}.{target_row}"
            indices = ", ".join(f"i32 {index}" for index in mask)
            lines.append(
                f"  {result[target_row]} = shufflevector {vec} {rows[row]}, {vec} {rows[row + distance]}, "
                f"<{width} x i32> <{indices}>"
            )
    return result


def _rounds(target: Target) -> str:
    """Write the loop over rounds: 16 state vectors in registers, one load per message word."""
    vec = vector(target)
    start = [f"%h{i}" for i in range(8)] + [_splat(target, _IV[i]) for i in range(4)]
    start += ["%count", "zeroinitializer", _splat(target, 64), "%flag.all"]
    lines = ["round:", "  %r = phi i64 [ 0, %block ], [ %r.next, %round ]"]
    state = [f"%v{i}" for i in range(16)]
    phis = len(lines)
    for quarter, names in enumerate(_QUARTERS):
        for half in range(2):
            word = f"%w{quarter}.{half}"
            lines += [
                f"  {word}.i = add i64 %r, {2 * quarter + half}",
                f"  {word}.o.p = getelementptr i32, ptr @ingot_blake3_order, i64 {word}.i",
                f"  {word}.o = load i32, ptr {word}.o.p, align 4",
                f"  {word}.o64 = zext i32 {word}.o to i64",
                f"  {word}.p = getelementptr i8, ptr %messages, i64 {word}.o64",
                f"  {word} = load {vec}, ptr {word}.p, align {4 * target.f32_lanes}",
            ]
            _half_quarter(target, state, names, word, (16, 12) if half == 0 else (8, 7), lines)
    lines[phis:phis] = [f"  %v{i} = phi {vec} [ {start[i]}, %block ], [ {state[i]}, %round ]" for i in range(16)]
    lines += [
        "  %r.next = add i64 %r, 16",
        f"  %r.more = icmp ult i64 %r.next, {16 * _ROUNDS}",
        "  br i1 %r.more, label %round, label %finish",
    ]
    # The new chaining values, outside of the loop.
    return (
        "\n".join(lines)
        + "\nfinish:\n"
        + "\n".join(f"  %n{i} = xor {vec} {state[i]}, {state[i + 8]}" for i in range(8))
    )


def _half_quarter(
    target: Target, state: list[str], names: tuple[int, ...], word: str, turns: tuple[int, int], lines: list[str]
) -> None:
    """Append half a G: a += b + word; d = (d ^ a) >>> turn; c += d; b = (b ^ c) >>> turn."""
    vec, a, b, c, d = vector(target), *names
    fshl = f"call {vec} @llvm.fshl.v{target.f32_lanes}i32"

    def turned(value: str, turn: int) -> str:
        return f"{fshl}({vec} {value}, {vec} {value}, {vec} {_splat(target, 32 - turn)})"

    lines += [
        f"  {word}.a0 = add {vec} {state[a]}, {word}",
        f"  {word}.a = add {vec} {word}.a0, {state[b]}",
        f"  {word}.d0 = xor {vec} {state[d]}, {word}.a",
        f"  {word}.d = {turned(f'{word}.d0', turns[0])}",
        f"  {word}.c = add {vec} {state[c]}, {word}.d",
        f"  {word}.b0 = xor {vec} {state[b]}, {word}.c",
        f"  {word}.b = {turned(f'{word}.b0', turns[1])}",
    ]
    state[a], state[b], state[c], state[d] = f"{word}.a", f"{word}.b", f"{word}.c", f"{word}.d"


def _store_results(target: Target) -> str:
    vec, size = vector(target), 4 * target.f32_lanes
    return "\n".join(
        f"  %o{i} = getelementptr i8, ptr %results, i64 {i * size}\n  store {vec} %n{i}, ptr %o{i}, align {size}"
        for i in range(8)
    )


def _store_chaining_values(target: Target) -> str:
    """Write ``void (results, out)``: word i of lane l goes to ``out + 32*l + 4*i``."""
    copies = "\n".join(
        f"  %s{i} = getelementptr i8, ptr %from, i64 {4 * target.f32_lanes * i}\n"
        f"  %x{i} = load i32, ptr %s{i}, align 4\n"
        f"  %d{i} = getelementptr i8, ptr %to, i64 {4 * i}\n"
        f"  store i32 %x{i}, ptr %d{i}, align 4"
        for i in range(8)
    )
    return f"""
define internal void @ingot_blake3_store(ptr %results, ptr %out) {attributes(target, "blake3")} {{
entry:
  br label %lane
lane:
  %l = phi i64 [ 0, %entry ], [ %l.next, %lane ]
  %l4 = mul i64 %l, 4
  %from = getelementptr i8, ptr %results, i64 %l4
  %l32 = mul i64 %l, 32
  %to = getelementptr i8, ptr %out, i64 %l32
{copies}
  %l.next = add i64 %l, 1
  %more = icmp ult i64 %l.next, {target.f32_lanes}
  br i1 %more, label %lane, label %out.done
out.done:
  ret void
}}
"""


def _mib(target: Target) -> str:
    """Write ``void blake3_mib(data, out32, scratch)``: all chunks, then level after level of parents, in place.

    A group of W parents reads nodes [2k, 2k + 2W) and writes [k, k + W): never one that is still to be read.
    """
    width = target.f32_lanes
    return f"""
define hidden void @ingot_blake3_mib(ptr %data, ptr %out, ptr %scratch) {attributes(target, "blake3")} {{
entry:
  %results = getelementptr i8, ptr %scratch, i64 {_RESULTS_AT}
  br label %chunks
chunks:
  %c = phi i64 [ 0, %entry ], [ %c.next, %chunks ]
  %c.at = mul i64 %c, 1024
  %c.p = getelementptr i8, ptr %data, i64 %c.at
  %c32 = trunc i64 %c to i32
  call void @ingot_blake3_compress(ptr %c.p, i64 1024, i64 16, i32 %c32, i32 1, i32 0, i32 {_CHUNK_START},
                                   i32 {_CHUNK_END}, ptr %scratch)
  %c.to = mul i64 %c, 32
  %c.out = getelementptr i8, ptr %scratch, i64 %c.to
  call void @ingot_blake3_store(ptr %results, ptr %c.out)
  %c.next = add i64 %c, {width}
  %c.more = icmp ult i64 %c.next, {_CHUNKS}
  br i1 %c.more, label %chunks, label %level
level:
  %parents = phi i64 [ {_CHUNKS // 2}, %chunks ], [ %halved, %level.done ]
  %is.root = icmp eq i64 %parents, 1
  %flag = select i1 %is.root, i32 {_PARENT | _ROOT}, i32 {_PARENT}
  br label %parent
parent:
  %p = phi i64 [ 0, %level ], [ %p.next, %parent ]
  %p.at = mul i64 %p, 64
  %p.p = getelementptr i8, ptr %scratch, i64 %p.at
  call void @ingot_blake3_compress(ptr %p.p, i64 64, i64 1, i32 0, i32 0, i32 %flag, i32 0, i32 0, ptr %scratch)
  %p.to = mul i64 %p, 32
  %p.out = getelementptr i8, ptr %scratch, i64 %p.to
  call void @ingot_blake3_store(ptr %results, ptr %p.out)
  %p.next = add i64 %p, {width}
  %p.more = icmp ult i64 %p.next, %parents
  br i1 %p.more, label %parent, label %level.done
level.done:
  %halved = lshr i64 %parents, 1
  br i1 %is.root, label %copy, label %level
copy:
  %i = phi i64 [ 0, %level.done ], [ %i.next, %copy ]
  %from = getelementptr i8, ptr %scratch, i64 %i
  %x = load i64, ptr %from, align 8
  %to = getelementptr i8, ptr %out, i64 %i
  store i64 %x, ptr %to, align 1
  %i.next = add i64 %i, 8
  %i.more = icmp ult i64 %i.next, 32
  br i1 %i.more, label %copy, label %done
done:
  ret void
}}
"""


def _verify(target: Target) -> str:
    return verifying_kernel(
        target,
        "blake3",
        f"""\
  %digest = getelementptr i8, ptr %scratch, i64 {DIGEST_AT}
  call void @ingot_blake3_mib(ptr %data, ptr %digest, ptr %scratch)
  %got = load i256, ptr %digest, align 8
  %expected = load i256, ptr %entry.p, align 1
  %same = icmp eq i256 %got, %expected""",
    )
