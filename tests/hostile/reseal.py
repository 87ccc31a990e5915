"""A bundle in parts that can be changed one by one, and sealed again: what was changed gets past
every digest above it.

In: a bundle's bytes. Out: another bundle's bytes, or all of them but the weights. Not done here:
what to change (``mutations``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ingot_artifacts.bundle.encode_head import encode_head
from ingot_artifacts.bundle.encode_plan import encode_plan
from ingot_compiler.backends.host.main.encode_program import encode_program
from ingot_runtime.errors import BundleError
from ingot_runtime.format import abi
from ingot_runtime.format import header as head
from ingot_runtime.format.interface import interface_digest
from ingot_runtime.format.msgpack_canonical import pack
from ingot_runtime.format.msgpack_decode import unpack
from ingot_runtime.format.plan import DEVICE_KINDS, BundlePlan, decode_plan, manifest_bytes
from ingot_runtime.format.program import Program
from ingot_runtime.format.program_decode import decode_program
from ingot_runtime.format.sha256 import sha256
from ingot_runtime.format.shared import Shared

_ROOT_AT = head.HEADER_SIZE_BYTES - 32
_SMALL_SIZE_BYTES = 1 << 23


class Parts:
    """``payloads``: (kind, id) -> bytes of each section but the weights; ``weights``: their bytes,
    kept if they are few."""

    def __init__(self, data: bytes) -> None:
        """Take an undamaged bundle apart."""
        header = data[: head.HEADER_SIZE_BYTES]
        count = head.check_header(header, len(data))
        self.version_minor = int.from_bytes(header[10:12], "little")
        table = data[head.HEADER_SIZE_BYTES :][: count * head.ROW_SIZE_BYTES]
        self._rows = head.check_table(header, table, len(data))
        ends = {(row.kind, row.id): row.offset + row.size_bytes for row in self._rows}
        self.payloads = {
            (row.kind, row.id): data[row.offset : ends[row.kind, row.id]]
            for row in self._rows
            if row.kind != head.WEIGHTS
        }
        self.weights_sizes_bytes = {
            row.id: row.size_bytes for row in self._rows if row.kind == head.WEIGHTS
        }
        self.weights_size_bytes = sum(self.weights_sizes_bytes.values())
        self.weights_at = len(data) - self.weights_size_bytes
        self.is_small = len(data) <= _SMALL_SIZE_BYTES
        self.weights = data[self.weights_at :] if self.is_small else b""
        self.digests: dict[tuple[int, int], bytes] = {
            (row.kind, row.id): row.digest for row in self._rows
        }

    def copy(self) -> Parts:
        """Return parts that can be changed without changing these."""
        other = object.__new__(Parts)
        other.__dict__ |= self.__dict__ | {
            "payloads": dict(self.payloads),
            "digests": dict(self.digests),
        }
        return other

    @property
    def plan(self) -> BundlePlan:
        """A new copy of the plan."""
        return decode_plan(self.payloads[head.PLAN, 0], self.version_minor)

    def program(self, index: int) -> Program:
        """Return the program of a variant."""
        plan = self.plan
        return decode_program(
            self.payloads[head.PROGRAM, index],
            plan,
            plan.variants[index],
            tuple(self._all_weights_bytes(device) for device in range(len(plan.devices))),
            "program",
        )

    def _all_weights_bytes(self, device: int) -> int:
        """Those in another bundle, too."""
        own = self.weights_sizes_bytes.get(device, 0)
        if device or (head.SHARED, 0) not in self.payloads:
            return own
        return Shared(self.payloads[head.SHARED, 0], own).size_bytes

    def record(self, kind: int) -> dict[str, Any]:
        """Return the values of lock or debug."""
        values: dict[str, Any] = unpack(self.payloads[kind, 0], "record")
        return values

    def put(self, kind: int, id_: int, payload: bytes) -> None:
        """Replace a section; its digest is made again."""
        self.payloads[kind, id_] = payload
        self.digests[kind, id_] = sha256(payload)

    def add(self, kind: int, id_: int, payload: bytes) -> None:
        """Put an optional section that is not there before the weights."""
        self.put(kind, id_, payload)
        at = next(
            (at for at, row in enumerate(self._rows) if row.kind == head.WEIGHTS), len(self._rows)
        )
        row = head.Section(kind, id_, 0, 0, 0, head.OPTIONAL, b"")
        self._rows = [*self._rows[:at], row, *self._rows[at:]]

    def put_plan(self, encoded: bytes) -> None:
        """Replace the plan, and the manifest so that it agrees where the plan can be read at
        all."""
        self.put(head.PLAN, 0, encoded)
        try:
            self.put(head.MANIFEST, 0, manifest_bytes(decode_plan(encoded)))
        except BundleError:
            return  # the reader refuses the plan: any manifest will do

    def change_plan(self, change: Callable[[BundlePlan], None]) -> None:
        """Change the plan in place; the manifest says the same, even what no reader allows."""
        plan = self.plan
        change(plan)
        self.put(head.PLAN, 0, encode_plan(plan))
        self.put(head.MANIFEST, 0, manifest_bytes(plan))

    def change_program(self, change: Callable[[Program], None], index: int = 0) -> None:
        """Change a program in place; its image says that `main` was made from it."""
        program = self.program(index)
        change(program)
        self.put(head.PROGRAM, index, encode_program(program))
        self.reseal_program(index)

    def change_record(self, kind: int, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the values of lock or debug in place."""
        values = self.record(kind)
        change(values)
        self.put(kind, 0, pack(values))

    def export_at(self, index: int, name: str) -> int:
        """Return where an export lies in the image of a variant."""
        image = self.payloads[head.CODE, index]
        at = 4 * (len(abi.IMAGE_HEADER) + [str(export) for export in abi.EXPORTS].index(name))
        return int(struct.unpack_from("<I", image, at)[0])

    def reseal_program(self, index: int) -> None:
        """Write the digest of the program into the image."""
        self._patch_image(
            index,
            self.export_at(index, "program_digest"),
            sha256(self.payloads[head.PROGRAM, index]),
        )

    def reseal_interface(self) -> None:
        """Write the digest of what the plan expects into every image."""
        plan = self.plan
        tensors = (
            tuple((tensor.dtype, tensor.dims) for tensor in each)
            for each in (plan.inputs, plan.outputs)
        )
        inputs, outputs = tensors
        for index, variant in enumerate(plan.variants):
            if (head.CODE, index) in self.payloads:
                digest = interface_digest(
                    inputs,
                    outputs,
                    tuple(
                        (DEVICE_KINDS.index(device.kind), device.library) for device in plan.devices
                    ),
                    tuple(
                        (
                            DEVICE_KINDS.index(each.kind),
                            each.target,
                            each.features,
                            each.kernel_count,
                        )
                        for each in plan.libraries
                    ),
                    variant.features,
                )
                self._patch_image(index, self.export_at(index, "interface_digest"), digest)

    def _patch_image(self, index: int, at: int, data: bytes) -> None:
        image = self.payloads[head.CODE, index]
        self.put(head.CODE, index, image[:at] + data + image[at + len(data) :])

    def rows(self) -> tuple[list[head.Section], int]:
        """Lay the sections out, in the order that they had; return their rows and the size of the
        file."""
        end = head.HEADER_SIZE_BYTES + len(self._rows) * head.ROW_SIZE_BYTES
        rows: list[head.Section] = []
        for old in self._rows:
            key = (old.kind, old.id)
            size = len(self.payloads.get(key, b""))
            if old.kind == head.WEIGHTS:
                size = self.weights_sizes_bytes.get(old.id, old.size_bytes)
            alignment = head.section_kind(old.kind).alignment
            offset = end + -end % alignment
            rows.append(
                head.Section(
                    old.kind, old.id, offset, size, alignment, old.flags, self.digests[key]
                )
            )
            end = offset + size
        return rows, end

    def prefix(self) -> bytes:
        """Return all bytes before the weights, sealed."""
        rows, size_bytes = self.rows()
        start, _ = encode_head(rows, size_bytes, self.version_minor)
        out = bytearray(start)
        for row in rows:
            out += bytes(row.offset - len(out))
            if row.kind == head.WEIGHTS:
                break  # the weights are last, and follow each other
            out += self.payloads[row.kind, row.id]
        return bytes(out)

    def sealed(self) -> bytes:
        """Return the whole bundle."""
        return self.prefix() + self.weights


def reseal_root(prefix: bytes) -> bytes:
    """Make the root digest of whatever header and table say."""
    count = min(int.from_bytes(prefix[20:24], "little"), 4096)
    end = head.HEADER_SIZE_BYTES + count * head.ROW_SIZE_BYTES
    root = sha256(prefix[:_ROOT_AT] + bytes(32) + prefix[head.HEADER_SIZE_BYTES : end])
    return prefix[:_ROOT_AT] + root + prefix[head.HEADER_SIZE_BYTES :]
