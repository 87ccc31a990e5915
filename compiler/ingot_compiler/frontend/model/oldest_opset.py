"""The oldest opset in whose form a node can be translated.

In: nothing. Out: ``OPSET_MIN``. Not done here: bringing older nodes there (``old_forms``).
"""

OPSET_MIN = 7
