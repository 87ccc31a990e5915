"""The part of ``llvmlite.binding`` that code generation uses, with types; the only module that
imports llvmlite, which ships none.

In: nothing. Out: ``LLVM``, ready for all targets. Not done here: what is asked of it (``llvm``).
"""

from typing import Protocol, cast

import llvmlite.binding as _untyped


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


class Context(Protocol):
    """The part of ``llvmlite.binding.ContextRef`` that is used."""

    def close(self) -> None:
        """Free the context with its types and constants."""
        ...


class _LlvmTarget(Protocol):
    def create_target_machine(
        self, *, cpu: str, features: str, opt: int, reloc: str, codemodel: str
    ) -> Machine: ...


class _TargetFactory(Protocol):
    def from_triple(self, triple: str) -> _LlvmTarget: ...


class _Binding(Protocol):
    """The part of ``llvmlite.binding`` that is used."""

    Target: _TargetFactory
    ObjectFileRef: _ObjectFiles

    def initialize_all_targets(self) -> None: ...
    def initialize_all_asmprinters(self) -> None: ...
    def create_context(self) -> Context: ...
    def parse_assembly(self, llvmir: str, context: Context) -> Module: ...
    def create_mcjit_compiler(
        self, module: Module, target_machine: Machine, use_lmm: bool
    ) -> Engine: ...


LLVM = cast("_Binding", _untyped)
LLVM.initialize_all_targets()
LLVM.initialize_all_asmprinters()
