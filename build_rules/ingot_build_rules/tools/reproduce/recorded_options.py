"""Options from plain values.

In: a record (``CompileOptions.plain``) that anybody may have written. Out: ``CompileOptions``. Not
done here: files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingot_build_rules.making.options.compile_options import CompileOptions, PluginOption
from ingot_build_rules.making.options.op_option import OpOption
from ingot_build_rules.making.options.option_rows import CHOICE_ROWS, Choices, given_options
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.options.plain_values import (
    as_flag,
    as_list,
    as_table,
    as_text,
    as_texts,
)
from ingot_build_rules.making.options.tuning_option import TuningOption
from ingot_compiler.plugins.settings import PluginSettings


def recorded_options(record: object) -> CompileOptions:
    """Return the options that a record has.

    The plug-ins among them are not those that the user names now: who uses them compares first.

    Raises:
        KeyError, TypeError, ValueError: not a record of options. UserError: values that this
        version does not know. UnsupportedError: a device kind without code.
    """
    values = as_table(record)
    targets = [as_text(target) for target in as_list(values["targets"])]
    shapes = list(map(as_texts, as_list(values["shapes"])))
    pairs = map(as_list, as_list(values["place"]))
    place = [(as_text(glob), as_text(device)) for glob, device in pairs]
    if not targets:
        raise ValueError("no target")
    return make_options(
        targets,
        shapes,
        as_texts(values["devices"]),
        place,
        other_shapes=as_text(values["other_shapes"]),
        plugins=[_plugin(as_table(each)) for each in as_list(values.get("plugins", []))],
        tuning=_tuning(values.get("tuning")),
        ops=[_op(as_table(each)) for each in as_list(values.get("ops", []))],
        **_choices(values)._asdict(),
    )


def _choices(values: Mapping[str, object]) -> Choices:
    """Older records have not all of them; what is the default is not in every record."""
    chosen = {
        field: _READERS[row.value_type](values[field])
        for field, row in CHOICE_ROWS.items()
        if field in values or row.recorded == "from the first"
    }
    return given_options(chosen).choices


_READERS: Mapping[str, Callable[[object], object]] = {
    "flag": as_flag,
    "text": as_text,
    "texts": lambda value: tuple(map(as_text, as_list(value))),
}


def _plugin(values: dict[str, object]) -> PluginOption:
    """A plug-in as it is recorded; nothing of it is imported."""
    attributes = as_table(values["attributes"])
    kept = {name: each for name, each in attributes.items() if isinstance(each, str | int)}
    if len(kept) < len(attributes):
        raise TypeError("expected attributes that are texts, whole numbers or truth values")
    settings = PluginSettings(as_text(values["name"]), tuple(sorted(kept.items())))
    return PluginOption(as_text(values["target"]), settings)


def _tuning(value: object) -> TuningOption | None:
    if value is None:
        return None
    table = as_table(value)
    methods = as_table(table.get("methods", {}))
    pairs = tuple((name, as_text(methods[name])) for name in sorted(methods))
    return TuningOption(as_text(table.get("target")), pairs, as_text(table.get("processor", "")))


def _op(values: dict[str, object]) -> OpOption:
    """A definition as it is recorded."""
    lines = [as_text(line) for line in as_list(values["lines"])] if "lines" in values else None
    op, file = as_text(values["op"]), as_text(values["file"])
    return OpOption.of_plain(op, file, lines, as_text(values.get("base64", "")))
