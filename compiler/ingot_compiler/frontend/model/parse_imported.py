"""Reads the text form of an imported model.

In: text, as ``print_imported`` writes it or by hand. Out: an ``ImportedModel`` that
``verify_imported`` accepts, or ``ModelError`` with line and column. Not done here: names and
weights, which are beside the model.

::

    imported(opset onnx 20) {
      input %0: f32[s0, s1]
      seed %0
      alike s0, s1
      initializer %1: f32[3] weight 0
      %2, _ = Op(%0, _) {attribute=value, branch=region from 7} on "MARK"
        branch(%3) { ... return %4 }
      output %2: f32[?, 3]
      declares %3: f32[2]
    }
"""

from __future__ import annotations

from dataclasses import field

from ingot_compiler.frontend.model.imported import (
    ABSENT,
    DeclaredType,
    ImportedAttribute,
    ImportedModel,
    ImportedNode,
    ImportedRegion,
)
from ingot_compiler.frontend.model.verify_imported import (
    DECLARED,
    DEFAULT,
    INITIALIZER,
    INPUT,
    OUTPUT,
    find_imported_problems,
)
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.problem import Path
from ingot_compiler.ir.sizes.profile import Profile
from ingot_compiler.ir.text.read_terms import (
    at_float,
    read_dtype,
    read_float,
    read_profile,
    read_type,
)
from ingot_compiler.ir.text.text_reader import Reader, Token
from ingot_compiler.ir.types import DTYPES, TensorType
from ingot_runtime.lazy_dataclass import dataclass


def parse_imported(text: str) -> ImportedModel:
    """The model that ``text`` writes down; ``parse_imported(print_imported(m)) == m``."""
    parser = _Parser(Reader("imported", text))
    model = parser.model()
    parser.reader.end()
    parser.reader.check(find_imported_problems(model), parser.places)
    return model


