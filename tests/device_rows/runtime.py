"""Rows 50 to 69: the heterogeneous runtime.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

_LINK = "tests/unit/backends/test_link.py"
_OPENCL_DEVICE = "tests/unit/backends/test_opencl_device.py"
_OPENCL_MODELS = "tests/unit/backends/test_opencl_models.py"
_COMPILE_PROGRAM = "tests/unit/cli/test_compile_program.py"
_END_TO_END_DEVICES = "tests/unit/end_to_end/test_end_to_end_devices.py"
_SERVICE_EXAMPLE = "tests/unit/end_to_end/test_service_example.py"
_DEFAULT_INPUTS = "tests/unit/frontend/test_default_inputs.py"
_EARLY_COPIES = "tests/unit/lowering/test_early_copies.py"
_MEMORY_PLANNERS = "tests/unit/lowering/test_memory_planners.py"
_PROGRAM_MEMORIES = "tests/unit/programs/test_program_memories.py"
_RUNTIME_DEVICES = "tests/unit/runtime/test_runtime_devices.py"
_RUNTIME_FORMAT = "tests/unit/runtime/test_runtime_format.py"
_RUNTIME_SESSION = "tests/unit/runtime/test_runtime_session.py"

TITLE = "The heterogeneous runtime"
ROWS = (
    Row(
        "50",
        "each missing or unknown field and each wrong type of a program is refused",
        (
            f"{_RUNTIME_FORMAT}::test_no_word_may_be_missing_or_left_over",
            f"{_RUNTIME_FORMAT}::test_plan_refuses_noise",
            f"{_RUNTIME_FORMAT}::test_program_index_out_of_range",
            "tests/hostile/test_records.py::test_records_that_miss_something",
            "tests/hostile/test_bundle_damage.py::test_forged_table",
        ),
    ),
    Row(
        "51",
        "a program without devices is the host's",
        (
            f"{_RUNTIME_DEVICES}::test_devices_that_are_not_installed",
            "tests/ageing/test_ageing.py::test_the_answers_of_then",
        ),
    ),
    Row(
        "52",
        "a piece of storage is on one device",
        (
            "tests/hostile/test_forged_devices.py::test_programs_that_lie",
            f"{_MEMORY_PLANNERS}::test_checker_refuses_unsafe_plans",
        ),
    ),
    Row(
        "53",
        "a pool is as large as what lies in it, and views are right",
        (
            "tests/hostile/test_forged_devices.py::test_plans_that_lie_about_pools",
            "tests/hostile/test_forged_devices.py::test_sizes_that_lie",
            "tests/properties/test_memory_safety.py::test_plans_are_safe_and_repeatable",
            f"{_END_TO_END_DEVICES}::test_buffers_that_fill_whole_pages",
        ),
    ),
    Row(
        "54",
        "copies give exact results, also after saving and loading",
        (
            f"{_OPENCL_MODELS}::test_two_devices_of_the_kind",
            f"{_END_TO_END_DEVICES}::test_two_devices",
            f"{_EARLY_COPIES}::test_bits",
        ),
    ),
    Row(
        "55",
        "devices are bound by position",
        (
            f"{_END_TO_END_DEVICES}::test_ids_are_kept_and_one_bundle_runs_on_other_devices",
            "tests/hostile/test_forged_devices.py::test_plans_that_lie",
        ),
        decision=25,
    ),
    Row(
        "56",
        "remote devices",
        (f"{_SERVICE_EXAMPLE}::test_answers",),
        decision=25,
    ),
    Row(
        "57",
        "one host module imports the libraries of the devices; symbols are unique",
        (
            f"{_END_TO_END_DEVICES}::test_libraries_are_made_before_the_one_main",
            f"{_LINK}::test_a_symbol_of_two_objects_is_refused",
            f"{_RUNTIME_DEVICES}::test_counts",
        ),
    ),
    Row(
        "58",
        "device libraries are made before the host's code",
        (f"{_END_TO_END_DEVICES}::test_libraries_are_made_before_the_one_main",),
    ),
    Row(
        "59",
        "the runtime replays; it plans nothing",
        (
            f"{_RUNTIME_DEVICES}::test_counts",
            f"{_RUNTIME_DEVICES}::test_results",
            "tests/tidy/test_borders.py::test_packages_import_along_the_arrows",
        ),
    ),
    Row(
        "60",
        "storage is shared on one device and scope alone; results are never reused",
        (
            "tests/hostile/test_forged_devices.py::test_programs_that_lie",
            f"{_MEMORY_PLANNERS}::test_checker_refuses_unsafe_plans",
            f"{_RUNTIME_SESSION}::test_results_are_the_callers",
        ),
    ),
    Row(
        "61",
        "what a session offers",
        (
            f"{_RUNTIME_SESSION}::test_specs",
            f"{_RUNTIME_SESSION}::test_bind",
            f"{_RUNTIME_SESSION}::test_wrong_inputs",
            f"{_RUNTIME_SESSION}::test_inputs_lie_anywhere",
            f"{_RUNTIME_DEVICES}::test_results",
        ),
    ),
    Row(
        "62",
        "a program written and read is the same",
        (
            f"{_RUNTIME_FORMAT}::test_every_instruction_decodes_to_itself",
            f"{_RUNTIME_FORMAT}::test_plan_decodes_to_itself",
            f"{_RUNTIME_FORMAT}::test_every_field_of_a_device_decodes_to_itself",
            "tests/hostile/test_forged_devices.py::test_parts_are_the_bundle",
        ),
    ),
    Row(
        "63",
        "another magic or version is refused before anything else",
        (
            "tests/hostile/test_bundle_damage.py::test_other_version",
            "tests/hostile/test_bundle_damage.py::test_not_a_bundle",
            "tests/hostile/test_forged_devices.py::test_what_a_later_version_requires",
        ),
    ),
    Row(
        "64",
        "the device table: the host first, indexes in range",
        (
            f"{_RUNTIME_FORMAT}::test_the_host_is_the_first_device",
            "tests/hostile/test_forged_devices.py::test_plans_that_lie",
            "tests/hostile/test_forged_devices.py::test_programs_that_lie",
        ),
    ),
    Row(
        "65",
        "damage is found, wherever it is",
        (
            "tests/hostile/test_bundle_damage.py::test_changed_byte_is_refused_or_not_read",
            "tests/hostile/test_bundle_damage.py::test_truncated_at_every_border",
            "tests/hostile/test_forged_devices.py::test_damaged_library_and_device_weights",
            f"{_RUNTIME_FORMAT}::test_no_word_may_be_missing_or_left_over",
        ),
    ),
    Row(
        "66",
        "constants bound late: limit, missing, extra, twice",
        (
            f"{_DEFAULT_INPUTS}::test_calls_with_and_without",
            f"{_DEFAULT_INPUTS}::test_what_is_still_asked_for",
            f"{_RUNTIME_SESSION}::test_wrong_inputs",
            f"{_COMPILE_PROGRAM}::test_a_constant_of_another_size",
        ),
        decision=25,
    ),
    Row(
        "67",
        "a missing library or kernel is an error at load",
        (
            f"{_OPENCL_DEVICE}::test_a_damaged_library",
            f"{_OPENCL_DEVICE}::test_source_that_does_not_compile",
        ),
    ),
    Row(
        "68",
        "devices are bound at load, ids respected, a missing one refused",
        (
            f"{_RUNTIME_DEVICES}::test_bound_devices",
            f"{_RUNTIME_DEVICES}::test_wrong_binding",
        ),
    ),
    Row(
        "69",
        "a value on another device than its program says is refused",
        (
            f"{_PROGRAM_MEMORIES}::test_wrong_device",
            f"{_PROGRAM_MEMORIES}::test_memories_are_apart",
        ),
    ),
)
