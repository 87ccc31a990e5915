"""Sessions: what goes in is checked by name, what comes out is right and the caller's own, at a few
microseconds."""

import gc
import sys
import time
import weakref
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference, tree_entry

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.loader.block import Block

Rows = npt.NDArray[np.float32]


def rows(count: int) -> Rows:
    return np.random.default_rng(count).standard_normal((count, WIDTH), np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles")
    write_bundle(tiny_contents(), path / "static.ingot", tree_entry)
    write_bundle(tiny_contents("batch"), path / "dynamic.ingot", tree_entry)
    return path


@pytest.mark.parametrize("executor", ["aot", "vm"])
@pytest.mark.parametrize("threads", [1, 2])
def test_dynamic_sizes(folder: Path, executor: str, threads: int) -> None:
    """Any size of a symbol gives the reference's bits: none, few, many, and back; the same for vm,
    aot and threads."""
    session = ingot_runtime.load(folder / "dynamic.ingot", threads=threads, executor=executor)
    for count in (3, 0, 1, 5000, 3, 2500, 5000):
        x = rows(count)
        y = session.run({"x": x})["y"]
        assert y.shape == (count, WIDTH)
        assert (y == tiny_reference(x)).all()


def test_many_shapes(folder: Path) -> None:
    """More shapes than a session remembers are right too, and outputs of earlier calls stay what
    they were."""
    session = ingot_runtime.load(folder / "dynamic.ingot")
    inputs = [rows(count) for count in range(40)]
    outputs = [session.run({"x": x})["y"] for x in inputs + inputs]
    for x, y in zip(inputs + inputs, outputs, strict=True):
        assert (y == tiny_reference(x)).all()


@pytest.mark.parametrize("executor", ["aot", "vm"])
def test_memory_goes_with_the_last_reference(folder: Path, executor: str) -> None:
    """A dropped session gives its workspace back at once: no cycle of references waits for the
    collector."""
    gc.disable()
    try:
        session = ingot_runtime.load(folder / "dynamic.ingot", executor=executor)
        session.run({"x": rows(5000)})
        block = session._context._memory.workspaces[0]  # pyright: ignore[reportPrivateUsage]
        assert isinstance(block, Block)
        workspace = weakref.ref(block.memory)
        del block
        assert workspace() is not None
        del session
        assert workspace() is None
    finally:
        gc.enable()


def test_specs(folder: Path) -> None:
    """Names, shapes with symbols, dtypes that numpy takes."""
    session = ingot_runtime.load(folder / "dynamic.ingot")
    (spec,) = session.inputs
    assert (spec.name, spec.shape, spec.dtype, str(spec)) == (
        "x",
        ("batch", WIDTH),
        "float32",
        "x: f32[batch, 8]",
    )
    assert [output.name for output in session.outputs] == ["y"]


def test_layouts_of_inputs(folder: Path) -> None:
    """Strided, misaligned, read-only and Fortran-ordered arrays are taken by value, small and
    large."""
    session = ingot_runtime.load(folder / "dynamic.ingot")
    for count in (4, 5000):
        x = rows(count)
        expected = tiny_reference(x)
        raw = np.zeros(x.nbytes + 1, np.uint8)
        misaligned = raw[1:].view(np.float32).reshape(x.shape)
        misaligned[...] = x
        wide = np.zeros((count, 2 * WIDTH), np.float32)
        wide[:, ::2] = x
        frozen = x.copy()
        frozen.flags.writeable = False
        for array in (misaligned, wide[:, ::2], frozen, np.asfortranarray(x), x[::-1][::-1]):
            assert (session.run({"x": array})["y"] == expected).all()


def test_special_values_pass_through(folder: Path) -> None:
    """NaN, infinities and denormals arrive and leave as such."""
    session = ingot_runtime.load(folder / "static.ingot")
    x = np.zeros((4, WIDTH), np.float32)
    x[0, :4] = (np.nan, np.inf, -np.inf, 1e-45)
    with np.errstate(invalid="ignore"):
        expected = tiny_reference(x)
    assert np.array_equal(session.run({"x": x})["y"], expected, equal_nan=True)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            {},
            "missing input 'x'\n  where: input 'x'\n  why: expected float32[4, 8], got nothing\n  do: give all inputs",
        ),
        (
            {"x": rows(4), "z": 1},
            "no input 'z'\n  where: input 'z'\n  why: the model's inputs are x\n  do: leave it out",
        ),
        (
            {"x": rows(4).astype(np.float64)},
            (
                "wrong dtype of input 'x'\n  where: input 'x'\n  why: expected float32[4, 8], got float64[4, 8]\n"
                "  do: convert it: x.astype('float32')"
            ),
        ),
        (
            {"x": rows(4).astype(">f4")},
            (
                "wrong dtype of input 'x'\n  where: input 'x'\n  why: expected float32[4, 8], got >f4[4, 8]\n"
                "  do: convert it: x.astype('float32')"
            ),
        ),
        (
            {"x": rows(3)},
            (
                "wrong shape of input 'x'\n  where: input 'x', axis 0\n  why: expected float32[4, 8], got float32[3, 8]\n"
                "  do: give size 4 there"
            ),
        ),
        (
            {"x": rows(4)[0]},
            (
                "wrong rank of input 'x'\n  where: input 'x'\n  why: expected float32[4, 8], got float32[8]\n"
                "  do: give 2 dimensions"
            ),
        ),
    ],
)
def test_wrong_inputs(folder: Path, inputs: dict[str, Rows], message: str) -> None:
    """Every wrong input is named with what is expected and what came; the session works
    afterwards."""
    session = ingot_runtime.load(folder / "static.ingot")
    for _ in range(2):
        with pytest.raises(ingot_runtime.InputError) as caught:
            session.run(inputs)
        assert str(caught.value) == message
        assert caught.value.exit_code == 1
        assert (session.run({"x": rows(4)})["y"] == tiny_reference(rows(4))).all()


