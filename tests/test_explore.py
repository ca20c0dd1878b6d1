"""Sliders without a browser: what is shown is what the library says, at every end of every slider. `make test-browser` moves real ones."""

import io
import itertools

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from PIL import Image

from paperlib import estimators, freshness, schedules
from paperlib.priors import FakeIntervals
from paperlib.processes import History
from paperlib.repro import explore, plotting

ALL = tuple(explore.ESTIMATORS)
ESTIMATES = {
    "names": ALL, "change_rate": 1.0, "crawl_rate": 0.7, "n_crawls": 60, "seed": 1, "prior_changed": 0.5, "prior_unchanged": 2.0,
    "sa_step": 0.75, "sam_step": 1.3, "sam_momentum": 0.75,
}  # fmt: skip
PLAN = {
    "policy": "optimal, interval",
    "n_pages": 8,
    "bandwidth": 6.0,
    "change_spread": 1.5,
    "importance_spread": 0.5,
    "seed": 1,
}


@pytest.fixture(autouse=True)
def _style():
    with mpl.rc_context():
        plotting.use_style()
        yield


def estimates(**more):
    return explore.estimates(**ESTIMATES | more)


def plan(**more):
    return explore.plan(**PLAN | more)


@pytest.fixture(scope="module")
def pictures():
    with mpl.rc_context():
        plotting.use_style()
        return explore.Picture(
            explore.estimates_frame, explore.draw_estimates
        ), explore.Picture(explore.plan_frame, explore.draw_plan)


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)))


# ---- what is shown


def test_estimates_are_those_of_the_library():
    found = estimates(sa_step=0.9, sam_step=1.1, sam_momentum=0.6)
    own = {
        "Naive": estimators.Naive(0.7), "LLN": estimators.LLN(0.7), "SA": estimators.SA(0.7, step=0.9),
        "SAM": estimators.SAM(0.7, step=1.1, momentum=0.6), "GammaFilter": estimators.GammaFilter(), "MLE": estimators.mle_path,
    }  # fmt: skip
    assert found.history.shape == (50,)
    for name, path in estimators.paths(found.history, **own).items():
        np.testing.assert_array_equal(found.paths[name], path, err_msg=name)
        assert found.rmse[name] == pytest.approx(
            np.sqrt(np.mean((path[:, -1] - 1.0) ** 2))
        )
    first = History(found.history.interval[0], found.history.changed[0])
    assert found.mle == pytest.approx(estimators.mle(first), rel=1e-9)
    assert found.interval == estimators.likelihood_interval(first)
    assert found.mode == pytest.approx(
        FakeIntervals(0.5, 2.0).estimate(first), rel=1e-9
    )
    assert found.degenerate == ""


def test_the_posterior_is_prior_times_likelihood_over_its_peak():
    found = estimates()
    np.testing.assert_array_equal(found.prior.max(), 1.0)
    x = found.rate[:, None] * found.history.interval[0]
    weight = np.where(found.history.changed[0], -np.expm1(-x), np.exp(-x)).prod(
        axis=1
    ) * FakeIntervals(0.5, 2.0).density(found.rate)
    np.testing.assert_allclose(found.posterior, weight / weight.max(), atol=1e-12)
    assert found.rate[found.posterior.argmax()] == pytest.approx(
        found.mode, rel=0.02
    )  # the grid is that fine


def test_more_crawls_continue_the_same_runs_and_seeds_differ():
    few, many = estimates(n_crawls=20), estimates(n_crawls=400)
    for name in ALL:
        np.testing.assert_allclose(
            few.paths[name], many.paths[name][:, :20], rtol=1e-12, err_msg=name
        )
    assert (estimates(seed=2).history.interval != estimates().history.interval).all()


def test_only_ratios_count():
    one = estimates()
    other = estimates(
        change_rate=10.0, crawl_rate=7.0, prior_changed=0.05, prior_unchanged=0.2
    )
    assert other.rmse == pytest.approx(one.rmse, rel=1e-9)


