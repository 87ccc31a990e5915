"""Rows 44 to 49: the text form.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

TITLE = "The text form"
ROWS = (
    Row("44", "devices of parameters, let values and results are printed and read"),
    Row(
        "45",
        "references into the table of devices; one out of range is refused",
        ("tests/unit/test_program_text.py::test_malformed_blocks",),
    ),
    Row("46", "the minimal and the complete form give each other"),
    Row("47", "a minimal form without a device that it needs is refused by name"),
    Row(
        "48",
        "a malformed block is refused with its position",
        ("tests/unit/test_program_text.py::test_malformed_blocks",),
    ),
    Row(
        "49",
        "a node that is rebuilt keeps its device and its source",
        ("tests/unit/test_program_text.py::test_rebuilding_keeps_devices_and_places",),
    ),
)
