"""What the verbs that make one bundle from others, or write what it is made of, take, and examples of them.

In: nothing. Out: ``TAKES``. Not done here: the verbs (``cli``).
"""

from ingot_build_rules.tools.cli.shell.options import BUNDLE, JSON, Argument, Example, Option, Takes

TAKES = {
    "thin": Takes(
        (BUNDLE,),
        (
            Option("--target", "the variant that is left", "T", "target", required=True),
            Option("-o --output", "the bundle to write", "OUT.ingot", "bundle", required=True),
            JSON,
        ),
        (
            Example(
                "ingot thin model.ingot --target x86-64-v3 -o small.ingot",
                "one variant of several; signatures of the whole stay good",
            ),
        ),
    ),
    "share": Takes(
        (
            Argument("base", "BASE", "the bundle that has the weights", "bundle"),
            Argument("bundle", "BUNDLE", "a bundle of the same model, trained further", "bundle"),
        ),
        (
            Option(
                "-o --output",
                "the bundle to write, beside BASE",
                "OUT.ingot",
                "bundle",
                required=True,
            ),
            JSON,
        ),
        (
            Example(
                "ingot share base.ingot french.ingot -o french-shared.ingot",
                "a second fine-tune takes its own layers of disk and memory, and no more",
            ),
        ),
    ),
    "delta": Takes(
        (
            Argument("old", "OLD", "the bundle that devices have", "bundle"),
            Argument("new", "NEW", "the bundle that they are to have", "bundle"),
        ),
        (Option("-o --output", "the file to write", "FILE", "file", required=True), JSON),
        (
            Example(
                "ingot delta old.ingot new.ingot -o new.delta",
                "on the device: python -m ingot_runtime apply old.ingot new.delta -o new.ingot",
            ),
        ),
    ),
    "sbom": Takes(
        (BUNDLE,),
        (
            Option("--license", "the licence of the bundle, an SPDX expression", "SPDX"),
            Option("-o --output", "the file to write (default: standard output)", "FILE", "file"),
        ),
        (
            Example(
                "ingot sbom model.ingot --license Apache-2.0 -o model.cdx.json",
                "CycloneDX, in JSON",
            ),
        ),
    ),
}
