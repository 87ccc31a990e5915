"""The ops of classical machine learning, ai.onnx.ml, that Ingot translates. One file per op and one
line here.

In: nothing. Out: ``FILES``. Not done here: the table of all ops (``op_table``).
"""

FILES: dict[str, str] = {}
"""Op of ai.onnx.ml -> its file."""
