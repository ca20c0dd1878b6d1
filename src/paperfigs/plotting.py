"""One look for all figures; save a figure with its arrays and its record."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import platform
import re
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.typing import ArrayLike, NDArray

from recrawl import __version__
from recrawl.files import write_atomic
from recrawl.types import PathLike

if TYPE_CHECKING:
    from paperfigs.ledger import Claims
    from paperfigs.traces import Trace

__all__ = [
    "ALLOCATIONS",
    "COLUMN",
    "CRAWLERS",
    "ESTIMATION",
    "FIELD",
    "LINES",
    "PAGE",
    "POLICIES",
    "VARIANTS",
    "added",
    "bands",
    "bars",
    "boxes",
    "calibration",
    "drawn",
    "errors",
    "faults",
    "lines",
    "medians",
    "name",
    "note",
    "rates",
    "regrets",
    "save",
    "shades",
    "thin",
    "use_style",
]


# It lies where plt.style.use("paperfigs.paper") looks for it.
_THEME = mpl.rc_params_from_file(
    Path(__file__).with_name("paper.mplstyle"), use_default_template=False
)
_PALETTE = _THEME["axes.prop_cycle"].by_key()["color"]
_BLUE, _ORANGE, _GREEN, _, _, _BROWN, _, _, _, _SKY = _PALETTE
# Darker than the palette's purple and yellow, which are pale in print. The
# palette's red and orange, its grey and green, and a light olive and the red
# are hard to tell apart under deuteranopia: these are not.
_PURPLE, _OLIVE, _RED, _GREY = "#8f3f86", "#5b4a00", "#c04000", "#b4b4b4"
_INDIGO = "#440154"  # the dark end of viridis

# Widths of figures in inches: one column of a paper, and the whole page.
COLUMN, PAGE = 3.35, 6.9


def _style(color, *dashes, **more):
    """Colour and line style; solid without lengths of dashes and gaps."""
    return {"color": color, "linestyle": (0, dashes) if dashes else "-", **more}


_REFERENCE = {"color": "black", "linestyle": "--", "linewidth": 1.0}
# One line style and one colour for each estimator, in every figure ...
LINES = {
    "Naive": _style(_GREY, 1, 1),
    "MLE": _style(_PURPLE, 5, 1),
    "LLN": _style(_BLUE),
    "SA": _style(_ORANGE, 3, 1, 1, 1),
    "SAM": _style(_GREEN, 6, 1, 1, 1, 1, 1),
    "GammaFilter": _style(_RED, 9, 1),
    "averaged SA": _style(_OLIVE, 4, 1),
    "moment matching": _style(_SKY, 2, 1),
    "prior": _style(_BROWN, 2, 1, 1, 1),
    "true": _REFERENCE,
}
# ... for each policy ...
POLICIES = {
    "BASELINE": _REFERENCE,
    "LDS": _style(_GREY, 1, 1),
    "GREEDY": _style(_BLUE),
    "GREEDY-CIS": _style(_ORANGE, 3, 1, 1, 1),
    "GREEDY-NCIS": _style(_GREEN, 5, 1),
    "APPROX-1": _style(_PURPLE, 2, 2),
    "APPROX-2": _style(_SKY, 6, 1, 1, 1, 1, 1),
    "GREEDY-CIS+": _style(_RED, 4, 1, 1, 1),
    "NCIS-D": _style(_BROWN, 2, 1),
}
# ... for each rule that spends a bandwidth ...
ALLOCATIONS = {
    "uniform": _style(_GREY, 1, 1),
    "proportional": _style(_ORANGE, 3, 1, 1, 1),
    "optimal, Poisson": _style(_GREEN, 5, 1),
    "optimal, interval": _style(_BLUE),
}
# ... and for each rule of today's crawlers.
CRAWLERS = {
    "Nutch": _style(_INDIGO, 2, 1, marker="o", markersize=3.5),
    "Nutch, fallbacks": _style(_OLIVE, 6, 1, 1, 1, 1, 1, marker="^", markersize=3.5),
    "StormCrawler": _style(_SKY, 9, 1, marker="s", markersize=3.5),
}
# The policies of the benchmark by what they know, with a colour for each group.
FIELD = {
    "knows the change rates": (
        _BLUE,
        [
            "Lagrangian index",
            "interval optimum",
            "hedged optimum",
            "LambdaCrawl",
            "interval optimum, Poisson times",
            "by change rate",
        ],
    ),
    "learns them": (
        _RED,
        [
            "Bayes value, ages",
            "Bayes value",
            "Bayes value, vague",
            "Thompson",
            "plug-in mean",
            "LearningGreedy",
            "phases",
            "explore, then commit, posterior mean",
            "MirrorSync",
            "LambdaLearnAndCrawl",
        ],
    ),
    "does neither": ("black", ["by importance", "uniform", "StormCrawler", "Nutch"]),
}
_STYLES = LINES | POLICIES | ALLOCATIONS
# Variants of one method: dark to light, each with a line style of its own.
VARIANTS = [
    _style(_INDIGO),
    _style(_RED, 5, 1),
    _style(_SKY, 3, 1, 1, 1),
    _style(_OLIVE, 1, 1),
]
_LEAST_POINTS = 6.5  # smallest type that is legible in print
_TAG = {"color": "0.45", "fontsize": 7}
_TAG_POINTS = 3  # of a tag above its panel
# The markers and colours of figure 2 of [aaai20]_.
ESTIMATION = {
    "Lemma 3 bound": _style(_BLUE, 5, 1, marker="s"),
    "MLE": _style(_ORANGE, 3, 1, 1, 1, marker="^"),
    "moment matching": _style(_GREEN, marker="o"),
}


def use_style() -> None:
    """Set the style of all figures.

    It is readable at column width, safe for colour-blind readers, and gives
    the same SVG every time.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> from paperfigs import plotting
    >>> with mpl.rc_context():
    ...     plotting.use_style()
    ...     mpl.rcParams["svg.hashsalt"]
    'paperlib'
    """
    mpl.rcParams.update(_THEME)


# ---- which points are drawn


def thin(n: int, most: int = 400) -> NDArray[np.integer]:
    """Choose the points of a long curve that are drawn.

    They are dense at the start, for linear and logarithmic axes alike.

    Parameters
    ----------
    n : int
        The number of points.
    most : int, default 400
        How many to choose at most.

    Returns
    -------
    ndarray of int
        Increasing indices, the first and the last point among them.

    Examples
    --------
    >>> from paperfigs import plotting
    >>> plotting.thin(1000, most=8)
    array([  0,   9,  99, 333, 666, 999])
    """
    if n <= most:
        return np.arange(n)
    numbers = [np.geomspace(1, n, most // 2), np.linspace(1, n, most // 2)]
    return np.unique(np.concatenate(numbers).astype(int)) - 1


def _evenly(n, most):
    """Indices of at most `most` of n points, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, most).astype(int))


