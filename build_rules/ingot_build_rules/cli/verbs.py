"""The visible list of verbs.

In: nothing. Out: ``VERBS``. Not done here: the verbs (one module each, beside this one, imported when it is asked for).

A verb's module has ``SUMMARY`` (one line), ``add_arguments(parser)`` and ``run(arguments) -> exit code``.
"""

VERBS: tuple[tuple[str, str], ...] = (
    ("compile", "compile a model into one bundle, or print a stage on the way"),
    ("run", "run a bundle on inputs from a file"),
    ("inspect", "show what is in a bundle: sections, devices, memory, kernels, assembly"),
    ("diff", "say what differs between two bundles"),
    ("bench", "measure a bundle: time per call and per kernel"),
    ("cache", "what is in the cache; make it smaller, check it, say why something is there"),
    ("identify", "say what this machine can run"),
)
