"""The loader in C, in this process: it refuses in the words of the one in Python, computes the same
bits, and takes no memory during a call."""

from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import parser
from tests.c_loader import (
    HEADER_VERSION,
    CBundle,
    LoaderError,
    Options,
    library,
    options,
    verdict_of_c,
    verdict_of_python,
)
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.hostile.fuzz_readers import corpus_of
from tests.hostile.mutant_bundles import dynamic
from tests.hostile.mutations import Mutant, mutant
from tests.hostile.reseal import Parts
from tests.hostile.tiny import (
    WEIGHTS_AT,
    WEIGHTS_BYTES,
    WEIGHTS_SECTION_BYTES,
    WIDTH,
    tiny_contents,
    tiny_reference,
    tree_entry,
)

import ingot
import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_build_rules.tools.export.abi_header import abi_header, error_kinds
from ingot_build_rules.tools.export.loader_sources import loader_sources
from ingot_runtime.format.file import TRAILER, TRAILER_MAGIC
from ingot_runtime.format.plan import BundlePlan
from ingot_runtime.loader import cpu

X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)
MUTANT_COUNT = 60


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "tiny.ingot"
    write_bundle(tiny_contents("batch"), path, tree_entry)
    return path


@pytest.fixture(scope="module")
def open_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "dynamic.ingot"
    dynamic(path)
    return path


def feed(count: int = 3) -> dict[str, np.ndarray]:
    return {
        "x": np.arange(count * 4, dtype=np.float32).reshape(count, 4) - 3,
        "count": np.array(2),
        "which": np.array(True),
    }


def test_header_is_that_of_the_tables() -> None:
    """``runtime/c/abi.h`` is what its generator writes; after a change: ``python -m
    ingot_build_rules.tools.export.abi_header runtime/c/abi.h``."""
    assert dict(loader_sources())["abi.h"] == abi_header()


def test_kinds_of_errors_have_the_names_and_numbers_of_the_header() -> None:
    """The enum of ``ingot.h`` lists the loader's errors in the order of the exit codes."""
    text = dict(loader_sources())["ingot.h"]
    listed = text[text.index("INGOT_OK") : text.index("};", text.index("INGOT_OK"))]
    names = [name.strip().removeprefix("INGOT_") for name in listed.split(",")]
    spelled = [
        "".join("_" * letter.isupper() + letter for letter in kind.__name__).upper().lstrip("_")
        for kind in error_kinds()
    ]
    assert names == ["OK", *spelled]
    functions = [
        line for line in text.splitlines() if "ingot_" in line and line.endswith((");", ","))
    ]
    assert len([line for line in functions if "(" in line]) <= 15


def test_same_bits(bundle: Path, open_bundle: Path) -> None:
    """From a file and from memory, with one thread and two, for one size and another."""
    expected = tiny_reference(X)
    for given in (bundle, bundle.read_bytes()):
        for threads in (1, 2):
            with CBundle(given, options(threads=threads)) as loaded:
                assert (loaded.run({"x": X})["y"] == expected).all()
                assert (loaded.run({"x": X[:2]})["y"] == tiny_reference(X[:2])).all()
    with CBundle(open_bundle) as loaded, ingot_runtime.load(open_bundle) as session:
        for count in (3, 0, 5):
            got, wanted = loaded.run(feed(count)), session.run(feed(count))
            for name, array in wanted.items():
                assert (array.shape, array.tobytes()) == (got[name].shape, got[name].tobytes())


def test_a_size_with_a_bound(tmp_path: Path) -> None:
    """What only the data measure, below a number that is known: from nothing to all."""
    found = make_model([node("NonZero", "x", "y")], [tensor("x", [3, 4])], [tensor("y", None, 7)])
    ingot.compile(found).save(tmp_path / "m.ingot")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with CBundle(tmp_path / "m.ingot") as loaded:
        for given in (x, x * 0, x % 3, x + 1):
            got = loaded.run({"x": given})["y"]
            np.testing.assert_array_equal(got, np.array(np.nonzero(given)))


