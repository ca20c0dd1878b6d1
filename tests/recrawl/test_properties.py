"""Properties of the public functions, on inputs that hypothesis draws.

The profile "tests" draws a few examples, the same each time. A long search:
``HYPOTHESIS_PROFILE=search pytest tests/test_properties.py``.
"""

import functools
import os
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from paperlib.signals import SignalledPages
from recrawl.errors import ConvergenceError, DegenerateHistoryWarning
from recrawl.kernels import bayes
from recrawl.scheduler import Scheduler
from recrawl.science import (
    allocation,
    estimators,
    freshness,
    hosts,
    objectives,
    periodic,
    policies,
    priors,
    simulate,
)
from recrawl.science.policies import BayesGreedy
from recrawl.science.processes import History, join
from tests.recrawl.made import observe

_COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}
settings.register_profile("tests", derandomize=True, max_examples=8, **_COMMON)
settings.register_profile("search", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "tests"))


def decades(low, high, *, zero=False):
    """Positive numbers whose logarithms are uniform, and 0 if it is legal."""
    numbers = st.floats(low, high).map(lambda exponent: 10.0**exponent)
    return numbers | st.just(0.0) if zero else numbers


def several(entries, n):
    return st.lists(entries, min_size=n, max_size=n).map(np.array)


@st.composite
def problems(draw, *, span=15, least_pages=1):
    """Change rates, importances and a bandwidth; ties are likely."""
    n = draw(st.integers(least_pages, 6) | st.just(100))
    few = draw(st.lists(decades(-span, span, zero=True), min_size=1, max_size=4))
    change_rate = draw(several(st.sampled_from(few), n))
    importance = draw(several(decades(-span, span, zero=True), n))
    assume(((importance > 0) & (change_rate > 0)).any())
    # so that a share of it, as a limit, is in the range too
    return change_rate, importance, draw(decades(1 - span, span))


def on_two_hosts(change_rate, importance, bandwidth, **options):
    host = np.arange(change_rate.size) % 2
    limit = {0: 0.3 * bandwidth}
    return allocation.optimal(
        change_rate, importance, bandwidth, host=host, host_limit=limit, **options
    )


def by_thresholds(change_rate, importance, bandwidth):
    pages = SignalledPages(change_rate, importance, 0.0, 0.0)
    return allocation.optimal_thresholds(pages, bandwidth)


HEURISTICS = allocation.uniform, allocation.proportional
at_poisson_times = functools.partial(allocation.optimal, crawls="poisson")
OPTIMA = at_poisson_times, allocation.optimal
# `optimal_thresholds` takes half a second a call.
ALLOCATIONS = *HEURISTICS, *OPTIMA, on_two_hosts


# One page for which c root and the change rate are equal numbers, beside one that
# takes the bandwidth; the search for the multiplier over 50 decades; pages all of
# whose rates are 190 decades from the bandwidth.
AT_AN_EDGE = (
    np.array([2e47, 2e7, 4e-17, 1e34, 0.05]),
    np.array([4e33, 3e-34, 4e-36, 3e-27, 1e36]),
    6e-12,
)
OVER_DECADES = np.array([3e-49, 3e-39, 8e22, 6e46]), np.full(4, 1e48), 4e-24
FAR_FROM_BANDWIDTH = np.full(3, 1e-99), np.array([7e24, 0.0, 1e-56]), 5e91


@pytest.mark.parametrize("allocate", ALLOCATIONS)
@given(problem=problems(span=100))
@example(problem=AT_AN_EDGE)
@example(problem=OVER_DECADES)
@example(problem=FAR_FROM_BANDWIDTH)
def test_the_bandwidth_is_spent_and_no_more(allocate, problem):
    change_rate, importance, bandwidth = problem
    assume(allocate is not allocation.proportional or change_rate.any())
    plan = allocate(*problem)
    assert (plan.crawl_rate >= 0).all()
    assert 0 <= plan.freshness <= 1 + 1e-12
    granted = bandwidth
    if allocate is on_two_hosts:
        member = np.arange(change_rate.size) % 2
        on_first = plan.crawl_rate[member == 0].sum()
        assert on_first <= 0.3 * bandwidth * (1 + 1e-12)
        gain = (change_rate > 0) & (importance > 0)
        gains = [gain[member == h].any() for h in (0, 1)]
        granted = bandwidth if gains[1] else 0.3 * bandwidth
    assert plan.crawl_rate.sum() == pytest.approx(granted, rel=1e-9, abs=0)


