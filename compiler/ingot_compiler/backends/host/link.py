"""Objects to an image: LLD from the pinned ``ziglang`` package, with our script.

In: ELF objects by name, symbols to export. Out: the image's bytes. Not done here: code generation,
the bundle. The image calls nothing outside itself, has no relocation and no writable data; the
script and ``-z defs`` refuse all.
"""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from ingot_compiler.backends.host.image_script import image_script
from ingot_compiler.backends.host.zig import run_zig
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.targets.target import Target
from ingot_runtime.format import abi

_FLAGS = (
    "-pie", "--no-dynamic-linker", "--oformat=binary", "--build-id=none",
    "-z", "defs", "-z", "text", "--gc-sections", "--orphan-handling=error", "--no-gnu-unique",
    "--threads=1", "-T", "image.ld", "-o", "image.bin", "--whole-archive", "objects.a",
)  # fmt: skip
_ERROR_LINES_MAX = 6


def link_image(
    objects: Sequence[tuple[str, bytes]],
    kernels: Sequence[str],
    exports: Mapping[str, str],
    target: Target,
) -> bytes:
    """Link `objects`, (name, ELF object) each, into a flat image that starts with its export table.

    Args:
        objects: their order does not matter; names appear in errors only.
        kernels: symbols, in the order of the image's kernel table.
        exports: name in ``abi.EXPORTS`` -> symbol; an absent one gets offset 0.
        target: the host CPU that the objects were compiled for.

    Returns:
        The image, a multiple of the target's page in size; the same bytes on every machine and in
        every directory.

    Raises:
        InternalError: an undefined symbol (named), writable data, or a relocation that the loader
            would have to do.
        BuildError: no linker on this machine.
    """
    _check_exports(exports)
    ordered = sorted(objects)
    with tempfile.TemporaryDirectory(prefix="ingot-link-") as folder:
        with open(os.path.join(folder, "image.ld"), "w", encoding="utf-8") as file:
            file.write(image_script(exports, kernels, target.page_bytes))
        with open(os.path.join(folder, "objects.a"), "wb") as file:
            file.writelines(_archive([content for _, content in ordered]))
        done = run_zig(("ld.lld", "-m", target.family.linker_emulation, *_FLAGS), folder)
        if done.returncode:
            raise _link_error(done.stderr, [name for name, _ in ordered])
        with open(os.path.join(folder, "image.bin"), "rb") as file:
            image = file.read()
    return image + bytes(-len(image) % target.page_bytes)


def _check_exports(exports: Mapping[str, str]) -> None:
    unknown = sorted(set(exports) - set(abi.EXPORTS))
    if unknown:
        raise InternalError(
            f"unknown export {unknown[0]!r}", why=f"expected one of {', '.join(abi.EXPORTS)}"
        )


def _archive(objects: Sequence[bytes]) -> Iterator[bytes]:
    """Yield an archive in the common `ar` format, without an index: one file is written sooner than
    hundreds."""
    yield b"!<arch>\n"
    for index, content in enumerate(objects):
        name = f"{index}.o/"
        yield f"{name:16}{0:<12}{0:<6}{0:<6}{644:<8}{len(content):<10}`\n".encode()
        yield content + b"\n" * (len(content) % 2)


def _link_error(text: str, object_names: Sequence[str]) -> InternalError:
    """Turn the linker's own words into ours: numbered files get the names that the caller gave."""
    text = text.replace(" in archive objects.a", "")
    named = re.sub(r"\b(\d+)\.o\b", lambda found: object_names[int(found[1])], text)
    undefined = sorted(set(re.findall(r"(?:undefined symbol|symbol not found): (\S+)", named)))
    places = re.findall(r">>>\s+(?:referenced by )?(\S[^<>\n]*:\([^)\n]*\))", named)
    lines = [line.strip() for line in named.splitlines() if line.strip()]
    lines = [line.removeprefix("ld.lld: error: ") for line in lines]
    what = f"undefined symbol {', '.join(undefined)} in a code image"
    return InternalError(
        what if undefined else "a code image does not link",
        where=", ".join(sorted(set(places))),
        why="; ".join(lines[:_ERROR_LINES_MAX]),
        do="report this with the model that was compiled",
    )
