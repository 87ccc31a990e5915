"""The header of a library: structs with the model's names, sizes as macros, one function that runs.

In: facts. Out: text that compiles alone as C99 and C++11. Not done here: the code behind it
(``library_source``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from ingot_build_rules.tools.export.c_tensors import size_lines, struct_lines
from ingot_build_rules.tools.export.library_facts import LibraryFacts
from ingot_build_rules.tools.export.library_pools import ALIGNMENT_BYTES, Pool
from ingot_runtime.format import abi

CODES = (
    ("OK", abi.RC_OK, "the outputs are there"),
    ("REFUSED", abi.RC_BAD_INPUT, "the model refuses these inputs; a message says why"),
    ("OTHER_HEADER", abi.RC_ABI, "the caller was compiled with the header of another library"),
    ("BAD_POINTER", 8, "a pointer is null or not aligned"),
)
_HEAD = """\
// Written by `ingot export --library`: the model {model} on {target}.
// A call is on the thread of the caller, allocates nothing, and keeps nothing but what the pools hold: calls that
// share no pool may run at the same time.
#ifndef {guard}
#define {guard}
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif
"""
_RUN = """\
// Runs the model. {given}`message` may be null; else it takes a text of at most
// `message_bytes` bytes, with the zero at its end, when the model refuses its inputs.
int32_t {model}_call(uint32_t abi, const struct {model}_inputs *inputs, const struct {model}_outputs *outputs,
                     const struct {model}_workspace *workspace);
static inline int32_t {model}_run(const struct {model}_inputs *inputs, const struct {model}_outputs *outputs,
                                  const struct {model}_workspace *workspace) {{
  return {model}_call({model}_ABI, inputs, outputs, workspace);
}}
"""
_METADATA = """\
// What this header says, and more, as JSON.
const char *{model}_metadata(void);
"""
_MAP = """\
// Where inputs and outputs lie in pool {pool}. `{model}_run` takes null for them.
struct {model}_inputs {model}_map_inputs(const struct {model}_workspace *workspace);
struct {model}_outputs {model}_map_outputs(const struct {model}_workspace *workspace);
"""
_END = """\
#ifdef __cplusplus
}
#endif
#endif
"""


def library_header(facts: LibraryFacts) -> str:
    """Write it. ``MODEL_ABI`` is a digest of all the rest, so that no other header has it."""
    body = "\n".join(_body(facts))
    digest = hashlib.sha256(body.encode()).hexdigest()
    head = _HEAD.format(model=facts.model, target=facts.target, guard=f"{facts.model.upper()}_H")
    return f"{head}\n#define {facts.model}_ABI 0x{digest[:8]}u\n{body}\n{_END}"


def _body(facts: LibraryFacts) -> Iterator[str]:
    model = facts.model
    yield f'#define {model}_TARGET "{facts.target}"'
    yield f'#define {model}_FEATURES "{" ".join(facts.features)}" // what the processor must have'
    yield from size_lines(f"{model}_input", facts.inputs)
    yield from size_lines(f"{model}_output", facts.outputs)
    yield f"#define {model}_POOL_ALIGNMENT {ALIGNMENT_BYTES}"
    for pool in facts.pools:
        place = "from the caller" if pool.from_caller else "in the library"
        yield f"#define {model}_{pool.identifier}_POOL_BYTES {pool.size_bytes} // {place}"
    yield ""
    yield from (f"#define {model}_{name} {code} // {says}" for name, code, says in CODES)
    yield ""
    yield from struct_lines(f"{model}_inputs", facts.inputs, "const ")
    yield from struct_lines(f"{model}_outputs", facts.outputs)
    yield from _workspace(model, facts.pools)
    yield ""
    mapped = next((pool for pool in facts.pools if pool.tensor_offsets), None)
    if mapped:
        yield _MAP.format(model=model, pool=mapped.identifier)
    given = "Pointers are aligned as the header says. "
    yield _RUN.format(model=model, given=given)
    yield _METADATA.format(model=model)


def _workspace(model: str, pools: tuple[Pool, ...]) -> Iterator[str]:
    yield f"struct {model}_workspace {{"
    for pool in pools:
        if pool.from_caller:
            kind = "const void" if pool.is_constant else "void"
            yield f"  {kind} *{pool.identifier}; // {model}_{pool.identifier}_POOL_BYTES"
    yield "  char *message;"
    yield "  uint32_t message_bytes;"
    yield "};"
