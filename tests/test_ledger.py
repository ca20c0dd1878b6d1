"""The ledger: statuses at the border, what is refused, standard errors."""

import json
import math

import numpy as np
import pytest

from paperlib.repro import ledger
from paperlib.repro.ledger import Ledger

SAYS = {"says": "what the paper says", "where": "section 1"}


def status(measured, stderr=0.0, **criterion):
    return Ledger("a/fig1").claim(
        "x", **SAYS, measured=measured, stderr=stderr, **criterion
    )


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
        ({"within": (-4.0, 4.0)}, 2.5, "holds"),
        ({"within": (-4.0, 4.0)}, up(2.5), "too few runs"),
        ({"within": (-4.0, 4.0)}, -2.5, "holds"),
        ({"within": (-4.0, 4.0)}, down(-2.5), "too few runs"),
        ({"within": (-4.0, 4.0)}, 5.5, "too few runs"),
        ({"within": (-4.0, 4.0)}, up(5.5), "differs"),
        ({"within": (-4.0, 4.0)}, -5.5, "too few runs"),
        ({"within": (-4.0, 4.0)}, down(-5.5), "differs"),
        (
            {"within": (-1.0, 1.0)},
            0.0,
            "too few runs",
        ),  # a margin narrower than the uncertainty can not be confirmed
        ({"within": (-1.5, 1.5)}, 0.0, "holds"),
    ],
)
def test_status_at_the_border(criterion, measured, expected):
    assert status(measured, 0.5, **criterion) == expected


@pytest.mark.parametrize(
    ("criterion", "inside", "outside"),
    [
        ({"at_least": 1.0}, 1.0, down(1.0)),
        ({"at_most": 1.0}, 1.0, up(1.0)),
        ({"within": (1.0, 2.0)}, 1.0, down(1.0)),
        ({"within": (1.0, 2.0)}, 2.0, up(2.0)),
        ({"within": (1.0, 1.0)}, 1.0, up(1.0)),
    ],
)
def test_without_sampling_error_it_holds_or_differs(criterion, inside, outside):
    assert status(inside, 0.0, **criterion) == "holds"
    assert status(outside, 0.0, **criterion) == "differs"


@pytest.mark.parametrize(
    "criterion", [{"within": (2.0, 1.0)}, {"at_least": np.nan}, {"at_most": np.nan}]
)
def test_a_criterion_that_nothing_meets_is_refused(criterion):
    with pytest.raises(
        ValueError, match=r"claim .*: the criterion must be a number, or low below high"
    ):
        status(1.0, 0.0, **criterion)


def test_declared_and_measured_exclude_each_other():
    with pytest.raises(
        ValueError,
        match="nothing measured, got 'calibrated' with reason 'ours' and measured",
    ):
        Ledger("a/fig1").claim(
            "x", **SAYS, measured=1.0, declared="calibrated", reason="ours"
        )


def test_an_empty_ledger_prints():
    assert str(Ledger("a/fig1")) == "no claims"


def test_ratio_to_a_perfect_reference_is_refused():
    with pytest.raises(ValueError, match="reference must have an error in some run"):
        ledger.rms_ratio([1.0, 2.0], [3.0, 3.0], 3.0)


def test_status_is_that_of_the_unrounded_numbers():
    claims = Ledger("a/fig1")
    assert claims.claim("x", **SAYS, measured=0.99999999, at_least=1.0) == "differs"
    assert claims.claims[0]["measured"] == 1.0, "six digits are recorded"
    assert (
        claims.claim("y", **SAYS, measured=1.23456789, stderr=0.0123456, at_least=1.0)
        == "holds"
    )
    assert (claims.claims[1]["measured"], claims.claims[1]["stderr"]) == (
        1.23457,
        0.0123,
    )


# ---- what is refused


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_measured_must_be_finite(value):
    with pytest.raises(ValueError, match="measured and stderr must be finite"):
        status(value, 0.1, at_least=0.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1])
def test_stderr_must_be_finite_and_not_negative(value):
    with pytest.raises(ValueError, match=f"stderr non-negative, got 1.0 and {value}"):
        status(1.0, value, at_least=0.0)


