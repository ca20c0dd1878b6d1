"""The command `recrawl`, which imports what a command needs when it runs."""

import argparse
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from paperlib.errors import ArgumentError
from recrawl import __version__, ending, units
from recrawl.plan.targets.crawlers import TARGETS

__all__ = ["main"]

_STATUSES = (
    "exit status: 0 done, 2 wrong arguments or data, 130 interrupted, 141 nobody "
    "reads the output, 143 ended by SIGTERM"
)
_FLAGGED = 5  # hosts that are printed
_LONGEST = 2000  # characters of a line that is printed


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
        141 nobody reads the output, 143 ended by SIGTERM.
    """
    signals, debug = [], False
    if arguments is None:  # of a process of its own
        ending.catch(signals)
    try:
        given = vars(_parser().parse_args(arguments))
        run, debug = _COMMANDS[given.pop("command")].run, given.pop("debug")
        with warnings.catch_warnings():
            warnings.showwarning = _complain
            run(**_with_source(given))
            sys.stdout.flush()
    except BrokenPipeError:  # as in `recrawl estimate ... | head -1`
        # Python flushes once more when it ends, and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        signals.append(signal.SIGINT)
    except Exception as error:
        if not signals:  # else libraries made it of that of a signal
            if debug:
                raise
            _complain(_message(error))
            return 2
    finally:
        if arguments is None:  # nothing is left to be ended
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if signals:
        _complain(f"ended by {signals[0].name}; outputs are whole or as they were")
        return 128 + signals[0]
    return 0


def _message(error):
    """Text of an error, with the option in place of the argument that it sets."""
    if isinstance(error, ArgumentError):
        return f"{_name(error.argument)} {error.rule}"
    if isinstance(error, ValueError | OSError | RuntimeError | ImportError):
        return error
    return (
        f"{type(error).__name__}, {error}; a file may be damaged, or this is a fault "
        "of recrawl: --debug shows where"
    )


def _complain(message, *_, **__):
    """Print an error or a warning in one line, without the place in the code."""
    _print(f"recrawl: {' '.join(str(message).split())}", file=sys.stderr)


def _print(*lines, file=None):
    """Print lines that cannot steer a terminal, whatever a file brings into them."""
    for line in lines:
        print(units.shown(line, _LONGEST), file=file)


# ---- options


def _typed(convert):
    """A type of argparse, which then shows the ValueError of `convert` as it is."""

    def value(text):
        try:
            return convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(error) from None

    return value


def _renamed(text):
    """Our name and theirs of a column."""
    ours, _, theirs = text.partition("=")
    if not (ours and theirs):
        raise ValueError(f"must be OURS=THEIRS, got {text!r}")
    return ours, theirs


def _option(about, type=None, metavar=None, **given):
    """What argparse is given for an option."""
    shown = {"type": type, "metavar": metavar}
    return {"help": about} | given | {k: v for k, v in shown.items() if v}


_RATE, _DAYS = _typed(units.per_day), _typed(units.days)
# By the argument of a function that each sets.
_OPTIONS = {
    "log": _option(
        "files and folders of one format: a table (url, time, changed, ...), or what a "
        "crawler stored",
        Path,
        nargs="+",
    ),
    "format": _option(
        "format of the log, such as nutch, warc or sitemap; a name that is none gets a "
        "list of all (default: recognised by the first bytes)",
        default="auto",
    ),
    "columns": _option(
        "name of a column in the table, such as time=fetched_at; can be repeated",
        _typed(_renamed),
        "OURS=THEIRS",
        action="append",
        default=[],
    ),
    "as_of": _option(
        "when sitemaps, feeds or logs of git were downloaded, such as "
        "2026-10-01T06:12Z (default: when the file was written); of other logs, when "
        "they ended (default: now). Rows that are later by a day are left out",
        _typed(units.in_utc),
        "TIME",
    ),
    "memory": _option(
        "memory that sorting may use (default: half of the machine's); the rest goes "
        "to disk, into the folder that TMPDIR names",
        metavar="SIZE",
        default="50%",
    ),
    "rates": _option("the file that `recrawl estimate` wrote", Path),
    "schedule": _option("the file that `recrawl schedule` wrote", Path),
    "output": _option(
        "the file to write: .parquet, or .csv for other programs; a report is .html, "
        "and an export what the crawler takes",
        Path,
        "FILE",
    ),
    "force": _option("write over an output that exists", action="store_true"),
    "state": _option(
        "a Parquet file that keeps what is learnt from one log to the next",
        Path,
        "FILE",
    ),
    "signals": _option(
        "a table (url, time) of pings or the like, which `Scheduler.from_rates` uses",
        Path,
        "FILE",
    ),
    "dask": _option(
        "address of a Dask scheduler, such as tcp://10.0.0.5:8786, whose workers share "
        "the work; they need a common file system",
        metavar="ADDRESS",
    ),
    "to": _option("write the file that this crawler takes", choices=TARGETS),
    "exported": _option(
        "dump of what the crawler stores, with --to frontier, changedetection or storm",
        Path,
        "DUMP",
    ),
    "until": _option("write only pages that are due by this time (ISO 8601, or now)"),
    "bandwidth": _option(
        f"crawls in a time, such as 1000/day; units: {units.NAMES}. A report takes "
        "the pace of the log without it",
        _RATE,
        "RATE",
    ),
    "per_host": _option(
        "crawls that each host allows, such as 10/hour; --limits has exceptions",
        _RATE,
        "RATE",
    ),
    "least_interval": _option(
        "least time between crawls of a page, such as 1h", _DAYS, "TIME"
    ),
    "greatest_interval": _option(
        "greatest time between crawls of a page, such as 30d", _DAYS, "TIME"
    ),
    "exceptions": _option(
        "a CSV file of exceptions: pattern (a host, or a URL with *), least_interval, "
        "greatest_interval, rate (of a host)",
        Path,
        "FILE",
    ),
    "pages": _option(
        "a list of URLs, one a line, that the crawler knows: those without a row in "
        "RATES are due at once, with the rate that a new page is expected to have",
        Path,
        "FILE",
    ),
    "importance": _option(
        "a table (url, importance), such as page views; pages that it does not name "
        "keep the importance in RATES",
        Path,
        "FILE",
    ),
    "objective": _option(
        "what the schedule optimises: mean freshness (default), mean age of the "
        "copies, or the harmonic cost of Kolobov et al. (2019)",
        choices=("freshness", "age", "harmonic"),
        default="freshness",
    ),
    "debug": _option("show where an error comes from", action="store_true"),
}
_PLACES = "log", "rates", "schedule"  # without a dash
_NAMES = {  # of options that are not called as their arguments
    "format": "--from",
    "columns": "--column",
    "until": "--due",
    "exceptions": "--limits",
}


def _name(argument):
    """What the argument of a function is called in the command line."""
    if argument not in _OPTIONS or argument in _PLACES:
        return argument
    return _NAMES.get(argument, f"--{argument.replace('_', '-')}")


class _Command(NamedTuple):
    """A command: its function, help, options, those that it needs, an example."""

    run: Callable
    about: str
    options: str
    required: tuple
    example: str


def _parser():
    """The parser of all arguments."""
    parser = argparse.ArgumentParser(
        prog="recrawl",
        description="Change rates and crawl schedules from your own crawl log.",
        epilog=_STATUSES,
    )
    parser.add_argument("--version", action="version", version=f"recrawl {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, each in _COMMANDS.items():
        about = f"for example: recrawl {name} {each.example} ({_STATUSES})"
        command = commands.add_parser(name, help=each.about, epilog=about)
        for argument in [*each.options.split(), "debug"]:
            given = dict(_OPTIONS[argument])
            if argument in _PLACES:
                given["metavar"] = argument.upper()
            else:
                given |= {"dest": argument, "required": argument in each.required}
            short = ["-o"] if argument == "output" else []
            command.add_argument(*short, _name(argument), **given)
    return parser


# ---- the commands


def _with_source(given):
    """The arguments of a command, those that name a log in one."""
    if "log" not in given:
        return given
    from recrawl import Source

    columns = dict(given.pop("columns"))
    how = {name: given.pop(name) for name in ("format", "as_of")}
    return given | {"log": Source(given["log"], columns=columns, **how)}


def _convert(log, output, **given):
    import recrawl

    what, counts = recrawl.convert(log, output, **given)
    file = shlex.quote(str(output))
    _print(
        f"{output}: {_rows(counts)}, read from {what}",
        f"next: recrawl estimate {file} -o rates.parquet",
    )


def _next(command, output, more):
    """A line with the command that goes on from an output, which must be Parquet."""
    if output.suffix.lower() == ".csv":
        return f"this is for other programs: recrawl {command} takes .parquet, no .csv"
    return f"next: recrawl {command} {shlex.quote(str(output))} {more}"


def _rows(counts):
    """How many rows were used, and how many were left out and why, in words."""
    used = ("rows", "repeated")
    left_out = [f"{n:,} {why}" for why, n in counts.items() if n and why not in used]
    more = f" (beside {', '.join(left_out)})" if left_out else ""
    return f"{units.counted(counts.get('rows', 0), 'row')}{more}"


def _estimate(log, output, **given):
    import recrawl

    found = recrawl.estimate(log, output, **given)
    pages = units.counted(found.n_pages, "page")
    _print(
        f"{output}: {_rows(found.counts)} of {pages}, read from {found.what}",
        f"rates by one prior for {'each host' if found.scales else 'all pages'}; "
        f"intervals {max(found.dispersion, 1) ** 0.5:.2g} times as wide as if changes "
        "were Poisson",
        _drifted(found.drift),
    )
    if found.known:
        known, n_pages = found.known
        pages = units.counted(n_pages, "page")
        _print(f"{known:,} of {pages} of this log were in the state")
    elif given["state"]:
        _print(f"{given['state']} is new: it begins with this log")
    statuses = {f"of {status}": n for status, n in found.failed.items()}
    counted = {"failed fetches by status": statuses, "pages": found.kinds}
    for what, counts in counted.items():
        if some := [f"{n:,} {kind}" for kind, n in counts.items() if n]:
            _print(f"{what}: {', '.join(some)}")
    if signals := found.signals:
        by = (f"{signals.get(s, 0):,} {s}" for s in ("page", "all", "none"))
        _print(
            f"{units.counted(signals['used'], 'signal')} used, precision "
            f"{signals['precision']:.2f}, recall {signals['recall']:.2f}; pages by "
            f"whose these are: {', '.join(by)}"
        )
    for bulk in found.bulk_days[:_FLAGGED]:
        _print(
            f"on {bulk.day} {bulk.share:.0%} of the pages changed at once, which "
            "raises the rates of all of them"
        )
    for host in found.suspects[:_FLAGGED]:
        pages = f"{units.counted(host.n_pages, 'page')} {host.what}"
        _print(f"flagged: {host.host or 'no host'}, {pages}: {host.cause}")
    if (more := len(found.suspects) - _FLAGGED) > 0:
        _print(f"{more:,} more flagged hosts: recrawl report")
    if given["dask"]:
        _print(
            "soft 404s, dates that servers make up and clocks that go back are not "
            "looked for with Dask"
        )
    pace = units.rounded(found.pace)
    if found.pace:
        _print(f"the log made {pace} fetches a day, first and failed ones too")
    rate = pace.replace(",", "") if found.pace else "CRAWLS"
    more = f"--bandwidth {rate}/day -o schedule.parquet"
    _print(
        "a page without a row in the log is not in the rates: --pages adds it",
        _next("schedule", output, more),
    )


def _drifted(factors):
    """What later parts of a log gave, in words."""
    if factors is None:
        return "no drift of the rates measured: this needs 400 bits or more"
    times = ", ".join(f"{factor:.2g}" for factor in factors)
    return (
        f"in later parts of the log pages changed {times} times as often as predicted"
    )


def _schedule(rates, output, bandwidth, **given):
    import recrawl

    names = "least_interval", "greatest_interval", "per_host", "exceptions"
    limits = recrawl.CrawlLimits(**{name: given.pop(name) for name in names})
    found = recrawl.schedule(rates, output, bandwidth, limits=limits, **given)
    _print(
        *_described(found, output, given),
        "A crawler that waits for each date in `due` leaves some 5% of its fetches "
        "unused. A crawler uses all of them if it always fetches next the page with "
        "the greatest (days since its last crawl) x crawl_rate.",
        _next("export", output, "--to CRAWLER -o FILE"),
    )


def _described(found, output, given):
    """Lines of what a schedule spends, its expected freshness, what limits cost."""
    yield f"{output}: {units.rounded(found.bandwidth)} crawls a day"
    if found.spent < 0.999 * found.bandwidth:  # more than rates differ by rounding
        why = "the limits allow no more" if found.prices else "no page gains by more"
        yield f"of these only {units.rounded(found.spent)}: {why}"
    if counts := found.importance:
        n = counts["unknown"]
        rows = f"; {units.counted(n, 'row')} without a page in the rates: "
        yield (
            f"importance: {units.counted(counts['named'], 'page')} from "
            f"{given['importance']}, {counts['others']:,} as in the rates"
            f"{rows + _first(counts['first'], n) if n else ''}"
        )
    if added := found.added:
        yield (
            f"{units.counted(added['new'], 'page')} of {given['pages']} added; "
            f"{added['known']:,} in the rates already, {added['repeated']:,} repeated"
        )
    days = found.n_due / found.bandwidth
    if days > 1:
        yield (
            f"due when the log ends: {found.n_due:,} pages, {units.rounded(days)} days "
            "of the bandwidth"
        )
    yield from _freshness(found)
    for kind, cost in found.prices.items():
        amount = f"{units.rounded(abs(cost))} of freshness"
        if cost < 0:
            yield f"the {kind} cost nothing: they gain {amount}, as rates are uncertain"
        else:
            yield f"price of the {kind}: {amount}"
    yield from _unknown(found)
    without = ", without limits of hosts" if "limits of hosts" in found.prices else ""
    rows = [["crawls a day", "in turn", "scheduled", "promised"]]
    for each in found.budgets:
        middle = each["promise"] and each["promise"][1]
        fresh = map(_decimals, [each["in turn"], each["scheduled"], middle])
        if each["scheduled"] is None:
            fresh = ["impossible"] * 3  # the greatest intervals need more crawls
        rows.append([units.rounded(each["bandwidth"]), *fresh])
    yield (
        f"expected freshness by bandwidth{without}: with the errors of the rates, and "
        "under `promised` with their drift too:"
    )
    yield from _table(rows)


def _freshness(found):
    """Lines of the expected freshness of a schedule, by what is assumed."""
    rows = [
        ("expected freshness", *found.compared),
        ("if the estimated rates were exact", *map(_decimals, found.compared.values())),
    ]
    if found.promise is None:
        rows.append(("of all pages", "", "", _decimals(found.freshness)))
        yield from _table(rows)
        yield (
            "nothing is promised: this needs the metadata of `recrawl estimate`, 400 "
            "bits or more in the log, and crawls at equal intervals"
        )
        return
    low, middle, high = map(_decimals, found.promise)
    turn = _decimals(found.promise_in_turn[1])
    rows.append(("promised, with their errors and drift", "", turn, middle))
    yield from _table(rows)
    yield f"range of the promise: {low} to {high}"
    yield f"how sure: {found.held}"
    yield (
        "the promise is for the time when each page has been crawled by the schedule: "
        "until then its copy is as old as the log left it"
    )


def _decimals(share):
    """A share with three decimals, or a word in place of None."""
    return "unknown" if share is None else f"{share:.3f}"


def _unknown(found):
    """Lines of how many pages are not known or not crawled, with some names."""
    for kind, what in [
        ("unfetched", "never fetched successfully: rates of the prior"),
        ("incomparable", "fetched, but with nothing to compare: rates of the prior"),
        ("unmeasured", "without two crawls: rates by ages or changes, or the prior"),
        ("gone", "without crawls, being gone: 404 or 410 when last fetched"),
        ("uncrawled", "without crawls, as others gain more by them"),
    ]:
        pages = found.pages[kind]
        if n := pages["pages"]:
            rate = ""
            if pages["crawls"]:
                rate = f" ({pages['crawls']:,.3g} crawls a day)"
            first = _first(pages["first"], n)
            yield f"{units.counted(n, 'page')} {what}{rate}: {first}"


def _first(names, n):
    """The first names of n, with an ellipsis if there are more."""
    return ", ".join(map(repr, names)) + (", ..." if n > len(names) else "")


def _export(schedule, output, **given):
    import recrawl

    said = recrawl.export(schedule, output, **given)
    _print(*f"{output}: {said}".split("\n"))


def _report(log, output, **given):
    import recrawl

    found = recrawl.report(log, output, **given).estimates
    pages = units.counted(found.n_pages, "page")
    pace = f"{units.rounded(found.pace)} fetches a day"
    _print(f"{output}: {_rows(found.counts)} of {pages}, {pace}")


def _table(rows):
    """Lines of columns, the first of which is aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = map(str.rjust, others, widths[1:])
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()


_LOG = "log format columns as_of memory"
_COMMANDS = {
    "convert": _Command(
        _convert,
        "write a log of any format as one table",
        f"{_LOG} output force",
        ("output",),
        "crawl.log -o log.parquet",
    ),
    "estimate": _Command(
        _estimate,
        "estimate change rates from a crawl log, with confidence intervals",
        f"{_LOG} output force state signals dask",
        ("output",),
        "today.csv.gz --state state.parquet -o rates.parquet --force",
    ),
    "schedule": _Command(
        _schedule,
        "compute crawl rates and due times for a bandwidth",
        "rates output force bandwidth per_host least_interval "
        "greatest_interval exceptions pages importance objective",
        ("output", "bandwidth"),
        "rates.parquet --bandwidth 1000/day --per-host 10/hour -o schedule.parquet",
    ),
    "export": _Command(
        _export,
        "write a schedule as the file that a crawler takes",
        "schedule output force to exported until",
        ("output", "to"),
        "schedule.parquet --to nutch -o seeds.txt",
    ),
    "report": _Command(
        _report,
        "write all of this as one page of HTML that needs no network",
        f"{_LOG} output force bandwidth",
        ("output",),
        "log.parquet -o report.html",
    ),
}
