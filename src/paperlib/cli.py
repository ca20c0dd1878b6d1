"""The `paperlib` command."""

import argparse
import math
import re
import sys
import warnings
from pathlib import Path

import shtab

from paperlib import __version__
from paperlib.repro import build

_STATUSES = "exit status: 0 done, 1 a figure failed or differs, 2 wrong arguments or data, 130 interrupted"
_EXAMPLES = {
    "figures": [
        "paperlib figures peva22/fig2 --profile preview",
        "paperlib figures --list",
    ],
    "verify": ["paperlib verify valuetools20"],
    "refresh": ["paperlib refresh peva22/fig2"],
    "wikipedia": [
        'paperlib wikipedia "Template talk:Did you know" 2020-04-01 2020-08-31 --contact you@example.org'
    ],
    "estimate": [
        "paperlib estimate log.parquet -o rates.parquet",
        "paperlib estimate today.csv.gz --state state.parquet -o rates.parquet --force",
    ],
    "schedule": [
        "paperlib schedule rates.parquet --bandwidth 1000/day --per-host 10/hour -o schedule.parquet"
    ],
    "compare": ["paperlib compare log.parquet -o rules.png"],
    "backtest": ["paperlib backtest log.parquet --share 0.7 -o calibration.png"],
}
_UNITS = {
    "second": 86_400,
    "minute": 1440,
    "hour": 24,
    "day": 1,
    "week": 1 / 7,
}  # to a day


