"""What fetches, dumps of states and intervals tell, as bits and ages of pages.

Rules of signals, tables by other names, several files, and logs cut in two.
"""

import numpy as np
import pyarrow.parquet as pq
import pytest

from recrawl import convert, estimate
from recrawl.log import formats, reading
from recrawl.log.tally import UNSIGNED
from tests.recrawl.crawl_logs import START, parquet, read, recorded, table, write
from tests.recrawl.thinned import every

DAY = 86_400
COLUMNS = ("url", "time", "status", "digest", "etag", "last_modified")


def fetch(day, digest="", *, url="a", status=200, etag="", modified=None):
    """One row of a log of fetches; `modified` is a day too."""
    modified = "" if modified is None else START + modified * DAY
    return url, START + day * DAY, status, digest, etag, modified


def days(name, values):
    """Fetches of a page day by day, which differ in one column."""
    return [fetch(day, **{name: value}) for day, value in enumerate(values)]


TAGS = ['"e"', 'W/"e"', '"e-gzip"', '"e;gzip"', 'W/"e--gzip"', '"f"']
NOT_MODIFIED = [
    fetch(0, "x"), fetch(1, status=304), fetch(2, "x"), fetch(3, status=304),
    fetch(4, "y"), fetch(5, "empty", status=304), fetch(6, "y"),
]  # fmt: skip
MOSTLY = [fetch(k, etag=f'"{k // 2}"') for k in range(6)]
MOSTLY[0] = fetch(0, "x", etag='"0"')


@pytest.mark.parametrize(
    ("rows", "known", "changed"),
    [
        (days("digest", "xxyyx"), [1, 2, 3, 4], [2, 4]),  # a change back is a change
        # digests of one algorithm are compared
        (days("digest", ["md5:1", "md5:1", "sha1:1", "md5:2"]), [1, 3], [3]),
        # not modified carries the signal
        (NOT_MODIFIED, [1, 2, 3, 4, 5, 6], [4]),
        (days("etag", TAGS), [1, 2, 3, 4, 5], [5]),  # of one content, but the last
        # the signal that most fetches have; else digests, ETags, dates in this order
        (MOSTLY, [1, 2, 3, 4, 5], [2, 4]),
        ([fetch(k, "x", etag=f'"{k}"', modified=k - 1) for k in range(3)], [1, 2], []),
        ([fetch(k, etag='"e"', modified=k - 1) for k in range(3)], [1, 2], []),
    ],
)
def test_bits_of_fetches(tmp_path, rows, known, changed):
    wanted = [(day, day in changed) for day in known]
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    columns["last_modified"] = [str(value) for value in columns["last_modified"]]
    for path in (
        write(tmp_path / "log.csv", table(rows, COLUMNS)),
        parquet(tmp_path / "log.parquet", **columns),
    ):
        pages, _, counts, _ = read(path)
        assert [(day, bit) for day, _, bit, _ in pages["a"] if day > 0] == wanted
        assert counts.get(UNSIGNED, 0) == len(rows) - 1 - len(known)


def test_signals_that_prove_one_outcome_only_are_left_out(tmp_path):
    # 304 proves "unchanged", and nothing proves a change
    rows = [fetch(0), fetch(1, status=304), fetch(2), fetch(3, status=304)]
    rows += [fetch(day, "x", url="b") for day in (0, 1)]
    pages, _, counts, _ = read(write(tmp_path / "log.csv", table(rows, COLUMNS)))
    assert pages["a"] == []
    assert counts[UNSIGNED] == 4


def test_a_fetch_without_the_pages_signal_is_left_out_whole(tmp_path):
    """Its 304 goes with it; the interval is from the fetch before to that after."""
    rows = [fetch(0, "x"), fetch(1, "x"), fetch(2, etag='"e"')]
    rows += [fetch(3, status=304), fetch(4, "y"), fetch(5, "y")]
    pages, *_ = read(write(tmp_path / "log.csv", table(rows, COLUMNS)))
    wanted = (1, 1, False, None), (4, 3, True, None), (5, 1, False, None)
    assert pages["a"] == [*wanted]


