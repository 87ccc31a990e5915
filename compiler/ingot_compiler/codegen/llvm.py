"""Machine code of LLVM IR.

In: final IR text (no pass pipeline runs over it) and a target. Out: object bytes, assembly text,
code in this process. Not done here: writing IR, linking, several modules at once (``object``).
"""

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Literal, Protocol

from ingot_compiler.codegen.llvm_binding import LLVM, Context, Engine, Machine, Module
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.targets.target import Target

Level = Literal[0, 2]
"""The level of LLVM's code generator. For loops, 0 costs 1.9-3x in run time and 3 gains nothing
measurable; for code that runs straight on and calls kernels, 0 is as fast and compiles in a tenth
of the time."""


class CodeTarget(Protocol):
    """What LLVM makes code for: a target of processors, or an architecture of another device."""

    def __hash__(self) -> int:
        """Return a number for dictionaries."""
        ...

    @property
    def triple(self) -> str:
        """LLVM target triple."""
        ...

    @property
    def llvm_cpu(self) -> str:
        """LLVM cpu name."""
        ...

    @property
    def llvm_features(self) -> str:
        """LLVM feature string."""
        ...


def emit_object(ir_text: str, target: Target, *, level: Level, verify: bool) -> bytes:
    """Return an ELF object; see ``object.compile_object``."""
    with _parsed(ir_text, target, verify=verify) as module:
        return _machine(target, level).emit_object(module)


def emit_assembly(ir_text: str, target: CodeTarget) -> str:
    """Return assembly text in the target's usual syntax."""
    with _parsed(ir_text, target, verify=False) as module:
        return _machine(target, 2).emit_assembly(module)


def load_in_process(ir_text: str, target: Target, level: Level = 2) -> Engine:
    """Compile one module into this process; the code lives as long as the returned engine.

    `target` must be one that this machine can run: nothing is checked.
    """
    module = _parse(ir_text, target, LLVM.create_context())
    # A machine of its own: the engine takes it over. LLVM's own memory manager maps each section
    # alone, and ends the process where the next free addresses are 2 GiB away.
    engine = LLVM.create_mcjit_compiler(module, _new_machine(target, level), use_lmm=True)
    engine.finalize_object()
    return engine


def load_object_in_process(content: bytes, target: Target) -> Engine:
    """Load an ELF object into this process; the code lives as long as the returned engine, which
    finds visible symbols only."""
    engine = load_in_process("", target)
    engine.add_object_file(LLVM.ObjectFileRef.from_data(content))
    engine.finalize_object()
    return engine


@contextmanager
def _parsed(ir_text: str, target: CodeTarget, *, verify: bool) -> Generator[Module, None, None]:
    """Parse in a context of its own, so that a long build keeps no types and constants of former
    modules."""
    context = LLVM.create_context()
    try:
        module = _parse(ir_text, target, context)
        try:
            if verify:
                _verify(module)
            yield module
        finally:
            module.close()
    finally:
        context.close()


def _parse(ir_text: str, target: CodeTarget, context: Context) -> Module:
    # Without the layout, the parser would give unmarked loads and stores the alignments of another
    # machine.
    layout = _machine(target, 2).target_data
    header = f'target datalayout = "{layout}"\ntarget triple = "{target.triple}"\n'
    try:
        return LLVM.parse_assembly(header + ir_text, context)
    except RuntimeError as error:
        raise _rejected(error) from error


def _verify(module: Module) -> None:
    try:
        module.verify()
    except RuntimeError as error:
        raise _rejected(error) from error


def _rejected(error: RuntimeError) -> InternalError:
    return InternalError(
        "LLVM rejected generated code",
        why=str(error).strip(),
        do="report this with the model that was compiled",
    )


@cache
def _machine(target: CodeTarget, level: Level) -> Machine:
    return _new_machine(target, level)


def _new_machine(target: CodeTarget, level: Level) -> Machine:
    return LLVM.Target.from_triple(target.triple).create_target_machine(
        cpu=target.llvm_cpu,
        features=target.llvm_features,
        opt=level,
        reloc="pic",
        codemodel="small",
    )
