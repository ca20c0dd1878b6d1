"""Calls of public functions as a typed program makes them; mypy checks this file."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from paperlib import allocation, estimators, schedules, simulate
from paperlib.policies import Greedy, GreedyNCIS
from paperlib.processes import History, simulate_history
from paperlib.scheduler import Scheduler
from paperlib.signals import SignalledPages

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

# Each of these is an error: an unused ignore would be one, too.
allocation.optimal([0.5], 1.0, 3.0, crawls="often")  # type: ignore[arg-type]
simulate_history(0.5, crawl_rate=1.0, n_crawls="many")  # type: ignore[arg-type]
estimators.mle([0.5, 1.0])  # type: ignore[arg-type]
