"""The Bing data set: small sets written in its format, malformed lines, the cache, samples, and the parser against Python's float."""

import os
import re

import numpy as np
import pytest

from paperlib.processes import History
from paperlib.repro import bing as _bing
from paperlib.repro import traces

FILES = {
    _bing.URLS: "https://a.example/x\t5\t1\nhttps://a.example/y\t7\t1\nhttps://b.example/z\t3\t20\nhttps://b.example/e\t11\t20\n",
    _bing.HOSTS: "a.example\t1\t1\nb.example\t20\t0\n",
    _bing.IMPORTANCE: "5\t12\n7\t0.5\n3\t7e-1\n11\t0\n",
    _bing.HISTORY: (
        "5\t5.5143055555555556\t[[1.10396990740741, 0], [1.47311342592593, 1]]\n"
        "11\t0\t[]\n"
        "3\t0.25\t[[1,1],[2.5,0],[1.1574e-05,1]]\r\n"
        "7\t1e1\t[ [ 0.5 , 1 ] , [3, 0] ]\n"
    ),
    _bing.RATES: "3\t0.125\n",
}
INTERVALS = {
    5: [1.10396990740741, 1.47311342592593],
    11: [],
    3: [1, 2.5, 1.1574e-05],
    7: [0.5, 3],
}
CHANGED = {5: [0, 1], 11: [], 3: [1, 0, 1], 7: [1, 0]}
GOOD = FILES[_bing.HISTORY].splitlines(keepends=True)


@pytest.fixture
def write(tmp_path):
    def write(**changes):
        """The small set with some files changed; None leaves one out."""
        for name, text in (
            FILES | {getattr(_bing, key): text for key, text in changes.items()}
        ).items():
            if text is None:
                (tmp_path / name).unlink(missing_ok=True)
            else:
                (tmp_path / name).write_bytes(text.encode())
        return tmp_path

    return write


def _bing_of(folder, **options):
    return traces.bing(folder, progress=False, **options)


def _by_url(log):
    pages = zip(
        log.url.tolist(), log.history.offsets[:-1], log.history.offsets[1:], strict=True
    )
    return {
        url: (log.history.interval[a:b].tolist(), log.history.changed[a:b].tolist())
        for url, a, b in pages
    }


def _big(folder, n_urls=500, seed=1):
    """A set with random histories, ids in no order."""
    rng = np.random.default_rng(seed)
    ids, hosts = rng.permutation(10 * n_urls)[:n_urls], rng.permutation(40)
    rows = [
        [
            (float(w), int(b))
            for w, b in zip(rng.exponential(size=k), rng.random(k) < 0.3, strict=True)
        ]
        for k in rng.integers(0, 30, n_urls)
    ]
    weight = rng.integers(1, 10**9, n_urls) / 2**10
    (folder / _bing.HISTORY).write_text(
        "".join(
            f"{i}\t0.5\t{[list(pair) for pair in row]}\n"
            for i, row in zip(ids, rows, strict=True)
        )
    )
    for name, order, line in (
        (
            _bing.URLS,
            rng.permutation(n_urls),
            lambda k: f"u\t{ids[k]}\t{hosts[k % 40]}\n",
        ),
        (
            _bing.IMPORTANCE,
            rng.permutation(n_urls),
            lambda k: f"{ids[k]}\t{weight[k]}\n",
        ),
        (_bing.HOSTS, range(40), lambda k: f"h\t{hosts[k]}\t{k % 2}\n"),
        (_bing.RATES, range(0, n_urls, 25), lambda k: f"{ids[k]}\t{k / 8}\n"),
    ):
        (folder / name).write_text("".join(map(line, order)))
    return ids, rows, weight, hosts


def test_exact_values(write):
    log = _bing_of(write())
    assert log.url.tolist() == [5, 11, 3, 7]
    assert log.importance.tolist() == [12, 0, 0.7, 0.5]
    assert log.host.tolist() == [1, 20, 20, 1]
    assert log.constrained.tolist() == [True, False, False, True]
    assert np.array_equal(
        log.known_rate, [np.nan, np.nan, 0.125, np.nan], equal_nan=True
    )
    assert log.history.n_crawls.tolist() == [2, 0, 3, 2]
    assert _by_url(log) == {url: (INTERVALS[url], CHANGED[url]) for url in INTERVALS}
    assert (log.constrained.dtype, log.history.changed.dtype) == (bool, bool)
    assert np.isnan(_bing_of(write(RATES=None)).known_rate).all()
    assert np.isnan(_bing_of(write(RATES="")).known_rate).all()


