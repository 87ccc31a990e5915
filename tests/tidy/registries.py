"""The visible lists: which file registers which folder, and the way of one op through them.

In: the registries. Out: file lists. Not done here: assertions (``test_registries``).
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.harness.ir_harness import op_name
from tests.tidy.source import ROOT

from ingot_compiler.ir.op_names import MODULES


@dataclass(frozen=True, slots=True)
class Registry:
    """``folder`` is registered in ``listing``; ``helpers`` are files in it that are no entries."""

    folder: str
    listing: str
    helpers: tuple[str, ...] = ()
    modules: frozenset[str] = frozenset()
    """What the listing names that it neither imports nor has in ``FILES``."""

    def files(self) -> set[str]:
        """Stems of the entries that lie in the folder."""
        stems = {path.stem for path in (ROOT / self.folder).glob("*.py")}
        return stems - {"__init__", Path(self.listing).stem, *self.helpers}

    def listed(self) -> set[str]:
        """Stems that the listing imports from the folder, or loads by name."""
        tree = ast.parse((ROOT / self.listing).read_text(encoding="utf-8"))
        package = self.folder.split("/", 1)[1].replace("/", ".")
        names = {*self.modules}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == package:
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package + "."):
                names.add((node.module or "").rsplit(".", 1)[1])
            elif (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Dict)
                and _is_files(node.targets)
            ) or (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.value, ast.Dict)
                and _is_files([node.target])
            ):
                names |= {
                    str(value.value)
                    for value in node.value.values
                    if isinstance(value, ast.Constant)
                }
        return names - {*self.helpers}


def _is_files(targets: list[ast.expr]) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "FILES" for target in targets)


REGISTRIES = (
    Registry("compiler/ingot_compiler/ir/ops", "compiler/ingot_compiler/ir/op_names.py", (), frozenset(MODULES.values())),
    Registry("compiler/ingot_compiler/frontend/ops", "compiler/ingot_compiler/frontend/ops/__init__.py"),
    Registry("compiler/ingot_compiler/frontend/ops/microsoft", "compiler/ingot_compiler/frontend/ops/microsoft/__init__.py"),
    Registry("compiler/ingot_compiler/frontend/ops/ml", "compiler/ingot_compiler/frontend/ops/ml/__init__.py"),
    Registry("compiler/ingot_compiler/lowering/ops", "compiler/ingot_compiler/lowering/ops/__init__.py", ("element",)),
    Registry("compiler/ingot_compiler/lowering/kinds", "compiler/ingot_compiler/lowering/kinds/__init__.py", ("before_loop", "gathered_columns", "group_norm_lanes", "image_rows", "key_range", "kind", "launches_in_turn", "line_lanes", "lines", "merged_axes", "overlapping_box", "padded_axis", "pool_lanes", "pool_planes", "pool_short_rows", "pool_window", "program", "rank_sort", "reduce_by_rows", "reduce_short_rows", "reduction", "resize_axis", "resize_coordinate", "resize_scope", "resize_whole", "row_bodies", "row_sort", "run_views", "split_pool", "split_reduce", "split_repeats", "split_resize", "touched_views", "transposed_plane", "strided_lines")),
    Registry("compiler/ingot_compiler/kernels/kinds", "compiler/ingot_compiler/kernels/kinds/__init__.py"),
    Registry(
        "compiler/ingot_compiler/kernels/products",
        "compiler/ingot_compiler/kernels/products/choose.py",
        ("algorithm", "block_digits", "contraction", "convolution", "dense_values", "facts", "float_parts", "parts", "product_cost", "product_of_parts", "product_share", "rounded", "rows_by_group", "strassen", "taps_inside", "tuned", "turns", "winograd_cost"),
    ),
    Registry(
        "compiler/ingot_compiler/memory/planners",
        "compiler/ingot_compiler/memory/planners/__init__.py",
        ("buffers", "check", "placing", "smallest_plan"),
    ),
    Registry("compiler/ingot_compiler/passes", "compiler/ingot_compiler/passes/pipeline.py", ("alike_channels", "hold_rows", "hold_state", "hold_whole", "match", "quantized_values", "rewrite", "rows_of_scatter", "transpose_by_taps", "transposed_axis", "zero_points")),
    Registry("compiler/ingot_compiler/targets", "compiler/ingot_compiler/targets/__init__.py", ("family", "host_target", "processors", "target")),
    Registry(
        "compiler/ingot_compiler/codegen/emit/math",
        "compiler/ingot_compiler/codegen/emit/math/__init__.py",
        ("emitter", "quarter_turns", "table"),
    ),
    Registry(
        "build_rules/ingot_build_rules/engine/executors",
        "build_rules/ingot_build_rules/engine/executors/registry.py",
        ("executor", "garbage", "jobserver", "pool", "wire", "worker", "worker_process"),
    ),
    Registry(
        "build_rules/ingot_build_rules/making/rules",
        "build_rules/ingot_build_rules/making/rules/registry.py",
        ("variant",),
    ),
)  # fmt: skip


def path_of_op(onnx_op: str) -> tuple[str, ...]:
    """List the files of one ONNX op from the model to machine code, as the registries lead, each
    with its list.

    The core op has the ONNX op's name in lower case; its elementwise functions start with it.
    """
    from ingot_compiler.lowering.ops import element_rule

    core = onnx_op.lower()
    sources = [*_down_to_core(onnx_op), _source(element_rule(op_name(core))), *_emitters(core)]
    return _with_lists(*((source, _list_of(source)) for source in sources))


def path_with_loops(onnx_op: str, shape: tuple[int, ...], **attributes: int) -> tuple[str, ...]:
    """List the files of an ONNX op of one operand that has loops of its own, down to those of the
    kernel that fusion gives it."""
    from ingot_compiler.backends.host.hooks import device_rules
    from ingot_compiler.ir.builder import GraphBuilder
    from ingot_compiler.ir.graph import OptimizedGraph
    from ingot_compiler.ir.types import TensorType
    from ingot_compiler.lowering.fuse import fuse
    from ingot_compiler.lowering.fusion import loop_anchors
    from ingot_compiler.lowering.groups.fused import groups_of
    from ingot_compiler.lowering.kinds import KINDS
    from ingot_compiler.lowering.kinds.row_bodies import ROW_BODIES
    from ingot_compiler.placement.place import place
    from ingot_compiler.placement.virtual_device import HOST_TYPE, DeclaredDevice, VirtualDevice

    builder = GraphBuilder([TensorType("f32", shape)])
    graph = builder.finish([builder.add(op_name(onnx_op.lower()), (0,), attributes)])
    placed = place(OptimizedGraph(graph), (DeclaredDevice("host", VirtualDevice(HOST_TYPE, 0)),))
    (group,) = groups_of(fuse(placed, (device_rules("x86-64-v3"),)))
    sources = [(source, _list_of(source)) for source in _down_to_core(onnx_op)]
    kind = _source(inspect.unwrap(KINDS[group.kind].lower))
    bodies = [(_source(body),) for name, body in ROW_BODIES.items() if name == onnx_op.lower()]
    anchors = (Path(loop_anchors.__file__).resolve(),)
    return _with_lists(*sources, anchors, (kind, _list_of(kind)), *bodies)


def path_of_device(kind: str) -> tuple[str, ...]:
    """List the files of a kind of device: its number, what the loader opens, its back end, each
    with its list; then the suite of all kinds."""
    import ingot_runtime_devices.registry as devices
    from ingot_compiler.backends import registry as backends
    from ingot_runtime.format import plan

    folder = Path(backends.__file__).resolve().parent / kind
    opened = _source(devices.OPEN[kind])
    return (
        "runtime/FORMAT.md",
        *_with_lists((Path(plan.__file__).resolve(),), (opened, Path(devices.__file__).resolve())),
        *_with_lists(tuple(sorted(folder.glob("*.py"))), (Path(backends.__file__).resolve(),)),
        "pyproject.toml",
        "tests/conformance/test_devices.py",
    )


def path_of_executor(name: str) -> tuple[str, ...]:
    """List the file of an executor, with its list."""
    from ingot_build_rules.engine.executors import registry

    return _in_folder_of(registry.__file__, registry.FILES[name])


def path_of_layer(kind: str) -> tuple[str, ...]:
    """List the file of a kind of layers of a cache, with its list."""
    from ingot_artifacts.store import layers

    return _in_folder_of(layers.__file__, layers.FILES[kind])


def _in_folder_of(listing: str, stem: str) -> tuple[str, ...]:
    path = Path(listing).resolve()
    return _with_lists((path.parent / f"{stem}.py", path))


def files_that_name_device(kind: str) -> set[str]:
    """List the files that have a kind of device as a string, or as a room of its own."""
    packages = [
        ROOT / top
        for top in ("artifacts", "build_rules", "compiler", "runtime", "tests/conformance")
    ]
    found = {
        str(path.relative_to(ROOT))
        for package in packages
        for path in package.rglob("*.py")
        if any(
            isinstance(node, ast.Constant) and node.value == kind
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    layer = re.search(
        rf'"(?:\w+ \| )*{kind}(?: \| \w+)*"', (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )
    return found | ({"pyproject.toml"} if layer else set())


def files_that_name(core: str) -> set[str]:
    """List the files of the compiler that write a core op's name as a string; docstrings do not
    count."""
    return {
        str(path.relative_to(ROOT))
        for path in (ROOT / "compiler" / "ingot_compiler").rglob("*.py")
        if any(
            isinstance(node, ast.Constant) and node.value == core
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }


def _down_to_core(onnx_op: str) -> list[Path]:
    from ingot_compiler.frontend.ops import FILES
    from ingot_compiler.ir.ops import OPS_BY_NAME as CORE_OPS

    frontend = ROOT / "compiler" / "ingot_compiler" / "frontend" / "ops" / f"{FILES[onnx_op]}.py"
    return [frontend, _source(CORE_OPS[op_name(onnx_op.lower())].infer)]


def _source(item: Callable[..., object]) -> Path:
    return Path(inspect.getsourcefile(item) or "").resolve()


def _list_of(source: Path) -> Path:
    """Return the file that lists the entries of the folder that ``source`` lies in."""
    return next(
        ROOT / registry.listing
        for registry in REGISTRIES
        if source.parent == ROOT / registry.folder
    )


def _with_lists(*files: tuple[Path, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(file.relative_to(ROOT)) for entry in files for file in entry))


def _emitters(core: str) -> list[Path]:
    """Return the files that the table of math functions imports the functions of ``core`` from."""
    table = ROOT / "compiler/ingot_compiler/codegen/emit/math/__init__.py"
    tree = ast.parse(table.read_text(encoding="utf-8"))
    origins = {
        alias.asname or alias.name: (node.module or "").rsplit(".", 1)[1]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("ingot_compiler.codegen.emit.math.")
        for alias in node.names
    }
    stems: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                name = key.value if isinstance(key, ast.Constant) else None
                if isinstance(name, str) and (name == core or name.startswith(core + "_")):
                    arguments = value.args if isinstance(value, ast.Call) else [value]
                    stems |= {
                        origins[item.id]: None for item in arguments if isinstance(item, ast.Name)
                    }
    return [table.parent / f"{stem}.py" for stem in stems]
