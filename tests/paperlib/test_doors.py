"""Arrays of any kind give what plain arrays give, in every public function.

`CALLS` has an example of every public function, class and method; `convert` stands
around each array and number. The numbers are exact in single precision.
"""

import importlib
import inspect
import pkgutil
import re
from dataclasses import is_dataclass

import numpy as np
import pytest

import paperlib
from paperlib import (
    allocation,
    copies,
    estimators,
    freshness,
    lemma_4,
    policies,
    priors,
    processes,
    regret,
    schedules,
    signals,
    worlds,
)
from paperlib.errors import ArgumentError

RATE = np.array([0.5, 2.0, 0.25])
OTHER_RATE = np.array([0.75, 1.5, 0.25])
IMPORTANCE = np.array([1.0, 0.5, 2.0])
CRAWL_RATE = np.array([1.0, 0.5, 0.25])
INTERVAL = np.array([1.0, 2.0, 0.5, 4.0, 1.0])
CHANGED = np.array([True, False, True, True, False])
OFFSETS = np.array([0, 2, 5])
N_SIGNALS = np.array([1, 0, 2, 3, 1])
PERIOD = np.array([0.25, 1.0, 2.0, 4.0, 8.0])
GRID = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
SHARE = np.array([0.5, 0.25, 0.75])
ROUNDS = np.array([4.0, 8.0, 16.0])
HORIZON = np.array([32.0, 64.0])

HISTORY = processes.History(INTERVAL, CHANGED, OFFSETS)
DENSE = processes.History(INTERVAL[:4].reshape(2, 2), CHANGED[:4].reshape(2, 2))
PRIOR = priors.PseudoObservations(2.0, 1.0)
PAGES = signals.SignalledPages(RATE, IMPORTANCE, SHARE, 0.25)
WORLD = worlds.draw_world(PAGES, 16.0, rng=1)
SLOTS = np.arange(1.0, 9.0)
SIGNALS = worlds.Signals(WORLD.offsets, WORLD.received)
LEARNER = policies.ExploreThenCommit(bounds=(0.125, 4.0), exploration=8.0)


def followed(convert):
    """A crawler that has followed rates for some time."""
    crawler = copies.Copies(convert(RATE), filled=True, rng=1)
    crawler.follow(copies.REGULAR, convert(CRAWL_RATE), convert(8.0))
    return crawler


def in_turn(time, *_):
    """A policy that crawls the pages in turn."""
    return np.arange(time.size) % RATE.size


def online(kind, **options):
    """An example of an online estimator."""
    return lambda c: kind(c(0.5), **options).update(c(CHANGED), interval=c(INTERVAL))


def chosen(kind):
    """An example of a greedy policy."""
    return lambda c: kind(PAGES).choose(SLOTS, SIGNALS)


