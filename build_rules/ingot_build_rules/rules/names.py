"""Rule ``names``: what the user called things, as an artifact of its own.

In: an import. Out: ``Names``. Not done here: joining names to reports (``bundle``, errors).
A renamed node changes this artifact and none between it and ``bundle``.
"""

from ingot_build_rules.engine.rule import Context, Rule
from ingot_build_rules.rules.import_model import IMPORT_MODEL, ImportInputs
from ingot_compiler.ir.graph import Names


def _compute(context: Context, inputs: ImportInputs) -> Names:
    return context.need(IMPORT_MODEL, inputs).names


NAMES = Rule("names", 1, IMPORT_MODEL.ingredients, _compute)
