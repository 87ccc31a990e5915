"""What ``ingot compile`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.compile``)."""

from ingot_build_rules.making.options.option_rows import CHOICE_ROWS, ROWS
from ingot_build_rules.tools.cli.shell.options import (
    CACHES,
    JOBS,
    JSON,
    QUIET,
    Argument,
    Example,
    Option,
    Takes,
    compile_option,
)
from ingot_build_rules.tools.text.stages import FROM_STAGES, STAGES

_ARGUMENTS = (
    Argument(
        "model",
        "MODEL",
        "an .onnx file, external data beside it; a program (.ingot-text);"
        " a folder of graphs (with --from: a text)",
        "model",
    ),
)
_OPTIONS = (
    Option(
        "-o --output",
        "the bundle to write (default: the model's name with .ingot, in this folder); with --to, "
        "the text (default: standard output); - is standard output",
        "OUT.ingot",
        "bundle",
    ),
    Option("--graph", "the graph to compile, of a folder that has several", "NAME"),
    *(compile_option(field) for field in ROWS if field not in CHOICE_ROWS),
    Option(
        "--from",
        f"MODEL is the text of a stage: {', '.join(FROM_STAGES)}",
        "STAGE",
        choices=FROM_STAGES,
        destination="from_",
    ),
    Option(
        "--weights",
        "with --from or a program: the constants by number; with --to graph, placed: write them",
        "F.npz",
        "arrays",
    ),
    Option("--to", f"print a stage: {', '.join(STAGES)}", "STAGE", choices=STAGES),
    Option(
        "--check",
        "run the bundle against the interpreter node by node (default: generated inputs)",
        "INPUTS.npz",
        "arrays",
        suffix=".npz",
    ),
    Option(
        "--selftest",
        "keep N generated calls and their results in the bundle, for `python -m ingot_runtime selftest`",
        "N",
        "count",
    ),
    *(compile_option(field) for field in CHOICE_ROWS),
    Option(
        "--max-bytes",
        "refuse what expands, folds or plans more memory, such as 2GiB",
        "SIZE",
        "size",
    ),
    JOBS._replace(names="-j --jobs --workers"),
    Option("--depfile", "write the sources of the bundle for make or ninja", "FILE", "file"),
    *CACHES,
    QUIET,
    JSON,
)
_EXAMPLES = (
    Example("ingot compile model.onnx", "model.ingot, for this machine alone"),
    Example(
        "ingot compile model.onnx -o out.ingot --target x86-64-v3 --target x86-64-v4",
        "one file for two levels of processors; the loader takes the best that can run",
    ),
    Example(
        "ingot compile model.onnx --shape x=1x3x224x224",
        "faster kernels for one shape beside those for every shape",
    ),
    Example(
        "ingot compile model.onnx --shape x=1x3x224x224 --shape 'x=2..8x3x?x?'",
        "for one image, for some images of any size, and for everything else",
    ),
    Example("ingot compile FOLDER -o DIR", "a bundle of each graph of a folder from optimum"),
    Example("ingot compile model.onnx --check", "compare with an interpreter, node by node"),
    Example(
        "ingot compile model.onnx --device acc=null --place auto --place '/head/*=host'",
        "a second device; the cost model places the nodes, but for those of the head",
    ),
    Example("ingot compile model.onnx --to fused", "print which ops became one kernel"),
)

TAKES = {"compile": Takes(_ARGUMENTS, _OPTIONS, _EXAMPLES)}
