"""Claims: statuses at the border, what is refused, standard errors, pages."""

import json
import math
import re

import numpy as np
import pytest
import yaml

from paperfigs import ledger, project, report
from paperfigs.ledger import Claims, Measured

SAYS = {"says": "What the paper says.", "where": "section 1", "measured": "a ratio"}


@pytest.fixture
def clone(tmp_path):
    """Write claims of figure a/fig1 into a clone of the project; returns it."""

    def write(*entries, figure="a/fig1", about=None):
        paper, name = figure.split("/")
        path = tmp_path / "notebooks" / paper / "claims.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = yaml.safe_load(path.read_text()) if path.exists() else {}
        content[name] = [SAYS | entry for entry in entries]
        path.write_text(yaml.safe_dump(content | ({"about": about} if about else {})))
        (tmp_path / "notebooks" / "paper.yaml").write_text("{}")
        return tmp_path

    return write


@pytest.fixture
def status(clone):
    """The status of one measurement by one criterion."""

    def judge(measured, stderr=0.0, **criterion):
        root = clone({"id": "x", **criterion})
        return Claims("a/fig1", root=root).measure("x", Measured(measured, stderr))

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
        ({"at_least": 1.0}, down(2.5), "too few runs"),
        ({"at_least": 1.0}, 1.0, "too few runs"),
        ({"at_least": 1.0}, -0.5, "too few runs"),
        ({"at_least": 1.0}, down(-0.5), "differs"),
        ({"at_most": 1.0}, -0.5, "holds"),
        ({"at_most": 1.0}, up(-0.5), "too few runs"),
        ({"at_most": 1.0}, 2.5, "too few runs"),
        ({"at_most": 1.0}, up(2.5), "differs"),
        ({"within": [-4.0, 4.0]}, 2.5, "holds"),
        ({"within": [-4.0, 4.0]}, up(2.5), "too few runs"),
        ({"within": [-4.0, 4.0]}, -2.5, "holds"),
        ({"within": [-4.0, 4.0]}, down(-2.5), "too few runs"),
        ({"within": [-4.0, 4.0]}, 5.5, "too few runs"),
        ({"within": [-4.0, 4.0]}, up(5.5), "differs"),
        ({"within": [-4.0, 4.0]}, -5.5, "too few runs"),
        ({"within": [-4.0, 4.0]}, down(-5.5), "differs"),
        (
            {"within": [-1.0, 1.0]},
            0.0,
            "too few runs",
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


def test_the_status_is_that_of_the_unrounded_numbers(clone):
    claims = Claims("a/fig1", root=clone({"id": "x", "at_least": 1.0}))
    assert claims.measure("x", 0.99999999) == "differs"
    assert claims.records()[0]["measured"] == 1.0, "six digits are recorded"
    assert claims.measure("x", Measured(1.23456789, 0.0123456)) == "holds"
    (record,) = claims.records()
    assert (record["measured"], record["stderr"]) == (1.23457, 0.0123)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_not_measured(status, value):
    assert status(value, 0.1, at_least=0.0) == "not measured"
    assert status(1.0, math.nan, at_least=0.0) == "not measured"


def test_without_a_known_error_there_are_too_few_runs(status):
    assert status(1.0, math.inf, at_least=0.0) == "too few runs"


# ---- what is refused


def test_a_negative_standard_error_is_refused(status):
    with pytest.raises(ValueError, match="'x' of a/fig1: stderr must not be negative"):
        status(1.0, -0.1, at_least=0.0)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, r"exactly one of at_least, at_most, within, got \[\]"),
        ({"at_least": 0.0, "at_most": 1.0}, "exactly one of"),
        ({"within": [2.0, 1.0]}, "a criterion that can be met, got "),
        ({"within": 1.0}, "a criterion that can be met, got "),
        ({"at_least": math.nan}, "a criterion that can be met, got "),
        ({"at_most": "one"}, "a criterion that can be met, got "),
        (
            {"at_most": 1.0, "critereon": 2},
            "no other keys than the known",
        ),
        ({"at_most": 1.0, "says": ""}, "a text for says and where"),
        ({"declared": "calibrated"}, "a reason, to be declared"),
        ({"declared": "holds", "reason": "We say so."}, "to be declared one of"),
    ],
)
def test_a_claim_that_nothing_can_judge_is_refused(clone, entry, message):
    with pytest.raises(project.BuildError, match=rf"'x' of a/fig1 .*{message}"):
        project.protocol("a/fig1", clone({"id": "x", **entry}))


