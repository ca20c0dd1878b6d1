"""Saved figures are the same every time."""

import itertools
import json
import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb, to_rgba

from paperfigs import plotting
from paperfigs.ledger import Claims

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _style():
    with mpl.rc_context():
        plotting.use_style()
        yield
    plt.close("all")


def tiny(seed=1):
    figure, ax = plt.subplots(figsize=(2, 1.5))
    ax.plot(np.random.default_rng(seed).normal(size=5), label="noise")
    ax.scatter([1, 2], [0, 1], rasterized=True)
    ax.set(title="a title", xlabel="x")
    return figure


@pytest.fixture
def claims(checkout):
    checkout.notebook("paper/fig1_name")
    checkout.claims("paper/fig1", {"id": "one", "says": "É ≤ 1.", "at_least": 0.0})
    claims = Claims("paper/fig1", {"n": 5, "output_dir": "x", "other": 3})
    claims.measure("one", 1.0)
    return claims


def test_claim_rows_show_where_each_criterion_is_met_and_where_none_speaks():
    _, ax = plt.subplots()
    met = {"first": [0, 1, 1], "second": [True, np.nan, False]}
    plotting.claim_rows(ax, [10, 100, 1000], met, 100)
    rows = ax.collections[0]
    colors = rows.cmap(rows.norm(rows.get_array()))
    red, green, grey = to_rgba("#d9705c"), to_rgba("#9fd6b4"), to_rgba("0.92")
    np.testing.assert_allclose(colors[0], [red, green, green])
    np.testing.assert_allclose(colors[1], [green, grey, red])
    assert [label.get_text() for label in ax.get_yticklabels()] == [*met]
    borders = ax.collections[1].get_segments()
    assert [border.tolist() for border in borders] == [
        [[10, 0.5], [1000, 0.5]],
        [[10, 1.5], [1000, 1.5]],
    ]
    assert ax.get_xscale() == "log"
    assert ax.lines[0].get_xdata()[0] == 100
    bottom, top = ax.get_ylim()
    assert bottom > top  # the first claim is the upper row


# ---- save


def test_saves_four_files_and_a_record(checkout, claims):
    arrays = {"change_rate": [1.0, 2.0], "names": ["a", "b"]}
    plotting.save(tiny(), claims, "out", **arrays)
    folder = checkout.root / "out/paper"
    assert {p.name for p in folder.iterdir()} == {
        *("fig1.json", "fig1.npz", "fig1.png", "fig1.svg")
    }
    assert [p.name for p in folder.parent.iterdir()] == ["paper"]
    assert (folder / "fig1.png").read_bytes().startswith(b"\x89PNG")
    text = (folder / "fig1.json").read_text()
    assert text.startswith('{\n "figure"')  # as those under version control
    record = json.loads(text)
    assert record["figure"] == "paper/fig1"
    assert record["parameters"] == {"n": 5, "rates": [0.5, 1.0]}
    assert record["claims"] == claims.records()
    assert {"matplotlib", "numba", "numpy", "scipy"} < record["versions"].keys()
    with np.load(folder / "fig1.npz") as saved:
        assert {name: saved[name].tolist() for name in saved} == arrays


def test_nothing_is_saved_without_a_folder(checkout, claims):
    before = list(checkout.root.rglob("*"))
    plotting.save(tiny(), claims, None)
    assert list(checkout.root.rglob("*")) == before


def test_a_full_disk_leaves_what_was_there(checkout, claims, monkeypatch):
    plotting.save(tiny(1), claims, "out")
    paths = sorted((checkout.root / "out").rglob("*.*"))
    before = [path.read_bytes() for path in paths]

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space left"):
        plotting.save(tiny(2), claims, "out")
    assert sorted((checkout.root / "out").rglob("*.*")) == paths
    assert [path.read_bytes() for path in paths] == before


