"""Saved figures are the same every time; their arrays are what is drawn."""

import hashlib
import itertools
import json
import re
import zipfile
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb

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
def claims(tmp_path_factory):
    """One claim of a figure with two parameters, measured."""
    root = tmp_path_factory.mktemp("clone")
    folder = root / "notebooks" / "paper"
    folder.mkdir(parents=True)
    claim = {"id": "one", "says": "É ≤ 1.", "where": "here", "at_least": 0.0}
    (folder / "claims.yaml").write_text(json.dumps({"fig1": [claim]}))
    cell = {
        "cell_type": "code",
        "metadata": {"tags": ["parameters"]},
        "source": "n = 5\nseed = 1\noutput_dir = None",
    }
    (folder / "fig1_name.ipynb").write_text(json.dumps({"cells": [cell]}))
    given = {"n": 5, "seed": 1, "output_dir": "x", "other": 3}
    claims = Claims("paper/fig1", given, root=root)
    claims.measure("one", 1.0)
    return claims


# ---- save


def test_saves_four_files_and_a_record(tmp_path, claims):
    figure = tiny()
    expected = plotting.drawn(figure)
    plotting.save(
        figure, claims, tmp_path, data=[SimpleNamespace(name="debian", sha256="abc")]
    )
    assert sorted(p.name for p in (tmp_path / "paper").iterdir()) == [
        "fig1.json",
        "fig1.npz",
        "fig1.png",
        "fig1.svg",
    ]
    assert (tmp_path / "paper/fig1.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((tmp_path / "paper/fig1.json").read_text())
    assert record["figure"] == "paper/fig1"
    assert record["parameters"] == {"n": 5, "seed": 1}
    assert record["claims"] == claims.records()
    assert record["data"] == {"debian": "abc"}
    assert re.fullmatch(r"3\.\d+", record["versions"].pop("python")), "no patch version"
    assert sorted(record["versions"]) == [
        "matplotlib",
        "numba",
        "numpy",
        "paperlib",
        "scipy",
    ]
    with np.load(tmp_path / "paper/fig1.npz") as arrays:
        assert set(arrays.files) == set(expected)
        for name in arrays.files:
            np.testing.assert_array_equal(arrays[name], expected[name])
    digest = hashlib.sha256()
    for name in sorted(expected):
        digest.update(
            f"{name} {expected[name].shape}\n".encode() + expected[name].tobytes()
        )
    assert record["arrays"] == digest.hexdigest()
    assert not plt.fignum_exists(figure.number), "a saved figure is closed"


def test_nothing_is_saved_without_a_folder(tmp_path, claims, monkeypatch):
    monkeypatch.chdir(tmp_path)
    figure = tiny()
    assert plotting.save(figure, claims, None) is None
    assert list(tmp_path.iterdir()) == []
    assert plt.fignum_exists(figure.number)


@pytest.mark.slow
def test_saved_twice_is_the_same_byte_by_byte_and_other_data_are_not(tmp_path, claims):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        plotting.save(tiny(seed), claims, tmp_path / folder)
    for suffix in (".png", ".svg", ".npz", ".json"):
        first, second, other = (
            (tmp_path / folder / f"paper/fig1{suffix}").read_bytes() for folder in "abc"
        )
        assert first == second, suffix
        assert first != other, suffix


def test_arrays_are_packed_alike_by_every_version_of_python(tmp_path, claims):
    """Headers of numpy.savez say what Python 3.11.4 changed."""
    plotting.save(tiny(), claims, tmp_path)
    path = tmp_path / "paper/fig1.npz"
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    found = {(m.extract_version, m.date_time[0], m.compress_type) for m in members}
    assert found == {(20, 1980, zipfile.ZIP_DEFLATED)}
    with np.load(path) as arrays:
        assert set(arrays) == {member.filename[:-4] for member in members}


def test_svg_has_no_date_and_no_random_ids(tmp_path, claims):
    plotting.save(tiny(), claims, tmp_path)
    svg = (tmp_path / "paper/fig1.svg").read_text()
    assert "<dc:date>" not in svg
    assert not re.search(r"\b20\d\d-\d\d-\d\d", svg)
    assert svg.count("<image") == 1, "rasterised points are an image"
    ids = re.findall(r'\bid="([^"]+)"', svg)
    used = re.findall(r'(?:url\(|href=")#([^)"]+)', svg)
    assert len(ids) == len(set(ids))
    assert set(used) <= set(ids)
    assert used
    # matplotlib's own are checksums, of places before they are rounded
    assert not [name for name in ids if re.fullmatch(r"[A-Za-z]+[0-9a-f]{10}", name)]
    # the sixth decimal of a place differs between processors, the third does not
    assert set(re.findall(r"\d+\.\d{5,}", svg)) <= {"0.015625"}, "the size of glyphs"


# ---- drawn


def test_lines_bands_points_meshes_and_bars():
    figure, (a, b, c) = plt.subplots(1, 3)
    x = np.array([1.0, 2.0, 4.0])
    a.plot(x, x**2, label="square")
    a.axhline(3.0, label="_limit")
    a.fill_between(x, x - 1, x + 1, label="_band")
    b.scatter(x, -x, label="points")
    b.bar([0.0, 1.0], [2.0, 3.0], width=0.5)
    mesh = c.pcolormesh(
        np.arange(4.0), np.arange(3.0), np.array([[1.0, 2.0, np.nan], [4.0, 5.0, 6.0]])
    )
    figure.colorbar(mesh)
    arrays = plotting.drawn(figure)
    *names, values, corners = arrays
    assert names == [
        "a00 square",
        "a01 limit",
        "a02 band",
        "b00 points",
        "b01 nolegend_",
        "b02 nolegend_",
    ]
    assert [values[:3], corners[:3]] == ["c00", "c01"]
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(arrays["a00 square"], [[1, 1], [2, 4], [4, 16]])
    np.testing.assert_array_equal(arrays["a01 limit"][:, 1], [3, 3])
    outline = {tuple(point) for point in arrays["a02 band"].tolist()}
    assert outline == {(t, t + s) for t in x for s in (-1, 1)}
    np.testing.assert_array_equal(arrays["b00 points"], [[1, -1], [2, -2], [4, -4]])
    np.testing.assert_allclose(
        arrays["b01 nolegend_"],
        [[-0.25, 0], [0.25, 0], [0.25, 2], [-0.25, 2], [-0.25, 0]],
    )
    np.testing.assert_allclose(
        arrays["b02 nolegend_"], [[0.75, 0], [1.25, 0], [1.25, 3], [0.75, 3], [0.75, 0]]
    )
    np.testing.assert_array_equal(np.ravel(arrays[values]), [1, 2, np.nan, 4, 5, 6])
    np.testing.assert_array_equal(arrays[corners][0, :, 0], [0, 1, 2, 3])


def test_images_and_stepped_histograms_are_data_too():
    figure, (a, b) = plt.subplots(1, 2)
    a.imshow([[1.0, 2.0], [3.0, 4.0]])
    b.hist([0.5, 0.5, 1.5], bins=[0, 1, 2], histtype="step")
    image, outline = plotting.drawn(figure).values()
    np.testing.assert_array_equal(image, [[1, 2], [3, 4]])
    assert outline[:, 1].max() == 2


def test_points_left_out_are_nan():
    figure, ax = plt.subplots()
    ax.scatter([1.0, np.nan, 3.0], [1.0, 2.0, 3.0])
    ax.scatter(np.ma.array([1.0, 2.0, 3.0], mask=[True, False, False]), [1.0, 2.0, 3.0])
    first, second = plotting.drawn(figure).values()
    assert np.isfinite(first).all(axis=1).tolist() == [True, False, True]
    assert np.isfinite(second).all(axis=1).tolist() == [False, True, True]


def test_every_line_of_a_panel_has_its_own_name():
    figure, ax = plt.subplots()
    for _ in range(12):
        ax.plot([1, 2], label="same")
    arrays = plotting.drawn(figure)
    assert list(arrays) == [f"a{i:02d} same" for i in range(12)]


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


def test_thin_to_fewer():
    assert plotting.thin(10, most=10).tolist() == list(range(10))
    shown = plotting.thin(1000, most=10)
    assert len(shown) <= 10
    assert (shown[0], shown[-1]) == (0, 999)


def test_lines_have_their_own_style_and_are_thinned():
    _, ax = plt.subplots()
    x = np.arange(1, 1001)
    assert (
        plotting.lines(ax, x, {"LLN": 1.0 / x, "something": 2.0 / x}, linewidth=3.0)
        is ax
    )
    first, second = ax.lines
    shown = plotting.thin(1000)
    np.testing.assert_array_equal(
        first.get_xydata(), np.column_stack([x, 1.0 / x])[shown]
    )
    assert first.get_label() == "LLN"
    assert first.get_color() == plotting.LINES["LLN"]["color"]
    assert second.get_color() == plotting.VARIANTS[0]["color"], "the first variant"
    assert {first.get_linewidth(), second.get_linewidth()} == {3.0}


def test_bands_are_the_mean_and_outlines_of_the_central_runs():
    figure, ax = plt.subplots()
    runs = np.arange(201.0)[:, None] + np.array([0.0, 1000.0])
    plotting.bands(ax, [1, 2], {"SA": np.random.default_rng(1).permuted(runs, axis=0)})
    arrays = plotting.drawn(figure)
    np.testing.assert_array_equal(arrays["a00 SA"], [[1, 100], [2, 1100]])
    # 2.5% and 97.5% of 0..200
    np.testing.assert_array_equal(arrays["a01 SA lower"], [[1, 5], [2, 1005]])
    np.testing.assert_array_equal(arrays["a02 SA upper"], [[1, 195], [2, 1195]])
    assert len({line.get_color() for line in ax.lines}) == 1


def test_any_name_has_a_style():
    _, (a, b, c) = plt.subplots(1, 3)
    runs = {"mine": np.arange(6.0).reshape(3, 2), "SA": np.ones((3, 2))}
    plotting.bands(a, [1, 2], runs)
    plotting.errors(b, [1, 2], runs)
    plotting.boxes(c, {name: values[:, 0] for name, values in runs.items()})
    assert c.lines[0].get_color() == plotting.VARIANTS[0]["color"]


def test_one_run_is_drawn_without_a_bar():
    figure, (a, b) = plt.subplots(1, 2)
    plotting.errors(a, [1, 2], {"SA": np.ones((1, 2))})
    plotting.boxes(b, {"GREEDY": [1.0]})  # without a warning
    bars = [v for name, v in plotting.drawn(figure).items() if name.endswith("error")]
    assert len(bars) == 2 + 1
    assert all(np.isnan(bar[:, 1]).all() for bar in bars)


def test_bands_with_infinite_runs_are_drawn_where_they_are_finite(tmp_path, claims):
    figure, ax = plt.subplots(figsize=(2, 1.5))
    runs = np.tile(np.arange(1.0, 41.0)[:, None], 5)
    runs[:3, 0] = np.inf  # 7% of the runs: the upper quantile is infinite
    # 2.5% of the runs: the quantile is finite, the mean is not.
    runs[0, 1] = np.inf
    plotting.bands(ax, np.arange(5.0), {"MLE": runs})
    arrays = plotting.drawn(figure)
    finite = {name: np.isfinite(a[:, 1]).tolist() for name, a in arrays.items()}
    assert finite == {
        "a00 MLE": [False, False, True, True, True],
        "a01 MLE lower": [True] * 5,
        "a02 MLE upper": [False, True, True, True, True],
    }
    plotting.save(figure, claims, tmp_path)  # draws without a warning


# ---- the style file


def test_the_style_file_is_found_by_name_and_has_print_sizes():
    looks = []
    for use in (lambda: plt.style.use("paperfigs.paper"), plotting.use_style):
        mpl.rcdefaults()
        use()
        looks.append({k: v for k, v in mpl.rcParams.items() if k != "backend"})
    assert looks[0] == looks[1]
    sizes = {key: looks[0][key] for key in looks[0] if key.endswith(("labelsize",))}
    labels = {"axes.labelsize": 8, "figure.labelsize": 8}
    assert sizes == labels | {"xtick.labelsize": 7, "ytick.labelsize": 7}
    assert looks[0]["legend.fontsize"] == 7


def test_the_palette_is_that_of_seaborn_for_colour_blind_readers():
    import seaborn  # it takes as long as the other tests of this file

    assert seaborn.color_palette("colorblind").as_hex() == plotting._PALETTE


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


@pytest.mark.parametrize(
    "styles",
    [
        plotting.LINES,
        plotting.POLICIES,
        plotting.ALLOCATIONS | plotting.CRAWLERS,
        plotting.ESTIMATION,
        dict(enumerate(plotting.VARIANTS)),
    ],
)
def test_colours_differ_under_deuteranopia(styles):
    for (one, a), (other, b) in itertools.combinations(styles.items(), 2):
        distance = np.linalg.norm(_seen(a["color"]) - _seen(b["color"]))
        # Two that differ by less than ten are hard to tell apart in thin lines.
        assert distance > 15, (one, other)


def test_shades_run_from_dark_to_light():
    styles = plotting.shades([1, 10, 100], "alpha {:g}")
    light = [_seen(style["color"])[0] for style in styles.values()]
    assert light == sorted(light)
    assert styles[10]["label"] == "alpha 10"


# ---- tags and faults


def test_a_plain_figure_has_no_fault():
    figure, (a, b) = plt.subplots(1, 2, figsize=(plotting.PAGE, 2.4))
    for ax in (a, b):
        ax.plot([1, 2, 3], [1, 10, 100], label="curve")
        ax.set(title="(a) a title", xlabel="time", ylabel="value", yscale="log")
    plotting.added(b)
    plotting.note(a, "stand-in data")
    figure.legend(*a.get_legend_handles_labels(), loc="outside lower center")
    assert plotting.faults(figure) == []


@pytest.mark.parametrize(
    ("draw", "fault"),
    [
        (lambda ax: ax.set_xlabel("x", fontsize=6), "text of 6.0 pt: 'x'"),
        (lambda ax: ax.text(2.0, 0.5, "far"), "outside the picture: 'far'"),
        (
            lambda ax: ax.legend(ax.plot([1], label="a"), ["x"], loc=(1.5, 0)),
            "outside the picture: 'a legend'",
        ),
        (
            lambda ax: [ax.text(0.3, 0.5, "over"), ax.text(0.33, 0.5, "lap")],
            "texts overlap: 'lap', 'over'",
        ),
        (lambda ax: ax.scatter([1], [2]), "data without a name: PathCollection"),
        (lambda ax: ax.errorbar([1], [2], [3]), "data without a name: Line2D"),
        (
            lambda ax: ax.bar(0, 1)[0].set_label("_SA quartiles"),
            "a box touches the edge of its panel: 'SA quartiles'",
        ),
    ],
)
def test_faults_are_found(draw, fault):
    figure, ax = plt.subplots(figsize=(3, 2), layout="none")
    draw(ax)
    assert fault in plotting.faults(figure)


def test_boxes_lie_inside_their_panel():
    figure, ax = plt.subplots(figsize=(3, 2))
    plotting.boxes(ax, {"BASELINE": [0.0], "GREEDY": np.arange(-9, 10)})
    assert plotting.faults(figure) == []


def test_what_another_library_drew_can_be_named():
    figure, ax = plt.subplots()
    ax.plot([1, 2], label="mine")
    ax.bar([1, 2], [3, 4])
    assert plotting.faults(figure) == ["data without a name: Rectangle"]
    plotting.name(ax, "bars")
    assert plotting.faults(figure) == []
    assert list(plotting.drawn(figure)) == ["a00 mine", "a01 bars 1", "a02 bars 2"]


# ---- one style for each


def _dash(style):
    """The dashes of a line style as matplotlib draws it."""
    return {"-": None, "--": (3.7, 1.6)}.get(
        style, style[1] if isinstance(style, tuple) else style
    )


@pytest.mark.parametrize(
    "styles",
    [
        plotting.LINES,
        plotting.POLICIES,
        plotting.ALLOCATIONS | plotting.CRAWLERS,
        dict(enumerate(plotting.VARIANTS)),
    ],
)
def test_no_two_styles_share_a_colour_or_a_dash(styles):
    assert len(styles) >= 4
    for (one, a), (other, b) in itertools.combinations(styles.items(), 2):
        assert (
            np.abs(np.subtract(to_rgb(a["color"]), to_rgb(b["color"]))).max() > 0.1
        ), (one, other)
        assert _dash(a["linestyle"]) != _dash(b["linestyle"]), (one, other)


@pytest.mark.parametrize(
    "styles", [plotting.LINES, plotting.POLICIES], ids=["LINES", "POLICIES"]
)
def test_styles_differ_as_drawn(styles):
    figure, ax = plt.subplots()
    ax.set_axis_off()
    plotting.lines(ax, [1, 2], {name: np.array([1.0, 2.0]) for name in styles})
    colors = {line.get_color() for line in ax.lines}
    plt.setp(ax.lines, color="black", marker="", visible=False)
    pictures = set()
    for line in ax.lines:
        line.set_visible(True)
        figure.canvas.draw()
        pictures.add(bytes(figure.canvas.buffer_rgba()))
        line.set_visible(False)
    assert len(colors) == len(pictures) == len(styles)


def test_more_curves_than_variants_are_still_told_apart():
    _, ax = plt.subplots()
    plotting.lines(
        ax,
        [1, 2],
        {str(i): np.array([1.0, 2.0]) for i in range(len(plotting.VARIANTS))},
    )
    assert len({line.get_color() for line in ax.lines}) == len(plotting.VARIANTS)


# ---- medians


def test_medians_with_their_quartiles():
    figure, ax = plt.subplots()
    runs = np.random.default_rng(1).permuted(
        np.arange(101.0)[:, None] + np.array([0.0, 1000.0]), axis=0
    )
    assert (
        plotting.medians(
            ax, [1, 10], {"MLE": runs, "moment matching": runs + 1}, plotting.ESTIMATION
        )
        is ax
    )
    arrays = plotting.drawn(figure)
    assert list(arrays) == [
        "a00 MLE",
        "a01 MLE quartiles",
        "a02 moment matching",
        "a03 moment matching quartiles",
    ]
    apart = 1.07**0.5
    np.testing.assert_allclose(
        arrays["a00 MLE"], [[1 / apart, 50], [10 / apart, 1050]], rtol=1e-6
    )
    np.testing.assert_allclose(
        arrays["a02 moment matching"], [[apart, 51], [10 * apart, 1051]], rtol=1e-6
    )
    # 25% and 75% of 0..100, and a gap after each bar
    np.testing.assert_array_equal(
        arrays["a01 MLE quartiles"][:, 1], [25, 75, np.nan, 1025, 1075, np.nan]
    )
    assert (
        ax.lines[1].get_color()
        == ax.lines[0].get_color()
        == plotting.ESTIMATION["MLE"]["color"]
    )


def test_estimation_styles_differ():
    styles = plotting.ESTIMATION.values()
    for key in ("color", "linestyle", "marker"):
        assert len({style[key] for style in styles}) == 3


# ---- boxes


def test_groups_of_the_field_are_told_apart_without_colours():
    ax = plt.figure().subplots()
    regret = {name: 0.1 for _, names in plotting.FIELD.values() for name in names}
    plotting.regrets(ax, regret, regret, regret)
    markers = [line.get_marker() for line in ax.lines[: len(plotting.FIELD)]]
    assert len(set(markers)) == len(plotting.FIELD)
    plotting.regrets(ax, regret, regret, regret, marker="x")
    assert ax.lines[-2].get_marker() == "x"


def test_boxes_show_quartiles_mean_and_standard_error_and_baseline_as_a_line():
    figure, ax = plt.subplots()
    runs = {"BASELINE": np.full(5, 0.5), "GREEDY": np.array([0.0, 1.0, 2.0, 3.0, 14.0])}
    assert plotting.boxes(ax, runs) is ax
    (box,) = ax.patches
    assert (box.get_y(), box.get_y() + box.get_height()) == (1.0, 3.0)
    half = np.std(runs["GREEDY"], ddof=1) / np.sqrt(5)
    drawn = {name.partition(" ")[2]: a for name, a in plotting.drawn(figure).items()}
    assert set(drawn) == {"GREEDY", "GREEDY error", "GREEDY quartiles", "BASELINE"}
    np.testing.assert_allclose(
        drawn["GREEDY error"], [[0, 4 - half], [0, 4 + half]], rtol=1e-6
    )
    np.testing.assert_array_equal(drawn["BASELINE"][:, 1], 0.5)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["GREEDY"]
    figure.draw_without_rendering()
    assert ax.get_ylim()[0] < 0.5, (
        "the lowest box does not stand on the edge of the panel"
    )


# ---- rates


def test_rates_against_the_optimal_ones_with_the_diagonal_and_colours():
    figure, ax = plt.subplots()
    optimal = np.arange(20.0).reshape(2, 10)
    cloud = plotting.rates(ax, optimal, optimal + 1, color=optimal / 20, most=5)
    np.testing.assert_array_equal(
        cloud.get_offsets(), [[0, 1], [4, 5], [9, 10], [14, 15], [19, 20]]
    )
    np.testing.assert_allclose(cloud.get_array(), [0.0, 0.2, 0.45, 0.7, 0.95])
    assert cloud.get_clim() == (0.0, 1.0), "the same colours in every panel"
    assert cloud.get_rasterized()
    assert cloud.get_cmap().name == "viridis"
    (diagonal,) = ax.lines
    assert diagonal.get_slope() == 1
    assert list(plotting.drawn(figure)) == ["a00 optimal", "a01 pages"]
    plain = plotting.rates(ax, optimal, optimal, color="#ff0000")
    assert len(plain.get_offsets()) == 20
    assert plain.get_array() is None
    np.testing.assert_array_equal(plain.get_facecolor()[0, :3], [1, 0, 0])
    other = plotting.rates(ax, optimal, optimal, color=optimal / 20, cmap="plasma")
    assert other.get_cmap().name == "plasma"


# ---- bars, calibration


def test_bars_are_named_numbers_the_first_on_top():
    figure, ax = plt.subplots()
    values = {"Nutch": 0.25, "the log": 0.5, "optimal": 0.875}
    assert plotting.bars(ax, values) is ax
    assert {patch.get_label(): patch.get_width() for patch in ax.patches} == values
    assert ax.yaxis_inverted()
    assert [label.get_text() for label in ax.get_yticklabels()] == list(values)
    assert [text.get_text() for text in ax.texts] == ["0.250", "0.500", "0.875"]
    nutch, log, optimal = (patch.get_facecolor() for patch in ax.patches)
    assert nutch == optimal != log, "the log stands out"
    assert sorted(plotting.drawn(figure)) == ["a00 Nutch", "a01 the log", "a02 optimal"]


def test_calibration_draws_shares_with_errors_and_leaves_out_thin_bins():
    figure, ax = plt.subplots()
    bins = np.array(
        [[0.1, 0.2, 100], [0.5, 0.5, 25], [0.7, 1.0, 19], [np.nan, np.nan, 0]]
    )
    empty = np.array([[np.nan, np.nan, 0]])
    assert plotting.calibration(ax, {"mle": bins, "naive": empty}) is ax
    arrays = plotting.drawn(figure)
    np.testing.assert_allclose(arrays["a00 mle"], [[0.1, 0.2], [0.5, 0.5]], rtol=1e-6)
    assert arrays["a01 naive"].size == 0
    np.testing.assert_array_equal(arrays["a02 diagonal"], [[0, 0], [1, 1]])
    first, second = (
        array for name, array in arrays.items() if name.endswith("mle error")
    )
    np.testing.assert_allclose(
        first, [[0.1, 0.16], [0.1, 0.24]], rtol=1e-6
    )  # sqrt(0.2 0.8 / 100) = 0.04
    np.testing.assert_allclose(second, [[0.5, 0.4], [0.5, 0.6]], rtol=1e-6)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["mle", "naive"]
    _, ax = plt.subplots()
    plotting.calibration(ax, {"mle": bins}, least=19)
    assert len(ax.lines[0].get_xdata()) == 3