def test_ids_are_unique(clone):
    root = clone({"id": "x", "at_least": 0}, {"id": "x", "at_most": 0})
    with pytest.raises(project.BuildError, match="an id of its own"):
        project.protocol("a/fig1", root)


def test_what_is_not_yaml_is_named(clone):
    path = clone({"id": "x", "at_least": 0}) / "notebooks/a/claims.yaml"
    for text in ("fig1: [", "- a list"):
        path.write_text(text)
        with pytest.raises(project.BuildError, match=r"claims\.yaml"):
            project.protocol("a/fig1", path.parents[2])


def test_an_unknown_or_declared_claim_cannot_be_measured(clone):
    private = {"id": "p", "declared": "not testable", "reason": "Private data."}
    claims = Claims("a/fig1", root=clone({"id": "x", "at_least": 0}, private))
    for name in ("y", "p"):
        with pytest.raises(ValueError, match=f"got '{name}'; there are x, p"):
            claims.measure(name, 1.0)


def test_a_declared_claim_with_a_criterion_can_be_measured_on_other_data(clone):
    entry = {"id": "p", "declared": "calibrated", "reason": "Ours.", "at_least": 0}
    claims = Claims("a/fig1", root=clone(entry))
    assert claims.records()[0]["status"] == "calibrated"
    assert claims.measure("p", 1.0, source="wikipedia") == "holds"
    assert [record["status"] for record in claims.records()] == ["holds"]


# ---- records


def test_a_measurement_replaces_an_earlier_one(clone):
    claims = Claims("a/fig1", root=clone({"id": "x", "at_least": 0}))
    assert [claims.measure("x", 1.0), claims.measure("x", -1.0)] == ["holds", "differs"]
    assert [record["measured"] for record in claims.records()] == [-1.0]


def test_records_are_in_the_order_of_the_protocol(clone):
    private = {"id": "p", "declared": "calibrated", "reason": "Ours."}
    root = clone({"id": "a", "at_least": 0}, private, {"id": "b", "at_least": 0})
    claims = Claims("a/fig1", root=root)
    claims.measure("b", 1.0, source="debian")
    claims.measure("a", 1.0)
    records = claims.records()
    assert [record["id"] for record in records] == ["a", "p", "b"]
    assert [r.get("source") for r in records] == ["simulation", None, "debian"]
    assert records[1] == {
        "id": "p",
        "measured": None,
        "stderr": None,
        "status": "calibrated",
    }


def test_a_family_has_one_entry_and_a_case_can_override_it(clone):
    root = clone(
        {"id": "loss-{p}", "says": "It loses at {p}.", "at_least": 0.5},
        {"id": "loss-0.2", "says": "It wins at 0.2.", "at_most": 0.5},
    )
    claims = Claims("a/fig1", root=root)
    found = {p: claims.measure("loss-{p}", 0.4, p=p) for p in (0.1, 0.2, 1000.0)}
    assert found == {0.1: "differs", 0.2: "holds", 1000.0: "differs"}
    assert [record["id"] for record in claims.records()] == [
        "loss-0.1",
        "loss-1000",
        "loss-0.2",
    ]
    says = [row[0] for row in claims.table().rows]
    assert says == ["It loses at 0.1.", "It loses at 1,000.", "It wins at 0.2."]


def test_parameters_are_those_of_the_parameters_cell(clone):
    root = clone({"id": "x", "at_least": 0})
    source = "n = 1\nrates = [1, 2]\nkind = None\noutput_dir = None"
    cell = {
        "cell_type": "code",
        "metadata": {"tags": ["parameters"]},
        "source": source,
    }
    text = {"cell_type": "markdown", "metadata": {}, "source": "# A title"}
    notebook = json.dumps({"cells": [text, cell]})
    (root / "notebooks" / "a" / "fig1_name.ipynb").write_text(notebook)
    (root / "notebooks" / "paper.yaml").write_text("a/fig1: {n: 5}")
    given = {"rates": [3], "n": 5, "kind": None, "other": 7, "output_dir": "x"}
    claims = Claims("a/fig1", given, root=root)
    assert claims.parameters == {"n": 5, "rates": [3]}
    assert list(claims.parameters) == ["n", "rates"], "sorted"
    assert claims.table().scale.endswith(": rates = [3] (paper scale: [1, 2]).")
    same = Claims("a/fig1", {"n": 5, "rates": [1, 2]}, root=root)
    assert same.table().scale == "Measured at paper scale."