def test_runs_without_an_mle_are_told_of():
    never = estimates(change_rate=1e-3, crawl_rate=1e3)
    assert never.degenerate == "50 of 50 runs saw\nno change:\nMLE 0"
    assert (never.mle, never.interval[0]) == (0.0, 0.0)
    always = estimates(change_rate=1e3, crawl_rate=1e-3)
    assert always.degenerate == "50 of 50 runs saw\nnothing but changes:\nMLE inf"
    assert (always.mle, always.interval[1], always.rmse["MLE"]) == (
        np.inf,
        np.inf,
        np.inf,
    )
    assert 0 < always.mode < np.inf
    some = estimates(n_crawls=2)
    counts = some.history.changed.sum(axis=-1)
    assert some.degenerate == (
        f"{(counts == 0).sum()} of 50 runs saw\nno change:\nMLE 0\n{(counts == 2).sum()} of 50 runs saw\nnothing but changes:\nMLE inf"
    )


@pytest.mark.parametrize("policy", explore.POLICIES)
def test_plans_are_those_of_the_library(policy):
    found = plan(policy=policy)
    best = explore.POLICIES[policy](found.change_rate, found.importance, 6.0).crawl_rate
    np.testing.assert_array_equal(found.crawl_rate, best)
    assert best.sum() == pytest.approx(6.0)
    np.testing.assert_array_equal(
        found.fresh, freshness.interval(found.change_rate, best)
    )
    assert found.freshness[policy] == pytest.approx(
        (found.fresh * found.importance).sum() / found.importance.sum()
    )
    assert max(found.freshness, key=found.freshness.get) == "optimal, interval"
    np.testing.assert_array_equal(found.slots, schedules.low_discrepancy(best, 60))


@pytest.mark.parametrize(
    ("policy", "bandwidth"),
    [("uniform", 6.0), ("optimal, interval", 0.5), ("optimal, Poisson", 40.0)],
)
def test_freshness_in_the_schedule_is_that_of_its_crawls(policy, bandwidth):
    found = plan(policy=policy, bandwidth=bandwidth)
    end = 60 / bandwidth
    for page, rate in enumerate(found.change_rate):
        times = (np.flatnonzero(found.slots == page) + 1) / bandwidth
        expected = -np.expm1(-rate * end) / rate / end
        if times.size:
            gaps = np.diff(times, prepend=0.0)
            expected = freshness.crawled(
                History(gaps, np.zeros(gaps.size)), rate, horizon=end
            )
        assert found.scheduled[page] == pytest.approx(expected, rel=1e-12)
        moments = (np.arange(480) + 0.5) / 480 * end
        last = np.concatenate([[0.0], times])[np.searchsorted(times, moments)]
        np.testing.assert_allclose(
            found.probability[page], np.exp(-rate * (moments - last)), rtol=1e-9
        )


def test_more_pages_keep_those_there_are():
    few, many = plan(n_pages=3), plan(n_pages=12)
    assert set(few.change_rate) < set(many.change_rate)
    assert set(few.importance) < set(many.importance)
    assert (np.diff(many.change_rate) > 0).all()
    np.testing.assert_array_equal(
        plan(change_spread=0.0, importance_spread=0.0).crawl_rate, 0.75
    )
    np.testing.assert_allclose(
        np.log(plan(change_spread=3.0).change_rate), 2 * np.log(plan().change_rate)
    )
    np.testing.assert_allclose(
        np.log(plan(importance_spread=1.0).importance), 2 * np.log(plan().importance)
    )


# ---- how it is drawn


def test_a_redraw_leaves_nothing_of_the_one_before(pictures):
    for picture, shown, other in zip(
        pictures,
        (estimates(), plan()),
        (estimates(n_crawls=5), plan(n_pages=12)),
        strict=True,
    ):
        first = picture.png(shown)
        number = len(picture.moving())
        assert picture.png(other) != first
        assert picture.png(shown) == first
        assert len(picture.moving()) == number


