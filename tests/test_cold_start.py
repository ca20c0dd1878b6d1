"""Crawling that begins without change rates: better than all pages alike."""

import numpy as np
import pytest

from paperlib import policies, simulate

POISSON, BURSTY, REGULAR = 1.0, 0.4, 3.0  # shapes of gamma distributed gaps
# Law of the change rates, regularity of the changes, number of pages, crawls of a
# mean page in the median time between changes.
CRAWLS = [
    ("lognormal", POISSON, 10, 1.0),
    ("lognormal", POISSON, 100, 0.05),
    ("lognormal", POISSON, 100, 0.3),
    ("lognormal", POISSON, 100, 1.0),
    ("lognormal", POISSON, 100, 5.0),
    ("lognormal", POISSON, 2000, 0.3),
    ("wide", POISSON, 30, 1.0),
    ("wide", POISSON, 300, 0.05),
    ("wide", POISSON, 300, 0.3),
    ("wide", POISSON, 300, 3.0),
    ("heavy", POISSON, 100, 0.1),
    ("heavy", POISSON, 100, 1.0),
    ("heavy", POISSON, 1000, 0.3),
    ("heavy", BURSTY, 300, 0.3),
    ("heavy", REGULAR, 300, 1.0),
    ("lognormal", BURSTY, 100, 0.1),
    ("lognormal", BURSTY, 100, 1.0),
    ("lognormal", REGULAR, 100, 0.3),
    ("wide", BURSTY, 1000, 0.3),
    ("wide", REGULAR, 300, 1.0),
]
LAWS = {
    "lognormal": lambda rng, n: rng.lognormal(0.0, 1.0, n),
    "wide": lambda rng, n: rng.lognormal(0.0, 2.0, n),
    "heavy": lambda rng, n: 0.3 * (1.0 + rng.pareto(1.2, n)),
}


def world_of(rng, law, shape, n_pages, horizon):
    """A world of renewal changes and its importances."""
    changes = []
    for rate in np.minimum(LAWS[law](rng, n_pages), 300.0):
        n = int(rate * horizon + 10.0 * np.sqrt(rate * horizon / shape) + 20.0)
        times = np.cumsum(rng.gamma(shape, 1.0 / (shape * rate), n))
        times -= times[0] * rng.random()  # the first change is somewhere in a gap
        changes.append(times[(times > 0.0) & (times < horizon)])
    return simulate.replay(changes, horizon, importance=rng.random(n_pages))


@pytest.mark.parametrize(("law", "shape", "n_pages", "budget"), CRAWLS)
def test_one_object_from_a_cold_start_beats_uniform_crawls(law, shape, n_pages, budget):
    rng = np.random.default_rng(CRAWLS.index((law, shape, n_pages, budget)))
    horizon = 100.0 / min(budget, 1.0)  # 100 crawls a page, or more
    world = world_of(rng, law, shape, n_pages, horizon)
    bandwidth, importance = budget * n_pages, world.pages.importance
    uniform = policies.Rates(np.full(n_pages, budget))
    # the prior for want of a better one: half a change in half a mean interval
    policy = policies.BayesGreedy(importance, shape=0.5, rate=0.5 / budget)
    runs = [simulate.crawl(world, p, bandwidth) for p in (policy, uniform)]
    assert runs[0].accuracy > runs[1].accuracy
