"""Claims: statuses at the border, records, tables, standard errors."""

import math

import numpy as np
import pytest

from paperfigs import ledger, project
from paperfigs.ledger import Claims, Measured


@pytest.fixture
def claimed(checkout):
    """Claims of figure a/fig1, to be measured."""

    def make(*entries, **options):
        checkout.notebook("a/fig1_x")
        checkout.claims("a/fig1", *entries)
        return Claims("a/fig1", **options)

    return make


@pytest.fixture
def status(claimed):
    """The status of one measurement by one criterion."""

    def judge(value, stderr=0.0, **criterion):
        claims = claimed({"id": "x", **criterion})
        return claims.measure("x", Measured(value, stderr))

    return judge


def up(x):
    return math.nextafter(x, math.inf)


def down(x):
    return math.nextafter(x, -math.inf)


# ---- statuses
# Limits and standard errors are binary fractions, so that three standard
# errors are met exactly.


@pytest.mark.parametrize(
    ("criterion", "measured", "expected"),
    [
        ({"at_least": 1.0}, 2.5, "holds"),
        ({"at_least": 1.0}, down(2.5), "on the border"),
        ({"at_least": 1.0}, 1.0, "on the border"),
        ({"at_least": 1.0}, -0.5, "on the border"),
        ({"at_least": 1.0}, down(-0.5), "differs"),
        ({"at_most": 1.0}, -0.5, "holds"),
        ({"at_most": 1.0}, up(-0.5), "on the border"),
        ({"at_most": 1.0}, 2.5, "on the border"),
        ({"at_most": 1.0}, up(2.5), "differs"),
        ({"within": [-4.0, 4.0]}, 2.5, "holds"),
        ({"within": [-4.0, 4.0]}, up(2.5), "on the border"),
        ({"within": [-4.0, 4.0]}, -2.5, "holds"),
        ({"within": [-4.0, 4.0]}, down(-2.5), "on the border"),
        ({"within": [-4.0, 4.0]}, 5.5, "on the border"),
        ({"within": [-4.0, 4.0]}, up(5.5), "differs"),
        ({"within": [-4.0, 4.0]}, -5.5, "on the border"),
        ({"within": [-4.0, 4.0]}, down(-5.5), "differs"),
        (
            {"within": [-1.0, 1.0]},
            0.0,
            "on the border",
        ),  # a margin narrower than the uncertainty can not be confirmed
        ({"within": [-1.5, 1.5]}, 0.0, "holds"),
    ],
)
def test_status_at_the_border(status, criterion, measured, expected):
    assert status(measured, 0.5, **criterion) == expected


@pytest.mark.parametrize(
    ("criterion", "inside", "outside"),
    [
        ({"at_least": 1.0}, 1.0, down(1.0)),
        ({"at_most": 1.0}, 1.0, up(1.0)),
        ({"within": [1.0, 2.0]}, 1.0, down(1.0)),
        ({"within": [1.0, 2.0]}, 2.0, up(2.0)),
        ({"within": [1.0, 1.0]}, 1.0, up(1.0)),
    ],
)
def test_without_sampling_error_it_holds_or_differs(status, criterion, inside, outside):
    assert status(inside, 0.0, **criterion) == "holds"
    assert status(outside, 0.0, **criterion) == "differs"


def test_the_status_is_that_of_the_unrounded_numbers(claimed):
    claims = claimed({"id": "x", "at_least": 1.0})
    assert claims.measure("x", 0.99999999) == "differs"
    assert claims.records()[0]["measured"] == 1.0, "six digits are recorded"
    assert claims.measure("x", Measured(1.23456789, 0.0123456)) == "holds"
    (record,) = claims.records()
    assert (record["measured"], record["stderr"]) == (1.23457, 0.0123)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_not_measured(status, value):
    assert status(value, 0.1, at_least=0.0) == "not measured"
    assert status(1.0, math.nan, at_least=0.0) == "not measured"


def test_without_a_known_error_it_is_on_the_border(status):
    assert status(1.0, math.inf, at_least=0.0) == "on the border"


