"""Rows 44 to 49: the text form.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

_PROGRAM_FORMS = "tests/unit/programs/test_program_forms.py"
_PROGRAM_TEXT = "tests/unit/programs/test_program_text.py"

TITLE = "The text form"
ROWS = (
    Row(
        "44",
        "devices of parameters, let values and results are printed and read",
        (
            f"{_PROGRAM_FORMS}::test_devices_of_let",
            f"{_PROGRAM_TEXT}::test_programs_and_plans_are_read_back",
        ),
    ),
    Row(
        "45",
        "references into the table of devices; one out of range is refused",
        (f"{_PROGRAM_TEXT}::test_malformed_blocks",),
    ),
    Row(
        "46",
        "the minimal and the complete form give each other",
        (
            f"{_PROGRAM_FORMS}::test_forms_give_each_other",
            f"{_PROGRAM_FORMS}::test_annotations_go",
        ),
    ),
    Row(
        "47",
        "a minimal form without a device that it needs is refused by name",
        (f"{_PROGRAM_FORMS}::test_a_missing_device_is_named",),
    ),
    Row(
        "48",
        "a malformed block is refused with its position",
        (f"{_PROGRAM_TEXT}::test_malformed_blocks",),
    ),
    Row(
        "49",
        "a node that is rebuilt keeps its device and its source",
        (f"{_PROGRAM_TEXT}::test_rebuilding_keeps_devices_and_places",),
    ),
)
