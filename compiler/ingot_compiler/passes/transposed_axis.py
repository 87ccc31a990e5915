"""One spatial axis of a transposed convolution, as a convolution for each phase of its stride.

In: sizes of the kernel, pads. Out: ``TransposedAxis``. Not done here: the convolutions
(``expand_conv_transpose``, ``transpose_by_taps``).
"""

from __future__ import annotations

from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TransposedAxis:
    """One spatial axis: ``taps`` of the convolution for each of ``stride`` phases, its pads, how
    many results of a phase are kept beyond the size of the operand, and where the result starts
    in them."""

    stride: int
    taps: int
    dilation: int
    before: int
    after: int
    more: int
    start: int
    kernel: int

    @staticmethod
    def of(
        kernel: int, stride: int, dilation: int, pads: tuple[int, int], added: int
    ) -> TransposedAxis:
        """What ``added`` needs beyond the kernel are taps of zeros."""
        taps = kernel if stride == 1 else -(-(kernel + max(added - pads[1], 0)) // stride)
        reach = (taps - 1) * dilation
        before = reach - pads[0] // stride
        start = pads[0] % stride
        # size = (d - 1) * stride + span + added - pads; phases give d - 1 + ceil(the rest / stride)
        rest = start + (kernel - 1) * dilation + 1 + added - pads[0] - pads[1]
        more = -(-rest // stride) - 1
        return TransposedAxis(
            stride, taps, dilation, before, more + reach - before, more, start, kernel
        )

    def taps_of(self, phase: int) -> int:
        """Taps of one phase's comb."""
        return -(-(self.kernel - phase) // self.stride)

    def before_of(self, phase: int) -> int:
        """The pads of one phase's convolution; behind the image all phases have the same."""
        return self.before - (self.taps - self.taps_of(phase)) * self.dilation

    def shift_of(self, tap: int) -> int:
        """Which pixel of the operand a tap takes to the first result of a phase."""
        return (self.taps - 1 - tap) * self.dilation - self.before

    @property
    def moved_before(self) -> int:
        """Pixels before the operand that some tap takes."""
        return max(0, -min(self.shift_of(tap) for tap in range(self.taps_of(0))))

    @property
    def moved_after(self) -> int:
        """Pixels behind it."""
        return max(0, self.more + max(self.shift_of(tap) for tap in range(self.taps_of(0))))
