"""Static quantization: a float model whose activations and weights become integers of 8 bits, by
the ranges that some inputs have shown. In: a ``ModelProto``. Out: a ``ModelProto``. Not done here:
running models, the command."""
