"""The digests of weights on the build machine, at memory speed: our own compiled BLAKE3 and lane
checksum.

In: up to one MiB. Out: its row of the tree. Not done here: walking over a file, writing the tree
(``artifacts``). The bytes are those of the definition, whatever instructions this machine has.
"""

import ctypes

import numpy as np
import numpy.typing as npt

from ingot_compiler.backends.host.support.compile_support import compile_support
from ingot_compiler.codegen.llvm import load_object_in_process
from ingot_compiler.targets.host_target import host_target
from ingot_runtime.format.abi import VERIFY_SCRATCH_BYTES

_MIB = 1 << 20
_ALIGNMENT_BYTES = 64
_DIGEST_BYTES = 32


class HostDigests:
    """BLAKE3 and lane checksum of a MiB, loaded into this process."""

    def __init__(self, content: bytes = b"") -> None:
        """``content``: support functions as an object that this machine can run; without one they
        are compiled."""
        machine = host_target()
        self._engine = load_object_in_process(
            content or compile_support(machine, "digests.c"), machine
        )
        pointer = ctypes.c_void_p
        address = self._engine.get_function_address
        self._blake3 = ctypes.CFUNCTYPE(None, pointer, pointer, pointer)(
            address("ingot_blake3_mib")
        )
        self._checksum = ctypes.CFUNCTYPE(ctypes.c_uint64, pointer)(address("ingot_checksum_mib"))

    def mib_tree_entry(self, data: memoryview) -> bytes:
        """Return the 40 bytes that the tree holds for `data`: BLAKE3, then the lane checksum as
        u64.

        Args:
            data: contiguous, at most 1 MiB; a shorter one is extended by zeros. Several threads may
                call at once.
        """
        block: npt.NDArray[np.uint8] = np.frombuffer(data, dtype=np.uint8)
        assert block.size <= _MIB, f"a tree entry covers one MiB, got {block.size} bytes"
        if block.size < _MIB:
            block = np.concatenate((block, np.zeros(_MIB - block.size, dtype=np.uint8)))
        scratch = np.empty(VERIFY_SCRATCH_BYTES + _ALIGNMENT_BYTES, dtype=np.uint8)
        aligned = -(-scratch.ctypes.data // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        digest = ctypes.create_string_buffer(_DIGEST_BYTES)
        self._blake3(block.ctypes.data, ctypes.addressof(digest), aligned)
        checksum: int = self._checksum(block.ctypes.data)
        return digest.raw + checksum.to_bytes(8, "little")
