"""One page of HTML: what a log holds, and what to do with it."""

from __future__ import annotations

import base64
import io
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import jinja2
import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from paperlib import checks
from recrawl import __version__, units
from recrawl.log import reading
from recrawl.log.database import pattern, sql
from recrawl.log.files import temporary_folder, write_atomic
from recrawl.log.formats.source import Source
from recrawl.log.output import check_output
from recrawl.plan.schedule import Schedule, schedule
from recrawl.rates.backtest import Backtest, backtest
from recrawl.rates.estimate import Estimates, estimate
from recrawl.types import PathLike

__all__ = ["Report", "report"]

_MOST = 100  # hosts in the table
_LEAST_CRAWLS = 20  # of a bin of the calibration that is drawn
_BLUE, _ORANGE, _GREY = "#0b62a4", "#e69f00", "#757575"  # differ in brightness too
_SIZE = (4.4, 2.9)  # inches; about 420 pixels wide, so that type is not scaled


@dataclass(frozen=True, eq=False)
class Report:
    """What a report was made of.

    Parameters
    ----------
    estimates : Estimates
        Of `estimate`.
    schedule : Schedule or None
        Of `schedule` at the pace or the bandwidth asked for; None if there is neither.
    backtest : Backtest or None
        Of `backtest`; None if it has nothing to predict.
    """

    estimates: Estimates
    schedule: Schedule | None
    backtest: Backtest | None


def report(
    path: PathLike | Sequence[PathLike] | Source,
    output: PathLike,
    *,
    bandwidth: float | None = None,
    force: bool = False,
    memory: str = "50%",
) -> Report:
    r"""Write what a log holds as one page of HTML that needs no network.

    The page has the results of `estimate`, `schedule` and `backtest`, with pictures
    and the commands to go on with. What these functions cannot do with a log, the page
    says.

    Parameters
    ----------
    path : path, sequence of path, or Source
        As in `estimate`; it is read once.
    output : path
        The file to write.
    bandwidth : float, optional
        Crawls a day of the schedule; by default the pace of the log.
    force : bool, default False
        Overwrite an output that exists.
    memory : str, default "50%"
        As in `estimate`.

    Returns
    -------
    Report
        The numbers on the page.

    Raises
    ------
    FileExistsError
        The output exists, and `force` is false.
    FileNotFoundError, ValueError, OSError
        As `estimate`.

    Warns
    -----
    BadRowsWarning
        Rows were left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log, output = Path(folder, "log.csv"), Path(folder, "report.html")
    ...     rows = [f"a,2026-01-{day:02d},{day % 2}" for day in range(1, 10)]
    ...     _ = log.write_text("\n".join(["url,time,changed", *rows]))
    ...     found = report(log, output)
    ...     output.read_text(encoding="utf-8").splitlines()[0]
    '<!DOCTYPE html>'
    >>> found.estimates.pace, found.schedule.spent
    (1.125, 1.125)
    """
    if bandwidth is not None:
        bandwidth = checks.number("bandwidth", bandwidth, above=True)
    source = Source.of(path)
    endings = "", ".html", ".htm"
    check_output(output, force, reading.inputs(source), endings=endings)
    why_not = {}
    with (
        reading.opened(source, memory=memory) as log,
        temporary_folder() as folder,
    ):
        rates = folder / "rates.parquet"
        estimates = estimate(log, rates)
        of_rates = {"rates": pattern(rates)}
        (totals,) = _rows(log.connection, sql("report_totals", "rates"), of_rates)
        bandwidth = bandwidth or estimates.pace
        plan = folder / "schedule.parquet"
        found = Report(
            estimates,
            _tried(why_not, "budgets", _scheduled, rates, plan, bandwidth),
            _tried(why_not, "calibration", backtest, log),
        )
        pages = []
        if found.schedule is not None:
            of_pages = of_rates | {
                "schedule": pattern(plan),
                "suspects": [each.host for each in estimates.suspects],
            }
            pages = _rows(log.connection, sql("report_pages", "plan"), of_pages)
    page = _rendered(
        version=__version__,
        source=str(source),
        files=len(source.files()[0]),
        found=estimates,
        totals=totals,
        plan=found.schedule,
        backtest=found.backtest,
        pages=pages,
        most=_MOST,
        pictures=_pictures(found),
        why_not=why_not,
        commands=_commands(source, bandwidth),
    )
    write_atomic(output, page.encode(), force)
    return found