# ---- the table in a notebook


def test_table_sets_this_run_beside_the_record(clone):
    root = clone(
        {"id": "one", "at_least": 1.0, "says": "A < B."},
        {"id": "another", "at_most": 1.0, "ours": True},
        {"id": "case-{p}", "at_most": 1.0},
    )
    (root / "figures" / "a").mkdir(parents=True)
    record = {"claims": [{"id": "one", "status": "differs"}]}
    (root / "figures" / "a" / "fig1.json").write_text(json.dumps(record))
    claims = Claims("a/fig1", root=root)
    claims.measure("one", Measured(2.0, 0.123))
    table = claims.table()
    assert str(table).splitlines() == [
        "Measured at paper scale.",
        "holds         one      at least 1  2.0 ± 0.1",
        "not measured  another  at most 1   -",
    ], "a family without a case has no row"
    page = table._repr_html_()
    assert "A &lt; B.<br><small>a ratio (<code>one</code>)" in page
    assert ">holds</td><td style='text-align: left'>differs</td>" in page
    assert (
        ">not measured</td><td style='text-align: left'>not in the paper</td>" in page
    )
    assert "too few runs: the runs" in page, "the words are explained"


@pytest.mark.parametrize(
    ("criterion", "measured", "stderr", "text"),
    [
        ({"at_most": 1.0}, 1.0004, 0.0, "1.0004"),
        ({"at_most": 1.0}, 1.0, 0.0, "1"),
        # 1.15 - 3 * 0.03 would be above the limit: it would differ.
        ({"within": [0.95, 1.05]}, 1.15, 0.0342, "1.150 ± 0.034"),
        ({"at_least": 0.0}, 0.123456, 0.0123, "0.12 ± 0.01"),
        ({"at_least": 0.0}, 0.000845, 4e-5, "0.00085 ± 0.00004"),
        ({"at_least": 0.0}, 943.2, 12.3, "943 ± 12"),
        ({"at_least": 0.0}, 0.5, math.inf, "0.5"),
        # all runs have the same value, and the mean of them rounds
        ({"at_least": 0.75}, 0.916667, 1.12e-17, "0.917"),
    ],
)
def test_numbers_are_written_as_their_status_reads(
    clone, criterion, measured, stderr, text
):
    claims = Claims("a/fig1", root=clone({"id": "x", **criterion}))
    claims.measure("x", Measured(measured, stderr))
    assert ledger.measurement(claims.records()[0]) == text


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
    ],
    ids=["mean", "rms_ratio", "rms_ratio inverse", "sd_ratio", "sd_ratio inverse"],
)
def test_standard_error_is_the_spread_over_repetitions(statistic, true):
    results = [
        statistic(a, b)
        for a, b in zip(
            *_draws(np.random.default_rng(1), N_REPETITIONS, N), strict=True
        )
    ]
    measured, stderr = np.array(results).T
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
    assert ledger.mean([1, 2, 3, 4]) == pytest.approx(
        (2.5, math.sqrt(5 / 3) / 2), rel=1e-15
    )
    assert ledger.mean(np.full(7, 0.25)) == (0.25, 0.0)


def test_ratio_of_a_method_with_itself_has_no_error():
    values = np.random.default_rng(3).normal(5, 1, 50)
    assert ledger.rms_ratio(values, values, 5.0) == (1.0, 0.0)
    scaled = ledger.sd_ratio(3 * values + 1, values)
    assert scaled.measured == pytest.approx(3, rel=1e-12)
    assert scaled.stderr == pytest.approx(0, abs=1e-12)


