"""Rows 70 to 79: target hooks and lowering.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

TITLE = "Target hooks and lowering"
ROWS = (
    Row(
        "70",
        "a hook rewrites the graph once per kind, in an order that does not change",
        (
            "tests/unit/making/test_plugins.py::test_a_pass_before_placement",
            "tests/unit/making/test_plugins.py::test_the_order_of_plugins_decides_between_equals",
        ),
    ),
    Row(
        "71",
        "what a hook declines is lowered as ever",
        ("tests/unit/making/test_plugins.py::test_what_is_left_or_too_dear_falls_back",),
    ),
    Row(
        "72",
        "a hook makes its own code, which the host module imports",
        ("tests/unit/making/test_plugins.py::test_code_and_loops_of_its_own",),
    ),
    Row(
        "73",
        "a hook brings finished libraries",
        (
            "tests/unit/making/test_plugins.py::test_one_extern_call",
            "tests/unit/making/test_plugins.py::test_an_image_as_its_library",
            "tests/unit/making/test_plugin_errors.py::test_broken_words",
        ),
    ),
    Row(
        "74",
        "one lowering serves every way of running",
        (
            "tests/unit/making/test_plugins.py::test_one_extern_call",
            "tests/unit/making/test_plugins.py::test_claims_inside_of_branches",
        ),
    ),
    Row(
        "75",
        "everything is in the stages: a compilation goes on from their texts",
        ("tests/unit/making/test_plugins.py::test_the_text_of_a_stage_goes_on",),
    ),
    Row(
        "76",
        "equal functions are compiled once for a target",
        ("tests/unit/making/test_plugins.py::test_equal_groups_are_one_kernel",),
    ),
    Row(
        "77",
        "a claimed part goes to the target that the user configured",
        (
            "tests/unit/making/test_plugins.py::test_a_function_that_fails_ends_the_call",
            "tests/unit/making/test_plugins.py::test_attributes",
        ),
    ),
    Row(
        "78",
        "a back end is registered once; its phases are ordered",
        (
            "tests/unit/making/test_plugins.py::test_named_twice_is_named_once",
            "tests/unit/making/test_plugin_errors.py::test_parts_of_another_type",
            "tests/unit/making/test_plugins.py::test_passes_run_in_the_order_of_the_list",
        ),
    ),
    Row(
        "79",
        "parts for several targets are chosen by cost, never worse than one alone",
        (
            "tests/unit/plugins/test_choose_claims.py::test_few_candidates_are_chosen_exactly",
            "tests/unit/plugins/test_choose_claims.py::test_never_worse_than_one_plugin_alone",
            "tests/unit/making/test_plugins.py::test_the_order_of_plugins_decides_between_equals",
        ),
    ),
)