def shades(values: Sequence[Any], label: str = "{:g}") -> dict[str, dict[str, Any]]:
    """Choose colours for the values of an ordered parameter, dark to light.

    Parameters
    ----------
    values : sequence
        In their order.
    label : str, default "{:g}"
        How a value is written in the legend.

    Returns
    -------
    dict of dict
        Colour and label by value, for ``ax.plot``.

    Examples
    --------
    >>> from paperfigs import plotting
    >>> plotting.shades([0.5, 1.0], "step {:g}")[0.5]["label"]
    'step 0.5'
    """
    # The light end of the map is too pale for a line on white.
    colors = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, len(values)))
    return {
        value: {"color": mpl.colors.to_hex(color), "label": label.format(value)}
        for value, color in zip(values, colors, strict=True)
    }


# ---- curves


def lines(ax: Any, x: ArrayLike, curves: dict[str, NDArray[Any]], **style: Any) -> Any:
    """Draw named curves, each in its own colour and line style.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    x : array_like, shape (n,)
        Of the points; some of them are drawn, see `thin`.
    curves : dict of ndarray, shape (n,)
        By name; the styles are those of `LINES`, `POLICIES` and `ALLOCATIONS`,
        for other names those of `VARIANTS`.
    **style
        For ``ax.plot``; overrides the style of the name.

    Returns
    -------
    matplotlib.axes.Axes
        The panel.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> x = np.arange(1.0, 5.0)
    >>> ax = plotting.lines(Figure().subplots(), x, {"LLN": 1 / x})
    >>> ax.lines[0].get_label()
    'LLN'
    """
    shown, styles = thin(len(x)), _styles(curves)
    for name, y in curves.items():
        options = {"label": name, **styles[name], **style}
        ax.plot(np.asarray(x)[shown], y[shown], **options)
    return ax


