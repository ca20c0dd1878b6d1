"""One page of HTML that tells what a log holds, and what to do with it."""

from __future__ import annotations

import base64
import hashlib
import io
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from recrawl import __version__, checks, reading
from recrawl.backtesting import Backtest, backtest
from recrawl.comparing import compare
from recrawl.database import pattern, quoted, sql
from recrawl.estimating import Estimates, estimate
from recrawl.files import replacing, temporary_folder
from recrawl.formats.source import Source
from recrawl.output import check_output
from recrawl.scheduling import schedule
from recrawl.tally import FAILED, USED
from recrawl.types import PathLike, Seed

__all__ = ["Report", "report"]

_MOST = 100  # rows of a table
_LONGEST = 160  # characters of a URL or a name that are shown
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # budgets, of the pace of the log
_SHARE = 0.8  # of the rows: what `backtest` estimates on
_LEAST_PAGES = 3  # of a host: a flag of half of its pages, if so many, is of the host
_LEAST_CRAWLS = 20  # of a bin of the calibration that is drawn

# Colours that differ in grey too, and one that the page inverts in dark mode.
_BLUE, _ORANGE, _GREY, _INK = "#0b62a4", "#e69f00", "#b4b4b4", "#222222"
_SIZE = (4.4, 2.9)  # inches; about 420 pixels wide, so that type is not scaled
# Changes a day that people have words for.
_PERIODS = {
    1e-3: "3 years",
    1 / 365: "a year",
    1 / 30: "a month",
    1 / 7: "a week",
    1.0: "a day",
    24.0: "an hour",
    1440.0: "a minute",
}


@dataclass(frozen=True, eq=False)
class Report:
    """What a report was made of.

    Parameters
    ----------
    estimates : Estimates
        Of `estimate`.
    pace : float
        Crawls a day that the log made: its intervals between crawls by its
        length; 0 if it does not tell, as a dump of states.
    schedules : list of Schedule
        At a quarter, half, once, twice and four times the pace or the
        bandwidth asked for; empty if there is neither.
    rules : Comparison or None
        Of `compare`; None if it has nothing to compare.
    backtest : Backtest or None
        Of `backtest`; None if it has nothing to predict.

    Examples
    --------
    >>> counted = Estimates({"rows": 2}, 1, "mle", "asked for", 0.5, 2.0)
    >>> Report(counted, 3.0, [], None, None).pace
    3.0
    """

    estimates: Estimates
    pace: float
    schedules: list
    rules: object
    backtest: Backtest | None


def report(
    path: PathLike | Sequence[PathLike] | Source,
    output: PathLike,
    *,
    bandwidth: float | None = None,
    rng: Seed = None,
    force: bool = False,
    memory: str = "50%",
) -> Report:
    r"""Write what a log tells as one page of HTML that needs no network.

    The page has the results of `estimate`, `schedule` at five budgets,
    `compare` and `backtest`, with pictures, tables, and the commands to go on
    with. What these functions cannot do with a log, the page says.

    Parameters
    ----------
    path : path, sequence of path, or Source
        As in `estimate`; it is read once.
    output : path
        The file to write.
    bandwidth : float, optional
        Crawls a day of the middle budget; by default the pace of the log.
    rng : None, int, SeedSequence or Generator, optional
        As in `compare`.
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
    ImportError
        The extra "report" is not installed.
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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log, output = Path(folder, "log.csv"), Path(folder, "report.html")
    ...     rows = [f"a,2026-01-{day:02d},{day % 2}" for day in range(1, 10)]
    ...     _ = log.write_text("\n".join(["url,time,changed", *rows]))
    ...     found = report(log, output, rng=1)
    ...     output.read_text(encoding="utf-8").splitlines()[0]
    '<!DOCTYPE html>'
    >>> found.pace, len(found.schedules)
    (1.0, 5)
    """
    _check_extra()
    if bandwidth is not None:
        bandwidth = checks.scalar(checks.positive, "bandwidth", bandwidth)
    source = Source.of(path)
    check_output(output, force, reading.inputs(source))
    with (
        reading.opened(source, memory=memory) as log,
        temporary_folder() as folder,
        replacing(output) as temporary,
    ):
        rates = folder / "rates.parquet"
        estimates = estimate(log, rates)
        view = sql("report_view").replace("$rates", quoted(pattern(rates)))
        log.connection.execute(view)
        (totals,) = _rows(log.connection, sql("report_totals"))
        pace = estimates.pace
        why_not = {}
        schedules = _tried(why_not, "schedules", _schedules, rates, bandwidth or pace)
        rules = _tried(why_not, "rules", compare, log, rng=rng)
        backtested = _tried(why_not, "backtest", backtest, log, share=_SHARE)
        found = Report(estimates, pace, schedules or [], rules, backtested)
        suspects = estimates.suspects
        bandwidth = bandwidth or pace
        shown = _contents(source, log, totals, found, suspects, bandwidth)
        shown["commands"] = _commands(source, bandwidth, output)
        page = _rendered(**shown, why_not=why_not)
        Path(temporary).write_text(page, encoding="utf-8")
    return found


