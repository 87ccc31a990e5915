"""Code that is compiled into this process: it runs wherever the next free addresses are."""

import subprocess
import sys

# Free addresses that are 4 GiB apart, each of one page: what is mapped page by page goes there.
SCRIPT = """
import ctypes
from ingot_compiler.codegen.llvm import emit_object, load_in_process, load_object_in_process
from ingot_compiler.targets.target import parse_target

TEXT = '''
@table = internal constant [4 x double] [double 1.0, double 2.0, double 4.0, double 8.0]
define double @read(i64 %at) {
  %place = getelementptr [4 x double], ptr @table, i64 0, i64 %at
  %value = load double, ptr %place
  ret double %value
}
'''
NONE, PRIVATE_ANONYMOUS_NORESERVE = 0, 0x4022
APART_BYTES, PAGE_BYTES = 1 << 32, 4096
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.munmap.argtypes = ctypes.c_void_p, ctypes.c_size_t

def reserve(size):
    size, file = ctypes.c_size_t(size), ctypes.c_long(0)
    return libc.mmap(None, size, NONE, PRIVATE_ANONYMOUS_NORESERVE, -1, file)

target = parse_target("x86-64-v2")
object_file = emit_object(TEXT, target, level=2, verify=True)
area = reserve(16 * APART_BYTES)
while reserve(PAGE_BYTES) > area:
    pass
for number in range(1, 16):
    libc.munmap(area + number * APART_BYTES, PAGE_BYTES)
engines = [load_in_process(TEXT, target), load_object_in_process(object_file, target)]
for engine in engines:
    read = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(engine.get_function_address("read"))
    print(read(2))
"""


def test_free_addresses_may_lie_far_apart() -> None:
    """Code finds its constants in a process with so much memory that sections which are mapped one
    by one lie further apart than an instruction reaches."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "4.0\n4.0\n", "")
