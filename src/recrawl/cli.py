"""The command `recrawl`, which imports what a command needs when it runs."""

import argparse
import difflib
import importlib.util
import math
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from recrawl import __version__, units

__all__ = ["main"]

_STATUSES = (
    "exit status: 0 done, 2 wrong arguments or data, 130 interrupted, 141 nobody "
    "reads the output"
)
_COMPLETION = 'for completion in a shell: eval "$(recrawl --print-completion bash)"'
# By objective of a schedule: its mean cost, in words.
_LOSSES = {
    "freshness": "of freshness",
    "delay": "changes unseen a page",
    "age": "days of age",
    "harmonic": "of harmonic cost",
}
# `recrawl.FORMATS` and `recrawl.TARGETS`, which are slow to import.
_FORMATS = (
    *("nutch", "readseg", "storm", "frontier", "heritrix", "warc", "cdx", "cdxj"),
    *("wayback", "commoncrawl", "changedetection", "sitemap", "feed", "git"),
    *("csv", "jsonl"),
)
_TARGETS = (
    *("jsonl", "nutch", "storm", "frontier", "heritrix", "changedetection"),
    *("crontab", "urls"),
)
_FLAGGED = 5  # hosts that are printed
_LONGEST = 2000  # characters of a line of a message
_NO_READER = 141  # the status of a program that the signal SIGPIPE ends


@dataclass(frozen=True)
class _Command:
    """A command: its function, help text, arguments by `_option`, and examples."""

    run: Callable
    about: str
    arguments: tuple
    examples: list


