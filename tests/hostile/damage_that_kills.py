"""A stand-in for ``damage.py``'s child whose third case kills the process: the driver must notice.

In: the child's arguments. Out: its report. Not done here: damage.
"""

import json
import os
import signal
import sys


def main() -> None:
    """Report cases as done, up to the one that dies."""
    _, first, count, report = sys.argv[2:6]
    with open(report, "w", encoding="utf-8") as lines:
        for number in range(int(first), int(first) + int(count)):
            print(json.dumps([number, "none", ""]), file=lines, flush=True)
            if number == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            print(json.dumps([number, "none", "equal"]), file=lines, flush=True)


main()
