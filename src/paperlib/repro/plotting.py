"""One look for every figure, and a saved figure with its arrays and its provenance."""

import hashlib
import io
import json
import platform
from importlib.metadata import version
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import scipy

from paperlib.files import write_atomic

_THEME = mpl.rc_params_from_file(
    Path(__file__).with_name("paper.mplstyle"), use_default_template=False
)
_PALETTE = _THEME["axes.prop_cycle"].by_key()["color"]
_BLUE, _ORANGE, _GREEN, _RED, _, _BROWN, _, _GREY, _, _SKY = _PALETTE
_PURPLE, _OLIVE = (
    "#8f3f86",
    "#7f7f00",
)  # darker than the palette's purple and yellow, which are pale in print
# one line style and one colour for each estimator, in every figure
LINES = {
    "Naive": {"color": _GREY, "linestyle": (0, (1, 1))},
    "MLE": {"color": _PURPLE, "linestyle": (0, (5, 1))},
    "LLN": {"color": _BLUE, "linestyle": "-"},
    "SA": {"color": _ORANGE, "linestyle": (0, (3, 1, 1, 1))},
    "SAM": {"color": _GREEN, "linestyle": (0, (6, 1, 1, 1, 1, 1))},
    "GammaFilter": {"color": _RED, "linestyle": (0, (9, 1))},
    "averaged SA": {"color": _OLIVE, "linestyle": (0, (4, 1))},
    "moment matching": {"color": _SKY, "linestyle": (0, (2, 1))},
    "prior": {"color": _BROWN, "linestyle": (0, (2, 1, 1, 1))},
    "true": {"color": "black", "linestyle": "--", "linewidth": 1.0},
}
# and for each policy
POLICIES = {
    "BASELINE": {"color": "black", "linestyle": "--", "linewidth": 1.0},
    "LDS": {"color": _GREY, "linestyle": (0, (1, 1))},
    "GREEDY": {"color": _BLUE, "linestyle": "-"},
    "GREEDY-CIS": {"color": _ORANGE, "linestyle": (0, (3, 1, 1, 1))},
    "GREEDY-NCIS": {"color": _GREEN, "linestyle": (0, (5, 1))},
    "APPROX-1": {"color": _PURPLE, "linestyle": (0, (2, 2))},
    "APPROX-2": {"color": _SKY, "linestyle": (0, (6, 1, 1, 1, 1, 1))},
    "GREEDY-CIS+": {"color": _RED, "linestyle": (0, (4, 1, 1, 1))},
    "NCIS-D": {"color": _BROWN, "linestyle": (0, (2, 1))},
}
# and for each rule that spends a bandwidth
ALLOCATIONS = {
    "uniform": {"color": _GREY, "linestyle": (0, (1, 1))},
    "proportional": {"color": _ORANGE, "linestyle": (0, (3, 1, 1, 1))},
    "optimal, Poisson": {"color": _GREEN, "linestyle": (0, (5, 1))},
    "optimal, interval": {"color": _BLUE, "linestyle": "-"},
}
# and for each rule that crawlers run today
CRAWLERS = {
    "Nutch": {
        "color": "#440154",
        "linestyle": (0, (2, 1)),
        "marker": "o",
        "markersize": 3.5,
    },
    "Nutch, fallbacks": {
        "color": _OLIVE,
        "linestyle": (0, (6, 1, 1, 1, 1, 1)),
        "marker": "^",
        "markersize": 3.5,
    },
    "StormCrawler": {
        "color": _SKY,
        "linestyle": (0, (9, 1)),
        "marker": "s",
        "markersize": 3.5,
    },
}
_STYLES = LINES | POLICIES | ALLOCATIONS
# variants of one estimator: dark to light, with a line style of its own each
VARIANTS = [
    {"color": color, "linestyle": style}
    for color, style in zip(
        ("#440154", _RED, _SKY, _OLIVE),
        ("-", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1))),
        strict=True,
    )
]

