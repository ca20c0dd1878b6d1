"""Sliders for Jupyter: estimators of one page's change rate, and how a few pages share a bandwidth."""

import io
from functools import cache
from operator import attrgetter
from types import SimpleNamespace

import ipywidgets as widgets
import numpy as np
from IPython.display import display
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image

from paperlib import allocation, estimators, freshness, schedules
from paperlib.priors import FakeIntervals, grid_posterior
from paperlib.processes import History, simulate_history
from paperlib.repro import plotting

# what the first tab offers: an estimator for a crawl rate and exponents, or a function of a History that gives a path
ESTIMATORS = {
    "MLE": lambda **at: estimators.mle_path,
    "Naive": lambda crawl_rate, **at: estimators.Naive(crawl_rate),
    "LLN": lambda crawl_rate, **at: estimators.LLN(crawl_rate),
    "SA": lambda crawl_rate, sa_step, **at: estimators.SA(crawl_rate, step=sa_step),
    "SAM": lambda crawl_rate, sam_step, sam_momentum, **at: estimators.SAM(
        crawl_rate, step=sam_step, momentum=sam_momentum
    ),
    "GammaFilter": lambda **at: estimators.GammaFilter(),
}
# and the second: a rule that spends a bandwidth
POLICIES = {
    "uniform": allocation.uniform,
    "proportional": allocation.proportional,
    "optimal, Poisson": allocation.optimal_poisson,
    "optimal, interval": allocation.optimal_interval,
}
_N_RUNS, _N_DRAWN, _MOST_CRAWLS = 50, 3, 400
_N_SLOTS = 60
_RANGE = 16.0  # estimates are shown from 1/16 to 16 times the true rate; what is beyond runs along the edge


# ---------------------------------------------------------------- what is shown


def estimates(
    *,
    names,
    change_rate,
    crawl_rate,
    n_crawls,
    seed,
    prior_changed,
    prior_unchanged,
    **exponents,
):
    """The estimates of a page's change rate in 50 runs of Poisson crawls; more crawls continue the same runs.

    names : keys of ESTIMATORS. Rates in 1/time, the prior's two intervals (`FakeIntervals`) in time; n_crawls : int, of which 400 fit.
    exponents : sa_step, sam_step, sam_momentum.

    Returns a namespace: history and paths (`estimators.paths`) of all runs; rmse by name over the true rate, with that of the posterior
    mode; of the first run the mle, its likelihood interval, the posterior mode, and on a grid of `rate` the densities of prior and
    posterior over their peaks; degenerate, a text about runs that have no MLE.
    """
    longest = simulate_history(
        change_rate,
        crawl_rate=crawl_rate,
        n_crawls=max(n_crawls, _MOST_CRAWLS),
        n_runs=_N_RUNS,
        rng=seed,
    )
    history = History(longest.interval[:, :n_crawls], longest.changed[:, :n_crawls])
    first = History(history.interval[0], history.changed[0])
    law = FakeIntervals(prior_changed, prior_unchanged)
    modes = law.estimate(history)
    with np.errstate(all="ignore"):  # with some exponents SAM diverges
        paths = estimators.paths(
            history,
            **{
                name: ESTIMATORS[name](crawl_rate=crawl_rate, **exponents)
                for name in names
            },
        )
        errors = estimators.rmse(
            paths | {"posterior mode": modes[:, np.newaxis]}, change_rate
        )
    # what the panel shows, and far enough beyond to know the peaks
    rate = np.union1d(
        change_rate * np.geomspace(1 / _RANGE, _RANGE, 300),
        np.geomspace(1e-6, 1e6, 121),
    )
    prior = law.density(rate)
    posterior = grid_posterior(first, rate, prior)
    n_changed = history.changed.sum(axis=-1)
    kinds = {
        "no change:\nMLE 0": (n_changed == 0).sum(),
        "nothing but changes:\nMLE inf": (n_changed == n_crawls).sum(),
    }
    return SimpleNamespace(
        change_rate=change_rate, history=history, paths=paths, rmse={name: error[-1] / change_rate for name, error in errors.items()},
        mle=estimators.mle_path(first)[-1], interval=estimators.likelihood_interval(first), mode=modes[0],
        rate=rate, prior=prior / prior.max(), posterior=posterior / posterior.max(),
        degenerate="\n".join(f"{n} of {_N_RUNS} runs saw\n{kind}" for kind, n in kinds.items() if n),
    )  # fmt: skip