def test_order_of_lines_does_not_matter(write):
    log = _bing_of(
        write(
            **{
                key: "".join(
                    sorted(FILES[getattr(_bing, key)].splitlines(keepends=True))
                )
                for key in ("URLS", "IMPORTANCE")
            }
        )
    )
    other = _bing_of(
        write(HISTORY="".join(GOOD[::-1]), HOSTS="b.example\t20\t0\na.example\t1\t1\n")
    )
    assert _by_url(log) == _by_url(other)
    assert other.url.tolist() == log.url.tolist()[::-1]
    assert other.importance.tolist() == log.importance.tolist()[::-1]


@pytest.mark.parametrize("block", [64, 1000, 1 << 23])
def test_any_block_size(tmp_path, monkeypatch, block):
    monkeypatch.setattr(_bing, "_BATCH", 10)
    monkeypatch.setattr(_bing, "_BLOCK", block)
    monkeypatch.setattr(_bing, "_GROUP_URLS", 64)
    ids, rows, weight, hosts = _big(tmp_path)
    log = _bing_of(tmp_path)
    assert log.url.tolist() == ids.tolist()
    assert log.importance.tolist() == weight.tolist()
    assert log.host.tolist() == [hosts[k % 40] for k in range(500)]
    assert log.constrained.tolist() == [k % 2 == 1 for k in range(500)]
    assert log.known_rate[::25].tolist() == [k / 8 for k in range(0, 500, 25)]
    assert np.isnan(log.known_rate).sum() == 480
    found = _by_url(log)
    assert [found[i][1] for i in ids] == [[b == 1 for _, b in row] for row in rows]
    for i, row in zip(ids, rows, strict=True):
        assert found[i][0] == pytest.approx([w for w, _ in row], rel=2.3e-16)


# malformed lines: file, line, its reason, where it stands

LAST = len(GOOD)


