"""Objectives: tables of reference, quadrature, 60 digits, simulation, limits."""

import pickle
import re
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from recrawl.science import freshness, objectives
from tests.recrawl import plain as reference
from tests.recrawl.made import poisson_times

TAU = 0.7
ALL = {
    "freshness": objectives.freshness,
    "age": objectives.age,
    "delay": objectives.delay,
    "harmonic": objectives.harmonic,
    "age_of_information": objectives.age_of_information,
    "deadline": objectives.deadline(TAU),
}
SMOOTH = [name for name in ALL if name != "deadline"]
each = pytest.mark.parametrize("name", ALL)
each_smooth = pytest.mark.parametrize("name", SMOOTH)
points = pytest.mark.parametrize(
    ("change_rate", "time"), [(2.0, 0.5), (0.2, 3.0), (5.0, 1.0), (0.03, 0.9)]
)


# ---------------------------------------------------------------- closed forms


@pytest.mark.parametrize(
    ("change_rate", "time", "name", "cost", "value", "interval", "poisson"),
    [
        (2, 0.5, "age", 0.1839397206, 0.0589397206, 0.0660602794, 0.25),
        (2, 0.5, "harmonic", 0.7965995993, 0.1839397206, 0.4287201581, 0.6931471806),
        (2, 0.5, "freshness", 0.6321205588, 0.1321205588, 0.3678794412, 0.5),
        (0.2, 3, "age", 0.7440581805, 1.4524654438, 0.2599030325, 1.125),
        (0.2, 3, "harmonic", 0.5207695443, 0.7440581805, 0.2727501508, 0.4700036292),
        (5, 1, "age", 0.8013475894, 0.4616171073, 0.3397304821, 0.8333333333),
        (5, 1, "harmonic", 2.1878018729, 0.8013475894, 1.3864542835, 1.7917594692),
        (5, 1, "deadline", 5, 3.5, 1.5, 2.4829265190),
    ],
)  # independent numbers, to the digits that are printed
def test_reference_numbers(change_rate, time, name, cost, value, interval, poisson):
    objective = ALL[name]
    found = [
        objective.cost(time, change_rate),
        objective.value(time, change_rate),
        objective.interval_cost(change_rate, 1 / time),
        objective.poisson_cost(change_rate, 1 / time),
    ]
    assert_allclose(found, [cost, value, interval, poisson], rtol=0, atol=5.1e-11)


def test_reference_inverses():
    assert_allclose(
        [
            objectives.freshness.elapsed_at(0.2, 2.0),
            objectives.harmonic.elapsed_at(0.4, 2.0),
        ],
        [0.6882106710, 0.7988115020],
        rtol=0,
        atol=5.1e-11,
    )


def test_freshness_and_harmonic_cost_are_those_of_the_module_freshness():
    change_rate, crawl_rate = np.geomspace(1e-3, 1e3, 7)[:, np.newaxis], [0.1, 1.0, 9.0]
    for found, fresh in [
        (objectives.freshness.interval_cost, freshness.interval),
        (objectives.freshness.poisson_cost, freshness.poisson),
    ]:
        assert_allclose(
            found(change_rate, crawl_rate),
            1 - fresh(change_rate, crawl_rate),
            atol=1e-15,
            rtol=1e-12,
        )
    assert_allclose(
        objectives.harmonic.poisson_cost(change_rate, crawl_rate),
        np.log1p(np.divide(change_rate, crawl_rate)),
        rtol=1e-13,
    )


def test_age_is_the_integral_of_freshness_and_harmonic_has_its_value():
    t, d = np.geomspace(1e-3, 1e3, 50), 0.7
    age = objectives.age.cost(t, d)
    assert_allclose(objectives.harmonic.value(t, d), age, rtol=1e-13)
    assert_allclose(t * objectives.freshness.interval_cost(d, 1 / t), age, rtol=1e-13)
    for name in ("delay", "age_of_information"):
        assert_allclose(
            ALL[name].value(t, 1.0), objectives.delay.interval_cost(1, 1 / t) * t
        )


