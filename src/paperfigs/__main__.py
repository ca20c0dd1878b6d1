"""What `paperfigs` and ``python -m paperfigs`` run."""

import sys


def main() -> int:
    """Run the command with the arguments of this process; its exit status."""
    try:
        from paperfigs import cli
    except ModuleNotFoundError as error:
        what = f"paperfigs needs the package {error.name}"
        sys.exit(f"{what}: run `pip install '.[figures]'` in a clone")
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
