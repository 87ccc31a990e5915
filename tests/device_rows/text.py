"""Rows 44 to 49: the text form.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

TITLE = "The text form"
ROWS = (
    Row(
        "44",
        "devices of parameters, let values and results are printed and read",
        (
            "tests/unit/programs/test_program_forms.py::test_devices_of_let",
            "tests/unit/programs/test_program_text.py::test_programs_and_plans_are_read_back",
        ),
    ),
    Row(
        "45",
        "references into the table of devices; one out of range is refused",
        ("tests/unit/programs/test_program_text.py::test_malformed_blocks",),
    ),
    Row(
        "46",
        "the minimal and the complete form give each other",
        (
            "tests/unit/programs/test_program_forms.py::test_forms_give_each_other",
            "tests/unit/programs/test_program_forms.py::test_annotations_go",
        ),
    ),
    Row(
        "47",
        "a minimal form without a device that it needs is refused by name",
        ("tests/unit/programs/test_program_forms.py::test_a_missing_device_is_named",),
    ),
    Row(
        "48",
        "a malformed block is refused with its position",
        ("tests/unit/programs/test_program_text.py::test_malformed_blocks",),
    ),
    Row(
        "49",
        "a node that is rebuilt keeps its device and its source",
        ("tests/unit/programs/test_program_text.py::test_rebuilding_keeps_devices_and_places",),
    ),
)
