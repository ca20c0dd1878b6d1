"""The scheduler that learns, and its limits: posteriors, reports, bad input."""

import copy
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from paperlib.signals import SignalledPages
from recrawl.errors import DistrustedAgeWarning, NoPageError
from recrawl.kernels import bayes
from recrawl.scheduler import Scheduler
from recrawl.science import objectives
from recrawl.science.policies import BayesGreedy, Greedy, Rates
from tests.recrawl import plain as reference

SHAPE, RATE = 0.5, 2.0


def learning(n_pages, seed=1, **limits):
    """A policy that learns, with a prior of its own for each page."""
    rng = np.random.default_rng(seed)
    shape, rate = rng.uniform(0.2, 3.0, (2, n_pages))
    return BayesGreedy(rng.random(n_pages), shape=shape, rate=rate, **limits)


def saved(scheduler, path):
    """The bytes of a file that holds the scheduler."""
    scheduler.save(path)
    return path.read_bytes()


# ---------------------------------------------------------------- what is learnt


def test_the_posterior_is_the_plain_form():
    rng = np.random.default_rng(1)
    policy = learning(30)
    ours = Scheduler(policy, crawled=0.0)
    wanted = np.stack([policy.shape, policy.rate], axis=1)
    last = np.zeros(30)
    for time in np.cumsum(rng.exponential(0.1, 2000)):
        page, changed = ours.next(time), rng.random() < 0.4
        ours.report(page, changed)
        wanted[page] = reference.gamma_step(*wanted[page], changed, time - last[page])
        last[page] = time
    assert (last > 0).sum() > 20
    assert_allclose(np.transpose(ours.posterior), wanted, rtol=1e-12)


def test_reports_of_many_pages_at_once_are_those_of_each():
    one, all_at_once = (Scheduler(learning(20)) for _ in range(2))
    rng = np.random.default_rng(2)
    for round_ in range(1, 6):
        times = round_ + np.arange(5) / 10.0
        page = one.run(times)
        assert_array_equal(all_at_once.run(times), page)
        page, changed = np.unique(page), rng.random(np.unique(page).size) < 0.5
        all_at_once.report(page, changed)
        for k in range(page.size):
            one.report(page[k], changed[k])
    assert_array_equal(one.posterior, all_at_once.posterior)
    times = np.arange(70, 100) / 10.0
    assert_array_equal(one.run(times), all_at_once.run(times))


@pytest.mark.parametrize("share", [1.0, 0.7, 0.0])
def test_where_reports_come_late_or_never_every_slot_is_the_full_arg_max(share):
    rng, policy, n_pages = np.random.default_rng(4), learning(60), 60
    ours, last, waiting = Scheduler(policy, crawled=0.0), np.zeros(n_pages), set()
    for first in range(0, 3000, 50):
        times = np.sort(first + 50 * rng.random(rng.integers(1, 50))) / n_pages
        shape, rate = ours.posterior
        expected = []
        for time in times:
            value = np.vectorize(bayes.value)(shape, rate, time - last)
            value *= policy.importance
            expected.append(value.argmax().item())
            last[expected[-1]] = time
        assert_array_equal(ours.run(times), expected)
        waiting |= set(expected)
        told = [page for page in sorted(waiting) if rng.random() < share]
        waiting -= set(told)
        ours.report(told, rng.random(len(told)) < 0.5)


def test_the_first_crawl_of_a_page_changes_no_posterior_and_the_second_does():
    ours = Scheduler(BayesGreedy([1.0, 1.0], shape=SHAPE, rate=RATE))
    before = ours.posterior
    for time, page, changed in ((1.0, 0, True), (2.0, 1, False)):
        assert ours.next(time) == page
        ours.report(page, changed)
    assert_array_equal(ours.posterior, before)
    assert ours.next(4.0) == 0
    ours.report(0, False)
    shape, rate = ours.posterior
    assert_array_equal(shape, [SHAPE, SHAPE])
    assert_array_equal(rate, [RATE + 3.0, RATE])


