"""The ops of ai.onnx.preview.training that Ingot translates: steps of optimizers. Each is a row of
``OPS`` in a module here, and one line below.

In: nothing. Out: ``FILES``. Not done here: the table of all ops (``op_table``).
"""

FILES = {"Adagrad": "optimizers", "Adam": "optimizers", "Momentum": "optimizers"}
"""Op of ai.onnx.preview.training -> its module."""