def _parser():
    parser = argparse.ArgumentParser(
        prog="paperlib",
        description="Change rates and crawl schedules: for your own crawl log, and every figure of five papers.",
        epilog=_STATUSES
        + '; for completion in a shell: eval "$(paperlib --print-completion bash)"',
    )
    shtab.add_argument_to(parser)
    parser.add_argument(
        "--version", action="version", version=f"paperlib {__version__}"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    chosen = argparse.ArgumentParser(add_help=False)
    chosen.add_argument(
        "ids",
        nargs="*",
        metavar="ID",
        help="a figure (peva22/fig2) or a paper (peva22); all by default",
    )
    chosen.add_argument(
        "--jobs",
        type=_positive,
        metavar="N",
        help="notebooks at a time (default: number of cores)",
    )

    dask = argparse.ArgumentParser(add_help=False)
    dask.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="of a Dask scheduler, such as tcp://10.0.0.5:8786, whose workers do it; they share the file system",
    )

    figures = commands.add_parser(
        "figures",
        parents=[chosen, dask],
        help="build the figures that are not up to date",
    )
    figures.add_argument(
        "--profile",
        choices=build.PROFILES,
        default="paper",
        help="the papers' parameters, or a quick preview",
    )
    figures.add_argument(
        "--force", action="store_true", help="build also what is up to date"
    )
    figures.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where figures go (default: figures/, or build/preview/)",
    )
    figures.add_argument(
        "--list", action="store_true", help="build nothing, print what there is"
    )
    figures.set_defaults(
        run=lambda a: (
            _list(a.ids)
            if a.list
            else build.figures(
                a.ids,
                profile=a.profile,
                jobs=a.jobs,
                force=a.force,
                output=a.output,
                dask=a.dask,
            )
        )
    )

    verify = commands.add_parser(
        "verify",
        parents=[chosen],
        help="rebuild at paper scale elsewhere and compare with figures/",
    )
    verify.set_defaults(run=lambda a: build.verify(a.ids, jobs=a.jobs))

    refresh = commands.add_parser(
        "refresh",
        parents=[chosen],
        help="execute the notebooks in place with their preview values",
    )
    refresh.set_defaults(run=lambda a: build.refresh(a.ids, jobs=a.jobs))

    wikipedia = commands.add_parser(
        "wikipedia", help="download the change times of a Wikipedia page"
    )
    wikipedia.add_argument(
        "title", metavar="TITLE", help='such as "Template talk:Did you know"'
    )
    wikipedia.add_argument("start", metavar="START", help="date or time, ISO 8601, UTC")
    wikipedia.add_argument("end", metavar="END", help="a date means its last second")
    wikipedia.add_argument(
        "--contact",
        help="mail address or web page of yours, for the User-Agent (or set PAPERLIB_CONTACT)",
    )
    wikipedia.add_argument(
        "--path",
        type=Path,
        help="the CSV to write (default: data/wikipedia.csv, which peva22/fig1 reads)",
    )
    wikipedia.add_argument(
        "--api", default="https://en.wikipedia.org/w/api.php", help="of another wiki"
    )
    wikipedia.set_defaults(run=_wikipedia)

    log = argparse.ArgumentParser(add_help=False)
    log.add_argument(
        "log",
        type=Path,
        metavar="LOG",
        help="CSV (also .gz) or Parquet file, or a folder: url, time, changed, ...",
    )
    log.add_argument(
        "--memory",
        default="1GiB",
        metavar="SIZE",
        help="what sorting may use (default: 1GiB); the rest goes to disk",
    )
    output = argparse.ArgumentParser(add_help=False)
    output.add_argument(
        "--force", action="store_true", help="write over an output that exists"
    )
    output.add_argument(
        "-o",
        "--output",
        type=_parquet,
        required=True,
        metavar="FILE",
        help="the Parquet file to write, one row a page",
    )
    drawn = argparse.ArgumentParser(add_help=False)
    drawn.add_argument(
        "-o",
        "--output",
        type=_picture,
        metavar="FILE",
        help="a picture too: .png, .svg or .pdf",
    )

    estimate = commands.add_parser(
        "estimate",
        parents=[log, output, dask],
        help="change rates of the pages of a crawl log, with intervals",
    )
    estimate.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="a Parquet file to go on from, and to keep for the next log",
    )
    estimate.add_argument(
        "--estimator",
        choices=("prior", "mle", "moment_matching", "naive"),
        help="default: the one that predicts best",
    )
    estimate.add_argument(
        "--level",
        type=_share,
        default=0.95,
        help="of the confidence intervals (default: 0.95)",
    )
    estimate.set_defaults(run=_estimate)

    schedule = commands.add_parser(
        "schedule", parents=[output], help="crawl rates and due times for a bandwidth"
    )
    schedule._negative_number_matcher = re.compile(
        r"-\.?\d"
    )  # as of Python 3.14: so that -5/day is a value, and said to be a wrong one
    schedule.add_argument(
        "rates",
        type=Path,
        metavar="RATES",
        help="the file that `paperlib estimate` wrote",
    )
    schedule.add_argument(
        "--bandwidth",
        type=_rate,
        required=True,
        metavar="RATE",
        help=f"such as 1000/day; units: {', '.join(_UNITS)}",
    )
    schedule.add_argument(
        "--per-host",
        type=_limit,
        action="append",
        metavar="[HOST=]RATE",
        help="what every host allows, or this one (again for others)",
    )
    schedule.add_argument(
        "--policy", choices=("interval", "poisson", "thresholds"), default="interval",
        help="crawls at equal intervals (default), at random, or by time and signals",
    )  # fmt: skip
    schedule.set_defaults(run=_schedule)

    compare = commands.add_parser(
        "compare",
        parents=[log, drawn],
        help="freshness of what a log did, and of other rules",
    )
    compare.set_defaults(run=_compare)

    backtest = commands.add_parser(
        "backtest",
        parents=[log, drawn],
        help="how well the first part of a log foretells the rest",
    )
    backtest.add_argument(
        "--share",
        type=_share,
        default=0.8,
        help="of the rows, the first in time (default: 0.8)",
    )
    backtest.set_defaults(run=_backtest)
    for name, command in commands.choices.items():
        command.formatter_class = argparse.RawDescriptionHelpFormatter
        command.epilog = (
            "\n  ".join(["for example:", *_EXAMPLES[name]]) + f"\n\n{_STATUSES}"
        )
        command.add_argument(
            "--debug", action="store_true", help="show where an error comes from"
        )
    return parser


def _list(ids):
    rows = [tuple(map(str, row)) for row in build.listing(ids)]
    _table(("figure", "seconds", "hold", "differ", "other", "shows"), rows, left=(0, 5))


def _wikipedia(options):
    from paperlib.repro import traces

    path = options.path or traces.DOWNLOADS / "wikipedia.csv"
    trace = traces.wikipedia(
        options.title,
        options.start,
        options.end,
        path=path,
        contact=options.contact,
        api=options.api,
    )
    print(
        f"{path}: {trace.times.size} changes of {trace.title!r}, {trace.change_rate:.4g} a day"
    )


def _estimate(options):
    import pyarrow.parquet as pq

    from paperlib import crawl_log

    given = {
        name: getattr(options, name)
        for name in ("state", "estimator", "level", "force", "memory", "dask")
    }
    found = crawl_log.estimate(options.log, options.output, **given)
    print(f"{options.output}: {found.counts['rows']:,} rows of {found.n_pages:,} pages")
    print(f"estimator {found.estimator} ({found.why})")
    pages = pq.read_table(options.output, columns=["degenerate", "pattern", "gone"])
    kinds = {
        kind: n
        for column in pages.columns
        for kind, n in map(dict.values, column.value_counts().to_pylist())
    }
    counts = {
        "never changed": "never",
        "always changed": "always",
        "bursty": "bursty",
        "regular": "regular",
        "gone": True,
    }
    print(
        f"pages: {', '.join(f'{kinds.get(kind, 0):,} {name}' for name, kind in counts.items())}"
    )


