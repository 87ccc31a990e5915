"""Numbers and lists in the pages that follow from the code say what the code says; ``--bless``
writes them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable

import onnx
import pytest
from tests.conformance import coverage
from tests.tidy import test_style
from tests.tidy.sizes import installed_mb, wheel_kb_max, with_dependencies
from tests.tidy.source import ROOT
from tests.unit.runtime.test_c_native import DYNAMIC_SIZE_BYTES_MAX, SIZE_BYTES_MAX

from ingot_build_rules.tools.text.stages import FROM_STAGES, STAGES
from ingot_compiler.frontend.model import check_functions
from ingot_compiler.frontend.ops import FILES
from ingot_compiler.ir import dims
from ingot_runtime.format import limits


def read(page: str) -> str:
    """Return a page in one line, so that a claim may stand on two."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def onnx_ops() -> set[str]:
    """Return the names of all ops of ONNX's own domain."""
    return {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""}


def node_cases() -> tuple[str, str]:
    """Return (passed, all) as docs/coverage.md has them, which a test of its own compares."""
    found = re.search(r"\| node \| (\d+) \| (\d+) \|", read("docs/coverage.md"))
    assert found
    return found[2], found[1]


def _project(page: str) -> dict[str, object]:
    return dict(tomllib.loads((ROOT / page).read_text(encoding="utf-8"))["project"])


# (page, what it says: the groups are claims) -> what is true
CLAIMS: dict[tuple[str, str], Callable[[], tuple[object, ...]]] = {
    ("README.md", r"(\d+) of ONNX's (\d+), and those"): lambda: (len(FILES), len(onnx_ops())),
    (
        "docs/comparison.md",
        r"\| ONNX op types \| (\d+) of (\d+); (\d+) of (\d+) node cases",
    ): lambda: (
        len(FILES),
        len(onnx_ops()),
        *node_cases(),
    ),
    ("README.md", r"on Linux with Python ([\d.]+) or newer"): lambda: (
        str(_project("pyproject.toml")["requires-python"]).removeprefix(">="),
    ),
    ("docs/loader.md", r"It needs Linux, Python ([\d.]+) or newer"): lambda: (
        str(_project("runtime/pyproject.toml")["requires-python"]).removeprefix(">="),
    ),
    ("docs/errors.md", r"more than ([\d,]+) nodes, (\d+) MiB or (\d+) levels"): lambda: (
        f"{check_functions.NODE_COUNT_MAX:,}",
        check_functions.SIZE_BYTES_MAX >> 20,
        check_functions.DEPTH_MAX,
    ),
    ("docs/errors.md", r"more than (\d+) different dynamic sizes"): lambda: (dims.TERM_COUNT_MAX,),
    (
        "docs/errors.md",
        r"([\d,]+) inputs, ([\d,]+) dynamic sizes, (\d+) dimensions, 2\^(\d+) elements, ([\d,]+) bytes in",
    ): lambda: (
        f"{limits.TENSOR_COUNT_MAX:,}",
        f"{limits.SYMBOL_COUNT_MAX:,}",
        limits.RANK_MAX,
        limits.ELEMENT_COUNT_MAX.bit_length() - 1,
        f"{limits.NAME_SIZE_BYTES_MAX:,}",
    ),
    ("docs/errors.md", r"expected at most (\d+) elements"): lambda: (limits.ELEMENT_COUNT_MAX,),
    ("docs/command-line.md", r"print a stage of the compilation instead: ([\w, ]+) \|"): lambda: (
        ", ".join(STAGES),
    ),
    ("docs/command-line.md", r"or written by hand: ([\w, ]+) \(see"): lambda: (
        ", ".join(FROM_STAGES),
    ),
    (
        "CONTRIBUTING.md",
        r"has at most (\d+) lines, a function at most (\d+), a line (\d+) characters.*fewer than (\d+) lines",
    ): lambda: (
        test_style.FILE_LINES_MAX,
        test_style.FUNCTION_LINES_MAX,
        test_style.COLUMNS_MAX,
        test_style.SHORT_FILE_LINES,
    ),
}


