"""The ops of ai.onnx.preview.training that Ingot translates: steps of optimizers. One file per op
and one line here.

In: nothing. Out: ``FILES``. Not done here: the table of all ops (``op_table``).
"""

FILES = {"Adagrad": "adagrad", "Adam": "adam", "Momentum": "momentum"}
"""Op of ai.onnx.preview.training -> its file."""
