"""False changes: reference numbers, expectation maximisation, size, invariances."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from recrawl.science.estimators import false_changes, mle
from recrawl.science.processes import History
from tests.recrawl import plain as reference

# Twelve crawls of which all numbers are known to ten digits.
TWELVE = History(
    np.repeat([0.25, 1.0, 4.0], 4),
    [bit == "1" for bit in "010001101110"],
    [0, 12],
)


def pages(history):
    interval, changed, offsets = history.ragged()
    return [(interval[a:b], changed[a:b]) for a, b in itertools.pairwise(offsets)]


def host(seed, q, n_pages=5, n=(20, 40)):
    """Pages of one host at any intervals."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(*n, n_pages)
    interval = rng.lognormal(0, 1.5, sizes.sum())
    rate = np.repeat(rng.lognormal(0, 1, n_pages), sizes)
    bits = rng.random(interval.size) < 1 - (1 - q) * np.exp(-rate * interval)
    return History(interval, bits, np.append(0, np.cumsum(sizes)))


def log_likelihood(history, b, rate):
    return sum(
        reference.false_change_log_likelihood(r, b, *page)
        for page, r in zip(pages(history), rate, strict=True)
    )


def test_twelve_crawls():
    found = false_changes(TWELVE)
    assert found.probability == pytest.approx(0.22861979, abs=5e-9)
    assert found.pvalue == pytest.approx(0.16095534, abs=5e-9)
    assert found.change_rate == pytest.approx([0.30706143], abs=5e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("q", [0.1, 0.5])
def test_expectation_maximisation_finds_the_same(seed, q):
    history = host(seed, q)
    found = false_changes(history)
    b, rates = reference.false_changes(pages(history))
    assert -np.log1p(-found.probability) == pytest.approx(b, abs=1e-5)
    assert_allclose(found.change_rate, rates, rtol=1e-4, atol=1e-6)
    gain = log_likelihood(history, b, rates) - log_likelihood(history, 0, mle(history))
    assert found.pvalue == pytest.approx(stats.chi2.sf(2 * gain, 1) / 2, rel=1e-6)


@pytest.mark.slow
def test_size_and_power_of_the_test():
    rng = np.random.default_rng(5)

    def rejected(q, n_crawls, n_runs):
        interval = np.resize([0.1, 1.5], n_crawls)
        chance = 1 - (1 - q) * np.exp(-interval)
        runs = rng.random((n_runs, n_crawls)) < chance
        found = [false_changes(History(interval, r, [0, n_crawls])) for r in runs]
        return np.mean([each.pvalue < 0.05 for each in found])

    error = 3 * np.sqrt(0.05 * 0.95 / 2000)
    assert rejected(0.0, 1000, 2000) == pytest.approx(0.05, abs=error)
    assert 0.25 < rejected(0.05, 200, 500) < 0.45


def test_unit_of_time_and_order_of_pages_do_not_matter():
    history = host(6, 0.3)
    found = false_changes(history)
    interval, changed, offsets = history.ragged()
    scaled = false_changes(History(8 * interval, changed, offsets))
    back = pages(history)[::-1]
    sizes = np.append(0, np.cumsum(np.diff(offsets)[::-1]))
    turned = false_changes(
        History(*map(np.concatenate, zip(*back, strict=True)), sizes)
    )
    for each, rate in (
        (scaled, scaled.change_rate * 8),
        (turned, turned.change_rate[::-1]),
    ):
        assert_allclose(each[:2], found[:2], rtol=1e-8)
        assert_allclose(rate, found.change_rate, rtol=1e-8)


def test_pages_of_one_kind_of_bits():
    """What changed at every crawl shows nothing; what never changed, that q is 0."""
    mixed = host(7, 0.4, n_pages=2)
    alone = false_changes(mixed)
    interval, changed, offsets = mixed.ragged()

    def beside(bits):
        more = np.append(interval, np.full(30, 0.5)), np.append(changed, bits)
        ends = [*offsets, offsets[-1], offsets[-1] + 30]  # one page without crawls
        return false_changes(History(*more, ends))

    always, never = beside([True] * 30), beside([False] * 30)
    assert_allclose(always[:2], alone[:2], rtol=1e-8)
    assert_allclose(always.change_rate, [*alone.change_rate, np.nan, np.inf], rtol=1e-8)
    assert never.probability < alone.probability / 2
    assert never.change_rate[-1] == 0
    for bits in ([True] * 3, [False] * 3):
        found = false_changes(History([1.0, 2.0, 0.1], bits, [0, 3]))
        assert found[:2] == (0.0, 1.0)


def test_one_interval_is_no_evidence():
    for w, jitter in itertools.product((0.1, 0.3, 7.0), (0.0, 1e-5)):
        rng = np.random.default_rng(8)
        interval = w * (1 + jitter * rng.standard_normal(300))
        found = false_changes(History(interval, rng.random(300) < 0.6, [0, 100, 300]))
        assert found.pvalue > 0.1
