"""Libraries of boosted trees, called with other rows each time: the branch predictor learns a row
that comes back.

In: a folder of a model, ``inputs.npz`` with many rows; the options name the library and the rows of
a call. Out: calls, whose results are those of the next rows. Not done here: what runs them
(``peer_child``), times (``bench_trees``).

The environment's interpreter runs this file alone; ``-m tests.benchmarks.peers.trees FOLDER`` makes
the models there.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
from collections.abc import Callable
from typing import Any

PACKAGES = (
    "numpy==2.4.6",
    "lightgbm==4.7.0",
    "lleaves==1.3.0",
    "llvmlite==0.43.0",
    "onnxmltools==1.16.0",
    "onnxruntime==1.32.0",
    "tl2cgen==1.0.0",
    "treelite==4.8.1",
    "xgboost-cpu==3.2.0",
)
MODULE = "numpy"
Predict = Callable[[Any], Any]
_FEATURES, _SAMPLES = 30, 20_000
_OWN_FILES = {"xgboost": "model.json", "lightgbm": "model.txt"}


def open_model(path: str, inputs: dict[str, Any], options: dict[str, Any]) -> Callable[[], object]:
    """Load it; each call takes the next rows."""
    predict = LIBRARIES[options["library"]](path, options["threads"])
    rows, count = inputs["x"], options["rows"]
    turns = itertools.cycle([rows[at : at + count] for at in range(0, len(rows), count)])
    return lambda: [predict(next(turns))]


def _ingot(folder: str, threads: int) -> Predict:
    load = importlib.import_module("ingot_runtime").load
    session = load(os.path.join(folder, "model.ingot"), threads=threads)
    return lambda rows: next(iter(session.run({"x": rows}).values()))


def _onnxruntime(folder: str, threads: int) -> Predict:
    runtime = importlib.import_module("onnxruntime")
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    path = os.path.join(folder, "model.onnx")
    session = runtime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    return lambda rows: session.run(None, {"x": rows})[0]


def _xgboost(folder: str, threads: int) -> Predict:
    path = os.path.join(folder, _OWN_FILES["xgboost"])
    booster = importlib.import_module("xgboost").Booster({"nthread": threads}, model_file=path)
    predict: Predict = booster.inplace_predict
    return predict


def _lightgbm(folder: str, threads: int) -> Predict:
    path = os.path.join(folder, _OWN_FILES["lightgbm"])
    booster = importlib.import_module("lightgbm").Booster(model_file=path)
    return lambda rows: booster.predict(rows, num_threads=threads)


def _lleaves(folder: str, threads: int) -> Predict:
    path = os.path.join(folder, _OWN_FILES["lightgbm"])
    model = importlib.import_module("lleaves").Model(model_file=path)
    model.compile(cache=os.path.join(folder, "lleaves.o"))
    return lambda rows: model.predict(rows, n_jobs=threads)


def _tl2cgen(folder: str, threads: int) -> Predict:
    engine = importlib.import_module("tl2cgen")
    library = os.path.join(folder, "tl2cgen.so")
    if not os.path.exists(library):
        readers = importlib.import_module("treelite").frontend
        kind = next(kind for kind in _OWN_FILES if os.path.basename(folder).startswith(kind))
        read = getattr(readers, f"load_{kind}_model")
        model = read(os.path.join(folder, _OWN_FILES[kind]))
        engine.export_lib(model, toolchain="gcc", libpath=library, params={"parallel_comp": 8})
    predictor = engine.Predictor(library, nthread=threads)
    return lambda rows: predictor.predict(engine.DMatrix(rows, dtype="float32"))


LIBRARIES: dict[str, Callable[[str, int], Predict]] = {
    "ingot": _ingot,
    "lightgbm": _lightgbm,
    "lleaves": _lleaves,
    "onnxruntime": _onnxruntime,
    "tl2cgen": _tl2cgen,
    "xgboost": _xgboost,
}

MODELS = {
    "xgboost_300": ("onnxruntime", "tl2cgen", "xgboost"),
    "lightgbm_500": ("lightgbm", "lleaves", "onnxruntime", "tl2cgen"),
}
"""The models, and the libraries that can open each."""


def _train_xgboost(folder: str, x: Any, y: Any) -> tuple[Any, Predict]:
    """300 trees of depth 6."""
    engine = importlib.import_module("xgboost")
    settings = {"max_depth": 6, "eta": 0.1, "nthread": 1, "tree_method": "hist", "seed": 0}
    booster = engine.train(settings, engine.DMatrix(x, y), 300)
    booster.save_model(os.path.join(folder, _OWN_FILES["xgboost"]))
    return booster, booster.inplace_predict


def _train_lightgbm(folder: str, x: Any, y: Any) -> tuple[Any, Predict]:
    """500 trees of 31 leaves."""
    engine = importlib.import_module("lightgbm")
    settings = {"num_leaves": 31, "learning_rate": 0.1, "num_threads": 1, "seed": 0, "verbose": -1}
    booster = engine.train(settings, engine.Dataset(x, y), 500)
    booster.save_model(os.path.join(folder, _OWN_FILES["lightgbm"]))
    return booster, booster.predict


def make(folder: str) -> None:
    """Train the models; write each in its own form and in ONNX, its inputs and answers."""
    import numpy as np

    draw = np.random.default_rng(0)
    x = draw.standard_normal((_SAMPLES, _FEATURES)).astype(np.float32)
    y = x[:, 0] * x[:, 1] + np.sin(3 * x[:, 2]) + np.abs(x[:, 3]) + draw.normal(0, 0.1, _SAMPLES)
    tools: Any = importlib.import_module("onnxmltools")
    tensor = importlib.import_module("onnxmltools.convert.common.data_types").FloatTensorType
    for name, train in (("xgboost_300", _train_xgboost), ("lightgbm_500", _train_lightgbm)):
        place = os.path.join(folder, name)
        os.makedirs(place, exist_ok=True)
        booster, predict = train(place, x, y)
        convert = getattr(tools, f"convert_{name.split('_')[0]}")
        model = convert(booster, initial_types=[("x", tensor([None, _FEATURES]))])
        with open(os.path.join(place, "model.onnx"), "wb") as file:
            file.write(model.SerializeToString())
        np.savez(os.path.join(place, "inputs.npz"), allow_pickle=False, x=x)
        found = np.asarray(predict(x), np.float32)
        np.savez(os.path.join(place, "outputs.npz"), allow_pickle=False, y=found)


if __name__ == "__main__":
    make(sys.argv[1])
