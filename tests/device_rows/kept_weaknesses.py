"""Those of rows w1 to w38 that are not mended as they stand: a decision says what there is in their
place, and what stays.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

_END_TO_END_DEVICES = "tests/unit/end_to_end/test_end_to_end_devices.py"
_PLUGINS = "tests/unit/making/test_plugins.py"
_PLANNER_CASES = "tests/unit/programs/test_planner_cases.py"
_PLANNER_MORE_CASES = "tests/unit/programs/test_planner_more_cases.py"

TITLE = "Weaknesses of earlier systems, kept or mended in another way by a decision"
ROWS = (
    Row(
        "w5",
        "functions work for devices that differ in their ids",
        (
            f"{_PLANNER_MORE_CASES}::test_positive[D16 one primitive on two devices]",
            f"{_PLANNER_MORE_CASES}::test_positive[D8 two call sites]",
            f"{_END_TO_END_DEVICES}::test_two_devices",
        ),
        decision=24,
    ),
    Row(
        "w8",
        "where a value is stored and where it is computed are apart",
        (
            f"{_PLANNER_CASES}::test_reference_case[31 lowered]",
            f"{_PLANNER_MORE_CASES}::test_improved[one copy for all readers]",
        ),
        decision=25,
    ),
    Row(
        "w11",
        "what shares a memory needs no copy",
        (f"{_PLUGINS}::test_one_extern_call",),
        decision=24,
    ),
    Row(
        "w26",
        "the condition of a branch is the host's",
        (
            f"{_PLANNER_MORE_CASES}::test_positive[D6 annotated condition]",
            f"{_END_TO_END_DEVICES}::test_control_flow_beside_a_device",
        ),
        decision=24,
    ),
)
