"""MirrorSync: the step, the slope from probes, and what is learnt without a model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from recrawl.science import objectives, policies, schedules, simulate
from recrawl.science.signals import SignalledPages
from tests import plain as reference

# Four pages of which the step is known to eight digits.
KNOWN = {
    "crawl_rate": np.array([0.4, 0.8, 0.3, 0.5]),
    "gradient": np.array([-0.3, 0.1, -0.8, -0.05]),
    "bandwidth": 2.0,
    "limits": (0.025, 6.0),
    "step": 1.3,
}


def drawn_step(rng):
    """Arguments of a step, with some pages at a limit before or after it."""
    n = int(rng.integers(2, 12))
    limits = 0.2, 4.0
    rate = rng.uniform(*limits, n)
    rate[0] = limits[rng.integers(2)]
    gradient = 2 * rng.standard_normal(n)
    return rate, gradient, rng.uniform(0.3, 3.0) * n, limits, rng.uniform(0.2, 2.0)


def regular(n_pages, rng):
    """Crawls of all pages at unit intervals, each from a random time on."""
    start, number = rng.random(n_pages), np.arange(1, 31)
    time = (start[:, np.newaxis] + number).ravel()
    page = np.repeat(np.arange(n_pages), number.size)
    order = np.argsort(time)
    return time[order], page[order], start


# ------------------------------------------------------------------ the step


def test_a_known_step():
    found = policies.mirror_step(**KNOWN)
    expected = [0.44535831, 0.65989916, 0.41174013, 0.48300241]
    assert_allclose(found, expected, atol=5e-9)
    nu = 1 / found - 1 / KNOWN["crawl_rate"] - KNOWN["step"] * KNOWN["gradient"]
    assert_allclose(nu, 0.1353830573, atol=5e-11)


@pytest.mark.parametrize("seed", range(20))
def test_the_step_is_the_minimum_that_a_search_finds(seed):
    step = drawn_step(np.random.default_rng([1, seed]))
    # where the search ends
    assert_allclose(policies.mirror_step(*step), reference.mirror_step(*step), 1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_the_step_spends_the_bandwidth_unless_no_page_gains(seed):
    rate, gradient, bandwidth, limits, step = drawn_step(np.random.default_rng(seed))
    gaining = -np.abs(gradient)
    x = policies.mirror_step(rate, gaining, rate.sum(), limits, step)
    assert x.sum() == pytest.approx(rate.sum(), rel=1e-12)
    x = policies.mirror_step(rate, -gaining, bandwidth, limits, step)
    assert (limits[0] <= x).all()
    assert x.sum() <= bandwidth * (1 + 1e-12)
    free = policies.mirror_step(rate, -gaining, 2 * rate.sum(), limits, step)
    assert_allclose(free, np.maximum(1 / (1 / rate - step * gaining), limits[0]))


@pytest.mark.parametrize("seed", range(20))
def test_a_step_far_larger_than_the_rates_spends_the_bandwidth_too(seed):
    rng = np.random.default_rng(seed)
    rate, gradient, _, limits, _ = drawn_step(rng)
    bandwidth = rate.sum()
    gaining = -np.abs(gradient) * 10.0 ** rng.uniform(-5, 20, rate.size)
    x = policies.mirror_step(rate, gaining, bandwidth, limits, 1e8)
    spent = min(bandwidth, rate.size * limits[1])
    assert x.sum() == pytest.approx(spent, rel=1e-12)
    order = np.argsort(1 / rate + 1e8 * gaining)
    assert (np.diff(x[order]) <= 1e-12 * x.max()).all()


def test_other_units_of_time_are_the_same_step():
    day, hours = KNOWN, 24.0
    found = policies.mirror_step(
        day["crawl_rate"] / hours,
        day["gradient"] * hours,
        day["bandwidth"] / hours,
        (day["limits"][0] / hours, day["limits"][1] / hours),
        day["step"],
    )
    assert_allclose(hours * found, policies.mirror_step(**day), rtol=1e-12)


# ------------------------------------------------------- the slope from probes


@pytest.mark.parametrize("rate", [0.3, 2.0])
@pytest.mark.parametrize("false_change", [0.0, 0.2])
@pytest.mark.parametrize("probability", [0.1, 1.0])
def test_the_slope_has_the_mean_of_the_closed_form(rate, false_change, probability):
    """Of -V(1); false changes take off their share."""
    rng = np.random.default_rng(2)
    pages = SignalledPages(np.full(1500, rate), 1.0, 0.0, 0.0)
    world = simulate.draw_world(pages, 31.0, rng=rng)
    world = world.with_false_changes(false_change, rng=rng)
    slope = policies.probe_gradient(world, *regular(1500, rng), probability, rng=rng)
    expected = -(1 - false_change) * objectives.freshness.value(1.0, rate)
    assert slope.mean() == pytest.approx(
        expected, abs=4 * slope.std() / np.sqrt(slope.size)
    )


def test_the_slope_needs_no_model_of_the_changes():
    """Changes every 1.6 units of time: c(t) = t / 1.6, and V(1) = 1 / 3.2."""
    rng = np.random.default_rng(3)
    times = [1.6 * (rng.random() + np.arange(-1, 22)) for _ in range(1500)]
    world = simulate.replay(times, 31.0)
    slope = policies.probe_gradient(world, *regular(1500, rng), 0.2, rng=rng)
    error = slope.std() / np.sqrt(slope.size)
    assert slope.mean() == pytest.approx(-1 / 3.2, abs=4 * error)


def test_a_page_without_an_interval_has_no_slope():
    world = simulate.replay([[0.99], [0.99], []], 3.0)
    time, page, last = [1.0, 1.5, 2.0], np.array([0, 1, 0]), np.array([0, -np.inf, 0])
    found = policies.probe_gradient(world, time, page, last, 1.0, rng=1)
    # Stale at the crawl, and not at the probe, in one interval of two.
    assert found.tolist() == [-0.5, 0.0, 0.0]


# ------------------------------------------------------------------- the policy


def published(n_pages, n_rounds, rng):
    """The published setting, with fewer pages."""
    pages = SignalledPages(rng.uniform(0.005, 5.0, n_pages), 1.0, 0.0, 0.0)
    return simulate.draw_world(pages, 40.0 * n_rounds, rng=rng)


def test_it_pays_for_probes_at_first_and_gains_later():
    world = published(20, 240, np.random.default_rng(1))
    borders = world.horizon * np.array([0.0, 0.02, 0.75, 1.0])
    policy = policies.MirrorSync(np.ones(20), step=1.0, rng=2)
    mirror, uniform = (
        simulate.crawl(world, one, 8.0, borders=borders).window_freshness
        for one in (policy, policies.Rates(np.ones(20)))
    )
    assert mirror[0] < uniform[0]
    assert mirror[2] > uniform[2] + 0.003


def test_slots_of_probes_are_spread_evenly():
    world = published(20, 5, np.random.default_rng(4))
    time = simulate.slot_times(8.0, world.horizon)
    policy = policies.MirrorSync(np.ones(20), probes=0.25, rng=1)
    page = policy.choose(world, time, np.zeros(20))
    idle = np.flatnonzero(page < 0)
    assert set(np.diff(idle)) == {5}
    assert idle.size == time.size // 5
    assert (np.bincount(page[page >= 0], minlength=20) > 0).all()


def test_rates_are_equal_in_the_first_round_and_not_in_the_second():
    world = published(20, 2, np.random.default_rng(5))
    time = simulate.slot_times(8.0, world.horizon)
    policy = policies.MirrorSync(np.ones(20), step=100.0, probes=0.5, rng=1)
    page = policy.choose(world, time, np.zeros(20))
    first, second = (
        np.bincount(page[(page >= 0) & of], minlength=20)
        for of in (time < 40, time > 40)
    )
    assert np.ptp(first) <= 1
    assert np.ptp(second) > 5


def test_units_of_time_and_of_importance_do_not_matter():
    rng = np.random.default_rng(6)
    rates = rng.uniform(0.1, 3.0, 8)
    time, offsets = schedules.poisson(rates, 512.0, rng=rng)
    days = np.split(time, offsets[1:-1])
    pages = []
    for unit in (1.0, 8.0):
        world = simulate.replay([unit * t for t in days], unit * 512.0)
        policy = policies.MirrorSync(np.full(8, unit), step=10.0, probes=0.5, rng=1)
        slots = simulate.slot_times(4.0 / unit, world.horizon)
        pages.append(policy.choose(world, slots, np.full(8, -np.inf)))
    assert pages[0].tolist() == pages[1].tolist()


def test_a_page_of_no_importance_falls_to_the_least_rate():
    world = published(4, 60, np.random.default_rng(7))
    policy = policies.MirrorSync([0, 1, 1, 1], step=5.0, probes=0.5, rng=1)
    run = simulate.crawl(world, policy, 1.6, borders=[2000, 2400])
    assert run.crawl_rate[0] < 2 * 0.025
    assert run.crawl_rate[1:].sum() > 10 * run.crawl_rate[0]


def test_no_slots():
    world = published(3, 1, np.random.default_rng(8))
    policy = policies.MirrorSync(np.ones(3))
    assert policy.choose(world, np.empty(0), np.zeros(3)).size == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: policies.MirrorSync([-1.0]), "importance must be non-negative"),
        (lambda: policies.MirrorSync([0, 0]), "importance must not be 0 for all pages"),
        (lambda: policies.MirrorSync([1], step=0.0), "step must be positive"),
        (lambda: policies.MirrorSync([1], probes=0.0), "probes must be positive"),
        (lambda: policies.MirrorSync([1], probes=1.5), r"probes must be in \[0, 1\]"),
        (
            lambda: policies.MirrorSync([1], limits=(2.0, 1.0)),
            "limits must be two numbers, the lower one first",
        ),
        (
            lambda: policies.MirrorSync([1], probes=0.5, limits=(0.7, 9.0)),
            "limits must enclose the mean rate",
        ),
        (
            lambda: simulate.crawl(
                simulate.replay([[], []], 9.0), policies.MirrorSync([1]), 1.0
            ),
            "importance must hold the pages of the world, 2, got 1",
        ),
        (
            lambda: policies.mirror_step(**KNOWN | {"bandwidth": 0.09}),
            "limits must let 4 pages share the bandwidth 0.09",
        ),
        (
            lambda: policies.mirror_step(**KNOWN | {"gradient": np.nan}),
            "gradient must be finite",
        ),
        (
            lambda: policies.mirror_step(**KNOWN | {"gradient": np.ones(3)}),
            "crawl_rate and gradient must have shapes that broadcast",
        ),
        (
            lambda: policies.probe_gradient(
                simulate.replay([[]], 9.0), np.ones(1), np.zeros(1, int), [0.0], 0.0
            ),
            "probability must be positive",
        ),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