CALLS = {
    "allocation.Allocation": lambda c: allocation.Allocation(RATE, 1.0, 0.5),
    "allocation.uniform": lambda c: allocation.uniform(c(RATE), c(IMPORTANCE), c(2.0)),
    "allocation.proportional": lambda c: allocation.proportional(
        c(RATE), c(IMPORTANCE), c(2.0)
    ),
    "allocation.spend": lambda c: allocation.spend(lambda v: v * RATE, c(2.0), c(1.0)),
    "allocation.optimal_poisson": lambda c: allocation.optimal_poisson(
        c(RATE), c(IMPORTANCE), c(2.0), min_rate=c(0.125)
    ),
    "allocation.optimal_interval": lambda c: allocation.optimal_interval(
        c(RATE), c(IMPORTANCE), c(2.0)
    ),
    "allocation.optimal_thresholds": lambda c: allocation.optimal_thresholds(
        PAGES, c(2.0)
    ),
    "copies.Schedule": lambda c: copies.POISSON.fresh_time(
        c(RATE), c(CRAWL_RATE), c(8.0), initial=c(SHARE)
    ),
    "copies.Copies": lambda c: copies.Copies(c(RATE), filled=True, rng=1).probability(),
    "copies.Copies.follow": lambda c: followed(c).history,
    "copies.Copies.probability": lambda c: followed(c).probability(),
    "estimators.batch.mle": lambda c: estimators.mle(HISTORY, substitute=True),
    "estimators.batch.moment_matching": lambda c: estimators.moment_matching(HISTORY),
    "estimators.batch.mle_path": lambda c: estimators.mle_path(HISTORY),
    "estimators.batch.naive": lambda c: estimators.naive(HISTORY),
    "estimators.batch.bias_reduced": lambda c: estimators.bias_reduced(HISTORY),
    "estimators.batch.log_likelihood": lambda c: estimators.log_likelihood(
        HISTORY, c(RATE[:2])
    ),
    "estimators.information.fisher_information": lambda c: (
        estimators.fisher_information(c(RATE), crawl_rate=c(CRAWL_RATE))
    ),
    "estimators.information.disjoint_blocks": lambda c: estimators.disjoint_blocks(
        c(INTERVAL)
    ),
    "estimators.information.block_share": lambda c: estimators.block_share(
        c(SHARE), c(np.array([0, 1, 3]))
    ),
    "estimators.information.confidence_radius": lambda c: estimators.confidence_radius(
        HISTORY, max_rate=c(4.0), level=c(0.75)
    ),
    "estimators.online.OnlineEstimator": lambda c: estimators.OnlineEstimator(c(0.5)),
    "estimators.online.OnlineEstimator.update": lambda c: estimators.LLN(
        crawl_rate=c(CRAWL_RATE)
    ).update(c(CHANGED[:3])),
    "estimators.online.OnlineEstimator.moments": lambda c: estimators.SA(
        crawl_rate=c(0.5), initial=c(0.5)
    ).moments(c(0.25), c(np.array([1, 4]))),
    "estimators.online.Naive": online(estimators.Naive),
    "estimators.online.LLN": online(estimators.LLN),
    "estimators.online.SA": lambda c: estimators.SA(
        initial=c(INTERVAL), crawl_rate=c(INTERVAL)
    ).update(c(CHANGED)),
    "estimators.online.SAM": lambda c: estimators.SAM(
        initial=c(INTERVAL), crawl_rate=c(INTERVAL)
    ).update(c(CHANGED)),
    "estimators.online.path": lambda c: estimators.path(
        estimators.LLN(crawl_rate=c(np.array([1.0, 0.5]))), DENSE
    ),
    "estimators.online.paths": lambda c: estimators.paths(
        DENSE, lln=estimators.LLN(crawl_rate=c(0.5))
    ),
    "estimators.online.rmse": lambda c: estimators.rmse(
        {"a": RATE, "b": OTHER_RATE}, c(0.5)
    ),
    "freshness.poisson": lambda c: freshness.poisson(c(RATE), c(CRAWL_RATE)),
    "freshness.interval": lambda c: freshness.interval(c(RATE), c(CRAWL_RATE)),
    "freshness.poisson_time": lambda c: freshness.poisson_time(
        c(RATE), c(CRAWL_RATE), c(ROUNDS), initial=c(SHARE)
    ),
    "freshness.interval_time": lambda c: freshness.interval_time(
        c(RATE), c(CRAWL_RATE), c(ROUNDS), initial=c(SHARE), phase=c(SHARE)
    ),
    "freshness.mean": lambda c: freshness.mean(c(SHARE), c(IMPORTANCE)),
    "freshness.probability": lambda c: freshness.probability(
        c(ROUNDS), c(N_SIGNALS[:3]), PAGES
    ),
    "freshness.crawl_value": lambda c: freshness.crawl_value(
        c(ROUNDS), c(N_SIGNALS[:3]), PAGES
    ),
    "freshness.mean_crawl_interval": lambda c: freshness.mean_crawl_interval(
        c(ROUNDS), PAGES
    ),
    "freshness.fresh_time": lambda c: freshness.fresh_time(c(ROUNDS), PAGES),
    "lemma_4.lemma_4_rates": lambda c: lemma_4.lemma_4_rates(PAGES),
    "lemma_4.saturation": lambda c: lemma_4.saturation(RATE),
    "policies.adaptive.next_interval": lambda c: policies.next_interval(
        c(RATE), factor=c(0.5), limits=c(np.array([0.5, 1.5]))
    ),
    "policies.adaptive.simulate_sequential_history": lambda c: (
        policies.simulate_sequential_history(
            c(RATE),
            PRIOR.estimate,
            initial=c(ROUNDS),
            factor=c(0.5),
            limits=c(np.array([1.0, 32.0])),
            n_crawls=3,
            rng=1,
        )
    ),
    "policies.arg_max.ArgMax": lambda c: policies.ArgMax(
        lambda elapsed, n_signals: elapsed * IMPORTANCE, discard_window=c(0.5)
    ).choose(SLOTS, SIGNALS),
    "policies.arg_max.ArgMax.choose": lambda c: policies.ArgMax(
        lambda elapsed, n_signals: c(elapsed * IMPORTANCE)
    ).choose(SLOTS, SIGNALS),
    "policies.fixed_rates.Rates": lambda c: policies.Rates(c(RATE)).choose(SLOTS),
    "policies.fixed_rates.Rates.choose": lambda c: policies.Rates(RATE).choose(SLOTS),
    "policies.greedy.Greedy": chosen(policies.Greedy),
    "policies.greedy.State": lambda c: policies.greedy.State(*[RATE] * 7),
    "policies.greedy.Greedy.saturation": lambda c: policies.Greedy(PAGES).saturation(),
    "policies.greedy.Greedy.evaluate": chosen(policies.Greedy),
    "policies.greedy.Greedy.choose": chosen(policies.Greedy),
    "policies.greedy.GreedyCIS": chosen(policies.GreedyCIS),
    "policies.greedy.GreedyCISPlus": chosen(policies.GreedyCISPlus),
    "policies.greedy.GreedyNCIS": chosen(policies.GreedyNCIS),
    "policies.learning.LearningRun": lambda c: (
        LEARNER.run(RATE, IMPORTANCE, 2.0, 16.0, rng=1).regret
    ),
    "policies.learning.ExploreThenCommit": lambda c: policies.ExploreThenCommit(
        bounds=c(np.array([0.125, 4.0])), exploration=c(8.0)
    ).run(RATE, IMPORTANCE, 2.0, 16.0, rng=1),
    "policies.learning.PhasedEpsilonGreedy": lambda c: policies.PhasedEpsilonGreedy(
        bounds=(0.125, 4.0), exploration=4.0, n_phases=2, epsilon=c(0.25)
    ).run(RATE, IMPORTANCE, 2.0, 16.0, rng=1),
    "policies.learning.ExploreThenCommit.run": lambda c: LEARNER.run(
        c(RATE), c(IMPORTANCE), c(2.0), c(16.0), rng=1
    ),
    "policies.learning.ExploreThenCommit.plan": lambda c: LEARNER.plan(
        followed(c), IMPORTANCE, c(2.0)
    ),
    "policies.learning.reoptimise": lambda c: policies.reoptimise(
        estimators.LLN(1.0),
        c(RATE),
        c(IMPORTANCE),
        c(2.0),
        n_phases=2,
        n_crawls=3,
        min_rate=c(0.125),
        rng=1,
    ),
    "priors.PseudoObservations": lambda c: vars(
        priors.PseudoObservations(c(2.0), c(1.0))
    ),
    "priors.PseudoObservations.density": lambda c: PRIOR.density(c(RATE)),
    "priors.PseudoObservations.estimate": lambda c: PRIOR.estimate(HISTORY),
    "priors.PseudoObservations.observed": lambda c: PRIOR.observed(HISTORY),
    "priors.PseudoObservations.probabilities": lambda c: PRIOR.probabilities(
        c(PERIOD), base="rate"
    ),
    "priors.PseudoObservations.distance": lambda c: PRIOR.distance(c(RATE), c(PERIOD)),
    "priors.PseudoObservations.fit": lambda c: vars(
        priors.PseudoObservations.fit(
            c(np.array([0.25, 0.5, 0.5, 1.0, 1.0, 2.0])), c(GRID), base="rate"
        )
    ),
    "priors.shares": lambda c: priors.shares(c(RATE), c(PERIOD)),
    "priors.grid_posterior": lambda c: priors.grid_posterior(
        HISTORY, c(RATE), c(SHARE)
    ),
    "processes.History": lambda c: processes.History(
        c(INTERVAL), c(CHANGED), c(OFFSETS)
    ),
    "processes.History.per_crawl": lambda c: HISTORY.per_crawl(c(RATE[:2])),
    "processes.History.by_page": lambda c: HISTORY.by_page(RATE[:2]),
    "processes.History.total": lambda c: HISTORY.total(c(INTERVAL)),
    "processes.History.ragged": lambda c: HISTORY.ragged(),
    "processes.History.prefix": lambda c: processes.History(
        c(INTERVAL), c(CHANGED)
    ).prefix(2),
    "processes.History.join": lambda c: processes.History(
        c(INTERVAL), c(CHANGED), c(OFFSETS)
    ).join(HISTORY),
    "processes.change_probability": lambda c: (
        processes.change_probability(c(RATE), interval=c(ROUNDS)),
        processes.change_probability(c(RATE), crawl_rate=c(CRAWL_RATE)),
    ),
    "processes.each_run": lambda c: processes.each_run(
        lambda stream: stream.random(3), 2, 1
    ),
    "processes.observe": lambda c: processes.observe(c(PERIOD), c(ROUNDS)),
    "processes.replicate": lambda c: processes.replicate(
        lambda stream: stream.random(), 3, rng=1
    ),
    "processes.simulate_history": lambda c: processes.simulate_history(
        c(RATE), crawl_rate=c(CRAWL_RATE), n_crawls=4, rng=1
    ),
    "regret.utility": lambda c: regret.utility(
        c(RATE), c(IMPORTANCE), c(CRAWL_RATE), elapsed=c(8.0), initial=c(SHARE)
    ),
    "regret.burn_in": lambda c: regret.burn_in(
        c(IMPORTANCE), c(SHARE), min_rate=c(0.125)
    ),
    "regret.suboptimality": lambda c: regret.suboptimality(
        c(RATE), c(OTHER_RATE), c(IMPORTANCE), c(2.0)
    ),
    "regret.sensitivity_bound": lambda c: regret.sensitivity_bound(
        c(RATE), c(OTHER_RATE), c(IMPORTANCE)
    ),
    "regret.exploration_radius": lambda c: regret.exploration_radius(
        3, c(2.0), c(ROUNDS), max_rate=c(4.0), level=c(0.75)
    ),
    "regret.regret_bound": lambda c: regret.regret_bound(
        c(IMPORTANCE),
        c(2.0),
        exploration=c(ROUNDS),
        horizon=c(ROUNDS),
        bounds=c(np.array([0.125, 4.0])),
        level=c(0.75),
    ),
    "regret.optimal_exploration": lambda c: regret.optimal_exploration(
        3, c(2.0), horizon=c(HORIZON), bounds=c(np.array([0.125, 4.0])), level=c(0.75)
    ),
    "schedules.poisson": lambda c: schedules.poisson(c(RATE), c(8.0), rng=1),
    "schedules.regular": lambda c: schedules.regular(c(RATE), c(8.0), phase=c(0.5)),
    "schedules.low_discrepancy": lambda c: schedules.low_discrepancy(c(RATE), 8),
    "signals.SignalledPages": lambda c: signals.SignalledPages(
        c(RATE), c(IMPORTANCE), c(SHARE), c(0.25)
    ),
    "signals.SignalledPages.from_precision": lambda c: (
        signals.SignalledPages.from_precision(
            c(RATE), c(IMPORTANCE), precision=c(SHARE), recall=c(SHARE)
        )
    ),
    "signals.simulate_signalled_history": lambda c: signals.simulate_signalled_history(
        PAGES, interval=c(np.ones((3, 4))), rng=1
    ),
    "signals.naive_precision_recall": lambda c: signals.naive_precision_recall(
        HISTORY, c(N_SIGNALS)
    ),
    "signals.SignalFit": lambda c: signals.SignalFit(0.5, 0.25, 0.75),
    "signals.fit": lambda c: signals.fit(
        processes.History(INTERVAL, CHANGED), c(N_SIGNALS)
    ),
    "worlds.Signals": lambda c: worlds.Signals(OFFSETS, SLOTS),
    "worlds.World": lambda c: WORLD,
    "worlds.World.delayed": lambda c: WORLD.delayed(c(np.ones(WORLD.sent.size))),
    "worlds.World.changes": lambda c: WORLD.changes(1),
    "worlds.draw_world": lambda c: worlds.draw_world(PAGES, c(16.0), rng=1),
    "worlds.slot_times": lambda c: worlds.slot_times(
        (c(np.array([0.0, 4.0])), c(np.array([1.0, 2.0]))), c(16.0)
    ),
    "worlds.CrawlRun": lambda c: worlds.crawl(WORLD, in_turn, 1.0).window_freshness,
    "worlds.crawl": lambda c: worlds.crawl(
        WORLD, in_turn, c(2.0), borders=c(np.array([0.0, 4.0, 16.0]))
    ),
}