def plan(*, policy, n_pages, bandwidth, change_spread, importance_spread, seed):
    """How lognormal pages of median 1 share a bandwidth, and a low-discrepancy schedule; more pages keep those there are.

    policy : key of POLICIES. n_pages : int. bandwidth : 1/time. Spreads are standard deviations of the logarithm.

    Returns a namespace: policy; by page, the slowest first, change_rate, importance, crawl_rate, its freshness at equal intervals (fresh)
    and in the schedule (scheduled, with fresh copies at its start); freshness over pages of every policy; the page of each of 60 slots,
    which are 1 / bandwidth apart; and probability, shape (n_pages, n_times), that a copy is fresh from the start to the last slot.
    """
    draws = np.random.default_rng(seed).standard_normal((n_pages, 2))
    change_rate, importance = np.exp(
        draws[draws[:, 0].argsort()] * (change_spread, importance_spread)
    ).T
    rates = {
        name: rule(change_rate, importance, bandwidth).crawl_rate
        for name, rule in POLICIES.items()
    }
    fresh = {
        name: freshness.interval(change_rate, rate) for name, rate in rates.items()
    }
    slots = schedules.low_discrepancy(rates[policy], _N_SLOTS)
    number = np.arange(_N_SLOTS)
    crawled = np.maximum.accumulate(
        np.where(slots == np.arange(n_pages)[:, np.newaxis], number + 1, 0), axis=1
    )
    elapsed = (number - np.insert(crawled, 0, 0, axis=1)[:, :-1])[..., np.newaxis] + [
        0,
        *(np.arange(8) + 0.5) / 8,
    ]
    probability = np.exp(
        -change_rate[:, np.newaxis, np.newaxis] / bandwidth * elapsed
    )  # at the start of each slot, and within
    return SimpleNamespace(
        policy=policy, change_rate=change_rate, importance=importance, crawl_rate=rates[policy], fresh=fresh[policy],
        scheduled=probability[..., 0].mean(axis=1) * freshness.interval(change_rate, bandwidth),
        freshness={name: freshness.mean(value, importance).item() for name, value in fresh.items()},
        slots=slots, probability=probability[..., 1:].reshape(n_pages, -1),
    )  # fmt: skip


# ---------------------------------------------------------------- how it is drawn


class Picture:
    """A figure whose frame is drawn once, so that a redraw costs no more than what moves.

    frame : function of a Figure that makes its axes and returns them. draw : function of those axes and of what to show.
    """

    def __init__(self, frame, draw):
        self.figure, self._draw = (
            Figure(figsize=(9.0, 4.7), dpi=100, layout="none"),
            draw,
        )
        self._canvas = FigureCanvasAgg(self.figure)
        self._axes = frame(self.figure)
        self._canvas.draw()
        self._frame = self._canvas.copy_from_bbox(self.figure.bbox)
        self._still = {artist for ax in self._axes for artist in ax.get_children()}

    def moving(self):
        """The artists that show something, lowest first."""
        return sorted(
            (a for ax in self._axes for a in ax.get_children() if a not in self._still),
            key=attrgetter("zorder"),
        )

    def png(self, shown):
        """Draw what is to be shown in place of what was; returns the bytes of a PNG file."""
        for artist in self.moving():
            artist.remove()
        self._draw(self._axes, shown)
        self._canvas.restore_region(self._frame)
        for artist in self.moving():
            self.figure.draw_artist(artist)
        return _png(np.asarray(self._canvas.buffer_rgba())[..., :3])


def _png(pixels):
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "png", compress_level=1)
    return file.getvalue()


def estimates_frame(figure):
    """The axes for `draw_estimates`."""
    place = {"left": 0.08, "right": 0.99, "bottom": 0.11, "top": 0.92, "wspace": 0.04}
    paths, beliefs, notes = axes = figure.subplots(
        1, 3, width_ratios=(5, 1.3, 2.1), gridspec_kw=place
    )
    for ax in (paths, beliefs):
        ax.set(yscale="log", ylim=(1 / _RANGE, _RANGE))
        ax.set_yticks(
            _RANGE ** np.linspace(-1, 1, 5),
            ["1/16", "1/4", "1", "4", "16"] if ax is paths else [""] * 5,
        )
        ax.axhline(1.0, **plotting.LINES["true"])
        ax.minorticks_off()
    paths.set(
        xscale="log",
        xlim=(0.9, _MOST_CRAWLS * 1.35),
        xlabel="crawls",
        ylabel="estimate / true change rate",
    )
    paths.set_xticks([1, 10, 100, _MOST_CRAWLS], ["1", "10", "100", str(_MOST_CRAWLS)])
    paths.minorticks_off()
    beliefs.set(xlim=(0, 1.1), xticks=[], xlabel="density / its peak")
    notes.axis("off")
    return axes


