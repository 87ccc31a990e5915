"""Memory scopes of kernels: what buffers ask for, and what they are given."""

from __future__ import annotations

import pytest
from tests.harness.program_harness import read

from ingot_compiler.ir.errors import ModelError
from ingot_compiler.programs.kernel_scopes import get_scopes, with_scopes
from ingot_compiler.programs.print_program import print_program
from ingot_compiler.programs.program import ProgramKernel

KERNEL = """kernel @k(%ab: (T, T), %c: T) -> T {{ add(add(%ab.0, %ab.1), %c) }}
buffers (A: T scope "{0}", B: T scope "{0}", C0: T scope "{1}", D: T scope "{2}")
alias A2 of A scope "{0}"
alias A3 of A2 scope "{0}"
def @main(%x: T) -> T {{ @k((%x, %x), %x) }}"""


def kernel(*scopes: str) -> ProgramKernel:
    """The kernel with these scopes."""
    return read(KERNEL.format(*scopes)).kernels["k"]


def test_scopes_are_got() -> None:
    """A tuple has the one scope of its tensors; the result comes last."""
    assert get_scopes(kernel("scopeA", "scopeB", "scopeC")) == ("scopeA", "scopeB", "scopeC")


def test_scopes_are_applied() -> None:
    """Buffers take the scopes that are given, and other names of a buffer follow it; an empty scope
    changes nothing."""
    made = with_scopes(kernel("scopeA", "scopeB", "scopeC"), ("X", "", "Z"))
    assert get_scopes(made) == ("X", "scopeB", "Z")
    expected = kernel("X", "scopeB", "Z")
    assert (made.buffers, made.aliases) == (expected.buffers, expected.aliases)


def test_kernels_are_printed() -> None:
    """Buffers, scopes and aliases are in the text."""
    program = read(KERNEL.format("scopeA", "scopeB", "scopeC"))
    text = print_program(program)
    assert 'B: f32[5, 7] scope "scopeA"' in text
    assert 'alias A3 of A2 scope "scopeA"' in text


def test_buffers_must_fit() -> None:
    """A kernel with more buffers than its signature has tensors is refused by name."""
    program = read(KERNEL.format("a", "a", "a").replace("C0: T", "C1: T, C0: T"))
    with pytest.raises(ModelError, match="the buffers of kernel @k do not fit") as found:
        get_scopes(program.kernels["k"])
    assert "expected 4 buffers" in found.value.why
    assert "got 5" in found.value.why