_COMMANDS = {}  # by name


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of this process.

    Returns
    -------
    int
        The exit status: 0 done, 2 wrong arguments or data, 130 interrupted,
        141 nobody reads the output.
    """
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:  # argparse would print the usage of all commands
        options.parser.error(_unrecognized(unknown, options.command))
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            options.run(options)
            sys.stdout.flush()
            return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            return _NO_READER
        if options.debug:
            raise
        _complain(_message(error, options.command))
        return 2


def _nobody_reads():
    """Whether the program that reads the output, such as `head`, has ended.

    The failed write does not show it, for another pipe may have failed; one more
    line does.
    """
    try:
        print(flush=True)
    except BrokenPipeError:
        # Python flushes once more when it ends, and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def _show_warning(message, *_, **__):
    """Print a warning in one line, without the place in the code."""
    _complain(" ".join(str(message).split()))


def _complain(text):
    """Print lines of a message that are safe, whatever a file brings into them."""
    lines = (units.shown(line, _LONGEST) for line in text.split("\n"))
    print("recrawl:", "\n".join(lines), file=sys.stderr)


def _message(error, command):
    """Text of an error, with options in place of the arguments that they set.

    All errors of arguments in this package read "NAME must RULE, got VALUE". In
    such a text, but not in its value, names of arguments become those of options:
    "least_interval must be ..." becomes "--least-interval must be ...". For a package
    that is missing, the text names the extra that brings it.
    """
    if not isinstance(error, ValueError | OSError | RuntimeError | ImportError):
        return (
            f"{type(error).__name__}, {error}; a file may be damaged, or this is a "
            "fault of recrawl: --debug shows where"
        )
    if not isinstance(error, ModuleNotFoundError):
        options = _options(command) if isinstance(error, ValueError) else {}
        rule, got, given = str(error).partition(", got ")
        if not re.match(r"\w+ must ", rule):  # it is about a file or what is in it
            return str(error)
        # the first word, and names with an underscore, such as per_host, within
        named = r"^\w+|\b[a-z]+_[a-z]+\b"
        return re.sub(named, lambda m: options.get(m[0], m[0]), rule) + got + given
    package = error.name.partition(".")[0]
    extra = "dask" if package == "distributed" else "log"
    return (
        f"`recrawl {command}` needs the extra {extra!r}, without which {package} is "
        f"missing: pip install 'paperlib-crawl[{extra}]'"
    )


def _unrecognized(arguments, command):
    """Text of an error for arguments that a command does not have."""
    known = sorted(set(_options(command).values()))
    wrong = [each.partition("=")[0] for each in arguments if each.startswith("--")]
    close = [name for each in wrong for name in difflib.get_close_matches(each, known)]
    hint = f"; do you mean {' or '.join(close)}?" if close else ""
    return f"unrecognized arguments: {' '.join(arguments)}{hint}"


def _options(command):
    """Options of a command, by the arguments of functions that they set."""
    flags = [names[-1] for names, _ in _COMMANDS[command].arguments]
    options = {f[2:].replace("-", "_"): f for f in flags if f.startswith("--")}
    aliases = {"until": "due", "columns": "column"}
    options |= {ours: options[o] for ours, o in aliases.items() if o in options}
    return options


# ---- the parser


def _parser():
    """The parser of all arguments; `run` is the function of the command."""
    parser = argparse.ArgumentParser(
        prog="recrawl",
        description="Change rates and crawl schedules from your own crawl log.",
        epilog=_STATUSES,
    )
    parser.add_argument("--version", action="version", version=f"recrawl {__version__}")
    if importlib.util.find_spec("shtab"):
        parser.epilog += f"; {_COMPLETION}"
        parser.add_argument(
            "--print-completion",
            action=_PrintCompletion,
            choices=("bash", "zsh", "tcsh"),
            help="print a script for completion in a shell",
        )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, of in _COMMANDS.items():
        shown = "\n  recrawl ".join(["for example:", *of.examples])
        command = commands.add_parser(
            name,
            help=of.about,
            epilog=f"{shown}\n\n{_STATUSES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(run=of.run, parser=command)
        # As from Python 3.14 on: -5/day is taken for a value, and refused. Before,
        # argparse has no public way to do so.
        command._negative_number_matcher = re.compile(r"-\.?\d")
        for names, given in (*of.arguments, _DEBUG):
            command.add_argument(*names, **given)
    return parser


class _PrintCompletion(argparse.Action):
    """Print the script for a shell, with shtab, which is slow to import."""

    def __call__(self, parser, namespace, shell, option_string=None):
        import shtab

        print(shtab.complete(parser, shell))
        parser.exit()


# ---- types of arguments


def _argument_type(convert, rule=None, holds=lambda value: True):
    """Function from a text to its value, for argparse.

    It refuses texts that `convert` refuses, or of which `holds` is false. The
    message gives the rule, if there is one, or else the error of `convert`.
    """

    def value_of(text):
        try:
            value = convert(text)
            if holds(value):
                return value
            raise ValueError
        except ValueError as error:
            message = f"must {rule}, got {text!r}" if rule else error
            raise argparse.ArgumentTypeError(message) from None

    return value_of


_RATE = _argument_type(units.per_day)
_DURATION = _argument_type(units.days)
_POSITIVE = _argument_type(int, "be a positive integer", lambda n: n >= 1)
_SHARE = _argument_type(float, "be a number in [0, 1]", lambda x: 0 <= x <= 1)
_OPEN_SHARE = _argument_type(
    float, "be a number strictly between 0 and 1", lambda x: 0 < x < 1
)


def _path(rule, *suffixes):
    return _argument_type(Path, rule, lambda path: path.suffix in suffixes)


_PAGE_PATH = _path("end in .html", "", ".html", ".htm")
_TABLE_PATH = _path("end in .parquet or .csv", "", ".parquet", ".csv")


@_argument_type
def _limit(text):
    """A host, or None for all hosts, and its crawls a day."""
    host, equals, rate = text.rpartition("=")
    if equals and not host:
        raise ValueError(f"must name a host before the =, got {text!r}")
    return host or None, units.per_day(rate)


@_argument_type
def _renamed(text):
    """Our name and theirs of a column."""
    ours, _, theirs = text.partition("=")
    if not (ours and theirs):
        raise ValueError(f"must be OURS=THEIRS, got {text!r}")
    return ours, theirs


def _in_utc(text):
    """A time in ISO 8601, UTC if it names no zone."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


_TIME = _argument_type(_in_utc, "be a time such as 2026-10-01T06:12Z")


# ---- arguments of several commands


