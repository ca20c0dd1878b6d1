"""Schedules under limits, with a hedge, and what they promise.

Schedules of plain problems are tested in test_crawl_log.py.
"""

import fnmatch
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy.integrate import quad

from paperlib import freshness
from recrawl.plan import allocation, inputs
from recrawl.plan import problem as planning
from recrawl.plan.limits import CrawlLimits, page_limits, read_limits
from recrawl.plan.schedule import HEDGE, schedule
from recrawl.rates.posterior import expected
from recrawl.units import as_text, days, per_day, rounded
from tests.recrawl.crawl_logs import parquet

N_PAGES = 60
LIMITS = "least_interval", "greatest_interval", "per_host", "exceptions"
START, END, NEVER = np.array(["2026-01-01", "2026-01-11", "NaT"], "datetime64[us]")


def pages(n_pages=N_PAGES, seed=1, **columns):
    """Columns of rates of pages on three hosts."""
    rng = np.random.default_rng(seed)
    part = np.where(np.arange(n_pages) % 2, "news", "a_b%c")
    return {
        "url": [f"https://h{k % 3}/{part[k]}/{k}" for k in range(n_pages)],
        "host": [f"h{k % 3}" for k in range(n_pages)],
        "change_rate": rng.lognormal(-1, 1.2, n_pages),
        "importance": rng.random(n_pages) + 0.1,
        "n_crawls": np.full(n_pages, 5),
        "first_crawl": np.full(n_pages, START),
        "last_crawl": np.full(n_pages, END),
    } | columns


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Write rates and schedule them; returns the result and the table."""

    def scheduled(columns, bandwidth, *, metadata=None, hedge=HEDGE, **options):
        monkeypatch.setattr("recrawl.plan.schedule.HEDGE", hedge)
        rates, output = tmp_path / "rates.parquet", tmp_path / "plan.parquet"
        table = pa.table(columns).replace_schema_metadata(
            {} if metadata is None else {"recrawl": json.dumps(metadata)}
        )
        pq.write_table(table, rates)
        given = {name: options.pop(name) for name in LIMITS if name in options}
        options |= {"limits": CrawlLimits(**given), "force": True}
        found = schedule(rates, output, bandwidth, **options)
        return found, pq.read_table(output)

    return scheduled


@pytest.fixture
def limits(tmp_path):
    """Write a file of limits."""

    def written(*lines):
        path = tmp_path / "limits.csv"
        path.write_text("\n".join([*lines, ""]))
        return path

    return written


# ---------------------------------------------------------------- closed forms


def test_units():
    assert [days(text) for text in ("1h", "30d", "90 min", "1.5w", "36s")] == (
        pytest.approx([1 / 24, 30, 1 / 16, 10.5, 36 / 86400], rel=1e-14)
    )
    assert days("7m") == days("7min") == days("7 minutes")
    assert [days(text) for text in ("7days", "1week", "7D", "168 hrs")] == [7] * 4
    assert per_day("10/hour") == per_day("10/h") == per_day("10/hours") == 240
    texts = [as_text(x) for x in (30, 1, 0.5, 1 / 24, 1 / 1440, 2e-5)]
    assert texts == [
        "30 days", "1 day", "12 hours", "1 hour", "1 minute", "1.73 seconds"
    ]  # fmt: skip
    assert as_text(days("90min")) == "1.5 hours"
    numbers = 7_164_000, 999.6, 91.592, 0.012345, 0.0
    assert [rounded(x) for x in numbers] == [
        "7,160,000",
        "1,000",
        "91.6",
        "0.0123",
        "0",
    ]


def test_the_mean_over_a_posterior():
    rate, stderr = np.array([0.3, 1.0, 4.0]), np.array([0.0, 0.5, 1.0])
    middle = rate * [1.0, 1.7, 1.2]

    def fresh(z, middle, stderr):
        density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        return freshness.interval(middle * np.exp(stderr * z), 1.0) * density

    terms = zip(middle, stderr, strict=True)
    by_quadrature = [quad(fresh, -9, 9, each)[0] for each in terms]
    found = expected(
        lambda rate: freshness.interval(rate, 1.0), rate, stderr, np.log(middle)
    )
    np.testing.assert_allclose(found, by_quadrature, atol=3e-6)


@pytest.mark.parametrize("wait", [50_000, 364_999, 365_001])
def test_due_dates_far_ahead_are_exact_or_missing(run, wait):
    """None is given after a thousand years, as timestamps end with the year 9999."""
    same = np.ones(2)
    columns = pages(2, change_rate=same, importance=same)
    _, table = run(columns, 2 / wait)
    assert table["crawl_rate"].to_pylist() == pytest.approx([1 / wait] * 2)
    due = table["due"].to_numpy()
    if wait > 365_000:
        assert np.isnat(due).all()
    else:
        error = due - (END + np.timedelta64(wait, "D"))
        assert (np.abs(error) < np.timedelta64(1, "m")).all()


def test_a_hedge_is_a_mean_of_the_optimum_and_equal_rates(run):
    columns = pages(gone=np.arange(N_PAGES) == 4)
    _, plan = run(columns, 20.0)
    _, best = run(columns, 20.0, hedge=0.0)
    even = np.where(columns["gone"], 0.0, 20.0 / (N_PAGES - 1))
    mixed = HEDGE * even + (1 - HEDGE) * best["crawl_rate"].to_numpy()
    np.testing.assert_allclose(plan["crawl_rate"], mixed, rtol=1e-12)


# ---------------------------------------------------------------- oracles


def test_limits_of_a_file_by_another_matcher(limits):
    columns = pages()
    rows = read_limits(limits(
        "pattern,least_interval,greatest_interval,rate",
        "h1,,20d,",
        "https://h1/news/*,1h,5d,",
        "https://h1/news/1*,NA, 2d,None",  # longer, says nothing of the least interval
        "https://h0/a_b%c/*,,3d,",
        "h2*,,25d,",
    ))  # fmt: skip
    table = pa.table({name: columns[name] for name in ("url", "host")})
    low, high = page_limits(table.to_batches(7), rows, CrawlLimits(1 / 96, 30.0))
    for url, host, *found in zip(
        columns["url"], columns["host"], low, high, strict=True
    ):
        least, greatest = 1 / 96, 30.0
        for pattern, a, b in [
            ("h1", None, 20.0),
            ("h2*", None, 25.0),
            ("https://h0/a_b%c/*", None, 3.0),
            ("https://h1/news/*", 1 / 24, 5.0),
            ("https://h1/news/1*", None, 2.0),
        ]:
            if fnmatch.fnmatchcase(url if "/" in pattern else host, pattern):
                least, greatest = a or least, b or greatest
        assert found == pytest.approx([1 / greatest, 1 / least], rel=1e-12)
    assert (len(set(low)), len(set(high))) == (6, 2)
    odd = {"url": [f"https://h0/{x}/1" for x in ("a_b%c", "a-b%c", "a_b/c")]}
    of_odd = next(row for row in rows if "a_b" in row.pattern)
    assert of_odd.matches(pa.record_batch(odd)).tolist() == [True, False, False]


@pytest.mark.parametrize("objective", ["freshness", "age", "harmonic"])
def test_a_limited_schedule_is_the_optimal_allocation(run, limits, objective):
    columns = pages(gone=np.arange(N_PAGES) == 7)
    given = {"objective": objective, "least_interval": 0.5, "greatest_interval": 12.0}
    rows = "https://*/news/*,8d,", "h2,,8/day", "h0,,9/day"
    path = limits("pattern,greatest_interval,rate", *rows)
    given |= {"exceptions": path, "per_host": 15.0}
    found, plan = run(columns, 25.0, hedge=0.0, **given)
    news = np.array(["news" in url for url in columns["url"]])
    hosts = np.array([int(host[1]) for host in columns["host"]])
    least = np.where(columns["gone"], 0.0, np.where(news, 1 / 8, 1 / 12))
    change_rate, host_limit = columns["change_rate"], [9, 15, 8]
    importance = np.where(columns["gone"], 0.0, columns["importance"])
    under = {"min_rate": least, "max_rate": 2.0}
    under |= {"host": hosts, "host_limit": host_limit, "objective": objective}
    best = allocation.optimal(change_rate, importance, 25.0, **under).crawl_rate
    np.testing.assert_allclose(plan["crawl_rate"], best, rtol=1e-9)
    fresh = freshness.interval(change_rate, best)
    assert found.freshness == pytest.approx(freshness.mean(fresh, importance), rel=1e-9)
    # and mixed with equal rates all limits hold too
    mixed, plan = run(columns, 25.0, hedge=0.5, **given)
    rate, slack = plan["crawl_rate"].to_numpy(), 1 + 1e-9
    assert (rate * slack >= least).all()
    assert (rate <= 2.0 * slack).all()
    assert (np.bincount(hosts, rate) <= np.multiply(host_limit, slack)).all()
    assert mixed.spent == pytest.approx(25.0, rel=1e-9)


def test_prices_are_differences_of_two_schedules(run):
    columns = pages()
    limits = {"least_interval": 1.5, "greatest_interval": 9.0, "per_host": 9.0}
    found, _ = run(columns, 25.0, **limits)
    kinds = "least intervals", "greatest intervals", "limits of hosts"
    assert found.prices.keys() == {*kinds}
    for name, kind in zip(limits, kinds, strict=True):
        others = {other: limits[other] for other in limits if other != name}
        without, _ = run(columns, 25.0, **others)
        gain = without.freshness - found.freshness
        assert gain > 1e-5
        assert found.prices[kind] == pytest.approx(gain, rel=1e-7)


def test_limits_may_take_the_whole_bandwidth_whatever_the_rounding(run):
    assert sum([1 / 10.0] * 3) > 0.3
    _, plan = run(pages(3), 0.3, greatest_interval=10.0)
    np.testing.assert_allclose(plan["crawl_rate"], 0.1, rtol=1e-12)
    batch = pa.record_batch({"url": ["https://a/"]})
    np.testing.assert_array_equal(
        page_limits([batch], [], CrawlLimits(2.0, 2.0)), [[0.5], [0.5]]
    )


# ---------------------------------------------------------------- promises


def test_now_is_that_of_the_log_where_it_is_given(run):
    columns, told = pages(), np.arange(N_PAGES) % 4 > 0

    def mean(fresh, of=told):
        return np.average(np.asarray(fresh)[of], weights=columns["importance"][of])

    now = freshness.interval(columns["change_rate"], 5 / 10)
    by_rate = run(columns, 20.0)[0].compared["now"]
    assert by_rate == pytest.approx(mean(now, now > 0))
    known = np.where(told, np.random.default_rng(2).random(N_PAGES), np.nan)
    given = pa.array(known, from_pandas=True)  # null where NaN
    found, plan = run(columns | {"freshness_now": given}, 20.0)
    np.testing.assert_array_equal(plan["freshness_now"].to_numpy(), known)
    # pages of which the log does not tell it are left out of all three
    even = freshness.interval(columns["change_rate"], 20.0 / N_PAGES)
    wanted = mean(known), mean(even), mean(plan["freshness"])
    assert found.compared == pytest.approx(
        dict(zip(("now", "in turn", "scheduled"), wanted, strict=True))
    )
    assert found.compared["scheduled"] != pytest.approx(found.freshness, rel=1e-3)
    nothing = pa.array([None] * N_PAGES, pa.float64())
    found, _ = run(columns | {"freshness_now": nothing}, 20.0)
    assert set(found.compared.values()) == {None}


def test_a_promise_is_the_freshness_at_rates_that_drift(run):
    """Factors 1/2 to 2 and half their ratio more, 1/4 to 4; and 0.02 of freshness."""
    columns, drift = pages(), {"drift": [0.5, 2.0, 2.0]}
    found, plan = run(columns, 20.0, metadata=drift)

    def at(factor, crawl_rate=plan["crawl_rate"]):
        fresh = freshness.interval(factor * columns["change_rate"], crawl_rate)
        return np.average(fresh, weights=columns["importance"])

    expected = at(4.0) - 0.02, at(2 ** (1 / 3)), at(0.25) + 0.02
    assert found.promise == pytest.approx(expected, rel=1e-12)
    turn = at(2 ** (1 / 3), 20.0 / N_PAGES)
    assert found.promise_in_turn[1] == pytest.approx(turn, rel=1e-12)
    assert [each["bandwidth"] for each in found.budgets] == [5, 10, 20, 40, 80]
    for each in found.budgets:
        own, _ = run(columns, each["bandwidth"], metadata=drift)
        assert each["promise"] == pytest.approx(own.promise, rel=1e-12)
        assert each["scheduled"] == pytest.approx(own.freshness, rel=1e-12)
        assert each["in turn"] == pytest.approx(own.compared["in turn"], rel=1e-12)
    # 1 is always within the range
    found, _ = run(columns, 20.0, metadata={"drift": [2.0] * 3})
    expected = at(2 * 2**0.5) - 0.02, at(2.0), at(0.5**0.5) + 0.02
    assert found.promise == pytest.approx(expected, rel=1e-12)
    for given in (None, {"drift": None}):
        found, _ = run(columns, 20.0, metadata=given)
        assert found.promise is None
        assert {each["promise"] for each in found.budgets} == {None}


def test_a_range_stays_within_0_and_1(run):
    never = pages() | {"change_rate": np.zeros(N_PAGES)}
    drift = {"drift": [0.9, 1.0, 1.1]}
    assert run(never, 20.0, metadata=drift)[0].promise[2] == 1.0
    often = pages() | {"change_rate": np.full(N_PAGES, 1e6)}
    assert run(often, 20.0, metadata=drift)[0].promise[0] == 0.0


def test_pages_that_were_never_fetched_are_counted_and_promised_nothing(run, tmp_path):
    never, once = [3, 5, 8, 40], [6, 9]
    n_crawls, last = np.full(N_PAGES, 5), np.full(N_PAGES, END)
    n_crawls[never + once], last[never] = 0, NEVER
    columns = pages(n_crawls=n_crawls, first_crawl=last, last_crawl=last)
    found, plan = run(columns, 20.0)
    urls = np.array(columns["url"])
    rate = plan["crawl_rate"].to_numpy()
    for kind, numbers in {"unfetched": never, "unmeasured": once}.items():
        assert found.pages[kind] == {
            "pages": len(numbers),
            "crawls": pytest.approx(rate[numbers].sum()),
            "first": urls[numbers[:3]].tolist(),
        }
    assert rate[never + once].min() > 0
    stored = pq.read_metadata(tmp_path / "plan.parquet").metadata[b"recrawl"]
    assert json.loads(stored)["pages"] == found.pages
    for name in ("freshness", "freshness_now"):
        assert np.flatnonzero(plan[name].is_null()).tolist() == never
    _, all_fetched = run(pages(), 20.0)
    assert plan["crawl_rate"].equals(all_fetched["crawl_rate"])
    weight = np.where(plan["freshness"].is_null(), 0.0, columns["importance"])
    fresh = np.nan_to_num(plan["freshness"].to_numpy())
    assert found.freshness == pytest.approx(np.average(fresh, weights=weight))
    few = {name: columns[name] for name in ("url", "change_rate")}
    found, plan = run(few, 20.0)
    assert found.pages["unfetched"]["pages"] == 0, "nobody says so"
    assert plan["due"].null_count == N_PAGES, "no last crawl is known"
    assert set(run(columns, 20.0)[1]["due"].to_numpy()[never]) == {END}, "at once"
    assert run(few | {"n_crawls": n_crawls}, 20.0)[0].pages["unfetched"]["pages"] == 6
    # where no page counts there is no mean: the fetched pages are unimportant
    only = columns | {"importance": np.isin(np.arange(N_PAGES), never).astype(float)}
    assert run(only, 20.0)[0].freshness is None


# ------------------------------------------------- pages of which no row is known

ESTIMATES = {"changed": 2.0, "unchanged": 1.0, "scales": None, "pace": 20.0}


def test_known_pages_are_added_with_the_rate_of_the_prior(run, tmp_path):
    columns, path = pages(), tmp_path / "known.txt.gz"
    urls = ["http://H0:80/new", columns["url"][7], "https://h2/new", "http://H0:80/new"]
    with pa.output_stream(path) as file:  # compresses by the suffix
        file.write("\r\n\r\n".join(urls).encode("utf-8-sig"))
    views = tmp_path / "views.csv"
    views.write_text("url,importance\nhttps://h2/new,7\n")
    metadata = ESTIMATES | {"scales": {"h0": 4.0}}
    given = {"metadata": metadata, "importance": views, "per_host": 9.0}
    found, plan = run(columns, 25.0, pages=path, **given)
    assert found.added == {"new": 2, "known": 1, "repeated": 1}
    mode = np.log(1.5 / 0.5) / 2  # of (1 - exp(-2 x)) exp(-x), where its slope is 0
    more = {"url": urls[0:3:2], "host": ["h0", "h2"], "change_rate": [4 * mode, mode]}
    more |= {"importance": [1.0, 7.0], "n_crawls": [0, 0]}
    more |= dict.fromkeys(("first_crawl", "last_crawl"), [NEVER] * 2)
    both = {name: [*columns[name], *more[name]] for name in columns}
    expected, same = run(both, 25.0, **given)
    assert plan.equals(same)
    assert found.pages == expected.pages
    assert found.pages["unfetched"]["first"] == more["url"]
    assert (plan["due"].to_numpy()[-2:] == END).all()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (b"", "must hold at least one URL, got none"),
        (b"https://a/\nurl\n", "line 2: must be a URL of http or https without spaces"),
        (b"\n\nhttps://a/ b", "line 3: must be a URL of http or https without spaces"),
        (b"https://a/\x1b[2J", r"got 'https://a/\x1b[2J'"),
        (b"javascript:alert(1)", "got 'javascript:alert(1)'"),
        (b"https:///path", "got 'https:///path'"),
        (b"https://a/\xff", "must be a text in UTF-8: "),
        (b"https://a/" + b"x" * 70_000 + b" y", "line 2: must be a URL"),
    ],
)
def test_bad_lists_of_pages(run, tmp_path, text, rule):
    path = tmp_path / "known.txt"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=re.escape(rule)):
        run(pages(), 25.0, pages=path, metadata=ESTIMATES)
    path.write_text("https://a/\n")
    with pytest.raises(ValueError, match="pages must be None unless `recrawl estimate"):
        run(pages(), 25.0, pages=path)
    with pytest.raises(FileNotFoundError, match="nix"):
        run(pages(), 25.0, pages="nix", metadata=ESTIMATES)


@pytest.mark.parametrize(
    ("n_crawls", "bandwidth", "said"),
    [
        (
            10,
            20.0,
            "this log has 10 intervals between crawls of a page; measured on other "
            "logs with 10, 85% of such ranges held the freshness of the next fifth",
        ),
        (
            9,
            6.0,
            "this log has 9 intervals between crawls of a page; measured on other "
            "logs with 3, 73% of such ranges held the freshness of the next fifth",
        ),
        (2, 20.0, "a guess: all were measured with 3 crawls of a page or more"),
        (10, 61.0, "a guess: such ranges were measured at 0.3 to 3 times the pace"),
        (10, 5.9, "a guess: such ranges were measured at 0.3 to 3 times the pace"),
    ],
)
def test_how_sure_a_promise_is(run, n_crawls, bandwidth, said):
    columns = pages(n_crawls=np.full(N_PAGES, n_crawls))
    found, _ = run(columns, bandwidth, metadata=ESTIMATES)
    assert found.held.startswith(said)


# ---------------------------------------------------------------- invariances


def test_schedules_do_not_depend_on_the_order_of_pages_or_batches(
    run, limits, monkeypatch
):
    columns = pages()
    path = limits("pattern,greatest_interval,rate", "https://*/news/*,8d,", "h2,,8/day")
    given = {"exceptions": path, "greatest_interval": 20.0}
    found, plan = run(columns, 25.0, **given)
    order = np.random.default_rng(3).permutation(N_PAGES)
    moved = {name: np.asarray(values)[order] for name, values in columns.items()}
    monkeypatch.setattr(inputs, "PAGES_PER_BATCH", 11)
    again, other = run(moved, 25.0, **given)
    np.testing.assert_allclose(
        other["crawl_rate"], plan["crawl_rate"].to_numpy()[order], rtol=1e-8
    )
    assert again.freshness == pytest.approx(found.freshness, rel=1e-9)
    assert again.prices == pytest.approx(found.prices, rel=1e-6)


# ------------------------------------------------- importance from elsewhere


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_importance_of_a_table_replaces_that_of_the_rates(run, tmp_path, kind):
    columns, named = pages(), [7, 3, 40]
    url = [columns["url"][k] for k in named]
    views = {"importance": [30, 0, 2.5, 9, None], "url": [*url, "x", columns["url"][1]]}
    views["views"] = [0] * 5
    path = tmp_path / f"views.{kind}"
    if kind == "parquet":
        parquet(path, **views)
    else:
        with pa.output_stream(path) as file:  # compresses by the suffix
            pa.csv.write_csv(pa.table(views), file)
    found, plan = run(columns, 15.0, importance=path)
    wanted = {"named": 3, "others": 57, "unknown": 1, "first": ["x"]}
    assert found.importance == wanted
    columns["importance"][named] = [30, 0, 2.5]
    expected, same = run(columns, 15.0)
    assert found.freshness == expected.freshness
    assert plan["crawl_rate"] == same["crawl_rate"]
    assert plan["crawl_rate"][3].as_py() == 0.0


@pytest.mark.parametrize("value", ["inf", "-1", "x"])
def test_importance_of_a_table_must_be_finite(run, tmp_path, value):
    columns, path = pages(), tmp_path / "views.csv"
    path.write_text(f"url,importance\n{columns['url'][0]},{value}\n")
    message = f"must be non-negative and finite, got '{value}' of '{columns['url'][0]}'"
    with pytest.raises(ValueError, match=re.escape(message)):
        run(columns, 15.0, importance=path)


def test_budgets_of_many_pages_come_from_a_sample(run, monkeypatch):
    columns = pages(400)
    exact, _ = run(columns, 100.0)
    monkeypatch.setattr(planning, "SAMPLE", 200)
    found, _ = run(columns, 100.0)
    assert found.freshness == exact.freshness
    for few, all_pages in zip(found.budgets, exact.budgets, strict=True):
        assert few["scheduled"] == pytest.approx(all_pages["scheduled"], abs=0.05)
        assert few["scheduled"] != all_pages["scheduled"]


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"least_interval": -1.0}, "least_interval must be positive and finite"),
        (
            {"least_interval": 2.0, "greatest_interval": 1.0},
            "least_interval must be at most greatest_interval, 1 days, got 2",
        ),
        (
            {"objective": "best"},
            "objective must be one of ['freshness', 'age', 'harmonic']",
        ),
        (
            {"greatest_interval": 3.0},
            "the greatest intervals must fit the bandwidth, 10 crawls a day: they need "
            "20, 10 too many",
        ),
        (
            {"greatest_interval": 10.0, "per_host": 1.0},
            "the greatest intervals must fit the limit of host 'h0', 1 crawls a day: "
            "they need 2, 1 too many",
        ),
        ({"per_host": -1.0}, "per_host must be positive and finite, got -1.0"),
        ({"exceptions": "nix.csv"}, "no such file: nix.csv"),
    ],
)
def test_bad_arguments(run, tmp_path, options, rule):
    columns = pages(n_failed=np.zeros(N_PAGES))
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(rule)):
        run(columns, 10.0, **options)
    assert not (tmp_path / "plan.parquet").exists()


def test_limits_of_hosts_need_the_hosts(run):
    columns = {"url": ["a"], "change_rate": [1.0]}
    with pytest.raises(ValueError, match="must have a column 'host', got url, change"):
        run(columns, 10.0, per_host=1.0)


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ([], "must have the column pattern, and others only of least_interval"),
        (["pattern,interval"], "got pattern, interval"),
        (["pattern,rate"], "must hold at least one pattern, got none"),
        (["pattern,rate", "h1,ten"], "line 2: rate must be a positive number and a"),
        (["pattern,rate", ",1/day"], "line 2 must hold a pattern and its limits"),
        (["pattern,rate", "h1,1/day,2"], "line 2 must hold a pattern and its limits"),
        (["pattern,rate", "h1,1/day", "h1,"], "line 3: pattern must stand once, got"),
        (["pattern,rate", "https://h1/*,1/day"], "line 2: rate must be that of one"),
        (["pattern,rate", "h*,1/day"], "rate must be that of one host, got one for 'h"),
        (["pattern,rate", "h9,1/day"], "the patterns of limits must match pages"),
        (
            ["pattern,greatest_interval", "https://h1/nix*,9d"],
            "must match pages, got 1 without: 'https://h1/nix*'",
        ),
        (
            ["pattern,greatest_interval,least_interval", "h1,9d,", "https://h1/*,,10d"],
            "at most its greatest, got 10 days and 9 days for 'https://h1/news/1'",
        ),
        (
            ["pattern,greatest_interval", "h1,1d", "h2,2d"],
            "the greatest intervals must fit the bandwidth, 10 crawls a day: they "
            "need 30, 20 too many",
        ),
    ],
)
def test_bad_files_of_limits(run, limits, lines, rule):
    with pytest.raises(ValueError, match=re.escape(rule)):
        run(pages(), 10.0, exceptions=limits(*lines))
