"""For the ``library`` of a plug-in: C to an object, by the compiler that Ingot brings.

In: C11 without a libc, a target of the host. Out: an ELF object. Not done here: linking. The image
that it becomes part of has no writable data and calls nothing outside.
"""

from __future__ import annotations

import os
import tempfile

from ingot_compiler.backends.host.support.compile_support import C_FLAGS
from ingot_compiler.backends.host.zig import run_zig
from ingot_compiler.targets.target import parse_target


def compile_c(source: str, target: str) -> bytes:
    """Compile one file; the same bytes on every machine and in every folder.

    Raises:
        ValueError: the compiler refuses the source; says what it says first. BuildError: no
            compiler on this machine.
    """
    return _compiled("source.c", source.encode(), target, C_FLAGS)


def image_object(image: bytes, symbols: dict[str, int], target: str) -> bytes:
    """An object around an image of position-independent code that calls nothing outside itself;
    ``symbols``: name -> offset in bytes.

    Raises:
        ValueError: an offset outside of the image. BuildError: no compiler on this machine.
    """
    outside = {name: at for name, at in symbols.items() if not 0 <= at < len(image)}
    if outside:
        raise ValueError(f"expected offsets below {len(image)}, got {outside}")
    lines = ['.section .text.image,"ax"', ".p2align 6", "image:"]
    lines += [f".byte {','.join(map(str, image[at : at + 64]))}" for at in range(0, len(image), 64)]
    for name, at in sorted(symbols.items()):
        lines += [f".globl {name}", f".set {name}, image + {at}", f".type {name}, @function"]
    return _compiled("image.s", "\n".join([*lines, ""]).encode(), target, ("-g0",))


def _compiled(name: str, content: bytes, target: str, flags: tuple[str, ...]) -> bytes:
    chosen = parse_target(target)
    with tempfile.TemporaryDirectory(prefix="ingot-library-") as folder:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
        for_target = ("-target", chosen.zig_triple, f"-mcpu={chosen.zig_cpu}")
        done = run_zig(("cc", *for_target, *flags, "-c", name, "-o", "library.o"), folder)
        if done.returncode:
            raise ValueError(" ".join(done.stderr.split("\n", 1)[0].split()))
        with open(os.path.join(folder, "library.o"), "rb") as file:
            return file.read()
