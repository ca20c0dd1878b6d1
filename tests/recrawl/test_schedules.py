"""Schedules: the distribution of Poisson crawl times, exact regular ones."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from recrawl.kernels import schedules as _kernels
from recrawl.science import schedules

both = pytest.mark.parametrize("schedule", [schedules.poisson, schedules.regular])


def pages(time, offsets):
    return np.split(time, offsets[1:-1])


@both
@pytest.mark.parametrize("duration", [1e-3, 7.0, 1e6])
def test_times_rise_within_the_duration_and_are_filed_by_page(schedule, duration):
    rate = np.random.default_rng(1).lognormal(0, 1, 50) * 10 / duration
    rate[[0, 17, 18, 49]] = 0.0
    time, offsets = schedule(rate, duration, rng=2)
    assert offsets.shape == (51,)
    assert offsets[0] == 0
    assert offsets[-1] == time.size > 300
    for r, t in zip(rate, pages(time, offsets), strict=True):
        assert (t.size == 0) == (r == 0) or r * duration < 10
        assert ((t > 0) & (t <= duration)).all()
        assert (np.diff(t) > 0).all()


@both
def test_nothing_to_crawl(schedule):
    # the last rates are so low that no crawl comes within the duration
    for rate in ([0.0, 0.0], 0.0, [1e-12, 0.0, 1e-300]):
        time, offsets = schedule(rate, 5.0, rng=3)
        assert time.shape == (0,)
        np.testing.assert_array_equal(offsets, np.zeros(np.size(rate) + 1))


@both
def test_the_mean_number_is_rate_times_duration(schedule):
    rate, n = np.array([0.07, 0.3, 1.0, 4.9]), 4000
    _, offsets = schedule(np.repeat(rate, n), 3.0, rng=4)
    count = np.diff(offsets).reshape(4, n)
    sd = np.sqrt(3 * rate) if schedule is schedules.poisson else count.std(axis=1)
    assert (
        np.abs(count.mean(axis=1) - 3 * rate) <= 5 * sd / np.sqrt(n)
    ).all()  # 5 standard errors; 0 of regular crawls at 1.0
    if schedule is schedules.regular:
        assert (np.abs(count - 3 * rate[:, np.newaxis]) < 1).all()


@pytest.mark.parametrize("mean", [0.5, 6.0])
def test_poisson_counts_are_poisson(mean):
    n = 20_000
    _, offsets = schedules.poisson(np.full(n, mean / 4), 4.0, rng=5)
    top = int(mean + 4 * np.sqrt(mean))
    seen = np.bincount(np.minimum(np.diff(offsets), top), minlength=top + 1)
    expected = n * np.append(
        stats.poisson.pmf(np.arange(top), mean), stats.poisson.sf(top - 1, mean)
    )
    assert stats.chisquare(seen, expected).pvalue > 1e-5


def test_poisson_times_given_their_number_are_uniform_order_statistics():
    time, offsets = schedules.poisson(np.full(20_000, 0.5), 8.0, rng=6)
    assert stats.kstest(time / 8, "uniform").pvalue > 1e-5
    of_three = np.array([t for t in pages(time, offsets) if t.size == 3]) / 8
    assert len(of_three) > 3000
    # the k-th of n uniform times is Beta(k, n + 1 - k), and a gap between two
    # neighbours has the distribution of the first
    for k in range(3):
        assert stats.kstest(of_three[:, k], stats.beta(k + 1, 3 - k).cdf).pvalue > 1e-5
    for gap in (of_three[:, 1] - of_three[:, 0], 1 - of_three[:, 2]):
        assert stats.kstest(gap, stats.beta(1, 3).cdf).pvalue > 1e-5


def test_pages_crawled_at_poisson_times_are_independent():
    time, offsets = schedules.poisson(np.full(20_000, 0.5), 8.0, rng=7)
    first = np.array(
        [t[0] if t.size else np.nan for t in pages(time, offsets)]
    ).reshape(-1, 2)
    first = first[np.isfinite(first).all(axis=1)]
    assert stats.spearmanr(*first.T).pvalue > 1e-5
    count = np.diff(offsets).reshape(-1, 2)
    assert stats.spearmanr(*count.T).pvalue > 1e-5


def test_ordered_times_are_partial_sums():
    rng, counts = np.random.default_rng(8), np.array([3, 0, 1, 5, 0])
    offsets, drawn = np.append(0, np.cumsum(counts)), rng.exponential(size=9 + 5)
    time = np.empty(9)
    _kernels.ordered_times(drawn, offsets, 7.0, time)
    start = offsets[:-1] + np.arange(5)
    expected = [
        np.cumsum(drawn[s : s + n])[:n] * 7 / drawn[s : s + n + 1].sum()
        for s, n in zip(start, counts, strict=True)
    ]
    np.testing.assert_allclose(time, np.concatenate(expected), rtol=1e-12)


def test_regular_crawls_are_where_they_should_be():
    rng = np.random.default_rng(9)
    rate, phase, duration = rng.lognormal(0, 1.5, 200), rng.uniform(0.01, 1, 200), 5.0
    for r, p, t in zip(
        rate, phase, pages(*schedules.regular(rate, duration, phase=phase)), strict=True
    ):
        expected = (np.arange(500) + p) / r
        np.testing.assert_allclose(t, expected[expected <= duration], rtol=1e-12)
    one = schedules.regular(rate, duration, phase=0.25)
    for got, expected in zip(
        one, schedules.regular(rate, duration, phase=np.full(200, 0.25)), strict=True
    ):
        np.testing.assert_array_equal(got, expected)


def test_a_drawn_phase_is_never_0():
    class Least(np.random.Generator):
        def random(self, size):
            return np.zeros(size)

    time, _ = schedules.regular([0.5], 5.0, rng=Least(np.random.PCG64()))
    assert time.tolist() == [2.0, 4.0]


def test_phases_are_uniform_by_default_and_of_each_page_its_own():
    rate = np.tile([0.5, 2.0], 5000)
    time, offsets = schedules.regular(rate, 10.0, rng=10)
    phase = np.array([t[0] for t in pages(time, offsets)]) * rate
    assert ((phase > 0) & (phase <= 1)).all()
    assert stats.kstest(phase, "uniform").pvalue > 1e-5
    assert stats.spearmanr(phase[::2], phase[1::2]).pvalue > 1e-5
    np.testing.assert_allclose(
        np.diff(time)[
            np.diff(np.repeat(np.arange(10_000), np.diff(offsets))) == 0
        ].max(),
        2.0,
        rtol=1e-10,
    )


@pytest.mark.parametrize("n_rounds", [1, 2, 3, 7, 49, 1000, 99_999])
def test_whole_rounds_end_with_a_crawl_of_every_page_however_they_round(n_rounds):
    for n_pages, bandwidth in [
        (3, 0.7),
        (7, 0.1),
        (10, 3.0),
        (49, 1 / 3),
        (500, 100.0),
    ]:
        duration = n_rounds * (n_pages / bandwidth)
        time, offsets = schedules.regular(
            np.full(2, bandwidth / n_pages), duration, phase=1.0
        )
        np.testing.assert_array_equal(offsets, [0, n_rounds, 2 * n_rounds])
        assert time.max() <= duration
        np.testing.assert_allclose(time[n_rounds - 1 :: n_rounds], duration, rtol=1e-12)


@both
def test_another_unit_of_time(schedule):
    rate = np.random.default_rng(11).lognormal(0, 1, 20)
    (time, offsets), (scaled, same) = (
        schedule(rate, 6.0, rng=12),
        schedule(rate / 64, 6.0 * 64, rng=12),
    )
    np.testing.assert_array_equal(offsets, same)
    np.testing.assert_array_equal(time * 64, scaled)  # a power of two: to the bit


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *[
            (lambda s=s, a=a: s(*a), message)
            for s in (schedules.poisson, schedules.regular)
            for a, message in [
                (
                    ([1.0, -1.0], 5.0),
                    "crawl_rate must be non-negative and finite, "
                    "got -1.0 at index (1,)",
                ),
                ((np.nan, 5.0), "crawl_rate must be non-negative and finite, got nan"),
                (
                    ([[1.0]], 5.0),
                    "crawl_rate must be a flat array of pages, got shape (1, 1)",
                ),
                ((1.0, 0.0), "duration must be positive and finite, got 0.0"),
                ((1.0, np.inf), "duration must be positive and finite, got inf"),
                ((1.0, [1.0, 2.0]), "duration must be a single number, got shape (2,)"),
            ]
        ],
        (
            lambda: schedules.regular(1.0, 5.0, phase=0.0),
            "phase must be positive and finite, got 0.0",
        ),
        (
            lambda: schedules.regular([1.0, 1.0], 5.0, phase=[0.5, 1.5]),
            "phase must be at most 1, one number or one for each page",
        ),
        (
            lambda: schedules.regular([1.0], 5.0, phase=[0.5, 0.6]),
            "phase must be at most 1, one number or one for each page",
        ),
        (
            lambda: schedules.regular([1.0, 1.0], 5.0, phase=[0.5] * 3),
            "phase and crawl_rate must have shapes that broadcast",
        ),
    ],
)
def test_schedules_refuse(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


# ------------------------------ low discrepancy


def earliest_deadline_first(share, n_slots):
    """Plain form: every slot compares the visits of all pages.

    Of those that are released the one with the least deadline runs, otherwise
    the one that is released next.
    """
    visits, out = [0] * len(share), []
    for slot in range(n_slots):
        due = [
            (math.floor(k / p), math.ceil((k + 1) / p), i)
            for i, (k, p) in enumerate(zip(visits, share, strict=True))
            if p > 0
        ]
        may_run = [(deadline, i) for release, deadline, i in due if release <= slot]
        i = (
            min(may_run)[1]
            if may_run
            else min((release, i) for release, _, i in due)[1]
        )
        visits[i] += 1
        out.append(i)
    return out


def farthest(page, share):
    """Largest distance of visits from share x slots; exact for fractions."""
    visits, worst = [0] * len(share), 0
    for slot, i in enumerate(page, start=1):
        visits[i] += 1
        worst = max(
            worst, *(abs(k - p * slot) for k, p in zip(visits, share, strict=True))
        )
    return worst


def test_low_discrepancy_by_hand():
    assert schedules.low_discrepancy([1.0, 1.0, 1.0], 7).tolist() == [
        0,
        1,
        2,
        0,
        1,
        2,
        0,
    ]
    assert schedules.low_discrepancy([2.0, 1.0, 1.0], 8).tolist() == [
        0,
        1,
        0,
        2,
        0,
        1,
        0,
        2,
    ]
    assert schedules.low_discrepancy([1.0, 3.0], 8).tolist() == [1, 1, 0, 1, 1, 1, 0, 1]
    assert schedules.low_discrepancy([0.0, 5.0, 0.0, 5.0], 4).tolist() == [1, 3, 1, 3]
    assert schedules.low_discrepancy(0.3, 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0, 15.0])
def test_every_page_has_its_share_at_all_times_within_one_visit(spread):
    rng = np.random.default_rng(13)
    for n_pages in (1, 2, 3, 10, 80, 500):
        rate = rng.lognormal(0, spread, n_pages) * (rng.random(n_pages) < 0.8)
        rate[0] = 1.0
        rate[rate < 1e-18 * rate.sum()] = 0.0
        page = schedules.low_discrepancy(rate, 3000)
        visits = np.cumsum(page[:, np.newaxis] == np.arange(n_pages), axis=0)
        due = rate / rate.sum() * np.arange(1, 3001)[:, np.newaxis]
        assert np.abs(visits - due).max() <= 1 + 1e-9
        assert (visits[-1, rate == 0] == 0).all()
        assert visits[-1].sum() == 3000


@pytest.mark.slow
def test_shares_that_are_rational_numbers_over_two_of_their_periods():
    rng = np.random.default_rng(14)
    for total in [7, 10, 100, 360, 64, 256] * 15:
        weight = rng.multinomial(
            total, rng.dirichlet(np.full(int(rng.integers(1, 12)), 0.7))
        )
        page = schedules.low_discrepancy(weight, 2 * total)
        assert farthest(page.tolist(), [Fraction(int(w), total) for w in weight]) <= 1
        if total in (64, 256):  # exact in binary
            np.testing.assert_array_equal(
                np.bincount(page[:total], minlength=weight.size), weight
            )
            np.testing.assert_array_equal(page[total:], page[:total])


@pytest.mark.slow
def test_low_discrepancy_is_earliest_deadline_first():
    rng = np.random.default_rng(15)
    for _ in range(40):
        weight = rng.multinomial(
            rng.choice([8, 64, 1024]),
            rng.dirichlet(np.full(int(rng.integers(1, 12)), 0.7)),
        )
        exact = [
            Fraction(int(w), int(weight.sum())) for w in weight
        ]  # over powers of two: in floats too
        assert schedules.low_discrepancy(
            weight, 300
        ).tolist() == earliest_deadline_first(exact, 300)
        rate = rng.lognormal(0, 2, weight.size)
        assert schedules.low_discrepancy(rate, 300).tolist() == earliest_deadline_first(
            rate / rate.sum(), 300
        )
    rate = rng.lognormal(0, 1, 200)
    assert schedules.low_discrepancy(rate, 1500).tolist() == earliest_deadline_first(
        rate / rate.sum(), 1500
    )


def test_a_share_so_small_that_its_first_visit_is_beyond_all_integers():
    for tiny in (1e-19, 1e-300, 5e-324):
        assert np.bincount(
            schedules.low_discrepancy([1.0, tiny], 3000), minlength=2
        ).tolist() == [3000, 0]


def test_rational_shares_have_the_deadlines_of_fractions():
    assert schedules.low_discrepancy([1, 7, 2], 40).tolist() == earliest_deadline_first(
        [Fraction(k, 10) for k in (1, 7, 2)], 40
    )


def test_only_the_shares_count_and_the_first_slots_not_on_how_many_follow():
    rate = np.random.default_rng(16).lognormal(0, 1, 30)
    page = schedules.low_discrepancy(rate, 1000)
    np.testing.assert_array_equal(page, schedules.low_discrepancy(rate * 2.0**40, 1000))
    np.testing.assert_array_equal(page[:100], schedules.low_discrepancy(rate, 100))


@pytest.mark.parametrize(
    ("rate", "n_slots", "message"),
    [
        ([1.0], 0, "n_slots must be a positive integer, got 0"),
        ([1.0], -3, "n_slots must be a positive integer, got -3"),
        ([1.0], 2.0, "n_slots must be a positive integer, got 2.0"),
        (
            [0.0, 0.0],
            5,
            "crawl_rate must be positive for at least one page, got only zeros",
        ),
        ([], 5, "crawl_rate must be positive for at least one page"),
        (
            [1.0, -1.0],
            5,
            "crawl_rate must be non-negative and finite, got -1.0 at index (1,)",
        ),
        (
            [1.0, np.inf],
            5,
            "crawl_rate must be non-negative and finite, got inf at index (1,)",
        ),
        ([[1.0]], 5, "crawl_rate must be a flat array of pages, got shape (1, 1)"),
    ],
)
def test_low_discrepancy_refuses(rate, n_slots, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        schedules.low_discrepancy(rate, n_slots)


def test_a_page_without_a_rate_has_no_crawl_however_early_its_phase():
    _, offsets = schedules.regular([0.0, 1.0], 2.0, phase=1e-12)
    assert offsets.tolist() == [0, 0, 3]
