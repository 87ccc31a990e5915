"""What ``ingot inspect`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.inspect``)."""

from ingot_build_rules.tools.cli.shell.options import BUNDLE, DIGEST, JSON, Example, Option

ARGUMENTS = (BUNDLE,)
OPTIONS = (
    Option("--asm", "print one kernel's assembly; a unique start of its symbol will do", "KERNEL"),
    Option("--fusion", "what became one kernel, bytes it saved, what stopped it from growing"),
    Option(
        "--variant",
        "show this variant alone (default: all of them)",
        "TARGET",
        "target",
    ),
    Option(
        "--shape",
        "the memory of a call with this shape of an input",
        "NAME=1x3x224x224",
        "shape",
        repeats=True,
    ),
    DIGEST,
    JSON,
)
EXAMPLES = (
    Example("ingot inspect model.ingot", "inputs, outputs, variants, memory, launches"),
    Example("ingot inspect model.ingot --shape x=8x3x224x224", "the memory of such a call"),
    Example("ingot inspect model.ingot --fusion", "why each kernel has the ops that it has"),
    Example("ingot inspect model.ingot --asm k_6c2c", "the assembly of one kernel"),
)
