"""What ``ingot export`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.export``)."""

from ingot_build_rules.making.options.export_rows import EXPORT_ROWS, FIELD_ROWS
from ingot_build_rules.tools.cli.shell.options import CACHE, JSON, Argument, Example, Option, Takes

_ARGUMENTS = (
    Argument(
        "bundle",
        "BUNDLE",
        "an .ingot file; with --c-source or --wasm a model, as `ingot compile` takes it",
        "bundle",
    ),
)
_OPTIONS = (
    *(Option(f"--{kind}", row.text) for kind, row in EXPORT_ROWS.items() if not row.of_project),
    Option(
        "-o --output",
        "the file to write; of --library, --c-source and --wasm the folder",
        "PATH",
        "file",
        required=True,
    ),
    *(
        Option(
            f"--{row.option}",
            row.text,
            row.metavar,
            row.option_kind,
            choices=row.words,
            repeats=row.key_type in ("texts", "shapes"),
        )
        for row in FIELD_ROWS.values()
        if row.option
    ),
    *CACHE,
    JSON,
)
_EXAMPLES = (
    Example(
        "ingot export model.ingot --executable -o model",
        "a program: `./model --inputs x.npz --outputs y.npz`",
    ),
    Example(
        "ingot export model.ingot --executable --dynamic -o model",
        "a program that opens the drivers of the machine: OpenCL's, NVIDIA's",
    ),
    Example(
        "ingot export model.ingot --library -o build", "`build/libmodel.a` and `build/model.h`"
    ),
    Example(
        "ingot export model.ingot --module-archive -o model.tar",
        "for tools that read the Model Library Format",
    ),
    Example(
        "ingot export model.onnx --c-source --shape x=1x3x96x96 -o build",
        "`build/model.c` and `build/model.h`; prints how much RAM and flash they take",
    ),
    Example("ingot export model.onnx --wasm -o build", "`build/model.mjs`, for pages and for node"),
)

TAKES = {"export": Takes(_ARGUMENTS, _OPTIONS, _EXAMPLES)}