@pytest.mark.slow
def test_saved_twice_is_the_same_byte_by_byte_and_other_data_are_not(checkout, claims):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        plotting.save(tiny(seed), claims, folder, seed=seed)
    for suffix in (".png", ".svg", ".npz"):
        first, second, other = (
            (checkout.root / folder / f"paper/fig1{suffix}").read_bytes()
            for folder in "abc"
        )
        assert first == second, suffix
        assert first != other, suffix


def test_svg_has_no_date_and_text_in_a_pdf_can_be_searched(checkout, claims):
    figure = tiny()
    plotting.save(figure, claims, "out")
    svg = (checkout.root / "out/paper/fig1.svg").read_text()
    assert "<dc:date>" not in svg
    assert not re.search(r"\b20\d\d-\d\d-\d\d", svg)
    assert svg.count("<image") == 1, "rasterised points are an image"
    figure.savefig("fig1.pdf")
    pdf = (checkout.root / "fig1.pdf").read_bytes()
    assert b"/Subtype /Type0" in pdf
    assert b"/Type3" not in pdf


# ---- thin, lines, bands


@pytest.mark.parametrize("n", [1, 2, 399, 400, 401, 402, 1000, 50_000, 1_234_567])
def test_thin_keeps_first_and_last_and_spreads_the_rest(n):
    shown = plotting.thin(n)
    assert shown[0] == 0
    assert shown[-1] == n - 1
    assert len(shown) == n if n <= 400 else 200 <= len(shown) <= 400
    assert (np.diff(shown) > 0).all()
    assert np.diff(shown).max(initial=0) <= n / 199 + 1, "no gap on a linear axis"
    if n > 400:
        at = np.log(shown + 1.0)
        # on a logarithmic axis no gap wider than one step of the grid, or one
        # integer
        assert (
            np.diff(at)
            <= np.maximum(np.log(n) / 199 * 2, np.log1p(1 / (shown[:-1] + 1.0))) + 1e-12
        ).all()


def test_lines_have_their_own_style_and_are_thinned():
    _, ax = plt.subplots()
    x = np.arange(1, 1001)
    plotting.lines(ax, x, {"LLN": 1.0 / x, "SA": 2.0 / x}, linewidth=3.0)
    first, second = ax.lines
    shown = plotting.thin(1000)
    expected = np.column_stack([x, 1.0 / x])[shown]
    np.testing.assert_array_equal(first.get_xydata(), expected)
    assert first.get_label() == "LLN"
    assert first.get_color() == plotting.LINES["LLN"]["color"]
    assert second.get_color() == plotting.LINES["SA"]["color"]
    assert {first.get_linewidth(), second.get_linewidth()} == {3.0}


def test_a_users_own_names_have_styles_that_stay():
    names = [f"mine {k}" for k in range(len(plotting.VARIANTS))]
    styles = [plotting.LINES[name] for name in names]
    assert sorted(map(str, styles)) == sorted(map(str, plotting.VARIANTS))
    assert styles == [plotting.LINES[name] for name in names]
    assert styles == [plotting.POLICIES[name] for name in names]  # in all panels
    _, (a, b, c) = plt.subplots(1, 3)
    runs = {"mine": np.arange(6.0).reshape(3, 2), "SA": np.ones((3, 2))}
    plotting.bands(a, [1, 2], runs)
    plotting.errors(b, [1, 2], runs)
    plotting.boxes(c, {name: values[:, 0] for name, values in runs.items()})
    assert len({ax.lines[0].get_color() for ax in (a, b, c)}) == 1


def test_bands_are_the_mean_and_outlines_of_the_central_runs():
    _, ax = plt.subplots()
    runs = np.arange(201.0)[:, None] + np.array([0.0, 1000.0])
    plotting.bands(ax, [1, 2], {"SA": np.random.default_rng(1).permuted(runs, axis=0)})
    # the mean of 0..200, and 2.5% and 97.5%
    for line, y in zip(ax.lines, (100, 5, 195), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), [[1, y], [2, y + 1000]])
    assert len({line.get_color() for line in ax.lines}) == 1