def _check_extra():
    """Import what draws the page, or name the extra that brings it."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"crawl_log.report needs the extra 'report', without which {error.name} "
            "is missing: pip install 'paperlib-crawl[log]'"
        ) from None


def _tried(why_not, name, function, *arguments, **options):
    """Result of a function, or None, and why under a name."""
    try:
        return function(*arguments, **options)
    except ValueError as error:
        why_not[name] = str(error)
        return None


def _schedules(rates, bandwidth):
    """`Schedule` at five budgets."""
    if not bandwidth:
        raise ValueError(
            "the log must tell of two crawls of one page, got none: name a bandwidth"
        )
    plan = rates.with_name("schedule.parquet")
    return [schedule(rates, plan, f * bandwidth, force=True) for f in _FACTORS]


def _rows(connection, query, **parameters):
    """Rows of a query, each a dict by the name of the column."""
    cursor = connection.execute(query, parameters)
    names = [name for name, *_ in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


# ---- contents


def _contents(source, log, totals, found, suspects, bandwidth):
    """What the template shows."""
    connection = log.connection
    hosts = _rows(connection, sql("report_hosts"), most=_MOST)
    seen = {each.host for each in suspects}
    for host in hosts:
        host["cause"] = "see above" if host["host"] in seen else _cause(host)
    bins = _rows(connection, sql("report_rates"))
    factors = _rows(connection, sql("report_factors"))
    repeat = (1 - _SHARE) * (totals["days"] or 0.0)
    return {
        "version": __version__,
        "name": source.path[0].name or str(source),
        "others": len(source.path) - 1,
        "source": str(source),
        "what": log.what,
        "files": len(source.files()[0]),
        "counts": [(n, why) for why, n in found.estimates.counts.items() if n],
        "used": USED,
        "failed": FAILED,
        "inf": math.inf,
        "totals": totals,
        "found": found,
        "bandwidth": bandwidth,
        "most": _MOST,
        "least_crawls": _LEAST_CRAWLS,
        "most_changed": _top(connection, "n_changed"),
        "widest": _top(connection, "factor"),
        "hosts": hosts,
        "suspects": suspects,
        "calibrated": [getattr(plan, "calibrated", None) for plan in found.schedules],
        "compared": _compared(found) if found.backtest else [],
        "rules": _columns(found.rules),
        "repeat": repeat,
        "pictures": _pictures(bins, factors, found),
    }


def _top(connection, order):
    """The first pages by a column."""
    query = sql("report_pages").replace("$order", order)
    return _rows(connection, query, most=_MOST)


def _columns(rules):
    """Freshness by rule, by what it is meant for."""
    if rules is None:
        return {}
    days = f"in the {_days(rules.days)} of the log"
    return {days: rules.in_log, "in the long run": rules.long_run}


def _cause(host):
    """Likely cause of what most pages of a host have, or an empty text."""
    if host["never"] >= max(host["measured"] / 2, _LEAST_PAGES):
        return (
            "half or more never changed: static, served from a cache, or compared by "
            "something that cannot change"
        )
    if host["unfetched"] >= max(host["pages"] / 2, _LEAST_PAGES):
        why = "moved, refused, or behind a login"
        return f"half or more were never fetched successfully: {why}"
    if host["gone"] >= max(host["pages"] / 2, _LEAST_PAGES):
        return "half or more are gone: has the host moved?"
    return ""


def _commands(source, bandwidth, output):
    """Command lines that go on from here, by name."""
    how = "" if source.format == "auto" else f" --from {source.format}"
    for ours, theirs in source.columns.items():
        how += f" --column {shlex.quote(f'{ours}={theirs}')}"
    log = " ".join(_word(path) for path in source.path) + how
    if source.as_of is not None:
        log += f" --as-of {source.as_of.isoformat()}"
    rate = f"{_decimal(bandwidth)}/day" if bandwidth else "CRAWLS/day"
    plan = f"recrawl schedule rates.parquet --bandwidth {rate} -o schedule.parquet"
    keeping = "-o rates.parquet --state state.parquet"
    return {
        "estimate": f"recrawl estimate {log} {keeping}",
        "schedule": plan,
        "again": f"recrawl estimate NEXT_LOG{how} {keeping} --force\n{plan} --force",
        "report": f"recrawl report {log} -o {_word(output)} --force",
    }


def _word(path):
    """A path as one word of a shell, that is no option."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