@pytest.mark.parametrize(
    ("key", "line", "reason"),
    [
        ("HISTORY", "9\t1.0\n", "wrong number of columns"),
        ("HISTORY", "9\n", "wrong number of columns"),
        ("HISTORY", "9\t1.0\t[[1.0, 0]]\t3\n", "wrong number of columns"),
        ("HISTORY", "9\t1.0\t[[1.0, 0], [2.0, 1]\n", "cut off"),
        ("HISTORY", "9\t1.0\t[[1.0, 0], [2.0\n", "cut off"),
        ("HISTORY", "9\t1.0\t[[1.0, \n", "cut off"),
        ("HISTORY", "nine\t1.0\t[[1.0, 0]]\n", "cannot be read"),
        ("HISTORY", "9.5\t1.0\t[[1.0, 0]]\n", "cannot be read"),
        ("HISTORY", "9\tx\t[[1.0, 0]]\n", "cannot be read"),
        ("HISTORY", "9\t1\t[[1.0.0, 0]]\n", "cannot be read"),
        ("HISTORY", "9\t1\t[[1e, 0]]\n", "cannot be read"),
        ("HISTORY", "9\t1\t[[nan, 0]]\n", "cannot be read"),
        ("HISTORY", "9\t1\t[[1.0, 0],]\n", "cannot be read"),
        ("HISTORY", "9\t1\t[[1.0, 0]] x\n", "cannot be read"),
        ("HISTORY", "9\t1\t[[1.0, 2]]\n", "not 0 or 1"),
        ("HISTORY", "9\t1\t[[1.0, 10]]\n", "not 0 or 1"),
        ("HISTORY", "9\t1\t[[1.0, True]]\n", "not 0 or 1"),
        ("HISTORY", "9\t1\t[[1.0, 0], [-0.5, 1]]\n", "not positive and finite"),
        ("HISTORY", "9\t1\t[[0, 0]]\n", "not positive and finite"),
        ("HISTORY", "9\t1\t[[0.0, 0]]\n", "not positive and finite"),
        ("HISTORY", "3\t1\t[[1, 0], [1e400, 0]]\n", "not positive and finite"),
        ("HISTORY", "5\t9\t[[9.0, 1]]\n", "an earlier line has"),
        ("HISTORY", "9\t1\t[[1.0, 0]]\n", "without host"),
        ("HISTORY", "\n", "blank"),
        ("HISTORY", "  \r\n", "blank"),
        ("IMPORTANCE", "9\t-1\n", "negative or not finite"),
        ("IMPORTANCE", "9\t1e999\n", "negative or not finite"),
        ("IMPORTANCE", "9\tinf\n", "cannot be read"),
        ("IMPORTANCE", "5\t99\n", "an earlier line has"),
        ("IMPORTANCE", "9\n", "wrong number of columns"),
        ("IMPORTANCE", "9\t1\t1\n", "wrong number of columns"),
        ("URLS", "https://c.example\t5\t20\n", "an earlier line has"),
        ("URLS", "https://c.example\t5\n", "wrong number of columns"),
        ("URLS", "https://c.example\n", "wrong number of columns"),
        ("URLS", "https://c.example\tx\t1\n", "cannot be read"),
        ("URLS", "https://c.example\t9999999999999999999\t1\n", "cannot be read"),
        ("HOSTS", "c.example\t2\t3\n", "not 0 or 1"),
        ("HOSTS", "c.example\t1\t0\n", "an earlier line has"),
        ("RATES", "3\t0.5\n", "an earlier line has"),
        ("RATES", "5\t-0.5\n", "negative or not finite"),
    ],
)
def test_malformed_line(write, key, line, reason):
    name = getattr(_bing, key)
    lines = FILES[name].splitlines(keepends=True)
    folder = write(
        **{
            key: "".join(
                [lines[0], *lines[1:], line, "" if line.strip() else lines[-1]]
            )
        }
    )
    with pytest.warns(traces.MalformedLinesWarning) as caught:
        log = _bing_of(folder)
    message = str(caught[0].message)
    assert re.search(
        rf"{re.escape(name)}: [^:]*{reason}[^:]*: 1 \(line {len(lines) + 1}\)", message
    ), message
    counts = caught[0].message.counts
    if line.strip():
        assert sum(counts[name].values()) == 1
        assert set(counts) == {name}
    assert caught[0].filename.endswith("test_bing.py")
    # nothing good is lost, the first of two is kept
    assert log.importance.tolist() == [12, 0, 0.7, 0.5]
    assert log.host.tolist() == [1, 20, 20, 1]
    assert log.constrained.tolist() == [True, False, False, True]
    assert np.array_equal(
        log.known_rate, [np.nan, np.nan, 0.125, np.nan], equal_nan=True
    )
    assert _by_url(log) == {url: (INTERVALS[url], CHANGED[url]) for url in INTERVALS}


@pytest.mark.parametrize(
    ("changes", "reason", "lost"),
    [
        ({"IMPORTANCE": "5\t12\n3\t1\n11\t0\n"}, "a URL without importance", 7),
        ({"IMPORTANCE": "5\t12\n3\tx\n7\t1\n11\t0\n"}, "a URL without importance", 3),
        ({"URLS": "a\t5\t1\nb\t3\t20\nc\t11\t20\n"}, "a URL without host", 7),
        (
            {"URLS": "a\t5\t1\nb\t3\t20\nc\t11\t20\nd\t7\t2\n"},
            "a URL of an unknown host",
            7,
        ),
    ],
)
def test_url_that_misses_something(write, changes, reason, lost):
    with pytest.warns(traces.MalformedLinesWarning) as caught:
        log = _bing_of(write(**changes))
    assert caught[0].message.counts[_bing.HISTORY] == {reason: 1}
    assert _by_url(log) == {
        url: (INTERVALS[url], CHANGED[url]) for url in INTERVALS if url != lost
    }


@pytest.mark.parametrize("cut", range(1, len(GOOD[-1])))
def test_truncated_last_line(write, cut):
    text = FILES[_bing.HISTORY]
    folder = write(HISTORY=text[:-cut])
    if cut == 1:  # the line break alone
        assert _bing_of(folder).url.size == 4
        return
    with pytest.warns(traces.MalformedLinesWarning, match=r"cut off: 1 \(line 4\)"):
        assert _by_url(_bing_of(folder)) == {
            url: (INTERVALS[url], CHANGED[url]) for url in (5, 11, 3)
        }


