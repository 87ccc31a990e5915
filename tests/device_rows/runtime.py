"""Rows 50 to 69: the heterogeneous runtime.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

TITLE = "The heterogeneous runtime"
ROWS = (
    Row("50", "each missing or unknown field and each wrong type of a program is refused"),
    Row("51", "a program without devices is the host's"),
    Row("52", "a piece of storage is on one device"),
    Row("53", "a pool is as large as what lies in it, and views are right"),
    Row(
        "54",
        "copies give exact results, also after saving and loading",
        ("tests/unit/test_opencl_models.py::test_two_devices_of_the_kind",),
    ),
    Row("55", "devices are bound by position"),
    Row("56", "remote devices"),
    Row("57", "one host module imports the libraries of the devices; symbols are unique"),
    Row("58", "device libraries are made before the host's code"),
    Row("59", "the runtime replays; it plans nothing"),
    Row("60", "storage is shared on one device and scope alone; results are never reused"),
    Row("61", "what a session offers"),
    Row("62", "a program written and read is the same"),
    Row("63", "another magic or version is refused before anything else"),
    Row("64", "the device table: the host first, indexes in range"),
    Row("65", "damage is found, wherever it is"),
    Row("66", "constants bound late: limit, missing, extra, twice"),
    Row(
        "67",
        "a missing library or kernel is an error at load",
        (
            "tests/unit/test_opencl_device.py::test_a_damaged_library",
            "tests/unit/test_opencl_device.py::test_source_that_does_not_compile",
        ),
    ),
    Row(
        "68",
        "devices are bound at load, ids respected, a missing one refused",
        (
            "tests/unit/test_runtime_devices.py::test_bound_devices",
            "tests/unit/test_runtime_devices.py::test_wrong_binding",
        ),
    ),
    Row(
        "69",
        "a value on another device than its program says is refused",
        (
            "tests/unit/test_program_memories.py::test_wrong_device",
            "tests/unit/test_program_memories.py::test_memories_are_apart",
        ),
    ),
)
