"""Worlds of known changes, and what the crawls of a run found."""

import numpy as np
import pytest

from paperlib.signals import SignalledPages
from recrawl.science.policies import Greedy, Rates, StormCrawler
from recrawl.science.processes import observe, poisson_times
from recrawl.science.simulate import crawl, draw_world, replay

HORIZON = 100.0
CHANGES = [
    poisson_times(rate, HORIZON, rng=k) for k, rate in enumerate((0.1, 1.0, 5.0))
] + [np.empty(0)]


def brute_freshness(changes, crawls, n=200_001):
    """Share of a fine grid of times with no change since the last crawl."""
    at = (np.arange(n) + 0.5) * HORIZON / n
    last = np.append(0.0, crawls)[np.searchsorted(crawls, at, side="right")]
    return np.mean(
        np.searchsorted(changes, at, side="right")
        == np.searchsorted(changes, last, side="right")
    )


def test_freshness_is_that_of_the_changes_given():
    run = crawl(
        replay(CHANGES, HORIZON, importance=[1.0, 2.0, 0.5, 0.0]),
        Rates([0.3, 0.5, 1.0, 0.2]),
        2.0,
    )
    for page, changes in enumerate(CHANGES):
        crawls = run.time[run.page == page]
        assert run.page_freshness[page] == pytest.approx(
            brute_freshness(changes, crawls), abs=5e-4
        )
    assert run.freshness == pytest.approx(
        run.page_freshness @ [1.0, 2.0, 0.5, 0.0] / 3.5
    )
    assert run.page_freshness[3] == 1.0


def test_change_rate_counts_the_changes_within_the_horizon():
    world = replay([[-1.0, 0.0, 5.0, 10.0, 11.0], [10.0]], 10.0)
    np.testing.assert_allclose(world.pages.change_rate, [0.2, 0.1])
    time, offsets = world.changes
    np.testing.assert_array_equal(time, [5.0, 10.0, 10.0])
    np.testing.assert_array_equal(offsets, [0, 2, 3])


def test_a_policy_receives_no_signal_of_the_changes():
    world, believed = (
        replay(CHANGES, HORIZON),
        SignalledPages([0.1, 1.0, 5.0, 0.01], 1.0, 0.0, 0.0),
    )
    silent = draw_world(believed, HORIZON, rng=1)
    np.testing.assert_array_equal(
        crawl(world, Greedy(believed), 2.0).page,
        crawl(silent, Greedy(believed), 2.0).page,
    )
    assert np.isinf(world.delayed(1.0).received).all()


def test_history_is_what_each_page_alone_shows():
    world = replay(CHANGES, HORIZON)
    run = crawl(world, StormCrawler(initial=3.0), 5.0)
    found = run.history(world, start=20.0, stop=80.0)
    for page, changes in enumerate(CHANGES):
        crawls = run.time[(run.page == page) & (run.time > 20.0) & (run.time <= 80.0)]
        alone = observe(changes - crawls[0], crawls[1:] - crawls[0])
        here = slice(*found.offsets[page : page + 2])
        np.testing.assert_allclose(found.interval[here], alone.interval)
        np.testing.assert_array_equal(found.changed[here], alone.changed)


def test_history_of_a_drawn_world_has_the_changes_of_its_pages():
    rate = np.array([0.2, 1.0, 4.0])
    world = draw_world(SignalledPages(rate, 1.0, 0.5, 0.1), 4000.0, rng=2)
    run = crawl(world, Rates([1.0, 1.0, 1.0]), 3.0)
    found = run.history(world)
    p = -np.expm1(-rate)
    assert found.n_crawls == pytest.approx(4000, abs=5)
    assert found.total(found.changed) / found.n_crawls == pytest.approx(
        p, abs=5 * np.sqrt(0.25 / 4000)
    )


def test_a_page_without_crawls_has_an_empty_history():
    world = replay(CHANGES, HORIZON)
    found = crawl(world, Rates([1.0, 0.0, 0.0, 0.0]), 1.0).history(world)
    assert (found.n_crawls[1:] == 0).all()
    assert found.n_crawls[0] > 90


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: replay(CHANGES, 0.0), "horizon must be positive"),
        (lambda: replay([[np.nan]], 1.0), "change_times must be finite, got nan"),
        (lambda: replay([[0.5], [0.5]], 1.0, importance=-1.0), "importance"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
