"""``launch``: runs a kernel over its parallel range, alone or together with the lent worker threads.

In: a target. Out: IR of ``ingot_launch`` and ``ingot_worker``. Not done here: pieces of a range (``watch``), starting threads (the
loader).

``i32 launch(pool, kernel, buffers, scalars, i64 extent, i64 grain, scratch, i64 scratch_stride, watch)``: the range is cut into
``chunks = min(n_threads, max(1, extent / grain))`` pieces; chunk t is ``[extent*t/chunks, extent*(t+1)/chunks)``. So the
cuts depend on the number of threads and never on timing, and kernels never split a sum: results do not either.
"""

from ingot_compiler.backends.host.support.float_control import float_type
from ingot_compiler.backends.host.support.parts import attributes, pool_field, spin_hint
from ingot_compiler.backends.host.targets.target import Target
from ingot_runtime.format import abi

_FUTEX_WAIT_PRIVATE = 128
_FUTEX_WAKE_PRIVATE = 129


def write_launch(target: Target) -> str:
    """Write the caller's side of fork-join: decide between running alone and together with the workers."""
    arguments = "ptr %pool, ptr %kernel, ptr %buffers, ptr %scalars, i64 %extent, i64 %grain, ptr %scratch, i64 %stride, ptr %watch"
    kind = float_type(target)
    return f"""
define hidden i32 @ingot_launch({arguments}) {attributes(target, "launch")} {{
  %empty = icmp sle i64 %extent, 0
  br i1 %empty, label %nothing, label %look
nothing:
  ret i32 0
look:
  %stop = call i32 @ingot_watch(ptr %watch, i32 1)
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %cancelled, label %some
cancelled:
  ret i32 {abi.RC_CANCELLED}
some:
  %float = call {kind} @ingot_float_enter()
  %rc = call i32 @ingot_fork_join({arguments})
  call void @ingot_float_leave({kind} %float)
  ret i32 %rc
}}
define internal i32 @ingot_fork_join({arguments}) {attributes(target, "launch")} {{
  %alone = icmp eq ptr %pool, null
  br i1 %alone, label %inline, label %wish
wish:
  %positive = icmp sgt i64 %grain, 1
  %divisor = select i1 %positive, i64 %grain, i64 1
  %wanted = udiv i64 %extent, %divisor
  %one = icmp ule i64 %wanted, 1
  br i1 %one, label %inline, label %known
known:
  %magic = load i32, ptr %pool, align 4
  %lost = icmp ne i32 %magic, {abi.POOL_MAGIC}
  br i1 %lost, label %threads_lost, label %cut
threads_lost:
  ret i32 {abi.RC_THREADS_LOST}
cut:
{pool_field("n_threads")}
  %threads32 = load i32, ptr %n_threads.p, align 4
  %threads = zext i32 %threads32 to i64
  %fewer = icmp ult i64 %wanted, %threads
  %chunks = select i1 %fewer, i64 %wanted, i64 %threads
  %single = icmp ule i64 %chunks, 1
  br i1 %single, label %inline, label %fork
inline:
{_run_call("%rc.inline", "0", "%extent", "%scratch", "1")}
  ret i32 %rc.inline
{_fork_and_join(target)}"""


