"""The visible lists: which file registers which folder, and the way of one op through them.

In: the registries. Out: file lists. Not done here: assertions (``test_registries``).
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.source import ROOT


@dataclass(frozen=True, slots=True)
class Registry:
    """``folder`` is registered in ``listing``; ``helpers`` are files in it that are no entries."""

    folder: str
    listing: str
    helpers: tuple[str, ...] = ()

    def files(self) -> set[str]:
        """Stems of the entries that lie in the folder."""
        stems = {path.stem for path in (ROOT / self.folder).glob("*.py")}
        return stems - {"__init__", Path(self.listing).stem, *self.helpers}

    def listed(self) -> set[str]:
        """Stems that the listing imports from the folder, or loads by name."""
        tree = ast.parse((ROOT / self.listing).read_text(encoding="utf-8"))
        package = self.folder.split("/", 1)[1].replace("/", ".")
        names: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == package:
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package + "."):
                names.add((node.module or "").rsplit(".", 1)[1])
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_load":
                names |= {str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)}
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and _is_files(node.targets):
                names |= {str(value.value) for value in node.value.values if isinstance(value, ast.Constant)}
        return names - {*self.helpers}


def _is_files(targets: list[ast.expr]) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "FILES" for target in targets)


REGISTRIES = (
    Registry("compiler/ingot_compiler/ir/ops", "compiler/ingot_compiler/ir/ops/__init__.py"),
    Registry("compiler/ingot_compiler/frontend/ops", "compiler/ingot_compiler/frontend/ops/__init__.py"),
    Registry("compiler/ingot_compiler/lowering/ops", "compiler/ingot_compiler/lowering/ops/__init__.py", ("element",)),
    Registry("compiler/ingot_compiler/lowering/kinds", "compiler/ingot_compiler/lowering/kinds/__init__.py", ("program",)),
    Registry(
        "compiler/ingot_compiler/lowering/memory",
        "compiler/ingot_compiler/lowering/memory/__init__.py",
        ("buffers", "check", "placing"),
    ),
    Registry("compiler/ingot_compiler/passes", "compiler/ingot_compiler/passes/pipeline.py", ("match", "rewrite")),
    Registry("compiler/ingot_compiler/targets", "compiler/ingot_compiler/targets/__init__.py", ("family", "target")),
    Registry("compiler/ingot_compiler/codegen/math", "compiler/ingot_compiler/codegen/math/__init__.py", ("number",)),
    Registry(
        "compiler/ingot_compiler/codegen/support",
        "compiler/ingot_compiler/codegen/support/__init__.py",
        ("parts", "host"),
    ),
    Registry(
        "build_rules/ingot_build_rules/rules",
        "build_rules/ingot_build_rules/rules/registry.py",
        (
            "artifact_types", "compile_options", "interface", "kernel_object", "main_object", "model_file", "packed_constant",
            "variant",
        ),
    ),
)  # fmt: skip


def path_of_op(onnx_op: str) -> tuple[str, ...]:
    """List the files of one ONNX op from the model to machine code, as the registries lead, each with its list.

    The core op has the ONNX op's name in lower case; its elementwise functions start with it.
    """
    from ingot_compiler.frontend.ops import OPS_BY_NAME as ONNX_OPS
    from ingot_compiler.ir.ops import OPS_BY_NAME as CORE_OPS
    from ingot_compiler.lowering.ops import ELEMENTS

    core = onnx_op.lower()
    objects: list[Callable[..., object]] = [ONNX_OPS[onnx_op].translate, CORE_OPS[core].infer, ELEMENTS[core]]
    sources = [Path(inspect.getsourcefile(item) or "").resolve() for item in objects]
    files: dict[str, None] = {}
    for source in [*sources, *_emitters(core)]:
        files[str(source.relative_to(ROOT))] = None
        files[str((source.parent / "__init__.py").relative_to(ROOT))] = None
    return tuple(files)


def _emitters(core: str) -> list[Path]:
    """Return the files that the table of math functions imports the functions of ``core`` from."""
    table = ROOT / "compiler" / "ingot_compiler" / "codegen" / "math" / "__init__.py"
    tree = ast.parse(table.read_text(encoding="utf-8"))
    origins = {
        alias.asname or alias.name: (node.module or "").rsplit(".", 1)[1]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ingot_compiler.codegen.math.")
        for alias in node.names
    }
    stems: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                name = key.value if isinstance(key, ast.Constant) else None
                if isinstance(name, str) and (name == core or name.startswith(core + "_")):
                    arguments = value.args if isinstance(value, ast.Call) else [value]
                    stems |= {origins[item.id]: None for item in arguments if isinstance(item, ast.Name)}
    return [table.parent / f"{stem}.py" for stem in stems]