def test_misspelled_input(tmp_path: Path) -> None:
    """A name that is nearly right gets a suggestion."""
    write_bundle(tiny_contents(names=("pixels", "logits")), tmp_path / "m.ingot", tree_entry)
    session = ingot_runtime.load(tmp_path / "m.ingot")
    with pytest.raises(ingot_runtime.InputError, match="did you mean 'pixels'"):
        session.run({"pixel": rows(4)})
    with pytest.raises(ingot_runtime.InputError, match="did you mean 'pixels'"):
        session.run({"PIXELS": rows(4)})
    with pytest.raises(ingot_runtime.InputError) as caught:
        session.run({"image": rows(4)})
    assert caught.value.why == "the model's inputs are pixels; only 'pixels' is missing"
    assert caught.value.do == "give it as 'pixels'"
    with pytest.raises(ingot_runtime.InputError, match="do: leave it out"):
        session.run({"pixels": rows(4), "Pixels": rows(4)})  # nothing is missing
    with pytest.raises(ingot_runtime.InputError, match="expected a dict of arrays"):
        session.run(rows(4))  # type: ignore[arg-type]  # the mistake


def test_outputs_before_inputs(folder: Path) -> None:
    """A call with the outputs first, as other runtimes have it, is told the order."""
    session = ingot_runtime.load(folder / "static.ingot")
    for outputs in (None, ["y"]):
        with pytest.raises(ingot_runtime.InputError) as caught:
            session.run(outputs, {"x": rows(4)})  # type: ignore[arg-type]  # the mistake
        assert caught.value.why == "expected seconds above 0, got a dict, as inputs are"
        assert "inputs first, and no list of outputs" in caught.value.do
    assert (session.run({"x": rows(4)})["y"] == tiny_reference(rows(4))).all()


def test_bind(folder: Path) -> None:
    """A bound call reads and writes the arrays it was given; what does not fit is refused."""
    session = ingot_runtime.load(folder / "static.ingot")
    bound = session.bind()
    bound.inputs["x"][...] = rows(4)
    bound.run()
    assert (bound.outputs["y"] == tiny_reference(rows(4))).all()
    again = session.bind(bound.inputs, bound.outputs)
    bound.inputs["x"][...] = rows(4) + 1
    again.run()
    assert (bound.outputs["y"] == tiny_reference(rows(4) + 1)).all()
    for outputs in (
        {"y": rows(3)},
        {"z": rows(4)},
        {"y": rows(4).astype(np.float64)},
        {"y": rows(8)[::2]},
    ):
        with pytest.raises(ingot_runtime.InputError):
            session.bind(bound.inputs, outputs)
    dynamic = ingot_runtime.load(folder / "dynamic.ingot")
    with pytest.raises(ingot_runtime.InputError, match="missing input"):
        dynamic.bind()


def test_closed_session(folder: Path) -> None:
    """A closed session refuses to run; closing is what leaving a with block does."""
    with ingot_runtime.load(folder / "static.ingot", threads=2) as session:
        session.run({"x": rows(4)})
    with pytest.raises(ingot_runtime.BusyError):
        session.run({"x": rows(4)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verify": "ful"}, "did you mean 'full'?"),
        ({"executor": "jit"}, "expected one of aot, vm, got 'jit'"),
        ({"threads": 0}, "at least 1"),
        ({"threads": 1.5}, "at least 1"),
        ({"variant": "x86-64-v1"}, "did you mean 'x86-64-v2'?"),
        ({"devices": {"gpu": "cuda:0"}}, "the bundle has host"),
    ],
)
def test_wrong_options(folder: Path, options: dict[str, object], message: str) -> None:
    """An option that is wrong is refused with the choices."""
    with pytest.raises(ingot_runtime.InputError) as caught:
        ingot_runtime.load(folder / "static.ingot", **options)  # type: ignore[arg-type]  # the mistakes
    assert message in str(caught.value)


def test_missing_device(folder: Path) -> None:
    """The host is no other device: refused by both names, exit code 5."""
    refused = "device 'host' cannot be 'cuda:0'"
    with pytest.raises(ingot_runtime.IncompatibleError, match=refused) as caught:
        ingot_runtime.load(folder / "static.ingot", devices={"host": "cuda:0"})
    assert caught.value.exit_code == 5


