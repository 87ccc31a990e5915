"""The machine that builds, as a target: for code that runs while building, never for a bundle.

In: nothing. Out: a ``Target``, by the loader's own probe: what LLVM finds is not all that a
processor has, and it reads ``/proc``, which may be masked. Not done here: targets that a user names
(``ingot_build_rules.making.options.host_target``).
"""

from ingot_compiler.targets.target import Target, native_target
from ingot_runtime.loader.cpu import machine_architecture, permitted_features, processor_model


def host_target() -> Target:
    """Return the target whose features this process may use on this machine, tuned for its class of
    processors.

    Raises:
        UserError: an architecture that there is no code for, or a processor below its lowest level.
    """
    return native_target(sorted(permitted_features()), machine_architecture(), processor_model())