UNITS = (
    *((allocate, 1) for allocate in (*OPTIMA, by_thresholds)),
    *(
        (
            functools.partial(allocation.optimal, objective=objective, crawls=crawls),
            power,
        )
        for crawls in ("interval", "poisson")
        for objective, power in (
            (objectives.freshness, 1),
            (objectives.age, 2),
            (objectives.delay, 1),
            (objectives.harmonic, 1),
            (objectives.age_of_information, 2),
        )
    ),
)


@pytest.mark.parametrize("time", [1.0, 4.0**-60, 4.0**60])
@pytest.mark.parametrize("worth", [1.0, 4.0**-60, 4.0**60])
@pytest.mark.parametrize(("allocate", "power"), UNITS)
def test_any_units_will_do(allocate, power, time, worth):
    change_rate, importance = np.array([[0.25, 1.0, 4.0, 0.0], [1.0, 0.5, 2.0, 1.0]])
    plain = allocate(change_rate, importance, 2.0)
    other = allocate(change_rate / time, importance * worth, 2.0 / time)
    np.testing.assert_allclose(other.crawl_rate * time, plain.crawl_rate, rtol=1e-14)
    unit = time**power * worth
    np.testing.assert_allclose(other.multiplier / unit, plain.multiplier, rtol=1e-14)


@pytest.mark.parametrize("time", [4.0**-60, 4.0**60])
@pytest.mark.parametrize("power", [0, 1, 2])
def test_limits_in_any_units(time, power):
    tau = 3.0
    objective = (objectives.deadline(tau), objectives.freshness, objectives.age)[power]
    other_one = objectives.deadline(tau * time) if power == 0 else objective
    change_rate, importance, low, high = np.array(
        [[0.25, 1.0, 4.0, 0.5], [1.0, 0.5, 2.0, 1.0], [0.1, 0, 0, 0], [9, 9, 0.3, 9]]
    )
    model = {"crawls": "poisson", "cost": [1.0, 2.0, 1.0, 1.0], "host": list("abab")}
    plain = allocation.optimal(
        change_rate, importance, 1.5, objective=objective, **model,
        min_rate=low, max_rate=high, host_limit={"b": 0.5},
    )  # fmt: skip
    other = allocation.optimal(
        change_rate / time, importance, 1.5 / time, objective=other_one, **model,
        min_rate=low / time, max_rate=high / time, host_limit={"b": 0.5 / time},
    )  # fmt: skip
    np.testing.assert_allclose(other.crawl_rate * time, plain.crawl_rate, rtol=1e-14)
    unit = time**power
    np.testing.assert_allclose(other.multiplier / unit, plain.multiplier, rtol=1e-14)
    assert plain.price_host.keys() == {"b"}
    assert other.price_host["b"] / unit == pytest.approx(plain.price_host["b"])
    for name in ("price_min_rate", "price_max_rate"):
        np.testing.assert_allclose(
            getattr(other, name) / unit, getattr(plain, name), rtol=1e-9, atol=1e-12
        )


@given(problem=problems(span=50), data=st.data())
@example(problem=(np.full(3, 1.13), np.full(3, 6.0), 0.18), data=None)
def test_least_rates_leave_the_rest_to_the_optimum(problem, data):
    """The example did not converge: the least rates are all of the bandwidth."""
    change_rate, importance, bandwidth = problem
    least, used = np.array([1e-4, 0.3, 0.0]), 1.0
    if data:
        least = data.draw(several(decades(-6, 0, zero=True), change_rate.size))
        used = data.draw(st.sampled_from([1.0, 1 - 1e-15, 0.5, 1e-9]))
    assume(least.any())
    least *= used * bandwidth / least.sum()
    plan = at_poisson_times(*problem, min_rate=least)
    assert (plan.crawl_rate >= least).all()
    assert plan.crawl_rate.sum() == pytest.approx(bandwidth, rel=1e-9, abs=0)
    gain = (change_rate > 0) & (importance > 0)
    assert (plan.crawl_rate[~gain] == least[~gain]).all()


