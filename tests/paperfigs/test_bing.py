"""The Bing data set: small sets in its format, malformed lines, cache, samples."""

import os
import re

import numpy as np
import pytest
from tests.recrawl.thinned import every

from recrawl.science.processes import History
from paperfigs import traces

URLS = "url_urlid_hostid.txt"
HOSTS = "host_hostid_isconstrained.txt"
IMPORTANCE = "urlid_imp.txt"
HISTORY = "urlid_offset_history.txt"
RATES = "urlid_chrate_compl_obs_hist.txt"
CACHE = ["paperlib_bing.parquet", "paperlib_bing_histories.parquet"]

FILES = {
    URLS: 'https://a.example/"x\t5\t1\nhttps://a.example/y\t7\t1\n'
    "https://b.example/z\t3\t20\nhttps://b.example/e\t11\t20\n",
    HOSTS: "a.example\t1\t1\nb.example\t20\t0\n",
    IMPORTANCE: "5\t12\n7\t0.5\n3\t7e-1\n11\t0\n",
    HISTORY: (
        "5\t5.5143055555555556\t[[1.10396990740741, 0], [1.47311342592593, 1]]\n"
        "11\t0\t[]\n"
        "3\t0.25\t[[1,1],[2.5,0],[1.1574e-05,1]]\n"
        "7\t1e1\t[ [ 0.5 , 1 ] , [3, 0] ]\n"
    ),
    RATES: "3\t0.125\n",
}
INTERVALS = {
    5: [1.10396990740741, 1.47311342592593],
    11: [],
    3: [1, 2.5, 1.1574e-05],
    7: [0.5, 3],
}
CHANGED = {5: [0, 1], 11: [], 3: [1, 0, 1], 7: [1, 0]}
BY_URL = {url: (INTERVALS[url], CHANGED[url]) for url in INTERVALS}
LINES = FILES[HISTORY].splitlines(keepends=True)


@pytest.fixture
def write(tmp_path):
    def write(changes=()):
        """Write the small set with some files changed; None leaves one out."""
        for name, text in (FILES | dict(changes)).items():
            if text is None:
                (tmp_path / name).unlink(missing_ok=True)
            else:
                (tmp_path / name).write_bytes(text.encode())
        return tmp_path

    return write


def _bing(folder, **options):
    return traces.bing(folder, progress=False, **options)


def _by_url(log):
    offsets = log.history.offsets
    return {
        url: (log.history.interval[a:b].tolist(), log.history.changed[a:b].tolist())
        for url, a, b in zip(log.url.tolist(), offsets[:-1], offsets[1:], strict=True)
    }


def _good(log):
    """Whether a log holds the small set, whatever else its files held."""
    return (
        log.importance.tolist() == [12, 0, 0.7, 0.5]
        and log.host.tolist() == [1, 20, 20, 1]
        and log.constrained.tolist() == [True, False, False, True]
        and np.array_equal(
            log.known_rate, [np.nan, np.nan, 0.125, np.nan], equal_nan=True
        )
        and _by_url(log) == BY_URL
    )


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """A set with random histories, ids in no order."""
    folder, n_urls, rng = tmp_path_factory.mktemp("big"), 500, np.random.default_rng(1)
    ids, hosts = rng.permutation(10 * n_urls)[:n_urls], rng.permutation(40)
    rows = [
        [[float(w), int(rng.random() < 0.3)] for w in rng.exponential(size=k)]
        for k in rng.integers(0, 30, n_urls)
    ]
    weight = rng.integers(1, 10**9, n_urls) / 2**10

    def put(name, order, line):
        (folder / name).write_text("".join(map(line, order)))

    put(HISTORY, range(n_urls), lambda k: f"{ids[k]}\t0.5\t{rows[k]}\n")
    put(URLS, rng.permutation(n_urls), lambda k: f"u\t{ids[k]}\t{hosts[k % 40]}\n")
    put(IMPORTANCE, rng.permutation(n_urls), lambda k: f"{ids[k]}\t{weight[k]}\n")
    put(HOSTS, range(40), lambda k: f"h\t{hosts[k]}\t{k % 2}\n")
    put(RATES, range(0, n_urls, 25), lambda k: f"{ids[k]}\t{k / 8}\n")
    return folder, ids, rows, weight, hosts