def draw_estimates(axes, found):
    """Paths of three runs, the first bold, with its MLE and interval at the end; prior and posterior of the first run; errors of all."""
    paths, beliefs, notes = axes
    crawls = np.arange(1, found.history.changed.shape[-1] + 1)

    def seen(rate):
        return np.clip(np.divide(rate, found.change_rate), 1 / _RANGE, _RANGE)

    for run in reversed(range(_N_DRAWN)):
        look = {"linewidth": 0.9, "alpha": 0.45} if run else {"linewidth": 2.0}
        plotting.lines(
            paths,
            crawls,
            {name: seen(path[run]) for name, path in found.paths.items()},
            **look,
        )
    handles = list(paths.lines[len(paths.lines) - len(found.paths) :])
    end, color = crawls[-1] * 1.12, plotting.LINES["MLE"]["color"]
    paths.vlines(end, *seen(found.interval), color=color, linewidth=5, alpha=0.45)
    paths.plot(end, seen(found.mle), "o", color=color)
    height, color = found.rate / found.change_rate, plotting.LINES["prior"]["color"]
    handles += beliefs.plot(1.0, seen(found.mode), "D", color=color, clip_on=False)
    handles += [
        beliefs.fill_betweenx(
            height, 0, found.posterior, color=color, alpha=0.45, linewidth=0
        )
    ]
    handles += beliefs.plot(found.prior, height, **plotting.LINES["prior"])
    labels = [f"{name}: {error:.3g}" for name, error in found.rmse.items()] + [
        "posterior",
        "prior",
    ]
    notes.legend(
        handles,
        labels,
        loc="upper left",
        title=f"RMSE / true rate,\n{_N_RUNS} runs",
        alignment="left",
        borderpad=0,
    )
    low, high = found.interval
    text = f"Bold: MLE {found.mle:.3g}, 95% interval {low:.3g} to {high:.3g}, posterior mode {found.mode:.3g}"
    paths.text(
        0, 1.03, f"{text}; true rate {found.change_rate:.3g}", transform=paths.transAxes
    )
    notes.text(0, 0, found.degenerate, transform=notes.transAxes, fontweight="bold")


def plan_frame(figure):
    """The axes for `draw_plan`."""
    place = {
        "left": 0.16,
        "right": 0.98,
        "bottom": 0.1,
        "top": 0.93,
        "wspace": 0.07,
        "hspace": 0.45,
    }
    grid = figure.add_gridspec(
        2, 3, width_ratios=(5, 1.4, 1.4), height_ratios=(4, 1.1), **place
    )
    schedule, rates, fresh, policies = axes = [
        figure.add_subplot(grid[at])
        for at in ((0, 0), (0, 1), (0, 2), (1, slice(None)))
    ]
    schedule.set(
        xlim=(0, _N_SLOTS),
        xlabel="slot",
        title="crawls, and probability that the copy is fresh",
    )
    rates.set(xlim=(0, 1.4), xticks=[], title="crawl rate")
    fresh.set(
        xlim=(0, 1.05),
        xticks=[0, 0.5, 1],
        xlabel="dots: this schedule",
        title="freshness",
    )
    for ax in (schedule, rates, fresh):
        ax.set(ylim=(0, 1), yticks=[])
        ax.spines["left"].set_visible(False)
    schedule.text(-1, 1.02, "change rate,\nimportance", ha="right")
    policies.set(
        xlim=(0, 1.05),
        ylim=(len(POLICIES) - 0.5, -0.5),
        xlabel="freshness of all pages, weighted by importance",
    )
    policies.set_yticks(range(len(POLICIES)), list(POLICIES))
    return axes


def draw_plan(axes, found):
    """The schedule page by page, the slowest on top; their crawl rates and freshness; the freshness of every policy."""
    schedule, rates, fresh, policies = axes
    color, n = plotting.ALLOCATIONS[found.policy]["color"], found.change_rate.size
    shades, row = (
        LinearSegmentedColormap.from_list("fresh", ["white", color]),
        1 - (np.arange(n) + 0.5) / n,
    )
    schedule.imshow(
        found.probability,
        cmap=shades,
        vmin=0,
        vmax=1.25,
        aspect="auto",
        extent=(0, _N_SLOTS, 0, 1),
        interpolation="nearest",
    )
    schedule.hlines(np.arange(1, n) / n, 0, _N_SLOTS, color="white", linewidth=3)
    at = row[found.slots]
    schedule.vlines(
        np.arange(1, _N_SLOTS + 1),
        at - 0.4 / n,
        at + 0.4 / n,
        color="black",
        linewidth=1.5,
    )
    length = found.crawl_rate / found.crawl_rate.max()
    rates.hlines(row, 0, length, color=color, linewidth=120 / n)
    fresh.hlines(row, 0, found.fresh, color=color, linewidth=120 / n)
    fresh.plot(found.scheduled, row, "o", color="black", markersize=4)
    for i in range(n):
        schedule.text(
            -1,
            row[i],
            f"{found.change_rate[i]:.2g}, {found.importance[i]:.2g}",
            ha="right",
            va="center",
        )
        rates.text(
            length[i] + 0.04,
            row[i],
            f"{found.crawl_rate[i]:.2g}" if found.crawl_rate[i] else "0: not worth it",
            va="center",
        )
    for i, (name, value) in enumerate(found.freshness.items()):
        chosen = name == found.policy
        policies.hlines(
            i,
            0,
            value,
            color=plotting.ALLOCATIONS[name]["color"],
            linewidth=9,
            alpha=1.0 if chosen else 0.4,
        )
        policies.text(
            value + 0.01,
            i,
            f"{value:.3f}",
            va="center",
            fontweight="bold" if chosen else "normal",
        )


