"""The interpreter of PTX does what a GPU does where threads part, meet, wait and share memory, and
traps what a GPU does not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ptx.grid import Grid
from tests.ptx.memory import GlobalMemory
from tests.ptx.ptx_text import PtxError, read_ptx

THREADS = 64
BLOCKS = 2
_HEAD = ".version 6.3\n.target sm_75\n.address_size 64\n"
_KERNEL = """.visible .entry k(
	.param .u64 k_param_0
)
{
	.shared .align 4 .b8 tile[256];
	.reg .pred %p<4>;
	.reg .b32 %r<16>;
	.reg .b64 %rd<8>;
	ld.param.b64 %rd1, [k_param_0];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	mad.lo.s32 %r3, %r2, 64, %r1;
	mul.wide.u32 %rd2, %r3, 4;
	add.s64 %rd3, %rd1, %rd2;
	BODY
	st.global.b32 [%rd3], %r9;
	ret;
}
"""


def run(body: str, lanes: tuple[int, ...] = (), elements: int = BLOCKS * THREADS) -> list[int]:
    """What each thread leaves in %r9."""
    kernel = read_ptx(_HEAD + _KERNEL.replace("BODY", body)).kernels["k"]
    memory = GlobalMemory()
    address = memory.allocate(4 * elements)
    Grid(kernel, {}, memory, (BLOCKS, THREADS), [address], lanes).run()
    found: list[int] = memory.bytes_at(address, 4 * elements).view(np.int32).tolist()
    return found


_REVERSED = """mul.wide.u32 %rd4, %r1, 4;
	mov.b64 %rd5, tile;
	add.s64 %rd4, %rd5, %rd4;
	st.shared.b32 [%rd4], %r3;
	WAIT
	sub.s32 %r5, 63, %r1;
	mul.wide.u32 %rd6, %r5, 4;
	add.s64 %rd6, %rd5, %rd6;
	ld.shared.b32 %r9, [%rd6];"""
_ORDERS = ((), tuple(range(8)), tuple(reversed(range(8))))


@pytest.mark.parametrize("lanes", _ORDERS)
def test_blocks_have_memory_of_their_own_and_a_barrier(lanes: tuple[int, ...]) -> None:
    """Each thread reads what another one of its block has written before the barrier."""
    found = run(_REVERSED.replace("WAIT", "bar.sync 0;"), lanes)
    assert found == [*range(63, -1, -1), *range(127, 63, -1)]


@pytest.mark.parametrize(("sign", "expected"), [("u", [9, 2, 3]), ("s", [-7, 2, -1])])
def test_fields_of_signed_numbers_have_a_sign(sign: str, expected: list[int]) -> None:
    """The highest bit of the field is it, not that of the number."""
    fields = ((0, 4), (4, 3), (8, 2))
    for (start, length), want in zip(fields, expected, strict=True):
        body = f"mov.b32 %r8, 0x329;\n\tbfe.{sign}32 %r9, %r8, {start}, {length};"
        assert set(run(body)) == {want}


def test_a_missing_barrier_is_seen() -> None:
    """Threads that run one place after the other read what is not there yet."""
    assert run(_REVERSED.replace("WAIT", ""), tuple(range(8))) != run(
        _REVERSED.replace("WAIT", "bar.sync 0;")
    )


@pytest.mark.parametrize("lanes", _ORDERS)
def test_threads_part_and_meet(lanes: tuple[int, ...]) -> None:
    """Each thread goes round its own number of times; then all tell each other."""
    body = """mov.b32 %r9, 0;
	and.b32 %r4, %r1, 7;
LOOP:
	setp.ge.s32 %p1, %r9, %r4;
	@%p1 bra DONE;
	add.s32 %r9, %r9, 1;
	bra.uni LOOP;
DONE:
	mov.b32 %r6, -1;
	shfl.sync.idx.b32 %r7, %r9, 5, 6175, %r6;
	setp.eq.s32 %p2, %r1, 3;
	vote.sync.any.pred %p3, %p2, %r6;
	selp.b32 %r8, 100, 0, %p3;
	mad.lo.s32 %r9, %r9, 10, %r7;
	add.s32 %r9, %r9, %r8;"""
    expected = [10 * (n % 8) + 5 + (100 if n % 64 < 32 else 0) for n in range(128)]
    assert run(body, lanes) == expected


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("setp.eq.s32 %p1, %r1, 0;\n\t@%p1 bra OVER;\n\tmov.b32 %r6, -1;\n\tbar.warp.sync %r6;\nOVER:\n\tmov.b32 %r9, 0;", "wait for others that do not come"),
        ("mov.b32 %r6, 1;\n\tbar.warp.sync %r6;\n\tmov.b32 %r9, 0;", "its own mask does not name"),
        ("ld.global.b32 %r9, [%rd1+512];", "in no allocation"),
        ("ld.global.b32 %r9, [%rd3+2];", "no multiple of it"),
        ("ld.shared.b32 %r9, [%rd2+256];", "beyond the memory of a block"),
        ("st.global.b32 [%rd2], %r1;\n\tmov.b32 %r9, 0;", "in no allocation"),
        ("tanh.approx.f32 %r9, %r1;", "no instruction tanh.approx.f32"),
        ("mov.b32 %r9, %nosuch.x;", "that nothing has written"),
    ],
)  # fmt: skip
def test_what_a_gpu_does_not_do(body: str, words: str) -> None:
    """Threads that wait for ever, accesses outside of memory or at odd addresses, instructions that
    there are not."""
    with pytest.raises(PtxError, match=words):
        run(body)


def test_a_text_that_is_none() -> None:
    """The line is named."""
    with pytest.raises(PtxError, match="is not understood: odd line"):
        read_ptx(_HEAD + _KERNEL.replace("BODY", "odd line"))
    with pytest.raises(PtxError, match="no head of a module"):
        read_ptx("ret;")
