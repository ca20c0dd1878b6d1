"""What `recrawl` and `python -m recrawl` run: the command, as a process of its own."""

import os
import sys

__all__ = ["main"]


class _WithoutPandas:
    """Finder of modules that says that there is no pandas.

    Nothing here needs it, but pyarrow imports it where it is installed, which is a
    sixth of the processor time of a schedule (measured).
    """

    @staticmethod
    def find_spec(name, path, target=None):
        if name == "pandas":
            raise ModuleNotFoundError("recrawl works without pandas", name=name)


def main() -> int:
    """Run the command with the arguments of this process; its exit status."""
    # Products of matrices are small here: more threads would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.meta_path.insert(0, _WithoutPandas)
    try:
        from recrawl import cli

        return cli.main()
    except KeyboardInterrupt:  # before signals are caught
        print("recrawl: ended by SIGINT", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
