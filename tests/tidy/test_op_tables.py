"""One op, one law: what is true of an op stands with the op; tables of op names are registries, and
known by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.source import ROOT

from ingot_compiler.ir.ops import OPS_BY_NAME

COMPILER = ROOT / "compiler" / "ingot_compiler"
NAMES_MIN = 3  # op names that make a table
REGISTRIES = {
    "kernels/anchors.py": "what ops with tiles ask for",
    "codegen/emit/math/__init__.py": "functions as instructions",
    "codegen/emit/value.py": "comparisons as instructions",
    "kernels/products/choose.py": "algorithms of products",
    "backends/host/main/arithmetic.py": "instructions of main",
    "frontend/build/known_arithmetic.py": "functions of known sizes",
    "ir/dims.py": "functions of sizes",
    "ir/op_names.py": "the core ops",
    "ir/rules/reference_rules.py": "how a scatter combines",
    "ir/rules/typing_rules.py": "how a scatter combines",
    "lowering/constants/constant_arithmetic.py": "functions of folded weights",
    "lowering/constants/constant_functions.py": "functions of folded weights with equal bits everywhere",
    "lowering/constants/constant_movement.py": "movements of folded weights",
    "lowering/fusion/loop_anchors.py": "what ops with loops ask for",
    "lowering/fusion/movement.py": "views",
    "lowering/loops/interpret_scalars.py": "functions in numpy",
    "lowering/kinds/row_bodies.py": "bodies of row kernels",
    "lowering/ops/__init__.py": "how one element is computed",
    "lowering/loops/loop_values.py": "comparisons of indices",
    "lowering/loops/loop_value_text.py": "signs of comparisons",
    "passes/canonical/elementwise.py": "rules of a pass",
    "passes/canonical/movement.py": "rules of a pass",
    "passes/fuse_layer_norm.py": "where patterns of a pass end",
    "passes/integer_products.py": "where patterns of a pass end",
    "passes/rows_of_scatter.py": "where patterns of a pass end",
    "passes/scale_once.py": "where patterns of a pass end",
    "placement/op_work.py": "operations of a product",
}
REST = {
    "codegen/emit/blocks/epilogue.py", "codegen/emit/reduce.py",
}  # fmt: skip
"""Costs of instructions: this list may only shrink."""


def _tables(source: str) -> Iterator[int]:
    """Lines of collections most of which are names of core ops."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Dict | ast.Set | ast.Tuple | ast.List):
            continue
        items = node.keys if isinstance(node, ast.Dict) else node.elts
        texts = [
            item.value
            for item in items
            if isinstance(item, ast.Constant) and isinstance(item.value, str)
        ]
        named = sum(text in OPS_BY_NAME for text in texts)
        if named >= NAMES_MIN and 2 * named > len(texts):
            yield node.lineno


def test_tables_of_op_names_are_registries() -> None:
    """A new list of op names is a trait, or a shape constraint, that belongs to the ops."""
    files = {path: path.read_text(encoding="utf-8") for path in COMPILER.rglob("*.py")}
    found = {
        str(path.relative_to(COMPILER)) for path, source in files.items() if list(_tables(source))
    }
    assert found == {*REGISTRIES, *REST}


def test_what_counts_as_a_table() -> None:
    """Sets, tuples, lists and keys of dicts count; words that are mostly something else do not."""
    assert list(_tables('A = ("add", "sub", "mul")\nB = {"add": 1, "sub": 2, "mul": 3}')) == [1, 2]
    assert not list(_tables('A = ("add", "sub")\nB = ("add", "sub", "mul", "a", "b", "c")'))
