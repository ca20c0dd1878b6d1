"""``python -m paperfigs`` is the command `paperfigs`."""

import sys

from paperfigs.cli import main

sys.exit(main())
