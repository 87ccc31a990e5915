"""How many work items may run a kernel that has scratch.

In: nothing. Out: ``ITEMS_MAX``. Not done here: which kernels have scratch (``lower_group``).
"""

ITEMS_MAX = 8