# ---------------------------------------------------------------- widgets


def _slider(text, value, low, high, *, kind=widgets.IntSlider, **more):
    return kind(
        value=value,
        min=low,
        max=high,
        description=text,
        style={"description_width": "10em"},
        layout={"width": "auto"},
        **more,
    )


def _log(text, value=1.0):
    return _slider(
        text, value, -3, 3, kind=widgets.FloatLogSlider, step=0.05, readout_format=".3g"
    )


def _number(text, value, low, high):
    return _slider(text, value, low, high, kind=widgets.FloatSlider, step=0.05)


def _tab(choice, sliders, picture, shown):
    """A choice above sliders above the picture of what `shown` makes of the sliders' values, redrawn when anything moves."""
    image = widgets.Image(layout={"max_width": "100%", "object_fit": "contain"})

    def redraw(_):
        image.value = picture.png(
            shown(**{name: slider.value for name, slider in sliders.items()})
        )

    for control in (*choice, *sliders.values()):
        control.observe(redraw, "value")
    redraw(None)
    grid = widgets.GridBox(
        list(sliders.values()),
        layout={"grid_template_columns": "repeat(auto-fill, minmax(330px, 1fr))"},
    )
    return widgets.VBox(
        [widgets.HBox(choice, layout={"flex_flow": "row wrap"}), grid, image]
    )


def estimators_tab(*, seed=1):
    """Widget: estimates of a page's change rate against the number of crawls, and what a prior adds."""
    look = {"indent": False, "layout": {"width": "auto", "margin": "0 1.5em 0 0"}}
    boxes = {
        name: widgets.Checkbox(name in ("MLE", "LLN", "SAM"), description=name, **look)
        for name in ESTIMATORS
    }
    sliders = {
        "change_rate": _log("change rate"),
        "crawl_rate": _log("crawl rate"),
        "n_crawls": _slider("crawls", 100, 1, _MOST_CRAWLS),
        "seed": _slider("seed", seed, 0, max(99, seed)),
        "prior_changed": _log("prior changed"),
        "prior_unchanged": _log("prior unchanged"),
        "sa_step": _number("SA step", 0.75, 0.1, 2.0),
        "sam_step": _number("SAM step", 1.3, 0.1, 2.0),
        "sam_momentum": _number("SAM momentum", 0.75, 0.1, 2.0),
    }

    def shown(**values):
        return estimates(
            names=[name for name, box in boxes.items() if box.value], **values
        )

    return _tab(
        list(boxes.values()), sliders, Picture(estimates_frame, draw_estimates), shown
    )


def allocation_tab(*, seed=1):
    """Widget: how a few pages share a bandwidth under each policy, and a schedule of it."""
    policy = widgets.ToggleButtons(
        options=list(POLICIES),
        value="optimal, interval",
        style={"button_width": "auto"},
    )
    sliders = {
        "n_pages": _slider("pages", 8, 3, 12),
        "bandwidth": _log("bandwidth", 10.0),
        "change_spread": _number("change spread", 2.0, 0.0, 3.0),
        "importance_spread": _number("importance spread", 0.5, 0.0, 3.0),
        "seed": _slider("seed", seed, 0, max(99, seed)),
    }
    return _tab(
        [policy],
        sliders,
        Picture(plan_frame, draw_plan),
        lambda **values: plan(policy=policy.value, **values),
    )


@cache
def _tabs():
    # of a fixed name, so that a stored notebook is the same however often it is run
    return widgets.Tab(model_id="paperlib-explore")


def show(*, seed=1):
    """Display both tabs; where widgets cannot run, their pictures."""
    tabs = _tabs()
    tabs.children = [estimators_tab(seed=seed), allocation_tab(seed=seed)]
    tabs.titles = ["Estimators", "Allocation"]
    pictures = [
        np.asarray(Image.open(io.BytesIO(tab.children[-1].value)))
        for tab in tabs.children
    ]
    display(
        tabs._repr_mimebundle_() | {"image/png": _png(np.vstack(pictures))}, raw=True
    )
