"""Who may import whom, and what must not appear where; import-linter holds the same, less
finely."""

from __future__ import annotations

import ast

import pytest
from tests.tidy.source import modules

# package -> packages of ours that it may import
ALLOWED = {
    "ingot": (
        "ingot",
        "ingot_build_rules",
        "ingot_compiler",
        "ingot_artifacts",
        "ingot_runtime.__version__",
        "ingot_runtime.ingot_error",
    ),
    "ingot_build_rules": (
        "ingot_build_rules",
        "ingot_compiler",
        "ingot_artifacts",
        "ingot_runtime",
        "ingot_runtime_devices.attached",  # by the rule that runs tests, for its key
    ),
    "ingot_compiler": (
        "ingot_compiler",
        "ingot_runtime.loader.cpu",  # what this machine can run, for code that runs while building
        "ingot_runtime.format",
        "ingot_runtime.ingot_error",
        "ingot_runtime.lazy_dataclass",
        "ingot_runtime.option_ref",
    ),
    "ingot_artifacts": (
        "ingot_artifacts",
        "ingot_runtime.format",
        "ingot_runtime.errors",
        "ingot_runtime.ingot_error",
        "ingot_runtime.lazy_dataclass",
        "ingot_runtime.option_ref",
    ),
    "ingot_runtime": ("ingot_runtime",),
    "ingot_runtime_devices": ("ingot_runtime_devices", "ingot_runtime"),
}
_MAKES_CODE = tuple(
    f"ingot_compiler.{room}." for room in ("backends", "codegen", "kernels", "targets")
)
# module that makes code -> whose text it matches patterns in
PATTERNS_OF = {
    "ingot_compiler.backends.host.link": "the linker's: its messages",
    "ingot_compiler.targets.target": "the user's: the name of a target",
}
# library -> the only places that may import it
ONLY_IN = {
    "onnx": ("ingot_compiler.frontend", "ingot_compiler.quantizer"),
    "google": ("ingot_compiler.frontend", "ingot_compiler.quantizer"),
    "llvmlite": ("ingot_compiler.codegen",),
    "ziglang": ("ingot_compiler.backends.host",),
    "rich": ("ingot_build_rules.tools.cli",),
    "diskcache": ("ingot_artifacts.store",),
    "subprocess": (
        "ingot_compiler.backends.host",
        "ingot_build_rules.engine.executors.worker_process",
        "ingot_build_rules.tools.ship.signer",
        "ingot_build_rules.tools.view.peer",
        "ingot_build_rules.tools.view.resident_memory",
        "ingot_runtime_devices.opencl_build",
    ),
    "multiprocessing": (),
    "argparse": (
        "ingot_build_rules.tools.cli",
        "ingot_runtime.command",
        "ingot_runtime.ship_command",
        "ingot_runtime.option_values",
    ),
    "pyopencl": ("ingot_runtime_devices.opencl", "ingot_runtime_devices.opencl_build"),
    "cryptography": ("ingot_build_rules.tools.ship", "ingot_runtime.loader.ed25519"),
    "pickle": (),
    "marshal": (),
    "shelve": (),
}
# module -> what it reads of the environment, and why no result depends on it
READS_ENVIRONMENT = {
    "ingot_build_rules.tools.workspace.cache_folder": "INGOT_CACHE, XDG_CACHE_HOME, INGOT_CACHE_MAX: the cache",
    "ingot_build_rules.tools.workspace.user_key": "XDG_STATE_HOME: where the key is that says what is believed, not what is made",
    "ingot_build_rules.tools.cli.entry": "OPENBLAS_NUM_THREADS: set to one thread where the user has not set it",
    "ingot_build_rules.tools.cli.shell.terminal": "TERM, NO_COLOR, CI: whether progress moves and is more than plain text",
    "ingot_build_rules.tools.cli.building.jobserver_flags": "MAKEFLAGS: how many jobs the `make` above lends",
}
PRINTING = ("ingot_build_rules.tools.cli", "ingot_runtime.command", "ingot_runtime.ship_command")
# Pure parts: a result there depends on arguments alone.
PURE = (
    "ingot_compiler.ir",
    "ingot_compiler.passes",
    "ingot_compiler.placement",
    "ingot_compiler.lowering",
    "ingot_compiler.memory",
    "ingot_compiler.host_program",
    "ingot_compiler.targets",
    "ingot_build_rules.making.project",
    "ingot_build_rules.engine.actions.rule",
    "ingot_build_rules.engine.actions.content",
    "ingot_build_rules.engine.actions.leaves",
    "ingot_build_rules.engine.actions.codec",
    "ingot_build_rules.engine.actions.key",
    "ingot_build_rules.engine.actions.record",
)
IMPURE_LIBRARIES = (
    "os",
    "time",
    "random",
    "secrets",
    "uuid",
    "datetime",
    "socket",
    "getpass",
    "platform",
    "locale",
)
# module -> library and why it is pure all the same
PURE_ALL_THE_SAME = {
    (
        "ingot_compiler.memory.planners.hill_climb",
        "random",
    ): "its own generator with a stated seed, the same everywhere",
    (
        "ingot_build_rules.making.project.read_value",
        "os",
    ): "the text of a path object, which a project declared in Python may have",
}
# `_sha2` is in the standard library from 3.12 on, `_sha256` before: `hashlib` costs OpenSSL at
# import.
# `cryptography` checks signatures where the process has imported it.
LOADER_LIBRARIES = ("numpy", "_sha2", "_sha256", "cryptography")
DEVICE_LIBRARIES = ("pyopencl",)  # an extra, imported when a bundle has such a device
OURS_ON_THE_DEVICE = ("ingot_runtime", "ingot_runtime_devices")
SLOW_AT_IMPORT = (
    "numpy", "msgpack", "dataclasses", "typing", "pathlib", "re", "json", "logging", "enum", "contextlib", "argparse",
    "hashlib", "difflib", "inspect", "ctypes", "threading", "subprocess",
)  # fmt: skip


