"""An accelerator on the host's memory: a library in C that computes sums with relu.

In: nothing. Out: ``TARGET``. Not done here: the hooks.
"""

from accelerator.claim import claim
from accelerator.library import library
from accelerator.lower import lower
from ingot_compiler.plugins.plugin import Plugin

TARGET = Plugin(
    "accelerator", claim=claim, lower=lower, library=library, attributes={"least_elements": 1}
)
