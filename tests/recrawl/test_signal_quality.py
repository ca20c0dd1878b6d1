"""Quality of signals by compiled code against the thin form of paperlib."""

import warnings

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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thin = signals.fit(processes.History(seen.interval, seen.changed), n_signals)
    crawls = np.arange(0, seen.interval.size + 1, n_crawls)
    history = History(seen.interval.ravel(), seen.changed.ravel(), crawls)
    fast = fit(history, n_signals.ravel())
    for name in ("change_rate", "precision", "recall"):
        expected = getattr(thin, name)
        np.testing.assert_allclose(getattr(fast, name), expected, 1e-6, 1e-9)
    for name in ("precision_stderr", "recall_stderr"):
        expected = getattr(thin, name)
        np.testing.assert_allclose(getattr(fast, name), expected, 1e-4, 1e-9)
