"""What `python -m paperlib` runs: the command `paperlib`."""

import sys

from paperlib.cli import main

sys.exit(main())