def in_range(number):
    """As a limit: what lies beyond the range of arguments is at its end."""
    return np.clip(number, 1e-100, 1e100)


OBJECTIVES = (
    objectives.freshness,
    objectives.age,
    objectives.delay,
    objectives.harmonic,
    objectives.age_of_information,
    objectives.deadline(0.3),
)


@st.composite
def limited_problems(draw, *, span):
    """Arguments of `optimal`, all of them."""
    change_rate, importance, bandwidth = draw(problems(span=span))
    n = change_rate.size
    cost = draw(several(decades(-span, span), n))
    objective = draw(st.sampled_from(OBJECTIVES))
    crawls = draw(st.sampled_from(["interval", "poisson"]))
    low = bandwidth / cost * draw(several(st.floats(0, 0.5 / n), n))
    low[low < 1e-100] = 0
    high = in_range(np.maximum(low, bandwidth / cost * draw(decades(-2, 2))))
    low = np.minimum(low, high)
    host = np.arange(n) % 2
    limit = in_range((cost * low)[host == 0].sum() + 0.3 * bandwidth)
    return (change_rate, importance, bandwidth), {
        "objective": objective,
        "crawls": crawls,
        "min_rate": low,
        "max_rate": high,
        "cost": cost,
        "host": host,
        "host_limit": {0: limit},
    }


@pytest.mark.parametrize("span", [50, 100])
@given(data=st.data())
def test_all_limits_together_are_kept(span, data):
    """Beyond 50 decades the search may fail, but says so."""
    problem, limits = data.draw(limited_problems(span=span))
    try:
        plan = allocation.optimal(*problem, **limits)
    except ConvergenceError:
        assert span > 50
        return
    bandwidth, rate = problem[2], plan.crawl_rate
    assert (rate >= limits["min_rate"] * (1 - 1e-12)).all()
    assert (rate <= limits["max_rate"] * (1 + 1e-12)).all()
    spent = limits["cost"] * rate
    on_first = spent[limits["host"] == 0].sum()
    assert on_first <= limits["host_limit"][0] * (1 + 1e-12)
    assert spent.sum() <= bandwidth * (1 + 1e-9)
    if plan.multiplier > 0:
        assert spent.sum() == pytest.approx(bandwidth, rel=1e-9, abs=0)
    for number in (plan.cost, plan.freshness, plan.price_min_rate, plan.price_max_rate):
        assert not np.isnan(number).any()


@pytest.mark.parametrize(
    "name", ["change_rate", "importance", "bandwidth", "min_rate", "max_rate", "cost"]
)
@pytest.mark.parametrize("number", [1e-120, 1e120])
def test_numbers_out_of_range_are_refused(name, number):
    """With a cost of 1e300 the search never ended."""
    problem = {"change_rate": [1.0, 2.0], "importance": 1.0, "bandwidth": 1.0}
    problem[name] = number
    if name in ("change_rate", "importance"):
        problem[name] = [1.0, number]
    with pytest.raises(ValueError, match=f"{name} must be between 1e-100 and 1e.100"):
        allocation.optimal(**problem)


@pytest.mark.parametrize("allocate", ALLOCATIONS)
@given(problem=problems(span=4), factor=decades(-6, 6))
def test_rates_scale_with_time(allocate, problem, factor):
    change_rate, importance, bandwidth = problem
    assume(allocate is not allocation.proportional or change_rate.any())
    one = allocate(*problem)
    other = allocate(factor * change_rate, importance, factor * bandwidth)
    assert other.freshness == pytest.approx(one.freshness, rel=1e-9)
    assert other.crawl_rate.sum() == pytest.approx(
        factor * one.crawl_rate.sum(), rel=1e-9, abs=0
    )


@pytest.mark.parametrize("allocate", OPTIMA)
@given(problem=problems(span=4), data=st.data())
def test_the_order_of_pages_does_not_matter(allocate, problem, data):
    change_rate, importance, bandwidth = problem
    order = np.array(data.draw(st.permutations(range(change_rate.size))))
    one = allocate(*problem)
    other = allocate(change_rate[order], importance[order], bandwidth)
    assert other.freshness == pytest.approx(one.freshness, rel=1e-9)


