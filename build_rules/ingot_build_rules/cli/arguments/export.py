"""What ``ingot export`` takes, and examples of it. In: nothing. Out: data. Not done here: the verb
(``cli.export``)."""

from ingot_build_rules.cli.options import BUNDLE, CACHE, JSON, Example, Option

ARGUMENTS = (BUNDLE,)
OPTIONS = (
    Option(
        "--executable", "a program of one file for Linux, which needs no Python and no library"
    ),
    Option("--library", "a library to link, and its header, which need no libc and no memory"),
    Option("-o --output", "the file to write; of --library the folder", "PATH", "file", required=True),
    Option("--shared", "a library that is loaded when the program starts (default: a static one)"),
    Option("--name", "what the model is called in C (default: as the bundle's file)", "NAME"),
    Option("--variant", "the one to export (default: the only one)", "TARGET"),
    Option(
        "--pool",
        "who gives the memory of a pool: caller, or internal for a section of the library",
        "POOL=PLACE",
        "pair",
        repeats=True,
    ),
    Option("--tensors-in", "the pool that inputs and outputs lie in", "POOL"),
    *CACHE,
    JSON,
)
EXAMPLES = (
    Example(
        "ingot export model.ingot --executable -o model",
        "a program: `./model --inputs x.npz --outputs y.npz`",
    ),
    Example("ingot export model.ingot --library -o build", "`build/libmodel.a` and `build/model.h`"),
)
