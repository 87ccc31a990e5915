"""Ops of other domains through frontend and interpreter, compared with numpy: as they are, and with
unknown sizes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper
from tests.contrib import (
    cases_attention,
    cases_elementwise,
    cases_experts,
    cases_generation,
    cases_images,
    cases_products,
    cases_quantized,
    cases_quantized_cache,
    cases_shapes,
    cases_states,
    cases_tables,
    cases_window_cache,
)
from tests.contrib.contrib_case import ContribCase, drawn, opened
from tests.harness.frontend_harness import run_model, symbolic
from tests.hostile.model_builder import graph_of

from ingot_compiler.frontend.op_table import OPS
from ingot_compiler.frontend.ops import microsoft
from ingot_compiler.ir.errors import ModelError, UnsupportedError

ATTENTION = (cases_attention, cases_quantized_cache, cases_window_cache)
MODULES = (
    *ATTENTION,
    cases_elementwise,
    cases_experts,
    cases_generation,
    cases_images,
    cases_products,
    cases_quantized,
    cases_shapes,
    cases_states,
    cases_tables,
)
CASES: dict[str, ContribCase] = {case.name: case for module in MODULES for case in module.CASES}

# unit/frontend/test_block_weights.py, unit/frontend/test_tokenizer.py
ELSEWHERE = {"GatherBlockQuantized", "MatMulNBits", "Tokenizer"}


def test_every_op_has_a_case() -> None:
    """No op of ONNX Runtime's domain is translated without being compared."""
    assert {case.op for case in CASES.values()} | ELSEWHERE >= set(microsoft.FILES)


def _check(case: ContribCase, model: ModelProto) -> None:
    expected = [array for array in case.expected if array is not None]
    found = run_model(model, case.inputs(), expected, case.tolerance, case.tolerance)
    assert (found.kind, found.detail) == ("agrees", "")


@pytest.mark.parametrize("name", CASES)
def test_an_op_gives_what_numpy_gives(name: str) -> None:
    """Right with the sizes of the case."""
    _check(CASES[name], CASES[name].model())


@pytest.mark.sweep(12)
@pytest.mark.parametrize("name", [case.name for case in CASES.values() if not case.needs_sizes])
def test_an_op_gives_what_numpy_gives_with_unknown_sizes(name: str) -> None:
    """Right with sizes that no one knows; the sizes of heads are known."""
    is_attention = name in {case.name for module in ATTENTION for case in module.CASES}
    _check(CASES[name], (opened if is_attention else symbolic)(CASES[name].model()))


def test_heads_that_the_tables_tell() -> None:
    """RotaryEmbedding of three open sizes, without the number of heads."""
    case = CASES["RotaryEmbedding of three dimensions"]
    assert "num_heads" not in case.attributes
    _check(case, symbolic(case.model()))


def test_a_signature_names_what_the_translation_reads() -> None:
    """Each op of the domain states operands and results, for the onnx package does not."""
    own = [op for (_, name), op in OPS.items() if name in microsoft.IN_ONNX_DOMAIN]
    own += [op for (domain, _), op in OPS.items() if domain == "com.microsoft"]
    assert len(own) == len(microsoft.FILES)
    assert all(op.signature for op in own)


def test_a_node_that_contradicts_its_signature_is_refused() -> None:
    """A misspelled attribute and a missing operand are errors of the model, as in ONNX's domain."""
    a = drawn(2, 2)
    with pytest.raises(ModelError, match="did you mean 'alpha'"):
        graph_of(ContribCase("x", "FusedMatMul", [a, a], [a], {"alfa": 1.0}).model())
    with pytest.raises(ModelError, match="expected 2, got 1"):
        graph_of(ContribCase("x", "FusedMatMul", [a], [a]).model())


def test_an_unknown_op_is_refused_by_domain_and_name() -> None:
    """The refusal names the domain, and the op that was perhaps meant."""
    a = drawn(2, 2)
    with pytest.raises(UnsupportedError, match=r"domain com\.microsoft.*did you mean FusedMatMul"):
        graph_of(ContribCase("x", "FusedMatMull", [a, a], [a]).model())
    with pytest.raises(UnsupportedError, match=r"domain ai\.onnx\.ml.*ONNX has no such op"):
        graph_of(_in_domain("ai.onnx.ml", 5, "TreeEnsembleX"))


def test_what_only_one_machine_or_one_runtime_can_run_is_refused_with_a_way_out() -> None:
    """Layouts of one machine, and loops of generation in one node."""
    a = drawn(2, 2)
    with pytest.raises(UnsupportedError, match="ORT_ENABLE_EXTENDED at most"):
        graph_of(_in_domain("com.microsoft.nchwc", 1, "Conv"))
    with pytest.raises(
        UnsupportedError, match=r"BeamSearch, domain com\.microsoft.*call it in a loop"
    ):
        graph_of(ContribCase("x", "BeamSearch", [a], [a]).model())


def test_a_cache_written_in_place_is_refused() -> None:
    """What ONNX Runtime has for GPUs alone is named."""
    x, cache = drawn(1, 2, 32), drawn(1, 2, 4, 16)
    operands = [x, x, x, None, None, None, cache, cache, np.array([1], np.int32)]
    case = ContribCase("x", "MultiHeadAttention", operands, [x], {"num_heads": 2})
    with pytest.raises(UnsupportedError, match="written in place"):
        graph_of(case.model())
    operands = [x, x, x, cache, cache, np.array([4], np.int32), np.array(5, np.int32)]
    operands += [None, None, None, None, None, np.ones(1, np.float32), np.ones(1, np.float32)]
    attributes = {"num_heads": 2, "kv_num_heads": 2, "k_quant_type": "PER_TENSOR"}
    case = ContribCase("x", "GroupQueryAttention", operands, [x], attributes)
    with pytest.raises(UnsupportedError, match="neither of 8 bits in i8 nor of 4 in u8"):
        graph_of(case.model())


def test_an_opset_that_is_too_new_is_refused_by_domain() -> None:
    """Each domain has its own newest opset."""
    with pytest.raises(UnsupportedError, match="opsets 1 to 5 of this domain"):
        graph_of(_in_domain("ai.onnx.ml", 9, "Scaler"))


def _in_domain(domain: str, opset: int, op: str) -> ModelProto:
    a = drawn(2, 2)
    model = ContribCase("x", op, [a], [a], domain=domain).model()
    model.opset_import.append(helper.make_opsetid(domain, opset))
    return model