def _fork_and_join(target: Target) -> str:
    """Write the rest of ``launch``: publish the job, run chunk 0, wait for every worker's answer, spinning, then asleep."""
    return f"""\
fork:
{_store_job()}
{pool_field("epoch")}
{pool_field("parked")}
  %old = load atomic i32, ptr %epoch.p monotonic, align 4
  %sum = add i32 %old, 1
  %fresh = and i32 %sum, {(1 << abi.POOL_QUIT_BIT) - 1}
  store atomic i32 %fresh, ptr %epoch.p seq_cst, align 4
  %parked = load atomic i32, ptr %parked.p seq_cst, align 4
  %sleeping = icmp ne i32 %parked, 0
  br i1 %sleeping, label %wake, label %first
wake:
{_futex_call("epoch", _FUTEX_WAKE_PRIVATE, "2147483647", "wake")}
  br label %first
first:
  %end = udiv i64 %extent, %chunks
{_run_call("%rc.first", "0", "%end", "%scratch", "1")}
{pool_field("done")}
{pool_field("spin")}
{pool_field("main_parked")}
  %workers = sub i32 %threads32, 1
  %budget = load i32, ptr %spin.p, align 4
  br label %join
join:
  %left = phi i32 [ %budget, %first ], [ %less, %again ]
  %done = load atomic i32, ptr %done.p acquire, align 4
  %all = icmp eq i32 %done, %workers
  br i1 %all, label %joined, label %wait
wait:
  %impatient = icmp eq i32 %left, 0
  br i1 %impatient, label %park, label %again
again:
  {spin_hint(target)}
  %less = sub i32 %left, 1
  br label %join
park:
  store atomic i32 1, ptr %main_parked.p seq_cst, align 4
  br label %sleep
sleep:
  %seen = load atomic i32, ptr %done.p seq_cst, align 4
  %now = icmp eq i32 %seen, %workers
  br i1 %now, label %awake, label %doze
doze:
{_futex_call("done", _FUTEX_WAIT_PRIVATE, "%seen.wide", "doze", widen="%seen")}
  br label %sleep
awake:
  store atomic i32 0, ptr %main_parked.p monotonic, align 4
  br label %joined
joined:
{pool_field("result")}
  %rc.workers = load atomic i32, ptr %result.p monotonic, align 4
  %mine = icmp ne i32 %rc.first, 0
  %rc = select i1 %mine, i32 %rc.first, i32 %rc.workers
  ret i32 %rc
}}
"""


def write_worker(target: Target) -> str:
    """Write ``void worker(pool, i64 index)``: run chunk `index` of every job until ``quit``; index counts from 1.

    Every worker answers every job, also one that has no chunk for it: then nobody can still read a job that the caller
    overwrites with the next.
    """
    kind = float_type(target)
    return f"""
define hidden void @ingot_worker(ptr %pool, i64 %index) {attributes(target, "worker")} {{
{pool_field("epoch")}
{pool_field("parked")}
{pool_field("spin")}
{pool_field("done")}
{pool_field("main_parked")}
{pool_field("result")}
{pool_field("n_threads")}
  %float = call {kind} @ingot_float_enter()
  br label %idle
idle:
  %seen = phi i32 [ 0, %0 ], [ %epoch, %answered ]
  %budget = load i32, ptr %spin.p, align 4
  br label %look
look:
  %left = phi i32 [ %budget, %idle ], [ %less, %again ]
  %fresh = load atomic i32, ptr %epoch.p acquire, align 4
  %new = icmp ne i32 %fresh, %seen
  br i1 %new, label %work, label %wait
wait:
  %impatient = icmp eq i32 %left, 0
  br i1 %impatient, label %park, label %again
again:
  {spin_hint(target)}
  %less = sub i32 %left, 1
  br label %look
park:
  %p1 = atomicrmw add ptr %parked.p, i32 1 seq_cst
  br label %sleep
sleep:
  %late = load atomic i32, ptr %epoch.p seq_cst, align 4
  %same = icmp eq i32 %late, %seen
  br i1 %same, label %doze, label %awake
doze:
{_futex_call("epoch", _FUTEX_WAIT_PRIVATE, "%seen.wide", "doze", widen="%seen")}
  br label %sleep
awake:
  %p2 = atomicrmw sub ptr %parked.p, i32 1 seq_cst
  br label %work
work:
  %epoch = load atomic i32, ptr %epoch.p acquire, align 4
  %leave = icmp slt i32 %epoch, 0
  br i1 %leave, label %gone, label %job
gone:
  call void @ingot_float_leave({kind} %float)
  ret void
{_answer_job()}"""