def test_values_of_the_small_set(write):
    log = _bing(write())
    assert log.url.tolist() == [5, 11, 3, 7]
    assert _good(log)
    assert log.history.n_crawls.tolist() == [2, 0, 3, 2]
    assert (log.constrained.dtype, log.history.changed.dtype) == (bool, bool)


@pytest.mark.parametrize("rates", [None, ""])
def test_known_rates_may_be_missing(write, rates):
    assert np.isnan(_bing(write({RATES: rates})).known_rate).all()


def test_order_of_lines_in_other_files_does_not_matter(write):
    def mixed(name):
        return "".join(sorted(FILES[name].splitlines(keepends=True)))

    assert _good(_bing(write({URLS: mixed(URLS), IMPORTANCE: mixed(IMPORTANCE)})))


def test_log_is_in_the_order_of_the_histories(write):
    log = _bing(write({HISTORY: "".join(LINES[::-1])}))
    assert log.url.tolist() == [7, 3, 11, 5]
    assert log.importance.tolist() == [0.5, 0.7, 0, 12]
    assert _by_url(log) == BY_URL


def test_values_of_a_larger_set(big):
    folder, ids, rows, weight, hosts = big
    log = _bing(folder)
    assert log.url.tolist() == ids.tolist()
    assert log.importance.tolist() == weight.tolist()
    assert log.host.tolist() == [hosts[k % 40] for k in range(500)]
    assert log.constrained.tolist() == [k % 2 == 1 for k in range(500)]
    assert log.known_rate[::25].tolist() == [k / 8 for k in range(0, 500, 25)]
    assert np.isnan(log.known_rate).sum() == 480
    found = _by_url(log)
    for url, row in zip(ids, rows, strict=True):
        assert found[url][1] == [b == 1 for _, b in row]
        # numbers of 17 digits are read to one unit in the last place
        assert found[url][0] == pytest.approx([w for w, _ in row], rel=2.3e-16)


@pytest.mark.slow
def test_order_is_kept_over_many_row_groups(tmp_path):
    n_urls = 40_000
    ids = np.random.default_rng(1).permutation(n_urls)
    for name, line in {
        HISTORY: "{0}\t0\t[[{1}, 1]]\n",
        URLS: "u\t{0}\t1\n",
        IMPORTANCE: "{0}\t{0}\n",
        HOSTS: "h\t{0}\t1\n",
    }.items():
        text = "".join(line.format(i, k + 1) for k, i in enumerate(ids))
        (tmp_path / name).write_text(text)
    log = _bing(tmp_path)
    np.testing.assert_array_equal(log.url, ids)
    np.testing.assert_array_equal(log.importance, ids)
    np.testing.assert_array_equal(log.history.interval, np.arange(n_urls) + 1)