def test_ages_from_last_modified(tmp_path):
    dates = (0, -5), (2, -5), (4, 3.25), (5, 3.25)
    rows = [fetch(day, modified=modified) for day, modified in dates]
    pages, *_ = read(write(tmp_path / "log.csv", table(rows, COLUMNS)))
    assert pages["a"] == [
        (0.0, 5.0, True, 5.0),  # nothing is known of before
        (2.0, 2.0, False, None),
        (4.0, 2.0, True, 0.75),
        (5.0, 1.0, False, None),
    ]


@pytest.mark.slow
def test_dates_that_are_no_time_of_a_change(tmp_path):
    # 1970, in the future, and the time of the fetch itself
    for modified in (-START / DAY, 9, 2 - 1 / DAY):
        rows = [fetch(0, "x"), fetch(2, "y", modified=modified)]
        pages, *_ = read(write(tmp_path / "log.csv", table(rows, COLUMNS)))
        assert pages["a"] == [(2.0, 2.0, True, None)]


@pytest.mark.parametrize(("made_up", "n_crawls"), [(1, 3), (2, 2), (3, 0)])
def test_dates_count_unless_most_of_them_are_made_up(tmp_path, made_up, n_crawls):
    """Of four dates of a page as many as are given are those of the fetch."""
    rows = [
        fetch(day, modified=day - (1 / DAY if day < made_up else 0.5))
        for day in range(4)
    ]
    rows += [fetch(day, "x", url="b") for day in (0, 1)]
    pages, *_ = read(write(tmp_path / "log.csv", table(rows, COLUMNS)))
    assert sum(day > 0 for day, *_ in pages["a"]) == n_crawls


@pytest.mark.parametrize(("ahead", "n_told"), [(0.5, 0), (0.9, 0), (1.1, 1), (5, 1)])
def test_a_last_modified_may_be_a_day_after_its_time(tmp_path, ahead, n_told):
    columns = ("url", "time", "changed", "last_modified")
    rows = [("a", START, 0, ""), ("a", START + DAY, 1, START + (1 + ahead) * DAY)]
    pages, _, counts, _ = read(write(tmp_path / "log.csv", table(rows, columns)))
    assert pages["a"] == [(1.0, 1.0, True, None)]
    reason = "whose last_modified is after its time by more than a day"
    assert counts.get(reason, 0) == n_told


def random_fetches(rng):
    """Fetches of 30 pages whose signals are of all kinds, by time."""
    rows = []
    for page in range(30):
        kind = page % 5
        version, changed_at, since = 0, 0.0, 0.0
        for day in np.sort(rng.choice(4000, rng.integers(2, 14), replace=False)) / 16:
            if rng.random() < 0.5:
                version, changed_at = version + 1, day - (day - since) * rng.random()
            since = day
            status = 200
            if rng.random() < 0.2:
                status = int(rng.choice([304, 404, 503]))
            digest = f"d{version % 3}" if kind in (0, 3) else ""
            etag = f'"{version}"' if kind in (1, 3) else ""
            modified = round(changed_at * DAY) / DAY if kind in (2, 4) else None
            more = {"url": f"http://h/{page}", "etag": etag, "modified": modified}
            rows.append(fetch(day, digest, status=status, **more))
    return sorted(rows, key=lambda row: row[1])


@pytest.mark.slow
@pytest.mark.parametrize("seed", every(4, range(4)))
def test_two_logs_with_a_state_give_what_the_whole_log_gives(tmp_path, seed):
    rng = np.random.default_rng(seed)
    rows = random_fetches(rng)
    whole = kept(tmp_path, [rows], COLUMNS)
    for cut in rng.integers(1, len(rows), 3).tolist():
        assert kept(tmp_path, [rows[:cut], rows[cut:]], COLUMNS) == whole


