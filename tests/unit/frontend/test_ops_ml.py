"""The ops of ai.onnx.ml beside trees, with ONNX's reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto
from onnx.numpy_helper import from_array
from tests.harness.end_to_end_harness import check_model, reference
from tests.harness.frontend_harness import Array, MemoryStore, Outcome, run_model, translate
from tests.harness.ml_harness import agrees, ml_model, ml_node

from ingot_runtime.ingot_error import IngotError

AGREES = Outcome("agrees")
RNG = np.random.default_rng(0)
X: Array = RNG.normal(size=(7, 4)).astype(np.float32)
WHOLE = RNG.integers(-2, 3, (7, 4))
C3: list[float] = RNG.normal(size=12).astype(np.float32).tolist()


def one(op: str, **attributes: Any) -> NodeProto:
    """A node from x to y."""
    return ml_node(op, "x", "y", **attributes)


def missing(x: Array, value: float) -> Array:
    """Some elements are missing."""
    changed = x.copy()
    changed[::2, 1] = value
    return changed


CASES: dict[str, tuple[NodeProto, dict[str, Array]]] = {
    "columns": (ml_node("ArrayFeatureExtractor", "x i", "y"), {"x": X, "i": np.array([2, 0])}),
    "of a vector": (
        ml_node("ArrayFeatureExtractor", "x i", "y"),
        {"x": X[0], "i": np.array([[3]])},
    ),
    "binarizer": (one("Binarizer", threshold=0.2), {"x": X}),
    "vectorizer": (
        ml_node("FeatureVectorizer", "x z", "y", inputdimensions=[3, 2]),
        {"x": X, "z": X[:, 0]},
    ),
    "imputer": (
        one("Imputer", imputed_value_floats=C3[:4], replaced_value_float=float("nan")),
        {"x": missing(X, np.nan)},
    ),
    "imputer of a number": (
        one("Imputer", imputed_value_floats=[9.0], replaced_value_float=-1.0),
        {"x": missing(X, -1)},
    ),
    "imputer of integers": (
        one("Imputer", imputed_value_int64s=[1, 2, 3, 4], replaced_value_int64=-1),
        {"x": missing(WHOLE, -1)},
    ),
    "scaler": (one("Scaler", offset=C3[:4], scale=C3[4:8]), {"x": X}),
    "scaler of one": (one("Scaler", offset=[0.5], scale=[2.0]), {"x": X}),
    "norm MAX": (one("Normalizer", norm="MAX"), {"x": X}),
    "norm L1": (one("Normalizer", norm="L1"), {"x": missing(X * 0, 0)}),
    "norm L2": (one("Normalizer", norm="L2"), {"x": X}),
    "one hot": (one("OneHotEncoder", cats_int64s=[2, -1, 0], zeros=1), {"x": WHOLE}),
    "integers to floats": (
        one(
            "LabelEncoder", keys_int64s=[1, 2, -2], values_floats=[0.5, 2.5, 3.5], default_float=7.0
        ),
        {"x": WHOLE},
    ),
    "floats to integers": (
        one("LabelEncoder", keys_floats=[1.0, 2.0], values_int64s=[5, 6], default_int64=-9),
        {"x": WHOLE.astype(np.float32)},
    ),
    "many keys, one of them twice": (
        one(
            "LabelEncoder",
            keys_int64s=[*range(3000, -100, -2), 2],
            values_int64s=list(range(1551)),
            default_int64=-9,
        ),
        {"x": WHOLE},
    ),
    "linear regressor": (
        one(
            "LinearRegressor", coefficients=C3, intercepts=C3[:3], targets=3, post_transform="NONE"
        ),
        {"x": X},
    ),
    "regressor of vectors": (
        one(
            "SVMRegressor",
            coefficients=C3[:3],
            support_vectors=C3,
            n_supports=3,
            rho=[0.2],
            kernel_type="RBF",
            kernel_params=[0.3, 0.0, 0.0],
            one_class=0,
        ),
        {"x": X},
    ),
    "one class": (
        one(
            "SVMRegressor",
            coefficients=C3[:3],
            support_vectors=C3,
            n_supports=3,
            rho=[0.1],
            kernel_type="POLY",
            kernel_params=[0.3, 0.5, 3.0],
            one_class=1,
        ),
        {"x": X},
    ),
    "linear machine": (
        one(
            "SVMRegressor",
            coefficients=C3[:4],
            rho=[0.2],
            n_supports=0,
            kernel_type="LINEAR",
            one_class=0,
        ),
        {"x": X},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_result(case: str) -> None:
    """Each op gives what the reference gives."""
    node, feed = CASES[case]
    assert agrees([node], feed, "y") == AGREES


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("rows", [1, 3])
def test_linear_classifier(transform: str, rows: int) -> None:
    """Scores and labels after each transform; one row of coefficients is for two classes."""
    labels = [3, 8] if rows == 1 else [4, 1, 7]
    node = ml_node(
        "LinearClassifier",
        "x",
        "y z",
        coefficients=C3[: 4 * rows],
        intercepts=C3[:rows],
        classlabels_ints=labels,
        post_transform=transform,
    )
    assert agrees([node], {"x": X}, "y z") == AGREES


def svm(classes: int, **attributes: Any) -> NodeProto:
    """A classifier with two vectors for each class."""
    rng, count = np.random.default_rng(classes), 2 * classes
    pairs = classes * (classes - 1) // 2

    def floats(number: int) -> list[float]:
        drawn: list[float] = rng.normal(size=number).astype(np.float32).tolist()
        return drawn

    return ml_node(
        "SVMClassifier",
        "x",
        "y z",
        coefficients=floats(count * (classes - 1)),
        support_vectors=floats(4 * count),
        vectors_per_class=[2] * classes,
        rho=floats(pairs),
        classlabels_ints=list(range(5, 5 + classes)),
        **attributes,
    )


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 4])
def test_svm_classifier(kernel: str, classes: int) -> None:
    """The scores of pairs, and the class with most votes."""
    node = svm(classes, kernel_type=kernel, kernel_params=[0.4, 0.2, 3.0], post_transform="NONE")
    assert agrees([node], {"x": X}, "y z") == AGREES


def with_probabilities(classes: int) -> NodeProto:
    """A classifier that gives probabilities."""
    pairs = classes * (classes - 1) // 2
    return svm(
        classes,
        kernel_type="RBF",
        kernel_params=[0.4, 0.2, 3.0],
        post_transform="NONE",
        prob_a=[-1.5] * pairs,
        prob_b=[0.1] * pairs,
    )


def test_svm_probabilities(tmp_path: Path) -> None:
    """The iteration over pairs stops for each row where the reference stops."""
    model = ml_model([with_probabilities(2)], {"x": X}, "y z")
    check_model(model, [{"x": X}], tmp_path, 1e-4)


def test_svm_probabilities_of_more_classes() -> None:
    """They solve libsvm's equations, whose matrix the reference makes wrongly for three classes."""
    node = with_probabilities(3)
    plain = svm(3, kernel_type="RBF", kernel_params=[0.4, 0.2, 3.0], post_transform="NONE")
    scores = reference(ml_model([plain], {"x": X}, "y z"), {"x": X})["z"]
    first = 1 / (1 + np.exp(-1.5 * scores.astype(np.float64) + 0.1))
    wanted = np.array([libsvm(row) for row in first], np.float32)
    model = ml_model([node], {"x": X}, "z")
    model.graph.node[0].output[0] = ""
    assert run_model(model, [X], [wanted], 1e-4).kind == "agrees"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keys_that_are_no_plain_numbers(dtype: type[np.floating[Any]]) -> None:
    """NaN is a key like others, and 0 has one key whatever its sign."""
    keys = np.array([np.nan, -0.0, -np.inf, 1.5, -1.5], dtype)
    tensors = {
        "keys_tensor": from_array(keys),
        "values_tensor": from_array(np.array([1, 2, 3, 4, 5], np.int16)),
        "default_tensor": from_array(np.array([-7], np.int16)),
    }
    x = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.5, -1.5, 1.25], dtype)
    wanted = np.array([2, 2, 1, 1, -7, 3, 4, 5, -7], np.int16)
    model = ml_model([one("LabelEncoder", **tensors)], {"x": x}, "y", opset=4)
    assert run_model(model, [x], [wanted]) == AGREES