def test_the_posterior_with_ages_and_counts_is_the_plain_form():
    rng, policy = np.random.default_rng(3), learning(6)
    ours = Scheduler(policy, crawled=0.0)
    wanted = np.stack([policy.shape, policy.rate], axis=1)
    last = np.zeros(6)
    for time in np.cumsum(rng.exponential(0.1, 300)):
        page = ours.next(time)
        interval, n_changes = time - last[page], int(rng.integers(0, 3))
        told = {}
        if n_changes and rng.random() < 0.5:
            told["age"] = interval * rng.random()
        if rng.random() < 0.5:
            told["count"] = n_changes
        ours.report(page, n_changes > 0, **told)
        wanted[page] = reference.gamma_step(
            *wanted[page], n_changes > 0, interval, **told
        )
        last[page] = time
    assert (last > 0).all()
    assert_allclose(np.transpose(ours.posterior), wanted, rtol=1e-12)


def test_a_first_crawl_with_an_age_tells_of_a_change():
    ours = Scheduler(BayesGreedy(np.ones(3), shape=SHAPE, rate=RATE))
    assert_array_equal(np.sort(ours.run([1.0, 1.5, 2.0])), [0, 1, 2])
    ours.report([0, 1, 2], [False, True, True], age=[4.0, None, -1.0], count=[0, 3, 2])
    shape, rate = ours.posterior
    assert_array_equal(shape, [SHAPE + 1, SHAPE, SHAPE])
    assert_array_equal(rate, [RATE + 4.0, RATE, RATE])


def test_a_refused_age_changes_nothing():
    ours = Scheduler(BayesGreedy(np.ones(2), shape=SHAPE, rate=RATE), crawled=0.0)
    page = ours.next(1.0)
    for bad, message in (
        ({"age": [0.5, 0.5]}, r"age must have one entry for each page, 1, got shape"),
        ({"count": 0.5}, "count must be a whole number"),
        ({"age": "old"}, "age must be numbers, got 'old'"),
    ):
        with pytest.raises(ValueError, match=message):
            ours.report(page, True, **bad)
    assert_array_equal(ours.posterior[0], [SHAPE, SHAPE])
    with pytest.warns(DistrustedAgeWarning):
        ours.report(page, True, age=9.0)  # older than the copy: the bit is used
    bit = reference.gamma_step(SHAPE, RATE, True, 1.0)
    assert_allclose([x[page] for x in ours.posterior], bit, rtol=1e-12)


@pytest.mark.parametrize("changed", [False, True])
def test_a_crawl_that_is_not_reported_lengthens_the_next_interval(changed):
    ours = Scheduler(BayesGreedy([1.0], shape=SHAPE, rate=RATE), crawled=0.0)
    for time in (1.0, 2.5, 4.0):  # two failed, or found nothing worth a report
        assert ours.next(time) == 0
    ours.report(0, changed)
    wanted = reference.gamma_step(SHAPE, RATE, changed, 4.0)
    assert_allclose(np.ravel(ours.posterior), wanted, rtol=1e-12)
    ours.next(5.0)
    ours.report(0, changed)
    # the interval is that from the crawl that was reported
    wanted = reference.gamma_step(*wanted, changed, 1.0)
    assert_allclose(np.ravel(ours.posterior), wanted, rtol=1e-12)


def test_a_first_crawl_that_failed_leaves_the_page_without_a_copy():
    ours = Scheduler(BayesGreedy([1.0], shape=SHAPE, rate=RATE))
    before = ours.posterior
    ours.next(1.0)
    ours.next(2.0)
    ours.report(0, True)  # the first copy
    assert_array_equal(ours.posterior, before)