# ---- numbers and texts as they are shown


def _decimal(number):
    """A positive number as a plain decimal of three digits or more."""
    digits = max(2 - math.floor(math.log10(number)), 0)
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _number(number):
    """A number for readers, with commas; "unlimited" for infinity."""
    if number is None or math.isnan(number):
        return "–"
    if math.isinf(number):
        return "unlimited"
    if number == 0:
        return "0"
    if number >= 1000 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.3g}" if number >= 1e-4 else f"{number:.1e}"


def _days(days):
    """A length of time in the unit that suits it."""
    for size, unit in ((365.0, "years"), (1.0, "days"), (1 / 24, "hours")):
        if days >= 2 * size:
            return f"{days / size:.3g} {unit}"
    return f"{days * 1440:.3g} minutes"


def _visible(text):
    """Text in which every character can be seen.

    Control characters, those that turn the direction of writing, and bytes
    that are no text become a replacement character; Jinja escapes the rest.
    """
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in str(text))


def _short(text):
    """Visible text of a URL or a name, without the middle if it is long."""
    text = _visible(text).replace("\n", "\ufffd")
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 40]}…{text[-39:]}"


def _rendered(**contents):
    """The page as text."""
    import jinja2
    from markupsafe import Markup

    folder = files(__package__)
    script = Markup((folder / "report.js").read_text(encoding="utf-8"))
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": _number,
        "days": _days,
        "visible": _visible,
        "short": _short,
        "per_cent": lambda share: f"{100 * share:.1f}%",
    }
    template = (folder / "report.html.jinja").read_text(encoding="utf-8")
    # only this very script may run, whatever else comes onto the page
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.from_string(template).render(
        **contents, script=script, digest=digest
    )


# ---- pictures


def _pictures(bins, factors, found):
    """Pictures by name, each an address with its data and a text."""
    from matplotlib import style

    drawn = {
        "rates": (_draw_rates, bins),
        "factors": (_draw_factors, factors),
        "budgets": (_draw_budgets, found.schedules),
        "rules": (_draw_rules, _columns(found.rules)),
        "calibration": (_draw_calibration, found if found.backtest else None),
    }
    with style.context("recrawl.report"):
        return {
            name: _picture(draw, values)
            for name, (draw, values) in drawn.items()
            if values
        }


def _picture(draw, values):
    """Address of a picture with its data, and its text."""
    from matplotlib.figure import Figure

    figure, image = Figure(figsize=_SIZE), io.BytesIO()
    text = draw(figure.subplots(), values)
    figure.savefig(image, format="svg", metadata={"Date": None}, transparent=True)
    data = base64.b64encode(image.getvalue()).decode()
    return {"address": f"data:image/svg+xml;base64,{data}", "text": text}


def _draw_rates(ax, bins):
    """Draw the histogram of change rates."""
    edges = 10 ** (np.array([row["bin"] for row in bins]) / 4)
    bottom = np.zeros(len(bins))
    looks = {
        "both": ("changed at some crawls", _BLUE, ""),
        "never": ("at none", _GREY, "//"),
        "always": ("at every crawl", _ORANGE, ".."),
    }
    for kind, (label, color, hatch) in looks.items():
        n = np.array([row[kind] for row in bins])
        if n.any():
            look = {"align": "edge", "color": color, "hatch": hatch, "label": label}
            ax.bar(edges, n, edges * (10**0.25 - 1), bottom, **look)
            bottom += n
    ax.set(xscale="log", xlabel="one change in", ylabel="pages")
    low, high = edges[0] / 1.5, edges[-1] * 10**0.25 * 1.5
    ticks = {rate: name for rate, name in _PERIODS.items() if low <= rate <= high}
    if len(ticks) > 1:
        ax.set_xticks(list(ticks), list(ticks.values()))
    else:
        ax.set_xlabel("changes a day")
    ax.minorticks_off()
    ax.set_xlim(low, high)
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.legend()
    return (
        f"Histogram of change rates of {bottom.sum():,.0f} pages, from "
        f"{edges[0]:.2g} to {edges[-1] * 10**0.25:.2g} changes a day; most pages "
        f"near {edges[bottom.argmax()] * 10**0.125:.2g}."
    )