@pytest.mark.parametrize("allocate", OPTIMA)
@given(problem=problems(span=4))
def test_two_halves_are_as_fresh_as_a_page(allocate, problem):
    """A page of half the rates and importance has the same marginal gain."""
    change_rate, importance, bandwidth = problem
    halves = np.repeat(change_rate / 2, 2), np.repeat(importance / 2, 2)
    one, other = allocate(*problem), allocate(*halves, bandwidth)
    assert other.freshness == pytest.approx(one.freshness, rel=1e-9)


class Wrapped:
    """What pandas gives: an object that NumPy makes an array of."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype=dtype)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


FORMS = {
    "list": np.ndarray.tolist,
    "float32": lambda array: array.astype(np.float32),
    "strided": lambda array: np.repeat(array, 2)[::2],
    "backwards": lambda array: array[::-1].copy()[::-1],
    "read-only": read_only,
    "__array__": Wrapped,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("allocate", [*HEURISTICS, *OPTIMA])
def test_any_array_will_do(allocate, form):
    change_rate, importance = np.array([[0.25, 1.0, 4.0], [1.0, 0.5, 2.0]])
    plain = allocate(change_rate, importance, 2.0).crawl_rate
    formed = allocate(form(change_rate), form(importance), 2.0).crawl_rate
    np.testing.assert_array_equal(formed, plain)


@pytest.mark.parametrize("allocate", [*HEURISTICS, *OPTIMA])
def test_many_equal_pages_get_equal_rates(allocate):
    n = 100_000
    rate = allocate(np.full(n, 0.7), np.full(n, 0.3), 5.0).crawl_rate
    np.testing.assert_allclose(rate, 5.0 / n, rtol=1e-9)


EXTREME = decades(-300, 300, zero=True)
ELEMENTWISE = (
    freshness.poisson,
    freshness.interval,
    lambda change, crawl: freshness.mean([freshness.poisson(change, crawl)], [1.0]),
)


@pytest.mark.parametrize("fresh", ELEMENTWISE)
@given(EXTREME, EXTREME)
def test_freshness_is_a_share(fresh, change_rate, crawl_rate):
    assert 0 <= fresh(change_rate, crawl_rate) <= 1


def test_equal_intervals_are_no_fresher_than_fresh():
    rate = 10.0 ** np.arange(-20.0, 20.0, 0.01)
    assert (freshness.interval(rate, 0.3) <= 1).all()


def quietly(estimate, *arguments):
    """Without the warnings that are promised for degenerate pages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateHistoryWarning)
        return estimate(*arguments)


@st.composite
def histories(draw, *, span=3):
    n = draw(st.integers(1, 8) | st.just(50))
    interval = draw(several(decades(-span, span), n))
    return interval, draw(several(st.booleans(), n))


@given(crawls=histories(), factor=decades(-6, 6))
def test_estimates_scale_with_time(crawls, factor):
    interval, changed = crawls
    here, there = History(interval, changed), History(interval * factor, changed)
    rate = estimators.mle(here, substitute=True)
    same = estimators.mle(there, substitute=True) * factor
    np.testing.assert_allclose(same, rate, rtol=1e-8)
    prior, later = (priors.FakeIntervals(f, 2 * f) for f in (1.0, factor))
    one, other = prior.observed(here), later.observed(there)
    limits = estimators.likelihood_interval(one, estimators.mle(one))
    same = estimators.likelihood_interval(other, estimators.mle(other))
    np.testing.assert_allclose(np.multiply(same, factor), limits, rtol=1e-8)


def test_rates_over_ten_decades_spend_the_bandwidth():
    """One rounding error of 1e5 is 5e-9 of this bandwidth."""
    change_rate, importance = np.array([1e-5, 1e5]), np.array([1.0, 1e5])
    for bandwidth in np.linspace(3.2e-3, 4e-3, 50):
        rate = at_poisson_times(change_rate, importance, bandwidth).crawl_rate
        assert rate.sum() == pytest.approx(bandwidth, rel=1e-14)


