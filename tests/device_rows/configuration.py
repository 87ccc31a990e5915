"""Rows 1 to 19: virtual devices and configuration.

In: nothing. Out: ``TITLE``, ``ROWS``. Not done here: the page (``page``).
"""

from tests.device_rows.row import Row

_TARGET_FORMS = "tests/unit/backends/test_target_forms.py"
_END_TO_END_DEVICES = "tests/unit/end_to_end/test_end_to_end_devices.py"
_CONFIGURATION = "tests/unit/placement/test_configuration.py"
_PLACEMENT = "tests/unit/placement/test_placement.py"

TITLE = "Virtual devices and configuration"
ROWS = (
    Row(
        "1",
        "a device has four fields, each settable alone; no argument gives the one open device",
        (
            f"{_PLACEMENT}::test_construction_rules",
            f"{_CONFIGURATION}::test_canonical_devices",
        ),
    ),
    Row(
        "2",
        "the target of a device is of the device's type; another is refused",
        (f"{_PLACEMENT}::test_construction_rules",),
    ),
    Row(
        "3",
        "join: the eight cases; commutative, associative where defined, idempotent, with a unit",
        (
            f"{_PLACEMENT}::test_join",
            f"{_PLACEMENT}::test_join_is_a_partial_semilattice",
            f"{_CONFIGURATION}::test_join_is_monotone",
        ),
    ),
    Row(
        "4",
        "default: total and left-biased; a target is taken on its own device type alone",
        (
            f"{_PLACEMENT}::test_default",
            f"{_PLACEMENT}::test_default_is_total_and_left_biased",
            f"{_CONFIGURATION}::test_default_takes_nothing_from_another_type",
        ),
    ),
    Row(
        "5",
        "equal fields are equal values with equal hashes; derived features do not count",
        (
            f"{_PLACEMENT}::test_equality_and_hash_are_structural",
            f"{_TARGET_FORMS}::test_what_follows_from_a_target_is_read_only",
        ),
    ),
    Row(
        "6",
        "interned devices with equal fields are one object, also with targets made afresh",
        (
            f"{_CONFIGURATION}::test_interning",
            f"{_CONFIGURATION}::test_canonical_devices_are_equal_when_they_are_one",
        ),
    ),
    Row(
        "7",
        "the table of interned devices lives as long as its compilation, and two share nothing",
        (f"{_CONFIGURATION}::test_two_configurations_share_nothing_and_leave_nothing",),
    ),
    Row(
        "8",
        "the debug text has the decided fields in a fixed order, `?` for none",
        (f"{_PLACEMENT}::test_text_form",),
    ),
    Row(
        "9",
        "a device of a memory scope alone joins any device; two scopes never join",
        (f"{_CONFIGURATION}::test_scopes",),
    ),
    Row(
        "10",
        "the id of a device is kept from the declaration to the run",
        (f"{_END_TO_END_DEVICES}::test_ids_are_kept_and_one_bundle_runs_on_other_devices",),
    ),
    Row(
        "11",
        "all forms of a target give equal ones; duplicate, unknown and mistyped options are refused",
        (
            f"{_TARGET_FORMS}::test_all_forms_of_a_target_are_one_value",
            f"{_TARGET_FORMS}::test_mistakes_in_targets",
            f"{_TARGET_FORMS}::test_every_tag_is_a_target",
        ),
    ),
    Row(
        "12",
        "features that a target's parser derives are read-only, and nobody may give them",
        (
            f"{_TARGET_FORMS}::test_what_follows_from_a_target_is_read_only",
            f"{_TARGET_FORMS}::test_mistakes_in_targets",
        ),
    ),
    Row(
        "13",
        "which target the host has: the 18 cases",
        (
            f"{_CONFIGURATION}::test_what_is_left_out_is_filled_in",
            f"{_CONFIGURATION}::test_what_is_refused",
        ),
        20,
    ),
    Row(
        "14",
        "a host that is no processor is refused; a device that needs more than its host is told of",
        (
            f"{_CONFIGURATION}::test_what_is_refused",
            f"{_CONFIGURATION}::test_a_device_that_needs_more_than_its_host_is_told_of",
        ),
        20,
    ),
    Row(
        "15",
        "what a kind of device may be declared with: violations name both",
        (
            f"{_CONFIGURATION}::test_what_is_refused",
            f"{_CONFIGURATION}::test_two_scopes_of_one_device",
        ),
        20,
    ),
    Row(
        "16",
        "the default device: the one that is named, else the host; none is invented",
        (
            f"{_CONFIGURATION}::test_what_is_left_out_is_filled_in",
            f"{_CONFIGURATION}::test_what_is_refused",
        ),
        20,
    ),
    Row(
        "17",
        "canonical devices are equal when they are identical; unknown kinds are refused with a list",
        (
            f"{_CONFIGURATION}::test_canonical_targets",
            f"{_CONFIGURATION}::test_canonical_devices",
            f"{_CONFIGURATION}::test_devices_of_a_type",
        ),
    ),
    Row(
        "18",
        "a configuration of its own targets is the same configuration",
        (f"{_CONFIGURATION}::test_a_configuration_of_its_own_parts_is_the_same",),
    ),
    Row(
        "19",
        "one target, a list and a table give the same configuration; there is no separate host",
        (
            f"{_TARGET_FORMS}::test_one_target_a_list_and_a_table_give_the_same_configuration",
            f"{_CONFIGURATION}::test_what_is_refused",
        ),
        20,
    ),
)