def _styles(names):
    """The styles of names; those without one get the styles of variants in turn."""
    variants = itertools.cycle(VARIANTS)
    return {name: _STYLES.get(name) or next(variants) for name in names}


def bands(
    ax: Any, x: ArrayLike, runs: dict[str, NDArray[Any]], *, level: float = 0.95
) -> Any:
    """Draw the mean of each array of runs, and outlines of the central runs.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    x : array_like, shape (n,)
        Of the points, as in `lines`.
    runs : dict of ndarray, shape (n_runs, n)
        By name, as in `lines`.
    level : float, default 0.95
        The share of the runs between the outlines.

    Returns
    -------
    matplotlib.axes.Axes
        The panel.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> runs = {"SA": np.arange(20.0).reshape(10, 2)}
    >>> ax = plotting.bands(Figure().subplots(), [1, 2], runs)
    >>> ax.lines[0].get_ydata().tolist()
    [9.0, 10.0]
    """
    lines(ax, x, {name: values.mean(axis=0) for name, values in runs.items()})
    shown, tail = thin(len(x)), (1 - level) / 2
    for mean, (name, values) in zip(ax.lines[-len(runs) :], runs.items(), strict=True):
        # "nearest", as interpolation between infinite runs would give NaN.
        central = np.quantile(
            values[:, shown], (tail, 1 - tail), axis=0, method="nearest"
        )
        for side, y in zip(("lower", "upper"), central, strict=True):
            style = {"color": mean.get_color(), "linestyle": "-", "linewidth": 0.6}
            ax.plot(np.asarray(x)[shown], y, label=f"_{name} {side}", **style)
    return ax


def _mean_and_error(values):
    """The mean over runs, the first axis, and its standard error."""
    if len(values) < 2:  # one run has no standard error, and no bar
        return values.mean(axis=0), np.full(values.shape[1:], np.nan)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def _error_bars(ax, line, x, y, error, **style):
    """Draw error bars in the colour of a line."""
    label = f"_{line.get_label()} error"
    ax.vlines(x, y - error, y + error, color=line.get_color(), label=label, **style)


def errors(ax: Any, x: ArrayLike, runs: dict[str, NDArray[Any]], **style: Any) -> Any:
    """Draw the mean of each array of runs, with its standard error as bars.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    x : array_like, shape (n,)
        Of the points.
    runs : dict of ndarray, shape (n_runs, n)
        By name, as in `lines`.
    **style
        For ``ax.plot``.

    Returns
    -------
    matplotlib.axes.Axes
        The panel.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> runs = {"SA": np.array([[0.0, 1.0], [2.0, 1.0]])}
    >>> ax = plotting.errors(Figure().subplots(), [1, 2], runs)
    >>> ax.collections[0].get_paths()[0].vertices.tolist()
    [[1.0, 0.0], [1.0, 2.0]]
    """
    found = {name: _mean_and_error(values) for name, values in runs.items()}
    means = {name: mean for name, (mean, _) in found.items()}
    lines(ax, x, means, marker="o", markersize=3, **style)
    for line, given in zip(ax.lines[-len(runs) :], found.values(), strict=True):
        _error_bars(ax, line, x, *given)
    return ax


