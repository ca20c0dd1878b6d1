"""Common look of all figures; save a figure with its arrays and its record."""

import itertools
import json
import tempfile
from collections import ChainMap, defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray

from paperfigs.files import STAGING, PathLike
from paperfigs.ledger import Claims

# Widths of figures in inches: one column of a paper, and the whole page.
COLUMN, PAGE = 3.35, 6.9


def _style(color, *dashes):
    """Colour and line style; a line without dashes is solid."""
    return {"color": color, "linestyle": (0, dashes) if dashes else "-"}


def _styles(looks):
    """Styles by name from ``styles.yaml``; a user's own names get variants in turn."""
    return ChainMap({name: _style(*look) for name, look in looks.items()}, _OWN)


_LOOKS = yaml.safe_load(Path(__file__).with_name("styles.yaml").read_text())
VARIANTS = [_style(*look) for look in _LOOKS["variants"]]
_OWN = defaultdict(itertools.cycle(VARIANTS).__next__)  # of a user's own names
_REFERENCE = {"color": "#d2003c", "linestyle": "--", "linewidth": 1.0}
# Every estimator, policy and allocation rule has the same line style and colour in
# all figures.
LINES = _styles(_LOOKS["lines"])
POLICIES = _styles(_LOOKS["policies"])
ALLOCATIONS = _styles(_LOOKS["allocations"])
LINES["true"] = _REFERENCE | {"color": "black"}
POLICIES["BASELINE"] = _REFERENCE
_STYLES = LINES | POLICIES | ALLOCATIONS
# Packages whose versions are recorded with a figure.
_VERSIONS = "paperlib-crawl", "numpy", "scipy", "numba", "matplotlib"
_TAG = {"color": "0.45", "fontsize": 7}
_CLOUD = 1000  # maximum number of points of a cloud
_BOX = "0.92"  # the grey of a claim box
# Of claims whose criterion is not met, is met, or says nothing.
_MET = mpl.colors.ListedColormap(["#d9705c", "#9fd6b4"], bad=_BOX)


def use_style() -> None:
    """Set the style of all figures, ``paper.mplstyle``."""
    plt.style.use("paperfigs.paper")


# ---- which points and colours