def test_crlf_and_blank_lines_at_the_end(write):
    keys = ("URLS", "HOSTS", "IMPORTANCE", "HISTORY", "RATES")
    folder = write(
        **{
            key: FILES[getattr(_bing, key)].replace("\r", "").replace("\n", "\r\n")
            + "\r\n \n\n"
            for key in keys
        }
    )
    assert _by_url(_bing_of(folder)) == {
        url: (INTERVALS[url], CHANGED[url]) for url in INTERVALS
    }


def test_many_malformed_lines_are_counted(write, monkeypatch):
    monkeypatch.setattr(_bing, "_BLOCK", 64)
    text = "".join(f"{line}x\n\n" for line in GOOD[:1] * 2000) + "".join(GOOD)
    with pytest.warns(
        traces.MalformedLinesWarning, match=r"blank: 2,000 \(line 3, 6, 9, \.\.\.\)"
    ) as caught:
        log = _bing_of(write(HISTORY=text))
    assert len(caught) == 1
    assert (
        list(caught[0].message.counts[_bing.HISTORY].values()) == [2000] * 3
    )  # x, blank, and the repeated ones
    assert log.url.tolist() == [5, 11, 3, 7]


# errors


def test_missing_files(write, tmp_path):
    with pytest.raises(
        FileNotFoundError,
        match=rf"microsoft/Optimal-Freshness.*{re.escape(str(tmp_path / 'no'))}: {_bing.URLS}, {_bing.HOSTS}",
    ):
        _bing_of(tmp_path / "no")
    with pytest.raises(FileNotFoundError, match=rf"missing in .*: {_bing.IMPORTANCE}$"):
        _bing_of(write(IMPORTANCE=None))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("HISTORY", ""),
        ("HISTORY", "5\t1\t[[\n"),
        ("HISTORY", "5\t1\t[]\n"),
        ("URLS", "x\n"),
        ("IMPORTANCE", ""),
        ("HOSTS", "\n\n"),
    ],
)
def test_nothing_good(write, key, text):
    folder = write(**{key: text})
    with pytest.raises(ValueError, match="must hold at least one"):
        _bing_of(folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


def test_endless_line(write, monkeypatch):
    monkeypatch.setattr(_bing, "_BLOCK", 64)
    monkeypatch.setattr(_bing, "_LONGEST", 256)
    with pytest.raises(ValueError, match="lines of less than 256 bytes"):
        _bing_of(write(HISTORY="5" * 1000))


# the cache


def _untouchable(monkeypatch):
    monkeypatch.setattr(
        _bing,
        "_convert",
        lambda *arguments: pytest.fail("the text files were read again"),
    )


def test_cache_is_reused_and_rebuilt(write, monkeypatch):
    folder = write()
    first = _bing_of(folder)
    with monkeypatch.context() as patch:
        _untouchable(patch)
        again = _bing_of(folder)
    assert _by_url(again) == _by_url(first)
    for name in ("url", "importance", "host", "constrained", "known_rate"):
        assert np.array_equal(
            getattr(again, name), getattr(first, name), equal_nan=True
        )
    # same size, another time
    (folder / _bing.IMPORTANCE).write_text(FILES[_bing.IMPORTANCE].replace("12", "13"))
    os.utime(folder / _bing.IMPORTANCE, ns=(1, 1))
    assert _bing_of(folder).importance[0] == 13
    assert np.isnan(_bing_of(write(RATES=None)).known_rate).all()
    monkeypatch.setattr(_bing, "_VERSION", -1)
    with monkeypatch.context() as patch:
        patch.setattr(_bing, "_convert", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            _bing_of(folder)


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-9], lambda b: b"", lambda b: b"x" * 100]
)
def test_damaged_cache_is_rebuilt(write, damage):
    folder = write()
    first = _bing_of(folder)
    (folder / _bing.CACHE).write_bytes(damage((folder / _bing.CACHE).read_bytes()))
    assert _by_url(_bing_of(folder)) == _by_url(first)