def series(array):
    """A pandas Series whose labels count down."""
    pandas = pytest.importorskip("pandas")
    return pandas.Series(array, index=range(array.size - 1, -1, -1))


def strided(array):
    """A view of every other entry of a longer array."""
    return np.repeat(array, 2, axis=-1)[..., ::2]


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def single(array):
    """In single precision, or in 32 bits; bits as numbers."""
    return array.astype("f4" if array.dtype == float else "i4")


def of_arrays(form, n_axes=None):
    """A conversion of arrays, of any or of so many axes, that leaves numbers."""

    def convert(value):
        whole = np.ndim(value) == 0 or n_axes not in (None, np.ndim(value))
        return value if whole else form(value)

    return convert


FORMS = {
    "list": of_arrays(lambda x: x.tolist()),
    "Series": of_arrays(series, n_axes=1),
    "single": of_arrays(single),
    "strided": of_arrays(strided),
    "read-only": of_arrays(read_only),
    "big-endian": of_arrays(lambda x: x.astype(x.dtype.newbyteorder(">"))),
    "nothing masked": of_arrays(np.ma.masked_array),
    "0-d": lambda value: value if np.ndim(value) else np.array(value),
}


def parts(result):
    """All arrays and numbers of a result."""
    if isinstance(result, tuple | list):
        return [part for one in result for part in parts(one)]
    if isinstance(result, dict):
        return parts(list(result.values()))
    if is_dataclass(result):
        return parts(vars(result))
    return [result] if isinstance(result, np.ndarray | np.generic | float) else []


