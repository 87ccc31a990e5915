"""Real exporter output, small: every architecture of ``tests/models`` compiled to a saved bundle
and run by the loader.

The expected outputs are PyTorch's (``tests/models/make_models.py``). ``--bless`` rewrites
docs/models.md.
"""

from __future__ import annotations

import collections
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import run_all_ways
from tests.harness.lowering_harness import assert_close
from tests.unit.ir.test_quantized_models import MODELS as QUANTIZED_MODELS
from tests.unit.ir.test_quantized_models import SCHEMES

import ingot
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.open_build import BuildSettings, open_build
from ingot_build_rules.making.stages.start_compilation import start_compilation
from ingot_build_rules.tools.workspace.cache_folder import cache_folder, cache_trust

ROOT = Path(__file__).parents[3]
MODELS = ROOT / "tests" / "models"
PAGE = ROOT / "docs" / "models.md"
STATIC = tuple(sorted(path.parent.name for path in MODELS.glob("*/static.onnx")))
DYNAMIC = tuple(sorted(path.parent.name for path in MODELS.glob("*/dynamic.onnx")))
OWN_CHOICE = (
    "bart",
    "detector",
    "graph_attention",
    "mamba2",
    "swin2sr",
    "wavlm",
)  # families of acceptance 2 of the zoo
RELATIVE_ERROR_MAX = 1e-4
BYTES_MAX = 300_000
DECODER, QUANTIZED = " with caches", "QDQ "  # in rows of the page
TARGET = "x86-64-v3"  # of the page's number of kernels; it depends on the target
_HEAD = """\
# Models

These models are small versions of what today's exporters write: networks of transformers, diffusers and PyTorch with random weights,
exported by `torch.onnx.export` (`tests/models/make_models.py`) and not changed afterwards. `tests/unit/end_to_end/test_models.py` compiles each to a
saved bundle and runs it with only the loader. Outputs must be within {error} of PyTorch's (relative to the largest), and integers equal.
The bits must be the same for 1 and 2 threads, and for the native `main` and the vm. A dynamic export is one bundle, run at five sizes.

Decoders with caches come by both exporters of PyTorch (`tests/models/make_decoders.py`), and in the form of the ONNX Runtime GenAI builder
(`make_genai_decoders.py`). `tests/unit/artifacts/test_decoders.py` runs each at ten lengths beside PyTorch or ONNX Runtime, and as a sequence, bit by bit what
calls with all caches give. Three are kept and have a row here. All 37 are made when the test runs with these packages (`pytest -m contrib`): llama, llama 3, qwen2, qwen3, gemma 1 to 3,
phi, phi3, gpt2, mistral, mixtral, qwen2_moe, and the decoders of whisper and t5. gpt-oss and a Qwen3.5 mixture as the builder of ONNX Runtime GenAI 0.18 itself wrote
them are kept, too (`test_builder_decoders.py`).

Quantized models (`tests/harness/quantized_models.py`) are written as quantizers write them. `test_quantized_models.py` compares them with `onnx.reference`: all
integers within one step, 99.9 % equal.

The column *kernels* counts the distinct kernels among the launches for `{target}`. `pytest tests/unit/end_to_end/test_models.py --bless` writes
this page. We chose the six families marked so after the others.

| architecture | export | nodes | distinct ops | launches | kernels | result |
| --- | --- | --- | --- | --- | --- | --- |
"""


class Cases:
    """What ``cases.npz`` has: ``CASE/in/INPUT`` and ``CASE/out/OUTPUT``."""

    def __init__(self, model: str, *, dynamic: bool) -> None:
        """Read the cases of one export: "static", or those with a number."""
        self.path = MODELS / model / ("dynamic.onnx" if dynamic else "static.onnx")
        with np.load(MODELS / model / "cases.npz") as file:
            arrays = {name: file[name] for name in file.files}
        self.names = sorted(
            {name.split("/")[0] for name in arrays if name.startswith("static") != dynamic}
        )
        self.feeds = [_part(arrays, f"{name}/in/") for name in self.names]
        self.expected = [_part(arrays, f"{name}/out/") for name in self.names]


def _part(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def check_export(
    model: str, folder: Path, *, dynamic: bool, shapes: Mapping[str, Sequence[int]] | None = None
) -> None:
    """Compile one export to a file, run its cases in every way, compare with PyTorch."""
    cases = Cases(model, dynamic=dynamic)
    ingot.compile(cases.path, shapes=shapes).save(folder / "m.ingot")
    results = run_all_ways(folder / "m.ingot", cases.feeds)
    for expected, result in zip(cases.expected, results, strict=True):
        assert sorted(result) == sorted(expected)
        for name, array in expected.items():
            assert_close(array, result[name], RELATIVE_ERROR_MAX)


# In the quick suite each architecture runs once: the dynamic export where there is one, at five
# sizes, the static one elsewhere.
@pytest.mark.broad
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, marks=pytest.mark.slow) if model in DYNAMIC else model
        for model in STATIC
    ],
)
def test_static_export_agrees_with_pytorch(model: str, tmp_path: Path) -> None:
    """A saved bundle gives PyTorch's outputs, bit-equal for both executors and 1 and 2 threads."""
    check_export(model, tmp_path, dynamic=False)