def test_hostile_corpus_gets_the_same_verdict(bundle: Path) -> None:
    """Each file of the corpus of bundles: same error, words, place and exit code."""
    parts = Parts(bundle.read_bytes())
    kinds: set[str] = set()
    for name in ("header", "table"):
        for data in corpus_of(name):
            verdict = verdict_of_python(data)
            assert verdict_of_c(data) == verdict
            kinds.add(verdict.kind)
    for data in corpus_of("plan"):
        forged = parts.copy()
        forged.put_plan(data)
        verdict = verdict_of_python(forged.sealed())
        assert verdict_of_c(forged.sealed()) == verdict
        kinds.add(verdict.kind)
    assert kinds >= {"FormatError", "NotABundleError", "VersionError"}


@pytest.mark.parametrize("features", [("",), ("", "sse3", "warp"), ("", "warp", "weft")])
def test_features_of_any_name_are_asked_for(tmp_path: Path, features: tuple[str, ...]) -> None:
    """One without a name is not known either: the variant is refused, in the same words."""
    contents = tiny_contents()
    variants = tuple(replace(variant, features=features) for variant in contents.variants)
    write_bundle(replace(contents, variants=variants), tmp_path / "m.ingot", tree_entry)
    verdict = verdict_of_python(tmp_path / "m.ingot")
    assert verdict.kind == "IncompatibleError"
    assert verdict_of_c(tmp_path / "m.ingot") == verdict


