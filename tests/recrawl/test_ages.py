"""Histories whose crawls tell more than a bit: ages, counts and feeds."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from recrawl.errors import DistrustedAgeWarning
from recrawl.science import freshness
from recrawl.science.estimators import likelihood_interval, mle
from recrawl.science.processes import (
    History,
    join,
    observe_feed,
    poisson_times,
    simulate_history,
)
from tests.recrawl import plain as reference
from tests.recrawl.thinned import every

NAN = np.nan
# The example of the theory: five ages, then two bits, an unchanged crawl, a count.
INTERVAL = [1.0, 1.0, 2.0, 0.5, 3.0, 0.7, 2.0, 1.5, 2.5]
CHANGED = [1, 0, 1, 0, 1, 1, 1, 0, 1]
AGE = [0.3, NAN, 1.1, NAN, 0.4, NAN, NAN, NAN, NAN]
COUNT = [NAN] * 8 + [3.0]


def example(n=9):
    """The first n crawls of the example."""
    return History(INTERVAL, CHANGED, age=AGE, count=COUNT).prefix(n)


def mixed_histories(n=60):
    """Random histories of one page in which each crawl tells something else."""
    rng = np.random.default_rng(5)
    for _ in range(n):
        n_crawls, rate = int(rng.integers(2, 40)), 10 ** rng.uniform(-2, 2)
        interval = rng.exponential(1 / rate, n_crawls)
        count = rng.poisson(rate * interval)
        newest = interval * rng.random(n_crawls)
        kind = rng.integers(0, 4, n_crawls)  # bit, age, count, both
        yield History(
            interval,
            count > 0,
            age=np.where((kind % 2 == 1) & (count > 0), newest, NAN),
            count=np.where(kind >= 2, count, NAN),
        )


def terms(history):
    """Plain terms of the likelihood of one page."""
    nothing = np.full(history.interval.shape, NAN)
    age, count = (nothing if a is None else a for a in (history.age, history.count))
    return reference.likelihood_terms(history.interval, history.changed, age, count)


# ---------------------------------------------------------- reference numbers


def test_the_example_of_the_theory():
    ages = example(5)
    assert terms(ages)[0] == 3
    assert_allclose(terms(ages)[1], 3.3, rtol=1e-12)
    assert_allclose(mle(ages), 0.9090909091, rtol=1e-9)
    assert_allclose(mle(example()), 0.9628987881, rtol=1e-9)
    limits = likelihood_interval(example(), mle(example()))
    assert_allclose(limits, (0.4353474412, 1.8197896575), rtol=1e-9)
    top = reference.known_log_likelihood(mle(example()), *terms(example()))
    assert_allclose(top, -8.1261832949, rtol=1e-10)


# ------------------------------------------------------------- plain forms


@pytest.mark.parametrize("n_entries", [1, 2, 5])
def test_a_feed_is_read_as_its_plain_form_says(n_entries):
    changes = poisson_times(2.0, 30.0, rng=4)
    crawls = np.cumsum(np.random.default_rng(5).exponential(1.0, 25))
    history = observe_feed(changes, crawls, n_entries=n_entries)
    plain = np.array(reference.feed_terms(changes, crawls, n_entries))
    time, _, _, n_known = history.likelihood_terms()
    assert_allclose(np.transpose([n_known, time]), plain, rtol=1e-12)
    # all entries that were seen, whatever was missed, give the same history
    shown = [changes[changes <= now][-n_entries:] for now in crawls]
    seen = observe_feed(np.unique(np.concatenate(shown)), crawls, n_entries=n_entries)
    assert_array_equal(seen.age, history.age)
    assert_array_equal(seen.count, history.count)


def test_counts_are_a_feed_without_an_end():
    changes, crawls = poisson_times(2.0, 30.0, rng=4), np.arange(1.0, 31.0)
    history = observe_feed(changes, crawls)
    assert history.count.sum() == changes.size
    assert_array_equal(
        observe_feed(changes, crawls, n_entries=100).count, history.count
    )
    assert_allclose(mle(history), changes.size / 30.0, rtol=1e-12)


# ------------------------------------------------------- independent oracles


@pytest.mark.parametrize("shape", every(3, [3.0, 0.4, 1.0]))
def test_crawl_value_without_a_model(shape):
    """Renewal processes of gamma gaps with mean 1; the crawls of each are one page."""
    rng, t = np.random.default_rng(10), np.array([0.5, 1.0, 1.5])
    gaps = rng.gamma(shape, 1 / shape, 400_000)
    changes = np.cumsum(gaps)[1000:]
    changes -= changes[0]
    crawls = np.arange(2.0, changes[-1], 2.0)
    history = observe_feed(changes, crawls, n_entries=1)
    # P(age < s) has the density P(gap > s) / mean gap
    density = stats.gamma(shape, scale=1 / shape).sf
    truth = [integrate.quad(lambda s: s * density(s), 0, end)[0] for end in t]
    if shape != 1.0:
        rounded = {3.0: [0.1138, 0.3346, 0.5069], 0.4: [0.0654, 0.1983, 0.3553]}
        assert_allclose(truth, rounded[shape], atol=4e-4)  # simulated there
    else:
        wanted = [reference.objective_value("freshness", s, 1.0) for s in t]
        assert_allclose(truth, wanted, rtol=1e-9)
    found = freshness.empirical_crawl_value(history, t)
    assert_allclose(found, truth, atol=6 / np.sqrt(crawls.size))
    # half the crawls too early for the longer times
    crawls = np.sort(np.concatenate([crawls, crawls[::2] + 0.7]))
    short = observe_feed(changes, crawls, n_entries=1)
    assert (short.interval < 1.0).sum() > 10_000
    found = freshness.empirical_crawl_value(short, t[:2])
    assert_allclose(found, truth[:2], atol=6 / np.sqrt(crawls.size))


def test_crawl_value_without_a_model_is_its_plain_form():
    rng = np.random.default_rng(11)
    interval = rng.integers(1, 6, (4, 50)) * 0.5
    age = rng.integers(0, 8, (4, 50)) * 0.5  # with ties of both kinds
    changed = age < interval
    history = History(interval, changed, age=age)
    elapsed = [[0.0, 0.5, 1.0], [1.7, 2.5, 0.2]]
    found = freshness.empirical_crawl_value(history, elapsed)
    wanted = [
        [reference.empirical_crawl_value(*page, t) for t in np.ravel(elapsed)]
        for page in zip(interval, changed, age, strict=True)
    ]
    assert_allclose(found, np.reshape(wanted, (4, 2, 3)), rtol=1e-12)


def test_crawl_value_without_a_model_ends_with_the_longest_interval():
    value = freshness.empirical_crawl_value
    history = History([1.0, 2.0], [0, 1], age=[NAN, 1.5])
    assert_array_equal(np.isnan(value(history, [0.1, 2.0, 2.1])), [0, 0, 0])
    history = History([1.0, 2.0], [0, 1], age=[NAN, 0.5])
    assert_array_equal(np.isnan(value(history, [0.1, 1.0, 1.1])), [0, 0, 1])
    history = History([1.0, 2.0], [1, 0], age=[0.5, NAN])
    assert_array_equal(np.isnan(value(history, [0.1, 2.0, 2.1])), [0, 0, 1])
    empty = History([1.0], [0], [0, 1, 1])
    assert_array_equal(np.isnan(value(empty, 0.5)), [0, 1])


# ---------------------------------------------------------------- properties


def test_simulated_ages_and_counts_belong_to_the_same_bits():
    options = {"interval": [[0.3, 1.0, 2.0]], "rng": 13}
    rates = np.full(20_000, 1.5)
    bits = simulate_history(rates, **options)
    ages, counts = (
        simulate_history(rates, observation=kind, **options)
        for kind in ("age", "count")
    )
    for history in (ages, counts):
        assert_array_equal(history.changed, bits.changed)
    for k, w in enumerate((0.3, 1.0, 2.0)):
        age = ages.age[ages.changed[:, k], k]
        assert stats.kstest(age, stats.truncexpon(1.5 * w, scale=1 / 1.5).cdf)[1] > 1e-4
        error = np.sqrt(1.5 * w / rates.size)
        assert abs(counts.count[:, k].mean() - 1.5 * w) < 4 * error
        assert abs(counts.count[:, k].var() - 1.5 * w) < 12 * error


@pytest.mark.parametrize("expected", [0.01, 0.7, 4.0, 29.9, 30.1, 400.0])
def test_simulated_counts_have_a_poisson_distribution(expected):
    """They are counted one by one up to 30 expected changes, found as roots above."""
    history = simulate_history(
        expected, interval=1.0, n_crawls=40_000, rng=17, observation="count"
    )
    count = history.count
    assert (count[history.changed] >= 1).all()
    assert (count[~history.changed] == 0).all()
    assert count.mean() == pytest.approx(expected, abs=5 * np.sqrt(expected / 40_000))
    law = stats.poisson(expected)
    for share in (0.1, 0.5, 0.9):
        k = law.ppf(share)
        wanted = law.cdf(k)
        error = np.sqrt(wanted * (1 - wanted) / 40_000)
        assert np.mean(count <= k) == pytest.approx(wanted, abs=5 * error)


def test_pages_do_not_depend_on_each_other_or_on_the_form():
    pages = [h for h in mixed_histories(12) if h.age is not None]
    together = pages[0]
    offsets = np.cumsum([0] + [page.interval.size for page in pages])
    together = History(
        *(
            np.concatenate([getattr(page, name) for page in pages])
            for name in ("interval", "changed")
        ),
        offsets,
        age=np.concatenate([page.age for page in pages]),
        count=np.concatenate([page.count for page in pages]),
    )
    assert_allclose(mle(together), [mle(page) for page in pages], rtol=1e-12)


def test_time_has_no_unit():
    for unit in (1e-6, 1e6):
        scaled = History(
            unit * np.array(INTERVAL), CHANGED, age=unit * np.array(AGE), count=COUNT
        )
        assert_allclose(unit * mle(scaled), mle(example()), rtol=1e-10)


def test_joined_and_shorter_histories_keep_what_they_know():
    history = example()
    halves = History(INTERVAL[5:], CHANGED[5:], age=AGE[5:], count=COUNT[5:])
    bits = History([1.0], [True])
    as_page = [
        History(h.interval, h.changed, [0, h.interval.size], age=h.age, count=h.count)
        for h in (example(5), halves, bits)
    ]
    joined = join(as_page[0], as_page[1])
    assert_array_equal(joined.age, AGE)
    assert_array_equal(joined.count, COUNT)
    assert_allclose(mle(joined), mle(history), rtol=1e-12)
    assert_array_equal(join(as_page[2], as_page[0]).age, [NAN, *AGE[:5]])


def test_pages_without_crawls_and_without_changes():
    history = History([1.0, 2.0], [0, 0], [0, 2, 2], age=[NAN, NAN], count=[0, NAN])
    assert_array_equal(mle(history), [0.0, NAN])


def test_times_of_a_feed_may_count_from_any_moment():
    changes, crawls = [2.0, 2.5, 4.0, 7.25], [3.0, 5.0, 6.0, 8.0]
    history = observe_feed(changes, crawls, n_entries=2, start=1.0)
    later = observe_feed(
        np.add(changes, 2.0**30),
        np.add(crawls, 2.0**30),
        n_entries=2,
        start=2.0**30 + 1.0,
    )
    for name in ("interval", "age", "count"):
        assert_array_equal(getattr(later, name), getattr(history, name))
    assert history.interval[0] == 2.0


# ----------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("changed", "age", "count"),
    [
        (True, -0.1, NAN),
        (True, 2.1, NAN),
        (False, 1.9, NAN),
        (False, NAN, 1),
        (True, NAN, 0),
        (True, 2.1, 3),
        (True, -np.inf, NAN),
    ],
)
def test_what_contradicts_the_bit_is_distrusted(changed, age, count):
    bits = History([2.0, 1.0, 1.0], [changed, 1, 0])
    with pytest.warns(DistrustedAgeWarning, match="1 of 3 crawls") as caught:
        history = History(
            [2.0, 1.0, 1.0], [changed, 1, 0], age=[age, NAN, NAN], count=[count, NAN, 0]
        )
    assert caught[0].filename == __file__
    assert np.isnan([history.age[0], history.count[0]]).all()
    assert mle(history) == mle(bits)


def test_what_needs_all_ages_says_how_many_are_distrusted():
    with pytest.warns(DistrustedAgeWarning):
        history = History([1.0, 1.0, 1.0], [1, 0, 1], age=[0.2, NAN, 1.7])
    with pytest.raises(ValueError, match=r"\(1 contradict their bit and count as"):
        freshness.empirical_crawl_value(history, 1.0)
    with pytest.raises(ValueError, match="got nan") as error:
        freshness.empirical_crawl_value(History([1.0], [1]), 1.0)
    assert "contradict" not in str(error.value)


def test_more_than_rounding_is_a_contradiction():
    with pytest.warns(DistrustedAgeWarning, match="2 of 2 crawls"):
        History([1.0, 1.0], [1, 0], age=[1.0001, 0.9999])


def test_rounding_is_no_contradiction():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = History(
            [0.3, 0.3], [1, 0], age=[0.1 + 0.2, np.nextafter(0.3, 0)], count=[1, 0]
        )
        History([1.0], [False], age=[np.inf])
    assert history.likelihood_terms()[0].tolist() == [0.3, 0.3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: History([1.0, 2.0], [1, 0], age=[0.5]),
            r"age must have the shape of interval, \(2,\), got \(1,\)",
        ),
        (
            lambda: History([1.0, 2.0], [1, 0], count=[[1, 0]]),
            r"count must have the shape of interval, \(2,\), got \(1, 2\)",
        ),
        (
            lambda: History([1.0, 2.0], [1, 0], count=[1.5, 0]),
            r"count must be a whole number, at least 0, or NaN, got 1.5 at index \(0,",
        ),
        (
            lambda: History([1.0], [True], count=[-1]),
            "count must be a whole number, at least 0, or NaN, got -1.0",
        ),
        (lambda: History([1.0], [True], count=[np.inf]), "got inf at index"),
        (lambda: History([1.0], [True], age=["old"]), "age must be numbers"),
        (
            lambda: History([1.0], [True], age=np.array([3600], "m8[s]")),
            r"age must be numbers, got array\(\[3600\], dtype='timedelta64",
        ),
        (
            lambda: History(np.array([3600], "m8[s]"), [True]),
            "interval must be positive and finite, got array",
        ),
        (
            lambda: freshness.empirical_crawl_value(example(), 1.0),
            r"age must be known at every crawl .* got nan at index \(5,\)",
        ),
        (
            lambda: freshness.empirical_crawl_value(
                History([1.0], [1], age=[0.5], count=[2]), 1.0
            ),
            "that of the last one, got nan",
        ),
        (
            lambda: freshness.empirical_crawl_value(History([1.0], [0]), -1.0),
            "elapsed must be non-negative",
        ),
        (
            lambda: observe_feed([1.0], [2.0], n_entries=0),
            "n_entries must be a positive integer",
        ),
        (lambda: observe_feed([2.0, 1.0], [2.0]), "change_times must be flat"),
        (
            lambda: simulate_history(1.0, interval=1.0, n_crawls=2, observation="age?"),
            "observation must be 'bit', 'age' or 'count', got 'age\\?'",
        ),
        (
            lambda: History([1.0, 2.0], [1, 0], [0, 1, 2]).prefix(1),
            "history must be in the dense form, without offsets, got offsets of 2",
        ),
        (
            lambda: History([1.0, 2.0], [1, 0]).prefix(3),
            "n_crawls must be at most the 2 crawls of a page, got 3",
        ),
        (
            lambda: History([1.0, 2.0], [1, 0]).prefix(-1),
            "n_crawls must be a positive integer, got -1",
        ),
        (
            lambda: observe_feed([1.0], [2.0], start=2.5),
            "crawl_times must be positive",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