@pytest.mark.broad
@pytest.mark.parametrize("model", DYNAMIC)
def test_dynamic_export_agrees_at_five_sizes(model: str, tmp_path: Path) -> None:
    """One bundle gives PyTorch's outputs at five sizes, bit-equal for both executors and 1 and 2
    threads."""
    check_export(model, tmp_path, dynamic=True)


@pytest.mark.broad
@pytest.mark.parametrize("model", ["bert", "convnext", "t5"])
def test_special_sizes_agree_beside_open_ones(model: str, tmp_path: Path) -> None:
    """A dynamic export with a specialisation for the sizes of one case gives PyTorch's outputs at
    these and all other sizes."""
    shapes = {name: array.shape for name, array in Cases(model, dynamic=True).feeds[-1].items()}
    check_export(model, tmp_path, dynamic=True, shapes=shapes)


def test_the_set_is_complete_and_small() -> None:
    """Twenty-two common architectures and six others, the eleven dynamic ones, five sizes each, in
    300 kB a folder."""
    assert len(set(STATIC) - set(OWN_CHOICE)) >= 22
    assert set(OWN_CHOICE) <= set(STATIC)
    eleven = {
        "resnet",
        "convnext",
        "vit",
        "swin",
        "bert",
        "gpt2",
        "clip",
        "detr",
        "whisper",
        "t5",
        "llama",
    }
    assert eleven <= set(DYNAMIC)
    for model in DYNAMIC:
        shapes = [
            tuple(array.shape for array in feed.values())
            for feed in Cases(model, dynamic=True).feeds
        ]
        assert len(shapes) == 5
        assert len(set(shapes)) > 2
    sizes = {
        model: sum(entry.stat().st_size for entry in os.scandir(MODELS / model)) for model in STATIC
    }
    assert {model: size for model, size in sizes.items() if size > BYTES_MAX} == {}


def test_no_file_names_the_machine_that_made_it() -> None:
    """Stack traces of the exporter are not in the files: no path, no line of anybody's source."""
    for path in sorted(MODELS.glob("*/*.onnx")):
        content = path.read_bytes()
        assert not [
            word for word in (b"site-packages", b"/tmp/", b"/home/", b".py") if word in content
        ], path


def row(model: str, export: str, folder: Path) -> Sequence[str]:
    """One row of the page: what the file holds and what becomes of it."""
    content = model_bytes(model, export)
    path = folder / "m.onnx"
    path.write_bytes(content)
    ops = collections.Counter(
        node.op_type for node in onnx.load_model_from_string(content).graph.node
    )
    name = f"{model} (own choice)" if model in OWN_CHOICE else model
    head = (name, export, str(ops.total()), str(len(ops)))
    with open_build(BuildSettings(cache_folder(), cache_trust())) as opened:
        (build,) = start_compilation(opened, path, make_options([TARGET])).target_builds
        return (*head, str(len(build.launches)), str(len(set(build.programs))), "right")


def model_bytes(model: str, export: str) -> bytes:
    """The file of a row: kept, or quantized now."""
    if export.startswith(QUANTIZED):
        made: bytes = QUANTIZED_MODELS[model][0](
            SCHEMES[export.removeprefix(QUANTIZED)]
        ).SerializeToString()
        return made
    if model.endswith(DECODER):
        return (MODELS / "decoders" / f"{model.removesuffix(DECODER)}.{export}.onnx").read_bytes()
    return (MODELS / model / f"{export}.onnx").read_bytes()


def exports() -> Sequence[tuple[str, str]]:
    """Architecture and export of each row, in the order of the page."""
    order = [*(model for model in STATIC if model not in OWN_CHOICE), *OWN_CHOICE]
    kept = sorted(path.stem.split(".") for path in (MODELS / "decoders").glob("*.onnx"))
    return [
        *((model, "static") for model in order),
        *((model, "dynamic") for model in order if model in DYNAMIC),
        *((f"{name}{DECODER}", exporter) for name, exporter in kept),
        *((name, f"{QUANTIZED}{scheme}") for name in QUANTIZED_MODELS for scheme in SCHEMES),
    ]


def line(cells: Sequence[str]) -> str:
    """One row as the page writes it."""
    return f"| {' | '.join(cells)} |\n"


@pytest.mark.broad
@pytest.mark.parametrize(
    "step",
    [pytest.param(1, marks=pytest.mark.slow), 4],
    ids=["all rows", "every fourth row and how many there are"],
)
def test_page_is_current(step: int, tmp_path: Path, *, bless: bool) -> None:
    """docs/models.md says what the compiler makes of every export today; the broad suite looks at
    every fourth one."""
    head = _HEAD.format(error=RELATIVE_ERROR_MAX, target=TARGET)
    chosen = exports()[:: 1 if bless else step]
    rows = [line(row(model, export, tmp_path)) for model, export in chosen]
    if bless:
        PAGE.write_text(head + "".join(rows), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith(head)
    found = text.removeprefix(head).splitlines(keepends=True)
    assert len(found) == len(exports())
    assert found[:: 1 if bless else step] == rows