def test_trace_and_observe(folder: Path) -> None:
    """The vm tells each launch's ordinal, kernel and time, and shows its buffers."""
    session = ingot_runtime.load(folder / "static.ingot", executor="vm")
    seen: list[tuple[int, str, list[int]]] = []
    session.observe(
        lambda ordinal, kernel, _, buffers: seen.append(
            (ordinal, kernel, [len(b) for b in buffers])
        )
    )
    session.run({"x": rows(4)})
    assert seen == [(0, "tiny_scale", [128, 128, 32]), (1, "tiny_scale", [128, 128, 32])]
    assert [(ordinal, kernel) for ordinal, kernel, _ in session.trace()] == [
        (0, "tiny_scale"),
        (1, "tiny_scale"),
    ]
    one, two = session.steps()
    assert (one.launch, one.device, one.source, one.size_bytes) == (0, 0, -1, -1)
    assert one.started_seconds + one.seconds <= two.started_seconds
    native = ingot_runtime.load(folder / "static.ingot")
    for call in (native.trace, native.steps, lambda: native.observe(None)):
        with pytest.raises(ingot_runtime.InputError, match="native main is not stepped"):
            call()


def test_bytes_and_memory(folder: Path) -> None:
    """A bundle in memory runs as one on disk; sessions that are dropped give everything back."""
    data = (folder / "static.ingot").read_bytes()
    for bundle in (data, bytearray(data), memoryview(data)):
        assert (
            ingot_runtime.load(bundle).run({"x": rows(4)})["y"] == tiny_reference(rows(4))
        ).all()
    gc.collect()

    def maps() -> list[str]:
        """Code and weights; what malloc maps for threads is its own."""
        named = [
            line.split(maxsplit=5)[5:] for line in Path("/proc/self/maps").read_text().splitlines()
        ]
        return sorted(name for names in named for name in names if "ingot" in name)

    def tasks() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    before = maps(), len(list(Path("/proc/self/fd").iterdir()))
    threads = tasks()
    for _ in range(30):
        ingot_runtime.load(folder / "static.ingot", threads=2).run({"x": rows(4)})
    gc.collect()
    while tasks() > threads:  # a worker that was told to leave holds its code until it has left
        time.sleep(0.001)
    assert maps() == before[0]
    assert len(list(Path("/proc/self/fd").iterdir())) == before[1]


def test_no_page_is_writable_and_executable(folder: Path) -> None:
    """Loading adds no mapping that is both; the image's read-only data is not executable."""

    def modes() -> list[tuple[str, str]]:
        fields = [
            line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()
        ]
        return [(field[1], field[5] if len(field) > 5 else "") for field in fields]

    def images() -> Counter[str]:
        return Counter(mode for mode, path in modes() if "memfd:ingot" in path)

    gc.collect()  # sessions of other tests go now, or stay
    before = [mode for mode, _ in modes() if "wx" in mode]  # importing ctypes makes one
    others = images()
    session = ingot_runtime.load(folder / "static.ingot", threads=2)
    session.run({"x": rows(4)})
    assert images() - others == {"r--p": 1, "r-xp": 1}
    assert [mode for mode, _ in modes() if "wx" in mode] == before
    session.close()


def test_call_overhead(folder: Path) -> None:
    """A call of a trivial model goes through few functions (the benchmark states how long it takes;
    this catches a slip)."""
    session = ingot_runtime.load(folder / "static.ingot")
    feed = {"x": rows(4)}
    session.run(feed)
    calls: list[str] = []

    def note(_: object, event: str, __: object) -> None:
        calls.append(event)

    sys.setprofile(note)
    session.run(feed)
    sys.setprofile(None)
    assert 0 < calls.count("call") + calls.count("c_call") <= 20


def test_results_are_the_callers(folder: Path) -> None:
    """A large result that is held never changes; one that is dropped makes room for the next,
    without new memory."""
    session = ingot_runtime.load(folder / "dynamic.ingot")
    held = [session.run({"x": rows(5000) + number}) for number in range(5)]
    for number, result in enumerate(held):
        np.testing.assert_array_equal(result["y"], tiny_reference(rows(5000) + number))
    assert len({result["y"].ctypes.data for result in held}) == len(held)
    part = held.pop(0)["y"][3:7]  # a view keeps the whole
    kept = part.copy()
    del held
    addresses = {session.run({"x": rows(5000)})["y"].ctypes.data for _ in range(10)}
    assert len(addresses) <= 2
    np.testing.assert_array_equal(part, kept)


def test_inputs_lie_anywhere(folder: Path) -> None:
    """Large inputs that are aligned to their elements alone are read in place; others are copied
    first."""
    session = ingot_runtime.load(folder / "dynamic.ingot")
    x = rows(5000)
    raw = np.zeros(x.nbytes + 64, np.uint8)
    for shift in (0, 1, 2, 4, 12, 60):
        moved = raw[shift : shift + x.nbytes].view(np.float32).reshape(x.shape)
        moved[...] = x
        np.testing.assert_array_equal(session.run({"x": moved})["y"], tiny_reference(x))