# with the markers of aaai20's figure 2
ESTIMATION = {
    "Lemma 3 bound": LINES["true"] | {"marker": "s"},
    "MLE": LINES["MLE"] | {"marker": "^"},
    "moment matching": LINES["moment matching"] | {"marker": "o"},
}


def use_style():
    """Set the style of all figures: readable at column width, colour-blind safe, deterministic as SVG."""
    mpl.rcParams.update(_THEME)


def thin(n, most=400):
    """Indices of at most `most` of n points, the last among them: dense at the start, for linear and logarithmic axes alike."""
    if n <= most:
        return np.arange(n)
    return (
        np.unique(
            np.concatenate(
                [np.geomspace(1, n, most // 2), np.linspace(1, n, most // 2)]
            ).astype(int)
        )
        - 1
    )


def lines(ax, x, curves, **style):
    """Draw each named curve against `x`, in its own colour and line style where it has one. Returns `ax`."""
    shown = thin(len(x))
    for i, (name, y) in enumerate(curves.items()):
        ax.plot(
            np.asarray(x)[shown],
            y[shown],
            **{
                "label": name,
                **_STYLES.get(name, VARIANTS[i % len(VARIANTS)]),
                **style,
            },
        )
    return ax


def bands(ax, x, runs, *, level=0.95):
    """Draw the mean of each named array of runs (shape (n_runs, n)) and the central `level` of the runs around it."""
    shown = thin(len(x))
    tail = (1 - level) / 2
    for name, values in runs.items():
        low, high = np.quantile(
            values[:, shown], (tail, 1 - tail), axis=0, method="nearest"
        )
        ax.fill_between(
            np.asarray(x)[shown],
            low,
            high,
            color=_STYLES[name]["color"],
            alpha=0.15,
            label=f"_{name} band",
        )
    return lines(ax, x, {name: values.mean(axis=0) for name, values in runs.items()})


def errors(ax, x, runs, **style):
    """Draw the mean of each named array of runs (shape (n_runs, n)) with its standard error over runs as bars. Returns `ax`."""
    lines(
        ax,
        x,
        {name: values.mean(axis=0) for name, values in runs.items()},
        marker="o",
        markersize=3,
        **style,
    )
    for line, values in zip(ax.lines[-len(runs) :], runs.values(), strict=True):
        mean, error = (
            values.mean(axis=0),
            values.std(axis=0, ddof=1) / np.sqrt(len(values)),
        )
        ax.vlines(
            x,
            mean - error,
            mean + error,
            color=line.get_color(),
            label=f"_{line.get_label()} error",
        )
    return ax


def boxes(ax, runs):
    """Draw the runs of each named array side by side: a box from the 25th to the 75th percentile, the mean with its standard error.

    runs : dict of arrays of shape (n_runs,), in the colours of POLICIES; the mean of BASELINE goes on as a line. Returns `ax`.
    """
    for i, (name, values) in enumerate(runs.items()):
        values, color = np.asarray(values), POLICIES[name]["color"]
        low, high = np.quantile(values, (0.25, 0.75))
        mean, error = values.mean(), values.std(ddof=1) / np.sqrt(values.size)
        ax.bar(
            i,
            high - low,
            0.7,
            bottom=low,
            color=color,
            alpha=0.35,
            linewidth=0,
            label=f"_{name} quartiles",
        )
        ax.errorbar(
            i, mean, error, color=color, marker="o", markersize=4, capsize=3, label=name
        )
        if name == "BASELINE":
            ax.axhline(mean, label="_BASELINE mean", **POLICIES[name])
    ax.use_sticky_edges = False  # the lower end of a box is not the bottom of the panel
    ax.set_xticks(
        range(len(runs)), list(runs), rotation=40, ha="right", rotation_mode="anchor"
    )
    return ax


def medians(ax, x, runs, styles):
    """Draw the median of each named array of runs (shape (n_runs, n)), with bars from the 25th to the 75th percentile. Returns `ax`.

    The curves are set apart by a few percent of `x`, for logarithmic axes; `styles` has a dictionary for each name.
    """
    for i, (name, values) in enumerate(runs.items()):
        at = np.asarray(x) * 1.07 ** (i - (len(runs) - 1) / 2)
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
        (line,) = ax.plot(at, middle, label=name, markersize=3, **styles[name])
        bars = np.column_stack([low, high, np.full(at.size, np.nan)]).ravel()
        ax.plot(
            np.repeat(at, 3),
            bars,
            color=line.get_color(),
            linewidth=1.0,
            label=f"_{name} quartiles",
        )
    return ax


def timeline(ax, pages, horizon):
    """Draw what happens to each named page up to `horizon`, one page above the other, the first on top. Returns `ax`.

    `pages` holds for each name the arrays (changes, crawls, bits, requests, fresh): times, a text for each crawl, and whether each request
    was served fresh. Shaded is the time when the copy is fresh, from a crawl to the next change; there is no copy before the first crawl.
    """
    for row, (name, (changes, crawls, bits, requests, fresh)) in enumerate(
        pages.items()
    ):
        y = -row
        events = np.sort(np.concatenate([changes, crawls, [horizon]]))
        until = events[np.searchsorted(events, crawls, side="right")]
        label = "copy fresh" if row == 0 else f"_fresh {name}"
        ax.broken_barh(
            list(zip(crawls, until - crawls, strict=True)),
            (y - 0.3, 0.6),
            color=_SKY,
            alpha=0.45,
            linewidth=0,
            label=label,
        )
        ax.plot(
            [0, horizon],
            [y, y],
            color="0.6",
            linewidth=0.8,
            zorder=1,
            label=f"_axis {name}",
        )
        refresh = np.column_stack(
            [
                np.full(crawls.size, y - 0.3),
                np.full(crawls.size, y + 0.3),
                np.full(crawls.size, np.nan),
            ]
        ).ravel()
        ax.plot(
            np.repeat(crawls, 3),
            refresh,
            color=_BLUE,
            linewidth=1.8,
            label="_refresh" if row else "refresh, with its bit",
        )
        for time, bit in zip(crawls, bits, strict=True):
            ax.text(
                time,
                y + 0.32,
                bit,
                ha="center",
                va="bottom",
                color=_BLUE,
                fontsize="small",
            )
        marks = {
            "change": (
                changes,
                y,
                {
                    "marker": "X",
                    "color": _RED,
                    "markeredgecolor": "white",
                    "markersize": 8,
                },
            ),
            "request served fresh": (
                requests[fresh],
                y - 0.17,
                {"marker": "o", "color": "black", "markersize": 5},
            ),
            "request served stale": (
                requests[~fresh],
                y - 0.17,
                {"marker": "o", "color": "black", "fillstyle": "none", "markersize": 5},
            ),
        }
        for kind, (times, height, style) in marks.items():
            ax.plot(
                times,
                np.full(times.size, height),
                linestyle="none",
                clip_on=False,
                label=f"_{kind}" if row else kind,
                **style,
            )
    ax.set(
        xlim=(0, horizon),
        ylim=(-len(pages) + 0.5, 0.65),
        yticks=-np.arange(len(pages)),
        yticklabels=list(pages),
    )
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return ax


def scatter(ax, groups, *, most=700, **style):
    """Draw each named pair (x, y) as a cloud of at most `most` of its points, evenly spaced in their order; rasterised. Returns `ax`."""
    for i, (name, (x, y)) in enumerate(groups.items()):
        shown = np.unique(np.linspace(0, len(x) - 1, most).astype(int))
        look = {
            "color": VARIANTS[i % len(VARIANTS)]["color"],
            "marker": "o^sD"[i % 4],
            "s": 8,
            "linewidth": 0,
            "alpha": 0.6,
        }
        ax.scatter(
            np.asarray(x)[shown],
            np.asarray(y)[shown],
            **{"label": name, "rasterized": True, **look, **style},
        )
    return ax


def rates(ax, optimal, empirical, *, color, most=1000):
    """Draw the crawl rate of each page against the optimal one, with the diagonal; at most `most` pages, evenly spaced in their order.

    color : one for all; or an array, a number from 0 to 1 for each page, dark to light. Returns the cloud, for a colour bar.
    """
    optimal, empirical = np.ravel(optimal), np.ravel(empirical)
    shown = np.unique(np.linspace(0, optimal.size - 1, most).astype(int))
    look = (
        {"color": color}
        if isinstance(color, str)
        else {"c": np.ravel(color)[shown], "cmap": "viridis", "vmin": 0.0, "vmax": 1.0}
    )
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
    ax.axline((0.0, 0.0), slope=1.0, zorder=3, label="_optimal", **LINES["true"])
    return cloud


def bars(ax, values):
    """Draw named numbers from 0 to 1, such as freshness by rule, as bars with the number at their end. Returns `ax`.

    values : dict of float, the first on top; "the log" has a colour of its own.
    """
    drawn = ax.barh(
        list(values),
        list(values.values()),
        color=[_ORANGE if name == "the log" else _BLUE for name in values],
        linewidth=0,
    )
    for name, patch in zip(values, drawn, strict=True):
        patch.set_label(name)
    ax.bar_label(drawn, fmt="%.3f", padding=3)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.12), xticks=np.linspace(0, 1, 6), xlabel="freshness")
    ax.tick_params(axis="y", length=0)
    return ax