# ------------------------------------------------------------------ quadrature


@each
@points
def test_means_over_intervals_and_exponential_times_are_integrals(
    name, change_rate, time
):
    objective, rate = ALL[name], 1 / time
    tau = min(objective.tau, 60 * time)

    def mean(f):
        """Over an exponential time: the parts left and right of a jump."""
        pieces = [(0, tau), (tau, tau + 60 * time)]
        density = [
            quad(lambda t: rate * np.exp(-rate * t) * f(t), *piece, epsrel=1e-12)[0]
            for piece in pieces
        ]
        return sum(density)

    def cost(t):
        return reference.objective_cost(name, t, change_rate, objective.tau)

    low = min(tau, time)
    interval = rate * (quad(cost, 0, low)[0] + quad(cost, low, time)[0])
    assert_allclose(
        [
            objective.interval_cost(change_rate, rate),
            objective.poisson_cost(change_rate, rate),
            objective.poisson_value(change_rate, rate),
        ],
        [interval, mean(cost), mean(lambda t: objective.value(t, change_rate))],
        rtol=1e-9,
        atol=1e-15,
    )


@each
@points
def test_values_are_the_slopes_of_the_costs(name, change_rate, time):
    objective, rate = ALL[name], 1 / time
    step = 1e-5 * rate

    def slope(cost):
        above, below = cost(change_rate, rate + step), cost(change_rate, rate - step)
        return (below - above) / (2 * step)

    assert slope(objective.interval_cost) == pytest.approx(
        objective.value(time, change_rate), rel=1e-7
    )
    assert slope(objective.poisson_cost) == pytest.approx(
        objective.poisson_value(change_rate, rate), rel=1e-7
    )


@each
def test_equal_intervals_cost_no_more_than_poisson_crawls(name):
    rates = np.geomspace(1e-2, 1e2, 21)
    intervals = ALL[name].interval_cost(rates[:, np.newaxis], rates)
    assert (intervals <= ALL[name].poisson_cost(rates[:, np.newaxis], rates)).all()


# ------------------------------------------------------------------- precision

EULER = Decimal("0.577215664901532860606512090082402431042159335939923598805767")


def ein(x):
    """Ein in decimals: its series, and log(x) + gamma where E1 is below 1e-30."""
    if x > 70:
        return EULER + x.ln()
    term, total, k = Decimal(1), Decimal(0), 0
    while k < 10 or abs(term) > Decimal("1e-90"):
        k += 1
        term *= -x / k
        total -= term / k
    return total


def exact(name, t, d):
    """Cost, value, interval cost at 1 / t, in decimals; they cancel freely."""
    x = d * t
    e = (-x).exp()
    if name == "freshness":
        return 1 - e, (1 - (1 + x) * e) / d, 1 - (1 - e) / x
    if name == "age":
        return (
            t - (1 - e) / d,
            t * t / 2 - (1 - (1 + x) * e) / d / d,
            t * (Decimal("0.5") - 1 / x + (1 - e) / x / x),
        )
    if name == "harmonic":
        return ein(x), t - (1 - e) / d, ein(x) - 1 + (1 - e) / x
    rate = d if name == "delay" else Decimal(1)
    return rate * t, rate * t * t / 2, rate * t / 2


@each_smooth
@pytest.mark.parametrize("change_rate", [1e-6, 0.7, 1e6])
def test_twelve_digits_from_the_shortest_to_the_longest_time(name, change_rate):
    for x in [*10.0 ** np.arange(-12, 13), 0.3, 0.99999, 1.00001, 3.0, 44.9, 45.1]:
        time = float(x) / change_rate
        with localcontext() as context:
            context.prec = 130
            expected = [
                float(number)
                for number in exact(name, Decimal(time), Decimal(change_rate))
            ]
        found = [
            ALL[name].cost(time, change_rate),
            ALL[name].value(time, change_rate),
            ALL[name].interval_cost(change_rate, 1 / time),
        ]
        assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("ratio", 10.0 ** np.arange(-12, 13))