def _draw_factors(ax, factors):
    """Draw the histogram of the ratios of limits of intervals."""
    edges = 10 ** (np.array([row["bin"] for row in factors]) / 8)
    n = np.array([row["pages"] for row in factors])
    ax.bar(edges, n, edges * (10**0.125 - 1), align="edge", color=_BLUE)
    ax.set(
        xscale="log",
        xlim=(0.9, max(11.0, 1.5 * edges[-1])),
        xlabel="upper limit / lower limit of a rate",
        ylabel="pages",
    )
    ticks = [t for t in (1, 2, 3, 5, 10, 30, 100, 300, 1000) if t <= ax.get_xlim()[1]]
    ax.set_xticks(ticks, [f"{t:,}" for t in ticks])
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.minorticks_off()
    return (
        f"Histogram of the upper limit divided by the lower limit of the change "
        f"rates of {n.sum():,} pages, from {edges[0]:.2g} to {edges[-1]:.2g}."
    )


def _draw_budgets(ax, schedules):
    """Draw the freshness of schedules by their budget."""
    budget = [plan.bandwidth for plan in schedules]
    fresh = [plan.freshness for plan in schedules]
    ax.plot(budget, fresh, color=_BLUE, marker="o", label="if changes were Poisson")
    calibrated = [getattr(plan, "calibrated", None) for plan in schedules]
    if None not in calibrated:
        look = {"color": "#a34700", "marker": "s", "linestyle": "--"}
        ax.plot(budget, calibrated, label="calibrated on this log", **look)
    today = schedules[len(schedules) // 2]
    now = today.bandwidth, today.freshness_now
    ax.plot(*now, "D", color=_INK, markersize=5, linestyle="", label="today")
    ax.set(xscale="log", xlabel="crawls a day", ylabel="freshness")
    ax.set_xticks(budget, [_number(b) for b in budget])
    ax.minorticks_off()
    ax.set_ylim(top=1.0)
    ax.legend(loc="lower right")
    points = ", ".join(
        f"{f:.3f} at {_number(b)}" for b, f in zip(budget, fresh, strict=True)
    )
    return (
        f"Expected freshness by crawls a day: {points}; today {now[1]:.3f}. The line "
        "rises and flattens."
    )


def _draw_rules(ax, columns):
    """Draw the freshness of rules as bars, in the long run if that is known."""
    *_, (meaning, rules) = columns.items()
    mine = [name == "the log" for name in rules]  # barh begins at the bottom
    bars = ax.barh(
        list(rules),
        list(rules.values()),
        color=[_ORANGE if m else _BLUE for m in mine],
        hatch=["//" if m else "" for m in mine],
    )
    ax.bar_label(bars, fmt="%.3f", padding=3)
    ax.set(xlim=(0, 1.15), xticks=np.linspace(0, 1, 6))
    ax.set_xlabel(meaning if meaning == "freshness" else f"freshness {meaning}")
    ax.tick_params(axis="y", length=0)
    listed = ", ".join(f"{name} {fresh:.3f}" for name, fresh in rules.items())
    return f"Bars of freshness by rule, the worst first: {listed}."


def _draw_calibration(ax, found):
    """Draw the share of changes against the probability that was predicted."""
    ax.plot([0, 1], [0, 1], color=_GREY, linewidth=1, linestyle="--")
    looks = (
        {"color": _BLUE, "marker": "o"},
        {"color": "#a34700", "marker": "s", "linestyle": "--"},
    )
    for name, look in zip(_compared(found), looks, strict=False):
        bins = found.backtest.calibration[name]
        p, share, n = bins[bins[:, 2] >= _LEAST_CRAWLS].T
        error = np.sqrt(share * (1 - share) / n)
        ax.errorbar(p, share, error, label=name, **look)
    ax.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        xlabel="predicted probability of a change",
        ylabel="share that had changed",
    )
    ax.legend()
    return (
        "Share of crawls that found a change against its predicted probability, with "
        "standard errors; on the diagonal predictions are right. The numbers are in "
        "the table."
    )


def _compared(found):
    """Rules whose calibration is shown: that of the rates, and the best other."""
    own = found.estimates.estimator
    others = [name for name in found.backtest.log_loss if name != own]
    return [own, *others[:1]]