@pytest.mark.parametrize("seed", range(8))
def test_both_take_the_same_of_one_rank(seed: int, tmp_path: Path) -> None:
    """Of variants for classes of processors, each loader takes that of this one, or the other
    loader's."""
    rng = np.random.default_rng(seed)
    model = cpu.processor_model()
    own = [model, model[:-1], model[: len(model) // 2], "", f"{model}0", f"0{model}", "none"]
    targets = [f"x86-64-v2{it}" for it in ("", ":haswell", ":skylake", ":znver3", ":znver4")]
    rng.shuffle(targets)
    contents = tiny_contents(targets=tuple(targets))
    variants = tuple(
        replace(variant, processors=tuple(sorted(rng.choice(own, rng.integers(3), replace=False))))
        for variant in contents.variants
    )
    path = tmp_path / "m.ingot"
    write_bundle(replace(contents, variants=variants), path, tree_entry)
    session = ingot_runtime.load(path)
    assert session.loaded.plan.minor == 6
    with CBundle(path) as loaded:
        assert loaded.info.target.decode() == session.loaded.variant.target
    matching = [it.target for it in session.loaded.plan.variants if model.startswith(it.processors)]
    assert not matching or session.loaded.variant.target == matching[0]


def test_mutants_get_the_same_verdict(bundle: Path) -> None:
    """Whatever is changed and sealed again is refused alike, or loads in both."""
    parts, kinds = Parts(bundle.read_bytes()), set[str]()
    for number in range(MUTANT_COUNT):
        _, made, _ = mutant(parts, number, 1)
        if not made.may_run:
            continue
        data = mutated(parts, made)
        verdict = verdict_of_python(data)
        assert verdict_of_c(data) == verdict, number
        kinds.add(verdict.kind)
    assert kinds >= {"", "FormatError", "DigestError"}


@pytest.mark.parametrize("batch", ["", "batch"])
@pytest.mark.parametrize("change", [-64, 64, 1 << 40])
def test_a_plan_that_lies_about_its_pool(batch: str, change: int, tmp_path: Path) -> None:
    """Where all sizes are in the bundle, both refuse it before a call; what main needs decides."""
    path = tmp_path / "tiny.ingot"
    write_bundle(tiny_contents(batch) if batch else tiny_contents(), path, tree_entry)

    def lie(plan: BundlePlan) -> None:
        sizes = list(plan.variants[0].workspace_bytes)
        sizes[0] += change if sizes[0] else 0
        plan.variants[0].workspace_bytes = tuple(sizes)

    parts = Parts(path.read_bytes())
    parts.change_plan(lie)
    data = parts.sealed()
    verdict = verdict_of_python(data)
    assert verdict_of_c(data) == verdict
    assert ("disagree on the workspace" in verdict.what) == (not batch)


def mutated(parts: Parts, made: Mutant) -> bytes:
    """Return the mutant's bytes."""
    data = bytearray(made.prefix + parts.weights)
    for offset, mask in made.patches:
        for at, bits in enumerate(mask, len(made.prefix) + offset):
            if at < len(data):
                data[at] ^= bits
    end = len(data) + made.size_change
    return bytes(data[: max(0, end)]).ljust(end, b"\1")


def test_calls_are_refused_in_the_same_words(open_bundle: Path) -> None:
    """A missing input, a wrong rank of sizes, a negative one, a message of the model."""
    with CBundle(open_bundle) as loaded, ingot_runtime.load(open_bundle) as session:
        for inputs in (
            {name: array for name, array in feed().items() if name != "x"},
            {**feed(), "x": np.zeros((3, 5), np.float32)},
        ):
            with pytest.raises(ingot_runtime.InputError) as in_python:
                session.run(inputs)
            with CBundle(open_bundle) as fresh, pytest.raises(LoaderError) as in_c:
                fresh.run(inputs)
            wanted, got = in_python.value, in_c.value
            assert (got.verdict.what, got.verdict.where) == (wanted.what, wanted.where)
            assert (got.why, got.todo) == (wanted.why, wanted.do)
        assert loaded.run(feed())["y"].shape == (3, 4)


def test_all_missing_inputs_are_told(tmp_path: Path) -> None:
    """In the same words by both loaders, whichever are given."""
    inputs = "float[n, 2] a, float[n, 2] b, float[n, 2] c"
    body = f"({inputs}) => (float[n, 2] y) {{ ab = Add(a, b) y = Add(ab, c) }}"
    path = tmp_path / "m.ingot"
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> sums {body}')
    ingot.compile(model, targets="x86-64-v2").save(path)
    array = np.zeros((3, 2), np.float32)
    with CBundle(path) as loaded, ingot_runtime.load(path) as session:
        for given in ("", "a", "b", "ca"):
            with pytest.raises(ingot_runtime.InputError) as in_python:
                session.run(dict.fromkeys(given, array))
            with CBundle(path) as fresh, pytest.raises(LoaderError) as in_c:
                fresh.run(dict.fromkeys(given, array))
            wanted, got = in_python.value, in_c.value
            assert (got.verdict.what, got.verdict.where) == (wanted.what, wanted.where)
            assert (got.why, got.todo) == (wanted.why, wanted.do)
        assert loaded.run(dict.fromkeys("abc", array))["y"].shape == (3, 2)


def test_options_are_checked(bundle: Path) -> None:
    """Another header, an unknown mode, fewer than no threads, a variant and a digest of no
    bundle."""
    other = options()
    other.header_version = HEADER_VERSION - 1
    cases: list[tuple[Options, str]] = [
        (other, "another version of ingot.h"),
        (Options(HEADER_VERSION, 9), "unknown value of verify"),
        (options(threads=-1), "bad number of threads"),
        (options(variant="x86-64-v9"), "no variant 'x86-64-v9'"),
        (options(digest="xyz"), "bad digest"),
        (options(digest="0" * 64), "another bundle than the one asked for"),
    ]
    for chosen, what in cases:
        assert verdict_of_c(bundle, chosen).what == what
    assert verdict_of_c(bundle, options(variant="x86-64-v9")) == verdict_of_python(
        bundle, variant="x86-64-v9"
    )


def test_files_are_refused_in_the_same_words(tmp_path: Path, bundle: Path) -> None:
    """No file, a folder, a pipe, text, another program, a bundle of another processor."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_bytes(b"hello")
    (tmp_path / "program").write_bytes(b"\x7fELF" + bytes(100))
    write_bundle(tiny_contents(targets=("aarch64",)), tmp_path / "arm.ingot", tree_entry)
    for path in (tmp_path / "none", tmp_path, *sorted(tmp_path.iterdir())):
        verdict = verdict_of_python(path)
        assert verdict.kind
        assert verdict_of_c(path) == verdict


@pytest.mark.parametrize(("end", "mib"), [(WEIGHTS_AT + 4 * WIDTH, 1), (WEIGHTS_BYTES, 2)])
def test_damaged_weights_are_found(tmp_path: Path, end: int, mib: int) -> None:
    """By both digests, not without one; also behind the last whole MiB, in a file and in memory."""
    contents = tiny_contents()
    read = replace(contents.variants[0], weight_ranges=((WEIGHTS_AT, end - WEIGHTS_AT),))
    path = tmp_path / "m.ingot"
    write_bundle(replace(contents, variants=(read,)), path, tree_entry)
    with CBundle(path) as loaded, CBundle(path.read_bytes(), options("fast")) as other:
        assert (loaded.run({"x": X})["y"] == other.run({"x": X})["y"]).all()
    data = bytearray(path.read_bytes())
    data[end - 1 - WEIGHTS_SECTION_BYTES] ^= 1
    path.write_bytes(data)
    for mode in ("full", "fast", "code"):
        verdict = verdict_of_python(path, verify=mode)
        assert verdict_of_c(path, options(mode)) == verdict
        assert verdict_of_c(bytes(data), options(mode)).what == verdict.what
    assert verdict_of_c(path).what == f"weights are damaged in MiB {mib}"


@pytest.mark.parametrize("size_bytes", [0, 1 << 15, (1 << 20) + 64])
def test_weights_end_with_a_page(bundle: Path, size_bytes: int) -> None:
    """Another size of the weights is refused, alike."""
    parts = Parts(bundle.read_bytes())
    parts.weights_sizes_bytes[0] = size_bytes
    parts.weights = parts.weights[:size_bytes]
    verdict = verdict_of_python(parts.sealed())
    assert (verdict.kind, verdict.what) == ("FormatError", "wrong size of weights")
    assert verdict_of_c(parts.sealed()) == verdict


def test_input_may_not_move_under_an_output(bundle: Path) -> None:
    """A call that is prepared is looked at again when an input lies elsewhere."""
    with CBundle(bundle) as loaded:
        got, memory = np.empty_like(X), X.copy()
        loaded.set_output(0, got)
        for given in (X, memory):
            loaded.set_input(0, given)
            loaded.call()
        loaded.set_input(0, got)
        with pytest.raises(LoaderError, match="'y' and 'x' share memory"):
            loaded.call()
        loaded.set_input(0, memory)
        loaded.call()
        assert (got == tiny_reference(X)).all()


def test_bundle_behind_a_program_is_one(tmp_path: Path, bundle: Path) -> None:
    """Both loaders find it by the last bytes, of a file or of memory, and refuse a place that is
    wrong."""
    data, start = bundle.read_bytes(), 1 << 16
    for at, size, is_good in (
        (start, len(data), True),
        (start, 5, False),
        (start + 1, len(data), False),
        (1 << 63, 0, False),
    ):
        path = tmp_path / "program"
        path.write_bytes(
            b"\x7fELF".ljust(start, b"\0") + data + TRAILER.pack(at, size, TRAILER_MAGIC)
        )
        verdict = verdict_of_python(path)
        assert (verdict.kind == "") == is_good
        assert verdict_of_c(path) == verdict
        assert verdict_of_c(path.read_bytes()).kind == verdict.kind
        for given in (path, path.read_bytes()) if is_good else ():
            with CBundle(given) as loaded, ingot_runtime.load(given) as session:
                assert (loaded.run({"x": X})["y"] == session.run({"x": X})["y"]).all()


def test_file_that_changes_ends_the_call(tmp_path: Path, bundle: Path) -> None:
    """One that was written to, and one that was cut; a touched one is verified again."""
    path = tmp_path / "m.ingot"
    path.write_bytes(bundle.read_bytes())
    with CBundle(path) as loaded:
        assert loaded.run({"x": X})["y"].shape == X.shape
        os.chmod(path, 0o600)
        assert loaded.run({"x": X})["y"].shape == X.shape
        os.truncate(path, 1 << 16)
        with pytest.raises(
            LoaderError, match="ChangedError: the bundle changed while it was in use"
        ):
            loaded.run({"x": X})


def test_limit_of_memory(open_bundle: Path) -> None:
    """A call that needs more is refused before it runs; what it grows counts, too."""
    small = CBundle(open_bundle, options(max_bytes=100))
    with small, pytest.raises(LoaderError, match="LimitError: a call needs too much memory"):
        small.run(feed(100))
    with CBundle(open_bundle, options(max_bytes=20000)) as loaded:
        assert loaded.run(feed(3))["y"].shape == (3, 4)


def test_cancel_and_timeout_end_a_call(open_bundle: Path) -> None:
    """A loop of years ends by its timeout, and by another thread; the session can be used again."""
    endless = {**feed(), "count": np.array(1 << 40)}
    with CBundle(open_bundle) as loaded:
        loaded.cancel()  # nothing runs
        with pytest.raises(LoaderError, match="TimedOutError: the call took too long"):
            loaded.run(endless, seconds=0.05)
        ended = threading.Event()

        def cancel_until_it_ends() -> None:
            while not ended.wait(0.01):
                loaded.cancel()

        other = threading.Thread(target=cancel_until_it_ends)
        other.start()
        with pytest.raises(LoaderError, match="CancelledError: the call was cancelled"):
            loaded.run(endless)
        ended.set()
        other.join()
        assert loaded.run(feed())["y"].shape == (3, 4)


def test_profile_hook_hears_of_each_launch(bundle: Path) -> None:
    """Before and after each, in order."""
    heard: list[tuple[int, int]] = []

    def hear(_: object, launch: int, is_end: int) -> None:
        heard.append((launch, is_end))

    hook = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(hear)
    chosen = options()
    chosen.profile = ctypes.cast(hook, ctypes.c_void_p)
    with CBundle(bundle, chosen) as loaded:
        loaded.run({"x": X})
    assert heard == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_sessions_share_one_bundle(bundle: Path) -> None:
    """A second session of a bundle computes on its own, on another thread at the same time."""
    with CBundle(bundle) as first, CBundle(bundle, options(threads=2)) as second:
        results: list[np.ndarray] = []
        other = threading.Thread(target=lambda: results.append(second.run({"x": X})["y"]))
        other.start()
        assert (first.run({"x": X})["y"] == tiny_reference(X)).all()
        other.join()
        assert (results[0] == tiny_reference(X)).all()


def test_forked_child_can_call(bundle: Path) -> None:
    """Its threads are started anew."""
    with CBundle(bundle, options(threads=2)) as loaded:
        assert loaded.run({"x": X})["y"].shape == X.shape
        child = os.fork()
        if child == 0:
            good = (loaded.run({"x": X})["y"] == tiny_reference(X)).all()
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_no_tensor_of_that_number(bundle: Path) -> None:
    """Inputs and outputs are counted from 0; before a call is prepared there is nothing to see."""
    with CBundle(bundle) as loaded:
        assert not library().ingot_output(loaded.session, ctypes.c_uint32(0))
        with pytest.raises(LoaderError, match="no input 7"):
            loaded.set_input(7, X)
        loaded.run({"x": X})
        assert not library().ingot_output(loaded.session, ctypes.c_uint32(1))
        assert ctypes.c_uint32.in_dll(library(), "ingot_header_version").value == HEADER_VERSION
