"""The Lagrangian index and the best schedule of slots: plain forms and policy."""

import decimal
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from recrawl.kernels import indices as kernels
from recrawl.science import policies, simulate
from recrawl.science.signals import SignalledPages
from tests import plain as reference

SEEDS = range(20)


def draw(seed, n_pages=3):
    """Change rates per slot, at half a slot per page and unit of time; importances."""
    rng = np.random.default_rng([17, seed])
    return np.exp(rng.normal(size=n_pages)) * 2 / n_pages, rng.random(n_pages)


def lagrangian(rates, bandwidth=1.0):
    """The policy that gives each slot to the page of largest Lagrangian index."""
    return policies.LagrangianIndex(SignalledPages(*rates, 0.0, 0.0), bandwidth)


def greedy(rates):
    """The policy that gives each slot to the page of largest crawl value."""
    return policies.Greedy(SignalledPages(*rates, 0.0, 0.0))


def slots_between(change_rate, importance, slot, multiplier):
    """Slots between the crawls of a page by the plain index; inf for never."""
    index, _ = reference.lagrangian_index(change_rate, importance, slot, multiplier)
    due = np.flatnonzero(index >= multiplier * (1 - 1e-9))
    return due[0] if due.size else np.inf


def cost(rates, policy, n_slots=2000):
    """Exact mean cost per slot of a policy, over one cycle of its schedule."""
    change_rate, importance = rates
    world = simulate.draw_world(policy.pages, float(n_slots), rng=0)
    page = simulate.crawl(world, policy, bandwidth=1.0).page
    ages = np.ones((n_slots + 1, change_rate.size), dtype=int)
    for j, i in enumerate(page):
        ages[j + 1] = ages[j] + 1
        ages[j + 1, i] = 1
    # a page that is never crawled grows older, and is certainly stale
    state = np.where(change_rate * ages > 40, -1, ages)
    same = np.flatnonzero((state[:-1] == state[-1]).all(axis=1))[-1]
    age = ages[same:-1]
    age[np.arange(len(age)), page[same:]] = 0
    stale = 1 - np.exp(-change_rate * age) * -np.expm1(-change_rate) / change_rate
    return np.mean(stale @ importance)


def least(rates):
    """The least mean cost per slot, by dynamic programming."""
    longest = np.ceil(16 / rates[0]).astype(int)
    n_slots = lagrangian(rates).n_slots  # none waits more than three times as long
    wait = np.where(np.isfinite(n_slots), 3 * n_slots + 10, longest).astype(int)
    return reference.best_slots(*rates, 1.0, np.minimum(longest, wait), 1e-9)


# ------------------------------------------------------------------ closed forms


def test_printed_numbers():
    index, mean = reference.lagrangian_index(1.0, 1.0, 0.05, 0.1)
    assert mean == pytest.approx(0.02063180094, abs=6e-12)
    assert np.flatnonzero(index >= 0.1)[0] == 11


def test_definition_by_the_best_number_of_slots():
    """rho is least over all K, and the index adds up what waiting until K costs."""
    for seed in SEEDS:
        (change_rate, *_), (importance, *_) = draw(seed)
        price, n = 0.3 * importance / change_rate, np.arange(1, 2000)
        waiting = importance * (1 - np.exp(-change_rate * (n - 1)) * (
            -np.expm1(-change_rate) / change_rate
        ))  # fmt: skip
        by_number = (price + np.cumsum(waiting)) / n
        best = n[by_number.argmin()]
        index, mean = reference.lagrangian_index(change_rate, importance, 1.0, price)
        assert_allclose(mean, by_number.min(), rtol=1e-12)
        excess = waiting - mean
        expected = [
            price + excess[k] + excess[k + 1 : best].sum() for k in range(index.size)
        ]
        assert_allclose(index, expected, rtol=1e-10, atol=1e-12 * price)


def test_a_page_that_is_never_due():
    index, mean = reference.lagrangian_index(2.0, 3.0, 0.25, 1.6)  # mu / Delta = 1.5
    assert mean == pytest.approx(3.0 * 0.25, rel=1e-12)
    k = np.arange(index.size)
    assert_allclose(index, 1.5 * -np.expm1(-2.0 * 0.25 * k), atol=1e-12)


# ----------------------------------------------------------- independent oracles


@pytest.mark.parametrize("seed", range(4))
def test_no_periodic_schedule_is_better_than_the_optimum(seed):
    """All cycles of up to eight slots, one of which is the best schedule."""
    change_rate, importance = draw(seed, 2)
    best = reference.best_slots(change_rate, importance, 1.0, [30, 30], 1e-9)
    found = np.inf
    for length in range(1, 9):
        for cycle in itertools.product((0, 1), repeat=length):
            total = 0.0
            for i in (0, 1):
                crawls = np.flatnonzero(np.equal(cycle, i))
                if not crawls.size:
                    total += length * importance[i]  # stale for ever
                    continue
                wait = np.diff(crawls, append=crawls[0] + length)
                fresh = -np.expm1(-change_rate[i] * wait).sum() / change_rate[i]
                total += importance[i] * (length - fresh)
            found = min(found, total / length)
    assert found == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_at_the_multiplier_the_pages_want_the_bandwidth(seed):
    rates = draw(seed, 6)
    multiplier = lagrangian(rates).multiplier

    def wanted(price):
        return sum(
            1 / slots_between(*of, 1.0, price) for of in zip(*rates, strict=True)
        )

    assert wanted(multiplier * (1 + 1e-6)) <= 1 <= wanted(multiplier * (1 - 1e-6))


