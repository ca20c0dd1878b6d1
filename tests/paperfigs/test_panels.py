"""Panels: the shipped pages, JODIE files, segments, and how the data are made."""

import gzip
import re
import runpy
import shutil

import numpy as np
import pytest

from recrawl.files import sha256, write_checked
from paperfigs import traces

HEADER = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features"


def _panel(*times, window):
    n_changes = [len(own) for own in times]
    return traces.Panel(
        time=np.concatenate(times).astype(float),
        offsets=np.append(0, np.cumsum(n_changes)),
        start=np.full(len(times), np.datetime64("NaT", "s")),
        window=np.asarray(window, float),
        importance=np.ones(len(times)),
    )


# the shipped panel


def test_the_panel_is_what_the_readme_says():
    readme = (traces.DATA / "README.md").read_text()
    for name in ("debian_panel.csv", "npm_downloads.csv"):
        assert f"| `{name}` | `{sha256(traces.DATA / name)}` |" in readme
        # nothing but numbers and times below the comments
        text = (traces.DATA / name).read_text()
        assert re.fullmatch(r"(# [^@\n]+\n)+[a-z,]+\n([\dTZ:,-]+\n)+", text)
    everything, pages = traces.panel(min_changes=1), traces.panel()
    assert (everything.n_pages, pages.n_pages) == (455, 106)
    assert f"| {everything.time.size + 455:,} |" in readme


@pytest.mark.parametrize("least", [1, 30, 100])
def test_times_lie_in_their_windows_and_few_changes_are_left_out(least):
    pages = traces.panel(min_changes=least)
    assert np.diff(pages.offsets).min() >= least
    assert pages.importance.mean() == pytest.approx(1)
    assert pages.change_rate == pytest.approx(np.diff(pages.offsets) / pages.window)
    for page in range(pages.n_pages):
        times = pages.times(page)
        assert times[0] > 0
        assert times[-1] < pages.window[page]
        assert (np.diff(times) > 0).all()
    end = pages.start + (pages.window * 86400).round().astype("timedelta64[s]")
    assert (end == np.datetime64("2023-02-12")).all()


def test_a_page_keeps_its_importance_whatever_is_left_out():
    everything, pages = traces.panel(min_changes=1), traces.panel()
    kept = np.diff(everything.offsets) >= 30
    np.testing.assert_array_equal(pages.start, everything.start[kept])
    ratio = pages.importance / everything.importance[kept]
    assert ratio == pytest.approx(np.full(106, ratio[0]))
    # as independent of the change rates as pairs at random are
    logs = np.log(everything.importance), np.log(everything.change_rate)
    assert abs(np.corrcoef(*logs)[0, 1]) < 3 / np.sqrt(455)


def test_the_times_are_those_of_the_file():
    pages = traces.panel(min_changes=1)
    lines = (traces.DATA / "debian_panel.csv").read_text().split("\n")[4:-1]
    seconds = (pages.time * 86400).round().astype("timedelta64[s]")
    n_changes = np.diff(pages.offsets)
    moments = np.repeat(pages.start, n_changes) + seconds
    rows = zip(np.repeat(np.arange(455), n_changes), moments, strict=True)
    rows = [f"{page},{moment}Z" for page, moment in rows]
    starts = [f"{page},{moment}Z" for page, moment in enumerate(pages.start)]
    assert sorted(rows + starts) == sorted(lines)


