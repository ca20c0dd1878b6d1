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

    chosen = argparse.ArgumentParser(add_help=False)
    chosen.add_argument("ids", nargs="*", metavar="ID", help="a figure (peva22/fig2) or a paper (peva22); all by default")
    chosen.add_argument("--jobs", type=_positive, metavar="N", help="notebooks at a time (default: number of cores)")

    figures = commands.add_parser("figures", parents=[chosen], help="build the figures that are not up to date")
    figures.add_argument("--profile", choices=build.PROFILES, default="paper", help="the papers' parameters, or a quick preview")
    figures.add_argument("--force", action="store_true", help="build also what is up to date")
    figures.add_argument("--output", type=Path, metavar="DIR", help="where figures go (default: figures/, or build/preview/)")
    figures.set_defaults(run=lambda a: build.figures(a.ids, profile=a.profile, jobs=a.jobs, force=a.force, output=a.output))

    verify = commands.add_parser("verify", parents=[chosen], help="rebuild at paper scale elsewhere and compare with figures/")
    verify.set_defaults(run=lambda a: build.verify(a.ids, jobs=a.jobs))

    refresh = commands.add_parser("refresh", parents=[chosen], help="execute the notebooks in place with their preview values")
    refresh.set_defaults(run=lambda a: build.refresh(a.ids, jobs=a.jobs))

    wikipedia = commands.add_parser("wikipedia", help="download the change times of a Wikipedia page")
    wikipedia.add_argument("title", metavar="TITLE", help='such as "Template talk:Did you know"')
    wikipedia.add_argument("start", metavar="START", help="date or time, ISO 8601, UTC")
    wikipedia.add_argument("end", metavar="END", help="a date means its last second")
    wikipedia.add_argument("--contact", help="mail address or web page of yours, for the User-Agent (or set PAPERLIB_CONTACT)")
    wikipedia.add_argument("--path", type=Path, help="the CSV to write (default: data/wikipedia.csv, which peva22/fig1 reads)")
    wikipedia.add_argument("--api", default="https://en.wikipedia.org/w/api.php", help="of another wiki")
    wikipedia.set_defaults(run=_wikipedia)
    return parser


def _wikipedia(options):
    from paperlib import traces

    path = options.path or traces.DATA / "wikipedia.csv"
    trace = traces.wikipedia(options.title, options.start, options.end, path=path, contact=options.contact, api=options.api)
    print(f"{path}: {trace.times.size} changes of {trace.title!r}, {trace.change_rate:.4g} a day")


def _positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return int(text)


def main(arguments=None):
    """Run the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return 1 if options.run(options) else 0
    except (build.BuildError, ValueError, OSError, RuntimeError) as error:
        print(f"paperlib: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