# What does not hold yet: functions that take an argument without a check.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CALLS)
def test_any_kind_of_array_gives_what_a_plain_one_gives(name, form):
    expected = parts(CALLS[name](lambda value: value))
    got = parts(CALLS[name](FORMS[form]))
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert isinstance(one, np.ndarray) == isinstance(other, np.ndarray)
        assert not isinstance(one, np.ma.MaskedArray)
        np.testing.assert_array_equal(one, other)


def is_door(member):
    return inspect.isfunction(member) or inspect.isclass(member)


AUTHORS = "Avrachenkov|Busa-Fekete|Grimes|Upadhyay"


def public():
    """Public functions, classes and methods of all modules: names and docstrings."""
    for found in pkgutil.walk_packages(paperlib.__path__, "paperlib."):
        module = importlib.import_module(found.name)
        for name, member in vars(module).items():
            own = getattr(member, "__module__", None) == found.name
            if name.startswith("_") or not own or not is_door(member):
                continue
            path = f"{found.name.removeprefix('paperlib.')}.{name}"
            yield path, member.__doc__
            if inspect.isclass(member):
                fields = getattr(member, "__dataclass_fields__", {})
                for method, function in vars(member).items():
                    bound = getattr(function, "__func__", function)  # of a classmethod
                    hidden = method.startswith("_") or method in fields
                    if inspect.isfunction(bound) and not hidden:
                        yield f"{path}.{method}", bound.__doc__