def test_errors_are_the_mean_and_bars_of_its_standard_error():
    _, ax = plt.subplots()
    runs = np.array([[1.0, 10.0], [2.0, 10.0], [6.0, 40.0]])
    plotting.errors(ax, [1, 2], {"SA": runs, "LLN": runs + 1}, linewidth=3)
    first, second = ax.containers
    mean, error = np.array([3.0, 20.0]), np.array([np.sqrt(7 / 3), 10.0])
    np.testing.assert_array_equal(first[0].get_xydata(), [[1, 3], [2, 20]])
    for (x, y), bar in zip(enumerate(mean), first[2][0].get_segments(), strict=True):
        expected = [[x + 1, y - error[x]], [x + 1, y + error[x]]]
        np.testing.assert_allclose(bar, expected, rtol=1e-12)
    np.testing.assert_array_equal(second[0].get_ydata(), mean + 1)
    handles, labels = ax.get_legend_handles_labels()
    assert labels == ["SA", "LLN"]
    for curve, name in zip(handles, labels, strict=True):
        color = plotting.LINES[name]["color"]
        assert curve[0].get_color() == color
        np.testing.assert_allclose(curve[2][0].get_color()[0], to_rgba(color))
        assert curve[0].get_linewidth() == 3.0


def test_one_run_is_drawn_without_a_bar():
    _, (a, b) = plt.subplots(1, 2)
    plotting.errors(a, [1, 2], {"SA": np.ones((1, 2))})
    plotting.boxes(b, {"GREEDY": [1.0]})  # without a warning
    bars = [path for ax in (a, b) for c in ax.collections for path in c.get_paths()]
    assert len(bars) == 2 + 1
    assert all(np.isnan(bar.vertices[:, 1]).all() for bar in bars)


def test_bands_with_infinite_runs_are_drawn_where_they_are_finite():
    figure, ax = plt.subplots(figsize=(2, 1.5))
    runs = np.tile(np.arange(1.0, 41.0)[:, None], 5)
    runs[:3, 0] = np.inf  # 7% of the runs: the upper quantile is infinite
    # 2.5% of the runs: the quantile is finite, the mean is not.
    runs[0, 1] = np.inf
    plotting.bands(ax, np.arange(5.0), {"MLE": runs})
    mean, lower, upper = (np.isfinite(line.get_ydata()) for line in ax.lines)
    assert mean.tolist() == [False, False, True, True, True]
    assert lower.all()
    assert upper.tolist() == [False, True, True, True, True]
    figure.draw_without_rendering()  # without a warning


# ---- boxes, rates


def test_boxes_show_quartiles_mean_and_standard_error_and_baseline_as_a_line():
    figure, ax = plt.subplots()
    runs = {"BASELINE": np.full(5, 0.5), "GREEDY": np.array([0.0, 1.0, 2.0, 3.0, 14.0])}
    plotting.boxes(ax, runs)
    (box,) = ax.patches
    assert (box.get_y(), box.get_y() + box.get_height()) == (1.0, 3.0)
    half = np.std(runs["GREEDY"], ddof=1) / np.sqrt(5)
    ((bar,),) = (c.get_segments() for c in ax.collections)
    np.testing.assert_allclose(bar, [[0, 4 - half], [0, 4 + half]], rtol=1e-12)
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), 0.5)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["GREEDY"]
    figure.draw_without_rendering()
    assert ax.get_ylim()[0] < 0.5, (
        "the lowest box does not stand on the edge of the panel"
    )