def test_a_page_that_changed_is_crawled_sooner_and_is_not_given_up():
    times = np.arange(1, 4001) / 2.0
    ours = Scheduler(BayesGreedy(np.ones(2), shape=SHAPE, rate=RATE), crawled=0.0)
    first = ours.next(times[0])
    ours.report(first, True)
    crawled = []
    for time in times[1:]:
        page = ours.next(time)
        ours.report(page, page != first)  # the first bit misled
        crawled.append(page == first)
    assert crawled[0] is False
    assert 100 < sum(crawled) < len(crawled)
    shape, rate = ours.posterior
    assert (shape / rate)[first] < 0.01


def test_what_was_learnt_is_saved_and_what_waits_for_a_report_too(tmp_path):
    ours = Scheduler(learning(20))
    for time in range(1, 60):
        ours.report(ours.next(float(time)), time % 3 == 0)
    page = ours.next(60.0)
    ours.save(tmp_path / "state.npz")
    again = Scheduler.load(tmp_path / "state.npz")
    for one in (ours, again):
        one.report(page, True)
    assert_array_equal(ours.posterior, again.posterior)
    times = np.arange(61.0, 200.0)
    assert_array_equal(ours.run(times), again.run(times))


def test_pages_that_are_added_have_their_prior_and_updated_ones_another():
    ours = Scheduler(BayesGreedy([1.0], shape=SHAPE, rate=RATE), crawled=0.0)
    ours.next(1.0)
    ours.report(0, False)
    more = BayesGreedy([1.0, 2.0], shape=[3.0, 4.0], rate=[5.0, 6.0])
    assert ours.add(more).tolist() == [1, 2]
    assert_array_equal(ours.posterior, [[SHAPE, 3.0, 4.0], [RATE + 1.0, 5.0, 6.0]])
    ours.update([2, 0], more)
    assert_array_equal(ours.posterior, [[4.0, 3.0, 3.0], [6.0, 5.0, 5.0]])


def test_a_posterior_that_is_read_cannot_be_written():
    ours = Scheduler(BayesGreedy([1.0], shape=SHAPE, rate=RATE))
    ours.posterior[0][0] = 7.0
    assert_array_equal(ours.posterior[0], [SHAPE])


# Three ways to call: the first two are the usual ones, and have a faster path.
WAYS = {
    "bool": (lambda t: t, lambda page: page, lambda bit: bit),
    "np.bool_": (np.float64, lambda page: page, np.bool_),
    "arrays": (np.array, np.int64, int),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_every_way_to_call_gives_the_same_schedule_and_posterior(way, tmp_path):
    time, page, bit = way
    rng = np.random.default_rng(5)
    policy = learning(300, host=rng.integers(0, 3, 300), host_limit=40.0)
    ours, plain = Scheduler(policy), Scheduler(policy)
    for t in np.arange(1, 1201) / 100.0:
        (expected,) = plain.run([t])
        assert ours.next(time(t.item())) == expected
        if rng.random() < 0.7:
            changed = rng.random() < 0.4
            plain.report([expected], [changed])
            ours.report(page(expected.item()), bit(changed))
    assert saved(ours, tmp_path / "ours.npz") == saved(plain, tmp_path / "plain.npz")


def test_a_copy_goes_on_by_itself():
    ours = Scheduler(learning(40), crawled=0.0)
    ours.run(np.arange(1, 31) / 10.0)
    copies = copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))
    times = np.arange(31, 91) / 10.0
    expected = [ours.next(t) for t in times]
    for other in copies:
        assert other.next(3.1) == expected[0]
        assert_array_equal(other.run(times[1:]), expected[1:])


@pytest.mark.parametrize("changed", [True, np.bool_(True), 1])
def test_a_page_removed_before_its_report_takes_none(changed, tmp_path):
    ours = Scheduler(learning(3), crawled=0.0)
    page = ours.next(1.0)
    ours.remove(page)
    before = saved(ours, tmp_path / "state.npz")
    with pytest.raises(ValueError, match="page must be the number of a page that is"):
        ours.report(page, changed)
    assert saved(ours, tmp_path / "state.npz") == before


