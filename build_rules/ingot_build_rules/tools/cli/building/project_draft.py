"""The text of a new ``ingot.toml``.

In: models, targets. Out: text, the same for the same models. Not done here: finding models
(``found_models``), writing the file (``init``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ingot_build_rules.tools.cli.building.found_models import ModelOfFolder

_TARGETS = {
    "x86-64": {"portable": "x86-64-v3", "avx512": "x86-64-v4"},
    "aarch64": {"portable": "aarch64"},
    "riscv64": {"portable": "riscv64"},
}
_SAYS = {
    "x86-64-v3": "every x86-64 processor with AVX2: 2013 and later",
    "x86-64-v4": "those that have AVX-512 as well",
    "aarch64": "every 64-bit processor of Arm",
    "riscv64": "every RV64GC processor",
}
_HEAD = """\
# Written by `ingot init`. Every key is explained in docs/project-file.md.
# `ingot build` makes dist/NAME.ingot for each bundle, as far as something has changed.
"""


def portable_targets(architecture: str) -> dict[str, str]:
    """Return the targets of a new project by name; the first one is built."""
    return _TARGETS[architecture]


def draft_project(models: Iterable[ModelOfFolder], targets: Mapping[str, str]) -> str:
    """Return the project: a bundle for each model, for the first of the targets."""
    first, *others = targets
    more = (
        f" # add {', '.join(map(_text, others))} for another variant in each file" if others else ""
    )
    tables = [_HEAD, f"[defaults]\ntargets = [{_text(first)}]{more}\n"]
    tables += [
        f"[target.{name}] # {_SAYS[target]}\ntarget = {_text(target)}\n"
        for name, target in targets.items()
    ]
    for model in models:
        key = _key(model.name)
        tables.append(f"[model.{key}]{_inputs(model)}\nsource = {_text(model.path)}\n")
        tables.append(f"[bundle.{key}]\nmodel = {_text(model.name)}\n")
    return "\n".join(tables)


def _inputs(model: ModelOfFolder) -> str:
    text = model.inputs_text()
    return f" # {text}" if text and text.isprintable() else ""


def _key(name: str) -> str:
    """A name with a dot is one key, not two."""
    return _text(name) if "." in name else name


def _text(value: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