def _within(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def test_packages_import_along_the_arrows() -> None:
    """build_rules -> (compiler | artifacts) -> the loader's format; the loader imports none of
    them."""
    wrong = [
        f"{module.path}:{line} imports {name}"
        for module in modules()
        for line, name in module.imports()
        if name.startswith("ingot") and not _within(name, ALLOWED[module.name.split(".")[0]])
    ]
    assert wrong == []


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_a_library_is_used_in_its_place_only(library: str) -> None:
    """Each heavy or dangerous library has one place; pickle and its like have none."""
    wrong = [
        f"{module.path}:{line} imports {name}"
        for module in modules()
        for line, name in module.imports()
        if _within(name, (library,)) and not _within(module.name, ONLY_IN[library])
    ]
    assert wrong == []


def test_pure_parts_look_at_nothing_but_their_arguments() -> None:
    """No clock, randomness, environment or file system in intermediate code, passes, lowering,
    targets, keys."""
    wrong = [
        f"{module.path}:{line} imports {name}"
        for module in modules()
        if _within(module.name, PURE)
        for line, name in module.imports()
        if _within(name, IMPURE_LIBRARIES) and (module.name, name) not in PURE_ALL_THE_SAME
    ]
    assert wrong == []


def test_nothing_reads_the_environment() -> None:
    """No environment variable changes a result anywhere in the packages."""
    wrong = [
        f"{module.path}:{node.lineno}"
        for module in modules()
        if module.name not in READS_ENVIRONMENT
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
    ]
    assert wrong == []


def test_back_ends_match_patterns_in_the_texts_of_others_only() -> None:
    """A back end reads kernels as ``KernelIr``, C as ``CStatement``, and no text of its own."""
    found = {
        module.name
        for module in modules()
        if module.name.startswith(_MAKES_CODE) and any(name == "re" for _, name in module.imports())
    }
    assert found == PATTERNS_OF.keys()


def test_the_loader_needs_the_standard_library_and_numpy() -> None:
    """The device side depends on nothing else."""
    import sys

    wrong = [
        f"{module.path}:{line} imports {name}"
        for module in (*modules("ingot_runtime"), *modules("ingot_runtime_devices"))
        for line, name in module.imports()
        if name.split(".")[0]
        not in (*sys.stdlib_module_names, *LOADER_LIBRARIES, *OURS_ON_THE_DEVICE)
        and (module.name.startswith("ingot_runtime.") or name not in DEVICE_LIBRARIES)
    ]
    assert wrong == []


def test_the_loader_imports_light_modules_at_its_top() -> None:
    """What ``import ingot_runtime`` runs names no module that costs milliseconds."""
    wrong = [
        f"{module.path}:{statement.lineno}"
        for module in modules("ingot_runtime")
        if module.name
        in (
            "ingot_runtime",
            "ingot_runtime.errors",
            "ingot_runtime.ingot_error",
            "ingot_runtime.printable",
        )
        for statement in module.tree.body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in statement.names]
            if isinstance(statement, ast.Import)
            else [statement.module]
        )
        if name and name.split(".")[0] in SLOW_AT_IMPORT
    ]
    assert wrong == []


def test_the_engine_has_no_word_of_models() -> None:
    """The build engine would serve any other build as well."""
    words = ("onnx", "tensor", "kernel", "weight", "graph", "numpy", "llvm", "model", "neural")
    wrong = [
        f"{module.path}: {word}"
        for module in modules("ingot_build_rules.engine")
        for word in words
        if word in module.text.lower()
    ]
    assert wrong == []


def test_libraries_do_not_print() -> None:
    """Text for people comes from the command alone."""
    wrong = [
        f"{module.path}:{node.lineno}"
        for module in modules()
        if not _within(module.name, PRINTING)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert wrong == []


OF_THE_STANDARD_LIBRARY = {
    "ingot_build_rules.making.project.problems": "its problems have an order",
    "ingot_build_rules.tools.workspace.build_report": "its report is printed in another way",
    "ingot_compiler.ir.dims": "terms of dimensions have an order",
    "ingot_runtime.lazy_dataclass": "makes ours of it",
}


def test_data_classes_are_made_when_they_are_needed() -> None:
    """The decorator of the standard library takes ten times as long; it may do what ours does
    not."""
    users = [
        module.name
        for module in modules()
        if any(name == "dataclasses.dataclass" for _, name in module.imports())
    ]
    assert sorted(users) == sorted(OF_THE_STANDARD_LIBRARY)