def regrets(
    ax: Any,
    values: Mapping[str, float],
    low: Mapping[str, float],
    high: Mapping[str, float],
    *,
    shift: float = 0.0,
    suffix: str = "",
    **style: Any,
) -> None:
    """Draw a mark for each policy of `FIELD` at its name, and a bar.

    The axis of the regret is linear up to 0.01, and logarithmic beyond.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    values, low, high : dict of float
        Regret by name, and the ends of the bar.
    shift : float, default 0
        How far below its name a policy is drawn, in rows.
    suffix : str, default ""
        What is added to the label, which is the group of the policy.
    **style
        Of the dots, for ``ax.plot``.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> ax = Figure().subplots()
    >>> names = [name for _, names in plotting.FIELD.values() for name in names]
    >>> regret = dict.fromkeys(names, 0.01)
    >>> plotting.regrets(ax, regret, regret, regret)
    >>> ax.get_yticklabels()[0].get_text()
    'Lagrangian index'
    """
    rows: dict[str, float] = {}
    for gap, (group, (color, names)) in enumerate(FIELD.items()):
        at = len(rows) + 0.5 * gap + shift + np.arange(len(names))
        x, left, right = ([of[name] for name in names] for of in (values, low, high))
        # In grey the colours of the groups are alike, their markers are not.
        look = {"color": color, "linestyle": "", "marker": "osD"[gap], "markersize": 3}
        ax.plot(x, at, label=group + suffix, **look | style)
        ax.hlines(at, left, right, color, linewidth=0.9, label=f"_{group}{suffix} bar")
        rows |= dict(zip(names, at - shift, strict=True))
    ax.axvline(0.0, color="0.7", linewidth=0.6, zorder=0, label="_no regret")
    ax.set_xscale("symlog", linthresh=0.01, linscale=0.6)
    ax.set_xticks([0.0, 0.01, 0.1], ["0", "0.01", "0.1"])
    ax.set_yticks(list(rows.values()), list(rows))
    ax.set_ylim(max(rows.values()) + 1, -1)
    ax.tick_params(axis="y", length=0)
    ax.minorticks_off()


def boxes(ax: Any, runs: Mapping[str, ArrayLike]) -> Any:
    """Draw the runs of each policy: a box with the quartiles, and the mean.

    The mean has its standard error as a bar. BASELINE is a line across the
    panel, at its mean.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    runs : dict of array_like, shape (n_runs,)
        By name, in the colours of `lines`.

    Returns
    -------
    matplotlib.axes.Axes
        The panel.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> ax = plotting.boxes(Figure().subplots(), {"GREEDY": [1.0, 2.0, 3.0]})
    >>> float(ax.patches[0].get_y()), float(ax.patches[0].get_height())
    (1.5, 1.0)
    """
    # The lower end of a box is not the bottom of the panel. This comes first, as the
    # line of BASELINE fixes the limits.
    ax.use_sticky_edges = False
    styles, names = _styles(runs), [name for name in runs if name != "BASELINE"]
    for i, name in enumerate(names):
        color, values = styles[name]["color"], np.asarray(runs[name])
        low, high = np.quantile(values, (0.25, 0.75))
        mean, error = _mean_and_error(values)
        (box,) = ax.bar(
            i, high - low, 0.7, bottom=low, color=color, alpha=0.35, linewidth=0
        )
        box.set_label(f"_{name} quartiles")
        (dot,) = ax.plot(i, mean, color=color, marker="o", linestyle="", label=name)
        _error_bars(ax, dot, i, mean, error)
    if "BASELINE" in runs:
        mean = np.mean(runs["BASELINE"])
        ax.axhline(mean, label="BASELINE", **POLICIES["BASELINE"])
    slanted = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(names)), names, **slanted)
    return ax


