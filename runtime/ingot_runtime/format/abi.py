"""The structs that native code and loader share: the only place where their layout is written.

In: nothing. Out: struct tables (field name, type) and their offsets, at which the compiler emits
loads and the loader packs. All little-endian, natural alignment, pointers as ``u64``. Not done
here: ctypes, packing, LLVM. FORMAT.md, "Image", says what each means and when a version changes;
comments here are on what only the loader and its own images know.
"""

ABI_VERSION = 2

_WIDTHS_BYTES = {"u32": 4, "i32": 4, "u64": 8, "i64": 8}


class Struct:
    """A C struct: ``fields`` in order, ``offsets`` by name, ``size_bytes`` rounded up to 8."""

    __slots__ = ("fields", "name", "offsets", "size_bytes")

    def __init__(self, name: str, fields: tuple[tuple[str, str], ...], size_bytes: int = 0) -> None:
        self.name = name
        self.fields = fields
        self.offsets: dict[str, int] = {}
        at = 0
        for field, kind in fields:
            width = _WIDTHS_BYTES[kind]
            at = (at + width - 1) // width * width
            self.offsets[field] = at
            at += width
        self.size_bytes = max(size_bytes, (at + 7) // 8 * 8)


# One graph input or output: dense row-major. `shape` points to i64[rank].
TENSOR = Struct(
    "tensor",
    (("data", "u64"), ("shape", "u64"), ("bytes", "u64"), ("rank", "u32"), ("dtype", "u32")),
)

# One virtual device.
DEVICE = Struct(
    "device",
    (
        ("kind", "u32"), ("id", "u32"), ("self", "u64"), ("copy", "u64"), ("launch", "u64"),
        ("weights", "u64"),
    ),
)  # fmt: skip

# The one argument of `main`. Grows at the end only; `size` is what the caller filled.
CALL = Struct(
    "call",
    (
        ("abi", "u32"), ("size", "u32"), ("n_inputs", "u32"), ("n_outputs", "u32"),
        ("n_devices", "u32"), ("flags", "u32"),
        ("inputs", "u64"),  # tensor[n_inputs]
        ("outputs", "u64"),  # tensor[n_outputs]; `main` fills in shapes that are symbolic
        ("weights", "u64"),  # of the host
        ("workspaces", "u64"),  # u64[n_devices]: address or handle of each device's pool
        ("workspace_bytes", "u64"),  # u64[n_devices]: bytes given, or needed (FLAG_SIZES_ONLY)
        ("weights_bytes", "u64"), ("devices", "u64"),  # device[n_devices]
        ("pool", "u64"),  # a page as POOL_OFFSETS, or 0: run everything on the calling thread
        ("error", "u64"),  # char[error_cap]
        ("error_cap", "u32"), ("error_len", "u32"),
        ("profile", "u64"), ("profile_context", "u64"),  # void(*)(context, launch, end) or 0
        ("watch", "u64"), ("grow", "u64"),
        ("scratch", "u64"),
        ("scratch_stride", "u64"),  # bytes given per thread, or needed (FLAG_SIZES_ONLY)
        ("frame", "u64"), ("frame_bytes", "u64"),
    ),
)  # fmt: skip

# How a call is stopped from outside.
WATCH = Struct(
    "watch",
    (
        ("cancel", "u32"), ("timed_out", "u32"),  # the second: set by the call, for `deadline`
        ("clock", "u64"), ("deadline", "u64"),
        ("poll", "u64"), ("poll_context", "u64"), ("poll_interval", "u64"),
        ("poll_next", "u64"),  # when `poll` is due; the caller sets it to 0
    ),
)  # fmt: skip

# The context of the export `python_poll`: CPython's functions, and what a signal handler raised.
PYTHON_POLL = Struct(
    "python_poll",
    (
        ("ensure", "u64"),  # PyGILState_Ensure
        ("release", "u64"),  # PyGILState_Release
        ("check_signals", "u64"),  # PyErr_CheckSignals
        ("fetch", "u64"),  # PyErr_Fetch
        ("type", "u64"), ("value", "u64"), ("traceback", "u64"),  # what PyErr_Fetch gave
    ),
)  # fmt: skip

COPY_BEGINS, COPY_ENDS = 1 << 62, 1 << 61  # in the bytes of a device's `copy`
FLAG_SIZES_ONLY = 1  # `main` computes output shapes and workspace bytes, launches nothing

# Return codes of `main` and of kernels.
RC_OK, RC_BAD_INPUT, RC_ABI, RC_DEVICE, RC_CANCELLED, RC_THREADS_LOST, RC_LIMIT = range(7)
RC_DAMAGED = 7  # of the verifying kernels, at a bad MiB
# Of a kernel alone: this and i says that requirement i of its launch does not hold.
RC_REQUIREMENT = 256

# The pool page shared by the caller of `launch` and the lent worker threads. Counters that
# different threads write live on different 64-byte lines (hence the gaps; offsets are in bytes).
POOL_MAGIC = 0x1A607
POOL_OFFSETS = {
    # line 0: written by the loader before the first launch, then constant
    "magic": 0,  # u32 POOL_MAGIC; reads 0 in a forked child (MADV_WIPEONFORK)
    "n_threads": 4,  # u32: workers + the calling thread
    "spin": 8,  # u32: pauses before parking; 0 parks at once
    "syscall": 16,  # u64: address of libc's variadic syscall(2) wrapper
    "futex_number": 24,  # u64: number of futex(2) on this architecture
    # line 1: written by the caller per launch
    "epoch": 64,  # u32: one more for each launch; its highest bit lets the workers leave
    "parked": 72,  # u32: how often workers have parked since the caller woke all
    "watch": 80,  # u64: part of the job
    "alone_until": 88,  # u64: nanoseconds; the caller's own, as are the next
    "work": 96,  # u64: nanoseconds that the launches of this call take one thread
    "work_before": 104,  # u64: those of the call before; 0 if not known
    # line 2: job description, valid for whoever has claimed pieces of it
    "kernel": 128,  # u64: function pointer
    "buffers": 136, "scalars": 144, "extent": 152, "pieces": 160, "scratch": 168,
    "scratch_stride": 176, "grain": 184,
    # line 3: written by workers
    "done": 192,  # u32: pieces of the present job that workers have finished
    "caller_parked": 196,  # u32
    "result": 200,  # i32: first non-zero return code of a kernel
    # line 4: written by all
    "claim": 256,  # u64: number of the job, first and end of the pieces that nobody has claimed
}  # fmt: skip
POOL_SIZE_BYTES = 4096
POOL_QUIT_BIT = 31  # of `epoch`

# An image starts with u32 words: IMAGE_HEADER, then the offsets of EXPORTS, then of the kernels.
IMAGE_MAGIC = 0x494E4749
IMAGE_HEADER = ("magic", "abi", "text_bytes", "export_count", "kernel_count")
EXPORTS = (
    "main",
    "launch",
    "worker",  # void worker(pool*, i64 thread_index): returns after quit
    "blake3_verify",
    "checksum_verify",
    "sigbus_handler",  # void handler(i32, siginfo*, ucontext*)
    "python_poll",  # i32 python_poll(PYTHON_POLL*): lets signal handlers run; 1 where one raised
    "program_digest",
    "interface_digest",
    "frame_bytes",
)
# What the image of a library must not have: a device knows the program as kernels alone.
VARIANT_EXPORTS = ("main", "program_digest", "interface_digest", "frame_bytes")
LIBRARY_EXPORTS = ("launch",)  # what it must have; the others may be there
# Exports that are data: their sizes in bytes. All others are code.
DATA_SIZES_BYTES = {"program_digest": 32, "interface_digest": 32, "frame_bytes": 8}

# What the verifying kernels leave: the count of good MiBs, the least bad one (start with ~0).
# Verified are those MiBs alone that were counted.
VERIFIED = Struct("verified", (("good", "u64"), ("bad", "u64")))

# The read-write page that the loader maps directly behind the image (at image base + image size);
# it leads the SIGBUS handler to all that it knows. A fault at an address inside a guarded range:
# map a zero page over it and count it. Any other: do what old_action says and stay; if that one
# leads back here, what first_action says. Images made before do not stay: they install the action.
SIGBUS_OFFSETS = {
    "first": 0,  # u64: address of the first GUARDED, or 0
    "foreign": 8,  # u64: odd while a fault elsewhere is passed on: its address; else 0
    "syscall": 16,  # u64: address of libc's variadic syscall(2) wrapper
    "mmap_number": 24,  # u64: number of mmap(2) on this architecture
    "page_bytes": 32,  # u64: the kernel's page size
    "sigaction": 40,  # u64: address of libc's sigaction(2)
    "old_action": 64,  # 152 bytes: libc's struct sigaction as it was before
    "first_action": 256,  # before any installation: a handler over ours may bring ours back
}
# One guarded range; free where `end` is 0. Never given back: any thread may be reading it.
GUARDED = Struct("guarded", (("start", "u64"), ("end", "u64"), ("faults", "u64"), ("next", "u64")))

# Scratch that the verifying kernels need for each thread, 64-byte aligned.
VERIFY_SCRATCH_BYTES = 36864
