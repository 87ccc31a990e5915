"""A Python process that says "ready" and then gets Ctrl-C.

In: a program, its argument, how long it may run on before. Out: exit code, standard output behind
"ready", standard error. Not done here: judging.
"""

import os
import signal
import subprocess
import sys
import time


def run_interrupted(
    text: str, argument: str, settle_seconds: float = 0, limit_seconds: float | None = None
) -> tuple[int, str, str]:
    """Run `text`, send SIGINT `settle_seconds` after its first line, return how it ended."""
    with subprocess.Popen(
        [sys.executable, "-c", text, argument],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        time.sleep(settle_seconds)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=limit_seconds)
    return child.returncode, out, err