@pytest.mark.parametrize("opset", [2, 3])
@pytest.mark.parametrize("keys", [[np.nan], [1.0, np.nan], [np.nan, 0.5, np.nan]])
def test_nan_is_no_key_of_earlier_opsets(keys: list[float], opset: int) -> None:
    """Before opset 4 NaN is equal to nothing, not even to itself."""
    node = one(
        "LabelEncoder", keys_floats=keys, values_int64s=list(range(len(keys))), default_int64=-7
    )
    x = np.array([1.0, np.nan, 0.5, 2.0], np.float32)
    wanted = np.array([keys.index(number) if number in keys else -7 for number in x.tolist()])
    assert run_model(ml_model([node], {"x": x}, "y", opset), [x], [wanted]) == AGREES


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_categories_of_numbers_are_integers(dtype: type[np.number[Any]]) -> None:
    """Numbers are cut to integers of 64 bits before they are looked up; categories stay what they
    are."""
    categories = [0, 1, 2, -1, 16777217, (1 << 32) + 1]
    x = np.array([0, 1.7, -0.5, -1.9, 2.2, 9, 16777216, 1], np.float64).astype(dtype)
    wanted = (x.astype(np.int64)[:, None] == np.array(categories)).astype(np.float32)
    model = ml_model([one("OneHotEncoder", cats_int64s=categories, zeros=1)], {"x": x}, "y")
    assert run_model(model, [x], [wanted]) == AGREES