# ---- what is refused


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "one of at_least, at_most, within, got none"),
        ({"at_least": 0.0, "at_most": 1.0}, "one of .*, got at_least, at_most"),
        ({"declared": "calibrated", "at_least": 0.0, "at_most": 1.0}, "one of"),
        ({"at_most": 1.0, "critereon": 2}, "keys among .* id, .*, got critereon"),
        ({"declared": "calibrated", "critereon": 2}, "keys among .*, got critereon"),
        ({"theirs": 2.0, "at_least": 0.0, "at_most": 1.0}, "one of"),
    ],
)
def test_a_claim_that_nothing_can_judge_is_refused(claimed, entry, message):
    with pytest.raises(project.BuildError, match=f"'x' of a/fig1 must have {message}"):
        claimed({"id": "x", **entry})


def test_claims_that_are_not_there_are_named(checkout, claimed):
    claims = claimed({"id": "x", "at_least": 0}, {"id": "p", "declared": "calibrated"})
    with pytest.raises(ValueError, match="of a/fig1, got 'y'; there are: x, p"):
        claims.measure("y", 1.0)
    checkout.notebook("b/fig1_x")
    with pytest.raises(project.BuildError, match=r"b/claims.yaml cannot be read"):
        Claims("b/fig1")
    checkout.write("notebooks/a/claims.yaml", "fig1: [")
    with pytest.raises(project.BuildError, match=r"a/claims.yaml cannot be read"):
        Claims("a/fig1")


def test_outside_of_a_checkout_one_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(project, "__file__", str(tmp_path / "site-packages/x.py"))
    with pytest.raises(project.BuildError, match=r"papermill: --cwd") as caught:
        Claims("a/fig1")
    assert "\n" not in str(caught.value)


def test_a_notebook_runs_in_its_own_folder_of_a_checkout(
    checkout, claimed, monkeypatch
):
    claimed({"id": "x", "at_least": 0})
    monkeypatch.chdir(checkout.root / "notebooks" / "a")
    claims = Claims("a/fig1", {"n": 3})
    assert claims.measure("x", 1.0) == "holds"
    assert claims.parameters == {"n": 3, "rates": [0.5, 1.0]}
    assert "with n = 3 (paper scale: 5)" in claims.table().data


# ---- records


def test_a_number_that_the_paper_prints_is_measured_and_not_judged(claimed):
    claims = claimed(
        {"id": "x", "theirs": 11.0}, {"id": "y", "theirs": 1, "at_most": 2}
    )
    assert claims.measure("x", Measured(12.0, 0.1)) == "number"
    assert claims.measure("y", 3.0) == "differs", "one with a criterion is judged"


def test_a_median_is_recorded_where_there_is_one(claimed):
    claims = claimed({"id": "x", "at_least": 1}, {"id": "y", "at_least": 1})
    claims.measure("x", Measured(2.0, 0.1, median=1.23456789))
    claims.measure("y", Measured(2.0, 0.1))
    first, second = claims.records()
    assert first["median"] == 1.23457
    assert "median" not in second


def test_a_measurement_replaces_an_earlier_one(claimed):
    claims = claimed({"id": "x", "at_least": 0})
    assert [claims.measure("x", 1.0), claims.measure("x", -1.0)] == ["holds", "differs"]
    assert [record["measured"] for record in claims.records()] == [-1.0]


def test_records_are_in_the_order_of_claims_yaml(claimed):
    private = {"id": "p", "declared": "calibrated", "reason": "Ours."}
    claims = claimed(
        {"id": "a", "at_least": 0}, private, {"id": "b", "at_least": 0}, source="debian"
    )
    claims.measure("b", 1.0, source="npm")
    claims.measure("a", 1.0)
    records = claims.records()
    assert [record["id"] for record in records] == ["a", "p", "b"]
    assert [r.get("source") for r in records] == ["debian", None, "npm"]
    assert records[1] == {
        "id": "p",
        "measured": None,
        "stderr": None,
        "status": "calibrated",
    }


def test_a_declared_claim_with_a_criterion_can_be_measured_on_other_data(claimed):
    claims = claimed({"id": "p", "declared": "calibrated", "at_least": 0})
    assert claims.records()[0]["status"] == "calibrated"
    assert claims.measure("p", 1.0, source="wikipedia") == "holds"
    assert [record["status"] for record in claims.records()] == ["holds"]


def test_parameters_are_those_of_the_parameters_cell(checkout, claimed):
    checkout.notebook("a/fig1_x")
    checkout.write("notebooks/paper.yaml", "a/fig1: {paper: {n: 5}}")
    given = {"rates": [3], "n": 5, "seed": None, "other": 7, "output_dir": "x"}
    claims = claimed({"id": "x", "at_least": 0}, namespace=given)
    assert list(claims.parameters.items()) == [("n", 5), ("rates", [3])], "sorted"
    scale = claims.table().data.splitlines()[0]
    assert scale.endswith("with rates = [3] (paper scale: [0.5, 1.0]).")
    same = Claims("a/fig1", {"n": 5})
    assert same.table().data.startswith("Measured at paper scale.\n")


