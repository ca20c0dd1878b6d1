"""Calls of public functions as a typed program makes them; mypy checks this file."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from paperlib.signals import SignalledPages
from recrawl.scheduler import Scheduler
from recrawl.science import (
    allocation,
    estimators,
    periodic,
    schedules,
    signals,
    simulate,
)
from recrawl.science.policies import Greedy, GreedyNCIS
from recrawl.science.priors import GammaPrior
from recrawl.science.processes import History, simulate_history
from recrawl.types import Values

history = History([1.0, 2.0, 1.0], [True, False, True])
assert_type(simulate_history([0.5, 2.0], crawl_rate=1.0, n_crawls=50, rng=1), History)
assert_type(history.time, NDArray[np.float64])
estimators.moment_matching(history, bounds=(0.01, 10.0))
plan = allocation.optimal([0.5, 2.0], 1.0, 3.0, crawls="poisson", host=["a", "b"])
assert_type(plan, allocation.Allocation)
slots = schedules.low_discrepancy(plan.crawl_rate, 100)
pages = SignalledPages([0.5, 2.0], [1.0, 1.0], 0.5, false_rate=0.1)
scheduler = Scheduler(GreedyNCIS(pages))
assert_type(scheduler.next(1.0), int)
world = assert_type(simulate.draw_world(pages, 10.0, rng=1), simulate.World)
run = simulate.crawl(world, Greedy(pages), bandwidth=2.0)
assert_type(run.freshness, float)

simulate.draw_world(pages, 10.0, arrivals=(0.0, np.array([4.0, np.inf])))

# what returns several things says so
assert_type(estimators.likelihood_interval(history), tuple[Values, Values])
assert_type(estimators.serial_sums(history, 1.0), tuple[Values, Values])
assert_type(signals.naive_precision_recall(history, 1), tuple[Values, Values])
assert_type(GammaPrior(1.0, 2.0).interval(), tuple[Values, Values])
_, _, rate = estimators.filtered(history, shape=1.0, rate=2.0)
_, _, bandwidth = simulate.copies.checked_pages([1.0], 1.0, 2.0)
assert_type(bandwidth, float)


def read(online: estimators.OnlineEstimator) -> None:
    assert_type(online.estimate, Values)


# limits of each page, and of each host by its label
limits = {"a": 0.5}
greedy = Greedy(pages, min_interval=[0.1, 0.2], host=["a", "b"], host_limit=limits)
records, hosts = greedy.records()

# Each of these is an error: an unused ignore would be one, too.
allocation.optimal([0.5], 1.0, 3.0, crawls="often")  # type: ignore[arg-type]
simulate_history(0.5, crawl_rate=1.0, n_crawls="many")  # type: ignore[arg-type]
estimators.mle([0.5, 1.0])  # type: ignore[arg-type]
periodic.flatness_test([True], n_bins=8)  # type: ignore[arg-type]