def _rows(connection, query, parameters):
    """Rows of a query, each a dict by the name of the column."""
    cursor = connection.execute(query, parameters)
    names = [name for name, *_ in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _tried(why_not, name, function, *arguments):
    """Result of a function, or None, and why under a name."""
    try:
        return function(*arguments)
    except ValueError as error:
        why_not[name] = f"No {name}: {error}."
        return None


def _scheduled(rates, plan, bandwidth):
    """The `Schedule`."""
    if not bandwidth:
        raise ValueError("the log tells no pace of crawls: name a bandwidth")
    found = schedule(rates, plan, bandwidth)
    if found.freshness is None:
        raise ValueError("the log has no fetch that can be compared")
    return found


def _commands(source, bandwidth):
    """Command lines that go on from here, by name."""
    words = ["recrawl", "estimate", "-o", "rates.parquet", "--state", "state.parquet"]
    if source.format != "auto":
        words += ["--from", source.format]
    for ours, theirs in source.columns.items():
        words += ["--column", f"{ours}={theirs}"]
    if source.as_of is not None:
        words += ["--as-of", source.as_of.isoformat()]
    rate = units.rounded(bandwidth).replace(",", "") if bandwidth else "CRAWLS"
    return {
        "estimate": shlex.join([*words, "--", *map(str, source.path)]),
        "schedule": f"recrawl schedule rates.parquet --bandwidth {rate}/day "
        "-o schedule.parquet",
    }


def _rendered(**contents):
    """The page as text."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "shown": units.shown,
        "rounded": units.rounded,
        "counted": units.counted,
        "grouped": "{:,}".format,
        "per_cent": lambda share: f"{100 * share:.3g}%",
        "interval": lambda rate: units.as_text(1 / rate) if rate else "(never)",
    }
    template = (files(__package__) / "report.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(template).render(**contents)


# ---- pictures


def _pictures(found):
    """Pictures by name, each an address with its data and a text."""
    drawn = {
        "budgets": (_draw_budgets, found.schedule and found.schedule.budgets),
        "calibration": (_draw_calibration, found.backtest),
    }
    with style.context("recrawl.report"):
        return {name: _picture(*each) for name, each in drawn.items() if each[1]}


def _picture(draw, values):
    """Address of a picture with its data, and its text."""
    figure, image = Figure(figsize=_SIZE), io.BytesIO()
    text = draw(figure.subplots(), values)
    figure.savefig(image, format="svg", metadata={"Date": None}, transparent=True)
    data = base64.b64encode(image.getvalue()).decode()
    return {"address": f"data:image/svg+xml;base64,{data}", "text": text}


def _draw_budgets(ax, budgets):
    """Draw the freshness of schedules by their budget, and of crawling in turn."""
    crawls = [each["bandwidth"] for each in budgets]
    fresh = [each["scheduled"] for each in budgets]
    turn = [each["in turn"] for each in budgets]
    ax.plot(crawls, fresh, color=_BLUE, marker="o", label="scheduled")
    ax.plot(crawls, turn, "s--", color=_GREY, label="in turn")
    promises = [each["promise"] for each in budgets]
    if None not in promises:
        low, _, high = np.transpose(promises)
        ax.fill_between(crawls, low, high, color=_ORANGE, alpha=0.4, label="promised")
    ax.set(xscale="log", xlabel="fetches a day", ylabel="freshness")
    ticks = [units.rounded(each) for each in crawls]
    ax.set_xticks(crawls, ticks)
    ax.minorticks_off()
    ax.legend(loc="lower right")
    points = zip(ticks, fresh, turn, strict=True)
    return ", ".join(f"{f:.3f} at {n} (in turn {t:.3f})" for n, f, t in points) + "."


def _draw_calibration(ax, found):
    """Draw the share of changes against the probability that was predicted."""
    bins = found.calibration["prior"]
    crawls = bins[:, 2]
    p, share, n = bins[crawls >= _LEAST_CRAWLS].T
    ax.plot([0, 1], [0, 1], color="#b4b4b4", linewidth=1, linestyle="--")
    error = np.sqrt(share * (1 - share) / n)
    ax.errorbar(p, share, error, color=_BLUE, marker="o")
    ax.set(xlabel="predicted probability of a change", ylabel="share that had changed")
    means = np.nan_to_num(bins[:, :2])  # NaN in bins without crawls
    predicted, happened = crawls @ means / found.n_bits
    text = (
        f"Of {found.n_bits:,} crawls {happened:.1%} found a change, and "
        f"{predicted:.1%} were predicted."
    )
    if n.size:
        text += (
            f" Last point, of {n[-1]:,.0f} crawls: predicted {p[-1]:.0%}, "
            f"{share[-1]:.0%} had changed."
        )
    return text
