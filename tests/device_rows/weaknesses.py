"""Rows w1 to w38: weaknesses of earlier systems, but for those that a decision keeps
(``kept_weaknesses``).

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

TITLE = "Weaknesses of earlier systems, mended"
ROWS = (
    Row(
        "w1",
        "the host is explicit, and what is odd about it is told",
        (
            "tests/unit/placement/test_configuration.py::test_what_is_left_out_is_filled_in",
            "tests/unit/placement/test_configuration.py::test_what_is_refused",
        ),
    ),
    Row(
        "w2",
        "targets are named, and two devices of one kind have different ones",
        (
            "tests/unit/placement/test_configuration.py::test_what_is_left_out_is_filled_in",
            "tests/unit/placement/test_configuration.py::test_devices_by_name",
        ),
    ),
    Row(
        "w3",
        "device and memory scope are separate constraints",
        (
            "tests/unit/programs/test_planner_cases.py::test_reference_case[31 lowered]",
            "tests/unit/programs/test_planner_cases.py::test_33_primitive",
        ),
    ),
    Row(
        "w4",
        "defaults are decided by cost, in an order that does not change",
        (
            "tests/unit/programs/test_planner_more_cases.py::test_d20_order_of_functions",
            "tests/properties/test_planner_properties.py::test_minimal_sample",
        ),
    ),
    Row(
        "w6",
        "errors of the planner say where and why",
        (
            "tests/unit/programs/test_planner_more_cases.py::test_negative",
            "tests/unit/programs/test_planner_reasons.py::test_every_decision_has_a_reason",
        ),
    ),
    Row(
        "w7",
        "a value is copied to a device once",
        (
            "tests/unit/programs/test_planner_more_cases.py::test_improved[one copy for all readers]",
        ),
    ),
    Row(
        "w9",
        "memory scopes of kernels, with aliases and new allocations",
        (
            "tests/unit/programs/test_program_kernels.py::test_scopes_are_applied",
            "tests/unit/programs/test_planner_cases.py::test_reference_case[14 alloc storage]",
        ),
    ),
    Row(
        "w10",
        "the device of an expression is known or the program refused",
        ("tests/unit/programs/test_program_memories.py::test_recovery_is_strict",),
    ),
    Row(
        "w12",
        "lowering has no side channels",
        ("tests/unit/making/test_plugins.py::test_the_text_of_a_stage_goes_on",),
    ),
    Row(
        "w13",
        "devices are matched by kind and id, and scopes are kept",
        (
            "tests/unit/end_to_end/test_end_to_end_devices.py::test_ids_are_kept_and_one_bundle_runs_on_other_devices",
        ),
    ),
    Row(
        "w14",
        "indexes are indexes, and ids are kept",
        (
            "tests/unit/end_to_end/test_end_to_end_devices.py::test_ids_are_kept_and_one_bundle_runs_on_other_devices",
        ),
    ),
    Row(
        "w15",
        "programs without an interpreter have devices, copies, control flow, memory that stays",
        (
            "tests/unit/end_to_end/test_end_to_end_devices.py::test_two_devices",
            "tests/unit/end_to_end/test_end_to_end_devices.py::test_control_flow_beside_a_device",
        ),
    ),
    Row(
        "w16",
        "targets are values",
        (
            "tests/unit/placement/test_placement.py::test_equality_and_hash_are_structural",
            "tests/unit/backends/test_target_forms.py::test_all_forms_of_a_target_are_one_value",
        ),
    ),
    Row(
        "w17",
        "conflicts are decided with everything else, not before",
        (
            "tests/unit/programs/test_planner_more_cases.py::test_improved",
            "tests/unit/programs/test_planner_more_cases.py::test_d20_order_of_functions",
        ),
    ),
    Row(
        "w18",
        "nested annotations keep the copy between them",
        (
            "tests/unit/programs/test_planner_more_cases.py::test_improved[nested annotations copy twice]",
        ),
    ),
    Row(
        "w19",
        "nested copies do not contradict each other",
        (
            "tests/unit/programs/test_planner_more_cases.py::test_improved[copies in one another that fit]",
        ),
    ),
    Row(
        "w20",
        "a copy with partial ends takes what the plan decides",
        ("tests/unit/programs/test_planner_more_cases.py::test_a_copy_with_partial_ends",),
    ),
    Row(
        "w21",
        "the inputs of an opaque kernel are on its device",
        ("tests/unit/programs/test_planner_more_cases.py::test_a_primitive_is_on_one_device",),
    ),
    Row(
        "w22",
        "equal devices join, however they were made",
        ("tests/unit/placement/test_placement.py::test_join",),
    ),
    Row(
        "w23",
        "id and scope are not taken from a device of another type",
        (
            "tests/unit/placement/test_placement.py::test_default",
            "tests/unit/placement/test_configuration.py::test_default_takes_nothing_from_another_type",
        ),
    ),
    Row(
        "w24",
        "comparisons of plans cover every device",
        (
            "tests/unit/programs/test_program_text.py::test_functions_devices_count_when_programs_are_compared",
        ),
    ),
    Row(
        "w25",
        "no malformed block is dropped",
        ("tests/unit/programs/test_program_text.py::test_malformed_blocks",),
    ),
    Row(
        "w27",
        "an unmatched device is an error, and devices of one kind stay apart",
        ("tests/unit/runtime/test_runtime_devices.py::test_wrong_binding",),
    ),
    Row(
        "w28",
        "bounds are checked, also in releases",
        (
            "tests/unit/runtime/test_runtime_format.py::test_program_index_out_of_range",
            "tests/unit/runtime/test_runtime_format.py::test_every_opcode_has_a_bad_case",
            "tests/unit/runtime/test_runtime_vm.py::test_vm_refuses_addresses_outside",
            "tests/hostile/test_mutants.py::test_mutants",
        ),
    ),
    Row(
        "w29",
        "no pool that was left is taken again; each buffer lies as its own alignment wants",
        (
            "tests/properties/test_memory_safety.py::test_plans_are_safe_and_repeatable",
            "tests/unit/lowering/test_memory_planners.py::test_bounded_fast_pool",
            "tests/unit/lowering/test_memory_planners.py::test_checker_refuses_misalignment",
        ),
    ),
    Row(
        "w30",
        "pools and devices of a library are found by name, in whatever order",
        (
            "tests/unit/tools/test_library_export.py::test_header_names_and_sizes",
            "tests/unit/tools/test_library_export.py::test_same_bits_wherever_the_pools_are",
        ),
    ),
    Row(
        "w31",
        "values inside of loops and branches are planned",
        (
            "tests/unit/lowering/test_stage_texts.py::test_a_plan_is_compared_with_the_graph_that_it_is_for",
            "tests/unit/ir/test_control_flow.py::test_a_loop_means_what_numpy_does",
        ),
    ),
    Row(
        "w32",
        "archives are the same bytes twice, and sizes are those of each function",
        (
            "tests/unit/tools/test_module_archive.py::test_same_bytes_from_the_same_bundles",
            "tests/unit/tools/test_module_archive.py::test_metadata",
        ),
    ),
    Row(
        "w33",
        "hooks see every function, and the target that the user configured",
        (
            "tests/unit/making/test_plugins.py::test_claims_inside_of_branches",
            "tests/unit/making/test_plugins.py::test_a_pass_before_placement",
        ),
    ),
    Row(
        "w34",
        "what a module says does not depend on which target comes first",
        ("tests/unit/making/test_plugins.py::test_the_order_of_plugins_decides_between_equals",),
    ),
    Row(
        "w35",
        "the planner records why",
        (
            "tests/unit/programs/test_planner_reasons.py::test_every_decision_has_a_reason",
            "tests/unit/cli/test_why_device.py::test_chains",
        ),
    ),
    Row(
        "w36",
        "annotations of bare variables count",
        (
            "tests/unit/programs/test_planner_more_cases.py::test_positive[D2 annotated variable is the body]",
            "tests/unit/programs/test_planner_more_cases.py::test_positive[D5' annotated variable as let value]",
        ),
    ),
    Row(
        "w37",
        "constants and pools are given by name",
        (
            "tests/unit/tools/test_library_export.py::test_constants_lie_apart",
            "tests/unit/tools/test_module_archive.py::test_launches_name_pools",
        ),
    ),
    Row(
        "w38",
        "conflicts count both ways",
        ("tests/unit/lowering/test_memory_planners.py::test_one_sided_conflicts_are_kept_apart",),
    ),
)
