"""What ``ingot sign`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.sign``)."""

from ingot_build_rules.tools.cli.shell.options import BUNDLE, JSON, Example, Option, Takes

_ARGUMENTS = (BUNDLE,)
_OPTIONS = (
    Option("--key", "the private key of Ed25519, a PEM file", "F", "file"),
    Option("--password-file", "the file with the password of the key", "F", "file"),
    Option(
        "--command",
        "ask this command for the signature instead: the message on its standard input, 64 bytes on"
        " its standard output",
        "CMD",
    ),
    Option("--public-key", "with --command: whose signature it gives", "F", "file"),
    Option("--expires", "the last day on which it counts (UTC)", "YYYY-MM-DD"),
    Option(
        "--number",
        "larger for each later release: a device that has one installs none with a smaller number",
        "N",
    ),
    Option("--detached", "write the signature to a file of its own: BUNDLE.sig"),
    Option(
        "--sigstore",
        "write a signature of the file as `model_signing verify` takes it; --key is then on P-256,"
        " P-384 or P-521",
    ),
    Option(
        "--certificates",
        "with --sigstore: the certificate of the key, and those that lead to a root, in PEM",
        "F",
        "file",
    ),
    Option(
        "-o --output",
        "the file to write (default: the bundle itself; with --detached, BUNDLE.sig; with"
        " --sigstore, BUNDLE.sigstore.json)",
        "FILE",
        "file",
    ),
    JSON,
)
_EXAMPLES = (
    Example(
        "ingot sign model.ingot --key ec.pem --sigstore -o model.sig",
        "then: model_signing verify key model.ingot --signature model.sig --public_key ec.pub",
    ),
    Example("ingot sign model.ingot --key release.pem", "the bundle holds its signature"),
    Example(
        "ingot sign model.ingot --key release.pem --expires 2030-12-31 --detached",
        "model.ingot.sig beside it, until the end of that day",
    ),
)

TAKES = {"sign": Takes(_ARGUMENTS, _OPTIONS, _EXAMPLES)}
