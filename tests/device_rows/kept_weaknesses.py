"""Those of rows w1 to w38 that are not mended as they stand: a decision says what there is in their
place, and what stays.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

TITLE = "Weaknesses of earlier systems, kept or mended in another way by a decision"
ROWS = (
    Row(
        "w5",
        "functions work for devices that differ in their ids",
        (
            "tests/unit/programs/test_planner_more_cases.py::test_positive[D16 one primitive on two devices]",
            "tests/unit/programs/test_planner_more_cases.py::test_positive[D8 two call sites]",
            "tests/unit/end_to_end/test_end_to_end_devices.py::test_two_devices",
        ),
        decision=25,
    ),
    Row(
        "w8",
        "where a value is stored and where it is computed are apart",
        (
            "tests/unit/programs/test_planner_cases.py::test_reference_case[31 lowered]",
            "tests/unit/programs/test_planner_more_cases.py::test_improved[one copy for all readers]",
        ),
        decision=26,
    ),
    Row(
        "w11",
        "what shares a memory needs no copy",
        ("tests/unit/making/test_plugins.py::test_one_extern_call",),
        decision=25,
    ),
    Row(
        "w26",
        "the condition of a branch is the host's",
        (
            "tests/unit/programs/test_planner_more_cases.py::test_positive[D6 annotated condition]",
            "tests/unit/end_to_end/test_end_to_end_devices.py::test_control_flow_beside_a_device",
        ),
        decision=25,
    ),
)
