"""Which test attacks a loader, and which loaders it is made on: one table.

In: nothing. Out: ``ATTACKS``, and ``attacked``, by which a test is made on each loader of its row.
Not done here: the harnesses (``loaders``), the attacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from tests.hostile.loaders import LOADERS


class Attack(NamedTuple):
    """``why``: it has no meaning for the loader in C. ``together``: one run attacks both."""

    why: str = ""
    together: bool = False


EACH, TOGETHER = Attack(), Attack(together=True)
_NO_VM = Attack("the loader in C has no vm, and does not read the program")
_INTERPRETER = Attack("it is a trouble of the interpreter, which the loader in C does not know")
_SAME_CODE = Attack(
    "the image's code is the same; of what C gives it, sanitizers tell (test_c_native)"
)
_OF_TESTS = Attack("it attacks nothing: it tests the tests")

ATTACKS: dict[str, dict[str, Attack]] = {
    "test_bundle_damage": {
        "test_truncated_at_every_border": TOGETHER,
        "test_changed_byte_is_refused_or_not_read": TOGETHER,
        "test_fast_and_code_modes": TOGETHER,
        "test_not_a_bundle": TOGETHER,
        "test_other_version": TOGETHER,
        "test_forged_table": TOGETHER,
        "test_million_sections": TOGETHER,
        "test_bytes_between_sections": TOGETHER,
        "test_forged_name_is_another_valid_bundle": TOGETHER,
        "test_forged_plan_cannot_overrun": TOGETHER,
        "test_manifest_must_be_the_plans": TOGETHER,
        "test_forged_feature_list_is_refused": TOGETHER,
        "test_forged_program_is_refused_by_the_vm": _NO_VM,
    },
    "test_bundle_mapped": {
        "test_truncated_while_mapped": EACH,
        "test_truncated_with_several_sessions": EACH,
        "test_foreign_fault_is_not_swallowed": EACH,
        "test_a_host_that_mends_its_own_faults": EACH,
        "test_a_signal_that_is_sent": EACH,
        "test_written_while_mapped": EACH,
        "test_renamed_over_while_mapped": EACH,
        "test_changed_while_loading": EACH,
        "test_a_handler_over_ours": EACH,
    },
    "test_forged_devices": {
        "test_parts_are_the_bundle": TOGETHER,
        "test_plans_that_lie": TOGETHER,
        "test_code_for_another_target": TOGETHER,
        "test_libraries_that_lie": TOGETHER,
        "test_damaged_library_and_device_weights": TOGETHER,
        "test_programs_that_lie": _NO_VM,
        "test_pool_that_is_too_small": _NO_VM,
        "test_sizes_that_lie": _NO_VM,
        "test_plans_that_lie_about_pools": TOGETHER,
        "test_what_a_later_version_requires": TOGETHER,
        "test_later_version_of_nothing_that_is_known": TOGETHER,
        "test_another_call_struct": TOGETHER,
        "test_unknown_sections": TOGETHER,
        "test_known_sections_are_not_optional": TOGETHER,
        "test_sections_of_no_device": TOGETHER,
    },
    "test_loader_fences": {
        "test_exports": _SAME_CODE,
        "test_all_exports": _SAME_CODE,
        "test_all_dynamic_exports": _SAME_CODE,
        "test_control_flow": _SAME_CODE,
        "test_all_control_flow": _SAME_CODE,
        "test_sizes_that_calls_and_data_decide": _SAME_CODE,
        "test_hand_written_kernel": _SAME_CODE,
        "test_a_fence_holds": _OF_TESTS,
    },
    "test_loader_file_changes": {
        "test_each_change_at_each_moment": TOGETHER,
        "test_some_schedules": TOGETHER,
        "test_many_schedules": TOGETHER,
        "test_some_parallel_verifications": TOGETHER,
        "test_many_parallel_verifications": TOGETHER,
        "test_every_session_is_guarded": EACH,
        "test_every_one_of_many_sessions_is_guarded": EACH,
        "test_change_within_one_tick_of_the_clock": Attack("it stops the interpreter's clock"),
        "test_driver_sees_a_wrong_answer": _OF_TESTS,
    },
    "test_loader_interrupts": {
        "test_interrupts_leave_nothing": _INTERPRETER,
        "test_many_interrupts_leave_nothing": _INTERPRETER,
    },
    "test_loader_memory": {
        "test_some_limits": TOGETHER,
        "test_many_limits": TOGETHER,
        "test_hashing_in_a_full_heap": _INTERPRETER,
        "test_the_interpreters_own_error_is_named": _INTERPRETER,
    },
    "test_loader_processes": {
        "test_odd_process": _INTERPRETER,
        "test_odd_process_many_times": _INTERPRETER,
        "test_odd_process_of_each_loader": EACH,
    },
    "test_loader_system_calls": {
        "test_some_calls_fail": TOGETHER,
        "test_all_calls_fail": TOGETHER,
        "test_refused_handler_is_installed_by_the_next_load": _INTERPRETER,
        "test_handler_goes_with_a_load_that_fails": EACH,
        "test_interrupted_installation_is_finished": _INTERPRETER,
    },
}  # fmt: skip
# Other attacks on what a loader reads have their pair among the tests of the loader in C.
# ``test_mutants``: ``test_c_mutants``. ``test_fuzz_readers``: ``test_c_loader``, by its corpus.
# ``test_refused_inputs``: the image's own code refuses; ``test_c_loader`` compares the words.


def attacked(test: Callable[..., None]) -> Callable[..., None]:
    """Make the test on each loader: its ``loader`` is a name of ``LOADERS``."""
    module = test.__module__.rpartition(".")[2]
    assert ATTACKS[module][test.__name__] == EACH
    made: Callable[..., None] = pytest.mark.parametrize("loader", LOADERS)(test)
    return made
