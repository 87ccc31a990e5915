"""``ingot_watch``, ``ingot_run``, ``python_poll``: how a call is stopped from outside, and how a long launch hears of it.

In: a target. Out: IR text. Not done here: setting the flag, reporting why (the loader). Layout: ``abi.WATCH``.
Native code cannot see a signal that CPython has noted, so the calling thread asks now and then: `clock` says when, `poll` asks.
"""

from ingot_compiler.backends.host.support.parts import attributes
from ingot_compiler.backends.host.targets.target import Target
from ingot_runtime.format import abi

_CLOCK_MONOTONIC_COARSE = 6  # some nanoseconds per look, some milliseconds exact
_NANOSECONDS = 1_000_000_000
_PIECE_NANOSECONDS = 8_000_000
# Units of `grain` in the first piece: some tenths of a millisecond.
_FIRST_PIECE_SHIFT = 6
_GRAIN_MAX = 1 << 40


def write_watch(target: Target) -> str:
    """Write all functions."""
    return _now(target) + _watch(target) + _run(target) + _python_poll(target)


def _field(name: str, kind: str) -> str:
    at = abi.WATCH.offsets[name]
    width = 4 if kind == "i32" else 8
    return (
        f"  %{name}.p = getelementptr i8, ptr %watch, i64 {at}\n  %{name} = load {kind}, ptr %{name}.p, align {width}"
    )


def _now(target: Target) -> str:
    """Write ``i64 now(watch)``: nanoseconds of the coarse clock, 0 where the caller gave none."""
    return f"""
define internal i64 @ingot_now(ptr %watch) {attributes(target, "watch")} {{
{_field("clock", "ptr")}
  %none = icmp eq ptr %clock, null
  br i1 %none, label %unknown, label %ask
unknown:
  ret i64 0
ask:
  %time = alloca [2 x i64], align 8
  %rc = call i32 %clock(i32 {_CLOCK_MONOTONIC_COARSE}, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.p = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.p, align 8
  %whole = mul i64 %seconds, {_NANOSECONDS}
  %all = add i64 %whole, %rest
  ret i64 %all
}}
"""


def _watch(target: Target) -> str:
    """Write ``i32 watch(watch, i32 mine)``: 1 if the call shall end; `mine` is 1 on the calling thread, which keeps the time."""
    cancel_at, timed_out_at = abi.WATCH.offsets["cancel"], abi.WATCH.offsets["timed_out"]
    return f"""
define hidden i32 @ingot_watch(ptr %watch, i32 %mine) {attributes(target, "watch")} {{
  %none = icmp eq ptr %watch, null
  br i1 %none, label %go.on, label %look
go.on:
  ret i32 0
look:
  %cancel.p = getelementptr i8, ptr %watch, i64 {cancel_at}
  %cancel = load atomic i32, ptr %cancel.p monotonic, align 4
  %set = icmp ne i32 %cancel, 0
  br i1 %set, label %stop, label %whose
stop:
  ret i32 1
whose:
  %caller = icmp ne i32 %mine, 0
  br i1 %caller, label %time, label %go.on
time:
  %now = call i64 @ingot_now(ptr %watch)
  %timeless = icmp eq i64 %now, 0
  br i1 %timeless, label %go.on, label %dead
dead:
{_field("deadline", "i64")}
  %some = icmp ne i64 %deadline, 0
  %past = icmp uge i64 %now, %deadline
  %late = and i1 %some, %past
  br i1 %late, label %end, label %due
end:
  %timed_out.p = getelementptr i8, ptr %watch, i64 {timed_out_at}
  store i32 1, ptr %timed_out.p, align 4
  br label %cancelled
cancelled:
  store atomic i32 1, ptr %cancel.p monotonic, align 4
  ret i32 1
{_poll()}"""


def _poll() -> str:
    """Write the rest of ``watch``: call `poll` if it is due."""
    next_at = abi.WATCH.offsets["poll_next"]
    return f"""\
due:
{_field("poll", "ptr")}
  %deaf = icmp eq ptr %poll, null
  br i1 %deaf, label %go.on, label %when
when:
  %next.p = getelementptr i8, ptr %watch, i64 {next_at}
  %next = load i64, ptr %next.p, align 8
  %unset = icmp eq i64 %next, 0
  br i1 %unset, label %first, label %compare
first:
{_field("poll_interval", "i64")}
  %then = add i64 %now, %poll_interval
  store i64 %then, ptr %next.p, align 8
  ret i32 0
compare:
  %early = icmp ult i64 %now, %next
  br i1 %early, label %go.on, label %ask
ask:
{_field("poll_context", "i64")}
  %rc = call i32 %poll(i64 %poll_context)
  ; what `poll` ran may have taken long: the next look starts the interval anew
  store i64 0, ptr %next.p, align 8
  %refused = icmp ne i32 %rc, 0
  br i1 %refused, label %cancelled, label %go.on
}}
"""