def medians(
    ax: Any,
    x: ArrayLike,
    runs: dict[str, NDArray[Any]],
    styles: dict[str, dict[str, Any]],
) -> Any:
    """Draw the median of each array of runs, with bars between the quartiles.

    The curves are moved apart by a few percent of `x`, for logarithmic axes.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    x : array_like, shape (n,)
        Of the points.
    runs : dict of ndarray, shape (n_runs, n)
        By name.
    styles : dict of dict
        For ``ax.plot``, by name.

    Returns
    -------
    matplotlib.axes.Axes
        The panel.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> ax, runs = Figure().subplots(), {"MLE": np.arange(3.0)[:, None]}
    >>> _ = plotting.medians(ax, [1], runs, plotting.ESTIMATION)
    >>> ax.lines[1].get_ydata().tolist()
    [0.5, 1.5, nan]
    """
    for i, (name, values) in enumerate(runs.items()):
        at = np.asarray(x) * 1.07 ** (i - (len(runs) - 1) / 2)
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
        (line,) = ax.plot(at, middle, label=name, markersize=3, **styles[name])
        strokes = np.column_stack([low, high, np.full(at.size, np.nan)]).ravel()
        style = {"color": line.get_color(), "linewidth": 1.0}
        ax.plot(np.repeat(at, 3), strokes, label=f"_{name} quartiles", **style)
    return ax


# ---- clouds


def rates(
    ax: Any,
    optimal: ArrayLike,
    empirical: ArrayLike,
    *,
    color: ArrayLike,
    most: int = 1000,
    cmap: str = "viridis",
) -> Any:
    """Draw the crawl rate of each page against the optimal one.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel; it gets the diagonal too.
    optimal, empirical : array_like, shape (...)
        Crawl rates, 1/time.
    color : str or array_like, shape (...)
        One colour for all, or a number from 0 to 1 for each page, dark to
        light.
    most : int, default 1000
        Pages, evenly spaced in their order.
    cmap : str, default "viridis"
        The colour map of the numbers.

    Returns
    -------
    matplotlib.collections.PathCollection
        The cloud, for a colour bar.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> ax = Figure().subplots()
    >>> cloud = plotting.rates(ax, [1, 2], [1, 3], color="black")
    >>> cloud.get_offsets().tolist()
    [[1.0, 1.0], [2.0, 3.0]]
    """
    optimal, empirical = np.ravel(optimal), np.ravel(empirical)
    shown = _evenly(optimal.size, most)
    look = {"color": color}
    if not isinstance(color, str):  # the same colours in every panel
        look = {"c": np.ravel(color)[shown], "cmap": cmap, "vmin": 0, "vmax": 1}
    cloud = ax.scatter(
        optimal[shown],
        empirical[shown],
        s=7,
        linewidth=0,
        alpha=0.8,
        rasterized=True,
        label="_pages",
        **look,
    )
    ax.axline((0.0, 0.0), slope=1.0, zorder=3, label="_optimal", **_REFERENCE)
    return cloud


# ---- named numbers


def bars(ax: Any, values: dict[str, float]) -> Any:
    """Draw named freshness values as bars, with the number at their end.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    values : dict of float
        From 0 to 1, the first on top; "the log" has a colour of its own.

    Returns
    -------
    matplotlib.axes.Axes
        The panel.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> values = {"uniform": 0.5, "optimal": 0.75}
    >>> ax = plotting.bars(Figure().subplots(), values)
    >>> [text.get_text() for text in ax.texts]
    ['0.500', '0.750']
    """
    colors = [_ORANGE if name == "the log" else _BLUE for name in values]
    look = {"color": colors, "linewidth": 0, "label": list(values)}
    drawn = ax.barh(list(values), list(values.values()), **look)
    ax.bar_label(drawn, fmt="%.3f", padding=3)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.12), xticks=np.linspace(0, 1, 6), xlabel="freshness")
    ax.tick_params(axis="y", length=0)
    return ax


