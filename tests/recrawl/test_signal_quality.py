"""Quality of signals by compiled code against the thin form of paperlib."""

import numpy as np
import pytest

from paperlib import processes, signals
from recrawl.science.processes import History
from recrawl.science.signal_quality import fit


@pytest.mark.parametrize("n_crawls", [40, 2000])
def test_estimates_are_those_of_paperlib(n_crawls):
    rng = np.random.default_rng(3)
    pages = signals.SignalledPages(
        rng.uniform(0.1, 2, 50), 1.0, rng.random(50), rng.uniform(0, 0.5, 50)
    )
    seen, n_signals = signals.simulate_signalled_history(
        pages, crawl_rate=1.0, n_crawls=n_crawls, rng=rng
    )
    thin = signals.fit(processes.History(seen.interval, seen.changed), n_signals)
    crawls = np.arange(0, seen.interval.size + 1, n_crawls)
    history = History(seen.interval.ravel(), seen.changed.ravel(), crawls)
    fast = fit(history, n_signals.ravel())
    for name in ("change_rate", "precision", "recall"):
        expected = getattr(thin, name)
        np.testing.assert_allclose(getattr(fast, name), expected, 1e-6, 1e-9)


def test_standard_errors_are_the_spread_of_equal_pages():
    pages = signals.SignalledPages(np.full(400, 0.5), 1.0, 0.6, 0.2)
    seen, n_signals = signals.simulate_signalled_history(
        pages, crawl_rate=0.5, n_crawls=2000, rng=4
    )
    crawls = np.arange(0, seen.interval.size + 1, 2000)
    history = History(seen.interval.ravel(), seen.changed.ravel(), crawls)
    found = fit(history, n_signals.ravel())
    for name in ("precision", "recall"):
        stderr = np.mean(getattr(found, f"{name}_stderr"))
        # a standard deviation of 400 numbers is known to 3.5%
        spread = np.std(getattr(found, name))
        assert stderr == pytest.approx(spread, rel=5 * 0.035)