@pytest.mark.parametrize(
    "criteria",
    [
        {},
        {"at_least": 0.0, "at_most": 1.0},
        {"at_least": 0.0, "within": (0, 1)},
        {"at_most": 0.0, "within": (0, 1)},
    ],
)
def test_exactly_one_criterion(criteria):
    with pytest.raises(ValueError, match="exactly one of at_least, at_most, within"):
        status(1.0, **criteria)


def test_names_are_unique():
    claims = Ledger("a/fig1")
    claims.claim("x", **SAYS, measured=1, at_least=0)
    with pytest.raises(ValueError, match="name must be new in a/fig1, got 'x' again"):
        claims.claim("x", **SAYS, measured=2, at_least=0)
    assert [c["measured"] for c in claims.claims] == [1]


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ("calibrated", None),
        ("calibrated", ""),
        ("holds", "we say so"),
        ("differs", "we say so"),
        ("", "we say so"),
    ],
)
def test_declared_must_be_one_of_two_with_a_reason(declared, reason):
    claims = Ledger("a/fig1")
    with pytest.raises(
        ValueError,
        match=r"declared must be one of \('calibrated', 'not testable'\), with a rea",
    ):
        claims.claim("x", **SAYS, declared=declared, reason=reason)
    assert claims.claims == []


@pytest.mark.parametrize("declared", ["calibrated", "not testable"])
def test_declared(declared):
    claims = Ledger("a/fig1")
    assert (
        claims.claim(
            "x", **SAYS, declared=declared, reason="private data", source="none"
        )
        == declared
    )
    assert claims.claims == [
        {
            "name": "x",
            **SAYS,
            "measured": None,
            "stderr": None,
            "criterion": "",
            "status": declared,
            "source": "none",
            "reason": "private data",
        }
    ]


def test_reason_is_kept_only_where_it_differs():
    claims = Ledger("a/fig1")
    for name, measured, stderr in (
        ("holds", 2.0, 0.0),
        ("differs", 0.0, 0.0),
        ("too few runs", 1.0, 1.0),
    ):
        assert (
            claims.claim(
                name,
                **SAYS,
                measured=measured,
                stderr=stderr,
                at_least=1.0,
                reason="another clock",
            )
            == name
        )
    assert [c["reason"] for c in claims.claims] == [None, "another clock", None]


def test_parameters_are_the_scalars_of_the_namespace():
    scalars = {"n_runs": 3, "rate": 0.5, "source": "debian", "exact": True}
    others = {
        "rates": [1, 2],
        "np": np,
        "array": np.ones(2),
        "In": ["a"],
        "function": len,
        "none": None,
        "_": 7,
        "__name__": "__main__",
    }
    namespace = {**scalars, **others, "output_dir": "/tmp/x"}
    assert Ledger("a/fig1", namespace).parameters == {
        "exact": True,
        "n_runs": 3,
        "rate": 0.5,
        "source": "debian",
    }
    assert list(Ledger("a/fig1", namespace).parameters) == [
        "exact",
        "n_runs",
        "rate",
        "source",
    ], "sorted"
    assert Ledger("a/fig1").parameters == {}


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
    measured, stderr = (
        np.array([r[key] for r in results]) for key in ("measured", "stderr")
    )
    spread = measured.std(ddof=1)
    assert np.mean(stderr) == pytest.approx(spread, rel=TOLERANCE)
    # five standard errors of the mean over repetitions, and the second-order
    # bias of a ratio, below 1/n of it
    assert measured.mean() == pytest.approx(
        true, abs=5 * spread / math.sqrt(N_REPETITIONS) + true / N
    )


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
    spread = np.std([statistic(a[i], b[i])["measured"] for i in picks], ddof=1)
    assert statistic(a, b)["stderr"] == pytest.approx(
        spread, rel=5 / math.sqrt(2 * n_bootstrap) + 230 / n
    )


def test_mean_of_known_values():
    assert ledger.mean([1, 2, 3, 4]) == {
        "measured": 2.5,
        "stderr": pytest.approx(math.sqrt(5 / 3) / 2, rel=1e-15),
    }
    assert ledger.mean(np.full(7, 0.25)) == {"measured": 0.25, "stderr": 0.0}


