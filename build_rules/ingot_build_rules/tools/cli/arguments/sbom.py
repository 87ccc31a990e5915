"""What ``ingot sbom`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.sbom``)."""

from ingot_build_rules.tools.cli.shell.options import BUNDLE, Example, Option

ARGUMENTS = (BUNDLE,)
OPTIONS = (
    Option("--license", "the licence of the bundle, an SPDX expression", "SPDX"),
    Option("-o --output", "the file to write (default: standard output)", "FILE", "file"),
)
EXAMPLES = (
    Example("ingot sbom model.ingot --license Apache-2.0 -o model.cdx.json", "CycloneDX, in JSON"),
)