def test_each_function_of_the_papers_has_an_example():
    """That is, each whose docstring names the authors of one of the five papers."""
    names = dict(public())
    papers = {name for name, doc in names.items() if re.search(AUTHORS, doc or "")}
    assert len(papers) > 30
    assert papers <= set(CALLS) <= set(names)


MASKED = {
    "History": lambda x: processes.History(x, CHANGED[:3]),
    "changed": lambda x: processes.History(RATE, x > 1),
    "freshness": lambda x: freshness.poisson(x, 1.0),
    "shares": lambda x: priors.shares(x, PERIOD),
    "pages": lambda x: signals.SignalledPages(x, IMPORTANCE),
    "number": lambda x: freshness.poisson(1.0, x[1]),
}


@pytest.mark.parametrize("call", MASKED.values(), ids=MASKED)
def test_masked_entries_are_refused(call):
    with pytest.raises(ArgumentError, match=r"must have no masked entries, got .*--"):
        call(np.ma.masked_array(RATE, mask=[False, True, False]))


def test_a_bad_entry_of_a_series_is_named_by_its_position():
    message = r"change_rate must be non-negative and finite, got -2.0 at index \(1,\)"
    with pytest.raises(ArgumentError, match=message):
        freshness.poisson(series(np.array([1.0, -2.0])), 1.0)
    with pytest.raises(
        ArgumentError, match=r"changed must be .* got 2 at index \(1,\)"
    ):
        processes.History([1.0, 1.0], series(np.array([1, 2])))