@pytest.mark.parametrize("crawls", ["poisson", "interval"])
def test_a_host_at_its_limit_has_pages_of_far_higher_importance(crawls):
    """The multiplier is 160 decades below that of the first guess."""
    importance = np.array([1e80, 1e-80])
    plan = on_two_hosts(np.ones(2), importance, 1.0, crawls=crawls)
    np.testing.assert_allclose(plan.crawl_rate, [0.3, 0.7], rtol=1e-12)


class Schedules(RuleBasedStateMachine):
    """A scheduler beside one that has just been loaded, and the full arg max."""

    @initialize(learns=st.booleans())
    def begin(self, learns):
        self.learns, self.now = learns, 0.0
        self.last, self.seen = np.zeros(0), np.zeros(0)
        self.importance, self.believed = np.zeros(0), np.zeros((0, 2))
        self.present = np.zeros(0, dtype=bool)
        new = [(1.0, 0.5), (0.3, 2.0)]
        self.scheduler = Scheduler(self.policy(new), crawled=0.0)
        self.append(new)

    def policy(self, pages):
        """Pages as they are added: importance, and shape or change rate."""
        importance, number = np.array(pages).T
        if self.learns:
            return BayesGreedy(importance, shape=number, rate=1.0)
        return SignalledPages(number, importance, 0.0, 0.0)

    def append(self, pages):
        importance, number = np.array(pages).T
        n = importance.size
        self.importance = np.append(self.importance, importance)
        self.believed = np.append(
            self.believed, np.column_stack([number, np.ones(n)]), axis=0
        )
        self.last = np.append(self.last, np.full(n, self.now))
        self.seen = np.append(self.seen, np.full(n, self.now))
        self.present = np.append(self.present, np.ones(n, dtype=bool))

    def values(self):
        elapsed = self.now - self.last
        number, rate = self.believed.T
        if self.learns:
            value = self.importance * np.vectorize(bayes.value)(number, rate, elapsed)
        else:
            pages = SignalledPages(number, self.importance, 0.0, 0.0)
            value = freshness.crawl_value(elapsed, 0, pages)
        return np.where(self.present, value, -1.0)

    @rule(gap=st.sampled_from([0.01, 0.5, 0.5, 3.0, 1e4]))
    @precondition(lambda self: self.present.any())
    def crawl(self, gap):
        self.now += gap
        value = self.values()
        page = self.scheduler.next(self.now)
        # values that differ by rounding alone may come in either order
        assert value[page] >= value.max() * (1 - 1e-11)
        self.last[page] = self.now

    @rule(changed=st.booleans(), data=st.data())
    @precondition(lambda self: self.learns and (self.present & self.unreported()).any())
    def report(self, changed, data):
        unreported = np.flatnonzero(self.present & self.unreported())
        page = data.draw(st.sampled_from(unreported.tolist()))
        self.scheduler.report(page, changed)
        self.seen[page] = self.last[page]
        self.believed[page] = [posterior[page] for posterior in self.posterior()]

    def posterior(self):
        return self.scheduler.posterior

    def unreported(self):
        return self.last > self.seen

    pages = st.lists(
        st.tuples(st.sampled_from([0.0, 1e-9, 0.3, 1.0]), decades(-2, 1)),
        min_size=1,
        max_size=3,
    )

    @rule(new=pages)
    def add(self, new):
        added = self.scheduler.add(self.policy(new), crawled=self.now)
        assert added.tolist() == list(range(self.last.size, self.last.size + len(new)))
        self.append(new)

    @rule(new=pages, data=st.data())
    @precondition(lambda self: self.present.any())
    def update(self, new, data):
        page = data.draw(st.sampled_from(np.flatnonzero(self.present).tolist()))
        self.scheduler.update(page, self.policy(new[:1]))
        self.importance[page] = new[0][0]
        self.believed[page] = new[0][1], 1.0

    @rule(data=st.data())
    @precondition(lambda self: self.present.sum() > 1)
    def remove(self, data):
        page = data.draw(st.sampled_from(np.flatnonzero(self.present).tolist()))
        self.scheduler.remove(page)
        self.present[page] = False

    @rule()
    def save_and_load(self):
        self.scheduler.save(self.path)
        self.scheduler = Scheduler.load(self.path)

    @invariant()
    def pages_are_counted(self):
        assert len(self.scheduler) == self.present.sum()


