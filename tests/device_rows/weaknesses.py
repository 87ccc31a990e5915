"""Rows w1 to w36: weaknesses of earlier systems, mended.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

TITLE = "Weaknesses of earlier systems, mended"
ROWS = (
    Row(
        "w1",
        "the host is explicit, and what is odd about it is told",
        (
            "tests/unit/test_configuration.py::test_what_is_left_out_is_filled_in",
            "tests/unit/test_configuration.py::test_what_is_refused",
        ),
    ),
    Row(
        "w2",
        "targets are named, and two devices of one kind have different ones",
        (
            "tests/unit/test_configuration.py::test_what_is_left_out_is_filled_in",
            "tests/unit/test_configuration.py::test_devices_by_name",
        ),
    ),
    Row("w3", "device and memory scope are separate constraints"),
    Row("w4", "defaults are decided by cost, in an order that does not change"),
    Row("w5", "functions work for devices that differ in their ids"),
    Row("w6", "errors of the planner say where and why"),
    Row("w7", "a value is copied to a device once"),
    Row("w8", "where a value is stored and where it is computed are apart"),
    Row("w9", "memory scopes of kernels, with aliases and new allocations"),
    Row("w10", "the device of an expression is known or the program refused"),
    Row("w11", "what shares a memory needs no copy"),
    Row("w12", "lowering has no side channels"),
    Row(
        "w13",
        "devices are matched by kind and id, and scopes are kept",
        (
            "tests/unit/test_end_to_end_devices.py::test_ids_are_kept_and_one_bundle_runs_on_other_devices",
        ),
    ),
    Row(
        "w14",
        "indexes are indexes, and ids are kept",
        (
            "tests/unit/test_end_to_end_devices.py::test_ids_are_kept_and_one_bundle_runs_on_other_devices",
        ),
    ),
    Row(
        "w16",
        "targets are values",
        ("tests/unit/test_placement.py::test_equality_and_hash_are_structural",),
    ),
    Row("w17", "conflicts are decided with everything else, not before"),
    Row("w18", "nested annotations keep the copy between them"),
    Row("w19", "nested copies do not contradict each other"),
    Row("w20", "a copy with partial ends takes what the plan decides"),
    Row("w21", "the inputs of an opaque kernel are on its device"),
    Row(
        "w22",
        "equal devices join, however they were made",
        ("tests/unit/test_placement.py::test_join",),
    ),
    Row(
        "w23",
        "id and scope are not taken from a device of another type",
        (
            "tests/unit/test_placement.py::test_default",
            "tests/unit/test_configuration.py::test_default_takes_nothing_from_another_type",
        ),
    ),
    Row("w24", "comparisons of plans cover every device"),
    Row("w25", "no malformed block is dropped"),
    Row("w26", "the condition of a branch is the host's"),
    Row(
        "w27",
        "an unmatched device is an error, and devices of one kind stay apart",
        ("tests/unit/test_runtime_devices.py::test_wrong_binding",),
    ),
    Row("w28", "bounds are checked, also in releases"),
    Row("w33", "hooks see every function, and the target that the user configured"),
    Row("w34", "what a module says does not depend on which target comes first"),
    Row("w35", "the planner records why"),
    Row("w36", "annotations of bare variables count"),
)
