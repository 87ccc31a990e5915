"""The visible list of verbs.

In: nothing. Out: ``VERBS``. Not done here: the verbs (one module each, beside this one, imported
when it is asked for).

A verb's module has ``SUMMARY`` (one line), ``add_arguments(parser)`` and
``run(arguments) -> exit code``.
"""

VERBS: tuple[tuple[str, str], ...] = (
    ("compile", "compile a model into one bundle, or print a stage on the way"),
    ("build", "build what ingot.toml asks for, as far as something has changed"),
    (
        "why",
        "say what has changed since a bundle was built, and why its last build ran what it ran",
    ),
    ("log", "show what the last build of a bundle did, action by action"),
    ("query", "print the graph of a project as JSON or DOT"),
    ("watch", "build, and build again whenever a source changes"),
    ("clean", "remove what builds of a project have made"),
    ("run", "run a bundle on inputs from a file"),
    ("inspect", "show what is in a bundle: sections, devices, memory, kernels, assembly"),
    ("report", "write one page that shows a bundle: graph, kernels, times, memory, assembly"),
    ("diff", "say what differs between two bundles"),
    ("verify", "check every byte of bundles"),
    ("reproduce", "make a bundle again from its source, compare, say what differs and why"),
    ("bench", "measure a bundle or a model: calls, memory, kernels"),
    ("cache", "what is in the cache; make it smaller, check it, say why something is there"),
    ("identify", "say what this machine can run"),
)