@pytest.mark.parametrize("reported", [True, False])
def test_a_page_removed_after_its_crawl_is_not_crawled_again(reported):
    ours = Scheduler(learning(300), crawled=0.0)
    ours.run(np.arange(1, 1001) / 100.0)
    page = ours.next(10.01)
    if reported:
        ours.report(page, True)
    ours.remove(page)
    assert ours.next(10.02) != page
    assert page not in ours.run(np.arange(1003, 3000) / 100.0)


def test_limits_that_forbid_all_pages_say_until_when():
    two = SignalledPages([1.0, 2.0], 1.0, 0.0, 0.0)
    ours = Scheduler(Greedy(two, min_interval=[3.0, 4.0]), crawled=0.0)
    with pytest.raises(NoPageError, match=r"limits forbid all pages until time 3\.0"):
        ours.next(1.0)
    assert ours.next(3.0) == 0
    ours = Scheduler(Greedy(two, host=["a", "a"], host_limit=0.5), crawled=0.0)
    assert {ours.next(1.0), ours.next(1.0)} == {0, 1}
    with pytest.raises(NoPageError, match=r"limits forbid all pages until time 3\.0"):
        ours.next(2.0)
    assert ours.next(3.0) == 0
    ours.remove([0, 1])
    with pytest.raises(NoPageError, match=r"no page to crawl at time 4\.0$"):
        ours.next(4.0)


def test_a_posterior_is_kept_where_it_is_given_with_a_new_importance():
    ours = Scheduler(BayesGreedy([1.0, 2.0], shape=SHAPE, rate=RATE), crawled=0.0)
    for t in range(1, 5):
        ours.report(ours.next(t), True)
    shape, rate = ours.posterior
    ours.update(1, BayesGreedy([3.0], shape=shape[1], rate=rate[1]))
    for found, expected in zip(ours.posterior, (shape, rate), strict=True):
        assert_array_equal(found, expected)


# ---------------------------------------------------------------- bad input

