"""What a child process of a test needs: folders to import from, and a way to be interrupted."""

import os
from pathlib import Path

import penchant

FOLDERS = [str(Path(__file__).parent), str(Path(penchant.__file__).parents[1])]
PATH = os.pathsep.join(FOLDERS)
# a suite started in the background ignores Ctrl-C, and so would the child; to mend it before the
# child starts would take a fork, which JAX's threads forbid
HEED_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
