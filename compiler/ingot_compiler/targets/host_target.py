"""The machine that builds, as a target: for code that runs while building, never for a bundle.

In: nothing. Out: a ``Target``, by the loader's own probe: what LLVM finds is not all that a
processor has, and it reads ``/proc``, which may be masked. Not done here: targets that a user names
(``ingot_build_rules.making.options.host_target``).
"""

from ingot_compiler.targets.target import Target, native_target
from ingot_runtime.loader.cpu import machine_architecture, machine_features


def host_target() -> Target:
    """Return the target whose features this machine has.

    Raises:
        UserError: an architecture that there is no code for, or a processor below its lowest level.
    """
    return native_target(sorted(machine_features()), machine_architecture())
