"""Rows 80 to 97: ``main`` without a loader, pools, libraries, archives.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

_CONTROL_FLOW = "tests/unit/ir/test_control_flow.py"
_STAGE_TEXTS = "tests/unit/lowering/test_stage_texts.py"
_PLUGINS = "tests/unit/making/test_plugins.py"
_RUNTIME_DEVICES = "tests/unit/runtime/test_runtime_devices.py"
_RUNTIME_SESSION = "tests/unit/runtime/test_runtime_session.py"
_AOT_MAIN = "tests/unit/tools/test_aot_main.py"

TITLE = "Main, pools, libraries and archives"
_LIBRARY = "tests/unit/tools/test_library_export.py"
_PLANNERS = "tests/unit/lowering/test_memory_planners.py"
_POOLS = "tests/unit/lowering/test_pools.py"
_ARCHIVE = "tests/unit/tools/test_module_archive.py"
ROWS = (
    Row(
        "80",
        "what `main` calls, with which buffers: single calls, constants, chains, several outputs, values that share memory",
        (f"{_AOT_MAIN}::test_shape_of_main",),
        decision=37,
    ),
    Row(
        "81",
        "the matrix of options: what does not go together is refused with both names",
        (f"{_LIBRARY}::test_wrong_wishes", f"{_LIBRARY}::test_options_of_another_kind"),
        decision=37,
    ),
    Row(
        "82",
        "devices are opened, used and closed in order, and each answer is looked at",
        (
            f"{_LIBRARY}::test_what_a_library_cannot_do",
            "tests/conformance/test_devices.py::test_launch_computes_in_order",
            "tests/conformance/test_devices.py::test_lost_device",
        ),
        decision=37,
    ),
    Row(
        "83",
        "what a library cannot do is refused by name; loops and branches it can do",
        (f"{_LIBRARY}::test_what_a_library_cannot_do", f"{_LIBRARY}::test_loops_and_types"),
        decision=37,
    ),
    Row(
        "84",
        "pools: one that grows without the user's, else the first that has room; errors name pool and bytes",
        (
            f"{_POOLS}::test_every_loader_gives_the_same_bits",
            f"{_POOLS}::test_a_pool_that_is_too_small_is_named",
            f"{_POOLS}::test_wrong_pools",
            f"{_POOLS}::test_open_sizes_have_no_pools",
            f"{_PLANNERS}::test_a_buffer_without_a_pool_is_refused",
        ),
    ),
    Row(
        "85",
        "a value lives from its first use to its last, over whole loops, under all of its names",
        (
            f"{_STAGE_TEXTS}::test_a_plan_is_compared_with_the_graph_that_it_is_for",
            f"{_CONTROL_FLOW}::test_a_loop_means_what_numpy_does",
            f"{_LIBRARY}::test_loops_and_types",
        ),
    ),
    Row(
        "86",
        "planners by size and by conflicts: the reference's numbers, ties by name",
        (
            f"{_PLANNERS}::test_equal_buffers_go_by_name",
            f"{_PLANNERS}::test_chain",
            f"{_PLANNERS}::test_fan_out",
            f"{_PLANNERS}::test_bounded_fast_pool",
            f"{_PLANNERS}::test_residual_block",
        ),
    ),
    Row(
        "87",
        "hill climbing: the reference's numbers, near the lower bound, the same twice",
        (
            f"{_PLANNERS}::test_fan_out",
            f"{_PLANNERS}::test_traces_reach_the_lower_bound",
            "tests/properties/test_memory_safety.py::test_plans_are_safe_and_repeatable",
        ),
    ),
    Row(
        "88",
        "a planner from outside is called if it is chosen; an unknown one is refused",
        (
            f"{_PLANNERS}::test_planner_from_outside_is_called_only_when_chosen",
            f"{_PLANNERS}::test_unknown_planner_is_refused_with_a_suggestion",
        ),
    ),
    Row(
        "89",
        "no plan overlaps what lives together, leaves a pool, or uses another one",
        (
            "tests/properties/test_memory_safety.py::test_plans_are_safe_and_repeatable",
            f"{_PLANNERS}::test_checker_refuses_unsafe_plans",
            f"{_PLANNERS}::test_too_small_a_pool_is_refused",
        ),
    ),
    Row(
        "90",
        "inputs and outputs in a pool: functions tell where, and a call needs no pointers to them",
        (f"{_LIBRARY}::test_tensors_lie_in_a_pool", f"{_LIBRARY}::test_wrong_wishes"),
    ),
    Row(
        "91",
        "constants are a pool: in a section of the library, or given by the caller from a file",
        (
            f"{_LIBRARY}::test_same_bits_wherever_the_pools_are",
            f"{_LIBRARY}::test_constants_lie_apart",
            f"{_POOLS}::test_limits_of_an_export",
        ),
    ),
    Row(
        "92",
        "the bytes of each function: pools, constants, inputs and outputs",
        (f"{_LIBRARY}::test_header_names_and_sizes", f"{_ARCHIVE}::test_metadata"),
    ),
    Row(
        "93",
        "a library tells its tensors and pools at run time; wrong names are refused",
        (
            f"{_LIBRARY}::test_header_names_and_sizes",
            f"{_LIBRARY}::test_bad_calls_are_refused",
            f"{_RUNTIME_SESSION}::test_wrong_inputs",
        ),
    ),
    Row(
        "94",
        "the header compiles alone as C and C++; names are sanitised, two that become one are refused",
        (
            f"{_LIBRARY}::test_compiled_by_another_compiler",
            f"{_LIBRARY}::test_header_names_and_sizes",
            f"{_LIBRARY}::test_clashes_name_both",
        ),
    ),
    Row(
        "95",
        "archives in the Model Library Format: layout, metadata, names apart, the same bytes twice",
        (
            f"{_ARCHIVE}::test_layout",
            f"{_ARCHIVE}::test_metadata",
            f"{_ARCHIVE}::test_two_models_of_one_name",
            f"{_ARCHIVE}::test_same_bytes_from_the_same_bundles",
            f"{_ARCHIVE}::test_objects_and_sources_are_of_use",
        ),
    ),
    Row(
        "96",
        "one file with the code of all devices; what has no loader here is refused by name",
        (
            "tests/hostile/test_forged_devices.py::test_plans_that_lie",
            f"{_RUNTIME_DEVICES}::test_devices_that_are_not_installed",
        ),
        decision=37,
    ),
    Row(
        "97",
        "code that calls functions of the user's for a device",
        (f"{_PLUGINS}::test_code_and_loops_of_its_own",),
        decision=37,
    ),
)