def _run(target: Target) -> str:
    """Write ``i32 run(kernel, buffers, scalars, i64 first, i64 last, i64 grain, scratch, watch, i32 mine)``.

    A long range is run in pieces of some milliseconds, with a look in between. Kernels never split a sum, so the result does not
    depend on the pieces; a short range, which is nearly every one, is one call.
    """
    kernel = "call i32 %kernel(ptr %buffers, ptr %scalars"
    return f"""
define internal i32 @ingot_run(ptr %kernel, ptr %buffers, ptr %scalars, i64 %first, i64 %last, i64 %grain, ptr %scratch,
                               ptr %watch, i32 %mine) {attributes(target, "launch")} {{
entry:
  %positive = icmp sgt i64 %grain, 1
  %least = select i1 %positive, i64 %grain, i64 1
  %sane = icmp slt i64 %least, {_GRAIN_MAX}
  %unit = select i1 %sane, i64 %least, i64 {_GRAIN_MAX}
  %start = shl i64 %unit, {_FIRST_PIECE_SHIFT}
  %length = sub i64 %last, %first
  %short = icmp sle i64 %length, %start
  %blind = icmp eq ptr %watch, null
  %whole = or i1 %short, %blind
  br i1 %whole, label %at.once, label %pieces
at.once:
  %rc.once = {kernel}, i64 %first, i64 %last, ptr %scratch)
  ret i32 %rc.once
pieces:
  %begun = call i64 @ingot_now(ptr %watch)
  br label %piece
piece:
  %at = phi i64 [ %first, %pieces ], [ %end, %next ]
  %size = phi i64 [ %start, %pieces ], [ %size.next, %next ]
  %before = phi i64 [ %begun, %pieces ], [ %after, %next ]
  %left = sub i64 %last, %at
  %rest = icmp slt i64 %left, %size
  %count = select i1 %rest, i64 %left, i64 %size
  %end = add i64 %at, %count
  %rc = {kernel}, i64 %at, i64 %end, ptr %scratch)
  %bad = icmp ne i32 %rc, 0
  %finished = icmp sge i64 %end, %last
  %over = or i1 %bad, %finished
  br i1 %over, label %done, label %look
done:
  ret i32 %rc
look:
  %stop = call i32 @ingot_watch(ptr %watch, i32 %mine)
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %cancelled, label %next
cancelled:
  ret i32 {abi.RC_CANCELLED}
next:
  %after = call i64 @ingot_now(ptr %watch)
  %spent = sub i64 %after, %before
  %quick = icmp ult i64 %spent, {_PIECE_NANOSECONDS}
  %timed = icmp ne i64 %after, 0
  %larger = and i1 %quick, %timed
  %double = shl i64 %size, 1
  %size.next = select i1 %larger, i64 %double, i64 %size
  br label %piece
}}
"""


def _python_poll(target: Target) -> str:
    """Write ``i32 python_poll(context)``; it calls CPython only through pointers in its context (``abi.PYTHON_POLL``).

    No callback made by ctypes: that would need a page that is writable and executable.
    """
    at = abi.PYTHON_POLL.offsets

    def function(name: str) -> str:
        return f"  %{name}.p = getelementptr i8, ptr %context, i64 {at[name]}\n  %{name} = load ptr, ptr %{name}.p, align 8"

    return f"""
define hidden i32 @ingot_python_poll(ptr %context) {attributes(target, "python_poll")} {{
{function("ensure")}
{function("release")}
{function("check_signals")}
{function("fetch")}
  %state = call i32 %ensure()
  %rc = call i32 %check_signals()
  %raised = icmp ne i32 %rc, 0
  br i1 %raised, label %keep, label %leave
keep:
  %type.p = getelementptr i8, ptr %context, i64 {at["type"]}
  %value.p = getelementptr i8, ptr %context, i64 {at["value"]}
  %traceback.p = getelementptr i8, ptr %context, i64 {at["traceback"]}
  call void %fetch(ptr %type.p, ptr %value.p, ptr %traceback.p)
  br label %leave
leave:
  call void %release(i32 %state)
  %result = zext i1 %raised to i32
  ret i32 %result
}}
"""
