"""The part of LLVM that code generation uses, with types; the only module that imports llvmlite.

In: final IR text (no pass pipeline runs over it) and a target. Out: object bytes, assembly text,
code in this process.
Not done here: writing IR, linking, several modules at once (``object``).
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Literal, Protocol, cast

import llvmlite.binding as _untyped

from ingot_compiler.backends.host.targets import TARGETS
from ingot_compiler.backends.host.targets.target import Target, native_target
from ingot_compiler.ir.errors import InternalError

Level = Literal[0, 2]
"""Of LLVM's code generator. For loops, 0 costs 1.9-3x in run time and 3 gains nothing measurable;
for code that runs straight on and calls kernels, 0 is as fast and compiles in a tenth of the
time."""


class Module(Protocol):
    """The part of ``llvmlite.binding.ModuleRef`` that is used."""

    def verify(self) -> None:
        """Raise RuntimeError if the module is malformed."""
        ...

    def close(self) -> None:
        """Free the module."""
        ...


class Machine(Protocol):
    """The part of ``llvmlite.binding.TargetMachine`` that is used."""

    target_data: object

    def emit_object(self, module: Module) -> bytes:
        """Return an ELF object."""
        ...

    def emit_assembly(self, module: Module) -> str:
        """Return assembly text."""
        ...


class ObjectFile(Protocol):
    """``llvmlite.binding.ObjectFileRef``."""


class _ObjectFiles(Protocol):
    def from_data(self, data: bytes) -> ObjectFile: ...


class Engine(Protocol):
    """The part of ``llvmlite.binding.ExecutionEngine`` that is used."""

    def add_object_file(self, content: ObjectFile) -> None:
        """Load an object beside the module."""
        ...

    def finalize_object(self) -> None:
        """Generate the code."""
        ...

    def get_function_address(self, name: str) -> int:
        """Return the address of a function, 0 if there is none of this name."""
        ...


class _Context(Protocol):
    def close(self) -> None: ...


class _LlvmTarget(Protocol):
    def create_target_machine(
        self, *, cpu: str, features: str, opt: int, reloc: str, codemodel: str
    ) -> Machine: ...


class _TargetFactory(Protocol):
    def from_triple(self, triple: str) -> _LlvmTarget: ...


class _Binding(Protocol):
    """The part of ``llvmlite.binding`` that is used; llvmlite ships no stubs."""

    Target: _TargetFactory
    ObjectFileRef: _ObjectFiles

    def initialize_all_targets(self) -> None: ...
    def initialize_all_asmprinters(self) -> None: ...
    def create_context(self) -> _Context: ...
    def parse_assembly(self, llvmir: str, context: _Context) -> Module: ...
    def get_host_cpu_features(self) -> Mapping[str, bool]: ...
    def get_process_triple(self) -> str: ...
    def create_mcjit_compiler(self, module: Module, target_machine: Machine) -> Engine: ...


_llvm = cast("_Binding", _untyped)
_llvm.initialize_all_targets()
_llvm.initialize_all_asmprinters()


def emit_object(ir_text: str, target: Target, *, level: Level, verify: bool) -> bytes:
    """Return an ELF object; see ``object.compile_object``."""
    with _parsed(ir_text, target, verify=verify) as module:
        return _machine(target, level).emit_object(module)


def emit_assembly(ir_text: str, target: Target) -> str:
    """Return assembly text in the target's usual syntax."""
    with _parsed(ir_text, target, verify=False) as module:
        return _machine(target, 2).emit_assembly(module)


def host_target() -> Target:
    """Return the target of the build machine, as LLVM sees it: for code that runs while building,
    never for a bundle."""
    arch = _llvm.get_process_triple().partition("-")[0].replace("_", "-")
    known = [feature for family in TARGETS if family.arch == arch for feature in family.features]
    present = _llvm.get_host_cpu_features()
    return native_target(
        [feature.name for feature in known if present.get(feature.llvm_name)], arch
    )


def load_in_process(ir_text: str, target: Target, level: Level = 2) -> Engine:
    """Compile one module into this process; the code lives as long as the returned engine.

    `target` must be one that this machine can run: nothing is checked.
    """
    module = _parse(ir_text, target, _llvm.create_context())
    # A machine of its own: the engine takes it over.
    engine = _llvm.create_mcjit_compiler(module, _new_machine(target, level))
    engine.finalize_object()
    return engine


def load_object_in_process(content: bytes, target: Target) -> Engine:
    """Load an ELF object into this process; the code lives as long as the returned engine, which
    finds visible symbols only."""
    engine = load_in_process("", target)
    engine.add_object_file(_llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    return engine


@contextmanager
def _parsed(ir_text: str, target: Target, *, verify: bool) -> Generator[Module, None, None]:
    """Parse in a context of its own, so that a long build keeps no types and constants of former
    modules."""
    context = _llvm.create_context()
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


def _parse(ir_text: str, target: Target, context: _Context) -> Module:
    # Without the layout, the parser would give unmarked loads and stores the alignments of another
    # machine.
    header = f'target datalayout = "{_machine(target, 2).target_data}"\ntarget triple = "{target.triple}"\n'
    try:
        return _llvm.parse_assembly(header + ir_text, context)
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
def _machine(target: Target, level: Level) -> Machine:
    return _new_machine(target, level)


def _new_machine(target: Target, level: Level) -> Machine:
    return _llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.llvm_cpu,
        features=target.llvm_features,
        opt=level,
        reloc="pic",
        codemodel="small",
    )
