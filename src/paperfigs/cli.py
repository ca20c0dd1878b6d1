"""Build and verify the figures of five papers, judge claims, and download data."""

import argparse
import signal
import sys

import yaml

from paperfigs import build, project, robust, verdicts


def _build(ids, parameters, **options):
    values = {name: yaml.safe_load(value) for name, value in parameters}
    return build.figures(ids, parameters=values, **options)


def _list(ids):
    # `paperfigs list | head` ends without an error message.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for figure, notebook in build.select(ids).items():
        verdict = verdicts.summary(verdicts.assess(figure))
        print(f"{figure:22}{verdict:48} {project.title(notebook)}")


def _download(**options):
    from paperfigs import wikipedia

    trace = wikipedia.download(**options)
    print(f"{trace.title}: {trace.times.size} changes, {trace.change_rate:.4g} a day")


_IDS = {
    "ids": {"metavar": "ID", "nargs": "*", "help": "figure or paper; by default all"}
}
_MANY = _IDS | {
    "--jobs": {"type": int, "help": "notebooks at a time; by default one for each core"}
}
_FORCE = {"--force": {"action": "store_true", "help": "build what is up to date too"}}
_COMMANDS = {
    "build": (
        _build,
        "build the figures that are not up to date",
        _MANY
        | _FORCE
        | {
            "--profile": {
                "choices": build.PROFILES,
                "default": "paper",
                "help": "the papers' parameters, or the quick-look values",
            },
            "-p": {
                "dest": "parameters",
                "nargs": 2,
                "metavar": ("NAME", "VALUE"),
                "action": "append",
                "default": [],
                "help": "set a parameter; a list as '[1, 2]'",
            },
            "--output": {"metavar": "DIR", "help": "where figures go"},
        },
    ),
    "list": (_list, "list figures with their verdicts and titles", _IDS),
    "verify": (build.verify, "build at paper scale elsewhere, and compare", _MANY),
    "refresh": (build.refresh, "execute notebooks in place", _MANY),
    "robust": (robust.run, "run with other seeds and other readings", _MANY | _FORCE),
    "download": (
        _download,
        "download the history of a Wikipedia page",
        {
            "title": {"help": 'such as "Template talk:Did you know"'},
            "start": {"help": "date or time, ISO 8601, UTC"},
            "end": {"help": "the same"},
            "--contact": {"required": True, "help": "mail address or page of yours"},
        },
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of this process.

    Returns
    -------
    int
        The exit status: 0 success, 1 a figure failed or differs, 2 wrong
        arguments or data, 130 interrupted.
    """
    parser = argparse.ArgumentParser(prog="paperfigs", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (run, about, options) in _COMMANDS.items():
        command = commands.add_parser(name, help=about)
        command.set_defaults(run=run)
        for option, settings in options.items():
            command.add_argument(option, **settings)
    options = vars(parser.parse_args(arguments))
    run = options.pop("run")
    # SIGTERM acts as Ctrl-C: running notebooks end, and finished figures are kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return int(bool(run(**options)))  # the errors, if there are any
    except (RuntimeError, ValueError, OSError) as error:
        print(f"paperfigs: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
