"""``sigbus_handler``: a mapped file that was cut off reads as zeros and is counted, instead of ending the process.

In: a target. Out: IR of ``ingot_sigbus_handler``. Not done here: installing it, reporting the change (the loader).
The loader's writable page directly behind the image (``abi.SIGBUS_OFFSETS``) leads it to a list of ranges, of any length.
"""

from ingot_compiler.backends.host.image_script import IMAGE_END_SYMBOL
from ingot_compiler.backends.host.support.parts import attributes
from ingot_compiler.backends.host.targets.target import Target
from ingot_runtime.format.abi import GUARDED, SIGBUS_OFFSETS

# Linux, all 64-bit architectures alike.
_SIGBUS = 7
_ADDRESS_AT = 16  # siginfo_t.si_addr
_PROT_READ = 1
_MAP_PRIVATE_FIXED_ANONYMOUS = 0x32


def write_sigbus(target: Target) -> str:
    """Write ``void handler(i32, siginfo*, ucontext*)``; it calls libc only through pointers in its page."""
    return f"""
@{IMAGE_END_SYMBOL} = external hidden global i8
define hidden void @ingot_sigbus_handler(i32 %signal, ptr %info, ptr %context) {attributes(target, "sigbus")} {{
entry:
  %address.p = getelementptr i8, ptr %info, i64 {_ADDRESS_AT}
  %address = load i64, ptr %address.p, align 8
{_load("first", "ptr")}
  br label %look
look:
  %range = phi ptr [ %first, %entry ], [ %next, %other ]
  %none = icmp eq ptr %range, null
  br i1 %none, label %foreign, label %compare
compare:
{_guarded("start")}
{_guarded("end")}
  %not.below = icmp uge i64 %address, %start
  %below.end = icmp ult i64 %address, %end
  %ours = and i1 %not.below, %below.end
  br i1 %ours, label %replace, label %other
other:
{_guarded("next", "ptr")}
  br label %look
replace:
  %faults.p = getelementptr i8, ptr %range, i64 {GUARDED.offsets["faults"]}
  %before = atomicrmw add ptr %faults.p, i64 1 seq_cst
{_load("page_bytes")}
  %mask = sub i64 0, %page_bytes
  %page = and i64 %address, %mask
{_load("syscall", "ptr")}
{_load("mmap_number")}
  %mapped = call i64 (i64, ...) %syscall(i64 %mmap_number, i64 %page, i64 %page_bytes, i64 {_PROT_READ},
                                         i64 {_MAP_PRIVATE_FIXED_ANONYMOUS}, i64 -1, i64 0)
  ; no memory for a page: as if the fault were foreign, or it would repeat for ever
  %failed = icmp eq i64 %mapped, -1
  br i1 %failed, label %foreign, label %done
foreign:
{_load("sigaction", "ptr")}
{_field("old_action")}
{_field("first_action")}
{_field("foreign")}
  %seen = atomicrmw add ptr %foreign.p, i64 1 seq_cst
  %again = icmp ne i64 %seen, 0
  %then = select i1 %again, ptr %first_action.p, ptr %old_action.p
  %restored = call i32 %sigaction(i32 {_SIGBUS}, ptr %then, ptr null)
  br label %done
done:
  ret void
}}
"""


def _field(name: str) -> str:
    return f"  %{name}.p = getelementptr i8, ptr @{IMAGE_END_SYMBOL}, i64 {SIGBUS_OFFSETS[name]}"


def _load(name: str, kind: str = "i64") -> str:
    return f"{_field(name)}\n  %{name} = load {kind}, ptr %{name}.p, align 8"


def _guarded(name: str, kind: str = "i64") -> str:
    """Load a field of the range, which another thread may be changing."""
    at = GUARDED.offsets[name]
    return (
        f"  %{name}.p = getelementptr i8, ptr %range, i64 {at}\n"
        f"  %{name} = load atomic {kind}, ptr %{name}.p monotonic, align 8"
    )
