"""What is odd about the devices of a file, in a line each.

In: options. Out: sentences. Not done here: what is odd (``compilation.configure``).
"""

from __future__ import annotations

from ingot_build_rules.compilation.configure import configuration_of
from ingot_build_rules.rules.compile_options import CompileOptions


def device_notes(output: str, options: CompileOptions) -> list[str]:
    """Return what to say of a file that was made with these options."""
    if not options.devices:
        return []
    return [f"note: {output}: {note}" for note in configuration_of(options).notes]