def test_interruption_leaves_no_half_cache(write, monkeypatch):
    folder = write()
    (folder / f".{_bing.CACHE}.killed").write_bytes(b"PAR1 half")
    with monkeypatch.context() as patch:
        patch.setattr(
            _bing, "_histories", lambda block: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            _bing_of(folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*FILES, f".{_bing.CACHE}.killed"]
    )
    assert _bing_of(folder).url.size == 4


def test_warning_is_repeated_from_the_cache(write, monkeypatch):
    folder = write(HISTORY="".join(GOOD) + "5\n")
    with pytest.warns(traces.MalformedLinesWarning) as first:
        _bing_of(folder)
    _untouchable(monkeypatch)
    with pytest.warns(traces.MalformedLinesWarning) as second:
        _bing_of(folder, sample=4)
    assert str(first[0].message) == str(second[0].message)
    assert (
        first[0].message.counts
        == second[0].message.counts
        == {_bing.HISTORY: {"wrong number of columns, or cut off": 1}}
    )


def test_progress_bar(write, capsys):
    traces.bing(write())
    assert "100%" in capsys.readouterr().err


# samples, memory


def test_sample_is_part_of_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(_bing, "_BLOCK", 1000)
    monkeypatch.setattr(_bing, "_GROUP_URLS", 64)
    monkeypatch.setattr(_bing, "_BATCH", 10)
    _big(tmp_path)
    whole = _bing_of(tmp_path)
    for n in (1, 7, 200, 500):
        part = _bing_of(tmp_path, sample=n, rng=3)
        place = np.flatnonzero(np.isin(whole.url, part.url))
        assert (
            whole.url[place].tolist() == part.url.tolist()
        )  # in the order of the file, none twice
        assert place.size == n
        for name in ("importance", "host", "constrained", "known_rate"):
            assert np.array_equal(
                getattr(part, name), getattr(whole, name)[place], equal_nan=True
            )
        known = _by_url(whole)
        assert _by_url(part) == {url: known[url] for url in part.url.tolist()}
    again, other = (
        _bing_of(tmp_path, sample=200, rng=seed).url.tolist() for seed in (3, 4)
    )
    assert again == _bing_of(tmp_path, sample=200, rng=3).url.tolist() != other
    # each URL is as likely as any other: 60 draws of 250 of 500, 6 standard errors
    times = np.zeros(5000)
    rng = np.random.default_rng(1)
    for _ in range(60):
        times[_bing_of(tmp_path, sample=250, rng=rng).url] += 1
    times = times[whole.url]
    assert times.sum() == 60 * 250
    assert abs(times - 30).max() < 6 * np.sqrt(60 * 0.5 * 0.5)


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (5, "sample must be at most 4, .* got 5"),
        (0, "positive integer"),
        (1.5, "positive integer"),
    ],
)
def test_bad_sample(write, sample, message):
    with pytest.raises(ValueError, match=message):
        _bing_of(write(), sample=sample)


def test_only_row_groups_with_a_sampled_row_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(_bing, "_BLOCK", 1000)
    monkeypatch.setattr(_bing, "_GROUP_URLS", 64)
    _big(tmp_path)
    _bing_of(tmp_path)
    read, whole = [], _bing.pq.ParquetFile.iter_batches

    def iter_batches(file, *arguments, row_groups, **options):
        read.extend(row_groups)
        return whole(file, *arguments, row_groups=row_groups, **options)

    monkeypatch.setattr(_bing.pq.ParquetFile, "iter_batches", iter_batches)
    _bing_of(tmp_path, sample=1, rng=1)
    assert len(read) == 1
    read.clear()
    _bing_of(tmp_path)
    assert len(read) > 5


def test_all_histories_are_mapped_and_equal_to_plain_ones(tmp_path):
    ids, *_ = _big(tmp_path)
    mapped, plain = _bing_of(tmp_path), _bing_of(tmp_path, sample=ids.size)
    for name in ("interval", "changed"):
        a, b = getattr(mapped.history, name), getattr(plain.history, name)
        assert np.array_equal(a, b)
        bases = [a]
        while isinstance(bases[-1], np.ndarray) and bases[-1].base is not None:
            bases.append(bases[-1].base)
        assert any(
            isinstance(base, np.memmap) for base in bases
        )  # History has not copied it
        assert not isinstance(b.base, np.memmap)
    assert mapped.url.tolist() == plain.url.tolist()
    # the scratch files have no name
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*FILES, _bing.CACHE]
    )
    with pytest.raises(ValueError, match="read-only"):
        mapped.importance[0] = 1


