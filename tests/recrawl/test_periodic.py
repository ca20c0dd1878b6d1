"""Periodic rates: reference numbers, other optimisers, brute force, quadrature."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize

from paperlib.signals import SignalledPages
from recrawl.scheduler import Scheduler
from recrawl.science import estimators, periodic, policies
from recrawl.science.periodic import Profile
from recrawl.science.processes import History
from tests.recrawl import plain as reference

OFFICE = Profile([0.0] * 8 + [1.0] * 8 + [0.0] * 8)  # 8 of 24 hours, a day
UNEVEN = Profile([0.3, 2.0, 0.0, 1.1, 0.6], period=7.0)

# Two pages and two bins; the exposures of the crawls are, with their bits,
# (.5, .25) 0, (0, .5) 0, (.5, 0) 1, (.25, .5) 1, (.5, .5) 1 and
# (.5, .25) 1, (0, .5) 1, (.25, 0) 1, (.5, .5) 1, (.25, .25) 0.
PAIR = History(
    [[0.75, 0.5, 0.5, 0.75, 1.0], [0.75, 0.5, 0.25, 1.0, 0.5]],
    [[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]],
)
PAIR_START = 0.75


def simulated(n_pages, n_crawls, profile, low, high, seed=1):
    """Pages crawled at random intervals from random starts; some of each page."""
    rng = np.random.default_rng(seed)
    interval = profile.period * rng.uniform(low, high, (n_pages, n_crawls))
    rate = rng.lognormal(-0.5, 0.5, n_pages) / interval.mean()
    start = rng.uniform(-3 * profile.period, 3 * profile.period, n_pages)
    history = periodic.simulate_periodic_history(
        rate, profile, interval=interval, start=start, rng=rng
    )
    return history, start


def dense(history, start, n_bins, period):
    """Page, exposures and bit of every crawl, for the plain forms."""
    time = history.time + np.broadcast_to(start, history.shape)[..., np.newaxis]
    ends = zip(np.ravel(time - history.interval), time.ravel(), strict=True)
    exposure = np.array([reference.exposure(*pair, n_bins, period) for pair in ends])
    page = np.repeat(np.arange(len(history.changed)), history.changed.shape[-1])
    return page, exposure, history.changed.ravel()


# ----------------------------------------------------------- reference numbers


@pytest.mark.parametrize(
    ("change_rate", "staleness", "times"),
    [
        (1, [np.exp(-1) / 3], [[16]]),
        (1, [2 * (1 / 6 - (1 - np.exp(-0.5)) / 3)], [[12, 16]]),
        (1, [0.0384010], [[10, 12, 14, 16]]),
        (4, [0.2515], [[16]]),
        (4, [0.1892], [[12, 16]]),
        (4, [0.1226], [[10, 12, 14, 16]]),
    ],
)
def test_crawls_of_the_office_page(change_rate, staleness, times):
    found = periodic.best_crawl_times(OFFICE, change_rate, len(times[0]))
    assert_allclose(24 * found.time, times[0])
    digits = 5e-5 if change_rate == 4 else 5e-8
    assert found.staleness == pytest.approx(staleness[0], abs=digits)
    again = periodic.staleness(OFFICE, change_rate, found.time)
    assert again == pytest.approx(found.staleness, abs=1e-15)


def test_other_times_for_the_office_page():
    phase = (np.arange(2400) + 0.5)[:, np.newaxis] / 2400
    once = periodic.staleness(OFFICE, 1.0, phase)
    assert once.mean() == pytest.approx(0.3448, abs=5e-5)
    assert periodic.staleness(OFFICE, 1.0, [8 / 24]) == pytest.approx(0.5440, abs=5e-5)
    assert once.max() < periodic.staleness(OFFICE, 1.0, [8 / 24])
    flat = periodic.staleness(Profile(np.ones(24)), 1.0, [0.3])
    assert flat == pytest.approx(0.3679, abs=5e-5)


def test_two_pages_and_two_bins():
    fit = periodic.fit_profile(PAIR, PAIR_START, n_bins=2, smoothing=0.0)
    assert_allclose(fit.change_rate, [1.42580572, 3.05654610], atol=5e-9)
    assert_allclose(fit.profile.weight, [1.39509832, 0.60490168], atol=5e-9)
    assert fit.log_likelihood == pytest.approx(-5.4625527077, abs=5e-11)
    test = periodic.flatness_test(PAIR, PAIR_START, n_bins=2)
    assert test.statistic == pytest.approx(0.4831488332, abs=5e-10)
    assert test.n_freedom == 1
    assert test.pvalue == pytest.approx(0.4870, abs=5e-5)
    flat = estimators.mle(PAIR)
    assert_allclose(flat, [1.38174975, 3.02523033], atol=5e-9)
    crawls = dense(PAIR, PAIR_START, 2, 1.0)
    value = reference.periodic_log_likelihood(flat, np.ones(2), *crawls)
    # given as -5.7041271245, which does not agree with the ratio above
    assert value == pytest.approx(-5.7041271243, abs=5e-11)


# ---------------------------------------------------------- independent oracles


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize(("low", "high"), [(0.02, 0.3), (0.1, 2.5)])
def test_the_fit_is_the_maximum_that_another_optimiser_finds(smoothing, low, high):
    history, start = simulated(
        12, 80, Profile([0.5, 2.0, 1.0, 0.3], period=3.0), low, high
    )
    fit = periodic.fit_profile(
        history, start, n_bins=4, period=3.0, smoothing=smoothing
    )
    page, exposure, changed = dense(history, start, 4, 3.0)

    def loss(x):
        weight = np.exp(x[12:])
        u = np.exp(x[page]) * (exposure @ weight)
        with np.errstate(over="ignore"):  # at trial points far off
            slope = np.where(changed, 1 / np.expm1(u), -1.0)
        loss = np.sum(u[~changed]) - np.sum(np.log(-np.expm1(-u[changed])))
        of_page = np.bincount(page, slope * u)
        of_bin = (slope * np.exp(x[page])) @ exposure * weight
        of_bin += smoothing * (1 - weight)
        loss -= smoothing * np.sum(x[12:] - weight)
        return loss, -np.append(of_page, of_bin)

    best = optimize.minimize(
        loss, np.zeros(16), jac=True, options={"maxiter": 9999, "gtol": 1e-8}
    )
    scale = np.exp(best.x[12:]).mean()
    assert_allclose(fit.profile.weight, np.exp(best.x[12:]) / scale, rtol=2e-6)
    assert_allclose(fit.change_rate, np.exp(best.x[:12]) * scale, rtol=2e-6)
    plain = reference.periodic_log_likelihood(
        fit.change_rate, fit.profile.weight, page, exposure, changed
    )
    assert fit.log_likelihood == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 1.0, 20.0])
def test_em_rises_to_the_fit_and_stays_there(smoothing):
    history, start = simulated(6, 50, UNEVEN, 0.05, 0.4)
    crawls = dense(history, start, 5, 7.0)
    rate, weight = np.ones(6), np.ones(5)
    likelihood = []
    for _ in range(1500):
        rate, weight = reference.periodic_em(rate, weight, *crawls, smoothing)
        value = reference.periodic_log_likelihood(rate, weight, *crawls)
        likelihood.append(value + smoothing * np.log(weight).sum())
    assert (np.diff(likelihood) > -1e-10).all()
    fit = periodic.fit_profile(
        history, start, n_bins=5, period=7.0, smoothing=smoothing
    )
    assert_allclose(fit.profile.weight, weight, rtol=1e-6, atol=1e-6)
    assert_allclose(fit.change_rate, rate, rtol=1e-6)


@pytest.mark.parametrize("seed", [3, 4, 27])
def test_steps_that_go_too_far_are_halved(seed):
    rng = np.random.default_rng(seed)
    history = periodic.simulate_periodic_history(
        [1.0, 3.0],
        Profile([0.02, 5.0, 0.5, 0.02]),
        interval=rng.uniform(0.1, 2.0, (2, 60)),
        rng=rng,
    )
    fit = periodic.fit_profile(history, n_bins=4)
    found = fit.change_rate, fit.profile.weight
    for now, then in zip(
        reference.periodic_em(*found, *dense(history, 0.0, 4, 1.0), 1.0),
        found,
        strict=True,
    ):
        assert_allclose(now, then, rtol=1e-6)


@pytest.mark.parametrize("demand", [None, [1.0, 0.0, 3.0, 1.0, 2.0]])
def test_stale_time_is_an_integral(demand):
    rng = np.random.default_rng(2)
    m = np.ones(5) if demand is None else np.array(demand)
    for rate in (0.0, 0.01, 0.4, 5.0):
        for start, length in zip(
            rng.uniform(-20, 20, 4), [0.0, 0.9, 6.9, 30.0], strict=True
        ):
            found = periodic.stale_time(
                UNEVEN, rate, start, start + length, demand=demand
            )
            expected = reference.periodic_stale_time(
                rate, UNEVEN.weight, m, 7.0, start, start + length
            )
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("demand", [None, [3.0, 1.0, 0.0, 2.0]])
@pytest.mark.parametrize("n_crawls", [1, 2, 3, 5])
def test_best_crawl_times_beat_all_others_on_the_grid(n_crawls, demand):
    profile = Profile([0.2, 3.0, 1.0, 0.4], period=2.0)
    found = periodic.best_crawl_times(
        profile, 1.7, n_crawls, demand=demand, n_phases=12
    )
    sets = np.array(list(itertools.combinations(np.arange(12) / 6, n_crawls)))
    cost = periodic.staleness(profile, 1.7, sets, demand=demand)
    assert found.staleness == pytest.approx(cost.min(), abs=1e-14)
    assert periodic.staleness(profile, 1.7, found.time, demand=demand) == pytest.approx(
        cost.min(), abs=1e-14
    )


@pytest.mark.slow
def test_best_crawl_times_are_stationary():
    # m(s) (1 - exp(-D (G(s) - G(before)))) = D g(s) int_s^next m exp(-D (G - G(s)))
    n = 400  # a smooth profile in narrow bins, all of which are on the grid
    profile = Profile(1.5 + np.sin(2 * np.pi * (np.arange(n) + 0.5) / n))
    found = periodic.best_crawl_times(profile, 2.0, 3)
    before = np.roll(found.time, 1) - np.array([1, 0, 0])
    after = np.roll(found.time, -1) + np.array([0, 0, 1])
    grown = profile.cumulative(found.time) - profile.cumulative(before)
    fresh = after - found.time
    fresh = fresh - periodic.stale_time(profile, 2.0, found.time, after)
    left, right = -np.expm1(-2.0 * grown), 2.0 * profile.rate(found.time) * fresh
    assert_allclose(left, right, rtol=0.03)  # the grid is 1 / 400 wide


def test_bits_and_stale_time_of_simulated_changes():
    # changes by thinning a process of constant rate, over many periods
    rng, rate, n = np.random.default_rng(3), 1.3, 20_000
    top = rate * UNEVEN.weight.max()
    time = 7.0 * n * np.sort(rng.random(rng.poisson(top * 7.0 * n)))
    time = time[top * rng.random(time.size) < rate * UNEVEN.rate(time)]
    start = 7.0 * np.arange(n) + 3.3
    next_change = np.append(time, np.inf)[np.searchsorted(time, start)]
    for length in (1.5, 3.0, 5.0):
        stale = np.clip(start + length - next_change, 0.0, None)
        exact = periodic.stale_time(UNEVEN, rate, 3.3, 3.3 + length)
        assert abs(stale.mean() - exact) < 4 * stale.std() / np.sqrt(n)
        share = -np.expm1(-rate * np.diff(UNEVEN.cumulative([3.3, 3.3 + length]))[0])
        assert abs(np.mean(stale > 0) - share) < 4 * np.sqrt(share * (1 - share) / n)
        history = periodic.simulate_periodic_history(
            np.full(n, rate), UNEVEN, interval=[length], start=3.3, rng=rng
        )
        assert abs(history.changed.mean() - share) < 4 * np.sqrt(
            share * (1 - share) / n
        )


def test_a_profile_is_found_from_its_bits():
    profile = Profile([0.4, 0.4, 2.0, 3.0, 1.0, 0.8], period=24.0)
    history, start = simulated(100, 400, profile, 0.05, 0.4)
    fit = periodic.fit_profile(history, start, n_bins=6, period=24.0)
    assert_allclose(fit.profile.weight, profile.weight, rtol=0.1)
    assert periodic.flatness_test(history, start, n_bins=6, period=24).pvalue < 1e-50


@pytest.mark.slow
def test_a_flat_profile_is_rejected_as_often_as_said():
    found = [
        periodic.flatness_test(
            *simulated(5, 100, Profile([1, 1, 1]), 0.05, 0.7, seed=seed), n_bins=3
        )
        for seed in range(200)
    ]
    p = np.array([one.pvalue for one in found])
    statistic = np.array([one.statistic for one in found])
    assert abs(np.mean(p < 0.1) - 0.1) < 4 * np.sqrt(0.09 / 200)
    assert abs(statistic.mean() - 2) < 4 * 2 / np.sqrt(200)


# ------------------------------------------------------------------ properties


def test_operational_time_agrees_with_time_at_whole_periods():
    periods = np.array([-3, 0, 1, 10_000])
    assert_allclose(UNEVEN.cumulative(7.0 * periods), 7.0 * periods)
    time = np.linspace(-10, 10, 4001)
    slope = np.diff(UNEVEN.cumulative(time)) / np.diff(time)
    assert (slope >= 0).all()
    assert_allclose(slope[::50], UNEVEN.rate(0.5 * (time[1:] + time[:-1]))[::50])


def test_units_order_and_clock_do_not_matter():
    history, start = simulated(9, 60, UNEVEN, 0.05, 0.8)
    options = {"n_bins": 5, "period": 7.0}
    fit = periodic.fit_profile(history, start, **options)
    hours = History(24 * history.interval, history.changed)
    in_hours = periodic.fit_profile(hours, 24 * start, n_bins=5, period=7 * 24.0)
    assert_allclose(in_hours.profile.weight, fit.profile.weight, rtol=1e-9)
    assert_allclose(24 * in_hours.change_rate, fit.change_rate, rtol=1e-9)
    order = np.arange(9)[::-1]
    turned = History(history.interval[order], history.changed[order])
    other = periodic.fit_profile(turned, start[order] + 70.0, **options)
    assert_allclose(other.profile.weight, fit.profile.weight, rtol=1e-7)
    assert_allclose(other.change_rate, fit.change_rate[order], rtol=1e-7)
    later = periodic.fit_profile(history, start + 2 * 7.0 / 5, **options)
    assert_allclose(later.profile.weight, np.roll(fit.profile.weight, 2), rtol=1e-7)


def test_ragged_histories_and_pages_that_say_nothing():
    history, start = simulated(3, 60, UNEVEN, 0.05, 0.8)
    interval, changed, _ = history.ragged()
    ragged = History(
        np.concatenate([interval[:60], [1.0, 2.0], interval[60:], [1.0]]),
        np.concatenate([changed[:60], [True, True], changed[60:], [False]]),
        [0, 60, 60, 62, 122, 182, 183],
    )
    starts = np.array([start[0], 0.0, 1.0, start[1], start[2], 2.0])
    fit = periodic.fit_profile(history, start, n_bins=5, period=7.0)
    with pytest.warns(periodic.DegenerateHistoryWarning, match="1 never .* and 1 "):
        other = periodic.fit_profile(ragged, starts, n_bins=5, period=7.0)
    assert_allclose(other.profile.weight, fit.profile.weight, rtol=1e-12)
    first, second, third = fit.change_rate
    expected = [first, np.nan, np.inf, second, third, 0.0]
    assert_allclose(other.change_rate, expected, rtol=1e-12)


def test_a_bin_without_changes_gets_zero_only_without_smoothing():
    history, start = simulated(20, 60, Profile([0.0, 1.0, 1.0]), 0.02, 0.3)
    plain = periodic.fit_profile(history, start, n_bins=3, smoothing=0.0)
    assert plain.profile.weight[0] < 1e-3
    fit = periodic.fit_profile(history, start, n_bins=3)
    assert 1e-3 < fit.profile.weight[0] < 0.1
    much = periodic.fit_profile(history, start, n_bins=3, smoothing=1e9)
    assert_allclose(much.profile.weight, 1.0, rtol=1e-5)


def test_finer_bins_of_the_same_profile_cost_the_same():
    fine, times = Profile(np.repeat(UNEVEN.weight, 3), period=7.0), [0.3, 2.2, 6.0]
    cost = periodic.staleness(UNEVEN, 0.8, times)
    assert cost == pytest.approx(periodic.staleness(fine, 0.8, times), rel=1e-13)
    assert cost == pytest.approx(
        periodic.staleness(UNEVEN, 0.8, [7 + 2.2, 0.3, 6.0 - 70]), rel=1e-13
    )


def test_slots_in_operational_time_go_to_the_largest_value():
    rate, mu = np.array([0.5, 1.0, 3.0, 8.0]), np.array([1.0, 0.7, 1.1, 0.9])
    time = np.arange(1, 200) / 7.3
    scheduler = Scheduler(
        policies.Greedy(SignalledPages(rate, mu, 0.0, 0.0)), crawled=0.0
    )
    page = scheduler.run(OFFICE.cumulative(time))
    last = np.zeros(4)
    for now, chosen in zip(time, page, strict=True):
        x = rate * (OFFICE.cumulative(now) - OFFICE.cumulative(last))
        value = mu / rate * (1 - (1 + x) * np.exp(-x))
        assert value[chosen] >= value.max() - 1e-12
        last[chosen] = now
    assert np.bincount(page).min() > 5


def test_slots_of_one_page_cost_what_its_crawl_times_do():
    time = (np.arange(30)[:, np.newaxis] + [1 / 3, 1.0]).ravel()
    for demand in (None, np.arange(24.0)):
        found = periodic.slot_staleness(
            OFFICE, 2.0, time, np.zeros(60, int), horizon=30.0, demand=demand
        )
        expected = periodic.staleness(OFFICE, 2.0, [0.0, 1 / 3], demand=demand)
        assert found == pytest.approx(expected, rel=1e-12)
    ask, never = np.arange(24.0), (np.empty(0), np.empty(0, int))
    half = periodic.slot_staleness(OFFICE, 2.0, *never, horizon=0.5, demand=ask)
    expected = periodic.stale_time(OFFICE, 2.0, 0.0, 0.5, demand=ask)
    assert half == pytest.approx(expected / Profile(ask).cumulative(0.5), rel=1e-12)
    shared = periodic.slot_staleness(
        OFFICE, [2.0, 2.0], [1.0, 2.0], [1, -1], horizon=3.0, importance=[1, 3]
    )
    lone = [
        periodic.stale_time(OFFICE, 2.0, 0, 3),
        periodic.stale_time(OFFICE, 2.0, [0, 1], [1, 3]).sum(),
    ]
    assert shared == pytest.approx((lone[0] + 3 * lone[1]) / 12, rel=1e-12)


def test_more_crawls_cost_no_more_and_demand_draws_them():
    profile, demand = Profile([1.0, 2.0, 1.0, 0.5]), [0.0, 0.0, 1.0, 0.0]
    costs = [periodic.best_crawl_times(profile, 3.0, k).staleness for k in range(1, 7)]
    assert (np.diff(costs) < 0).all()
    best = periodic.best_crawl_times(profile, 3.0, 1, demand=demand)
    assert 0.5 <= best.time[0] < 0.75
    assert periodic.best_crawl_times(profile, 0.0, 2).staleness == 0.0
    assert len(periodic.best_crawl_times(OFFICE, 1.0, 150).time) == 150


# ------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], "at least two bins"),
        (1.0, "at least two bins"),
        ([[1.0, 2.0]], "at least two bins"),
        ([1.0, -1.0], "weight must be non-negative .* index"),
        ([0.0, 0.0], "weight must be positive in some bin"),
        ([1.0, np.nan], "weight must be non-negative"),
    ],
)
def test_bad_profiles(weight, message):
    with pytest.raises(ValueError, match=message):
        Profile(weight)
    with pytest.raises(ValueError, match="period must be positive"):
        Profile([1.0, 2.0], period=0.0)


@pytest.mark.parametrize("function", [periodic.fit_profile, periodic.flatness_test])
def test_histories_that_say_nothing_of_the_profile(function):
    rng = np.random.default_rng(5)
    bits = rng.random((4, 100)) < 0.5
    noon = History(np.full((4, 100), 1.0), bits)
    for start in (0.5, [0.1, 0.2, 0.3, 0.4]):
        with pytest.raises(ValueError, match="in the same proportions"):
            function(noon, start, n_bins=2)
    seconds = 1.0 + rng.uniform(-1e-5, 1e-5, (4, 100))
    with pytest.raises(ValueError, match="in the same proportions"):
        function(History(seconds, bits), 0.5, n_bins=2)
    days = History(rng.integers(1, 5, (4, 100)), bits)  # of one phase, for days
    with pytest.raises(ValueError, match="in the same proportions"):
        function(days, 0.5, n_bins=24)
    with pytest.raises(ValueError, match="3 of the 23 differences"):
        function(History(np.full((4, 100), 0.25), bits), n_bins=24)
    # each page tells one bin apart, and no page compares the two halves
    apart = History(np.full((2, 100), 1.0), bits[:2])
    with pytest.raises(ValueError, match="in the same proportions"):
        function(apart, [0.0, 0.5], n_bins=2)
    for n_bins in (1, 0, 2.5):
        with pytest.raises(ValueError, match="n_bins must be"):
            function(noon, n_bins=n_bins)
    with pytest.raises(ValueError, match=r"start must .* \(4,\), got \(3,\)"):
        function(noon, np.zeros(3), n_bins=2)
    with pytest.raises(ValueError, match="page with changed and unchanged"):
        function(History(noon.interval, np.zeros((4, 100), bool)), n_bins=2)
    with pytest.raises(ValueError, match="period must be positive"):
        function(noon, n_bins=2, period=-1.0)


def test_other_bad_arguments(monkeypatch):
    history, start = simulated(3, 60, UNEVEN, 0.05, 0.8)
    with pytest.raises(ValueError, match="interval must hold at least one crawl"):
        periodic.simulate_periodic_history([1.0], OFFICE, interval=[])
    with pytest.raises(ValueError, match="smoothing must be non-negative"):
        periodic.fit_profile(history, start, n_bins=2, smoothing=-1.0)
    with pytest.raises(ValueError, match="demand must have one weight"):
        periodic.stale_time(UNEVEN, 1.0, 0.0, 1.0, demand=[1.0])
    with pytest.raises(ValueError, match="demand must be non-negative"):
        periodic.staleness(UNEVEN, 1.0, [0.0], demand=[1, 1, 1, 1, -1])
    with pytest.raises(ValueError, match="end must be at least start"):
        periodic.stale_time(UNEVEN, 1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="change_rate must be non-negative"):
        periodic.stale_time(UNEVEN, -1.0, 0.0, 1.0)
    for times in (1.0, []):
        with pytest.raises(ValueError, match="crawl_time must hold"):
            periodic.staleness(UNEVEN, 1.0, times)
    with pytest.raises(ValueError, match=r"profile must be a Profile, got \[1, 2\]"):
        periodic.best_crawl_times([1, 2], 1.0, 1)
    with pytest.raises(ValueError, match="importance must be not all 0"):
        periodic.slot_staleness(
            UNEVEN, [1.0], [0.5], [0], horizon=1.0, importance=[0.0]
        )
    with pytest.raises(ValueError, match="n_phases must be at least n_crawls, 5"):
        periodic.best_crawl_times(UNEVEN, 1.0, 5, n_phases=4)
    with pytest.raises(ValueError, match="change_rate must be a single number"):
        periodic.best_crawl_times(UNEVEN, [1.0], 1)
    slots = {"horizon": 2.0}
    with pytest.raises(
        ValueError, match="page must be at least -1 and below 1, got 1 at"
    ):
        periodic.slot_staleness(UNEVEN, 1.0, [1.0], [1], **slots)
    with pytest.raises(ValueError, match=r"time must be in \[0, horizon\]"):
        periodic.slot_staleness(UNEVEN, 1.0, [3.0], [0], **slots)
    with pytest.raises(ValueError, match="page must hold one integer"):
        periodic.slot_staleness(UNEVEN, 1.0, [1.0], [0.0], **slots)
    with pytest.raises(ValueError, match="interval must be positive"):
        periodic.simulate_periodic_history(1.0, UNEVEN, interval=-1.0, n_crawls=3)
    with pytest.raises(ValueError, match="n_crawls must be a positive integer"):
        periodic.simulate_periodic_history(1.0, UNEVEN, interval=1.0)
    monkeypatch.setattr(periodic, "_MAX_STEPS", 1)
    with pytest.raises(periodic.ConvergenceError, match="did not converge") as failed:
        periodic.fit_profile(history, start, n_bins=5, period=7.0)
    assert failed.value.last.shape == (5,)


def test_a_likelihood_without_a_maximum():
    # unchanged crawls see the second bin more than others: its rate falls to 0, and
    # the mean rate that it bounds grows
    for interval, bits in (
        ([0.75, 0.25, 0.75, 0.25], [1, 0, 1, 0]),
        ([0.5, 0.25, 0.5, 0.75], [1, 0, 1, 1]),
    ):
        history = History(interval, bits)
        with pytest.raises(periodic.ConvergenceError, match="more smoothing") as failed:
            periodic.fit_profile(history, n_bins=2, smoothing=0.0)
        assert failed.value.last.shape == (2,)
        with pytest.raises(periodic.ConvergenceError):
            periodic.flatness_test(history, n_bins=2)
        fit = periodic.fit_profile(history, n_bins=2)
        assert fit.profile.weight.min() > 0.1


def test_no_warning_where_pages_say_enough():
    with warnings.catch_warnings(action="error"):
        periodic.fit_profile(PAIR, PAIR_START, n_bins=2)


def test_a_number_of_crawls_that_contradicts_the_intervals_is_refused():
    with pytest.raises(ValueError, match="n_crawls must be the length of interval, 2"):
        periodic.simulate_periodic_history(
            1.0, periodic.Profile([1.0, 2.0]), interval=[1.0, 2.0], n_crawls=5
        )