def _answer_job() -> str:
    """Write the rest of ``worker``: run the own chunk, note an error, count as done, wake a sleeping caller."""
    return f"""\
job:
{_load_job()}
  %mine = icmp ult i64 %index, %chunks
  br i1 %mine, label %run, label %answer
run:
  %a0 = mul i64 %extent, %index
  %a = udiv i64 %a0, %chunks
  %next = add i64 %index, 1
  %b0 = mul i64 %extent, %next
  %b = udiv i64 %b0, %chunks
  %shift = mul i64 %scratch_stride, %index
  %own = getelementptr i8, ptr %scratch, i64 %shift
{_run_call("%rc", "%a", "%b", "%own", "0")}
  %bad = icmp ne i32 %rc, 0
  br i1 %bad, label %report, label %answer
report:
  %swap = cmpxchg ptr %result.p, i32 0, i32 %rc monotonic monotonic
  br label %answer
answer:
  %before = atomicrmw add ptr %done.p, i32 1 seq_cst
  %after = add i32 %before, 2
  %threads = load i32, ptr %n_threads.p, align 4
  %last = icmp eq i32 %after, %threads
  br i1 %last, label %finish, label %answered
finish:
  %waiting = load atomic i32, ptr %main_parked.p seq_cst, align 4
  %asleep = icmp ne i32 %waiting, 0
  br i1 %asleep, label %rouse, label %answered
rouse:
{_futex_call("done", _FUTEX_WAKE_PRIVATE, "1", "rouse")}
  br label %answered
answered:
  br label %idle
}}
"""


_JOB = (
    ("kernel", "ptr"), ("buffers", "ptr"), ("scalars", "ptr"), ("extent", "i64"), ("chunks", "i64"), ("scratch", "ptr"),
    ("scratch_stride", "i64"), ("grain", "i64"), ("watch", "ptr"),
)  # fmt: skip


def _run_call(result: str, first: str, last: str, scratch: str, mine: str) -> str:
    return (
        f"  {result} = call i32 @ingot_run(ptr %kernel, ptr %buffers, ptr %scalars, i64 {first}, i64 {last}, i64 %grain, "
        f"ptr {scratch}, ptr %watch, i32 {mine})"
    )


def _store_job() -> str:
    values = {name: "%stride" if name == "scratch_stride" else f"%{name}" for name, _ in _JOB}
    lines = [f"{pool_field(name)}\n  store {kind} {values[name]}, ptr %{name}.p, align 8" for name, kind in _JOB]
    lines += [f"{pool_field(name, '.zero')}\n  store i32 0, ptr %{name}.p.zero, align 4" for name in ("done", "result")]
    return "\n".join(lines)


def _load_job() -> str:
    return "\n".join(f"{pool_field(name)}\n  %{name} = load {kind}, ptr %{name}.p, align 8" for name, kind in _JOB)


def _futex_call(word: str, operation: int, value: str, tag: str, *, widen: str = "") -> str:
    """Call futex(2) on the pool's `word` by libc's ``syscall``, which the pool brings along.

    A wait returns at once when the word has changed, so nothing is lost between the last look and the sleep; it may
    also return early (signals), so every caller looks again.
    """
    lines = [f"  {value} = zext i32 {widen} to i64"] if widen else []
    lines += [
        pool_field("syscall", f".{tag}"),
        f"  %syscall.{tag} = load ptr, ptr %syscall.p.{tag}, align 8",
        pool_field("futex_number", f".{tag}"),
        f"  %number.{tag} = load i64, ptr %futex_number.p.{tag}, align 8",
        (
            f"  %ignored.{tag} = call i64 (i64, ...) %syscall.{tag}(i64 %number.{tag}, ptr %{word}.p, i64 {operation}, "
            f"i64 {value}, ptr null, ptr null, i64 0)"
        ),
    ]
    return "\n".join(lines)