def calibration(ax: Any, curves: Mapping[str, ArrayLike], *, least: int = 20) -> Any:
    """Draw the share of crawls that found a change against its prediction.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel; it gets the diagonal too.
    curves : dict of array_like, shape (n_bins, 3)
        By name: mean predicted probability, share, and number of crawls, as in
        `recrawl.Backtest`. The bars are standard errors, as if
        crawls were independent.
    least : int, default 20
        Bins of fewer crawls are left out.

    Returns
    -------
    matplotlib.axes.Axes
        The panel.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> bins = [[0.1, 0.2, 100], [0.5, 0.6, 3]]
    >>> ax = plotting.calibration(Figure().subplots(), {"mle": bins})
    >>> ax.lines[0].get_xydata().tolist()
    [[0.1, 0.2]]
    """
    for i, (name, bins) in enumerate(curves.items()):
        p, share, n = np.asarray(bins)[np.asarray(bins)[:, 2] >= least].T
        (line,) = ax.plot(
            p,
            share,
            color=_PALETTE[i],
            marker="o^sDvP"[i % 6],
            markersize=4,
            linewidth=1.0,
            label=name,
        )
        error = np.sqrt(share * (1 - share) / n)
        _error_bars(ax, line, p, share, error, linewidth=1.0)
    ax.plot([0, 1], [0, 1], label="_diagonal", **_REFERENCE)
    ax.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        xlabel="predicted probability of a change",
        ylabel="share that had changed",
    )
    ax.legend()
    return ax


# ---- tags, and what is wrong with a figure


def added(ax: Any) -> Any:
    """Mark a panel that the paper does not have with a small tag.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.

    Returns
    -------
    matplotlib.text.Annotation
        The tag, above the upper right corner.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> plotting.added(Figure().subplots()).get_text()
    'added'
    """
    return ax.annotate(
        "added",
        (1.0, 1.0),
        (0.0, _TAG_POINTS),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        va="bottom",
        **_TAG,
    )


def note(ax: Any, text: str, *, x: float = 0.98, y: float = 0.03) -> Any:
    """Write a small grey note into a panel, such as "stand-in data".

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    text : str
        The note.
    x, y : float, default 0.98 and 0.03
        Its place, from 0 to 1 in each direction; it ends, or begins, there.

    Returns
    -------
    matplotlib.text.Text
        The note.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> plotting.note(Figure().subplots(), "stand-in data").get_ha()
    'right'
    """
    sides = {
        "ha": "right" if x > 0.5 else "left",
        "va": "top" if y > 0.5 else "bottom",
    }
    return ax.text(x, y, text, transform=ax.transAxes, **sides, **_TAG)


def name(ax: Any, prefix: str) -> Any:
    """Name what another library drew without a label, for the stored arrays.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    prefix : str
        The names are this and a number; they stay out of the legend.

    Returns
    -------
    matplotlib.axes.Axes
        The panel.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> ax = Figure().subplots()
    >>> _ = ax.bar([1, 2], [3, 4])
    >>> plotting.name(ax, "bar").patches[1].get_label()
    '_bar 2'
    """
    artists = [artist for artist, _ in _artists(ax) if _is_unnamed(artist)]
    for number, artist in enumerate(dict.fromkeys(artists), start=1):
        artist.set_label(f"_{prefix} {number}")
    return ax


def _is_unnamed(artist):
    """Whether nobody but Matplotlib gave an artist its label."""
    label = str(artist.get_label() or "_child")
    return label.startswith(("_child", "_nolegend_"))