@pytest.mark.slow
def test_the_scheduler_is_the_full_arg_max(tmp_path):
    from hypothesis.stateful import run_state_machine_as_test

    class Here(Schedules):
        path = tmp_path / "scheduler.npz"

    run_state_machine_as_test(Here)


UNITS_OF_TIME = st.integers(-60, 60).map(lambda power: 4.0**power)


@st.composite
def few_rates(draw, *, span):
    """Rates within a few decades of one another, not all 0, anywhere in the range."""
    n, unit = draw(st.integers(1, 6)), draw(decades(-span, span))
    rate = unit * draw(several(decades(-3, 1, zero=True), n))
    assume(rate.any())
    return rate


@given(
    host=st.lists(st.sampled_from("abcd"), min_size=1, max_size=9),
    limits=st.dictionaries(st.sampled_from("abcd"), decades(-2, 0.3)),
    bandwidth=decades(-100, 100),
)
@example(host=list("aab"), limits={"a": 0.5}, bandwidth=1.0)
def test_limits_of_hosts_are_those_of_their_labels(host, limits, bandwidth):
    n = len(host)
    named = {label: bandwidth * limits[label] for label in limits.keys() & set(host)}
    labels, member, limit = hosts.members(host, named, n)
    assert [labels[k] for k in member] == host
    assert limit.tolist() == [named.get(label, np.inf) for label in labels]


@given(
    gaps=st.lists(decades(-3, 3), min_size=1, max_size=9),
    changes=st.lists(st.floats(1e-9, 1.2), max_size=9),
    n_entries=st.integers(1, 4),
    unit=UNITS_OF_TIME,
)
def test_what_crawls_see_is_the_same_in_any_unit(gaps, changes, n_entries, unit):
    crawl_times = np.cumsum(gaps)
    change_times = np.sort(changes) * crawl_times[-1]
    bits = observe(change_times, crawl_times)
    feed = observe_feed(change_times, crawl_times)
    ages = observe_feed(change_times, crawl_times, n_entries=n_entries)
    seen = change_times <= crawl_times[-1]
    assert feed.count.sum() == seen.sum()
    assert (ages.count == np.minimum(feed.count, n_entries)).all()
    for history in (bits, feed, ages):
        np.testing.assert_array_equal(history.changed, feed.count > 0)
        assert history.interval.sum() == pytest.approx(crawl_times[-1], rel=1e-12)
    assert ((ages.age >= 0) & (ages.age <= crawl_times[-1]))[
        ages.count == n_entries
    ].all()
    other = observe_feed(change_times * unit, crawl_times * unit, n_entries=n_entries)
    np.testing.assert_array_equal(other.age, ages.age * unit)
    twice = join(ages, ages)
    np.testing.assert_array_equal(twice.interval, np.append(*[ages.interval] * 2))


@given(data=st.data(), n=st.integers(1, 5))
def test_a_policy_picks_pages_and_keeps_their_least_interval(data, n):
    rate, importance = (data.draw(several(decades(-3, 2, zero=True), n)) for _ in "ab")
    pages = SignalledPages(rate, importance, data.draw(st.floats(0, 1)), 0.1)
    assume(importance.any())
    rest = data.draw(st.sampled_from([0.0, 0.7]))
    world = simulate.draw_world(pages, 20.0, rng=1)
    given_rest = {"min_interval": rest}
    for policy in (
        policies.GreedyNCIS(pages),
        policies.Greedy(pages, **given_rest),
        policies.BayesGreedy(importance, shape=0.5, rate=1.0, **given_rest),
        policies.Nutch(),
        policies.StormCrawler(),
    ):
        run = simulate.crawl(world, policy, 2.0)
        assert ((run.page >= -1) & (run.page < n)).all()
        assert ((run.fresh >= 0) & (run.fresh <= run.there * (1 + 1e-12))).all()
        assert run.n_crawls.sum() + run.n_idle == run.time.size
        if hasattr(policy, "min_interval"):
            for page in range(n):
                crawls = np.append(0.0, run.time[run.page == page])
                assert (np.diff(crawls) >= rest * (1 - 1e-12)).all()