# malformed lines: file, line, its reason


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    every(
        6,
        [
            (HISTORY, "9\t1.0\n", "missing columns"),
            (HISTORY, "9\n", "missing columns"),
            (HISTORY, "9\t1.0\t[[1.0, 0]]\t3\n", "too many columns"),
            (HISTORY, "9\t1.0\t[[1.0, 0], [2.0, 1]\n", "cut off"),
            (HISTORY, "9\t1.0\t[[1.0, 0], [2.0\n", "cut off"),
            (HISTORY, "9\t1.0\t[[1.0, \n", "cut off"),
            (HISTORY, "nine\t1.0\t[[1.0, 0]]\n", "cast"),
            (HISTORY, "9\tx\t[[1.0, 0]]\n", "cast"),
            (HISTORY, "9\t\t[[1.0, 0]]\n", "missing or out of range"),
            (HISTORY, "9\t1\t[[1.0.0, 0]]\n", "cannot be read"),
            (HISTORY, "9\t1\t[[1e, 0]]\n", "cannot be read"),
            (HISTORY, "9\t1\t[[1.0, 0]] x\n", "cannot be read"),
            (HISTORY, "9\t1\t[[nan, 0]]\n", "not positive and finite"),
            (HISTORY, "9\t1\t[[1.0, 2]]\n", "bit not 0 or 1"),
            (HISTORY, "9\t1\t[[1.0, 10]]\n", "bit not 0 or 1"),
            (HISTORY, "9\t1\t[[1.0, 0.5]]\n", "bit not 0 or 1"),
            (HISTORY, "9\t1\t[[1.0, True]]\n", "cannot be read"),
            (HISTORY, "9\t1\t[[1.0], [2.0, 1, 0]]\n", "bit not 0 or 1"),
            (HISTORY, "9\t1\t[[null, 1]]\n", "not positive and finite"),
            (HISTORY, "9\t1\t[[1.0, 0], null]\n", "not positive and finite"),
            (HISTORY, "9\t1\t[[1.0, 0], [-0.5, 1]]\n", "not positive and finite"),
            (HISTORY, "9\t1\t[[0, 0]]\n", "not positive and finite"),
            (HISTORY, "9\t1\t[[0.0, 0]]\n", "not positive and finite"),
            (HISTORY, "9\t1\t[[1, 0], [1e400, 0]]\n", "not positive and finite"),
            (HISTORY, "5\t9\t[[9.0, 1]]\n", "an earlier line has"),
            (HISTORY, "9\t1\t[[1.0, 0]]\n", "without host"),
            (IMPORTANCE, "9\t-1\n", "out of range"),
            (IMPORTANCE, "9\tinf\n", "out of range"),
            (IMPORTANCE, "9\tx\n", "cast"),
            (IMPORTANCE, "\t1\n", "missing or out of range"),
            (IMPORTANCE, "5\t99\n", "an earlier line has"),
            (IMPORTANCE, "9\n", "missing columns"),
            (IMPORTANCE, "9\t1\t1\n", "too many columns"),
            (URLS, "https://c.example\t5\t20\n", "an earlier line has"),
            (URLS, "https://c.example\t5\n", "missing columns"),
            (URLS, "https://c.example\n", "missing columns"),
            (URLS, "https://c.example\tx\t1\n", "cast"),
            (URLS, "https://c.example\t9999999999999999999\t1\n", "cast"),
            (HOSTS, "c.example\t2\t3\n", "out of range"),
            (HOSTS, "c.example\t1\t0\n", "an earlier line has"),
            (RATES, "3\t0.5\n", "an earlier line has"),
            (RATES, "5\t-0.5\n", "out of range"),
        ],
    ),
)
def test_malformed_line_is_left_out_and_counted(write, name, line, reason):
    folder = write({name: FILES[name] + line + FILES[name][:0]})
    with pytest.warns(traces.MalformedLinesWarning) as caught:
        log = _bing(folder)
    place = rf"\((line {FILES[name].count(chr(10)) + 1}|id \w+)\)"
    pattern = rf"{re.escape(name)}: [^:]*{reason}[^:]*: 1 {place}"
    assert re.search(pattern, str(caught[0].message)), caught[0].message
    assert [
        list(reasons.values()) for reasons in caught[0].message.counts.values()
    ] == [[1]]
    assert caught[0].filename.endswith("test_bing.py")
    # nothing good is lost, the first of two is kept
    assert _good(log)


@pytest.mark.parametrize(
    ("changes", "reason", "lost"),
    [
        ({IMPORTANCE: "5\t12\n3\t1\n11\t0\n"}, "a URL without importance", 7),
        ({IMPORTANCE: "5\t12\n3\tx\n7\t1\n11\t0\n"}, "a URL without importance", 3),
        ({URLS: "a\t5\t1\nb\t3\t20\nc\t11\t20\n"}, "a URL without host", 7),
        (
            {URLS: "a\t5\t1\nb\t3\t20\nc\t11\t20\nd\t7\t2\n"},
            "a URL of an unknown host",
            7,
        ),
    ],
)
def test_incomplete_url_is_left_out_and_counted(write, changes, reason, lost):
    with pytest.warns(traces.MalformedLinesWarning) as caught:
        log = _bing(write(changes))
    assert caught[0].message.counts[HISTORY] == {reason: 1}
    assert _by_url(log) == {url: BY_URL[url] for url in BY_URL if url != lost}