def calibration(ax, curves, *, least=20):
    """Draw the share of crawls that found a change against the probability foretold, by name, with the diagonal. Returns `ax`.

    curves : dict of arrays, shape (n_bins, 3): mean foretold probability, share, number of crawls, as in `crawl_log.Backtest`. The bars
        are standard errors, as if crawls were independent; bins of fewer than `least` crawls are left out.
    """
    for i, (name, bins) in enumerate(curves.items()):
        p, share, n = np.asarray(bins)[np.asarray(bins)[:, 2] >= least].T
        color, error = _PALETTE[i], np.sqrt(share * (1 - share) / n)
        ax.plot(
            p,
            share,
            color=color,
            marker="o^sDvP"[i % 6],
            markersize=4,
            linewidth=1.0,
            label=name,
        )
        ax.vlines(
            p,
            share - error,
            share + error,
            color=color,
            linewidth=1.0,
            label=f"_{name} error",
        )
    ax.plot([0, 1], [0, 1], label="_diagonal", **LINES["true"])
    ax.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        xlabel="foretold probability of a change",
        ylabel="share that had changed",
    )
    ax.legend()
    return ax


def quantiles(ax, values):
    """Q–Q plot of `values` against the exponential law of the same mean, with the diagonal."""
    expected, ordered = scipy.stats.probplot(values, dist="expon", fit=False)
    shown = (
        len(values) - 1 - thin(len(values))
    )  # dense at the far end, where the points lie apart
    ax.scatter(
        expected[shown] * np.mean(values),
        ordered[shown],
        s=8,
        color=_BLUE,
        linewidth=0,
        label="_quantiles",
        rasterized=True,
    )
    top = max(expected[-1] * np.mean(values), ordered[-1])
    ax.plot([0, top], [0, top], label="_diagonal", **LINES["true"])
    ax.set_xlim(-0.03 * top, 1.03 * top)
    return ax