def kept(tmp_path, logs, columns=None):
    """What the state says of each page after logs, of files or rows, in their order."""
    state = tmp_path / "state.parquet"
    state.unlink(missing_ok=True)
    for log in logs:
        if columns:
            log = write(tmp_path / "log.csv", table(log, columns))
        recorded(estimate, log, tmp_path / "rates.parquet", state=state, force=True)
    pages = {page["url"]: page for page in pq.read_table(state).to_pylist()}
    for page in pages.values():
        # neighbours in two logs are left out of the dispersion
        for name in ("dispersion", "freedom"):
            del page[name]
        interval = [round(each, 9) for each in page.pop("interval")]
        others = (page.pop(name) for name in ("bits", "aged", "n"))
        page["groups"] = sorted(zip(interval, *others, strict=True))
    return pages


DUMPS = formats.base.Format(
    "dumps",
    "a dump of a crawler",
    "states",
    lambda head, path: head.startswith(b"dump"),
    "select n as row, line as given, part[2] as url, 200 as status, "
    "to_timestamp(part[3]::bigint) as last_fetch, "
    "to_timestamp(try_cast(part[4] as bigint)) as last_change, null as reason "
    "from (select *, string_split(line, ' ') as part from lines(getvariable('file')))",
)


@pytest.fixture
def dump(tmp_path, monkeypatch):
    """Write a dump of rows (url, last fetch, last change), in days."""
    monkeypatch.setattr(formats, "FORMATS", (DUMPS, *formats.FORMATS))

    def seconds(day):
        return None if day is None else START + round(day * DAY)

    def dump(number, rows):
        lines = (f"dump {url} {seconds(a)} {seconds(b)}\n" for url, a, b in rows)
        return write(tmp_path / f"{number}.txt", "".join(lines))

    return dump


