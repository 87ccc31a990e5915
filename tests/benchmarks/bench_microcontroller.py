"""The networks of MLPerf Tiny as C source for a Cortex-M4, beside the arena of TensorFlow Lite for
Microcontrollers: RAM, stack, flash.

In: nothing; perhaps a Python with ``tensorflow`` and ``tflite-micro``. Out: two rows for each
network, in f32 and in int8: bytes of RAM as told and as the object for a Cortex-M4 has them, of
inputs and outputs, of the stack as told, of weights and code; then the peer's. Not done here: times.

    python tests/benchmarks/bench_microcontroller.py [--peer-python PYTHON] [--form FORM]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import onnx  # noqa: E402
from tests.c_source import compile_c, export  # noqa: E402
from tests.cortex_board import CORTEX_M4  # noqa: E402
from tests.object_sizes import code_bytes, writable_bytes  # noqa: E402
from tests.tiny_int8 import to_int8  # noqa: E402
from tests.tiny_models import TINY  # noqa: E402

from ingot_runtime.format.dtypes import DTYPE_CODES, DTYPE_SIZES_BYTES  # noqa: E402

NAMES = ("ds_cnn", "resnet8", "autoencoder", "person")


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer-python")
    parser.add_argument("--form", default="c-small")
    given = parser.parse_args()
    peers = _peers(given.peer_python) if given.peer_python else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            model = _model(name, Path(folder))
            for kind, made in (("f32", model), ("int8", to_int8(model))):
                path = Path(folder) / f"{name}.{kind}.onnx"
                path.write_bytes(made.SerializeToString())
                _report(f"{name} {kind}", path, given.form, peers.get(name, {}), kind)


def _model(name: str, folder: Path) -> onnx.ModelProto:
    if name in TINY:
        return TINY[name]()
    script = ROOT / "examples" / "microcontroller" / "make_model.py"
    subprocess.run([sys.executable, script], cwd=folder, check=True, capture_output=True)
    model: onnx.ModelProto = onnx.ModelProto.FromString(
        (folder / "dist" / "person.onnx").read_bytes()
    )
    return model


def _report(what: str, path: Path, form: str, peer: Mapping[str, int], kind: str) -> None:
    header = export(path, path.parent / path.stem, "--target", form, "--name", "m")
    for source in ("m", "m_weights"):
        line = (*CORTEX_M4, "-Os", "-c", f"{source}.c", "-o", f"{source}.o")
        assert compile_c(header.parent, *line) == ""
    facts: dict[str, Any] = json.loads(header.with_suffix(".json").read_text())
    objects = [header.parent / f"{source}.o" for source in ("m", "m_weights")]
    ram, found = facts["ram_bytes"], sum(map(writable_bytes, objects))
    own = 0 if facts.get("tensors") == "inside" else _tensor_bytes(facts)
    print(
        f"{what}: RAM told {ram}, in the objects {found}, inputs and outputs beside it {own}, "
        f"stack {facts['stack_bytes']}, together {ram + own + facts['stack_bytes']}; "
        f"weights {facts['weights_bytes']}, code {code_bytes(objects[0])}"
    )
    if kind == "int8" and peer:
        print(
            f"  arena of TFLM: head {peer['head']}, tail {peer['tail']}, together "
            f"{peer['head'] + peer['tail']}; file {peer['file']}"
        )


def _tensor_bytes(facts: Mapping[str, Any]) -> int:
    total = 0
    for spec in (*facts["inputs"], *facts["outputs"]):
        size = DTYPE_SIZES_BYTES[DTYPE_CODES[spec["dtype"]]]
        for extent in spec["shape"]:
            size *= extent
        total += size
    return total


def _peers(python: str) -> dict[str, dict[str, int]]:
    """What the peer's interpreter says of each network."""
    script = Path(__file__).with_name("tflm_arena.py")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, script], cwd=folder, check=True, capture_output=True, text=True
        )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["name"]: row for row in rows}


if __name__ == "__main__":
    main()
