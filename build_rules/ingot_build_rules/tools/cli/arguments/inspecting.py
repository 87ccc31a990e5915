"""What the verbs that look at bundles take, and examples of them.

In: nothing. Out: ``TAKES``. Not done here: the verbs (``cli``).
"""

from ingot_build_rules.tools.cli.shell.options import (
    BIND,
    BUNDLE,
    CALL_SHAPE,
    DIGEST,
    JSON,
    Argument,
    Example,
    Option,
    Takes,
)

TAKES = {
    "inspect": Takes(
        (BUNDLE,),
        (
            Option(
                "--asm",
                "print one kernel's assembly; a unique start of its symbol will do",
                "KERNEL",
            ),
            Option(
                "--fusion", "what became one kernel, bytes it saved, what stopped it from growing"
            ),
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
        ),
        (
            Example("ingot inspect model.ingot", "inputs, outputs, variants, memory, launches"),
            Example("ingot inspect model.ingot --shape x=8x3x224x224", "the memory of such a call"),
            Example(
                "ingot inspect model.ingot --fusion", "why each kernel has the ops that it has"
            ),
            Example("ingot inspect model.ingot --asm k_6c2c", "the assembly of one kernel"),
        ),
    ),
    "why-device": Takes(
        (
            BUNDLE,
            Argument(
                "value",
                "VALUE",
                "the name of a node, input, output or constant, or a glob over them",
            ),
        ),
        (DIGEST, JSON),
        (
            Example(
                "ingot why-device model.ingot /layer1/Conv", "why this node runs where it runs"
            ),
            Example("ingot why-device model.ingot '/layer1/*'", "the same of each node of a block"),
            Example("ingot why-device model.ingot logits --json", "of an output, for a program"),
        ),
    ),
    "report": Takes(
        (BUNDLE,),
        (
            Option("-o --output", "the page (default: BUNDLE with .html)", "F.html", "page"),
            Option("--against", "show what differs from this bundle", "OTHER", "bundle"),
            Option(
                "--inputs",
                "inputs of the call (default: numbers from a fixed seed)",
                "F.npz",
                "arrays",
            ),
            CALL_SHAPE,
            Option("--threads", "threads that compute (default 1)", "N", "count", 1),
            Option("--seconds", "measure at least so long (default 1)", "S", "seconds", 1.0),
            Option("--no-run", "run nothing: a page without times, for any machine"),
            Option(
                "--variant",
                "the variant to show (default: the best that runs here)",
                "TARGET",
                "target",
            ),
            BIND,
            DIGEST,
            JSON,
        ),
        (
            Example("ingot report model.ingot", "model.html: graph, kernels, times, memory"),
            Example(
                "ingot report new.ingot --against old.ingot",
                "with what differs from another bundle",
            ),
            Example("ingot report model.ingot --no-run", "without times, the same bytes each time"),
        ),
    ),
    "diff": Takes(
        (
            Argument("first", "A", "a bundle", "bundle"),
            Argument("second", "B", "the bundle to compare it with", "bundle"),
        ),
        (JSON,),
        (Example("ingot diff old.ingot new.ingot", "a line for each difference, or: equal"),),
    ),
    "verify": Takes(
        (BUNDLE._replace(name="bundles", help=".ingot files", times="+"),),
        (
            DIGEST,
            Option(
                "--require-key",
                "refuse a bundle that none of these has signed: the public key, a PEM file or 64 hex digits",
                "F",
                "file",
                repeats=True,
            ),
            Option(
                "--policy",
                "refuse a bundle whose signatures the policy does not accept",
                "F",
                "file",
            ),
            JSON,
        ),
        (
            Example("ingot verify dist/a.ingot dist/b.ingot", "compare every byte with its digest"),
            Example(
                "ingot verify model.ingot --digest 0123456789abcdef0123456789abcdef",
                "and refuse any bundle but this one",
            ),
            Example(
                "ingot verify model.ingot --require-key release.pub",
                "and refuse what the owner of this key has not signed",
            ),
        ),
    ),
}
