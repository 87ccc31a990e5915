"""The files of a model in C, in a folder.

In: ``CFiles``. Out: ``NAME.h``, ``NAME.c``, ``NAME_support.h``, ``NAME.json``, and the weights as
``NAME_weights.c`` or, apart, as ``NAME.weights``. Not done here: what they say (``c_source``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from ingot_artifacts.store.atomic import atomic_file, sync_folders
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.tools.export.c_header import CFacts
from ingot_build_rules.tools.export.c_source import CChoices, CFiles, make_c_source, weight_bytes
from ingot_compiler.backends.c.c_forms import read_form
from ingot_compiler.backends.c.model_text import support_text
from ingot_runtime.lazy_dataclass import dataclass

_WORDS_IN_LINE = 5
_WEIGHTS_HEAD = """\
#include "{model}.h"

#ifdef __GNUC__
#define ALIGNED(bytes) __attribute__((aligned(bytes)))
#else
#define ALIGNED(bytes)
#endif
#ifndef {model}_WEIGHTS_ATTRIBUTE
#define {model}_WEIGHTS_ATTRIBUTE
#endif
const uint64_t ALIGNED(64) {model}_WEIGHTS_ATTRIBUTE {model}_weights[{count}] = {{
"""


def c_texts(files: CFiles) -> Iterator[tuple[str, bytes]]:
    """Return (name, content) of each file."""
    facts = files.facts
    model = facts.model
    yield f"{model}.h", files.header.encode()
    yield f"{model}.c", bytes(files.source.value())
    yield f"{model}_support.h", support_text(read_form(facts.form)).encode()
    if facts.weights_apart:
        yield f"{model}.weights", weight_bytes(files)
        yield (
            f"{model}_weights.c",
            f'#include "{model}.h"\n\nconst void *{model}_weights;\n'.encode(),
        )
    elif facts.weights_bytes:
        yield f"{model}_weights.c", _weights_text(files)
    yield f"{model}.json", (json.dumps(facts.plain(), indent=2) + "\n").encode()


@dataclass(frozen=True, slots=True)
class CWritten:
    """``files``: names in the folder."""

    facts: CFacts
    files: tuple[str, ...]


def write_c_source(build: Scheduler, model: str, folder: str, choices: CChoices) -> CWritten:
    """Compile a model to C, and write its files, each whole or not at all.

    Raises:
        UserError, UnsupportedError: as ``make_c_source``. OutputError: no space.
    """
    made, names = make_c_source(build, model, choices), list[str]()
    for name, content in c_texts(made):
        with atomic_file(os.path.join(folder, name), lasting=True) as file:
            file.write(content)
        names.append(name)
    sync_folders([os.path.abspath(folder)])
    return CWritten(made.facts, tuple(names))


def _weights_text(files: CFiles) -> bytes:
    content = weight_bytes(files)
    words = [
        f"0x{int.from_bytes(content[at : at + 8], 'little'):x}" for at in range(0, len(content), 8)
    ]
    lines = [
        f"  {', '.join(words[at : at + _WORDS_IN_LINE])},"
        for at in range(0, len(words), _WORDS_IN_LINE)
    ]
    head = _WEIGHTS_HEAD.format(model=files.facts.model, count=len(words))
    return "\n".join([head + "\n".join(lines), "};", ""]).encode()