def test_estimates_are_drawn_in_their_colours_and_within_the_panel(pictures):
    picture, _ = pictures
    found = estimates(change_rate=30.0, crawl_rate=0.5, n_crawls=30)
    picture.png(found)
    paths = picture.figure.axes[0]
    for name in ALL:
        bold = [line for line in paths.lines if line.get_label() == name][-1]
        assert bold.get_color() == plotting.LINES[name]["color"]
        np.testing.assert_allclose(
            bold.get_ydata(), np.clip(found.paths[name][0] / 30.0, 1 / 16, 16)
        )
    legend = [
        text.get_text() for text in picture.figure.axes[2].get_legend().get_texts()
    ]
    assert legend == [f"{name}: {value:.3g}" for name, value in found.rmse.items()] + [
        "posterior",
        "prior",
    ]
    assert found.degenerate in [
        text.get_text() for text in picture.figure.axes[2].texts
    ]


def test_plans_are_drawn_in_the_colour_of_the_policy(pictures):
    _, picture = pictures
    for policy, style in plotting.ALLOCATIONS.items():
        found = plan(policy=policy, bandwidth=0.5)
        picture.png(found)
        schedule, rates, fresh, policies = picture.figure.axes
        np.testing.assert_array_equal(schedule.images[0].get_array(), found.probability)
        for ax, values in (
            (rates, found.crawl_rate / found.crawl_rate.max()),
            (fresh, found.fresh),
        ):
            (bars,) = ax.collections
            np.testing.assert_array_equal(bars.get_colors(), [to_rgba(style["color"])])
            np.testing.assert_allclose(
                [path[:, 0] for path in bars.get_segments()],
                np.stack([0 * values, values], axis=1),
            )
        crawls = schedule.collections[-1].get_segments()
        height = [1 - (page + 0.5) / 8 for page in found.slots]
        np.testing.assert_allclose(
            [path.mean(axis=0) for path in crawls],
            np.stack([np.arange(1, 61), height], axis=1),
        )
        assert [text.get_text() for text in policies.texts] == [
            f"{value:.3f}" for value in found.freshness.values()
        ]
        never = [text.get_text().startswith("0:") for text in rates.texts]
        assert never == (found.crawl_rate == 0).tolist()
        assert any(never) == policy.startswith("optimal")


def test_every_rule_and_estimator_has_a_style_of_its_own():
    assert list(explore.POLICIES) == list(plotting.ALLOCATIONS)
    assert set(explore.ESTIMATORS) | {"prior"} <= set(plotting.LINES)
    for one, other in itertools.combinations(plotting.ALLOCATIONS.values(), 2):
        assert (
            np.abs(np.subtract(to_rgba(one["color"]), to_rgba(other["color"]))).max()
            > 0.1
        )
        assert one["linestyle"] != other["linestyle"]


def test_extremes_of_all_sliders_together(pictures):
    draw, _ = pictures
    ends = itertools.product(
        (1e-3, 1e3), (1e-3, 1e3), (1, 400), ((1e-3, 1e3, 0.1), (1e3, 1e-3, 2.0))
    )
    for change_rate, crawl_rate, n_crawls, (changed, unchanged, step) in ends:
        found = estimates(
            change_rate=change_rate, crawl_rate=crawl_rate, n_crawls=n_crawls, prior_changed=changed, prior_unchanged=unchanged,
            sa_step=step, sam_step=2.1 - step, sam_momentum=step,
        )  # fmt: skip
        assert np.isfinite(found.posterior).all()
        assert pixels(draw.png(found)).shape == (470, 900, 3)


