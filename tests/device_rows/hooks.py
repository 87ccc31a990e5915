"""Rows 70 to 79: target hooks and lowering.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

_PLUGIN_ERRORS = "tests/unit/making/test_plugin_errors.py"
_PLUGINS = "tests/unit/making/test_plugins.py"
_CHOOSE_CLAIMS = "tests/unit/plugins/test_choose_claims.py"

TITLE = "Target hooks and lowering"
ROWS = (
    Row(
        "70",
        "a hook rewrites the graph once per kind, in an order that does not change",
        (
            f"{_PLUGINS}::test_a_pass_before_placement",
            f"{_PLUGINS}::test_the_order_of_plugins_decides_between_equals",
        ),
    ),
    Row(
        "71",
        "what a hook declines is lowered as ever",
        (f"{_PLUGINS}::test_what_is_left_or_too_dear_falls_back",),
    ),
    Row(
        "72",
        "a hook makes its own code, which the host module imports",
        (f"{_PLUGINS}::test_code_and_loops_of_its_own",),
    ),
    Row(
        "73",
        "a hook brings finished libraries",
        (
            f"{_PLUGINS}::test_one_extern_call",
            f"{_PLUGINS}::test_an_image_as_its_library",
            f"{_PLUGIN_ERRORS}::test_broken_words",
        ),
    ),
    Row(
        "74",
        "one lowering serves every way of running",
        (
            f"{_PLUGINS}::test_one_extern_call",
            f"{_PLUGINS}::test_claims_inside_of_branches",
        ),
    ),
    Row(
        "75",
        "everything is in the stages: a compilation goes on from their texts",
        (f"{_PLUGINS}::test_the_text_of_a_stage_goes_on",),
    ),
    Row(
        "76",
        "equal functions are compiled once for a target",
        (f"{_PLUGINS}::test_equal_groups_are_one_kernel",),
    ),
    Row(
        "77",
        "a claimed part goes to the target that the user configured",
        (
            f"{_PLUGINS}::test_a_function_that_fails_ends_the_call",
            f"{_PLUGINS}::test_attributes",
        ),
    ),
    Row(
        "78",
        "a back end is registered once; its phases are ordered",
        (
            f"{_PLUGINS}::test_named_twice_is_named_once",
            f"{_PLUGIN_ERRORS}::test_parts_of_another_type",
            f"{_PLUGINS}::test_passes_run_in_the_order_of_the_list",
        ),
    ),
    Row(
        "79",
        "parts for several targets are chosen by cost, never worse than one alone",
        (
            f"{_CHOOSE_CLAIMS}::test_few_candidates_are_chosen_exactly",
            f"{_CHOOSE_CLAIMS}::test_never_worse_than_one_plugin_alone",
            f"{_PLUGINS}::test_the_order_of_plugins_decides_between_equals",
        ),
    ),
)
