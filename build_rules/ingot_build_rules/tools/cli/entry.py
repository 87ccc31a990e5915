"""The first lines that the command ``ingot`` runs: Ctrl-C is quiet before anything is imported.

In: nothing. Out: the process's exit code. Not done here: anything else (``main``). This module
imports nothing of Ingot.
"""

import os
import signal
import sys

TYPE_CHECKING = False  # `typing` costs milliseconds
if TYPE_CHECKING:
    from typing import NoReturn


def quiet_interrupts() -> None:
    """Let Ctrl-C end the process at once: nothing is written yet, and Python's handler prints a
    traceback out of an import."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> "NoReturn":
    """Run the command on the process's arguments, and end the process."""
    code = _run()
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except BrokenPipeError:  # the reader has seen enough
            pass
        except OSError:
            code = code or 2
    # All is done and written. To free every value first takes longer than many a build; and Ctrl-C
    # comes too late now.
    os._exit(code)


def _run() -> int:
    """Return the exit code; once the command is imported, it tells of Ctrl-C itself."""
    quiet_interrupts()
    # Streams that were closed before the command began are none.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    # numpy's threads would spin beside the compiler's processes; nothing that a build computes with
    # numpy is large.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.argv[1:2] == ["build"]:
        from ingot_build_rules.tools.cli.building.no_op import is_no_op

        if is_no_op(sys.argv[2:]):
            return 0
    if sys.argv[1:2] == ["completion"] and sys.argv[3:4] == ["--words"]:
        from ingot_build_rules.tools.cli.shell.candidates import print_candidates

        return print_candidates(sys.argv[2:])
    from ingot_build_rules.tools.cli.main import main as run_command

    return run_command()