def faults(figure: Any) -> list[str]:
    """List what makes a figure hard to read.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        It is drawn once, for the places of its texts.

    Returns
    -------
    list of str
        Text below 6.5 pt, text or legends that leave the canvas, texts that
        overlap, boxes that reach the edge of their panel, and data that have
        no name in the stored arrays.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> figure = Figure()
    >>> _ = figure.subplots().text(0.5, 0.5, "tiny", fontsize=4)
    >>> plotting.faults(figure)
    ["text of 4.0 pt: 'tiny'"]
    """
    # Its own canvas may be one that does not draw, as in a notebook.
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    texts = _visible_texts(figure)
    found = [
        f"text of {text.get_fontsize():.1f} pt: {text.get_text()!r}"
        for text in texts
        if text.get_fontsize() < _LEAST_POINTS
    ]
    for artist in [*texts, *figure.findobj(mpl.legend.Legend)]:
        box = artist.get_window_extent()
        if box.width and not _contains(figure.bbox, box):
            what = getattr(artist, "get_text", lambda: "a legend")()
            found.append(f"outside the picture: {what!r}")
    # The box of slanted text is larger than the text itself.
    upright = [text for text in texts if text.get_rotation() % 90 == 0]
    boxes = [text.get_window_extent().padded(-1.0) for text in upright]
    for i, box in enumerate(boxes):
        found += [
            f"texts overlap: {upright[i].get_text()!r}, {upright[j].get_text()!r}"
            for j in range(i)
            if box.overlaps(boxes[j])
        ]
    found += [
        f"a box touches the edge of its panel: {patch.get_label()[1:]!r}"
        for ax in _panels(figure)
        for patch in ax.patches
        if str(patch.get_label()).endswith(" quartiles")
        and not _contains(ax.bbox.padded(-0.5), patch.get_window_extent())
    ]
    unnamed = {
        f"data without a name: {type(artist).__name__}"
        for ax in _panels(figure)
        for artist, _ in _artists(ax)
        if _is_unnamed(artist)
    }
    return found + sorted(unnamed)


def _contains(outer, box):
    """Whether a box lies in another one."""
    return outer.contains(*box.min) and outer.contains(*box.max)


def _visible_texts(figure):
    """The texts that are drawn; labels of ticks outside the view are not."""
    hidden = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                is_inside = low - slack <= tick.get_loc() <= high + slack
                if not (is_inside and ax.axison and axis.get_visible()):
                    hidden |= {tick.label1, tick.label2}
    return [
        text
        for text in figure.findobj(mpl.text.Text)
        if text.get_text().strip() and text.get_visible() and text not in hidden
    ]


# ---- saving


