"""What is wrong in a file of a log is left out and told, never read as it stands."""

import gzip
import json
import tracemalloc
import zlib

import pytest

import recrawl
from recrawl.log import reading
from tests.recrawl.crawl_logs import START, recorded, table, write

LOST = "end of a truncated or damaged file"
OPEN = "with a quote that is never closed"
TOO_LONG = "of more than 2,000,000 bytes"
ROWS = [(f"http://h/{k % 4}", START + 86_400 * (k // 4), k % 7 == 0) for k in range(40)]
TEXT = table(ROWS)
ROW = "http://h/0,2020-03-01,1\n"
PARTS = [TEXT[:500], TEXT[500:900], TEXT[900:]]  # cut inside of lines


def crawls(path):
    """Rows that are used, the counts of all others, and the warnings."""

    def read():
        with reading.opened(path) as log:
            query = "select url, t // 1000000, changed from sorted join page using (i)"
            rows = log.connection.execute(query).fetchall()
            return sorted(rows), dict(log.tally.counts)

    (rows, counts), told = recorded(read)
    counts.pop("rows")
    return rows, counts, " ".join(told)


def members(*parts):
    """Texts as the members of one gzip file, and the byte at which each begins."""
    packed = [gzip.compress(part.encode(), mtime=0) for part in parts]
    starts = [len(b"".join(packed[:k])) for k in range(len(packed))]
    return b"".join(packed), starts


def flipped(data, place):
    """The bytes with one bit changed."""
    return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]


def whole_lines(text):
    """Rows of the whole lines of the beginning of the table."""
    return sorted(ROWS[: max(text.count("\n") - 1, 0)])


def put(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["log.csv.gz", "log.csv"])
@pytest.mark.parametrize("end", [b"", b"\0" * 700, b"and more"])
def test_all_members_are_read_and_what_follows_is_counted(tmp_path, name, end):
    data, _ = members("", *PARTS, "")
    rows, counts, told = crawls(put(tmp_path / name, data + end))
    assert (rows, counts) == (sorted(ROWS), {LOST: 1} if end else {})
    place = f"behind line 41: no sound gzip member at byte {len(data):,}"
    assert not end or place in told


@pytest.mark.parametrize("place", [-6, -2, -20])  # checksum, length, content
def test_no_row_of_a_damaged_member_is_used(tmp_path, place):
    data, starts = members(*PARTS)
    data = flipped(data, starts[2] + place)  # in the second of three
    rows, counts, told = crawls(put(tmp_path / "log.csv.gz", data))
    assert rows == whole_lines(PARTS[0])
    assert counts == {LOST: 1}
    n = PARTS[0].count("\n")
    where = f"(log.csv.gz, behind line {n}: no sound gzip member at byte {starts[1]:,}"
    assert where in told


@pytest.mark.parametrize("missing", [4, 8, 9, 40])
def test_a_cut_member_gives_its_whole_lines(tmp_path, missing):
    data, starts = members(*PARTS)
    data = data[:-missing]
    last = zlib.decompressobj(31).decompress(data[starts[2] :]).decode()
    rows, counts, told = crawls(put(tmp_path / "log.csv.gz", data))
    assert rows == whole_lines(PARTS[0] + PARTS[1] + last)
    assert counts == {LOST: 1}
    assert "the file ends inside of a gzip member" in told


def test_a_quote_that_is_never_closed_loses_its_own_line(tmp_path):
    lines = TEXT.splitlines(keepends=True)
    good = '"http://h/0",2020-01-01,1\n'
    for bad in ('"\n', 'x","x\n', good, 'a,"2020-01-01,1\n', '"http://h/9,1,0\n'):
        lines.insert(7, bad)
        lines.insert(7, good)
    rows, counts, told = crawls(write(tmp_path / "log.csv", "".join(lines)))
    assert set(ROWS) <= set(rows)
    assert counts[OPEN] == 4
    assert "log.csv line 9: " in told


def test_a_value_of_several_lines_stays(tmp_path):
    rows = [(f'a\nb,{k}\n\nc"d', *row[1:]) for k, row in enumerate(ROWS)]
    bad = '"http://h/9,1,0\n'
    text = table(rows[:20]) + bad + table(rows[20:]).partition("\n")[2]
    found, counts, _ = crawls(write(tmp_path / "log.csv", text))
    assert found == sorted(rows)
    assert counts == {OPEN: 1}


def test_a_line_that_is_no_utf8_is_counted(tmp_path):
    line = "x {}000000 http://h/{} text/html 200 D{}\n"
    lines = [line.format(20260101 + k, k % 2, k).encode() for k in range(9)]
    bad = b"x 20260301000000 http://h/\xe9 text/html 200 K\n"
    text = b" CDX N b a m s k\n" + b"".join([*lines[:4], bad, *lines[4:]])
    for path in (tmp_path / "log.cdx", tmp_path / "log.cdx.gz"):
        rows, counts, told = crawls(write(path, text))
        assert len(rows) == 9
        assert counts == {"that are not in UTF-8": 1}
        assert f"{path.name} line 6: x 20260301" in told


@pytest.mark.parametrize(
    ("end", "size"), [("\n", 5_000_000), ("\r\n", 101_000_000), ("", 5_000_000)]
)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_line_that_is_too_long_loses_itself_alone(tmp_path, end, packed, size):
    lines = TEXT.splitlines()
    place = len(lines) if not end else 7
    lines.insert(place, f'"{"x" * size}",2020-01-01,1')
    path = write(tmp_path / f"log.csv{packed}", (end or "\n").join(lines) + end)
    rows, counts, told = crawls(path)
    assert (rows, counts) == (sorted(ROWS), {TOO_LONG: 1})
    assert f"line {place + 1}: " in told


def test_memory_is_bounded_where_lines_are_long(tmp_path):
    """A line of JSON that is one long text."""
    tracemalloc.start()
    sizes = 30_000_000, 1_900_000
    long = [json.dumps({"url": "x" * n, "time": START}) for n in sizes]
    short = [json.dumps({"url": "a", "time": START + k, "etag": "x"}) for k in range(3)]
    path = write(tmp_path / "log.jsonl", "\n".join([*short[:2], *long, short[2]]))
    del long
    tracemalloc.reset_peak()
    rows, counts, _ = crawls(path)
    assert counts[TOO_LONG] == 1
    assert [url for url, *_ in rows].count("a") == 3
    assert tracemalloc.get_traced_memory()[1] < 25_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("content", ["\n" * 200_000, 'x""\n' * 2_000])
def test_a_value_that_has_no_end_is_refused_with_its_line(tmp_path, content):
    content = f'"http://h/{content}'
    rule = "a value in quotes must end within 1,000 lines"
    text = gzip.compress(f"{TEXT}{content}\n{ROW}".encode(), compresslevel=1)
    (tmp_path / "log.csv.gz").write_bytes(text)
    with pytest.raises(ValueError, match=f"log.csv.gz line 42: {rule}"):
        recrawl.convert(tmp_path / "log.csv.gz", tmp_path / "out.csv")


def test_a_name_of_a_column_that_is_no_utf8_hinders_no_other(tmp_path):
    text = b"url,time,changed,gr\xf6\xdfe\na,2020-01-01,0,7\na,2020-01-02,1,\xe9\n"
    rows, counts, _ = crawls(put(tmp_path / "log.csv", text))
    assert (len(rows), counts) == (1, {"that are not in UTF-8": 1})


@pytest.mark.parametrize("row", ["x\n", "a,b,c,d\n", "x,y\r\n"])
def test_rows_that_do_not_fit_are_counted_in_bounded_memory(tmp_path, row):
    """DuckDB lists them in memory that it does not count: more are counted only."""
    several = '"a\nb",2020-01-01,1\n'
    text = (TEXT + several + row * 60_000 + ROW).encode() + b"\xe9,2020-01-01,0\n"
    rows, counts, told = crawls(write(tmp_path / "log.csv", text))
    assert len(rows) == len(ROWS) + 2
    assert "(log.csv)" in told  # without the lines
    counts = [counts.pop("that do not fit the columns"), counts]
    assert counts == [60_000, {"that are not in UTF-8": 1}]


def test_values_of_several_lines_are_no_rows_that_do_not_fit(tmp_path):
    text = TEXT + "".join(f'"a\n{k}",2020-01-01,1\n' for k in range(51_000))
    rows, counts, _ = crawls(write(tmp_path / "log.csv", text))
    assert (len(rows), counts) == (len(ROWS) + 51_000, {})


def test_deep_json_is_counted_wherever_it_stands(tmp_path):
    good = [json.dumps({"url": "a", "time": START + k, "etag": "x"}) for k in (0, 9)]
    deep = ["[" * 200_000, f'{{"url":{"[" * 5000}{"]" * 5000},"time":1}}']
    lines = [deep[0], good[0], *deep, good[1]]
    rows, counts, _ = crawls(write(tmp_path / "log.jsonl", "\n".join(lines)))
    assert rows == [("a", START, False), ("a", START + 9, False)]
    assert counts == {"that are no JSON": 2, "without a url": 1}
