"""The `paperlib` command."""

import argparse
import sys
from pathlib import Path

from paperlib import __version__, build

# exit statuses: 0 done; 1 a figure failed or differs; 2 wrong arguments or data; 130 interrupted


def _parser():
    parser = argparse.ArgumentParser(prog="paperlib", description="Rebuild the figures of five papers on web-page change rates.")
    parser.add_argument("--version", action="version", version=f"paperlib {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    figures = commands.add_parser("figures", help="build the figures that are not up to date")
    figures.add_argument("ids", nargs="*", metavar="ID", help="a figure (peva22/fig2) or a paper (peva22); all by default")
    figures.add_argument("--profile", choices=build.PROFILES, default="paper", help="the papers' parameters, or a quick preview")
    figures.add_argument("--jobs", type=_positive, metavar="N", help="notebooks at a time (default: number of cores)")
    figures.add_argument("--force", action="store_true", help="build also what is up to date")
    figures.add_argument("--output", type=Path, metavar="DIR", help="where figures go (default: figures/, or build/preview/)")
    figures.set_defaults(run=lambda a: build.figures(a.ids, profile=a.profile, jobs=a.jobs, force=a.force, output=a.output))

    verify = commands.add_parser("verify", help="rebuild at paper scale elsewhere and compare with figures/")
    verify.add_argument("ids", nargs="*", metavar="ID")
    verify.add_argument("--jobs", type=_positive, metavar="N")
    verify.set_defaults(run=lambda a: build.verify(a.ids, jobs=a.jobs))

    refresh = commands.add_parser("refresh", help="execute the notebooks in place with their preview values")
    refresh.add_argument("ids", nargs="*", metavar="ID")
    refresh.set_defaults(run=lambda a: build.refresh(a.ids))
    return parser


def _positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return int(text)


def main(arguments=None):
    """Run the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return 1 if options.run(options) else 0
    except (build.BuildError, ValueError, OSError) as error:
        print(f"paperlib: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
