"""Rows 20 to 43: programs and the planner.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

_PLANNER_CASES = "tests/unit/programs/test_planner_cases.py"
_PLANNER_MORE_CASES = "tests/unit/programs/test_planner_more_cases.py"
_PROGRAM_KERNELS = "tests/unit/programs/test_program_kernels.py"

TITLE = "Programs and the planner"
ROWS = (
    Row(
        "20",
        "an annotated value is on its device, and copies are put where its context differs",
        (
            f"{_PLANNER_CASES}::test_reference_case[02 left add on cpu]",
            f"{_PLANNER_CASES}::test_reference_case[05 both adds on cpu]",
            f"{_PLANNER_CASES}::test_reference_case[25 unpropagatable graph]",
            "tests/properties/test_plans_obey.py::test_annotated_calls_sample",
        ),
    ),
    Row(
        "21",
        "fixed devices at let values and function bodies",
        (
            f"{_PLANNER_CASES}::test_reference_case[07 let on cpu]",
            f"{_PLANNER_CASES}::test_reference_case[08 func param on cpu]",
            f"{_PLANNER_CASES}::test_reference_case[20 annotate all]",
            f"{_PLANNER_MORE_CASES}::test_positive[D5 annotated let value]",
        ),
    ),
    Row(
        "22",
        "explicit copies; one between equal devices disappears",
        (
            f"{_PLANNER_CASES}::test_reference_case[03 left add on cpu via copy]",
            f"{_PLANNER_CASES}::test_reference_case[12 device copy]",
            f"{_PLANNER_MORE_CASES}::test_positive[D10 copy to the same device]",
        ),
    ),
    Row(
        "23",
        "primitives are on one device per call, any device",
        (
            f"{_PLANNER_CASES}::test_reference_case[24 fusible network]",
            f"{_PLANNER_MORE_CASES}::test_positive[D16 one primitive on two devices]",
        ),
    ),
    Row(
        "24",
        "functions have one device per parameter; calls agree with them",
        (
            f"{_PLANNER_CASES}::test_reference_case[08 func param on cpu]",
            f"{_PLANNER_CASES}::test_reference_case[09 func result on cpu]",
            f"{_PLANNER_CASES}::test_reference_case[27 global]",
            f"{_PLANNER_MORE_CASES}::test_positive[D8 two call sites]",
            f"{_PLANNER_MORE_CASES}::test_negative[N2 two call sites]",
        ),
    ),
    Row(
        "25",
        "higher-order functions and closures",
        (
            f"{_PLANNER_CASES}::test_reference_case[10 higher order]",
            f"{_PLANNER_CASES}::test_reference_case[26 conditional]",
            f"{_PLANNER_MORE_CASES}::test_positive[D13 closure that nobody calls]",
            f"{_PLANNER_MORE_CASES}::test_positive[D14 closure over a variable elsewhere]",
            f"{_PLANNER_MORE_CASES}::test_positive[D15 partially applied function]",
        ),
    ),
    Row(
        "26",
        "tuples are on one device; a projection does not decide",
        (
            f"{_PLANNER_CASES}::test_reference_case[11 function in tuple]",
            f"{_PLANNER_CASES}::test_reference_case[22 tuple get item]",
            f"{_PLANNER_MORE_CASES}::test_positive[D7 annotated items]",
            f"{_PLANNER_MORE_CASES}::test_negative[N1 items of a tuple]",
        ),
    ),
    Row(
        "27",
        "if, match, data types, references",
        (
            f"{_PLANNER_CASES}::test_reference_case[26 conditional]",
            f"{_PLANNER_CASES}::test_reference_case[28 ref]",
            f"{_PLANNER_CASES}::test_reference_case[29 adt]",
            f"{_PLANNER_MORE_CASES}::test_positive[D6 annotated condition]",
            f"{_PLANNER_MORE_CASES}::test_positive[D17 one annotated arm]",
            f"{_PLANNER_MORE_CASES}::test_negative[N10 branches]",
            f"{_PLANNER_MORE_CASES}::test_negative[N13 fields]",
        ),
    ),
    Row(
        "28",
        "recursion",
        (f"{_PLANNER_MORE_CASES}::test_positive[D9 recursion]",),
    ),
    Row(
        "29",
        "operators that only the host can run",
        (
            f"{_PLANNER_CASES}::test_reference_case[13 shape of]",
            f"{_PLANNER_CASES}::test_reference_case[14 alloc storage]",
            f"{_PLANNER_CASES}::test_reference_case[15 alloc tensor]",
            f"{_PLANNER_CASES}::test_reference_case[16 reshape tensor]",
            f"{_PLANNER_MORE_CASES}::test_negative[N6 shape on a device]",
        ),
    ),
    Row(
        "30",
        "dynamic shapes do not matter",
        (f"{_PLANNER_CASES}::test_reference_case[17 dynamic input]",),
    ),
    Row(
        "31",
        "the order in which what is free is decided",
        (
            f"{_PLANNER_CASES}::test_reference_case[01 plain]",
            f"{_PLANNER_CASES}::test_reference_case[13 shape of]",
            f"{_PLANNER_MORE_CASES}::test_positive[D3 unused parameter]",
            f"{_PLANNER_MORE_CASES}::test_positive[D4 unused let value]",
        ),
    ),
    Row(
        "32",
        "free annotations, gone where no copy is needed",
        (
            f"{_PLANNER_CASES}::test_reference_case[30 free on device]",
            f"{_PLANNER_MORE_CASES}::test_positive[D21 free where nothing is asked]",
        ),
    ),
    Row(
        "33",
        "conflicting uses of a value that is not annotated, whatever the order of visits",
        (
            f"{_PLANNER_CASES}::test_reference_case[34 conflicted inputs]",
            f"{_PLANNER_MORE_CASES}::test_d20_order_of_functions",
            "tests/properties/test_planner_properties.py::test_minimal_sample",
        ),
    ),
    Row(
        "34",
        "primitive and opaque functions with annotations",
        (f"{_PLANNER_CASES}::test_33_primitive",),
    ),
    Row(
        "35",
        "partial annotations",
        (
            f"{_PLANNER_MORE_CASES}::test_d11_partial_parameter",
            f"{_PLANNER_MORE_CASES}::test_d12_scope_alone",
        ),
    ),
    Row(
        "36",
        "a plan of a plan is the plan",
        (
            f"{_PLANNER_MORE_CASES}::test_d19_plans_are_their_own_plans",
            "tests/properties/test_planner_properties.py::test_random_programs_sample",
            "tests/properties/test_plans_obey.py::test_monotonicity_sample",
        ),
    ),
    Row(
        "37",
        "the same plan in any order of the globals",
        (
            f"{_PLANNER_MORE_CASES}::test_d20_order_of_functions",
            "tests/properties/test_planner_properties.py::test_random_programs_sample",
        ),
    ),
    Row(
        "38",
        "depth: chains of 100,000 lets",
        (
            f"{_PLANNER_CASES}::test_32_stack_overflow",
            f"{_PLANNER_MORE_CASES}::test_d23_depth",
        ),
    ),
    Row(
        "39",
        "every error names its expressions, devices and source",
        (
            f"{_PLANNER_MORE_CASES}::test_negative",
            f"{_PLANNER_MORE_CASES}::test_n5_no_such_device",
            f"{_PLANNER_MORE_CASES}::test_n7_two_scopes_in_one_tuple",
            f"{_PLANNER_MORE_CASES}::test_n11_open_annotation",
            f"{_PLANNER_MORE_CASES}::test_n12_open_copy",
        ),
    ),
    Row(
        "40",
        "planning again after lowering: memory scopes flow",
        (f"{_PLANNER_CASES}::test_reference_case[31 lowered]",),
    ),
    Row(
        "41",
        "memory scopes of kernels: asked and applied",
        (
            f"{_PROGRAM_KERNELS}::test_scopes_are_got",
            f"{_PROGRAM_KERNELS}::test_scopes_are_applied",
        ),
    ),
    Row(
        "42",
        "the device of each expression is recovered from a plan",
        (f"{_PLANNER_CASES}::test_04_left_add_on_cpu_via_copy_as_map",),
    ),
    Row(
        "43",
        "passes keep the devices of what they do not touch",
        (
            "tests/properties/test_passes_keep_meaning.py::test_marks_of_the_users_nodes_survive_any_passes",
            "tests/properties/test_passes_keep_meaning.py::test_marks_and_sources_survive",
        ),
    ),
)
