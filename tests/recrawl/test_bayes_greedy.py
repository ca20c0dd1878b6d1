"""Crawling by the whole posterior is better than not to learn, whatever the pages."""

import itertools

import numpy as np
import pytest

from paperlib.signals import SignalledPages
from recrawl.science import priors, simulate
from recrawl.science.policies import BayesGreedy, Rates
from tests.recrawl.thinned import every

BUDGETS = [0.05, 0.3, 1.0, 5.0]  # crawls per change
CRAWLS = 40  # of a page, on the average


def lognormal(n_pages, rng):
    return np.exp(1.5 * rng.standard_normal(n_pages))


def heavy_tailed(n_pages, rng):
    """Log-logistic rates of shape 1, clipped to six powers of ten."""
    return np.clip(np.exp(rng.logistic(size=n_pages)), 1e-3, 1e3)


def poisson_world(rates, importance, horizon, rng):
    pages = SignalledPages(rates, importance, 0.0, 0.0)
    return simulate.draw_world(pages, horizon, rng=rng)


def bursty_world(rates, importance, horizon, rng):
    """Every change starts a burst of five, a hundredth of the mean time apart."""
    times = []
    for rate in rates / 5:
        starts = rng.random(rng.poisson(rate * horizon)) * horizon
        gaps = rng.exponential(0.01 / rate, (starts.size, 5)).cumsum(axis=1)
        times.append(np.sort((starts[:, np.newaxis] + gaps).ravel()))
    return simulate.replay(times, horizon, importance=importance)


KINDS = {
    "lognormal": (lognormal, poisson_world, 100),
    "heavy-tailed": (heavy_tailed, poisson_world, 100),
    "bursty": (lognormal, bursty_world, 100),
    "few": (lognormal, poisson_world, 8),
    "many": (lognormal, poisson_world, 2000),
}


@pytest.mark.parametrize(
    ("kind", "budget"), every(7, list(itertools.product(KINDS, BUDGETS)))
)
def test_it_beats_uniform_crawling(kind, budget):
    """In one world: a very vague prior, the one for want of a better, a learnt one."""
    rates_of, world_of, n_pages = KINDS[kind]
    rng = np.random.default_rng([n_pages, int(100 * budget), len(kind)])
    rates, importance = rates_of(n_pages, rng), rng.random(n_pages)
    bandwidth = budget * rates.sum()
    interval = n_pages / bandwidth  # of uniform crawling
    world = world_of(rates, importance, CRAWLS * interval, rng)
    others = world_of(rates_of(300, rng), np.ones(300), 10 * interval, rng)
    crawled = simulate.crawl(others, Rates(np.ones(300)), 300 / interval)
    known = {
        "vague": priors.GammaPrior(0.5, 0.03 * interval),
        "half a change in half an interval": priors.GammaPrior(0.5, 0.5 * interval),
        "learnt": priors.gamma_prior(crawled.history(others)),
    }
    uniform = simulate.crawl(world, Rates(np.ones(n_pages)), bandwidth)
    for name, prior in known.items():
        policy = BayesGreedy(importance, **prior._asdict())
        run = simulate.crawl(world, policy, bandwidth)
        assert run.freshness > uniform.freshness, name