# the parser of numbers


def _parsed(numbers):
    # a line each: what the kernel leaves to Python is a whole line
    reason, _, n_crawls, interval, changed = _bing._histories(
        "".join(f"1\t0\t[[{number}, 1]]\n" for number in numbers).encode()
    )
    assert not reason.any()
    assert (n_crawls == 1).all()
    assert changed.all()
    return interval


def test_numbers_against_float():
    rng = np.random.default_rng(1)
    exact, close = [], []
    for n in rng.integers(1, 25, 10_000):
        digits = "".join(map(str, rng.integers(0, 10, n - 1))) + str(
            rng.integers(1, 10)
        )
        point = rng.integers(0, n + 1)
        exponent = (
            rng.integers(-30, 30)
            if rng.random() < 0.2
            else rng.integers(-3, 3)
            if rng.random() < 0.2
            else None
        )
        number = f"{digits[:point]}.{digits[point:]}" if rng.random() < 0.9 else digits
        number += "" if exponent is None else f"{rng.choice(['e', 'E'])}{exponent}"
        power = (exponent or 0) - (n - point if "." in number else 0)
        (
            exact
            if (n <= 15 and abs(power) <= 22) or abs(power) > 22 or n > 19
            else close
        ).append(number)
    assert min(len(exact), len(close)) > 1000
    assert _parsed(exact).tolist() == [float(number) for number in exact]
    truth = np.array([float(number) for number in close])
    assert (abs(_parsed(close) - truth) <= np.spacing(truth)).all()


def test_numbers_of_the_data_are_exact():
    # whole seconds as days, with the 15 digits that the data have
    seconds = np.random.default_rng(2).integers(1, 10**7, 10_000)
    numbers = [f"{s / 86400:.15g}" for s in seconds]
    assert _parsed(numbers).tolist() == [float(number) for number in numbers]


@pytest.mark.parametrize(
    "number",
    [
        "1",
        "1.",
        ".5",
        "+2",
        "00012.50",
        "1e0",
        "5E-1",
        "1e+2",
        "1e-300",
        "123456789012345678901234567890",
        "4.9e-324",
    ],
)
def test_spellings(number):
    assert _parsed([number, "7"]).tolist() == [float(number), 7]


# CrawlLog


def _log(**changes):
    history = History(np.ones(3), np.ones(3, dtype=bool), np.array([0, 1, 3]))
    return traces.CrawlLog(
        **(
            {
                "url": ["a", "b"],
                "history": history,
                "importance": [1, 2],
                "host": ["h", "h"],
            }
            | changes
        )
    )


def test_crawl_log():
    log = _log(constrained=[0, 1], known_rate=[np.nan, 1])
    assert (log.constrained.dtype, log.importance.dtype, log.url.tolist()) == (
        bool,
        float,
        ["a", "b"],
    )
    assert (_log().constrained, _log().known_rate) == (None, None)
    rectangular = _log(history=History(np.ones((2, 4)), np.ones((2, 4), dtype=bool)))
    assert rectangular.history.shape == (2,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"url": ["a"]},
            r"url must have one entry per page of history, shape \(2,\), got \(1,\)",
        ),
        ({"host": [[1, 2]]}, r"host must have one entry .* got \(1, 2\)"),
        (
            {"importance": [1, -1]},
            r"importance must be non-negative and finite, got -1.0 at index \(1,\)",
        ),
        ({"importance": [1, np.nan]}, "importance must be"),
        ({"importance": [1, 2, 3]}, r"importance must have one entry .* got \(3,\)"),
        ({"constrained": [0, 2]}, "constrained must be boolean or 0/1, got 2"),
        ({"constrained": [0]}, "constrained must have one entry"),
        (
            {"known_rate": [np.nan, -1]},
            r"known_rate must be non-negative and finite, or NaN, got -1.0 at index \(1,\)",
        ),
        ({"known_rate": [np.inf, 1]}, "known_rate must be"),
        ({"known_rate": [1]}, "known_rate must have one entry"),
    ],
)
def test_bad_crawl_log(changes, message):
    with pytest.raises(ValueError, match=message):
        _log(**changes)