def drawn(figure: Any) -> dict[str, NDArray[Any]]:
    """Collect the data of everything that a figure draws.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Its lines, bands, points, meshes, images and patches are collected.

    Returns
    -------
    dict of ndarray
        In single precision, by panel, number and label, such as "a00 LLN".

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from paperfigs import plotting
    >>> figure = Figure()
    >>> _ = figure.subplots().plot([1, 2], [3, 4], label="two points")
    >>> plotting.drawn(figure)["a00 two points"].tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    arrays = {}
    letters = "abcdefghijklmnopqrstuvwxyz"
    for panel, ax in zip(letters, _panels(figure), strict=False):
        for number, (artist, values) in enumerate(_artists(ax)):
            name = f"{panel}{number:02d} {(artist.get_label() or '').lstrip('_')}"
            # What is masked is not drawn, like NaN.
            arrays[name] = np.asarray(np.ma.filled(values, np.nan), dtype=np.float32)
    return arrays


def _panels(figure):
    """The axes that draw data."""
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def _artists(ax):
    """Each artist of a panel with the data that it draws."""
    for line in ax.lines:
        yield line, line.get_xydata()
    for collection in ax.collections:
        if isinstance(collection, mpl.collections.QuadMesh):
            yield collection, collection.get_array()
            yield collection, collection.get_coordinates()
        elif isinstance(collection, mpl.collections.PathCollection):
            yield collection, collection.get_offsets()
        else:
            for path in collection.get_paths():
                yield collection, path.vertices
    for image in ax.images:
        yield image, image.get_array()
    for patch in ax.patches:
        yield patch, patch.get_patch_transform().transform(patch.get_path().vertices)


def save(
    figure: Any,
    claims: Claims,
    output_dir: PathLike | None,
    *,
    data: Sequence[Trace] = (),
) -> None:
    """Save a figure as .png and .svg, its arrays as .npz, its record as .json.

    Each file is whole or absent. The figure is closed.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A figure of pyplot.
    claims : paperfigs.ledger.Claims
        Its figure id names the files; its parameters and what it measured go
        into the record.
    output_dir : path or None
        The files go below ``output_dir/<paper>/``; nothing is done if it is
        None.
    data : sequence of Trace, optional
        The data used; their names and checksums go into the record.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import matplotlib.pyplot as plt
    >>> from paperfigs import ledger, plotting
    >>> claims = ledger.Claims("a/fig1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plotting.save(plt.figure(), claims, folder)
    ...     sorted(path.name for path in pathlib.Path(folder, "a").iterdir())
    ['fig1.json', 'fig1.npz', 'fig1.png', 'fig1.svg']
    """
    if output_dir is None:
        return
    arrays = drawn(figure)
    record = {
        "figure": claims.figure,
        "parameters": claims.parameters,
        "claims": claims.records(),
        "data": {trace.name: trace.sha256 for trace in data},
        "arrays": _checksum(arrays),
        "faults": faults(figure),
        "versions": _versions(),
    }
    contents = {
        ".png": _image(figure, "png"),
        # Without a date it is the same file every time.
        ".svg": _portable(_image(figure, "svg", metadata={"Date": None})),
        ".npz": _packed(arrays),
        ".json": json.dumps(record, indent=1, ensure_ascii=False) + "\n",
    }
    for suffix, content in contents.items():
        write_atomic((Path(output_dir) / claims.figure).with_suffix(suffix), content)
    plt.close(figure)


def _portable(svg):
    """An SVG file that is the same on all machines: rounded places, ids by number.

    The layout of a figure differs by rounding between machines, and with the order in
    which objects lie in memory. Places are written with six decimals, of which the
    last may differ: here they have three, a thousandth of a point. Ids are checksums
    of unrounded places.
    """
    place = rb"(?<!scale\()-?\b\d+\.\d{5,}"
    svg = re.sub(place, lambda m: b"%.3f" % float(m[0]), svg)
    ids = dict.fromkeys(re.findall(rb'id="([A-Za-z]+[0-9a-f]{10})"', svg))
    number = {name: b"id%d" % k for k, name in enumerate(ids, 1)}
    return re.sub(
        rb'(?<=["#])[A-Za-z]+[0-9a-f]{10}(?=[")])', lambda m: number[m[0]], svg
    )


def _packed(arrays):
    """The bytes of an npz file, which numpy writes differently by Python's version."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array)
            member = zipfile.ZipInfo(f"{name}.npy")  # of 1980, not of today
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content.getvalue())
    return file.getvalue()


def _checksum(arrays):
    """SHA-256 of arrays with their names and shapes."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.shape}\n".encode() + array.tobytes())
    return digest.hexdigest()


def _versions():
    """What the figure was made with; Python without its patch version."""
    own = {"python": ".".join(platform.python_version_tuple()[:2])}
    own["paperlib"] = __version__
    return own | {
        name: version(name) for name in ("numpy", "scipy", "numba", "matplotlib")
    }


def _image(figure, kind, **options):
    """The bytes of a figure as an image file."""
    image = io.BytesIO()
    figure.savefig(image, format=kind, **options)
    return image.getvalue()
