"""Back ends: the list, their hooks, what may be named as one."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ingot_build_rules.making.options.configure import KINDS_WITH_CODE
from ingot_build_rules.making.rules.registry import LOADABLE, RULEBOOK
from ingot_build_rules.making.stages.own_code import code_digests
from ingot_compiler.backends.backend import Backend
from ingot_compiler.backends.c import C_KERNEL
from ingot_compiler.backends.registry import BACKENDS, backend_of, parse_target
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.ir.errors import InternalError, UserError
from ingot_compiler.kernels.machines import VECTOR_MACHINE
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.targets.target import parse_target as parse_processor
from ingot_runtime.format.plan import DEVICE_KINDS

NAMES = ("kind", "tags", "loops_for")  # not hooks
HOOKS = [it.name for it in fields(Backend) if it.type == "str" and it.name not in NAMES]
KERNEL = compile_object("define void @k() {\n  ret void\n}\n", parse_processor("x86-64-v2"))


def hook(backend: Backend, name: str) -> Callable[..., Any]:
    """The function that a hook names."""
    module, _, attribute = getattr(backend, name).partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return found


@pytest.mark.parametrize("kind", ["opencl", "cuda"])
def test_loops_of_another_kind_are_cut_alike(kind: str) -> None:
    """The target of processors that a back end names has the lanes and registers for which its
    loops are cut, so that the processor runs them."""
    machine = parse_processor(backend_of(kind).loops_for)
    shape = (machine.f32_lanes, machine.vector_register_count)
    assert shape == (VECTOR_MACHINE.f32_lanes, VECTOR_MACHINE.vector_register_count)
    assert set(VECTOR_MACHINE.features) <= set(machine.features)


def test_the_list() -> None:
    """Each is a kind of device that the format has, once; the host is the first, all others can be
    asked for."""
    kinds = [backend.kind for backend in BACKENDS]
    assert len(set(kinds)) == len(kinds)
    assert set(kinds) <= set(DEVICE_KINDS)
    assert (kinds[0], *KINDS_WITH_CODE) == tuple(kinds)
    assert [backend_of(kind) for kind in kinds] == list(BACKENDS)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.kind)
@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_is_a_function(backend: Backend, name: str) -> None:
    """Where a back end says that a hook is there is a function."""
    assert callable(hook(backend, name))


def test_actions_may_load_hooks_and_nothing_else() -> None:
    """Every hook but the one for targets, which no action needs, is in the list of what inputs may
    name, and what writes a kernel as C source, which is no device's."""
    listed = [where for found in LOADABLE.values() for where in found]
    hooks = {
        getattr(backend, name) for backend in BACKENDS for name in HOOKS if name != "parse_target"
    }
    assert set(listed) == hooks | {C_KERNEL}


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.kind)
def test_hooks_reach_no_other_back_end_by_the_list(backend: Backend) -> None:
    """The code of a hook is not that of all back ends: it reaches neither the list nor what it does
    not share."""
    others = {other.kind for other in BACKENDS} - {backend.kind, "host"}
    for name in HOOKS:
        module = getattr(backend, name).partition(":")[0]
        reached = {path for path, _ in code_digests(None).files_of(module)}
        assert "ingot_compiler/backends/registry.py" not in reached
        assert not [
            path
            for path in reached
            for other in others
            if path.startswith(f"ingot_compiler/backends/{other}/")
        ]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.kind)
def test_targets_are_read_back(backend: Backend) -> None:
    """The text of a target is read as an equal one, which needs the same features; another text is
    the user's mistake."""
    text = "x86-64-v3+avx512f-fma" if backend.attributes else ""
    target = parse_target(backend.kind, text)
    again = parse_target(backend.kind, str(target))
    assert (str(again), again.features, again.rank) == (str(target), target.features, target.rank)
    assert bool(target.features) == bool(backend.attributes)
    with pytest.raises(UserError, match=r"unknown (target|architecture) 'x86-64-v9'"):
        parse_target(backend.kind, "x86-64-v9")


def test_a_device_of_null_runs_what_most_machines_run() -> None:
    """Without a target it has the lowest of the host's."""
    assert str(parse_target("null", "", ("x86-64-v4", "x86-64-v2", "x86-64-v3"))) == "x86-64-v2"


def test_a_variant_has_a_main_and_a_library_has_none() -> None:
    """Either back end refuses what is the other's."""
    support = hook(BACKENDS[0], "compile_support")("x86-64-v2")
    with pytest.raises(InternalError, match="a variant without main"):
        hook(backend_of("host"), "link_image")([("k", KERNEL)], None, support, "x86-64-v2")
    with pytest.raises(InternalError, match="a library with a main"):
        hook(backend_of("null"), "link_image")([("k", KERNEL)], KERNEL, support, "x86-64-v2")
    assert hook(backend_of("null"), "link_image")([("k", KERNEL)], None, support, "x86-64-v2")


def test_every_rule_that_loads_is_known() -> None:
    """The code of a rule is its own module's and that of its hooks, each once."""
    code = RULEBOOK.code_of(RULEBOOK.by_name["codegen"])
    hooks = [C_KERNEL, *(backend.compile_kernel for backend in BACKENDS)]
    assert code == ("ingot_build_rules.making.rules.codegen", *dict.fromkeys(hooks))


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.kind)
def test_a_kind_that_a_back_end_does_not_have_is_refused(backend: Backend) -> None:
    """Which kinds of kernels there are is known to the device's back end alone; a fused graph that
    names another is told so."""
    group = Group(Method("matmull"), (), (), (), ())
    with pytest.raises(InternalError, match="no kind of kernel is called 'matmull'"):
        hook(backend, "lower_group")(group, "x86-64-v3")


def test_the_costs_are_those_of_the_page() -> None:
    """The table of rates in docs/placement.md has a row for each back end that has any."""
    page = (Path(__file__).parents[3] / "docs" / "placement.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| `")]
    told = {kind.strip(" `"): [cell.strip() for cell in cells]
            for names, *cells in rows if len(cells) == 8
            for kind in names.split(",")}  # fmt: skip
    costs = {backend.kind: backend.costs for backend in BACKENDS if backend.costs is not None}
    assert set(told) == set(costs)
    for kind, each in costs.items():
        rates = [each.contraction_flops_per_second, each.flops_per_second, each.bytes_per_second,
                 each.constant_bytes_per_second]  # fmt: skip
        expected = [f"{rate / 1e9:g}" for rate in rates]
        expected += [f"{each.cache_bytes >> 20} MiB", f"{each.launch_seconds * 1e6:g} us"]
        if kind != "host":
            expected += [f"{each.copy_seconds * 1e6:g} us", f"{each.copy_bytes_per_second / 1e9:g}"]
        assert [cell for cell in told[kind] if cell] == expected
