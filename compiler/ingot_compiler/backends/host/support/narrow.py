"""Conversions to and from f16 and bf16, and ``fmaf``: what LLVM calls where the CPU has no instruction.

In: a target. Out: IR of ``__extendhfsf2``, ``__truncsfhf2``, ``__truncdfhf2``, ``__truncsfbf2``, ``__truncdfbf2`` and
``fmaf``, hidden. Not done here: vectors (kernels convert by integer arithmetic of their own).
All round to nearest, ties to even, once: IEEE 754-2019, 5.4.2 and 5.4.1. NaNs stay NaN and get quiet.
"""

from ingot_compiler.backends.host.support.parts import attributes
from ingot_compiler.backends.host.targets.target import Target


def write_narrow(target: Target) -> str:
    """Write all of them; an image keeps only what it calls."""
    return _extend(target) + _to_half(target) + _to_bfloat(target) + _round_to_odd(target) + _fma(target)


def _extend(target: Target) -> str:
    """Exact: the exponent is moved by a multiplication, which also makes subnormal f16 normal."""
    return f"""
define hidden float @__extendhfsf2(half %x) {attributes(target, "__extendhfsf2")} {{
  %h = bitcast half %x to i16
  %w = zext i16 %h to i32
  %sign = and i32 %w, 32768
  %sign.up = shl i32 %sign, 16
  %magnitude = and i32 %w, 32767
  %moved = shl i32 %magnitude, 13
  %scaled = bitcast i32 %moved to float
  ; 2^112: the difference of the exponent biases
  %finite = fmul float %scaled, 0x46F0000000000000
  %bits = bitcast float %finite to i32
  ; infinity and NaN: the largest exponent, NaN quiet
  %special = or i32 %moved, 2139095040
  %is.nan = icmp ugt i32 %magnitude, 31744
  %quiet = or i32 %special, 4194304
  %odd = select i1 %is.nan, i32 %quiet, i32 %special
  %is.special = icmp uge i32 %magnitude, 31744
  %value = select i1 %is.special, i32 %odd, i32 %bits
  %all = or i32 %value, %sign.up
  %r = bitcast i32 %all to float
  ret float %r
}}
"""


def _to_half(target: Target) -> str:
    """Normal results by integer rounding of the bits; subnormal ones by adding 0.5, whose ulp is that of f16's least."""
    return f"""
define hidden half @__truncsfhf2(float %x) {attributes(target, "__truncsfhf2")} {{
  %w = bitcast float %x to i32
  %sign = and i32 %w, -2147483648
  %magnitude = and i32 %w, 2147483647
  %sign.down = lshr i32 %sign, 16
  ; normal: rebias by -112 << 23, add half an ulp less one, plus the bit that decides ties
  %kept = lshr i32 %magnitude, 13
  %odd = and i32 %kept, 1
  %rebiased = add i32 %magnitude, -939524096
  %rounding = add i32 %rebiased, 4095
  %rounded = add i32 %rounding, %odd
  %normal = lshr i32 %rounded, 13
  ; subnormal or zero: the sum's lowest bits are the result
  %f = bitcast i32 %magnitude to float
  %sum = fadd float %f, 5.000000e-01
  %sum.bits = bitcast float %sum to i32
  %small = sub i32 %sum.bits, 1056964608
  %is.small = icmp ult i32 %magnitude, 947912704
  %finite = select i1 %is.small, i32 %small, i32 %normal
  ; 65520 and above: infinity
  %is.large = icmp uge i32 %magnitude, 1199566848
  %bounded = select i1 %is.large, i32 31744, i32 %finite
  %is.nan = icmp ugt i32 %magnitude, 2139095040
  %payload = lshr i32 %magnitude, 13
  %payload.kept = and i32 %payload, 1023
  %quiet = or i32 %payload.kept, 32256
  %value = select i1 %is.nan, i32 %quiet, i32 %bounded
  %all = or i32 %value, %sign.down
  %short = trunc i32 %all to i16
  %r = bitcast i16 %short to half
  ret half %r
}}
define hidden half @__truncdfhf2(double %x) {attributes(target, "__truncdfhf2")} {{
  %f = call float @ingot_round_to_odd(double %x)
  %r = call half @__truncsfhf2(float %f)
  ret half %r
}}
"""


def _to_bfloat(target: Target) -> str:
    return f"""
define hidden bfloat @__truncsfbf2(float %x) {attributes(target, "__truncsfbf2")} {{
  %w = bitcast float %x to i32
  %kept = lshr i32 %w, 16
  %odd = and i32 %kept, 1
  %half = add i32 %w, 32767
  %sum = add i32 %half, %odd
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %kept, 64
  %is.nan = fcmp uno float %x, %x
  %value = select i1 %is.nan, i32 %quiet, i32 %rounded
  %short = trunc i32 %value to i16
  %r = bitcast i16 %short to bfloat
  ret bfloat %r
}}
define hidden bfloat @__truncdfbf2(double %x) {attributes(target, "__truncdfbf2")} {{
  %f = call float @ingot_round_to_odd(double %x)
  %r = call bfloat @__truncsfbf2(float %f)
  ret bfloat %r
}}
"""


def _round_to_odd(target: Target) -> str:
    """Write ``float round_to_odd(double)``: truncated, last bit set if inexact; a second rounding is then exact.

    Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd".
    """
    return f"""
define internal float @ingot_round_to_odd(double %x) {attributes(target, "round_to_odd")} {{
  %f = fptrunc double %x to float
  %back = fpext float %f to double
  %f.size = call double @llvm.fabs.f64(double %back)
  %x.size = call double @llvm.fabs.f64(double %x)
  %above = fcmp ogt double %f.size, %x.size
  %inexact = fcmp one double %back, %x
  %bits = bitcast float %f to i32
  %less = zext i1 %above to i32
  %truncated = sub i32 %bits, %less
  %sticky = zext i1 %inexact to i32
  %odd = or i32 %truncated, %sticky
  %r = bitcast i32 %odd to float
  ret float %r
}}
declare double @llvm.fabs.f64(double)
"""


def _fma(target: Target) -> str:
    """``fmaf``: the product is exact in f64; the sum is rounded to odd there, then once to f32 (same source)."""
    if target.has_fma:
        return ""
    return f"""
define hidden float @fmaf(float %a, float %b, float %c) {attributes(target, "fmaf")} {{
  %a.d = fpext float %a to double
  %b.d = fpext float %b to double
  %c.d = fpext float %c to double
  %p = fmul double %a.d, %b.d
  %s = fadd double %p, %c.d
  ; the rounding error of the sum, exact (Knuth)
  %c.seen = fsub double %s, %p
  %p.seen = fsub double %s, %c.seen
  %c.error = fsub double %c.d, %c.seen
  %p.error = fsub double %p, %p.seen
  %error = fadd double %p.error, %c.error
  %inexact = fcmp one double %error, 0.000000e+00
  %bits = bitcast double %s to i64
  %e.bits = bitcast double %error to i64
  %differ = xor i64 %bits, %e.bits
  %above = icmp slt i64 %differ, 0
  %less = zext i1 %above to i64
  %truncated = sub i64 %bits, %less
  %odd = or i64 %truncated, 1
  %chosen = select i1 %inexact, i64 %odd, i64 %bits
  %exact = bitcast i64 %chosen to double
  %r = fptrunc double %exact to float
  ret float %r
}}
"""
