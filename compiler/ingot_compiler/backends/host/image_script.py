"""The linker script of an image: a flat position-independent binary with its export table at offset
0.

In: symbols of exports and kernels, page size. Out: script text. Not done here: running the linker
(``link``). Source of the layout: ``ingot_runtime.format.abi``, IMAGE_HEADER and EXPORTS.
"""

from collections.abc import Mapping, Sequence

from ingot_runtime.format import abi

IMAGE_END_SYMBOL = "ingot_image_end"
"""Defined at the end of the image, a multiple of the page: the loader's writable page lies
there."""

# Sections that would need a relocation or a writable page at run time.
_FORBIDDEN = (
    ".data .data.* .bss .bss.* .tdata* .tbss* .got .got.* .plt .plt.* .iplt .init* .fini* .ctors "
    ".dtors .preinit_array .data.rel.ro .data.rel.ro.* .bss.rel.ro .sdata .sdata.* .sbss .sbss.*"
)

_TEMPLATE = """\
PHDRS {{ text PT_LOAD FLAGS(5); ro PT_LOAD FLAGS(4); bad PT_LOAD FLAGS(6); }}
SECTIONS {{
  . = 0;
  .text : {{ {table} . = ALIGN(64); *(.text.entry) *(.text .text.*) . = ALIGN({page}); }} :text
  .rodata : ALIGN({page}) {{ *(.rodata .rodata.*) *(.srodata .srodata.*) }} :ro
  .dynsym : {{ *(.dynsym) }} :ro
  .gnu.hash : {{ *(.gnu.hash) }} :ro
  .hash : {{ *(.hash) }} :ro
  .dynstr : {{ *(.dynstr) }} :ro
  .dynamic : {{ *(.dynamic) }} :ro
  .rela.dyn : {{ *(.rela.dyn) }} :ro
  {end} = ALIGN({page});
  .symtab 0 : {{ *(.symtab) }}
  .strtab 0 : {{ *(.strtab) }}
  .shstrtab 0 : {{ *(.shstrtab) }}
  .bad : {{ *({forbidden}) }} :bad
  ASSERT(SIZEOF(.bad) == 0, "writable or relocated data in a code image")
  ASSERT(SIZEOF(.rela.dyn) == 0, "dynamic relocations in a code image")
  /DISCARD/ : {{ *(.comment) *(.note.*) *(.eh_frame*) *(.riscv.attributes) *(.ARM.attributes)
    *(.llvm_addrsig) }}
}}
"""


def image_script(exports: Mapping[str, str], kernels: Sequence[str], page_size_bytes: int) -> str:
    """Write the script; `exports` maps names of ``abi.EXPORTS`` to symbols, absent ones get offset
    0."""
    words = [
        *_header_words(len(kernels)),
        *(exports.get(name, "0") for name in abi.EXPORTS),
        *kernels,
    ]
    table = " ".join(f"LONG({word})" for word in words)
    return _TEMPLATE.format(
        table=table, page=page_size_bytes, end=IMAGE_END_SYMBOL, forbidden=_FORBIDDEN
    )


def _header_words(kernel_count: int) -> list[str]:
    known = {
        "magic": str(abi.IMAGE_MAGIC),
        "abi": str(abi.ABI_VERSION),
        "text_bytes": "ADDR(.rodata)",
        "export_count": str(len(abi.EXPORTS)),
        "kernel_count": str(kernel_count),
    }
    return [known[name] for name in abi.IMAGE_HEADER]