@pytest.mark.parametrize("name", ["debian_panel.csv", "npm_downloads.csv"])
def test_a_changed_file_is_not_read(tmp_path, monkeypatch, name):
    for path in traces.DATA.glob("*[ls].csv*"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(traces.panels, "DATA", tmp_path)
    assert traces.panel().n_pages == 106
    with open(tmp_path / name, "a") as file:
        file.write("1\n")
    with pytest.raises(ValueError, match=f"{name} is corrupted or truncated"):
        traces.panel()


@pytest.mark.parametrize("least", [0, 1.5, True])
def test_bad_number_of_changes(least):
    with pytest.raises(ValueError, match="min_changes must be a positive integer"):
        traces.panel(min_changes=least)


def test_no_page_has_so_many_changes():
    with pytest.raises(ValueError, match=r"min_changes must be at most .* got 10000"):
        traces.panel(min_changes=10_000)


# segments


def test_a_segment_is_read_on_after_the_end_of_the_window():
    pages = _panel([1.0, 4.0, 9.0], [2.0], window=[10.0, 3.0])
    begin = 10 * np.random.default_rng(5).random()
    assert pages.segment(0, 10.0, rng=5) + begin == pytest.approx([9.0, 11.0, 14.0])
    assert pages.segment(0, 2.5, rng=5) + begin == pytest.approx([9.0])
    # a short window repeats
    assert np.diff(pages.segment(1, 20.0, rng=5)) == pytest.approx(np.full(5, 3.0))


def test_a_segment_has_as_many_changes_as_the_rate_says():
    pages = _panel([0.5, 1.0, 7.0], window=[8.0])
    horizon, n_runs = 11.0, 4000
    rng = np.random.default_rng(1)
    segments = [pages.segment(0, horizon, rng=rng) for _ in range(n_runs)]
    for n, part in ((33 / 8, horizon), (9 / 8, 3.0)):
        counts = np.array([np.count_nonzero(times <= part) for times in segments])
        assert counts.mean() == pytest.approx(n, abs=4 * counts.std() / np.sqrt(n_runs))


@pytest.mark.parametrize("horizon", [0.0, -1.0, np.inf, np.nan, "year"])
def test_bad_horizon(horizon):
    with pytest.raises(ValueError, match="horizon must be positive and finite"):
        traces.panel().segment(0, horizon)


def test_bad_page():
    pages = _panel([1.0], [2.0, 3.0], window=[4.0, 4.0])
    assert pages.times(-1).tolist() == [2.0, 3.0]
    with pytest.raises(IndexError):
        pages.times(2)


def test_arrays_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        traces.panel().time[0] = 1.0


# JODIE files


@pytest.fixture
def edits(tmp_path):
    def edits(*lines, header=HEADER):
        path = tmp_path / "edits.csv"
        path.write_text("\n".join([header, *lines]) + "\n")
        return path

    return edits


def test_items_of_a_file(edits):
    path = edits(
        "4,11,0.0,0,0.1,0.2",  # at the start: not counted
        "4,3,8640.0,0,0.1,0.2",
        "5,11,17280,0,0.1,0.2",
        "6,11,17280.0,1,0.1,0.2",  # at the same time: one change
        "6,11,1728.0,1,0.1,0.2",  # not in order
        "9,20,0.0,0,0.1,0.2",  # no change
        "9,3,86400.0,0,0.1,0.2",
    )
    pages = traces.jodie(path, min_changes=1)
    assert pages.n_pages == 2
    assert pages.times(0) == pytest.approx([0.1, 1.0])  # item 3
    assert pages.times(1) == pytest.approx([0.02, 0.2])  # item 11
    assert pages.window.tolist() == [1.0, 1.0]
    assert pages.importance.tolist() == [1.0, 1.0]
    assert np.isnat(pages.start).all()
    with pytest.raises(ValueError, match=r"min_changes must be at most .*, 2, got 30"):
        traces.jodie(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2", "line 3 must begin with numbers of user_id,.* got '1,2"),
        ("1,a,5.0,0,1", "line 3 must begin with numbers"),
        ("1,2,soon,0,1", "line 3 must begin with numbers"),
        ("", "line 3 must begin with numbers"),
        ("1,2,-5.0,0,1", r"timestamp must be non-negative.* got -5.0 at index \(1,\)"),
        ("1,2,nan,0,1", "timestamp must be non-negative"),
    ],
)
def test_bad_line(edits, line, message):
    with pytest.raises(ValueError, match=message):
        traces.jodie(edits("1,1,5.0,0,1", line), min_changes=1)


def test_bad_file(edits, tmp_path):
    with pytest.raises(ValueError, match=r"must begin with user_id,.* got 'time"):
        traces.jodie(edits("1", header="time"))
    with pytest.raises(ValueError, match=r"min_changes must be at most .*, 0, got 30"):
        traces.jodie(edits())
    with pytest.raises(FileNotFoundError):
        traces.jodie(tmp_path / "none.csv")


# how the data are made

ENTRY = "page (1) {}; urgency=low\n\n  * Text.\n\n -- A Name <name@example.org>  {}\n\n"


@pytest.fixture
def script():
    return runpy.run_path(str(traces.DATA / "make_debian_panel.py"))


def _changelog(*entries):
    return "".join(ENTRY.format(*entry) for entry in entries)


def _read(script, *entries):
    return [f"{time:%F %T}" for time in script["read_times"](_changelog(*entries))]


def test_entries_that_change_the_page(script):
    days = {
        "UNRELEASED": "Thu, 09 Apr 2020 00:00:00 +0000",
        "bookworm-security": "Wed, 08 Apr 2020 00:00:00 +0000",
        "breezy": "Tue, 07 Apr 2020 00:00:00 +0000",
        "stable frozen unstable": "Mon, 06 Apr 2020 01:00:00 +0200",
        "experimental": "Sun, 05 Apr 2020 00:00:00 -0500",
        "unstable": "Sat, 4 Apr 2020 00:00:00 +0000",
    }
    expected = ["2020-04-04 00:00:00", "2020-04-05 05:00:00", "2020-04-05 23:00:00"]
    assert _read(script, *days.items()) == expected


