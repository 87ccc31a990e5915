"""``python -m ingot_runtime``: the commands of the device.

In: arguments. Out: an exit code. Not done here: the verbs (``command``).
"""

import sys

from .command import main

sys.exit(main(sys.argv[1:]))