_STATIC, _DYNAMIC = SIZE_BYTES_MAX // 1000, DYNAMIC_SIZE_BYTES_MAX // 1000
CLAIMS.update(
    {
        ("docs/comparison.md", r"a wheel of at most (\d+) kB, Python, numpy"): lambda: (
            wheel_kb_max("runtime/ingot_runtime"),
        ),
        ("docs/install.md", r"\| a wheel of at most (\d+) kB \|"): lambda: (
            wheel_kb_max("runtime/ingot_runtime_devices"),
        ),
        (
            "docs/loader.md",
            r"wheel has at most (\d+) kB\..*second wheel of at most (\d+) kB",
        ): lambda: (
            wheel_kb_max("runtime/ingot_runtime"),
            wheel_kb_max("runtime/ingot_runtime_devices"),
        ),
        (
            "docs/comparison.md",
            r"loader of at most (\d+) kB, with devices a dynamic one of at most (\d+) kB",
        ): lambda: (
            _STATIC,
            _DYNAMIC,
        ),
        ("docs/without-python.md", r"loader has at most (\d+) kB\. It is compiled"): lambda: (
            _STATIC,
        ),
        ("docs/without-python.md", r"The loader has at most (\d+) kB then"): lambda: (_DYNAMIC,),
        ("docs/without-python.md", r"OpenCL and CUDA \| <= (\d+) kB; <= (\d+) kB"): lambda: (
            _STATIC,
            _DYNAMIC,
        ),
    }
)
# What installations of other dates and machines differ in: true within a fifth.
NEARLY: dict[tuple[str, str], Callable[[], tuple[float, ...]]] = {
    (
        "docs/install.md",
        r"\| (\d+) MB: (\d+) MB are `ziglang`, which brings [\w ]+; (\d+) MB are LLVM \|",
    ): lambda: (
        installed_mb(with_dependencies("ingot-compiler")),
        installed_mb(["ziglang"]),
        installed_mb(["llvmlite"]),
    ),
    ("docs/install.md", r"\| (\d+) MB: numpy \|"): lambda: (installed_mb(["numpy"]),),
}


def written(page: str, pattern: str, values: tuple[str, ...]) -> None:
    """Put values into the groups of a claim, wherever the page makes it; a blank of the pattern may
    be the end of a line."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    for found in reversed([*re.finditer(pattern.replace(" ", r"\s+"), text, re.DOTALL)]):
        for group in range(len(values), 0, -1):
            text = f"{text[: found.start(group)]}{values[group - 1]}{text[found.end(group) :]}"
    path.write_text(text, encoding="utf-8")


@pytest.mark.pages
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim[0]}: {claim[1][:40]}")
def test_a_claim_is_true(claim: tuple[str, str], bless: bool) -> None:
    """What the page says is what the code has; a page that no longer says it needs no claim."""
    page, pattern = claim
    expected = tuple(str(value) for value in CLAIMS[claim]())
    if bless:
        written(page, pattern, expected)
    found = re.findall(pattern, read(page))
    assert found, f"{page} does not say {pattern}"
    for said in found:
        assert (said if isinstance(said, tuple) else (said,)) == expected


@pytest.mark.pages
@pytest.mark.parametrize("claim", NEARLY, ids=lambda claim: f"{claim[0]}: {claim[1][:40]}")
def test_a_size_is_nearly_true(claim: tuple[str, str], bless: bool) -> None:
    """Within a fifth; ``--bless`` writes two digits."""
    page, pattern = claim
    measured = NEARLY[claim]()
    if bless:
        written(page, pattern, tuple(f"{float(f'{value:.2g}'):.0f}" for value in measured))
    (found,) = re.finditer(pattern, read(page))
    said = [float(value) for value in found.groups()]
    assert said == pytest.approx(list(measured), rel=0.2)


@pytest.mark.pages
def test_the_page_of_coverage_ends_with_the_ops_of_other_domains(bless: bool) -> None:
    """Its last section is made from the list of the domain."""
    path = ROOT / "docs" / "coverage.md"
    section = coverage.other_domains()
    page = path.read_text(encoding="utf-8")
    made = page[: page.index(section.partition("\n")[0])] + section + "\n"
    if bless:
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made