def test_twelve_digits_from_the_rarest_to_the_most_frequent_crawls(ratio):
    crawl_rate, change_rate = 0.3 * ratio, 0.3
    p, d = Fraction(crawl_rate), Fraction(change_rate)
    costs = {"freshness": d / (p + d), "age": d / p / (p + d), "delay": d / p}
    values = {
        "freshness": d / (p + d) ** 2,
        "age": 1 / p**2 - 1 / (p + d) ** 2,
        "delay": d / p**2,
        "harmonic": 1 / p - 1 / (p + d),
        "age_of_information": 1 / p**2,
    }
    for name, cost in costs.items():
        found = ALL[name].poisson_cost(change_rate, crawl_rate)
        assert found == pytest.approx(float(cost), rel=1e-14)
    for name, value in values.items():
        found = ALL[name].poisson_value(change_rate, crawl_rate)
        assert found == pytest.approx(float(value), rel=1e-14)


@each_smooth
def test_elapsed_at_is_the_inverse_of_value(name):
    objective, change_rate = ALL[name], np.array([[1e-6], [0.7], [1e6]])
    time = np.geomspace(1e-12, 15.0 if name == "freshness" else 1e12, 101)
    value = objective.value(time / change_rate, change_rate)
    again = objective.elapsed_at(value, change_rate)
    # towards its limit the value of freshness forgets the time
    rtol = np.where(time > 3, 1e-9, 1e-11) if name == "freshness" else 1e-11
    assert (np.abs(again * change_rate / time - 1) <= rtol).all()
    assert_allclose(objective.value(again, change_rate), value, rtol=1e-11)


# -------------------------------------------------------------------- simulation


def simulated(change_rate, crawl_rate, crawls):
    """Intervals, and for each change its crawl, the time until it, and its rank."""
    rng, n = np.random.default_rng(7), 100_000
    if crawls == "poisson":
        interval = rng.exponential(1 / crawl_rate, n)
    else:
        interval = np.full(n, 1 / crawl_rate)
    crawl = np.cumsum(interval)
    change = poisson_times(change_rate, crawl[-1], rng=rng)
    seen_by = np.searchsorted(crawl, change)
    rank = np.arange(change.size) - np.searchsorted(seen_by, seen_by) + 1
    return interval, seen_by, crawl[seen_by] - change, rank


def totals(name, wait, rank):
    """What each change adds to the cost, until the crawl that sees it."""
    return {
        "freshness": wait * (rank == 1),
        "age": wait**2 / 2 * (rank == 1),
        "age squared": wait**3 / 3 * (rank == 1),
        "delay": wait,
        "harmonic": wait / rank,
        "harmonic once a crawl": 1 / rank,
        "deadline": 1.0 * (wait > TAU),
    }[name]


def assert_mean(expected, name, world):
    """The mean cost per time is as expected, within four standard errors."""
    interval, seen_by, wait, rank = world
    cost = np.bincount(seen_by, totals(name, wait, rank), minlength=interval.size)
    # a ratio of means over crawls, linearised
    error = (cost - expected * interval).std() / interval.mean() / interval.size**0.5
    assert cost.sum() / interval.sum() == pytest.approx(expected, abs=4 * error)


@pytest.mark.parametrize("crawls", ["interval", "poisson"])
@pytest.mark.parametrize(("change_rate", "crawl_rate"), [(0.6, 1.0), (4.0, 0.8)])
def test_costs_are_the_means_of_simulated_changes_and_crawls(
    crawls, change_rate, crawl_rate
):
    world = simulated(change_rate, crawl_rate, crawls)
    for name in ("freshness", "age", "delay", "harmonic", "deadline"):
        cost = getattr(ALL[name], f"{crawls}_cost")(change_rate, crawl_rate)
        assert_mean(cost, name, world)


