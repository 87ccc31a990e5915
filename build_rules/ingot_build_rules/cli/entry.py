"""The first lines that the command ``ingot`` runs: Ctrl-C is quiet before anything is imported.

In: nothing. Out: the command's exit code. Not done here: anything else (``main``). This module imports nothing of Ingot.
"""

import signal
import sys


def quiet_interrupts() -> None:
    """Let Ctrl-C end the process at once: nothing is written yet, and Python's handler prints a traceback out of an import."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command on the process's arguments; once it is imported, it tells of Ctrl-C itself."""
    quiet_interrupts()
    if sys.argv[1:2] == ["build"]:
        from ingot_build_rules.cli.no_op import is_no_op

        if is_no_op(sys.argv[2:]):
            return 0
    from ingot_build_rules.cli.main import main as run_command

    code = run_command()
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        # All is done and written: the exit code must say so while the interpreter goes down.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code