@given(
    pieces=st.lists(
        st.tuples(decades(-2, 2), decades(-2, 2, zero=True)), min_size=1, max_size=6
    ),
    unit=UNITS_OF_TIME,
)
def test_slots_come_when_the_bandwidth_has_added_up(pieces, unit):
    length, rates = np.array(pieces).T
    horizon = length.sum()
    begin = np.cumsum(length) - length
    time = simulate.slot_times((begin, rates), horizon)
    assert (np.diff(time) > 0).all()
    spent = np.clip(np.subtract.outer(time, begin), 0, length) @ rates
    np.testing.assert_allclose(spent, np.arange(1, time.size + 1), rtol=1e-9)
    assert time.size == int(rates @ length * (1 + 1e-12))
    other = simulate.slot_times((begin * unit, rates / unit), horizon * unit)
    np.testing.assert_allclose(other, time * unit, rtol=1e-12)


@st.composite
def profiles(draw):
    n = draw(st.integers(2, 6))
    weight = draw(several(decades(-3, 3, zero=True), n))
    assume(weight.any())
    return periodic.Profile(weight, period=draw(UNITS_OF_TIME))


@given(
    profile=profiles(),
    change_rate=decades(-30, 30, zero=True),
    crawls=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=5),
)
@example(profile=periodic.Profile([1.0, 1.0, 1.0]), change_rate=1e17, crawls=[0.1875])
def test_stale_time_is_a_share_that_crawls_lower(profile, change_rate, crawls):
    change_rate /= profile.period
    crawls = np.array(crawls) * profile.period
    stale = periodic.staleness(profile, change_rate, crawls)
    assert 0 <= stale <= 1
    more = periodic.staleness(
        profile, change_rate, np.append(crawls, profile.period / 3)
    )
    assert more <= stale + 1e-12
    whole = periodic.stale_time(profile, change_rate, 0.0, profile.period)
    assert 0 <= whole <= profile.period
    found = periodic.best_crawl_times(profile, change_rate, crawls.size, n_phases=12)
    again = periodic.staleness(profile, change_rate, found.time)
    assert found.staleness == pytest.approx(again, rel=1e-9, abs=1e-12)
    slots = periodic.slot_staleness(
        profile, [change_rate], np.sort(crawls), np.zeros(crawls.size, int),
        horizon=profile.period,
    )  # fmt: skip
    assert 0 <= slots <= 1


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), unit=UNITS_OF_TIME)
def test_priors_are_learnt_in_any_unit(seed, unit):
    rng = np.random.default_rng(seed)
    interval = 10.0 ** rng.uniform(-2, 2, (12, 9))
    mean = interval * rng.gamma(1, 1, (12, 1))
    changed = rng.random(interval.shape) < -np.expm1(-mean)
    rate = np.geomspace(1e-4, 1e3, 200)
    one = priors.FakeIntervals.learn(History(interval, changed), rate)
    other = priors.FakeIntervals.learn(History(interval * unit, changed), rate / unit)
    # the search ends within 1e-6 of a logarithm, of which the loss may be flat
    assert other.changed / unit == pytest.approx(one.changed, rel=1e-4)
    assert other.unchanged / unit == pytest.approx(one.unchanged, rel=1e-4)


@given(seed=st.integers(0, 2**32), unit=UNITS_OF_TIME)
def test_profiles_are_learnt_in_any_unit(seed, unit):
    rng = np.random.default_rng(seed)
    interval = rng.uniform(0.1, 1.5, 200)
    changed = rng.random(200) < 0.5
    one = periodic.fit_profile(History(interval, changed), n_bins=3)
    there = History(interval * unit, changed)
    other = periodic.fit_profile(there, n_bins=3, period=unit)
    np.testing.assert_allclose(other.profile.weight, one.profile.weight, rtol=1e-6)
    np.testing.assert_allclose(other.change_rate * unit, one.change_rate, rtol=1e-6)
    flat = periodic.flatness_test(there, n_bins=3, period=unit)
    assert 0 <= flat.pvalue <= 1