def thin(n: int, most: int = 400) -> NDArray[np.integer]:
    """Choose points of a long curve for drawing.

    They are dense at the start, so that they suit linear and logarithmic axes.

    Parameters
    ----------
    n : int
        The number of points.
    most : int, default 400
        Maximum number of chosen points.

    Returns
    -------
    ndarray of int
        Increasing indices, with the first and the last point.
    """
    if n <= most:
        return np.arange(n)
    dense = np.geomspace(1, n, most // 2, dtype=int)
    return np.union1d(dense, np.linspace(1, n, most // 2, dtype=int)) - 1


def shades(values: list[Any], label: str = "{:g}") -> dict[Any, dict[str, Any]]:
    """Choose colours for the values of an ordered parameter, dark to light.

    Parameters
    ----------
    values : sequence
        The values in their order.
    label : str, default "{:g}"
        Format of a value in the legend.

    Returns
    -------
    dict of dict
        Colour and label by value, for ``ax.plot``.
    """
    # The light end of the map is too pale for a line on white.
    colors = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, len(values)))
    return {
        value: {"color": mpl.colors.to_hex(color), "label": label.format(value)}
        for value, color in zip(values, colors, strict=True)
    }


# ---- curves


def lines(ax: Any, x: ArrayLike, curves: dict[str, NDArray], **style: Any) -> None:
    """Draw named curves in the colours and line styles of their names.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    x : array_like, shape (n,)
        Abscissas of the points, some of which are drawn, see `thin`.
    curves : dict of ndarray, shape (n,)
        Ordinates by name. The styles are those of `LINES`, `POLICIES` and
        `ALLOCATIONS`; other names get those of `VARIANTS` in turn.
    **style
        Options of ``ax.plot``, which override the style of the name.
    """
    shown = thin(len(x))
    for name, y in curves.items():
        look = {"label": name} | _STYLES[name] | style
        ax.plot(np.take(x, shown), y[shown], **look)


def bands(ax: Any, x: ArrayLike, runs: dict[str, NDArray]) -> None:
    """Draw the mean of every array of runs, and outlines of the central 95%.

    Parameters
    ----------
    ax, x
        As in `lines`.
    runs : dict of ndarray, shape (n_runs, n)
        Runs by name.
    """
    lines(ax, x, {name: values.mean(axis=0) for name, values in runs.items()})
    for name, values in runs.items():
        # "nearest", because interpolation between infinite runs gives NaN.
        for y in np.quantile(values, (0.025, 0.975), axis=0, method="nearest"):
            lines(ax, x, {name: y}, label="_", linestyle="-", linewidth=0.6)


def errors(ax: Any, x: ArrayLike, runs: dict[str, NDArray], **style: Any) -> None:
    """Draw the mean of every array of runs, with its standard error as bars.

    Parameters
    ----------
    ax, x, **style
        As in `lines`.
    runs : dict of ndarray, shape (n_runs, n)
        Runs by name.
    """
    for name, values in runs.items():
        look = {"label": name, "marker": "o", "markersize": 3} | _STYLES[name] | style
        ax.errorbar(x, values.mean(axis=0), _standard_error(values), **look)


def _standard_error(values):
    """Standard error of the mean of runs; NaN of a single run draws no bar."""
    import pandas as pd  # when it is imported, it looks whether this is a kernel

    return pd.DataFrame(values).sem()


def boxes(ax: Any, runs: dict[str, ArrayLike]) -> None:
    """Draw the runs of every policy: a box with the quartiles, and the mean.

    A bar at the mean shows its standard error. BASELINE is a line across the
    panel at its mean.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    runs : dict of array_like, shape (n_runs,)
        Runs by name; the colours are those of `lines`.
    """
    # The panel need not begin at the lower end of a box. Set before the line of
    # BASELINE, which fixes the limits.
    ax.use_sticky_edges = False
    names = [name for name in runs if name != "BASELINE"]
    for i, name in enumerate(names):
        color = _STYLES[name]["color"]
        values = runs[name]
        low, high = np.quantile(values, (0.25, 0.75))
        ax.bar(i, high - low, 0.7, bottom=low, color=color, alpha=0.35, linewidth=0)
        error = _standard_error(values)
        ax.errorbar(i, np.mean(values), error, color=color, label=name, marker="o")
    if "BASELINE" in runs:
        ax.axhline(np.mean(runs["BASELINE"]), label="BASELINE", **_REFERENCE)
    ax.set_xticks(
        range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor"
    )


def rates(
    ax: Any,
    optimal: ArrayLike,
    empirical: ArrayLike,
    *,
    color: ArrayLike,
    cmap: str = "viridis",
) -> Any:
    """Draw the crawl rates of pages against the optimal ones.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel; it gets the diagonal too.
    optimal, empirical : array_like, shape (n_pages,)
        Crawl rates, 1/time; at most a thousand pages are drawn, evenly spaced
        in their order.
    color : array_like, shape (n_pages,)
        One number per page, from 0 to 1.
    cmap : str, default "viridis"
        The colour map of the numbers.

    Returns
    -------
    matplotlib.collections.PathCollection
        The cloud, for a colour bar.
    """
    shown = np.unique(np.linspace(0, len(optimal) - 1, _CLOUD, dtype=int))
    cloud = ax.scatter(
        np.asarray(optimal)[shown],
        np.asarray(empirical)[shown],
        c=np.asarray(color)[shown],
        cmap=cmap,
        vmin=0,  # the same colours in every panel
        vmax=1,
        s=7,
        linewidth=0,
        alpha=0.8,
        rasterized=True,
    )
    ax.axline((0.0, 0.0), slope=1.0, zorder=3, **_REFERENCE)
    return cloud


# ---- notes


def added(ax: Any) -> None:
    """Mark a panel that the paper does not have with a small tag above it."""
    note(ax, "added", x=1.0, y=1.02).set_va("bottom")


def note(ax: Any, text: str, *, x: float = 0.98, y: float = 0.03) -> Any:
    """Write a small grey note into a panel, such as "stand-in data".

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    text : str
        The note.
    x, y : float, default 0.98 and 0.03
        Position in the panel, from 0 to 1. A note in the right half ends at `x`,
        a note in the left half begins there; likewise for `y`.

    Returns
    -------
    matplotlib.text.Text
        The note.
    """
    side = "right" if x > 0.5 else "left"
    end = "top" if y > 0.5 else "bottom"
    return ax.text(x, y, text, transform=ax.transAxes, ha=side, va=end, **_TAG)


def claim_box(
    ax: Any,
    text: str,
    *,
    x: tuple[float, float] | None = None,
    y: tuple[float, float] | None = None,
    loc: str = "upper left",
) -> None:
    """Shade where the curve would lie if a sentence of the paper were true.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel, whose limits and scales have been set.
    text : str
        The sentence, in a few words; small and grey, in a corner of the box.
    x, y : (float, float), optional
        From where to where the sentence speaks; without one of them, over the
        whole panel.
    loc : str, default "upper left"
        The corner, as in ``ax.legend``.
    """
    corners = np.transpose([x or ax.get_xlim(), y or ax.get_ylim()])
    box = mpl.transforms.Bbox(corners)
    ax.add_patch(plt.Rectangle(box.p0, *box.size, color=_BOX, zorder=0))
    words = mpl.offsetbox.AnchoredText(
        text,
        loc,
        prop=_TAG,
        frameon=False,
        bbox_to_anchor=box,
        bbox_transform=ax.transData,
    )
    ax.add_artist(words)


def claim_rows(ax: Any, x: ArrayLike, met: dict[str, ArrayLike], ours: float) -> None:
    """Draw a row for each claim: green where its criterion is met, red where not.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The panel.
    x : array_like, shape (n,)
        Values of the free setting, rising and positive; the axis is logarithmic.
    met : dict of array_like, shape (n,)
        By claim: 1 where its criterion is met, 0 where it is not, and NaN where the
        claim says nothing (grey).
    ours : float
        Our value of the setting, a black line.
    """
    rows = np.arange(len(met))
    ax.pcolormesh(x, rows, np.array([*met.values()], float), cmap=_MET, vmin=0, vmax=1)
    ax.hlines(rows + 0.5, x[0], x[-1], color="white", linewidth=3)
    ax.axvline(ours, color="black")
    ax.set(xscale="log", xlim=(x[0], x[-1]))
    ax.set_yticks(rows, met)
    ax.invert_yaxis()


# ---- saving


def save(
    figure: Any, claims: Claims, output_dir: PathLike | None, **arrays: ArrayLike
) -> None:
    """Save a figure as .png and .svg, its arrays as .npz, its record as .json.

    Every file is whole or absent. For a PDF whose text can be searched, add
    ``figure.savefig("name.pdf")`` to the notebook.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A figure of pyplot.
    claims : paperfigs.ledger.Claims
        The figure id names the files; the parameters and measurements go into
        the record.
    output_dir : path or None
        The files go into ``output_dir/<paper>/``; None saves nothing.
    **arrays
        The arrays that the figure shows, by name.
    """
    if output_dir is None:
        return
    record = {
        "figure": claims.figure,
        "parameters": claims.parameters,
        "claims": claims.records(),
        "versions": {name: version(name) for name in _VERSIONS},
    }
    target = Path(output_dir, claims.figure)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output_dir, prefix=STAGING) as folder:
        new = Path(folder, target.name)
        figure.savefig(f"{new}.png")
        # Without a date it is the same file every time.
        figure.savefig(f"{new}.svg", metadata={"Date": None})
        np.savez_compressed(f"{new}.npz", **arrays)
        text = json.dumps(record, indent=1, ensure_ascii=False)
        Path(f"{new}.json").write_text(text + "\n")
        for path in new.parent.iterdir():
            path.replace(target.with_name(path.name))
