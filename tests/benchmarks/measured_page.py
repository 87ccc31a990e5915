"""A section of ``docs/measurements.md`` is written by the benchmark that measures it.

In: the rows of a benchmark's table, its arguments. Out: a Markdown table below the command, the
processor and the date, in the place of what stood between the benchmark's markers. Not done here:
what is measured, the sentences outside the markers.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "measurements.md"
OPS_PAGE = ROOT / "docs" / "measured-ops.md"
_BETWEEN = r"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)"


def add_page_option(parser: argparse.ArgumentParser) -> None:
    """``--page``: the table goes to the page as well."""
    parser.add_argument(
        "--page", action="store_true", help="write the table to docs/measurements.md as well"
    )


def take_page_option() -> bool:
    """The same for a benchmark whose arguments are words: whether it was there. It is taken away."""
    there = "--page" in sys.argv
    sys.argv[:] = [word for word in sys.argv if word != "--page"]
    return there


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n".replace("| --- ", "|---") for cells in lines)


def with_section(
    text: str,
    benchmark: str,
    command: str,
    processor: str,
    date: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
) -> str:
    """Return the page with the benchmark's section made anew. ``ValueError`` where it has none."""
    pattern = re.compile(_BETWEEN.format(name=re.escape(benchmark)), re.DOTALL)
    section = f"`{command}` on {processor}, {date}:\n\n{table(header, rows)}"
    made, count = pattern.subn(lambda found: found[1] + section + found[2], text)
    if count != 1:
        raise ValueError(f"expected one section of {benchmark}, got {count}")
    return made


def write_section(header: Sequence[str], rows: Iterable[Sequence[str]], page: Path = PAGE) -> None:
    """Write the section of the benchmark that runs, as it was called, here and today."""
    benchmark = Path(sys.argv[0]).name
    made = with_section(
        page.read_text(encoding="utf-8"),
        benchmark,
        f"{_scheduling()}python {_called(benchmark)}{words_of(sys.argv[1:])}",
        processor_name(),
        dt.datetime.now(tz=dt.UTC).date().isoformat(),
        header,
        rows,
    )
    page.write_text(made, encoding="utf-8")


def words_of(arguments: Sequence[str]) -> str:
    """Return the arguments as they are on the page, each behind a blank, without ``--page``; a path
    of this machine is its option's name in capitals, or its last part."""
    pairs = zip(("", *arguments), arguments, strict=False)
    return "".join(f" {_shown(before, word)}" for before, word in pairs if word != "--page")


def _called(benchmark: str) -> str:
    """The script or the module, as Python was asked for it."""
    spec = sys.modules["__main__"].__spec__
    return f"-m {spec.name}" if spec else f"tests/benchmarks/{benchmark}"


def _scheduling() -> str:
    """What put this process on some processors alone, and before others."""
    words = ""
    if os.sched_getscheduler(0) == os.SCHED_RR:
        words += f"chrt -r {os.sched_getparam(0).sched_priority} "
    used = sorted(os.sched_getaffinity(0))
    if len(used) < (os.cpu_count() or 1):
        words += f"taskset -c {','.join(map(str, used))} "
    return words


def _shown(before: str, word: str) -> str:
    if os.sep not in word:
        return shlex.quote(word)
    if before.startswith("--"):
        return before[2:].upper().replace("-", "_")
    return shlex.quote(Path(word).name)


def processor_name() -> str:
    """What Linux calls the processor."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1].strip() if found else "an unknown processor"