def _option(names, about, convert=None, **given):
    """Arguments of `add_argument` for one argument of a command.

    `names` is written as in a usage line: first the flags, or the one name of a
    positional argument, then how its values are shown, if that is not the default.
    Examples are "-o --output FILE", "-p NAME VALUE" and "rates RATES".
    """
    words = names.split()
    flags = [word for word in words if word.startswith("-")] or words[:1]
    metavar = words[len(flags) :]
    if metavar:
        given["metavar"] = metavar[0] if len(metavar) == 1 else tuple(metavar)
    if convert:
        given["type"] = convert
    return flags, given | {"help": about}


def _command(about, *arguments, examples):
    """Decorator that makes a command of a function, named like it without "_"."""

    def register(run):
        name = run.__name__.removeprefix("_")
        _COMMANDS[name] = _Command(run, about, arguments, examples)
        return run

    return register


def _given(options, *names):
    """Some of the options, by name."""
    return {name: getattr(options, name) for name in names}


_DEBUG = _option("--debug", "show where an error comes from", action="store_true")
# What reads a log: files, their format, their columns, and when they were made.
_LOG = (
    _option(
        "log LOG",
        "files and folders of one format: a table (url, time, changed, ...), or "
        "what a crawler stored",
        Path,
        nargs="+",
    ),
    _option(
        "--from FORMAT",
        "format of the log (default: recognised by its first bytes): "
        f"{', '.join(_FORMATS)}",
        dest="format",
        default="auto",
        choices=("auto", *_FORMATS),
    ),
    _option(
        "--column OURS=THEIRS",
        "name of a column in the table, such as time=fetched_at; can be repeated",
        _renamed,
        action="append",
    ),
    _option(
        "--as-of TIME",
        "when sitemaps, feeds or logs of git were downloaded (default: when the "
        "file was written)",
        _TIME,
    ),
    _option(
        "--memory SIZE",
        "memory that sorting may use (default: half of the machine's); the rest goes "
        "to disk",
        default="50%",
    ),
)
_TO = _option("--to", "write the file that this crawler takes", choices=_TARGETS)
_EXPORTED = _option(
    "--exported DUMP",
    "dump of what the crawler stores, with --to frontier, changedetection or storm",
    Path,
)
_DUE = _option(
    "--due UNTIL",
    "write only pages that are due by this time (ISO 8601, or now); with --to",
)
_TABLE = _option(
    "-o --output FILE",
    "the file to write, Parquet, or CSV for other programs",
    _TABLE_PATH,
    required=True,
)
_FORCE = _option("--force", "write over an output that exists", action="store_true")
# ---- the commands


def _source(options):
    """The log that the arguments of a command name."""
    from recrawl import Source

    columns = dict(options.column or ())
    return Source(options.log, columns=columns, **_given(options, "format", "as_of"))


@_command(
    "write a log of any format as one table",
    *_LOG,
    _TABLE,
    _FORCE,
    examples=["convert crawl.log -o log.parquet", "convert segments/ -o log.csv"],
)
def _convert(options):
    import recrawl

    given = _given(options, "force", "memory")
    what, counts = recrawl.convert(_source(options), options.output, **given)
    print(f"{options.output}: {_rows(counts)}, read from {what}")
    print(f"next: recrawl estimate {_quoted(options.output)} -o rates.parquet")


def _quoted(path):
    return shlex.quote(str(path))


def _rows(counts):
    """How many rows were used, and how many were left out and why, in words."""
    used = ("rows", "repeated")
    left_out = [f"{n:,} {why}" for why, n in counts.items() if n and why not in used]
    more = f" (beside {', '.join(left_out)})" if left_out else ""
    return f"{units.counted(counts.get('rows', 0), 'row')}{more}"


