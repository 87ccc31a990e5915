"""Tree ensembles of ai.onnx.ml: from the attributes of a node to tables that a kernel walks.

In: nodes of a file. Out: tables (``tables``). Not done here: what is computed from the leaves
(``ops/ml``).
"""
