"""What `python -m recrawl` runs: the command `recrawl`."""

import sys

from recrawl.cli import main

sys.exit(main())