def test_a_penalty_of_the_age_and_the_penalty_added_once_a_crawl():
    change_rate, crawl_rate = 1.5, 0.8
    world = simulated(change_rate, crawl_rate, "poisson")
    # where a copy is stale its age is Exp(p): the mean penalty is f's mean over
    # it, times the stale share, here for f = 1, age, and age squared
    stale = objectives.freshness.poisson_cost(change_rate, crawl_rate)
    age = objectives.age.poisson_cost(change_rate, crawl_rate)
    assert age == pytest.approx(stale / crawl_rate, rel=1e-13)
    assert_mean(stale * 2 / crawl_rate**2, "age squared", world)
    # the sum of 1 + 1/2 + ... + 1/N over crawls, and the mean over time
    mean = objectives.harmonic.poisson_cost(change_rate, crawl_rate)
    assert_mean(crawl_rate * mean, "harmonic once a crawl", world)
    assert_mean(mean, "harmonic", world)


# ---------------------------------------------- order, limits, units, bad input


@each
def test_costs_and_values_never_fall_with_time(name):
    objective = ALL[name]
    time = np.sort([0.0, *np.geomspace(1e-6, 1e6, 400), TAU, np.inf])
    for change_rate in (1e-3, 1.0, 1e3):
        for method in (objective.cost, objective.value):
            found = method(time, change_rate)
            assert found[0] == 0
            # 1e-15 of rounding, where a cost has reached its limit
            assert (found[1:] >= found[:-1] * (1 - 1e-15)).all()
        for method in (objective.interval_cost, objective.poisson_cost):
            found = method(change_rate, 1 / time[1:-1])
            assert (found[1:] >= found[:-1] * (1 - 1e-15)).all()


@each
def test_a_page_that_is_never_crawled(name):
    objective = ALL[name]
    limit = {"freshness": 1 / 3, "deadline": 3 * TAU}.get(name, np.inf)
    assert objective.limit(3.0) == pytest.approx(limit, rel=1e-15)
    assert objective.value(np.inf, 3.0) == objective.limit(3.0)
    assert objective.poisson_value(3.0, 0.0) == pytest.approx(limit, rel=1e-15)
    cost = {"freshness": 1.0, "deadline": 3.0}.get(name, np.inf)
    assert objective.cost(np.inf, 3.0) == cost
    assert objective.interval_cost(3.0, 0.0) == cost
    assert objective.poisson_cost(3.0, 0.0) == cost
    assert objective.elapsed_at(np.inf, 3.0) == np.inf
    if limit < np.inf:
        assert objective.elapsed_at(limit * 1.001, 3.0) == np.inf
        assert objective.elapsed_at(limit * 0.999, 3.0) < np.inf


@each
def test_no_cost_or_value_is_nan(name):
    """0 times inf, where a number beyond floating point meets one below it."""
    numbers = 10.0 ** np.array([-300, -160, -100, -50, 0, 50, 100, 160, 300])
    objective, change_rate = ALL[name], numbers[:, np.newaxis]
    for method in (
        objective.cost,
        objective.value,
        objective.interval_cost,
        objective.poisson_cost,
        objective.poisson_value,
    ):
        assert not np.isnan(method(numbers, change_rate)).any()
    assert objectives.freshness.interval_cost(1e50, 1e-300) == 1.0


@each
def test_a_page_that_never_changes_costs_nothing_but_age_of_information(name):
    objective, aoi = ALL[name], name == "age_of_information"
    assert objective.cost(4.0, 0.0) == (4.0 if aoi else 0.0)
    assert objective.cost(np.inf, 0.0) == (np.inf if aoi else 0.0)
    assert objective.value(4.0, 0.0) == (8.0 if aoi else 0.0)
    assert objective.limit(0.0) == (np.inf if aoi else 0.0)
    assert objective.interval_cost(0.0, [0.0, 0.5]).tolist() == (
        [np.inf, 1.0] if aoi else [0.0, 0.0]
    )
    assert objective.poisson_cost(0.0, [0.0, 0.5]).tolist() == (
        [np.inf, 2.0] if aoi else [0.0, 0.0]
    )
    assert objective.poisson_value(0.0, 0.5) == (4.0 if aoi else 0.0)
    assert objective.elapsed_at(8.0, 0.0) == (4.0 if aoi else np.inf)
    assert objective.elapsed_at(0.0, 0.0) == 0.0