def winners(ax, x, y, index, names):
    """Map of who is best: `index` (shape (x.size, y.size)) into `names`, each in its own colour, with a legend of those who are."""
    colors = mpl.colors.ListedColormap([LINES[name]["color"] for name in names])
    ax.pcolormesh(
        x,
        y,
        index.T,
        cmap=colors,
        vmin=-0.5,
        vmax=len(names) - 0.5,
        alpha=0.6,
        rasterized=True,
    )
    handles = [
        mpl.patches.Patch(color=LINES[n]["color"], alpha=0.6, label=n)
        for i, n in enumerate(names)
        if (index == i).any()
    ]
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.2),
        ncols=len(handles),
        handlelength=1.2,
        columnspacing=1.0,
    )
    return ax


def points(ax, marked):
    """Mark and name single points: a dictionary of (x, y) by name."""
    for i, (name, (x, y)) in enumerate(marked.items()):
        ax.plot(
            x,
            y,
            marker="o",
            color="black",
            markersize=4,
            clip_on=False,
            label=f"_{name}",
        )
        ax.annotate(
            name,
            (x, y),
            xytext=(4, -12 if i % 2 else 4),
            textcoords="offset points",
            color="black",
        )
    return ax


def drawn(figure):
    """The data of a figure's lines, bands, points, meshes, images and patches, in single precision; by panel, number and label."""
    arrays = {}
    panels = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    for panel, ax in enumerate(panels):
        artists = [(line, line.get_xydata()) for line in ax.lines]
        for collection in ax.collections:
            if isinstance(collection, mpl.collections.QuadMesh):
                artists += [
                    (collection, np.ma.filled(collection.get_array(), np.nan)),
                    (collection, collection.get_coordinates()),
                ]
            elif isinstance(collection, mpl.collections.PathCollection):
                artists.append(
                    (collection, np.ma.filled(collection.get_offsets(), np.nan))
                )
            else:
                artists += [
                    (collection, path.vertices) for path in collection.get_paths()
                ]
        artists += [
            (image, np.ma.filled(image.get_array(), np.nan)) for image in ax.images
        ]
        artists += [
            (patch, patch.get_patch_transform().transform(patch.get_path().vertices))
            for patch in ax.patches
        ]
        for number, (artist, values) in enumerate(artists):
            arrays[
                f"{chr(ord('a') + panel)}{number:02d} {(artist.get_label() or '').lstrip('_')}"
            ] = np.asarray(values, dtype=np.float32)
    return arrays