@_command(
    "estimate change rates from a crawl log, with confidence intervals",
    *_LOG,
    _TABLE,
    _FORCE,
    _option(
        "--state FILE",
        "a Parquet file that keeps what is learnt from one log to the next",
        Path,
    ),
    _option(
        "--signals FILE",
        "a table (url, time) of pings or the like, for schedules by thresholds",
        Path,
    ),
    _option(
        "--estimator",
        "estimator of change rates (default: the one that predicts best)",
        choices=("prior", "mle", "moment_matching", "naive"),
    ),
    _option(
        "--level",
        "coverage of the confidence intervals (default: 0.95)",
        _OPEN_SHARE,
        default=0.95,
    ),
    _option(
        "--dask ADDRESS",
        "address of a Dask scheduler, such as tcp://10.0.0.5:8786, whose workers "
        "share the work; they need a common file system",
    ),
    examples=[
        "estimate log.parquet -o rates.parquet",
        "estimate today.csv.gz --state state.parquet -o rates.parquet --force",
    ],
)
def _estimate(options):
    import recrawl

    names = ("state", "signals", "estimator", "level", "force", "memory")
    given = _given(options, *names, "dask")
    known = 0 if options.state is None else _n_pages(options.state)
    found = recrawl.estimate(_source(options), options.output, **given)
    pages = units.counted(found.n_pages, "page")
    print(f"{options.output}: {_rows(found.counts)} of {pages}, read from {found.what}")
    if options.state is not None:
        new = f"{found.n_pages - known:,} of {pages} new"
        state = f"added to this state, {new}" if known else "a new state"
        print(f"{options.state}: {state}")
    print(f"estimator {found.estimator} ({found.why})")
    calibrated = "none, for too few bits" if found.calibration is None else "done"
    print(
        f"dispersion {found.dispersion:.2f}, which is 1 if changes are Poisson; "
        f"calibration: {calibrated}"
    )
    for what, counts in {
        "failed fetches by status": {f"of {s}": n for s, n in found.failed.items()},
        "pages": found.kinds,
    }.items():
        if counts:
            print(f"{what}: {', '.join(f'{n:,} {kind}' for kind, n in counts.items())}")
    if signals := found.signals:
        by = (f"{signals.get(s, 0):,} {s}" for s in ("page", "host", "all", "none"))
        print(
            f"{units.counted(signals['used'], 'signal')} used, precision "
            f"{signals['precision']:.2f}, recall {signals['recall']:.2f}; pages by "
            f"whose these are: {', '.join(by)}"
        )
    for host in found.suspects[:_FLAGGED]:
        pages = f"{units.counted(host.n_pages, 'page')} {host.what}"
        print(f"flagged: {host.host or 'no host'}, {pages}: {host.cause}")
    if len(found.suspects) > _FLAGGED:
        print(f"{len(found.suspects) - _FLAGGED:,} more flagged hosts: recrawl report")
    if options.dask:
        print("soft 404s and dates that servers make up are not looked for with --dask")
    _print_next(options.output, found)


