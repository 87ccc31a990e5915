"""Limits of the file format: a bundle beyond one of them is refused before it costs memory or time.

In: nothing. Out: constants; FORMAT.md, "Limits", repeats them and a test compares. Not done here:
checking.
"""

SECTION_COUNT_MAX = 1024
DEVICE_COUNT_MAX = 16
VARIANT_COUNT_MAX = 64
SYMBOL_COUNT_MAX = 1024
TENSOR_COUNT_MAX = 4096  # inputs, and outputs
RANK_MAX = 16
RANGE_COUNT_MAX = 65536  # weight ranges of one variant
SHARED_COUNT_MAX = 4096  # parts of weights that lie in another bundle
FEATURE_COUNT_MAX = 256
KERNEL_COUNT_MAX = 1 << 20
NAME_SIZE_BYTES_MAX = 4096
ELEMENT_COUNT_MAX = 1 << 40  # elements of one input or output with fixed dimensions
SIZE_BYTES_MAX = 1 << 46  # of a file, a workspace, a block
REGISTER_COUNT_MAX = 1 << 20
BUFFER_COUNT_MAX = 1 << 20
INSTRUCTION_COUNT_MAX = 1 << 22
VALUE_COUNT_MAX = 1 << 22  # values of the lock, of the debug section
DEPTH_MAX = 32  # containers around one of them
# Memory of `main` for its registers and the addresses of its buffers.
FRAME_SIZE_BYTES_MAX = 1 << 26

MIB = 1 << 20
TREE_ENTRY_SIZE_BYTES = 40  # BLAKE3, then the lane checksum
ALIGNMENT_SMALL_BYTES = 64
ALIGNMENT_MAPPED_BYTES = 65536  # code and weights: kernels with 64 KiB pages exist
