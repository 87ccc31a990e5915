"""A stand-in for the child of ``mutants.py`` whose third case kills the process: the driver must
notice.

In: the child's arguments. Out: its report. Not done here: mutants.
"""

import os
import signal
import sys


def main() -> None:
    """Report cases as done, up to the one that dies."""
    first, count, report = sys.argv[3:6]
    with open(report, "w", encoding="utf-8") as lines:
        for number in range(int(first), int(first) + int(count)):
            print(number, file=lines, flush=True)
            if number == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            print(number, "none", "none", "equal", sep="\t", file=lines, flush=True)


main()