def test_order_ties_and_the_end(script):
    found = _read(
        script,
        ("unstable", "Sun, 12 Feb 2023 00:00:00 +0000"),  # the end is no change
        ("unstable", "Sat, 11 Feb 2023 23:59:59 +0000"),
        ("unstable", "Wed, 01 Jan 2020 00:00:00 +0000"),
        ("experimental", "Wed, 01 Jan 2020 00:00:00 +0000"),  # the same time
        ("unstable", "Fri, 01 Jan 2021 00:00:00 +0000"),  # a branch that was merged
        ("unstable", "Wed, 01 Feb 2023 00:00:00 +0000"),  # in 2013, surely
        ("unstable", "Sat, 01 Jan 2000 00:00:00 +0000"),
    )
    expected = ["2000-01-01", "2020-01-01", "2021-01-01", "2023-02-11"]
    assert [time[:10] for time in found] == expected


def test_pages_are_sources_without_copies(script, tmp_path):
    def entry(day):
        return "unstable", f"{day:02d} Jan 2020 00:00:00 +0000"

    logs = {
        "long": _changelog(*map(entry, range(9, 1, -1))),
        "long-cut": _changelog(*map(entry, range(9, 6, -1))) + script["CUT"],
        "copy": _changelog(*map(entry, [10, 9, 8, 7])),
        "fork": _changelog(*map(entry, [12, 11, 9, 8])),
        "once": _changelog(entry(1)),
    }
    for name, log in logs.items():
        folder = tmp_path / "usr/share/doc" / name
        folder.mkdir(parents=True)
        (folder / "changelog.Debian.gz").write_bytes(gzip.compress(log.encode()))
    (tmp_path / "usr/share/doc/linked").symlink_to("long")
    packages = [("a", "long-cut=1"), ("a", "long=1"), ("a", "linked=1")]
    packages += [("b", "copy=1"), ("c", "fork=1"), ("d", "once=1"), ("e", "none=1")]
    pages = script["without_copies"](script["read_pages"](tmp_path, packages))
    assert [(page[1], page[2], len(page[0])) for page in pages] == [
        ("a", "long=1", 8),
        ("c", "fork=1", 4),
    ]


@pytest.fixture
def rebuilt(script, tmp_path, monkeypatch):
    """Rebuild a panel of one package, whose .deb file has a version."""
    monkeypatch.setitem(script["main"].__globals__, "PANEL", tmp_path / "panel.csv")
    monkeypatch.setitem(script["main"].__globals__, "PINS", tmp_path / "pins.csv")
    (tmp_path / "pins.csv").write_text("page,source,package\n0,a,liba=2:1.0-1\n")
    folder = tmp_path / "root/usr/share/doc/liba"
    folder.mkdir(parents=True)

    def rebuild(version, *days, force=False):
        (tmp_path / f"liba_{version}_amd64.deb").touch()
        log = _changelog(*(("unstable", f"{d} Jan 2020 00:00:00 +0000") for d in days))
        (folder / "changelog.Debian.gz").write_bytes(gzip.compress(log.encode()))
        script["main"](tmp_path / "root", pin=False, force=force)
        return (tmp_path / "panel.csv").read_text()

    return rebuild


def test_a_pinned_version_that_is_not_there_is_listed(rebuilt, capsys):
    first = rebuilt("2%3a1.0-2", 9, 8, force=True)
    assert "pinned version: liba=2:1.0-1" in capsys.readouterr().err
    assert rebuilt("2%3a1.0-1", 9, 8) == first
    assert not capsys.readouterr().err


def test_another_panel_is_written_by_force_only(rebuilt):
    first = rebuilt("2%3a1.0-1", 9, 8, force=True)
    with pytest.raises(SystemExit, match="sha256 of the panel is another"):
        rebuilt("2%3a1.0-1", 9, 8, 7)
    assert rebuilt("2%3a1.0-1", 9, 8) == first
    assert rebuilt("2%3a1.0-1", 9, 8, 7, force=True) != first


def test_the_pinned_packages_are_the_pages(script):
    assert len(script["pinned"]()) == traces.panel(min_changes=1).n_pages


def test_checked_files(tmp_path):
    write_checked(tmp_path / "a.txt", "text\n")
    line = (tmp_path / "a.txt.sha256").read_text()
    assert line == f"{sha256(tmp_path / 'a.txt')}  a.txt\n"