# Pages 0 to 2 are crawled at 0, page 0 again at 5, which waits for its report;
# page 1 was reported at 4, page 2 is removed.
BAD = {
    # not crawled since it was reported, or not crawled by the scheduler
    "report(1, True)": "page must have been crawled since its last report, got 1",
    "report([0, 1], [1, 0])": "page must have been crawled since its last report",
    "report(3, True)": "page must have been crawled since its last report, got 3",
    "report([0, 0], [1, 1])": "page must name each page once, got [0, 0]",
    "report(4, True)": "page must be the number of a page that is there, got 4",
    "report(-1, True)": "page must be the number of a page that is there, got -1",
    "report(2, True)": "page must be the number of a page that is there, got 2",
    "report(0.0, True)": "page must be a page number",
    "report(0, [True, False])": "changed must have one entry for each page, 1",
    "report([0, 3], True)": "changed must have one entry for each page, 2",
    "report(0, 0.5)": "changed must be",
    "report(0, None)": "changed must be",
    "report(1, np.bool_(False))": "crawled since its last report, got 1",
    "report(4, np.bool_(True))": "page must be the number of a page that is there",
    "report(2, np.bool_(True))": "page must be the number of a page that is there",
    "report(True, True)": "page must be a page number",
    "report(2**70, True)": "page must be a page number",
    "next(None)": "time must be finite, got None",
    "next(np.datetime64('2020-01-01'))": "time must be finite, got np.datetime64",
    "run(np.array(['2020-01-01'], 'M8[s]'))": "times must be finite, got array",
    "signal([0], 6.0)": "page must be the number of one page, got [0]",
    "signal(2, 6.0)": "page must be the number of a page that is there, got 2",
    "next(4.5)": "time must not go back, got 4.5 after 5.0",
    "signal(0, 4.5)": "time must not go back, got 4.5 after 5.0",
    "run([6.0, 5.5])": "times must not go back, got 5.5 at index 1",
    "add(KNOWN)": "pages must go by the same index",
    "add(SIGNALS)": "pages must go by the same index",
    "add(None)": "pages must go by the same index",
    "update(0, KNOWN)": "pages must go by the same index",
    "update(0, SIGNALS)": "pages must go by the same index",
    "add(ONE, crawled=6.0)": "crawled must not lie after the last event, 5.0, got 6.0",
    "add(ONE, crawled=[1.0, 2.0])": "crawled must be a time for each of 1 pages",
    "add(HASTY)": "host_limit must be 0.5 for host 'a', as it has been, got 2.0",
    "update(0, HASTY)": "host_limit must be 0.5 for host 'a', as it has been, got 2.0",
    "update([0, 1], ONE)": "pages must have one entry for each page, 2, got 1",
    "add(HOMELESS)": "host must be given, because all pages before have one",
    "update(0, HOMELESS)": "host must be given, because all pages before have one",
    "add(BYTES)": "host must hold numbers or strings, got b'a'",
    "update(2, ONE)": "page must be the number of a page that is there, got 2",
    "remove(2)": "page must be the number of a page that is there, got 2",
}
NAMES = {
    "KNOWN": Greedy(SignalledPages([1.0], 1.0, 0.0, 0.0)),
    "SIGNALS": SignalledPages([1.0], 1.0, 0.0, 0.0),
    "np": np,
    "ONE": BayesGreedy([1.0], shape=1.0, rate=1.0, host=["b"]),
    "HOMELESS": BayesGreedy([1.0], shape=1.0, rate=1.0),
    "BYTES": BayesGreedy([1.0], shape=1.0, rate=1.0, host=[b"a"]),
    "HASTY": BayesGreedy([1.0], shape=1.0, rate=1.0, host=["a"], host_limit=2.0),
}


@pytest.mark.parametrize("call", BAD)
def test_refused_calls_say_what_is_wrong_and_change_nothing(call, tmp_path):
    policy = BayesGreedy(
        [1.0, 1.1, 1.0, 0.1],
        shape=SHAPE,
        rate=RATE,
        host=["a", "b", "b", "c"],
        host_limit={"a": 0.5},
    )
    ours = Scheduler(policy, crawled=0.0)
    ours.remove(2)
    assert ours.next(4.0) == 1
    ours.report(1, False)
    assert ours.next(5.0) == 0
    before = saved(ours, tmp_path / "before.npz")
    with pytest.raises(ValueError, match=re.escape(BAD[call])):
        eval(f"ours.{call}", {"ours": ours} | NAMES)
    assert saved(ours, tmp_path / "after.npz") == before
    times = np.arange(6.0, 40.0)
    expected = Scheduler.load(tmp_path / "before.npz").run(times)
    assert_array_equal(ours.run(times), expected)


ONE_PAGE = SignalledPages([1.0], 1.0, 0.0, 0.0)
TWO_PAGES = SignalledPages([1.0, 2.0], 1.0, 0.0, 0.0)
# Made by the tests: to make a policy here would compile while tests are collected.
WITHOUT = {
    "signals": lambda: ONE_PAGE,
    "Greedy": lambda: Greedy(ONE_PAGE),
}


@pytest.mark.parametrize("policy", WITHOUT.values(), ids=WITHOUT)
def test_a_policy_that_does_not_learn_takes_no_report(policy, tmp_path):
    ours = Scheduler(policy(), crawled=0.0)
    ours.next(1.0)
    before = saved(ours, tmp_path / "state.npz")
    message = re.escape("the policy must learn, as policies.BayesGreedy does")
    with pytest.raises(ValueError, match=message):
        ours.report(0, True)
    with pytest.raises(ValueError, match=message):
        _ = ours.posterior
    assert saved(ours, tmp_path / "state.npz") == before