def test_rates_against_the_optimal_ones_with_the_diagonal_and_colours():
    _, ax = plt.subplots()
    optimal = np.arange(4000.0)
    cloud = plotting.rates(ax, optimal, optimal + 1, color=optimal / 4000)
    points = cloud.get_offsets()
    assert len(points) == 1000
    np.testing.assert_array_equal(points[:, 1], points[:, 0] + 1)
    np.testing.assert_allclose(cloud.get_array(), points[:, 0] / 4000)
    assert (points[0, 0], points[-1, 0]) == (0, 3999)
    assert cloud.get_clim() == (0.0, 1.0), "the same colours in every panel"
    assert cloud.get_rasterized()
    assert ax.lines[0].get_slope() == 1
    other = plotting.rates(ax, [1], [1], color=[0], cmap="plasma")
    assert other.get_cmap().name == "plasma"


# ---- the style: print sizes, colours for all readers


def test_the_style_file_is_found_by_name_and_has_print_sizes():
    mpl.rcdefaults()
    plt.style.use("paperfigs.paper")
    sizes = {k: v for k, v in mpl.rcParams.items() if k.endswith("labelsize")}
    labels = {"axes.labelsize": 8, "figure.labelsize": 8}
    assert sizes == labels | {"xtick.labelsize": 7, "ytick.labelsize": 7}
    assert mpl.rcParams["legend.fontsize"] == 7


def _seen(color):
    """A colour as seen with deuteranopia, in CIE Lab.

    The matrix is that of Machado, Oliveira and Fernandes (2009).
    """
    to_seen = [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722]]
    to_xyz.append([0.0193, 0.1192, 0.9505])
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    white = np.array([0.9505, 1.0, 1.089])
    xyz = np.array(to_xyz) @ np.clip(np.array(to_seen) @ linear, 0, 1) / white
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


STYLES = [plotting.LINES, plotting.POLICIES, plotting.ALLOCATIONS]
STYLES.append(dict(enumerate(plotting.VARIANTS)))


@pytest.mark.parametrize("styles", [dict(styles) for styles in STYLES])
def test_styles_can_be_told_apart_by_all_readers_and_in_grey(styles):
    assert len(styles) >= 4
    for (one, a), (other, b) in itertools.combinations(styles.items(), 2):
        distance = np.linalg.norm(_seen(a["color"]) - _seen(b["color"]))
        # Two that differ by less than ten are hard to tell apart in thin lines.
        assert distance > 15, (one, other)
        assert a["linestyle"] != b["linestyle"], (one, other)


def test_shades_run_from_dark_to_light():
    styles = plotting.shades([1, 10, 100], "alpha {:g}")
    light = [_seen(style["color"])[0] for style in styles.values()]
    assert light == sorted(light)
    assert styles[10]["label"] == "alpha 10"


def test_notes_lie_in_the_corner_that_they_are_given():
    _, ax = plt.subplots()
    places = {(0.98, 0.03): ("right", "bottom"), (0.02, 0.97): ("left", "top")}
    for (x, y), (side, end) in places.items():
        note = plotting.note(ax, "stand-in data", x=x, y=y)
        assert (note.get_ha(), note.get_va()) == (side, end)
    plotting.added(ax)
    assert ax.texts[-1].get_text() == "added"


def test_a_claim_box_covers_what_it_speaks_of_and_its_words_lie_in_a_corner():
    figure, ax = plt.subplots()
    ax.set(xscale="log", xlim=(1, 1000), ylim=(-1, 1))
    plotting.claim_box(ax, "very close", x=(1, 500), y=(0.9, 1))
    plotting.claim_box(ax, "at most half", y=(-1, 0.5), loc="lower right")
    corners = [patch.get_bbox().extents.tolist() for patch in ax.patches]
    assert corners == [[1, 0.9, 500, 1], [1, -1, 1000, 0.5]]
    assert (ax.get_xlim(), ax.get_ylim()) == ((1, 1000), (-1, 1))
    figure.draw_without_rendering()
    first, second = (artist.get_window_extent() for artist in ax.artists)
    places = ax.transData.transform([[1, 1], [1000, -1]])
    assert np.abs([first.x0, first.y1] - places[0]).max() < 6
    assert np.abs([second.x1, second.y0] - places[1]).max() < 6
