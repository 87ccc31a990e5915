"""The C around one variant's code: it fills the struct of a call, and calls ``main``.

In: facts. Out: the text of one file. It is the same for every processor, and needs neither libc nor
a function of the compiler's. Not done here: compiling it (``rules.compile_library``), its header
(``library_header``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_build_rules.making.rules.compile_library import code_file, constants_file
from ingot_build_rules.tools.export.library_facts import LibraryFacts
from ingot_build_rules.tools.export.library_metadata import library_metadata
from ingot_build_rules.tools.export.library_pools import ALIGNMENT_BYTES, Pool
from ingot_runtime.format import abi
from ingot_runtime.format.dtypes import DTYPE_CODES

_CODE_ALIGNMENT_BYTES = 4096
_C_TYPES = {"u32": "uint32_t", "u64": "uint64_t"}
_PLACE = """\
#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))
static const int64_t dims[] = {{{dims}}};

static int place(struct tensor *tensor, const void *data, uint64_t alignment, uint64_t bytes, uint32_t rank, int64_t *shape,
                 uint32_t dtype) {{
  tensor->data = ADDRESS(data), tensor->shape = ADDRESS(shape);
  tensor->bytes = bytes, tensor->rank = rank, tensor->dtype = dtype;
  return bytes == 0 || (data && ADDRESS(data) % alignment == 0);
}}

