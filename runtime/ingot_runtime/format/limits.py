"""Limits of the file format: a bundle beyond one of them is refused before it costs memory or time.

In: nothing. Out: constants; the table of FORMAT.md, "Limits", is made from them and says what each is
of. Not done here: checking.
"""

SECTION_COUNT_MAX = 1024
DEVICE_COUNT_MAX = 16
VARIANT_COUNT_MAX = 64
SYMBOL_COUNT_MAX = 1024
TENSOR_COUNT_MAX = 4096
RANK_MAX = 16
RANGE_COUNT_MAX = 65536
SHARED_COUNT_MAX = 4096
FEATURE_COUNT_MAX = 256
KERNEL_COUNT_MAX = 1 << 20
NAME_SIZE_BYTES_MAX = 4096
ELEMENT_COUNT_MAX = 1 << 40
SIZE_BYTES_MAX = 1 << 46
REGISTER_COUNT_MAX = 1 << 20
BUFFER_COUNT_MAX = 1 << 20
INSTRUCTION_COUNT_MAX = 1 << 22
VALUE_COUNT_MAX = 1 << 22
DEPTH_MAX = 32
FRAME_SIZE_BYTES_MAX = 1 << 26

MIB = 1 << 20
TREE_ENTRY_SIZE_BYTES = 40
ALIGNMENT_SMALL_BYTES = 64
ALIGNMENT_MAPPED_BYTES = 65536  # code and weights: kernels with 64 KiB pages exist
