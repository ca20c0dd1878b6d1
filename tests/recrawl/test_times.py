"""Times of a log in every form that crawlers write, and which ones are refused."""

import email.utils
import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recrawl import Source, convert, estimate
from recrawl.log import reading
from tests.recrawl.crawl_logs import parquet, recorded, table, write
from tests.recrawl.thinned import every

# The moment that most texts below are of, to the microsecond where they are.
MOMENT = datetime(2026, 10, 1, 6, 12, 8, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def read(path, texts):
    """Times (microseconds since 1970, or None), reasons, and rows as shown."""
    rows = [(f"u{k}", text, 0) for k, text in enumerate(texts)]
    # a row that can be used, for there must be one
    write(path, table([*rows, ("last", "2020-01-01", 0)]))
    with reading.gathered(path) as (connection, _, _):
        query = "select t, reason, given from crawl where url <> 'last' order by row"
        found = connection.execute(query).fetchall()
    return tuple(zip(*found, strict=True))


def since_1970(moment):
    """Microseconds since 1970 of a time with or without a zone (then UTC)."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND


# The same moment in all forms, by the fraction of a second that they can tell, but
# those that Python's parsers of mail and of ISO 8601 know: see below.
SECONDS = [
    # ISO 8601, and what is near to it
    "2026-10-01T06:12:08z", "2026-10-01t06:12:08Z", "2026-10-01T06:12:08.000000Z",
    "2026-10-01 06:12:08 UTC", "2026-10-01 06:12:08 GMT", "2026-10-01 06:12:08 +0000",
    "2026-10-01 08:12:08 +02:00", "2026-10-01 08:12:08 +0200",
    "2026-10-01T08:12:08 +0200", "20261001061208", "01.10.2026 06:12:08",
    # mail and HTTP
    "Thu, 1 Oct 2026 06:12:08 GMT", "1 Oct 2026 08:12:08 +0200",
    "01 Oct 2026 06:12:08 GMT", "Thu, 01 Oct 2026 06:12:08 UTC",
    "Thu, 01 Oct 2026 06:12:08 Z", "Thu, 01 Oct 2026 06:12:08 +0000 (UTC)",
    "Thu, 01 Oct 26 06:12:08 GMT", "Thu, 01 Oct 26 08:12:08 +0200",
    "Thursday, 01-Oct-26 06:12:08 GMT",
    # asctime, and the same with a zone
    "Thu Oct  1 06:12:08 2026", "Thu Oct 01 06:12:08 2026",
    "Thu Oct 01 06:12:08 UTC 2026", "Thu Oct 01 06:12:08 GMT 2026",
    "Thu Oct 01 02:12:08 EDT 2026", "Thu Oct 01 01:12:08 EST 2026",
    "Wed Sep 30 23:12:08 PDT 2026", "Thu Oct 01 08:12:08 CEST 2026",
    "Thu Oct 01 07:12:08 CET 2026",
    # logs of servers, and seconds since 1970
    "01/Oct/2026:06:12:08 +0000", "[01/Oct/2026:08:12:08 +0200]",
    "1790835128", "1790835128.0", "1.790835128e9", " 1790835128 ",
]  # fmt: skip
MILLISECONDS = [
    "20261001061208123", "2026-10-01T06:12:08.123Z", "2026-10-01T06:12:08,123Z",
    "2026-10-01T06:12:08,123", "2026-10-01 06:12:08,123",
    "2026-10-01 06:12:08,123 +0000", "2026-10-01T08:12:08,123+02:00",
    "2026-10-01T08:12:08,123+0200", "2026-10-01T08:12:08.123+0200",
    "2026-10-01 08:12:08.123 +0200", "2026-10-01T08:12:08.123+02",
    "20261001T061208.123Z", "20261001T061208,123Z", "20261001T081208.123+0200",
    "1790835128.123", "1790835128123",
]  # fmt: skip
MICROSECONDS = [
    "2026-10-01T06:12:08.123457001Z", "1790835128.123457", "1790835128123.457",
    "1790835128123457", "1790835128123457000",
]  # fmt: skip


# Forms in which programs show times, all of one moment.
SHOWN = [
    # RFC 9557: the offset counts
    "2026-10-01T08:12:08+02:00[Europe/Berlin]", "2026-10-01T06:12:08Z[UTC]",
    "2026-10-01T06:12:08Z[!Etc/UTC][u-ca=x]",
    # JavaScript, Kibana, browsers in several languages
    "Thu Oct 01 2026 08:12:08 GMT+0200 (Mitteleuropäische Sommerzeit)",
    "Thu Oct 01 2026 11:42:08 GMT+0530", "Oct 1, 2026 @ 06:12:08.000",
    "October 1st 2026, 06:12:08.000", "01.10.2026, 06:12:08", "2026-10-01, 06:12:08",
    "Oct 1, 2026, 6:12:08 AM", "October 1, 2026 at 8:12:08 AM UTC+2",
    # Go, date, SQL Server, names of offsets
    "2026-10-01 08:12:08 +0200 CEST", "2026-10-01 06:12:08 +0000 UTC m=+0.01",
    "Thu Oct  1 08:12:08 AM CEST 2026", "2026-10-01 08:12:08.0000000 +02:00",
    "2026-10-01 08:12:08 CEST", "2026-10-01 08:12:08 GMT+2",
    "2026-10-01 03:12:08 UTC-03:00", "2026-10-01 06:12:08 utc",
    "Oct 1, 2026, 6:12:08\u202fAM", "1\u00a0Oct 2026 06:12:08",
    "1 October 2026 06:12:08", "1. October 2026 06:12:08",
    "01/Oct/2026:06:12:08",
    "1790835128,000",
    "1.790835128E+09", "1790835.128E3",
]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "fraction"),
    [(SECONDS, 0), (MILLISECONDS, 123_000), (MICROSECONDS, 123_457), (SHOWN, 0)],
    ids=["seconds", "milliseconds", "microseconds", "shown"],
)
def test_one_moment_in_all_forms(tmp_path, texts, fraction):
    times, reasons, _ = read(tmp_path / "log.csv", texts)
    wanted = since_1970(MOMENT) + fraction
    assert dict(zip(texts, times, strict=True)) == dict.fromkeys(texts, wanted)
    assert set(reasons) == {None}


LOST = "whose time has lost its digits, as 1.79E+12 of a spreadsheet has"


@pytest.mark.parametrize(
    "text", ["1.79E+12", "1.78554e12", "1.78554E+09", "1,78554E+12", "2.02608E+13",
             "1.79E+18", "17855424E+02", "+1.79E+12", "+1.78554E+09", ".179E+13"],
)  # fmt: skip
def test_numbers_that_lost_their_digits_are_refused(tmp_path, text):
    number = text.replace(",", ".").replace("+1", "1").replace(".179", "0.179")
    for name, content in [
        ("log.tsv", f"url\ttime\tchanged\nlast\t2020-01-01\t0\na\t{text}\t0\n"),
        ("log.jsonl", '{"url": "last", "time": "2020-01-01", "changed": 0}\n'
                      f'{{"url": "a", "importance": {float(number):.12e}, '
                      f'"changed": 0, "time": {number}}}\n'),
    ]:  # fmt: skip
        with reading.gathered(write(tmp_path / name, content)) as (connection, _, _):
            found = connection.sql(
                "select reason from crawl where url = 'a'"
            ).fetchall()
        assert found == [(LOST,)], name


@pytest.mark.parametrize("text", ["1 Sept 2026", "Tue, Sept. 1, 2026", "1-SEPT-26"])
def test_september_in_four_letters(tmp_path, text):
    times, _, _ = read(tmp_path / "log.csv", [text])
    assert times == (since_1970(datetime(2026, 9, 1)),)


@pytest.mark.parametrize("text", ["1.79E+12", "last week"])
def test_a_last_modified_that_cannot_be_read_is_counted(tmp_path, text):
    path = tmp_path / "log.csv"
    write(path, f"url,time,changed,last_modified\na,2026-01-01,0,{text}\n")
    with reading.gathered(path) as (connection, _, _):
        found = connection.sql("select t is not null, reason from crawl").fetchall()
    assert found == [(True, "whose last_modified cannot be read")]


def test_numbers_of_seven_digits_in_parquet_are_refused(tmp_path):
    """A single-precision number is off by up to two minutes, a double one is not."""
    times = [1_790_835_128.0, 1_790_835_000.0]
    for kind, reasons in ((pa.float32(), {LOST}), (pa.float64(), {None})):
        path = tmp_path / f"{kind}.parquet"
        parquet(path, url=["a", "b"], time=pa.array(times, kind), changed=[False] * 2)
        with reading.gathered(path) as (connection, _, _):
            found = connection.sql("select distinct reason from crawl").fetchall()
        assert {reason for (reason,) in found} == reasons


def moments(n):
    """Moments from 1990 to 2026, on both sides of the change of all digits."""
    rng = random.Random(3)
    first = since_1970(datetime(1990, 1, 1))
    last = since_1970(datetime(2026, 11, 1))
    return [
        datetime(1970, 1, 1, tzinfo=UTC) + rng.randrange(first, last) * MICROSECOND
        for _ in range(n)
    ]


def test_agrees_with_pythons_parser_of_mail(tmp_path):
    zones = ["GMT", "UT", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT"]
    zones += ["+0000", "-0000", "+0530", "-0330", "+1400"]
    texts = [
        moment.strftime(form) + " " + zones[k % len(zones)]
        for k, moment in enumerate(moments(300))
        for form in ("%a, %d %b %Y %H:%M:%S", "%d %b %y %H:%M:%S", "%a, %d %b %y %H:%M")
    ]
    times, _, _ = read(tmp_path / "log.csv", texts)
    wanted = [since_1970(email.utils.parsedate_to_datetime(text)) for text in texts]
    assert times == tuple(wanted)


def test_agrees_with_pythons_parser_of_iso_8601(tmp_path):
    offsets = ["", "Z", "+00", "+05:30", "-0330", "-08", "+1400"]
    forms = ["%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S,%f", "%Y-%m-%d %H:%M:%S"]
    forms += ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H", "%Y%m%dT%H%M%S", "%Y%m%dT%H%M"]
    forms += ["%Y%m%dT%H%M%S.%f", "%Y%m%dT%H%M%S,%f", "%Y%m%dT%H"]
    texts = [
        moment.strftime(form) + offsets[k % len(offsets)]
        for k, moment in enumerate(moments(100))
        for form in forms
    ]
    dates = ["%Y-%m-%d", "%Y%m%d"]
    texts += [moment.strftime(form) for moment in moments(50) for form in dates]
    times, _, _ = read(tmp_path / "log.csv", texts)
    assert times == tuple(since_1970(datetime.fromisoformat(text)) for text in texts)


@pytest.mark.parametrize(
    "text",
    every(4, [
        "", "-", "null", "nan", "infinity", "-infinity", "inf", "now", "today",
        "yesterday", "true", "0x6abc", "1e999", "12:00", "-2026-01-01",
        "01/02/2026", "13/02/2026", "1/2/2026", "01/02/26", "01/02/2026 06:12:08",
        "01-02-2026", "32.01.2026",
        "2026-13", "2026-13-01", "2026-02-30",
        "2026-W40-4", "2026W404T061208Z", "2026-123", "2026123T061208Z",
        "2026-123T06:12:08Z", "2026-10-01T25:00:00Z",
        "2026-10-01T06:12:08+2", "2026-10-01 (BC)", "2026-10-01T06:12:08Z2",
        "Thu, 32 Oct 2026 06:12:08 GMT", "Thu, 01 Oct 2026 IST",
        # places without an offset
        "2026-10-01T08:12:08[Europe/Berlin]", "2026-10-01 02:12:08 US/Eastern",
        # offsets are at most fourteen hours
        "2026-10-01T06:12:08+99:99", "2026-10-01T06:12:08+14:30",
        "20261001T061208-1500", "Thu, 01 Oct 2026 06:12:08 +9900",
        "Thu, 01 Oct 2026 06:12:08 +1500",
    ]),
)  # fmt: skip
def test_texts_that_are_no_time(tmp_path, text):
    times, reasons, given = read(tmp_path / "log.csv", [text])
    assert (times, reasons) == ((None,), ("whose time cannot be read",))
    assert given == (f"u0,{text},0,,",)


@pytest.mark.parametrize(
    ("text", "reading"),
    every(4, [
        ("0", "1970-01-01 00:00:00"), ("-5", "1969-12-31 23:59:55"),
        ("2024", "1970-01-01 00:33:44"), ("20259999", "1970-08-23 11:46:39"),
        ("20260230", "1970-08-23 11:50:30"),
        ("202610010612", "1976-06-03 00:33:30.612"),
        ("20261001250000", "2612-01-18 07:54:10"),
        ("45000", "1970-01-01 12:30:00"),  # a date of a spreadsheet
        ("9223372036854775808", "2262-04-11 23:47:16.854776"),
        ("18446744073709551615", "2554-07-21 23:34:33.709552"),
        ("0001-01-01", "0001-01-01 00:00:00"),
        ("1989-12-31T23:59:59.999999Z", "1989-12-31 23:59:59.999999"),
        ("2150-01-01", "2150-01-01 00:00:00"),
        ("9999-12-31T23:59:59Z", "9999-12-31 23:59:59"),
        ("Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01 00:00:00"),
    ]),
)  # fmt: skip
def test_times_before_the_web_or_in_the_future_are_refused(tmp_path, text, reading):
    _, reasons, given = read(tmp_path / "log.csv", [text])
    assert reasons == ("whose time is before 1990 or more than a day from now",)
    assert given == (f"u0,{text},0,, (read as {reading})",)


def test_limits_of_plausible_times(tmp_path):
    now = datetime.now(UTC)
    good = [datetime(1990, 1, 1, tzinfo=UTC), now + timedelta(hours=23)]
    bad = [datetime(1989, 12, 31, 23, 59, tzinfo=UTC), now + timedelta(hours=25)]
    texts = [moment.isoformat() for moment in good + bad]
    _, reasons, _ = read(tmp_path / "log.csv", texts)
    assert [reason is None for reason in reasons] == [True, True, False, False]


# ---------------------------------------------------------------- clocks

AHEAD = "whose time is before 1990 or more than a day from now"
HALF_HOURS = range(1200)  # from MOMENT, 25 days: a row each, of 40 pages in turn


def log_of(path, hours, rows=HALF_HOURS):
    """Write a log whose k-th row is later than it should be by `hours(k)`."""
    crawls = [
        (f"u{k % 40}", MOMENT + timedelta(hours=k / 2 + hours(k)), int(k % 7 == 0))
        for k in rows
    ]
    return write(path, table(crawls))


@pytest.mark.parametrize("command", [estimate, convert])
def test_an_hour_of_a_clock_that_is_ahead_is_left_out(tmp_path, command):
    log = log_of(tmp_path / "log.csv", lambda k: 200 * 24 * (500 <= k < 520))
    few = [k for k in HALF_HOURS if not 500 <= k < 520]
    without = log_of(tmp_path / "few.csv", lambda k: 0, few)
    source = Source(log, as_of=MOMENT + timedelta(days=25))
    found, told = recorded(command, source, tmp_path / "found.parquet")
    wanted = command(without, tmp_path / "wanted.parquet")
    assert f"20 {AHEAD} (log.csv row 501: u20,2027-04-29 16:12:08" in told[0]
    tables = [pq.read_table(tmp_path / f"{n}.parquet") for n in ("found", "wanted")]
    if command is estimate:
        assert tables[0].equals(tables[1])
        assert found.counts.pop(AHEAD) == 20
        assert found == wanted


BY_PAGE = sorted(HALF_HOURS, key=lambda k: k % 40)
BY_CRAWLER = [*range(0, 1200, 2), *range(1, 1200, 2)]  # each has pages of its own


@pytest.mark.parametrize(
    ("hours", "rows", "told"),
    [
        (lambda k: -72 * (500 <= k < 596), HALF_HOURS, "1 time, by 2.98 days at "),
        (lambda k: -5 * (k >= 500), HALF_HOURS, "1 time, by 4.5 hours at row 501: "
         "9 rows "),
        (lambda k: -72 * (k == 500), HALF_HOURS, ""),  # one row alone
        (lambda k: 0, HALF_HOURS, ""),
        (lambda k: -k, HALF_HOURS, ""),  # the newest row first
        (lambda k: k * 7919 % 600, HALF_HOURS, ""),  # in no order
        (lambda k: 0, BY_PAGE, ""),
        (lambda k: 0, BY_CRAWLER, ""),
    ],
)  # fmt: skip
def test_a_clock_that_goes_back_is_told_of(tmp_path, hours, rows, told):
    log = log_of(tmp_path / "log.csv", hours, rows)
    _, messages = recorded(convert, log, tmp_path / "log.parquet")
    assert len(messages) == bool(told)
    assert all(f"is in order of time, but goes back {told}" in m for m in messages)