# ---- the table in a notebook


def test_table_sets_this_run_beside_the_runs_at_paper_scale(checkout, claimed):
    claims = claimed({"id": "one", "at_least": 1.0, "says": "A | B."})
    claims.measure("one", Measured(2.0, 0.123))
    row = "| A &#124; B. (a ratio; `one`) | at least 1 | 2.0 ± 0.1: holds |"
    unknown = f"{row} not built yet | not built yet |"
    assert claims.table().data.splitlines()[4] == unknown
    checkout.settings(a_fig1={"free": {"n": {"ours": 5}}})
    checkout.built("a/fig1", one=3.0)
    assert claims.table().data.splitlines()[4] == f"{row} holds |  |"
    checkout.robust(
        "a/fig1",
        seeds=[{"one": 2.0}, {"one": 0.0}],
        readings=[("n", 7, {"one": -1.0}), ("n", 8, {"one": 3.0})],
    )
    lines = claims.table().data.splitlines()
    assert lines[4] == f"{row} varies | ◐○● 1 of 3. {DECIDES} |"
    assert "on the border; ±" in lines[-1], "the words are explained"


DECIDES = "`n` decides: holds with 8; differs with 7"


@pytest.mark.parametrize(
    ("here", "value", "status"),
    [
        (2.0, 0.0, "differs (too few runs or crawls here)"),
        (0.0, 2.0, "holds (too few runs or crawls here)"),
        (2.0, 2.0, "holds"),
        (2.0, Measured(1.0, 0.1), "on the border"),
        ((1.0, 0.1), 2.0, "holds"),
        (2.0, math.nan, "not measured"),
    ],
)
def test_a_run_that_says_the_opposite_is_said_to_be_too_small(
    checkout, claimed, here, value, status
):
    claims = claimed({"id": "one", "at_least": 1.0})
    claims.measure("one", value)
    checkout.built("a/fig1", one=here)
    row = claims.table().data.splitlines()[4]
    assert row.split(" | ")[2].partition(": ")[2] == status


def test_the_verdict_is_shown_with_the_fraction_the_data_and_a_sentence(checkout):
    text = """
fig1:
  data: stand-in
  sentence: It is.
  claims: [{id: one, at_least: 1}, {id: two, at_least: 1}]
fig2: {claims: [{id: one, at_least: 1}]}
fig3: {sentence: It is., claims: [{id: one, at_least: 1, ours: true}]}
"""
    checkout.write("notebooks/b/claims.yaml", text)
    checkout.built("b/fig1", one=2.0, two=0.0)
    checkout.built("b/fig3", one=2.0)
    shown = [ledger.verdict(f"b/fig{number}").data for number in (1, 2, 3)]
    assert shown == [
        "**In part: 1 of 2 hold (data: stand-in)**. It is.",
        "**Not built**. ",
        "**1 of 1 claims of ours hold**. It is.",
    ]


@pytest.mark.parametrize(
    ("measured", "stderr", "text"),
    [
        (1.0004, 0.0, "1.0004"),
        (1.0, 0.0, "1"),
        (1.15, 0.0342, "1.15 ± 0.03"),
        (0.123456, 0.0123, "0.12 ± 0.01"),
        (0.000845, 4e-5, "0.00085 ± 0.00004"),
        (943.2, 12.3, "943 ± 12"),
        (0.5, None, "0.5"),
        (None, None, "-"),
        (0.916667, 1.12e-17, "0.91667"),  # all runs agree, and their mean rounds
    ],
)
def test_numbers_are_written_with_the_digits_that_are_known(measured, stderr, text):
    assert ledger.measurement({"measured": measured, "stderr": stderr}) == text


# ---- standard errors


def _draws(rng, n_repetitions, n):
    """Estimates and a reference, of which a part of the noise is shared."""
    shared, own, other = rng.standard_normal((3, n_repetitions, n))
    return 5.3 + 1.0 * shared + 0.8 * own, 5.0 + 0.7 * shared + 0.4 * other