@pytest.mark.parametrize("cut", every(10, range(1, len(LINES[-1]))))
def test_truncated_last_line_is_left_out(write, cut):
    folder = write({HISTORY: FILES[HISTORY][:-cut]})
    if cut == 1:  # the line break alone
        assert _good(_bing(folder))
        return
    with pytest.warns(
        traces.MalformedLinesWarning, match=r"(cut off|missing columns): 1 "
    ):
        assert _by_url(_bing(folder)) == {url: BY_URL[url] for url in (5, 11, 3)}


def test_crlf_and_blank_lines_are_no_errors(write):
    crlf = {name: text.replace("\n", "\r\n") for name, text in FILES.items()}
    assert _good(_bing(write({name: text + "\r\n" for name, text in crlf.items()})))


def test_many_malformed_lines_are_counted(write):
    text = "".join(f"{line[:-2]}\n9\n" for line in LINES[:1] * 2000)
    with pytest.warns(
        traces.MalformedLinesWarning, match=r"missing columns: 2,000 \(line 2\)"
    ) as caught:
        assert _good(_bing(write({HISTORY: text + FILES[HISTORY]})))
    assert len(caught) == 1
    assert list(caught[0].message.counts[HISTORY].values()) == [2000] * 2


# errors


def test_missing_files_are_named(write, tmp_path):
    folder = re.escape(str(tmp_path / "no"))
    with pytest.raises(
        FileNotFoundError,
        match=rf"microsoft/Optimal-Freshness.*{folder}: {URLS}, {HOSTS}",
    ):
        _bing(tmp_path / "no")
    with pytest.raises(FileNotFoundError, match=rf"missing in .*: {IMPORTANCE}$"):
        _bing(write({IMPORTANCE: None}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (HISTORY, ""),
        (HISTORY, "5\t1\t[[\n"),
        (HISTORY, "5\t1\t[]\n"),
        (URLS, "x\n"),
        (IMPORTANCE, ""),
        (HOSTS, "\n\n"),
    ],
)
def test_set_without_a_usable_crawl_is_refused(write, name, text):
    folder = write({name: text})
    with pytest.raises(ValueError, match="must hold at least one"):
        _bing(folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (5, "sample must be at most 4, .* got 5"),
        (0, "positive integer"),
        (1.5, "positive integer"),
    ],
)
def test_bad_sample_is_refused(write, sample, message):
    with pytest.raises(ValueError, match=message):
        _bing(write(), sample=sample)


def test_sample_without_a_crawl_is_refused(write):
    empty = "".join(f"{k}\t0\t[]\n" for k in (3, 7, 11)) + LINES[0]
    folder = write({HISTORY: empty})
    seed = next(s for s in range(20) if np.random.default_rng(s).choice(4) < 3)
    with pytest.raises(ValueError, match="sample must find at least one crawl"):
        _bing(folder, sample=1, rng=seed)


# the cache


def test_cache_is_reused_until_a_file_changes(write):
    folder = write()
    first = _bing(folder)
    written = (folder / CACHE[0]).stat().st_mtime_ns
    again = _bing(folder)
    assert _by_url(again) == _by_url(first)
    assert _good(again)
    assert (folder / CACHE[0]).stat().st_mtime_ns == written
    # same size, another time
    (folder / IMPORTANCE).write_text(FILES[IMPORTANCE].replace("12", "13"))
    os.utime(folder / IMPORTANCE, ns=(1, 1))
    assert _bing(folder).importance[0] == 13
    assert np.isnan(_bing(write({RATES: None})).known_rate).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", CACHE)
