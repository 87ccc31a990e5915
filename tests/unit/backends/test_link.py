"""Objects and images: same bytes everywhere, and everything that an image must not contain is
refused."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ingot_compiler.backends.host.link import link_image
from ingot_compiler.backends.host.support import SUPPORT_EXPORTS
from ingot_compiler.backends.host.support.compile_support import compile_support
from ingot_compiler.codegen.object import assembly_text, compile_object
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.targets.target import parse_target
from ingot_runtime.format import abi

_TARGETS = ["x86-64-v2", "x86-64-v3", "x86-64-v4+amx-bf16", "aarch64", "riscv64"]
_KERNEL = """
@table = private constant [4 x i32] [i32 5, i32 6, i32 7, i32 8]
define i32 @k(ptr %b, ptr %s, i64 %first, i64 %last, ptr %x) {
  %p = getelementptr i32, ptr @table, i64 %first
  %v = load i32, ptr %p
  ret i32 %v
}
"""

_THREAD_LOCAL = """
@g = thread_local global i32 0
declare ptr @llvm.threadlocal.address(ptr)
define ptr @k() {
  %p = call ptr @llvm.threadlocal.address(ptr @g)
  ret ptr %p
}
"""


@pytest.mark.sweep(6)
@pytest.mark.parametrize("text", _TARGETS)
def test_an_image_starts_with_its_table(text: str) -> None:
    """Header, exports, kernels; sizes are multiples of the target's page; the bytes do not depend
    on object order."""
    target = parse_target(text)
    objects = [("kernel", compile_object(_KERNEL, target)), ("support", compile_support(target))]
    image = link_image(objects, ["k"], SUPPORT_EXPORTS, target)
    assert image == link_image(objects[::-1], ["k"], SUPPORT_EXPORTS, target)
    names = (*abi.IMAGE_HEADER, *abi.EXPORTS)
    words = dict(zip(names, struct.unpack_from(f"<{len(names)}I", image), strict=True))
    assert (words["magic"], words["abi"]) == (abi.IMAGE_MAGIC, abi.ABI_VERSION)
    assert (words["export_count"], words["kernel_count"]) == (len(abi.EXPORTS), 1)
    assert len(image) % target.page_bytes == words["text_bytes"] % target.page_bytes == 0
    for name in abi.EXPORTS:
        assert (0 < words[name] < words["text_bytes"]) == (name in SUPPORT_EXPORTS)


@pytest.mark.parametrize("text", ["x86-64-v4", "aarch64"])
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("declare void @foo()\ndefine i32 @k() { call void @foo()\n ret i32 0 }", "undefined symbol foo in a code image"),
        ("@g = global i32 1\ndefine ptr @k() { ret ptr @g }", "a code image does not link"),
        ("@g = global i32 0\ndefine ptr @k() { ret ptr @g }", "a code image does not link"),
        ("@g = constant [2 x ptr] [ptr @k, ptr @k]\ndefine ptr @k() { ret ptr @g }", "a code image does not link"),
        ("@g = external global i32\ndefine ptr @k() { ret ptr @g }", "undefined symbol g in a code image"),
        (_THREAD_LOCAL, "a code image does not link"),
        ("define i32 @other() { ret i32 0 }", "undefined symbol k in a code image"),
    ],
)  # fmt: skip
def test_forbidden_code_is_refused(text: str, code: str, message: str) -> None:
    """Undefined symbols are named; writable data and run-time relocations do not link."""
    target = parse_target(text)
    with pytest.raises(InternalError) as caught:
        link_image([("hop", compile_object(code, target))], ["k"], {}, target)
    assert str(caught.value).startswith(message)


def test_a_symbol_of_two_objects_is_refused() -> None:
    """Kernels are found by their names, so a name stands for one; both objects are named."""
    target = parse_target("x86-64-v3")
    objects = [(name, compile_object(_KERNEL, target)) for name in ("layer 1", "layer 2")]
    with pytest.raises(InternalError, match="a code image does not link") as caught:
        link_image(objects, ["k"], {}, target)
    assert "duplicate symbol: k" in caught.value.why
    assert "layer 1" in caught.value.why
    assert "layer 2" in caught.value.why


def test_the_error_names_the_function() -> None:
    """Where an undefined symbol is used is part of the message."""
    target = parse_target("x86-64-v3")
    code = "declare float @expf(float)\ndefine float @k(float %x) { %y = call float @expf(float %x)\n ret float %y }"
    with pytest.raises(InternalError, match=r"where: layer 3:\(k\)"):
        link_image([("layer 3", compile_object(code, target))], ["k"], {}, target)


@pytest.mark.broad
def test_same_bytes_from_another_folder_and_hash_seed(tmp_path: Path) -> None:
    """Neither the working folder, nor TMPDIR, nor the hash seed reach the image."""
    program = (
        "import hashlib\n"
        "from ingot_compiler.backends.host.link import link_image\n"
        "from ingot_compiler.backends.host.support import SUPPORT_EXPORTS\n"
        "from ingot_compiler.backends.host.support.compile_support import compile_support\n"
        "from ingot_compiler.targets.target import parse_target\n"
        "target = parse_target('x86-64-v3')\n"
        "objects = [('s', compile_support(target))]\n"
        "print(hashlib.sha256(link_image(objects, [], SUPPORT_EXPORTS, target)).hexdigest())\n"
    )
    digests: set[str] = set()
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        environment = {
            "PYTHONHASHSEED": seed,
            "TMPDIR": str(folder),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
        assert list(folder.iterdir()) == []
    assert len(digests) == 1


def test_a_refused_module_is_our_bug() -> None:
    """Text that LLVM does not accept is an error in four parts, never the end of the process."""
    with pytest.raises(InternalError, match="LLVM rejected generated code"):
        compile_object("define i32 @f() { ret i64 0 }", parse_target("x86-64-v2"))


def test_assembly_uses_the_target(tmp_path: Path) -> None:
    """`assembly_text` is the code of the target: zmm registers on v4, none on v3."""
    del tmp_path
    text = """
define void @k(ptr %a) {
  %x = load <16 x float>, ptr %a, align 4
  %y = fadd <16 x float> %x, %x
  store <16 x float> %y, ptr %a, align 4
  ret void
}"""
    assert "%zmm0" in assembly_text(text, parse_target("x86-64-v4"))
    assert "%ymm0" in assembly_text(text, parse_target("x86-64-v3"))
    assert "fadd" in assembly_text(text, parse_target("aarch64"))