N_REPETITIONS, N = 4000, 500
# The spread over repetitions is known to 1/sqrt(2 n_repetitions) = 1.1%; five
# of these, and 5/n for the second-order bias of the delta method (the relative
# bias of a variance of n values is of order 1/n).
TOLERANCE = 5 / math.sqrt(2 * N_REPETITIONS) + 5 / N


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "true"),
    [
        (lambda a, b: ledger.mean(a - b), 0.3),
        (lambda a, b: ledger.rms_ratio(a, b, 5.0), math.sqrt((0.09 + 1.64) / 0.65)),
        (lambda a, b: ledger.rms_ratio(b, a, 5.0), math.sqrt(0.65 / (0.09 + 1.64))),
        (lambda a, b: ledger.sd_ratio(a, b), math.sqrt(1.64 / 0.65)),
        (lambda a, b: ledger.sd_ratio(b, a + 3.0), math.sqrt(0.65 / 1.64)),
        (lambda a, b: ledger.mean(ledger.ratio_per_run(a, b)), 5.3 / 5.0),
        (lambda a, b: ledger.mean(ledger.ratio_per_run(b, a)), 5.0 / 5.3),
    ],
    ids=[
        "mean",
        "rms_ratio",
        "rms_ratio inverse",
        "sd_ratio",
        "sd_ratio inverse",
        "ratio_per_run",
        "ratio_per_run inverse",
    ],
)
def test_standard_error_is_the_spread_over_repetitions(statistic, true):
    results = [
        statistic(a, b)
        for a, b in zip(
            *_draws(np.random.default_rng(1), N_REPETITIONS, N), strict=True
        )
    ]
    measured = np.array([result.measured for result in results])
    stderr = np.array([result.stderr for result in results])
    spread = measured.std(ddof=1)
    assert np.mean(stderr) == pytest.approx(spread, rel=TOLERANCE)
    # five standard errors of the mean over repetitions, and the second-order
    # bias of a ratio, below 1/n of it
    assert measured.mean() == pytest.approx(
        true, abs=5 * spread / math.sqrt(N_REPETITIONS) + true / N
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "statistic",
    [lambda a, b: ledger.rms_ratio(a, b, 5.0), ledger.sd_ratio],
    ids=["rms_ratio", "sd_ratio"],
)
def test_standard_error_against_a_bootstrap_with_heavy_tails(statistic):
    """One sample, resampled in pairs.

    The bootstrap with B samples is off by 1/sqrt(2 B), the delta method by the
    order of kurtosis/n. The kurtosis of the square of a centred exponential is
    (14833 - 81)/64 = 230.
    """
    rng = np.random.default_rng(2)
    n, n_bootstrap = 4000, 2000
    noise = rng.exponential(size=(2, n))
    a, b = 5 + noise[0] - 1, 5 + 0.5 * (noise[0] + noise[1] - 2)
    picks = rng.integers(n, size=(n_bootstrap, n))
    spread = np.std([statistic(a[i], b[i]).measured for i in picks], ddof=1)
    assert statistic(a, b).stderr == pytest.approx(
        spread, rel=5 / math.sqrt(2 * n_bootstrap) + 230 / n
    )


def test_mean_of_known_values():
    mean, stderr, median = ledger.mean([1, 2, 3, 14])
    assert mean == 5.0
    assert stderr == pytest.approx(math.sqrt(110 / 3) / 2, rel=1e-15)
    assert median == 2.5
    assert ledger.mean(np.full(7, 0.25)) == Measured(0.25, 0.0, 0.25)


def test_ratio_of_a_method_with_itself_has_no_error():
    values = np.random.default_rng(3).normal(5, 1, 50)
    assert ledger.rms_ratio(values, values, 5.0) == Measured(1.0)
    np.testing.assert_allclose(ledger.ratio_per_run(2 * values, values), 2, rtol=1e-15)
    scaled = ledger.sd_ratio(3 * values + 1, values)
    assert scaled.measured == pytest.approx(3, rel=1e-12)
    assert scaled.stderr == pytest.approx(0, abs=1e-12)


def test_what_runs_do_not_give_is_not_measured():
    one = Measured(1.0, math.inf, 1.0)
    assert ledger.mean([1.0]) == one, "one run has no standard error"
    for found in (
        ledger.mean([]),
        ledger.rms_ratio([1.0, 2.0], [3.0, 3.0], 3.0),  # no error to compare with
        ledger.rms_ratio([1.0, math.inf], [2.0, 3.0], 3.0),
    ):
        assert math.isnan(found.measured)