def test_slots_are_those_of_the_plain_index():
    rates = draw(3, 5)
    policy = lagrangian(rates)
    plain = [
        reference.lagrangian_index(*of, 1.0, policy.multiplier)[0]
        for of in zip(*rates, strict=True)
    ]
    world = simulate.draw_world(policy.pages, 300.0, rng=0)
    age, expected = np.zeros(5, dtype=int), []
    for _ in range(300):
        age += 1
        values = [
            index[min(k, index.size - 1)] for index, k in zip(plain, age, strict=True)
        ]
        expected.append(int(np.argmax(values)))
        age[expected[-1]] = 0
    assert_array_equal(simulate.crawl(world, policy, bandwidth=1.0).page, expected)


def test_against_the_optimum_of_three_pages():
    """The index is closer to the optimum than the crawl value, and never below it."""
    instances = [draw(seed) for seed in SEEDS]
    best = np.array([least(rates) for rates in instances])
    excess = {
        name: np.array([cost(rates, of(rates)) for rates in instances]) / best - 1
        for name, of in {"value": greedy, "index": lagrangian}.items()
    }
    assert min(of.min() for of in excess.values()) > -1e-7
    assert excess["index"].mean() < 0.3 * excess["value"].mean()
    assert (excess["index"] <= excess["value"] + 1e-7).all()
    assert (excess["index"] < 1e-7).mean() > 0.5 > excess["index"].max()


# ------------------------------------------------------------------- invariances


def test_another_unit_of_time():
    index, mean = reference.lagrangian_index(1.0, 2.0, 0.1, 0.3)
    other, other_mean = reference.lagrangian_index(4.0, 2.0, 0.1 / 4, 0.3 / 4)
    assert_allclose(4 * other, index, rtol=1e-10, atol=1e-12)
    assert 4 * other_mean == pytest.approx(mean, rel=1e-12)
    of = [np.array([0.4, 0.9]), np.array([1.0, 0.5])]
    best = reference.best_slots(*of, 1.0, [20, 20], 1e-10)
    scaled = reference.best_slots(4 * of[0], of[1], 0.25, [20, 20], 1e-10)
    assert 4 * scaled == pytest.approx(best, abs=1e-9)


def test_order_of_pages_and_greatest_ages():
    change_rate, importance = draw(0)
    best = reference.best_slots(change_rate, importance, 1.0, [20, 20, 20], 1e-9)
    turned = reference.best_slots(
        change_rate[::-1], importance[::-1], 1.0, [40, 30, 20], 1e-9
    )
    assert turned == pytest.approx(best, abs=3e-9)


def test_pages_that_never_want_all_slots():
    """Nine slots a unit of time, and one page that gains nearly nothing."""
    rates = [0.0, 1e-12, 1e4, 1e4], [1.0, 1e-90, 1e-90, 0.0]
    found = lagrangian(rates, 9.0)
    assert 0 < found.multiplier < 1e-90
    assert (1 / found.n_slots).sum() <= 1
    assert_array_equal(np.isinf(found.n_slots), [True, False, True, True])


def test_a_price_at_which_a_slot_more_hardly_counts():
    """Each page gets one slot in 1,000, long after it has changed."""
    found = lagrangian((np.full(1000, 0.3), np.ones(1000)), 0.1)
    assert_allclose(found.multiplier, 1 / 0.3, rtol=1e-12)
    assert (1 / found.n_slots).sum() <= 1


@pytest.mark.parametrize("slot", [1e-6, 1e-3, 0.1, 10.0])
@pytest.mark.parametrize("missing", [1e-14, 1e-9, 1e-3, 0.5, 0.999])
def test_slots_between_crawls_are_the_fewest_that_pay(slot, missing):
    """In decimal arithmetic of 50 digits."""
    rate, price = 0.7, (1 - missing) / 0.7
    found = kernels._slots_between(price, rate, slot)
    with decimal.localcontext(prec=50):
        x = decimal.Decimal(rate) * decimal.Decimal(slot)

        def lacks(k):  # of 1: the rate times k cost(k) - sum of the costs before
            k = decimal.Decimal(k)
            return (-x * k).exp() * (1 + k * (1 - (-x).exp()))

        lack = 1 - decimal.Decimal(price) * decimal.Decimal(rate)
        rounding = min(lack, 1 - lack) / 10**11 + decimal.Decimal("2e-16")
        assert lacks(found) <= lack + rounding
        assert found == 1 or lacks(found - 1) >= lack - rounding
