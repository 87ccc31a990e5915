"""Rows 70 to 79: target hooks and lowering.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

TITLE = "Target hooks and lowering"
ROWS = (
    Row("70", "a hook rewrites the graph once per kind, in an order that does not change"),
    Row("71", "what a hook declines is lowered as ever"),
    Row("72", "a hook makes its own code, which the host module imports"),
    Row("73", "a hook brings finished libraries"),
    Row("74", "one lowering serves every way of running"),
    Row("75", "everything is in the stages: a compilation goes on from their texts"),
    Row("76", "equal functions are compiled once for a target"),
    Row("77", "a claimed part goes to the target that the user configured"),
    Row("78", "a back end is registered once; its phases are ordered"),
    Row("79", "parts for several targets are chosen by cost, never worse than one alone"),
)