def save(figure, ledger, output_dir, *, data=()):
    """Save a figure as .png and .svg, what it draws as .npz, and its record as .json, under ``output_dir/<paper>/``.

    Does nothing when `output_dir` is None. Each file is whole or absent.

    Parameters
    ----------
    figure : matplotlib Figure
    ledger : Ledger
        Its figure id names the files; its parameters and claims go into the record.
    output_dir : path or None
    data : sequence of traces
        The data used; their names and checksums go into the record.
    """
    if output_dir is None:
        return
    stem = Path(output_dir) / ledger.figure
    stem.parent.mkdir(parents=True, exist_ok=True)
    arrays = drawn(figure)
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.shape}\n".encode() + array.tobytes())
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    record = {
        "figure": ledger.figure,
        "parameters": ledger.parameters,
        "claims": ledger.claims,
        "data": {trace.name: trace.sha256 for trace in data},
        "arrays": digest.hexdigest(),
        "versions": {"python": ".".join(platform.python_version_tuple()[:2])}
        | {
            name: version(name)
            for name in ("paperlib", "numpy", "scipy", "numba", "matplotlib")
        },
    }
    for suffix, metadata in ((".png", None), (".svg", {"Date": None})):
        image = io.BytesIO()
        figure.savefig(image, format=suffix[1:], metadata=metadata)
        write_atomic(stem.with_suffix(suffix), image.getvalue())
    write_atomic(stem.with_suffix(".npz"), packed.getvalue())
    write_atomic(
        stem.with_suffix(".json"),
        json.dumps(record, indent=1, ensure_ascii=False) + "\n",
    )
    plt.close(figure)