def _schedule(options):
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from paperlib import crawl_log

    limits = dict(options.per_host or ())
    if None in limits and len(options.per_host) > 1:
        raise ValueError(
            "--per-host must be one rate for all hosts, or HOST=RATE for each of some, got both or several for all"
        )
    found = crawl_log.schedule(
        options.rates,
        options.output,
        options.bandwidth,
        policy=options.policy,
        per_host=limits.get(None, limits or None),
        force=options.force,
    )
    print(f"{options.output}: {found.bandwidth:,.6g} crawls a day")
    rates = (
        batch["crawl_rate"]
        for batch in pq.ParquetFile(options.output).iter_batches(columns=["crawl_rate"])
    )
    if (
        limits
        and (spent := sum(pc.sum(rate).as_py() for rate in rates))
        < 0.999 * found.bandwidth
    ):
        print(f"of these only {spent:,.6g}: the hosts allow no more")
    print(
        f"freshness: {found.freshness_now:.4f} now, {found.freshness:.4f} with this schedule"
    )
    print(f"one more crawl a day adds {found.multiplier:.2g}")
    _table(
        (
            "crawls a day",
            "freshness"
            if options.per_host is None
            else "freshness without limits of hosts",
        ),
        [(f"{bandwidth:,.6g}", f"{fresh:.4f}") for bandwidth, fresh in found.worth],
    )


def _compare(options):
    from paperlib import crawl_log

    found = crawl_log.compare(options.log, rng=1, memory=options.memory)
    _table(
        ("rule", "freshness"), [(name, f"{fresh:.4f}") for name, fresh in found.items()]
    )
    _draw("bars", found, options.output)


def _backtest(options):
    from paperlib import crawl_log

    found = crawl_log.backtest(options.log, share=options.share, memory=options.memory)
    print(f"{found.n_bits:,} bits foretold")
    rows = [
        (
            name,
            f"{loss:.4f}",
            f"{loss - min(found.log_loss.values()):.4f} ± {found.stderr[name]:.4f}",
        )
        for name, loss in found.log_loss.items()
    ]
    _table(("estimator", "log loss", "behind the best"), rows)
    _draw("calibration", found.calibration, options.output)


def _table(head, rows, left=(0,)):
    """Print columns of text, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        print(
            "  ".join(
                f"{cell:{'<' if k in left else '>'}{widths[k]}}"
                for k, cell in enumerate(row)
            ).rstrip()
        )


def _draw(kind, values, path):
    if path is None:
        return
    import io

    import matplotlib as mpl

    mpl.use("Agg")  # there may be no screen
    import matplotlib.pyplot as plt

    from paperlib.files import write_atomic
    from paperlib.repro import plotting

    plotting.use_style()
    figure, ax = plt.subplots(figsize=(5, 3.5))
    getattr(plotting, kind)(ax, values)
    image = io.BytesIO()
    figure.savefig(image, format=path.suffix[1:])
    plt.close(figure)
    write_atomic(path, image.getvalue())
    print(path)


def _parquet(text):
    if Path(text).suffix not in ("", ".parquet"):
        raise argparse.ArgumentTypeError(f"must end in .parquet, got {text!r}")
    return Path(text)


def _picture(text):
    if Path(text).suffix not in (".png", ".svg", ".pdf"):
        raise argparse.ArgumentTypeError(
            f"must end in .png, .svg or .pdf, got {text!r}"
        )
    return Path(text)


def _rate(text):
    """Crawls a day."""
    number, _, unit = text.partition("/")
    try:
        value = float(number) * _UNITS[unit.strip()]
    except (ValueError, KeyError):
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(
            f"must be a positive number a unit ({', '.join(_UNITS)}), such as 10/hour, got {text!r}"
        )
    return value


def _limit(text):
    """Host, or None for all of them, and crawls a day."""
    host, equals, rate = text.rpartition("=")
    if equals and not host:
        raise argparse.ArgumentTypeError(f"must name a host before the =, got {text!r}")
    return host or None, _rate(rate)


def _share(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"must be a number between 0 and 1, got {text!r}"
        )
    return value


def _positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return int(text)


def main(arguments=None):
    """Run the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: print(
                f"paperlib: {' '.join(str(message).split())}", file=sys.stderr
            )
            return 1 if options.run(options) else 0
    except (build.BuildError, ValueError, OSError, RuntimeError, ImportError) as error:
        if options.debug:
            raise
        print(f"paperlib: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
