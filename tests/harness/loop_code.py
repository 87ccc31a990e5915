"""Innermost loops of machine code, and what one turn of such a loop asks of a processor.

In: assembly text as LLVM writes it, for x86-64 (operands in the order of AT&T) or aarch64. Out:
``LoopCode``. Not done here: which kernels there are (``product_loops``), cycles (``port_models``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LABEL = re.compile(r"(\.\w+):")
_COMMENT = re.compile(r"//.*$|#(?=[ A-Z]).*$")
_JUMP = re.compile(r"(?:b\.\w+|b|cbn?z|tbn?z|j[a-z]+)\s.*?(\.L\w+)$")
_OPERAND = re.compile(r"(?:[^,(]|\([^)]*\))+")
_PRODUCT = re.compile(
    r"vfn?m(?:add|sub)|vpdp|vdpbf16|vpmadd|tdp|fmla|fmls|bfdot|bfmmla|[us]+dot|[us]?mmla|[us]mlal"
    r"|ml[as] v|mul v"
)
_ADD = re.compile(r"v(?:add|sub)p[sd]|fadd|fsub")
_PREFETCH = ("prefetch", "prfm")
_NO_ACCESS = ("lea", "nop", *_PREFETCH)
_MOVE = re.compile(r"v?mov|vpmov|vextract|vcvtps2ph|vcompress|vpextr|vpscatter|vscatter")
_ONLY_READS = ("cmp", "test", "vucomi", "vcomi", "vptest")
_PAIR = re.compile(r"(?:ld|st)(?:n?p|psw)\b")
_LISTED = re.compile(r"\{(.*?)\}")


@dataclass(frozen=True, slots=True)
class LoopCode:
    """Instructions of a loop of one block, the last of which jumps to the first."""

    code: tuple[str, ...]

    @property
    def multiply_adds(self) -> int:
        """Instructions that multiply vectors and add, or multiply bytes for a sum."""
        return sum(bool(_PRODUCT.match(line)) for line in self.code)

    @property
    def sums(self) -> int:
        """Registers that multiply-adds write."""
        return len({_written(line) for line in self.code if _PRODUCT.match(line)})

    @property
    def adds(self) -> int:
        """Additions of vectors of floats."""
        return sum(bool(_ADD.match(line)) for line in self.code)

    @property
    def loads(self) -> int:
        """Registers that are loaded, and operands that instructions take from memory."""
        return sum(_accesses(line)[0] for line in self.code)

    @property
    def stores(self) -> int:
        """Registers that are stored."""
        return sum(_accesses(line)[1] for line in self.code)

    @property
    def text(self) -> str:
        """The loop without its prefetches, of which models of processors know little."""
        kept = [line for line in self.code if not line.startswith(_PREFETCH)]
        return "".join(f"\t{line}\n" for line in kept[:-1])


def innermost(text: str) -> list[tuple[str, ...]]:
    """Return the instructions of the loops of one block, in the order of the code."""
    labels, code = dict[str, int](), list[str]()
    for line in text.splitlines():
        words = _COMMENT.sub("", line).rstrip()
        if label := _LABEL.match(words):
            labels[label[1]] = len(code)
        elif words.startswith("\t") and not words.lstrip().startswith("."):
            code.append(words.strip().replace("\t", " "))
    starts, loops = set(labels.values()), list[tuple[str, ...]]()
    for end, line in enumerate(code):
        jump = _JUMP.match(line)
        first = labels.get(jump[1], end + 1) if jump else end + 1
        if first <= end and not starts & set(range(first + 1, end + 1)):
            loops.append(tuple(code[first : end + 1]))
    return loops


def multiplying(text: str) -> list[LoopCode]:
    """The innermost loops that multiply and add."""
    return [loop for code in innermost(text) if (loop := LoopCode(code)).multiply_adds]


def hottest(loops: Sequence[LoopCode]) -> tuple[LoopCode, ...]:
    """Those with most sums at once: what is left over of rows and columns has fewer."""
    most = max((loop.sums for loop in loops), default=0)
    return tuple(loop for loop in loops if loop.sums == most)


def _accesses(line: str) -> tuple[int, int]:
    """How many registers, or operands, an instruction loads, and stores."""
    name, _, rest = line.partition(" ")
    if name.startswith(_NO_ACCESS):
        return 0, 0
    if "[" in rest and "(" not in rest:
        return _accesses_of_arm(name, rest)
    operands = [operand for operand in _operands(rest) if "(" in operand]
    if not operands:
        return 0, 0
    if "(" not in list(_operands(rest))[-1] or name.startswith(_ONLY_READS):
        return 1, 0
    return (0, 1) if _MOVE.match(name) else (1, 1)


def _accesses_of_arm(name: str, rest: str) -> tuple[int, int]:
    """Only loads and stores have an address; others name a lane in brackets."""
    if not name.startswith(("ld", "st")):
        return 0, 0
    listed = _LISTED.search(rest)
    count = len(listed[1].split(",")) if listed else 2 if _PAIR.match(name) else 1
    return (count, 0) if name.startswith("ld") else (0, count)


def _written(line: str) -> str:
    """The register that an instruction writes: the last one on x86-64, the first one on aarch64."""
    operands = list(_operands(line.partition(" ")[2]))
    return operands[-1] if operands[-1].startswith("%") else operands[0]


def _operands(rest: str) -> Iterator[str]:
    return (match[0].strip() for match in _OPERAND.finditer(rest))