static void clear(void *memory, uint64_t bytes) {{
  volatile uint64_t *words = memory;
  for (uint64_t index = 0; index < bytes / 8; index++) words[index] = 0;
}}
"""
_CALL = """\
int32_t {model}_call(uint32_t abi, const struct {model}_inputs *inputs, const struct {model}_outputs *outputs,
                     const struct {model}_workspace *workspace) {{
  if (abi != {model}_ABI) return {model}_OTHER_HEADER;
{null}
{pools}
{mapped}
  struct call *call = (struct call *)(pool_workspace + {call_at});
  struct tensor *tensors = (struct tensor *)(pool_workspace + {tensors_at});
  int64_t *shapes = (int64_t *)(pool_workspace + {shapes_at});
  uint64_t *workspaces = (uint64_t *)(pool_workspace + {workspaces_at});
  uint64_t *sizes = (uint64_t *)(pool_workspace + {sizes_at});
  clear(pool_workspace + {call_at}, {cleared});
  // Volatile, as in `clear`: a compiler would make a call of libc's memcpy of the loop.
  for (volatile int64_t index = 0; index < {dim_count}; index++) shapes[index] = dims[index];
  int good = 1;
{tensors}
{workspaces}
  if (!good) return {model}_BAD_POINTER;
  call->abi = {abi_version}, call->size = sizeof *call;
  call->n_inputs = {input_count}, call->n_outputs = {output_count}, call->n_devices = {device_count};
  call->inputs = ADDRESS(tensors), call->outputs = ADDRESS(tensors + {input_count});
  call->weights = {weights}, call->weights_bytes = {weights_bytes};
  call->workspaces = ADDRESS(workspaces), call->workspace_bytes = ADDRESS(sizes);
  call->devices = ADDRESS(pool_workspace + {devices_at});
  call->scratch = ADDRESS(pool_workspace + {scratch_at}), call->scratch_stride = {scratch_bytes};
  call->frame = ADDRESS(pool_workspace + {frame_at}), call->frame_bytes = {frame_bytes};
  int has_message = workspace && workspace->message && workspace->message_bytes;
  if (has_message) call->error = ADDRESS(workspace->message), call->error_cap = workspace->message_bytes - 1;
  int32_t (*run)(struct call *) = (int32_t(*)(struct call *))(uintptr_t)({model}_code + {main_at});
  int32_t code = run(call);
  if (has_message) workspace->message[call->error_len] = 0;
  return code;
}}
"""


def library_source(facts: LibraryFacts) -> str:
    """Write it."""
    parts = [
        f'#include "{facts.model}.h"\n',
        *_structs(),
        *_sections(facts),
        _PLACE.format(dims=", ".join(_dims(facts)) or "0"),
        *_maps(facts),
        _call(facts),
        f"const char *{facts.model}_metadata(void) {{ return {_quoted(library_metadata(facts))}; }}",
    ]
    public = '__attribute__((visibility("default")))'
    names = [f"{facts.model}_call", f"{facts.model}_metadata", *_map_names(facts)]
    exports = [f"extern __typeof__({name}) {name} {public};" for name in names]
    return "\n".join([parts[0], *exports, *parts[1:]]) + "\n"


def _structs() -> Iterator[str]:
    for struct in (abi.TENSOR, abi.DEVICE, abi.CALL):
        fields = " ".join(f"{_C_TYPES[kind]} {name};" for name, kind in struct.fields)
        yield f"struct {struct.name} {{ {fields} }};"
        yield f'_Static_assert(sizeof(struct {struct.name}) == {struct.size_bytes}, "size");'


def _sections(facts: LibraryFacts) -> Iterator[str]:
    """The code, the constants and the pools of the library, each in a section of its own."""
    code = f"{facts.model}_code"
    yield _included(
        code,
        f'.text.{facts.model}, \\"ax\\", %progbits',
        _CODE_ALIGNMENT_BYTES,
        code_file(facts.model),
    )
    for pool in facts.pools:
        name = f"{facts.model}_{pool.identifier}_pool"
        if pool.from_caller:
            continue
        if pool.is_constant:
            section = f'.rodata.{facts.model}.{pool.identifier}, \\"a\\", %progbits'
            yield _included(name, section, ALIGNMENT_BYTES, constants_file(facts.model))
        else:
            place = f'section(".bss.{facts.model}.{pool.identifier}"), aligned({ALIGNMENT_BYTES})'
            yield f"static uint8_t {name}[{max(1, pool.size_bytes)}] __attribute__(({place}));"


def _included(name: str, section: str, alignment: int, file: str) -> str:
    hidden = '__attribute__((visibility("hidden")))'
    lines = [
        f".section {section}",
        f".balign {alignment}",
        f"{name}:",
        f'.incbin \\"{file}\\"',
        ".text",
    ]
    assembly = " ".join(f'"{line}\\n"' for line in lines)
    return f"__asm__({assembly});\nextern const uint8_t {name}[] {hidden};"


def _dims(facts: LibraryFacts) -> list[str]:
    return [str(size) for tensor in (*facts.inputs, *facts.outputs) for size in tensor.shape]


def _call(facts: LibraryFacts) -> str:
    memory = facts.memory
    constants = next((pool for pool in facts.pools if pool.is_constant), None)
    return _CALL.format(
        model=facts.model,
        null=_null_checks(facts),
        pools="\n".join(_pool_lines(facts)),
        mapped="\n".join(_mapped_lines(facts)),
        tensors="\n".join(_tensor_lines(facts)),
        workspaces="\n".join(_workspace_lines(facts)),
        call_at=memory.call,
        tensors_at=memory.tensors,
        shapes_at=memory.shapes,
        dim_count=len(_dims(facts)),
        workspaces_at=memory.workspaces,
        sizes_at=memory.workspace_sizes,
        devices_at=memory.devices,
        cleared=memory.size_bytes - memory.call,
        abi_version=abi.ABI_VERSION,
        input_count=len(facts.inputs),
        output_count=len(facts.outputs),
        device_count=len(facts.planned_bytes),
        weights=f"ADDRESS(pool_{constants.identifier})" if constants else "0",
        weights_bytes=facts.constants_bytes,
        scratch_at=memory.scratch,
        scratch_bytes=facts.scratch_bytes,
        frame_at=memory.frame,
        frame_bytes=facts.frame_bytes,
        main_at=facts.main_at,
    )


def _null_checks(facts: LibraryFacts) -> str:
    needed = [] if _mapped(facts) else ["inputs", "outputs"]
    needed += ["workspace"] if any(pool.from_caller for pool in facts.pools) else []
    tests = " || ".join(f"!{name}" for name in needed)
    return f"  if ({tests}) return {facts.model}_BAD_POINTER;" if tests else "  (void)0;"


def _pool_lines(facts: LibraryFacts) -> Iterator[str]:
    """Declare where each pool is, and refuse one that is nowhere."""
    for pool in facts.pools:
        kind = "const uint8_t" if pool.is_constant else "uint8_t"
        yield f"  {kind} *pool_{pool.identifier} = {_address(facts, pool)};"
        if pool.from_caller and pool.size_bytes:
            name = f"pool_{pool.identifier}"
            bad = f"!{name} || ADDRESS({name}) % {ALIGNMENT_BYTES}"
            yield f"  if ({bad}) return {facts.model}_BAD_POINTER;"


def _address(facts: LibraryFacts, pool: Pool) -> str:
    return (
        f"workspace->{pool.identifier}"
        if pool.from_caller
        else f"{facts.model}_{pool.identifier}_pool"
    )


def _mapped(facts: LibraryFacts) -> Pool | None:
    return next((pool for pool in facts.pools if pool.tensor_offsets), None)


def _map_names(facts: LibraryFacts) -> list[str]:
    kinds = ("inputs", "outputs") if _mapped(facts) else ()
    return [f"{facts.model}_map_{kind}" for kind in kinds]


def _maps(facts: LibraryFacts) -> Iterator[str]:
    """The functions that tell where inputs and outputs lie in their pool."""
    pool = _mapped(facts)
    if not pool:
        return
    split = len(facts.inputs)
    offsets = pool.tensor_offsets
    groups = ("inputs", facts.inputs, offsets[:split]), ("outputs", facts.outputs, offsets[split:])
    for kind, tensors, places in groups:
        tag = f"struct {facts.model}_{kind}"
        yield f"{tag} {facts.model}_map_{kind}(const struct {facts.model}_workspace *workspace) {{"
        yield f"  uint8_t *pool = {_address(facts, pool)};"
        yield f"  (void)workspace;\n  {tag} found;"
        for tensor, at in zip(tensors, places, strict=True):
            yield f"  found.{tensor.identifier} = (void *)(pool + {at});"
        yield "" if tensors else "  found.unused = 0, (void)pool;"
        yield "  return found;\n}"


def _mapped_lines(facts: LibraryFacts) -> Iterator[str]:
    if _mapped(facts):
        for kind in ("inputs", "outputs"):
            yield f"  struct {facts.model}_{kind} own_{kind} = {facts.model}_map_{kind}(workspace);"
            yield f"  if (!{kind}) {kind} = &own_{kind};"


def _tensor_lines(facts: LibraryFacts) -> Iterator[str]:
    shape_at = 0
    tensors = [("inputs", tensor) for tensor in facts.inputs]
    tensors += [("outputs", tensor) for tensor in facts.outputs]
    for index, (kind, tensor) in enumerate(tensors):
        rank, code = len(tensor.shape), DTYPE_CODES[tensor.dtype]
        what = f"{kind}->{tensor.identifier}, {tensor.element_bytes}, {tensor.size_bytes}"
        yield f"  good &= place(tensors + {index}, {what}, {rank}, shapes + {shape_at}, {code});"
        shape_at += rank
    yield from (f"  (void){kind};" for kind in ("inputs", "outputs"))


def _workspace_lines(facts: LibraryFacts) -> Iterator[str]:
    written = [pool for pool in facts.pools if not pool.is_constant]
    for index, (pool, planned) in enumerate(zip(written, facts.planned_bytes, strict=True)):
        yield f"  workspaces[{index}] = ADDRESS(pool_{pool.identifier}), sizes[{index}] = {planned};"


def _quoted(text: str) -> str:
    """A string of C, without trigraphs; bytes beyond ASCII do not occur in JSON as we write it."""
    lines = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?").splitlines()
    return "\n  ".join(f'"{line}\\n"' for line in lines)