@dataclass(slots=True)
class _Parser:
    """Reads one text; remembers where each part stands."""

    reader: Reader
    places: dict[Path, Token] = field(default_factory=dict[Path, Token])

    def model(self) -> ImportedModel:
        """The whole text."""
        reader = self.reader
        reader.expect("imported", "(", "opset")
        opsets = reader.items(self.opset, ")")
        reader.expect("{")
        expanded_bytes = self.expanded_bytes()
        inputs = self.inputs()
        profiles = self.profiles()
        defaults = self.defaults()
        seed = self.reader.value() if self.reader.accept("seed") else None
        forms = self.forms()
        alike = self.alike()
        initializers = self.initializers(len(inputs))
        nodes: list[ImportedNode] = []
        while not any(map(reader.at, ("output", "declares", "}"))):
            nodes.append(self.node((len(nodes),)))
        outputs, declared = self.outputs()
        inside = self.declared_inside()
        reader.expect("}")
        return ImportedModel(
            inputs, initializers, tuple(nodes), outputs, declared, opsets, profiles,
            expanded_bytes, alike, defaults, inside, seed, forms,
        )  # fmt: skip

    def expanded_bytes(self) -> int:
        """``expanded 7 bytes``; 0 where nothing is said."""
        if not self.reader.accept("expanded"):
            return 0
        expanded_bytes = self.reader.integer()
        self.reader.expect("bytes")
        return expanded_bytes

    def inputs(self) -> tuple[TensorType, ...]:
        """``input %0: f32[s0, 3]``, ..."""
        inputs: list[TensorType] = []
        while self.starts("input", (INPUT, len(inputs))):
            self.numbered(len(inputs))
            inputs.append(read_type(self.reader))
        return tuple(inputs)

    def profiles(self) -> tuple[Profile, ...]:
        """``specialisation s0 = 8, s1 = 1 to 4``, one for each profile."""
        profiles: list[Profile] = []
        while self.reader.accept("specialisation"):
            profiles.append(read_profile(self.reader))
        return tuple(profiles)

    def defaults(self) -> tuple[tuple[int, ConstantSource], ...]:
        """``default %0: f32[3] weight 0``, ..."""
        found: list[tuple[int, ConstantSource]] = []
        while self.starts("default", (DEFAULT, len(found))):
            position = self.reader.value()
            self.reader.expect(":")
            found.append((position, self.constant()))
        return tuple(found)

    def forms(self) -> tuple[str, ...]:
        """``forms t, qt``, of all inputs of the file; nothing where all are tensors."""
        if not self.reader.accept("forms"):
            return ()
        return tuple(self.reader.listed(lambda: self.reader.name("a form")))

    def alike(self) -> tuple[tuple[str, ...], ...]:
        """``alike s0, s2``, one for each name that several dimensions have."""
        groups: list[tuple[str, ...]] = []
        while self.reader.accept("alike"):
            groups.append(tuple(self.reader.listed(lambda: self.reader.name("a symbol"))))
        return tuple(groups)

    def initializers(self, first: int) -> tuple[ConstantSource, ...]:
        """``initializer %1: f32[3] weight 0``, ..., numbered from ``first`` on."""
        initializers: list[ConstantSource] = []
        while self.starts("initializer", (INITIALIZER, len(initializers))):
            self.numbered(first + len(initializers))
            initializers.append(self.constant())
        return tuple(initializers)

    def outputs(self) -> tuple[tuple[int, ...], tuple[DeclaredType, ...]]:
        """``output %2: f32[?, 3]``, ..."""
        outputs: list[int] = []
        declared: list[DeclaredType] = []
        while self.starts("output", (OUTPUT, len(outputs))):
            outputs.append(self.reader.value())
            self.reader.expect(":")
            declared.append(self.declared())
        return tuple(outputs), tuple(declared)

    def declared_inside(self) -> tuple[tuple[int, DeclaredType], ...]:
        """``declares %1: f32[?, 3]``, ..."""
        found: list[tuple[int, DeclaredType]] = []
        while self.starts("declares", (DECLARED, len(found))):
            ordinal = self.reader.value()
            self.reader.expect(":")
            found.append((ordinal, self.declared()))
        return tuple(found)

    def starts(self, word: str, path: Path) -> bool:
        """Whether a line of that kind comes next; it begins here."""
        self.places[path] = self.reader.token
        return self.reader.accept(word)

    def opset(self) -> tuple[str, int]:
        """``onnx 20``, or ``"domain" 1``."""
        if not self.reader.accept("onnx"):
            return self.reader.string(), self.reader.integer()
        return "", self.reader.integer()

    def numbered(self, expected: int) -> None:
        """``%1:``, which must be the next tensor."""
        start = self.reader.token
        if (number := self.reader.value()) != expected:
            raise self.reader.fail(
                f"expected %{expected} next (tensors are numbered in order), got %{number}", start
            )
        self.reader.expect(":")

    def tensor(self) -> int:
        """``%1``, or ``_`` for one that is absent."""
        return ABSENT if self.reader.accept("_") else self.reader.value()

    def constant(self) -> ConstantSource:
        """``f32[3] weight 0``, or ``f32[3] weight 0 as bf16``."""
        kind = read_type(self.reader)
        self.reader.expect("weight")
        is_number = self.reader.token.kind == "INTEGER"
        weight = self.reader.take().text if is_number else self.reader.string()
        stored = read_dtype(self.reader) if self.reader.accept("as") else None
        return ConstantSource(weight, kind, stored)

    def node(self, path: Path) -> ImportedNode:
        """``%2 = Op(%0) {..} on "MARK"``, then its regions."""
        reader = self.reader
        self.places[path] = reader.token
        results = self.results()
        domain = ""
        if reader.token.kind == "STRING":
            domain = reader.string()
            reader.expect(".")
        op = reader.name("an op")
        reader.expect("(")
        operands = reader.items(self.tensor, ")")
        attributes = reader.items(self.attribute, "}") if reader.accept("{") else ()
        mark = reader.string() if reader.accept("on") else ""
        whole: list[tuple[str, ImportedAttribute]] = []
        for number, (name, value) in enumerate(attributes):
            if isinstance(value, ImportedRegion):
                value = self.region(name, value.first_node, (*path, number))  # noqa: PLW2901
            whole.append((name, value))
        return ImportedNode(op, domain, tuple(whole), operands, results, mark)

    def results(self) -> tuple[int, ...]:
        """``%2, _ =``; none where the line begins with the op."""
        if self.reader.token.kind != "VALUE" and not self.reader.at("_"):
            return ()
        results = self.reader.listed(self.tensor)
        self.reader.expect("=")
        return results

    def attribute(self) -> tuple[str, ImportedAttribute]:
        """``name=value``; of a region the number of its first node, its body follows the node."""
        name = self.reader.name("the name of an attribute")
        self.reader.expect("=")
        if self.reader.accept("region"):
            self.reader.expect("from")
            return name, ImportedRegion((), (), (), (), self.reader.integer())
        if self.reader.accept("["):
            return name, self.items()
        return name, self.constant() if self.reader.token.text in DTYPES else self.scalar()

    def items(self) -> tuple[int, ...] | tuple[float, ...] | tuple[str, ...]:
        """``1, 2]``: all of one kind."""
        start, found = self.reader.token, self.reader.items(self.scalar, "]")
        integers = tuple(item for item in found if isinstance(item, int))
        floats = tuple(item for item in found if isinstance(item, float))
        strings = tuple(item for item in found if isinstance(item, str))
        for alike in (integers, floats, strings):
            if len(alike) == len(found):
                return alike
        raise self.reader.fail("expected items of one kind, got several", start)

    def scalar(self) -> int | float | str:
        """``1``, ``-1.5``, ``"text"``."""
        if self.reader.token.kind == "STRING":
            return self.reader.string()
        return read_float(self.reader) if at_float(self.reader) else self.reader.integer()

    def region(self, name: str, first_node: int, path: Path) -> ImportedRegion:
        """``name(%3) { NODES return %4 }``."""
        reader = self.reader
        reader.expect(name, "(")
        inputs = reader.items(reader.value, ")")
        reader.expect("{")
        initializers: list[tuple[int, ConstantSource]] = []
        nodes: list[ImportedNode] = []
        with reader.nested():
            while reader.accept("initializer"):
                ordinal = reader.value()
                reader.expect(":")
                initializers.append((ordinal, self.constant()))
            while not reader.accept("return"):
                nodes.append(self.node((*path, len(nodes))))
        return ImportedRegion(
            inputs, tuple(initializers), tuple(nodes), reader.items(self.tensor, "}"), first_node
        )

    def declared(self) -> DeclaredType:
        """``f32[?, 3]``, ``?[..]``."""
        reader = self.reader
        dtype = None if reader.accept("?") else read_dtype(reader)
        reader.expect("[")
        if not reader.accept("."):
            return DeclaredType(
                dtype, reader.items(lambda: None if reader.accept("?") else reader.integer(), "]")
            )
        reader.expect(".", "]")
        return DeclaredType(dtype, None)