def test_ratio_of_a_method_with_itself_has_no_error():
    values = np.random.default_rng(3).normal(5, 1, 50)
    assert ledger.rms_ratio(values, values, 5.0) == {"measured": 1.0, "stderr": 0.0}
    scaled = ledger.sd_ratio(3 * values + 1, values)
    assert scaled["measured"] == pytest.approx(3, rel=1e-12)
    assert scaled["stderr"] == pytest.approx(0, abs=1e-12)


# ---- pages


def _records(folder):
    for figure, n_differ in (("b/fig1", 0), ("a/fig2", 2), ("a/fig1", 1)):
        claims = Ledger(figure)
        claims.claim("good", **SAYS, measured=2.0, stderr=0.123, at_least=1.0)
        claims.claim("open", **SAYS, measured=1.0, stderr=1.0, at_most=1.0)
        claims.claim("private", **SAYS, declared="not testable", reason="private data")
        claims.claim(
            "extra",
            **SAYS | {"says": "ours: what we say"},
            measured=n_differ,
            at_most=1.0,
        )
        for i in range(n_differ):
            claims.claim(
                f"bad{i}",
                **SAYS,
                measured=0.0,
                within=(1, 2),
                source="debian",
                reason="another clock",
            )
        path = folder / f"{figure}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"figure": figure, "claims": claims.claims}))
    (folder / "CLAIMS.md").write_text("not a record")
    (folder / "a/fig1.png").write_text("nor this")
    return ledger.read_all(folder)


def test_read_all_is_sorted_and_reads_records_only(tmp_path):
    assert list(_records(tmp_path)) == ["a/fig1", "a/fig2", "b/fig1"]
    assert ledger.read_all(tmp_path / "nowhere") == {}


def test_summary_counts(tmp_path):
    assert ledger.summary(_records(tmp_path)).splitlines() == [
        "| paper | figures | holds | differs | too few runs | calibrated "
        "| not testable | ours that hold |",
        "|---|---|---|---|---|---|---|---|",
        "| a | 2 | 2 | 3 | 2 | 0 | 2 | 1 of 2 |",
        "| b | 1 | 1 | 0 | 1 | 0 | 1 | 1 of 1 |",
    ]
    assert len(ledger.summary({}).splitlines()) == 2


def test_claims_page_lists_every_claim_with_its_reason(tmp_path):
    records = _records(tmp_path)
    page = ledger.claims_page(records)
    assert ledger.summary(records) in page
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## a/fig1",
        "## a/fig2",
        "## b/fig1",
    ]
    rows = [line for line in page.splitlines() if "(`" in line]
    assert len(rows) == sum(len(r["claims"]) for r in records.values()) == 15
    for row in (
        "(`good`) | section 1 | 2 ± 0.1 | at least 1 | **holds** | simul",
        "(`bad1`) | section 1 | 0 | within 1 to 2 | **differs**: another clock | deb",
        "(`private`) | section 1 |  |  | **not testable**: private data | simul",
    ):
        assert any(line.startswith(f"| what the paper says {row}") for line in rows)
    assert {line.count("|") for line in rows} == {7}


def test_printed_table():
    claims = Ledger("a/fig1")
    claims.claim("one", **SAYS, measured=2.0, stderr=0.123, at_least=1.0)
    claims.claim("another", **SAYS, measured=1.0, stderr=1.0, at_most=1.0)
    claims.claim("private", **SAYS, declared="not testable", reason="private data")
    assert str(claims).splitlines() == [
        "holds         one      2 ± 0.1  at least 1",
        "too few runs  another  1 ± 1    at most 1",
        "not testable  private",
    ]


def test_a_number_does_not_pass_for_its_limit():
    claims = Ledger("a/fig1")
    claims.claim("above", **SAYS, measured=1.0004, at_most=1.0, reason="because")
    claims.claim("equal", **SAYS, measured=1.0, at_most=1.0)
    assert [line.split()[2] for line in str(claims).splitlines()] == ["1.0004", "1"]


def test_one_run_has_no_standard_error():
    with pytest.raises(
        ValueError, match="values must be those of at least two runs, got 1"
    ):
        ledger.mean([1.0])