@pytest.mark.parametrize(
    "damage", [lambda b: b[:-9], lambda b: b"", lambda b: b"x" * 99]
)
def test_damaged_cache_is_rebuilt(write, name, damage):
    folder = write()
    _bing(folder)
    (folder / name).write_bytes(damage((folder / name).read_bytes()))
    assert _good(_bing(folder))


def test_interruption_leaves_no_half_cache(write, monkeypatch):
    folder = write()
    with monkeypatch.context() as patch:
        patch.setattr(
            os, "replace", lambda *names: (_ for _ in ()).throw(OSError(28, ""))
        )
        with pytest.raises(OSError, match="paperlib_bing"):
            _bing(folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert _good(_bing(folder))


def test_warning_is_repeated_from_the_cache(write):
    folder = write({HISTORY: FILES[HISTORY] + "5\n"})
    with pytest.warns(traces.MalformedLinesWarning) as first:
        _bing(folder)
    with pytest.warns(traces.MalformedLinesWarning) as second:
        _bing(folder, sample=4)
    assert str(first[0].message) == str(second[0].message)
    assert second[0].message.counts == {HISTORY: {"missing columns": 1}}


def test_folder_whose_name_looks_like_a_pattern(write, tmp_path):
    folder = tmp_path / "set [1]'s *"
    folder.mkdir()
    for name in write().glob("*.txt"):
        name.rename(folder / name.name)
    assert _good(_bing(folder))


# samples, memory


def test_sample_is_a_part_of_the_whole(big):
    folder = big[0]
    whole = _bing(folder)
    known = _by_url(whole)
    for n in (1, 7, 200, 500):
        part = _bing(folder, sample=n, rng=3)
        place = np.flatnonzero(np.isin(whole.url, part.url))
        # in the order of the file, none twice
        assert whole.url[place].tolist() == part.url.tolist()
        assert place.size == n
        for name in ("importance", "host", "constrained", "known_rate"):
            assert np.array_equal(
                getattr(part, name), getattr(whole, name)[place], equal_nan=True
            )
        assert _by_url(part) == {url: known[url] for url in part.url.tolist()}


def test_sample_depends_on_the_seed_alone(big):
    one, again, other = (
        _bing(big[0], sample=200, rng=seed).url.tolist() for seed in (3, 3, 4)
    )
    assert one == again != other


@pytest.mark.slow
def test_each_url_is_as_likely_in_a_sample(big):
    # 60 draws of 250 of 500: within 6 standard errors
    times, rng = np.zeros(5000), np.random.default_rng(1)
    for _ in range(60):
        times[_bing(big[0], sample=250, rng=rng).url] += 1
    times = times[big[1]]
    assert times.sum() == 60 * 250
    assert abs(times - 30).max() < 6 * np.sqrt(60 * 0.5 * 0.5)


def test_histories_are_mapped_from_files_without_a_name(write):
    folder = write()
    log = _bing(folder)
    for array in (log.history.interval, log.history.changed):
        bases = [array]
        while isinstance(bases[-1], np.ndarray) and bases[-1].base is not None:
            bases.append(bases[-1].base)
        assert any(isinstance(base, np.memmap) for base in bases), "it was copied"
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, *CACHE])


def test_numbers_of_the_data_are_exact(write):
    # whole seconds as days, with the 15 digits that the data have
    seconds = np.random.default_rng(2).integers(1, 10**7, 10_000)
    numbers = [f"{s / 86400:.15g}" for s in seconds]
    crawls = ", ".join(f"[{number}, 1]" for number in numbers)
    log = _bing(write({HISTORY: f"5\t0\t[{crawls}]\n"}))
    assert log.history.interval.tolist() == [float(number) for number in numbers]


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
            r"known_rate must be non-negative and finite, or NaN, got -1.0 at index",
        ),
        ({"known_rate": [np.inf, 1]}, "known_rate must be"),
        ({"known_rate": [1]}, "known_rate must have one entry"),
    ],
)
def test_bad_crawl_log(changes, message):
    with pytest.raises(ValueError, match=message):
        _log(**changes)
