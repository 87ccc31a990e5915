"""What is odd about the devices of a file, in a line each.

In: options. Out: sentences. Not done here: what is odd (``options.configure``).
"""

from __future__ import annotations

from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.configure import configuration_of


def device_notes(output: str, options: CompileOptions) -> list[str]:
    """Return what to say of a file that was made with these options."""
    if not options.devices:
        return []
    return [f"note: {output}: {note}" for note in configuration_of(options).notes]