@pytest.mark.parametrize(
    ("policy", "other", "message"),
    [
        (
            WITHOUT["Greedy"],
            lambda: Greedy(ONE_PAGE, objective=objectives.age),
            "pages must go by the same index",
        ),
        (
            WITHOUT["Greedy"],
            lambda: BayesGreedy([1.0], shape=1.0, rate=1.0),
            "pages must go by the same index",
        ),
        (WITHOUT["signals"], WITHOUT["Greedy"], "pages must be SignalledPages"),
    ],
    ids=["objective", "index", "signals"],
)
def test_pages_of_another_index_are_refused(policy, other, message, tmp_path):
    ours, other = Scheduler(policy(), crawled=0.0), other()
    before = saved(ours, tmp_path / "state.npz")
    for call in (lambda: ours.add(other), lambda: ours.update(0, other)):
        with pytest.raises(ValueError, match=message):
            call()
    assert saved(ours, tmp_path / "state.npz") == before


def test_pages_may_be_added_to_a_host_with_its_limit_and_to_new_hosts(tmp_path):
    policy = Greedy(ONE_PAGE, host=["a"], host_limit=0.5)
    ours = Scheduler(policy, crawled=0.0)
    two = SignalledPages([1.0, 2.0], 1.0, 0.0, 0.0)
    more = Greedy(two, host=["a", "b"], host_limit={"a": 0.5})
    assert ours.add(more).tolist() == [1, 2]
    times = np.arange(1, 41) / 4.0  # 5 tokens come to host a, and it had 2
    page = ours.run(times)
    assert np.isin(page, [0, 1]).sum() <= 7
    ours.save(tmp_path / "state.npz")
    other = Greedy(ONE_PAGE, host=["a"], host_limit=1.0)
    with pytest.raises(ValueError, match=r"host_limit must be 0\.5 for host 'a'"):
        Scheduler.load(tmp_path / "state.npz").add(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"min_interval": 2.0, "max_interval": 1.0},
            "min_interval must be at most max_interval, got 2.0",
        ),
        (
            {"min_interval": [0.0, 2.0], "max_interval": 1.0},
            "min_interval must be at most max_interval, got 2.0 at index (1,)",
        ),
        ({"min_interval": -1.0}, "min_interval must be non-negative"),
        ({"min_interval": np.inf}, "min_interval must be non-negative and finite"),
        ({"min_interval": [1.0, 1.0, 1.0]}, "must have shapes that broadcast"),
        ({"max_interval": 0.0}, "max_interval must be positive, got 0.0"),
        ({"max_interval": -1.0}, "max_interval must be positive, got -1.0"),
        ({"max_interval": np.nan}, "max_interval must be positive, got nan"),
        ({"host": ["a"]}, "host must have one label for each page, shape (2,)"),
        ({"host_limit": -1.0}, "host_limit must be a non-negative number"),
        ({"host_limit": {"b": 1.0}}, "host_limit"),
    ],
)
def test_bad_limits(options, message):
    pages = SignalledPages([1.0, 2.0], 1.0, 0.0, 0.0)
    for policy in (
        lambda: Greedy(pages, **options),
        lambda: BayesGreedy([1.0, 2.0], shape=SHAPE, rate=RATE, **options),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            policy()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Greedy(ONE_PAGE, objective="age"), "objective must be one of"),
        (lambda: Greedy(ONE_PAGE, objective=objectives.deadline), "objective must be"),
        (lambda: objectives.deadline(0.0), "tau must be positive and finite, got 0.0"),
        (lambda: objectives.deadline(-1.0), "tau must be positive and finite"),
        (lambda: objectives.deadline(np.inf), "tau must be positive and finite"),
        (lambda: BayesGreedy(1.0, shape=1.0, rate=1.0), "importance must have one"),
        (
            lambda: BayesGreedy([-1.0], shape=1.0, rate=1.0),
            "importance must be non-negative and finite, got -1.0",
        ),
        (
            lambda: BayesGreedy([1.0], shape=0.0, rate=1.0),
            "shape must be positive and finite, got 0.0",
        ),
        (
            lambda: BayesGreedy([1.0], shape=1.0, rate=np.inf),
            "rate must be positive and finite, got inf",
        ),
        (
            lambda: BayesGreedy([1.0, 1.0], shape=[1.0, 1.0, 1.0], rate=1.0),
            "importance and shape and rate must have shapes that broadcast",
        ),
        (
            lambda: Scheduler(NAMES["ONE"], crawled=[0.0, 1.0]),
            "crawled must be a time for each of 1 pages",
        ),
        (lambda: Scheduler(NAMES["ONE"], crawled=np.nan), "crawled must be finite"),
        (
            lambda: Scheduler(NAMES["ONE"], crawled=np.datetime64("2020-01-01")),
            "crawled must be a time for each of 1 pages, got np.datetime64",
        ),
        (lambda: Scheduler(NAMES["BYTES"]), "host must hold numbers or strings"),
        (
            lambda: Greedy(TWO_PAGES, host=[1, "a"], host_limit={1: 1.0}),
            "host must be labels of one type, got strings and others",
        ),
        (
            objectives.Objective,
            "Objective must be one of those in recrawl.science.objectives",
        ),
    ],
)
def test_bad_policies(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((lambda: None, {}), "policy must be SignalledPages or a policy"),
        ((lambda: Rates(np.ones(2)), {}), "policy must be SignalledPages or a policy"),
        ((lambda: BayesGreedy([], shape=1.0, rate=1.0), {}), "at least one page"),
        ((WITHOUT["Greedy"], {"terms": 2}), "terms and discard_window must be"),
        ((WITHOUT["Greedy"], {"discard_window": 1.0}), "terms and discard_window"),
    ],
)
def test_a_scheduler_of_something_else_is_refused(arguments, message):
    policy, options = arguments
    with pytest.raises(ValueError, match=message):
        Scheduler(policy(), **options)


