"""The first lines that the command ``ingot`` runs: Ctrl-C is quiet before anything is imported.

In: nothing. Out: the command's exit code. Not done here: anything else (``main``). This module imports nothing of Ingot.
"""

import signal


def main() -> int:
    """Run the command on the process's arguments; Ctrl-C while it is still being imported ends the process at once."""
    # Nothing is written yet, and Python's own handler would print a traceback out of some import.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from ingot_build_rules.cli.main import main as run_command

    return run_command()
