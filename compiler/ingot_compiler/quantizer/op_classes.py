"""How the ops of ONNX treat numbers, as static quantization sees them.

In: nothing. Out: sets of names. Not done here: which tensors they apply to (``choose_tensors``).
"""

PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})
"""Sums of products, which run on integers."""

FLOAT_PRODUCTS = frozenset({"ConvTranspose"})
"""Sums of products that have no kernel for integers."""

MOVES = frozenset({
    "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "Identity", "MaxPool", "Reshape",
    "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Each element of the results is one of operand 0, which is what keeps its scale."""

MIXES = frozenset({
    "AveragePool", "Concat", "GlobalAveragePool", "GlobalMaxPool", "Pad", "ReduceMax", "ReduceMean",
    "Resize", "Upsample",
})  # fmt: skip
"""They stay in the range of what they read, and need a scale of their own."""

SUMS = frozenset({"Add", "Max", "Min", "Mul", "Sub"})
"""Elementwise, of two activations perhaps."""

UNARY = frozenset({
    "Abs", "BatchNormalization", "Celu", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid",
    "HardSwish", "LeakyRelu", "Mish", "Neg", "PRelu", "Pow", "Relu", "Selu", "Sigmoid", "Softplus",
    "Softsign", "Sqrt", "Swish", "Tanh", "ThresholdedRelu",
})  # fmt: skip
"""Elementwise, which end the kernel of what they follow."""

ELEMENTWISE = SUMS | UNARY