@pytest.mark.parametrize(
    ("dumps", "wanted"),
    [
        # one: no change since the last one, and no interval
        *(([(10, c)], [(c or 10, 10, False)]) for c in (4, 10, None)),
        # several: whether there is a change between their fetches, and no more
        ([(10, 4), (15, 4)], [(4, 10, False), (10, 15, False)]),
        ([(10, 4), (15, 10)], [(4, 10, False), (10, 15, False)]),
        ([(10, 4), (15, 12)], [(4, 10, False), (10, 15, True)]),
        ([(10, 4), (15, 15)], [(4, 10, False), (10, 15, True)]),
        # dated by a clock that is late: within a second after the fetch, and beyond
        ([(10, 4), (15, 10 + 0.5 / DAY)], [(4, 10, False), (10, 15, False)]),
        ([(10, 10.5), (15, 10.5)], [(10, 10, False), (10, 15, False)]),
        ([(10, 4), (10, 4)], [(4, 10, False)]),  # no fetch between them
        # in any order
        ([(20, 12), (10, 4), (15, 12)],
         [(4, 10, False), (10, 15, True), (15, 20, False)]),
    ],
)  # fmt: skip
def test_dumps_of_states(dump, dumps, wanted):
    paths = [dump(k, [("a", *each)]) for k, each in enumerate(dumps)]
    with reading.gathered([*paths, dump("other", [("b", 3, 1)])]) as (connection, *_):
        query = "select url, start, t, changed from crawl order by all"
        crawls = connection.execute(query).fetchall()
    found = [(u, *((t / 1e6 - START) / DAY for t in ts), bit) for u, *ts, bit in crawls]
    assert found == [*(("a", *row) for row in wanted), ("b", 1, 3, False)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", every(3, range(3)))
def test_dumps_with_a_state_give_what_all_dumps_give(tmp_path, dump, seed):
    rng = np.random.default_rng(seed)
    dumps, state = [], [(0, 0)] * 9
    for now in range(1, 6):
        for page, (fetched, changed) in enumerate(state):
            if rng.random() < 0.6:  # fetched since the dump before
                fetched = int(rng.integers(100 * now, 100 * now + 99))
                if rng.random() < 0.5 or not changed:
                    changed = int(rng.integers(state[page][0] + 1, fetched + 1))
            state[page] = fetched, changed
        rows = [(f"u{k}", a / 24, b / 24) for k, (a, b) in enumerate(state) if a]
        dumps.append(dump(now, rows))
    whole = kept(tmp_path, [dumps])
    assert any(bit for page in whole.values() for _, bit, *_ in page["groups"])
    for cut in range(1, 5):
        assert kept(tmp_path, [dumps[:cut], dumps[cut:]]) == whole


def test_no_rate_is_taken_of_one_dump(tmp_path, dump):
    """Its time without a change begins with one, without which rates are too low."""
    pages = [(f"u{k}", 300, 300 - days) for k, days in enumerate((0, 1, 10, 299))]
    estimate([dump("one", pages)], tmp_path / "rates.parquet")
    rates = pq.read_table(tmp_path / "rates.parquet")["change_rate"].to_numpy()
    assert (rates == rates[0]).all(), "that of the prior"
    convert(tmp_path / "one.txt", tmp_path / "log.parquet")
    estimate(tmp_path / "log.parquet", tmp_path / "again.parquet")
    again = pq.read_table(tmp_path / "again.parquet")["change_rate"].to_numpy()
    assert (again == rates[0]).all()


def test_rates_of_pages_that_are_dumped_more_rarely_than_fetched(tmp_path, dump):
    # 100 pages, fetched each day for 70 days, dumped each fourth day
    rng = np.random.default_rng(1)
    pages = [np.sort(rng.uniform(0, 70, rng.poisson(0.3 * 70))) for _ in range(100)]
    # a change is dated by the fetch that finds it, at the end of its day
    dumps = [
        dump(day, [
            (f"u{k}", day, max(np.ceil(changes[changes <= day]), default=1))
            for k, changes in enumerate(pages)
        ])
        for day in range(4, 71, 4)
    ]  # fmt: skip
    told = estimate(dumps, tmp_path / "rates.parquet")
    assert told.pace == 0, "what is fetched between dumps is unknown"
    found = pq.read_table(tmp_path / "rates.parquet")
    assert np.mean(found["change_rate"]) == pytest.approx(0.3, rel=0.1)
    low, high = np.array(found["low"]), np.array(found["high"])
    assert np.mean((low <= 0.3) & (high >= 0.3)) > 0.9


SPANS = ("url", "start", "time", "changed", "last_modified")


def intervals(*rows):
    """Rows of `SPANS` whose times are given in days."""
    return [
        (url, *("" if d is None else START + d * DAY for d in (start, end)), bit,
         "" if modified is None else START + modified * DAY)
        for url, start, end, bit, modified in rows
    ]  # fmt: skip


def test_rows_with_a_start(tmp_path):
    rows = intervals(
        ("a", 1, 3, 0, None),  # the first row too is an interval
        ("a", 3, 4, 1, 3.5),
        ("a", 6, 9, 1, None),  # nothing is known of days 4 to 6
        ("a", None, 10, 0, None),  # from the crawl before
        ("b", None, 1, 0, None),
    )
    path = write(tmp_path / "log.csv", table(rows, SPANS))
    wanted = [(3, 2, 0, None), (4, 1, 1, 0.5), (9, 3, 1, None), (10, 1, 0, None)]
    assert read(path)[0] == {"a": wanted, "b": []}
    with reading.opened(path) as log:
        batch = log.sample(2)
    assert sorted(batch.crawled.tolist()) == [False, False, False, True]
    assert batch.bits.interval.tolist() == [1.0]


@pytest.mark.slow
def test_intervals_through_a_state(tmp_path):
    rows = intervals(("a", 1, 3, 0, None), ("a", 3, 4, 1, 3.5), ("a", 6, 9, 1, 8))
    wanted = [(0.5, True, True, 1), (1.0, True, True, 1), (2.0, False, False, 1)]
    for parts in ([rows], [rows[:1], rows[1:]], [rows[:2], rows[1:]]):
        assert kept(tmp_path, parts, SPANS)["a"]["groups"] == wanted