@pytest.mark.parametrize("policy", explore.POLICIES)
def test_extremes_of_all_plans(policy, pictures):
    _, draw = pictures
    for (n_pages, change), bandwidth, importance in itertools.product(
        ((3, 0.0), (12, 3.0)), (1e-3, 1e3), (0.0, 3.0)
    ):
        found = plan(
            policy=policy,
            n_pages=n_pages,
            bandwidth=bandwidth,
            change_spread=change,
            importance_spread=importance,
        )
        assert found.crawl_rate.sum() == pytest.approx(bandwidth)
        assert pixels(draw.png(found)).shape == (470, 900, 3)


# ---- widgets


def controls(tab):
    choice, grid, image = tab.children
    return choice.children, grid.children, image


@pytest.mark.parametrize("tab", [explore.estimators_tab, explore.allocation_tab])
def test_every_slider_redraws_at_both_ends_and_comes_back(tab):
    choice, sliders, image = controls(tab(seed=3))
    for box in choice:
        if box.value is False:
            before = image.value
            box.value = True
            assert image.value != before, box.description
            box.value = box.description in (
                "SA",
                "SAM",
            )  # which have sliders of their own
    for slider in sliders:
        before, value = image.value, slider.value
        log = isinstance(slider.value, float) and slider.min == -3
        ends = (10.0**slider.min, 10.0**slider.max) if log else (slider.min, slider.max)
        shown = set()
        for end in ends:
            slider.value = end
            shown.add(image.value)
        assert len(shown | {before}) == 3, slider.description
        slider.value = value
        assert image.value == before, slider.description
    assert next(s for s in sliders if s.description == "seed").value == 3


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"change_rate": -1.0}, "change_rate"),
        ({"n_crawls": 0}, "interval"),
        ({"prior_changed": 0.0}, "changed"),
    ],
)
def test_what_no_slider_gives_is_refused(wrong, told):
    with pytest.raises(ValueError, match=f"^{told} must "):
        estimates(**wrong)
    with pytest.raises(ValueError, match=r"^bandwidth must be positive"):
        plan(bandwidth=0.0)


def test_the_tabs_show_what_the_functions_give(pictures):
    draw, draw_plan = pictures
    choice, _, image = controls(explore.estimators_tab())
    assert [box.description for box in choice] == list(explore.ESTIMATORS)
    settings = {
        "names": ("MLE", "LLN", "SAM"),
        "crawl_rate": 1.0,
        "n_crawls": 100,
        "prior_changed": 1.0,
        "prior_unchanged": 1.0,
    }
    assert image.value == draw.png(estimates(**settings))
    for box in choice:
        box.value = False
    assert image.value == draw.png(estimates(**settings | {"names": ()}))
    (policy,), _, image = controls(explore.allocation_tab())
    policy.value = "proportional"
    assert image.value == draw_plan.png(
        plan(policy="proportional", bandwidth=10.0, change_spread=2.0)
    )


def test_an_estimator_is_added_by_one_line(monkeypatch, pictures):
    monkeypatch.setitem(
        explore.ESTIMATORS,
        "mine",
        lambda crawl_rate, **at: estimators.LLN(crawl_rate, offset=5.0),
    )
    assert controls(explore.estimators_tab())[0][-1].description == "mine"
    found = estimates(names=("mine",))
    pictures[0].png(found)
    assert (
        pictures[0].figure.axes[0].lines[-1].get_label() != "mine"
    )  # the dot of the MLE is the last
    assert "mine" in [line.get_label() for line in pictures[0].figure.axes[0].lines]


def test_both_tabs_are_displayed_under_one_name_with_a_picture_for_readers(monkeypatch):
    shown = []
    monkeypatch.setattr(explore, "display", lambda data, raw: shown.append(data))
    explore.show(seed=2)
    explore.show(seed=4)
    first, again = shown
    assert (
        first["application/vnd.jupyter.widget-view+json"]["model_id"]
        == "paperlib-explore"
    )
    assert (
        again["application/vnd.jupyter.widget-view+json"]
        == first["application/vnd.jupyter.widget-view+json"]
    )
    assert pixels(first["image/png"]).shape == (940, 900, 3)
    assert first["image/png"] != again["image/png"]
