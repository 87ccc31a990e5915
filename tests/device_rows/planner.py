"""Rows 20 to 43: programs and the planner.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

TITLE = "Programs and the planner"
ROWS = (
    Row("20", "an annotated value is on its device, and copies are put where its context differs"),
    Row("21", "fixed devices at let values and function bodies"),
    Row("22", "explicit copies; one between equal devices disappears"),
    Row("23", "primitives are on one device per call, any device"),
    Row("24", "functions have one device per parameter; calls agree with them"),
    Row("25", "higher-order functions and closures"),
    Row("26", "tuples are on one device; a projection does not decide"),
    Row("27", "if, match, data types, references"),
    Row("28", "recursion"),
    Row("29", "operators that only the host can run"),
    Row("30", "dynamic shapes do not matter"),
    Row("31", "the order in which what is free is decided"),
    Row("32", "free annotations, gone where no copy is needed"),
    Row("33", "conflicting uses of a value that is not annotated, whatever the order of visits"),
    Row("34", "primitive and opaque functions with annotations"),
    Row("35", "partial annotations"),
    Row("36", "a plan of a plan is the plan"),
    Row("37", "the same plan in any order of the globals"),
    Row("38", "depth: chains of 100,000 lets"),
    Row("39", "every error names its expressions, devices and source"),
    Row("40", "planning again after lowering: memory scopes flow"),
    Row("41", "memory scopes of kernels: asked and applied"),
    Row("42", "the device of each expression is recovered from a plan"),
    Row("43", "passes keep the devices of what they do not touch"),
)