def test_what_runs_do_not_give_is_not_measured():
    assert ledger.mean([1.0]) == (1.0, math.inf), "one run has no standard error"
    for found in (
        ledger.mean([]),
        ledger.rms_ratio([1.0, 2.0], [3.0, 3.0], 3.0),  # no error to compare with
        ledger.rms_ratio([1.0, math.inf], [2.0, 3.0], 3.0),
    ):
        assert math.isnan(found.measured)


# ---- pages


@pytest.fixture
def records(clone):
    for figure, n_differ in (("b/fig1", 0), ("a/fig2", 2), ("a/fig1", 1)):
        root = clone(
            {"id": "good", "at_least": 1.0},
            {"id": "open", "at_most": 1.0},
            {"id": "private", "declared": "not testable", "reason": "Private data."},
            {"id": "extra", "at_most": 1.0, "ours": True, "reason": "Ours fails."},
            {"id": "bad{i}", "within": [1, 2], "reason": "Another clock, {i}."},
            figure=figure,
            about="What it asks.",
        )
        claims = Claims(figure, root=root)
        claims.measure("good", Measured(2.0, 0.123))
        claims.measure("open", Measured(1.0, 1.0))
        claims.measure("extra", n_differ)
        for i in range(n_differ):
            claims.measure("bad{i}", 0.0, i=i, source="debian")
        path = root / "figures" / f"{figure}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {"figure": figure, "claims": claims.records()}
        path.write_text(json.dumps(record))
    (root / "figures" / "CLAIMS.md").write_text("not a record")
    (root / "figures" / "a" / "fig1.png").write_text("nor this")
    return report.read_all(root)


def test_records_are_read_with_the_texts_of_their_claims(records, tmp_path):
    assert list(records) == ["a/fig1", "a/fig2", "b/fig1"]
    claims = {claim["id"]: claim for claim in records["a/fig2"]["claims"]}
    assert claims["bad1"]["reason"] == "Another clock, 1."
    assert claims["extra"]["reason"] == "Ours fails."
    assert claims["good"]["says"] == SAYS["says"]
    assert records["a/fig1"]["claims"][3]["reason"] == "", "it holds there"
    assert report.read_all(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("damage", ["{}", "[", '{"figure": "a/fig1", "claims": [{}]}'])
def test_what_is_no_record_is_named(records, tmp_path, damage):
    (tmp_path / "figures/a/fig1.json").write_text(damage)
    with pytest.raises(ValueError, match=r"fig1.json must be the record of a figure"):
        report.read_all(tmp_path)


def test_a_record_of_other_claims_asks_for_a_build(records, clone, tmp_path):
    clone({"id": "renamed", "at_least": 1.0})
    with pytest.raises(ValueError, match=r"KeyError.*builds it anew"):
        report.read_all(tmp_path)


def test_summary_counts(records):
    assert report.summary(records).splitlines() == [
        "| paper | figures | holds | differs | too few runs | calibrated "
        "| not testable | ours that hold |",
        "|---|---|---|---|---|---|---|---|",
        "| a | 2 | 2 | 3 | 2 | 0 | 2 | 1 of 2 |",
        "| b | 1 | 1 | 0 | 1 | 0 | 1 | 1 of 1 |",
    ]
    assert len(report.summary({}).splitlines()) == 2


def test_claims_page_is_a_report_of_every_claim(records, tmp_path):
    page = report.claims_page(records, tmp_path)
    assert report.summary(records) in page
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## a",
        "## b",
    ]
    assert page.count("What it asks.") == 2
    assert '\n- <a id="a-fig1-good"></a>' in page
    page = re.sub(r'<a id="[^"]+"></a>', "", page)
    items = [line for line in page.splitlines() if line.startswith("- ")]
    assert len(items) == sum(len(r["claims"]) for r in records.values()) == 15
    said = "- What the paper says."
    assert items[0] == (
        f"{said} *A ratio:* 2.0 ± 0.1; at least 1. **Holds**. "
        "(section 1; simulation; `good`)"
    )
    assert f"{said} **Not testable**: Private data. (section 1; `private`)" in items
    assert any("**Differs**: Another clock, 1. (section 1; debian" in i for i in items)
    assert f"{said} *(ours)* *A ratio:* 1; at most 1. **Holds**." in page
