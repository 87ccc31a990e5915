"""Rows w1 to w38: weaknesses of earlier systems, but for those that a decision keeps
(``kept_weaknesses``).

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

_TARGET_FORMS = "tests/unit/backends/test_target_forms.py"
_WHY_DEVICE = "tests/unit/cli/test_why_device.py"
_END_TO_END_DEVICES = "tests/unit/end_to_end/test_end_to_end_devices.py"
_CONTROL_FLOW = "tests/unit/ir/test_control_flow.py"
_MEMORY_PLANNERS = "tests/unit/lowering/test_memory_planners.py"
_STAGE_TEXTS = "tests/unit/lowering/test_stage_texts.py"
_PLUGINS = "tests/unit/making/test_plugins.py"
_CONFIGURATION = "tests/unit/placement/test_configuration.py"
_PLACEMENT = "tests/unit/placement/test_placement.py"
_PLANNER_CASES = "tests/unit/programs/test_planner_cases.py"
_PLANNER_MORE_CASES = "tests/unit/programs/test_planner_more_cases.py"
_PLANNER_REASONS = "tests/unit/programs/test_planner_reasons.py"
_PROGRAM_KERNELS = "tests/unit/programs/test_program_kernels.py"
_PROGRAM_MEMORIES = "tests/unit/programs/test_program_memories.py"
_PROGRAM_TEXT = "tests/unit/programs/test_program_text.py"
_RUNTIME_DEVICES = "tests/unit/runtime/test_runtime_devices.py"
_RUNTIME_FORMAT = "tests/unit/runtime/test_runtime_format.py"
_RUNTIME_VM = "tests/unit/runtime/test_runtime_vm.py"
_LIBRARY_EXPORT = "tests/unit/tools/test_library_export.py"
_MODULE_ARCHIVE = "tests/unit/tools/test_module_archive.py"

TITLE = "Weaknesses of earlier systems, mended"
ROWS = (
    Row(
        "w1",
        "the host is explicit, and what is odd about it is told",
        (
            f"{_CONFIGURATION}::test_what_is_left_out_is_filled_in",
            f"{_CONFIGURATION}::test_what_is_refused",
        ),
    ),
    Row(
        "w2",
        "targets are named, and two devices of one kind have different ones",
        (
            f"{_CONFIGURATION}::test_what_is_left_out_is_filled_in",
            f"{_CONFIGURATION}::test_devices_by_name",
        ),
    ),
    Row(
        "w3",
        "device and memory scope are separate constraints",
        (
            f"{_PLANNER_CASES}::test_reference_case[31 lowered]",
            f"{_PLANNER_CASES}::test_33_primitive",
        ),
    ),
    Row(
        "w4",
        "defaults are decided by cost, in an order that does not change",
        (
            f"{_PLANNER_MORE_CASES}::test_d20_order_of_functions",
            "tests/properties/test_planner_properties.py::test_minimal_sample",
        ),
    ),
    Row(
        "w6",
        "errors of the planner say where and why",
        (
            f"{_PLANNER_MORE_CASES}::test_negative",
            f"{_PLANNER_REASONS}::test_every_decision_has_a_reason",
        ),
    ),
    Row(
        "w7",
        "a value is copied to a device once",
        (f"{_PLANNER_MORE_CASES}::test_improved[one copy for all readers]",),
    ),
    Row(
        "w9",
        "memory scopes of kernels, with aliases and new allocations",
        (
            f"{_PROGRAM_KERNELS}::test_scopes_are_applied",
            f"{_PLANNER_CASES}::test_reference_case[14 alloc storage]",
        ),
    ),
    Row(
        "w10",
        "the device of an expression is known or the program refused",
        (f"{_PROGRAM_MEMORIES}::test_recovery_is_strict",),
    ),
    Row(
        "w12",
        "lowering has no side channels",
        (f"{_PLUGINS}::test_the_text_of_a_stage_goes_on",),
    ),
    Row(
        "w13",
        "devices are matched by kind and id, and scopes are kept",
        (f"{_END_TO_END_DEVICES}::test_ids_are_kept_and_one_bundle_runs_on_other_devices",),
    ),
    Row(
        "w14",
        "indexes are indexes, and ids are kept",
        (f"{_END_TO_END_DEVICES}::test_ids_are_kept_and_one_bundle_runs_on_other_devices",),
    ),
    Row(
        "w15",
        "programs without an interpreter have devices, copies, control flow, memory that stays",
        (
            f"{_END_TO_END_DEVICES}::test_two_devices",
            f"{_END_TO_END_DEVICES}::test_control_flow_beside_a_device",
        ),
    ),
    Row(
        "w16",
        "targets are values",
        (
            f"{_PLACEMENT}::test_equality_and_hash_are_structural",
            f"{_TARGET_FORMS}::test_all_forms_of_a_target_are_one_value",
        ),
    ),
    Row(
        "w17",
        "conflicts are decided with everything else, not before",
        (
            f"{_PLANNER_MORE_CASES}::test_improved",
            f"{_PLANNER_MORE_CASES}::test_d20_order_of_functions",
        ),
    ),
    Row(
        "w18",
        "nested annotations keep the copy between them",
        (f"{_PLANNER_MORE_CASES}::test_improved[nested annotations copy twice]",),
    ),
    Row(
        "w19",
        "nested copies do not contradict each other",
        (f"{_PLANNER_MORE_CASES}::test_improved[copies in one another that fit]",),
    ),
    Row(
        "w20",
        "a copy with partial ends takes what the plan decides",
        (f"{_PLANNER_MORE_CASES}::test_a_copy_with_partial_ends",),
    ),
    Row(
        "w21",
        "the inputs of an opaque kernel are on its device",
        (f"{_PLANNER_MORE_CASES}::test_a_primitive_is_on_one_device",),
    ),
    Row(
        "w22",
        "equal devices join, however they were made",
        (f"{_PLACEMENT}::test_join",),
    ),
    Row(
        "w23",
        "id and scope are not taken from a device of another type",
        (
            f"{_PLACEMENT}::test_default",
            f"{_CONFIGURATION}::test_default_takes_nothing_from_another_type",
        ),
    ),
    Row(
        "w24",
        "comparisons of plans cover every device",
        (f"{_PROGRAM_TEXT}::test_functions_devices_count_when_programs_are_compared",),
    ),
    Row(
        "w25",
        "no malformed block is dropped",
        (f"{_PROGRAM_TEXT}::test_malformed_blocks",),
    ),
    Row(
        "w27",
        "an unmatched device is an error, and devices of one kind stay apart",
        (f"{_RUNTIME_DEVICES}::test_wrong_binding",),
    ),
    Row(
        "w28",
        "bounds are checked, also in releases",
        (
            f"{_RUNTIME_FORMAT}::test_program_index_out_of_range",
            f"{_RUNTIME_FORMAT}::test_every_opcode_has_a_bad_case",
            f"{_RUNTIME_VM}::test_vm_refuses_addresses_outside",
            "tests/hostile/test_mutants.py::test_mutants",
        ),
    ),
    Row(
        "w29",
        "no pool that was left is taken again; each buffer lies as its own alignment wants",
        (
            "tests/properties/test_memory_safety.py::test_plans_are_safe_and_repeatable",
            f"{_MEMORY_PLANNERS}::test_bounded_fast_pool",
            f"{_MEMORY_PLANNERS}::test_checker_refuses_misalignment",
        ),
    ),
    Row(
        "w30",
        "pools and devices of a library are found by name, in whatever order",
        (
            f"{_LIBRARY_EXPORT}::test_header_names_and_sizes",
            f"{_LIBRARY_EXPORT}::test_same_bits_wherever_the_pools_are",
        ),
    ),
    Row(
        "w31",
        "values inside of loops and branches are planned",
        (
            f"{_STAGE_TEXTS}::test_a_plan_is_compared_with_the_graph_that_it_is_for",
            f"{_CONTROL_FLOW}::test_a_loop_means_what_numpy_does",
        ),
    ),
    Row(
        "w32",
        "archives are the same bytes twice, and sizes are those of each function",
        (
            f"{_MODULE_ARCHIVE}::test_same_bytes_from_the_same_bundles",
            f"{_MODULE_ARCHIVE}::test_metadata",
        ),
    ),
    Row(
        "w33",
        "hooks see every function, and the target that the user configured",
        (
            f"{_PLUGINS}::test_claims_inside_of_branches",
            f"{_PLUGINS}::test_a_pass_before_placement",
        ),
    ),
    Row(
        "w34",
        "what a module says does not depend on which target comes first",
        (f"{_PLUGINS}::test_the_order_of_plugins_decides_between_equals",),
    ),
    Row(
        "w35",
        "the planner records why",
        (
            f"{_PLANNER_REASONS}::test_every_decision_has_a_reason",
            f"{_WHY_DEVICE}::test_chains",
        ),
    ),
    Row(
        "w36",
        "annotations of bare variables count",
        (
            f"{_PLANNER_MORE_CASES}::test_positive[D2 annotated variable is the body]",
            f"{_PLANNER_MORE_CASES}::test_positive[D5' annotated variable as let value]",
        ),
    ),
    Row(
        "w37",
        "constants and pools are given by name",
        (
            f"{_LIBRARY_EXPORT}::test_constants_lie_apart",
            f"{_MODULE_ARCHIVE}::test_launches_name_pools",
        ),
    ),
    Row(
        "w38",
        "conflicts count both ways",
        (f"{_MEMORY_PLANNERS}::test_one_sided_conflicts_are_kept_apart",),
    ),
)