def libsvm(pairs: Array) -> Array:
    """Method 2 of Wu, Lin and Weng for the probabilities of the pairs (0, 1), (0, 2), (1, 2)."""
    r = np.zeros((3, 3))
    r[0, 1], r[0, 2], r[1, 2] = pairs
    r[1, 0], r[2, 0], r[2, 1] = 1 - pairs
    q = -r * r.T
    np.fill_diagonal(q, (r**2).sum(0))
    p: Array = np.full(3, 1 / 3)
    for _ in range(100):
        qp = q @ p
        total = p @ qp
        if np.abs(qp - total).max() < 0.005 / 3:
            break
        for t in range(3):
            change = (total - qp[t]) / q[t, t]
            total = (total + change * (change * q[t, t] + 2 * qp[t])) / (1 + change) ** 2
            p[t] += change
            p, qp = p / (1 + change), (qp + change * q[t]) / (1 + change)
    return p


BAD: dict[str, tuple[NodeProto, str]] = {
    "coefficients": (
        one("LinearRegressor", coefficients=C3[:7], targets=2),
        "a multiple of 2 coefficients, got 7",
    ),
    "columns": (one("Scaler", offset=[1.0, 2.0]), "1 or 4 entries of offset, got 2"),
    "imputed": (one("Imputer", imputed_value_floats=C3[:3]), "1 or 4 imputed values, got 3"),
    "none imputed": (one("Imputer"), "imputed_value_floats or imputed_value_int64s"),
    "categories": (one("OneHotEncoder"), "categories"),
    "norm": (one("Normalizer", norm="L3"), "MAX or L1 or L2"),
    "values": (one("LabelEncoder", keys_int64s=[1, 2], values_int64s=[1]), "2 values"),
    "rho": (
        one("SVMRegressor", coefficients=C3[:3], support_vectors=C3[:10], n_supports=3, rho=[0.1]),
        "a multiple of 3 numbers of support vectors, got 10",
    ),
    "attribute": (one("Scaler", offsets=[1.0]), "unknown attribute"),
}


@pytest.mark.parametrize("case", BAD)
def test_attributes_that_disagree(case: str) -> None:
    """Each contradiction is refused with what was expected and got."""
    node, text = BAD[case]
    with pytest.raises(IngotError) as caught:
        translate(ml_model([node], {"x": X}, "y"), MemoryStore())
    assert text in str(caught.value)


def test_a_number_that_is_no_category(tmp_path: Path) -> None:
    """Without ``zeros`` it is refused when the model runs."""
    import ingot
    import ingot_runtime

    model = ml_model(
        [one("OneHotEncoder", cats_int64s=[2, 3], zeros=0)], {"x": np.array([2, 3])}, "y"
    )
    ingot.compile(model).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    np.testing.assert_array_equal(session.run({"x": np.array([3, 2])})["y"], [[0, 1], [1, 0]])
    with pytest.raises(IngotError, match="every element to be a category"):
        session.run({"x": np.array([3, 4])})


@pytest.mark.parametrize(
    "node",
    [
        one("LabelEncoder", values_strings=["a"], keys_int64s=[1, 2]),
        one("CategoryMapper", cats_strings=["a"], cats_int64s=[1, 2]),
    ],
)
def test_lists_of_other_lengths_are_refused(node: NodeProto) -> None:
    """As many strings as numbers."""
    found = run_model(ml_model([node], {"x": WHOLE}, "y"), [WHOLE], [])
    assert (found.kind, node.op_type in found.detail) == ("fails", True)