def test_a_deadline_is_a_jump():
    objective = objectives.deadline(2.0)
    assert objective.cost([2.0, 2.001], 3.0).tolist() == [0.0, 3.0]
    assert objective.elapsed_at([0.0, 1e-9, 6.0, 6.1], 3.0).tolist() == [
        0.0,
        2.0,
        2.0,
        np.inf,
    ]
    assert objective.interval_cost(3.0, [0.5, 0.6]).tolist() == [0.0, 0.0]


@each
def test_another_unit_of_time(name):
    # the powers of time in cost and value
    power = {"age": 1, "age_of_information": 1, "deadline": -1}.get(name, 0)
    first, second = ALL[name], ALL[name]
    if name == "deadline":
        second = objectives.deadline(60 * TAU)
    time, rate = np.geomspace(0.01, 100, 9), np.array([[0.1], [2.0]])
    for method, unit in [("cost", 60**power), ("value", 60.0 ** (power + 1))]:
        assert_allclose(
            getattr(second, method)(60 * time, rate / 60),
            unit * getattr(first, method)(time, rate),
            rtol=1e-12,
        )
        method = "poisson_" + method
        assert_allclose(
            getattr(second, method)(rate / 60, time / 60),
            unit * getattr(first, method)(rate, time),
            rtol=1e-12,
        )


@each
def test_shapes_and_bad_input(name):
    objective = ALL[name]
    methods = {
        "elapsed": (objective.cost, objective.value),
        "value": (objective.elapsed_at,),
        "crawl_rate": (
            objective.interval_cost,
            objective.poisson_cost,
            objective.poisson_value,
        ),
    }
    for argument, found in methods.items():
        for method in found:

            def of(first, change_rate, method=method, argument=argument):
                return method(**{argument: first, "change_rate": change_rate})

            assert of([[1.0], [2.0]], [0.1, 0.2, 0.3]).shape == (2, 3)
            assert isinstance(of(1.0, 0.1), float)
            for bad in (-1.0, np.nan):
                with pytest.raises(
                    ValueError, match=rf"{argument} must be non-negative.*, got {bad}"
                ):
                    of([1.0, bad], 0.1)
                with pytest.raises(
                    ValueError, match=rf"change_rate must be non-negative.*, got {bad}"
                ):
                    of(1.0, [bad, 0.1])
            with pytest.raises(ValueError, match=r"change_rate must be .* got inf"):
                of(1.0, np.inf)
            with pytest.raises(
                ValueError,
                match=re.escape(
                    f"{argument} and change_rate must have shapes that broadcast, "
                    f"got {argument} (2,), change_rate (3,)"
                ),
            ):
                of([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="crawl_rate must be non-negative and finite"):
        objective.poisson_cost(1.0, np.inf)


@pytest.mark.parametrize("tau", [0.0, -1.0, np.inf, np.nan])
def test_a_deadline_is_positive_and_finite(tau):
    with pytest.raises(
        ValueError, match=rf"tau must be positive and finite, got {tau}"
    ):
        objectives.deadline(tau)


def test_a_deadline_is_one_number():
    with pytest.raises(ValueError, match=r"tau must be a single number, got shape"):
        objectives.deadline([1.0, 2.0])


def test_objectives_are_equal_after_pickling_and_by_their_deadline():
    for objective in ALL.values():
        again = pickle.loads(pickle.dumps(objective))
        assert again == objective
        assert hash(again) == hash(objective)
    assert len(set(ALL.values())) == len(ALL)
    assert objectives.deadline(1.0) == objectives.deadline(1.0)
    assert objectives.deadline(1.0) != objectives.deadline(2.0)
    assert objectives.freshness != "freshness"


def test_objectives_print_as_they_are_written():
    for name in SMOOTH:
        assert repr(ALL[name]) == f"objectives.{name}"
        assert getattr(objectives, name) is ALL[name]
    assert repr(ALL["deadline"]) == "objectives.deadline(0.7)"
