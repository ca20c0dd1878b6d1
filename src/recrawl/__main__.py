"""What `recrawl` and `python -m recrawl` run: the command, as a process of its own."""

import os
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command with the arguments of this process; its exit status."""
    # Products of matrices are small here: more threads would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from recrawl import cli

        return cli.main()
    except KeyboardInterrupt:  # before signals are caught
        print("recrawl: ended by SIGINT", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
