"""``float_enter``, ``float_leave``: kernels run under the default floating-point environment, whatever the caller's is.

In: a target. Out: IR text. Not done here: the registers' names and values (``TargetFamily.float_control``).
A rounding mode, or subnormal numbers flushed to zero by another library, would change results; and only on the caller's
thread, so that one thread and two would differ.
"""

from ingot_compiler.backends.host.support.parts import attributes
from ingot_compiler.backends.host.targets.family import FloatControl
from ingot_compiler.backends.host.targets.target import Target


def write_float_control(target: Target) -> str:
    """Write ``iN float_enter()``, which returns what was set, and ``void float_leave(iN)``, which sets that again."""
    control = target.family.float_control
    kind = f"i{control.bits}"
    return f"""
define internal {kind} @ingot_float_enter() {attributes(target, "launch")} {{
{_read(control)}
  %kept = and {kind} %old, {control.mask}
  %usual = icmp eq {kind} %kept, {control.default}
  br i1 %usual, label %done, label %change
change:
{_write(control, str(control.default))}
  br label %done
done:
  ret {kind} %old
}}
define internal void @ingot_float_leave({kind} %old) {attributes(target, "launch")} {{
  %kept = and {kind} %old, {control.mask}
  %usual = icmp eq {kind} %kept, {control.default}
  br i1 %usual, label %done, label %change
change:
{_write(control, "%old")}
  br label %done
done:
  ret void
}}
{_declarations(control)}"""


def float_type(target: Target) -> str:
    """Return the type of what ``float_enter`` returns."""
    return f"i{target.family.float_control.bits}"


def _read(control: FloatControl) -> str:
    kind = f"i{control.bits}"
    if not control.by_address:
        return f"  %old = call {kind} @{control.read}()"
    return (
        f"  %place = alloca {kind}, align 8\n  call void @{control.read}(ptr %place)\n"
        f"  %old = load {kind}, ptr %place, align 8"
    )


def _write(control: FloatControl, value: str) -> str:
    kind = f"i{control.bits}"
    if not control.by_address:
        return f"  call void @{control.write}({kind} {value})"
    return (
        f"  %new = alloca {kind}, align 8\n  store {kind} {value}, ptr %new, align 8\n"
        f"  call void @{control.write}(ptr %new)"
    )


def _declarations(control: FloatControl) -> str:
    kind = f"i{control.bits}"
    if control.by_address:
        return f"declare void @{control.read}(ptr)\ndeclare void @{control.write}(ptr)\n"
    return f"declare {kind} @{control.read}()\ndeclare void @{control.write}({kind})\n"
