"""The structs that native code and loader share: the only place where their layout is written.

In: nothing. Out: struct tables (field name, type) and their offsets; the compiler emits loads at these
offsets, the loader packs at the same. All little-endian, natural alignment, pointers as ``u64``.
Not done here: ctypes, packing, LLVM. Version rule: FORMAT.md, "call struct".
"""

ABI_VERSION = 1

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
TENSOR = Struct("tensor", (("data", "u64"), ("shape", "u64"), ("bytes", "u64"), ("rank", "u32"), ("dtype", "u32")))

# One virtual device. The host's function pointers are 0.
DEVICE = Struct(
    "device",
    (
        ("kind", "u32"), ("id", "u32"), ("self", "u64"), ("alloc", "u64"), ("free", "u64"),
        ("copy", "u64"), ("launch", "u64"), ("wait", "u64"), ("weights", "u64"),
    ),
)  # fmt: skip

# The one argument of `main`. Grows at the end only; `size` is what the caller filled.
CALL = Struct(
    "call",
    (
        ("abi", "u32"), ("size", "u32"), ("n_inputs", "u32"), ("n_outputs", "u32"), ("n_devices", "u32"), ("flags", "u32"),
        ("inputs", "u64"),  # tensor[n_inputs]
        ("outputs", "u64"),  # tensor[n_outputs]; `main` fills the shapes of outputs whose size is symbolic
        ("weights", "u64"),  # base address of the weights section (host)
        ("workspaces", "u64"),  # u64[n_devices]: address or handle of each device's pool
        ("workspace_bytes", "u64"),  # u64[n_devices]: bytes given; with FLAG_SIZES_ONLY `main` writes bytes needed
        ("weights_bytes", "u64"),
        ("devices", "u64"),  # device[n_devices]
        ("pool", "u64"),  # POOL page, or 0: run everything on the calling thread
        ("error", "u64"),  # char[error_cap]
        ("error_cap", "u32"), ("error_len", "u32"),
        ("profile", "u64"), ("profile_context", "u64"),  # void(*)(context, i64 launch_index, i64 begin_or_end) or 0
        ("cancel", "u64"),  # address of a u32 that is polled between launches, or 0
        ("grow", "u64"),  # u64(*)(u64 device, u64 bytes): address of a block that lives until the next call, or 0
        ("scratch", "u64"),  # scratch_stride bytes per host thread, thread after thread, 64-byte aligned
        ("scratch_stride", "u64"),  # bytes given per thread; with FLAG_SIZES_ONLY `main` writes bytes needed
    ),
)  # fmt: skip

FLAG_SIZES_ONLY = 1  # `main` computes output shapes and workspace bytes, launches nothing

# Return codes of `main` and of kernels.
RC_OK = 0
RC_BAD_INPUT = 1
RC_ABI = 2
RC_DEVICE = 3
RC_CANCELLED = 4
RC_THREADS_LOST = 5
RC_LIMIT = 6
RC_REQUIREMENT = 256  # of a kernel alone: this and i says that requirement i of its launch does not hold

# The pool page shared by the caller of `launch` and the lent worker threads. Counters that different threads
# write live on different 64-byte lines (hence the padding to the stated offsets, in bytes).
POOL_MAGIC = 0x1A607
POOL_OFFSETS = {
    # line 0: written by the loader before the first launch, then constant
    "magic": 0,  # u32 POOL_MAGIC; reads 0 in a forked child (MADV_WIPEONFORK)
    "n_threads": 4,  # u32: workers + the calling thread
    "spin": 8,  # u32: pauses before parking; 0 parks at once
    "syscall": 16,  # u64: address of libc's variadic syscall(2) wrapper
    "futex_number": 24,  # u64: number of futex(2) on this architecture
    # line 1: written by the caller per launch
    "epoch": 64,  # u32: bumped once per launch and at quit
    "quit": 68,  # u32
    "parked": 72,  # u32: workers parked or about to
    # line 2: job description, valid for the present epoch
    "kernel": 128,  # u64: function pointer
    "buffers": 136, "scalars": 144, "extent": 152, "chunks": 160, "scratch": 168, "scratch_stride": 176,
    # line 3: written by workers
    "done": 192,  # u32: workers that finished the present epoch
    "main_parked": 196,  # u32
    "result": 200,  # i32: first non-zero return code of a kernel
}  # fmt: skip
POOL_SIZE_BYTES = 4096

# An image (flat position-independent binary) starts with its export table: u32 words, in this order. Offsets count from
# the image's base; 0 = absent. IMAGE_HEADER, then EXPORTS, then one offset per kernel in the variant's kernel order.
IMAGE_MAGIC = 0x494E4749
IMAGE_HEADER = (
    "magic",
    "abi",
    "text_bytes",
    "export_count",
    "kernel_count",
)  # text_bytes: a multiple of 4096; rodata follows
EXPORTS = (
    "main",  # i32 main(call*)
    "launch",  # i32 launch(pool*, kernel, buffers*, scalars*, i64 extent, i64 grain, scratch*, i64 scratch_stride)
    "worker",  # void worker(pool*, i64 thread_index): returns after quit
    "blake3_verify",  # i64 (base, i64 first_mib, i64 last_mib, tree, scratch*): first bad MiB or -1
    "checksum_verify",  # same signature, lane checksum
    "sigbus_handler",  # void handler(i32, siginfo*, ucontext*)
    "program_digest",  # 32 bytes: sha256 of `encode_program` of the program that `main` was made from
    "interface_digest",  # 32 bytes: `ingot_runtime.format.interface.interface_digest` of what `main` expects
)
# Kernel: i32 kernel(buffers: u64*, scalars: i64*, i64 first, i64 last, scratch*) over [first, last) of its parallel index.

# The read-write page that the loader maps directly behind the image (at image base + image size); the SIGBUS handler's
# whole memory. A fault at an address inside a range: map a zero page over it (MAP_FIXED|MAP_PRIVATE|MAP_ANONYMOUS) and
# count it. Any other: sigaction(SIGBUS, old_action, 0) and return, so that the fault repeats under the old action.
SIGBUS_OFFSETS = {
    "count": 0,  # u64: number of ranges to look at; a free slot has start = end = 0
    "faults": 8,  # u64: pages replaced so far, counted by the handler
    "syscall": 16,  # u64: address of libc's variadic syscall(2) wrapper
    "mmap_number": 24,  # u64: number of mmap(2) on this architecture
    "page_bytes": 32,  # u64: the kernel's page size
    "sigaction": 40,  # u64: address of libc's sigaction(2)
    "old_action": 64,  # 152 bytes: libc's struct sigaction as it was before
    "ranges": 256,  # (u64 start, u64 end)[SIGBUS_RANGES_MAX]
}
SIGBUS_RANGES_MAX = 240

# Scratch that `blake3_verify` and `checksum_verify` need, 64-byte aligned; one for each thread that verifies.
VERIFY_SCRATCH_BYTES = 36864