def _n_pages(state):
    """Pages of a state; 0 if no file, or another one, which `estimate` refuses."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(state).num_rows
    except (OSError, pa.ArrowInvalid):
        return 0


def _print_next(rates, found):
    """Print the pace of a log, and the command that goes on from its rates."""
    rate = f"{found.pace:.6g}/day" if found.pace else "CRAWLS/day"
    if found.pace:
        pace, of_all = map(units.rounded, (found.pace, found.pace_of_all))
        print(
            f"the log's pace is {pace} crawls a day without the first crawl of each "
            f"page, {of_all} with it"
        )
    if rates.suffix == ".csv":
        print("next: write the rates as .parquet, from which recrawl schedule goes on")
        return
    given = f"{_quoted(rates)} --bandwidth {rate}"
    print(f"next: recrawl schedule {given} -o schedule.parquet")


@_command(
    "compute crawl rates and due times for a bandwidth",
    _option("rates RATES", "the file that `recrawl estimate` wrote", Path),
    _option(
        "-o --output FILE",
        "the file to write: Parquet, one row a page, or what --to says",
        Path,
        required=True,
    ),
    _TO,
    _EXPORTED,
    _DUE,
    _FORCE,
    _option(
        "--bandwidth RATE",
        f"crawls in a time, such as 1000/day; units: {units.NAMES}",
        _RATE,
        required=True,
    ),
    _option(
        "--per-host [HOST=]RATE",
        "limit of crawls of each host, or of one; can be repeated",
        _limit,
        action="append",
    ),
    _option(
        "--least-interval TIME",
        f"least time between crawls of a page, such as 1h; units: {units.NAMES}",
        _DURATION,
    ),
    _option(
        "--greatest-interval TIME",
        "greatest time between crawls of a page, such as 30d",
        _DURATION,
    ),
    _option(
        "--unfetched-interval TIME",
        "least time between crawls of pages that were never fetched successfully, or "
        "have nothing to compare",
        _DURATION,
    ),
    _option(
        "--limits FILE",
        "a CSV file of exceptions: pattern (a host, or a URL with *), least_interval, "
        "greatest_interval, rate (of a host)",
        Path,
    ),
    _option(
        "--importance FILE",
        "a table (url, importance), such as page views; pages that it does not "
        "name keep the importance in RATES",
        Path,
    ),
    _option(
        "--cost COLUMN|FILE",
        "column of RATES with the cost of a crawl, or a table (url, cost); "
        "--bandwidth and --per-host are then costs in a time",
    ),
    _option(
        "--objective",
        "what the schedule optimises (default: freshness)",
        choices=tuple(_LOSSES),
        default="freshness",
    ),
    _option(
        "--hedge SHARE",
        "share of the bandwidth at equal rates, for changes that are not Poisson "
        "and rates that are not exact (default: 0.25; 0 is the optimum)",
        _SHARE,
    ),
    _option(
        "--policy",
        "when pages are crawled: at equal intervals (default), at random times, or "
        "by time and signals",
        choices=("interval", "poisson", "thresholds"),
        default="interval",
    ),
    examples=[
        "schedule rates.parquet --bandwidth 1000/day --per-host 10/hour "
        "-o schedule.parquet",
        "schedule rates.parquet --bandwidth 1000/day --least-interval 1h "
        "--greatest-interval 30d -o schedule.parquet",
        "schedule rates.parquet --bandwidth 1000/day --to nutch -o seeds.txt",
    ],
)
def _schedule(options):
    if options.to is None:
        if options.exported or options.due:
            raise ValueError("--exported and --due must be given with --to only")
        if options.output.suffix not in ("", ".parquet", ".csv"):
            raise ValueError(
                "without --to, --output must end in .parquet or .csv, got "
                f"{options.output}"
            )
        _write_schedule(options, options.output)
        return
    from recrawl.files import temporary_folder
    from recrawl.targets.exporting import check_export

    inputs = options.rates, options.limits, options.importance, options.cost
    check_export(inputs=inputs, **_of_export(options))
    with temporary_folder() as folder:
        schedule = folder / "schedule.parquet"
        _write_schedule(options, schedule)
        _write_export(options, schedule)


def _write_schedule(options, path):
    import recrawl

    names = ("policy", "objective", "limits", "importance", "cost", "hedge", "force")
    names += ("least_interval", "greatest_interval", "unfetched_interval")
    given = _given(options, *names) | {"per_host": _limits(options.per_host)}
    found = recrawl.schedule(options.rates, path, options.bandwidth, **given)
    _print_schedule(found, options)


def _print_schedule(found, options):
    """Print what a schedule spends, its expected freshness, and what limits cost."""
    unit = "crawls" if options.cost is None else "units of cost"
    print(f"{options.output}: {units.rounded(found.bandwidth)} {unit} a day")
    if found.spent < 0.999 * found.bandwidth:  # more than rates differ by rounding
        kinds = found.prices.keys() - {"hedge"}
        what = "hosts" if kinds == {"hosts"} else "limits"
        why = f"the {what} allow no more" if kinds else "no page gains by more"
        print(f"of these only {units.rounded(found.spent)}: {why}")
    for name, counts in (("importance", found.weights), ("cost", found.costs)):
        if counts:
            named = units.counted(counts["named"], "page")
            unknown = ""
            if n := counts["unknown"]:
                rows, first = units.counted(n, "row"), _first(counts["first"], n)
                unknown = f"; {rows} without a page in the rates: {first}"
            print(
                f"{name}: {named} from {getattr(options, name)}, {counts['others']:,} "
                f"as in the rates{unknown}"
            )
    _print_freshness(found)
    _print_prices(found, options)
    _print_unknown(found)
    without = " without limits of hosts" if "hosts" in found.prices else ""
    head = [f"{unit} a day", f"freshness if Poisson{without}"]
    columns = [found.worth[:, 1]]
    if found.worth_calibrated:
        head.append("calibrated")
        columns.append(found.worth_calibrated)
    rows = [
        (units.rounded(crawls), *(_decimals(each, "too few") for each in fresh))
        for crawls, *fresh in zip(found.worth[:, 0], *columns, strict=True)
    ]
    _table(head, rows)
    if options.output.suffix == ".csv" and options.to is None:
        print("next: write the schedule as .parquet, from which recrawl export goes on")


def _first(names, n):
    """The first names of n, with an ellipsis if there are more."""
    return ", ".join(map(repr, names)) + (", ..." if n > len(names) else "")


def _limits(given):
    """Limits of hosts: None, a rate for every host, or rates by host.

    The host None stands for all that are not named.
    """
    limits = dict(given or ())
    if len(limits) < len(given or ()):
        raise ValueError("--per-host must be given once for each host, or for the rest")
    return limits.get(None) if limits.keys() <= {None} else limits


def _print_freshness(found):
    """Print the expected freshness of a schedule, by what is assumed."""
    exact, compared = (
        _decimals(freshness, "unknown")
        for freshness in (found.freshness_if_exact, found.freshness_compared)
    )
    now = _decimals(found.freshness_now, "unknown")
    assumed = "if changes were Poisson and estimates exact"
    rows = [(assumed, now, exact)]
    if now != "unknown" and compared != exact:
        rows = [
            (f"{assumed}, pages with intervals", now, compared),
            (f"{assumed}, all fetched pages", "", exact),
        ]
    if found.freshness != found.freshness_if_exact:
        allowing = "if changes were Poisson, with an allowance for errors of estimates"
        rows.append((allowing, "", _decimals(found.freshness, "unknown")))
    if found.calibrated is not None:
        rows.append(
            ("calibrated on the log", "", _decimals(found.calibrated, "unknown"))
        )
    _table(("expected freshness", "now", "scheduled"), rows)
    if found.calibrated is None:
        print(f"not calibrated on the log: {found.not_calibrated}")
    if found.expected_crawls is not None:
        crawls = units.rounded(found.expected_crawls)
        print(f"expected crawls a day of thresholds: {crawls}")
    if found.objective != "freshness":
        print(f"{found.loss:.4g} {_LOSSES[found.objective]}, if changes were Poisson")


def _decimals(share, unknown):
    """A share with four decimals, or a word in place of NaN."""
    return unknown if math.isnan(share) else f"{share:.4f}"


def _print_prices(found, options):
    """Print the value of a crawl a day, and what limits cost."""
    unit = _LOSSES[found.objective]
    fewer = "the limits allow no fewer"
    if found.one_fewer is not None:
        fewer = f"one fewer costs {found.one_fewer:.2g}"
    what = "crawl" if options.cost is None else "unit of cost"
    print(f"value of one more {what} a day: {found.one_more:.2g} {unit}, {fewer}")
    for kind, price in found.prices.items():
        saves = price["cost"] < 0  # with the allowance for errors of estimates
        verb, share = "gain" if saves else "cost", f"{price['share']:.0%}"
        amount = f"{abs(price['cost']):.2g} {unit}"
        if kind == "hedge":
            why = ", as rates are uncertain" if saves else " if changes are Poisson"
            print(f"the hedge of {share} {verb}s {amount}{why}")
        elif kind == "hosts":
            print(
                f"the limits of hosts {verb} {amount}; {share} of hosts are at theirs"
            )
        elif options.limits is None and options.unfetched_interval is None:
            text = units.as_text(getattr(options, kind.replace(" ", "_")))
            print(f"the {kind} of {text} {verb}s {amount}; {share} of pages are at it")
        else:
            print(f"the {kind}s {verb} {amount}; {share} of pages are at theirs")


def _print_unknown(found):
    """Print how many pages are not known or not crawled, and some of their names."""
    for pages, what in [
        (found.unfetched, "never fetched successfully, without expected freshness"),
        (found.incomparable, "fetched, but with nothing to compare"),
        (found.unmeasured, "fetched, but without an interval"),
        (found.gone, "without crawls, being gone: 404 or 410 when last fetched"),
        (found.uncrawled, "without crawls, as others gain more by them"),
    ]:
        if pages["pages"]:
            rate = f" ({pages['crawls']:,.3g} crawls a day, by the prior)"
            rate = rate if pages["crawls"] else ""
            print(
                f"{units.counted(pages['pages'], 'page')} {what}{rate}: "
                f"{_first(pages['first'], pages['pages'])}"
            )
    if found.suspect["crawls"]:
        print(
            f"{found.suspect['crawls']:,.3g} of {units.rounded(found.spent)} crawls a "
            f"day go to flagged hosts: {', '.join(map(repr, found.suspect['first']))}"
        )


@_command(
    "write a schedule as the file that a crawler takes",
    _option(
        "schedule SCHEDULE", "the Parquet file that `recrawl schedule` wrote", Path
    ),
    (_TO[0], _TO[1] | {"required": True}),
    _option("-o --output FILE", "the file to write", Path, required=True),
    _EXPORTED,
    _DUE,
    _FORCE,
    examples=[
        "export schedule.parquet --to nutch -o seeds.txt",
        "export schedule.parquet --to heritrix --due now -o due.force",
    ],
)
def _export(options):
    _write_export(options, options.schedule)


def _write_export(options, schedule):
    import recrawl

    text = recrawl.export(schedule, **_of_export(options))
    print(f"{options.output}: {text}")


def _of_export(options):
    """Arguments of an export, beside the schedule."""
    return _given(options, "output", "to", "exported", "force") | {"until": options.due}


@_command(
    "compare the freshness of the log's crawls with that of other rules",
    *_LOG,
    examples=["compare log.parquet"],
)
def _compare(options):
    import recrawl

    found = recrawl.compare(_source(options), rng=1, memory=options.memory)
    days = f"in the log's {found.days:.3g} days"
    columns = {
        days: found.in_log,
        "in the long run": found.long_run,
        "calibrated on the log": found.calibrated,
    }
    columns = {head: fresh for head, fresh in columns.items() if fresh}
    rows = [
        (name, *(f"{c[name]:.4f}" if name in c else "" for c in columns.values()))
        for name in found.long_run
    ]
    _table(("freshness if changes were Poisson", *columns), rows)
    if not found.calibrated:
        print("not calibrated: the log has too few bits to measure it on")
    pages = units.counted(found.n_pages, "page")
    print(f"from {pages}, crawled twice or more and not gone")


@_command(
    "measure how well the first part of a log predicts the rest",
    *_LOG,
    _option(
        "--share",
        "share of the rows, the earliest ones, to learn from (default: 0.8)",
        _OPEN_SHARE,
        default=0.8,
    ),
    examples=["backtest log.parquet --share 0.7"],
)
def _backtest(options):
    import recrawl

    found = recrawl.backtest(_source(options), **_given(options, "share", "memory"))
    print(f"{found.n_bits:,} bits predicted")
    best = min(found.log_loss.values())
    rows = [
        (name, f"{loss:.4f}", f"{loss - best:.4f} ± {found.stderr[name]:.4f}")
        for name, loss in found.log_loss.items()
    ]
    _table(("estimator", "log loss", "behind the best"), rows)


@_command(
    "write all of this as one page of HTML that needs no network",
    *_LOG,
    _option("-o --output FILE", "the .html file to write", _PAGE_PATH, required=True),
    _FORCE,
    _option(
        "--bandwidth RATE",
        "the middle one of five budgets, such as 1000/day (default: the pace of "
        "the log)",
        _RATE,
    ),
    examples=["report log.parquet -o report.html"],
)
def _report(options):
    import recrawl

    given = _given(options, "bandwidth", "force", "memory")
    found = recrawl.report(_source(options), options.output, rng=1, **given)
    pages = units.counted(found.estimates.n_pages, "page")
    rows = f"{_rows(found.estimates.counts)} of {pages}"
    print(f"{options.output}: {rows}, {units.rounded(found.pace)} crawls a day")


# ---- output


def _table(head, rows):
    """Print columns, the first of which is aligned to the left."""
    rows = [head, *(tuple(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(cells).rstrip())