def test_a_host_without_a_limit_stays_without():
    ours = Scheduler(Greedy(ONE_PAGE, host=["a"], host_limit=0.5), crawled=0.0)
    with pytest.raises(ValueError, match=r"must be 0\.5 for host 'a'.*got inf"):
        ours.add(Greedy(ONE_PAGE, host=["a"]))
    free = Scheduler(Greedy(ONE_PAGE, host=["a"]), crawled=0.0)
    with pytest.raises(ValueError, match=r"must be inf for host 'a'.*got 0\.5"):
        free.add(Greedy(ONE_PAGE, host=["a"], host_limit=0.5))


def test_labels_of_hosts_are_the_same_after_a_restart(tmp_path):
    ours = Scheduler(Greedy(ONE_PAGE), crawled=0.0)
    ours.add(Greedy(ONE_PAGE, host=["1"], host_limit=0.5))
    ours.add(Greedy(ONE_PAGE, host=[1], host_limit=0.25))
    ours.save(tmp_path / "state.npz")
    ours = Scheduler.load(tmp_path / "state.npz")
    for label, limit in (["1"], 0.5), ([1], 0.25), (None, np.inf):
        ours.add(Greedy(ONE_PAGE, host=label, host_limit=limit))
    with pytest.raises(ValueError, match=r"must be 0\.25 for host 1"):
        ours.add(Greedy(ONE_PAGE, host=[1], host_limit=0.5))


def test_two_crawls_at_one_time_are_one():
    ours = Scheduler(BayesGreedy([1.0], shape=1.0, rate=1.0), crawled=0.0)
    assert ours.next(1.0) == ours.next(1.0) == 0
    ours.report(0, False)
    assert ours.posterior[1].tolist() == [2.0]
    ours.next(1.0)
    with pytest.raises(ValueError, match="crawled since its last report"):
        ours.report(0, False)
