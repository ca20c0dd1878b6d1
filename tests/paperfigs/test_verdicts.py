"""Verdicts: the status over seeds and readings, and the rule for a figure."""

import math

import pytest

from paperfigs import verdicts

AT_LEAST_1 = {"id": "one", "at_least": 1.0}


def runs(*values, stderr=0.0):
    """One measurement for each seed."""
    return [{"measured": value, "stderr": stderr} for value in values]


# ---- one run


@pytest.mark.parametrize(
    ("measured", "stderr", "claim", "expected"),
    [
        (2.5, 0.5, {"at_least": 1.0}, "holds"),
        (2.4, 0.5, {"at_least": 1.0}, "on the border"),
        (-0.6, 0.5, {"at_least": 1.0}, "differs"),
        (2.4, 0.5, {"within": [1.0, 4.0]}, "on the border"),
        (2.5, 0.5, {"within": [1.0, 4.0]}, "holds"),
        (5.6, 0.5, {"within": [1.0, 4.0]}, "differs"),
        (9.0, None, {"at_least": 1.0}, "on the border"),
        (9.0, math.inf, {"at_most": 1.0}, "on the border"),
        (None, None, {"at_least": 1.0}, "not measured"),
        (math.nan, 0.0, {"at_least": 1.0}, "not measured"),
        (9.0, math.nan, {"at_least": 1.0}, "not measured"),
        (9.0, 0.5, {"theirs": 9.1}, "number"),
        (None, None, {"theirs": 9.1}, "not measured"),
        (0.9, 0.0, {"theirs": 9.1, "at_least": 1.0}, "differs"),
    ],
)
def test_a_run_holds_or_differs_by_three_standard_errors(
    measured, stderr, claim, expected
):
    assert verdicts.status(measured, stderr, claim) == expected


# ---- seeds


@pytest.mark.parametrize(
    ("found", "stderr"),
    [
        (runs(1.0, 2.0, 3.0, 4.0), math.sqrt(5 / 3) / 2),  # the spread alone
        (runs(1.0, 2.0, 3.0, 4.0, stderr=1.0), math.sqrt(5 / 3) / 2),
        (runs(1.0, 2.0, 3.0, 4.0, stderr=6.0), 3.0),  # the errors within
        (runs(2.0, stderr=0.5), 0.5),
        (runs(2.0), 0.0),
        (runs(2.0, stderr=None), math.inf),
        (
            runs(2.0, stderr=3.0) + runs(2.1, stderr=1.0),
            math.sqrt(5.0 / 2.0),
        ),  # their root mean square
        (runs(2.0, 2.0, 2.0, 2.0, stderr=0.5), 0.5),  # the seed changes nothing
    ],
)
def test_the_error_of_the_mean_is_by_the_spread_or_within_whichever_is_larger(
    found, stderr
):
    joined = verdicts.over_seeds(found, AT_LEAST_1)
    values = [one["measured"] for one in found]
    assert joined["values"] == values
    assert joined["measured"] == sum(values) / len(values)
    assert joined["stderr"] == pytest.approx(stderr, rel=1e-14)


@pytest.mark.parametrize(
    ("found", "here"),
    [
        (runs(2.0, 2.1, 2.2, 2.1, 2.0), "holds"),
        (runs(0.5, 0.6, 0.5, 0.6, 0.5), "differs"),
        (runs(0.5, 2.5, 0.4, 2.6, 1.2), "varies"),  # the mean is on the border
        # By the mean alone these would hold, and differ.
        (runs(*[2.0] * 30, 0.99), "varies"),
        (runs(*[0.5] * 30, 1.01), "varies"),
        # A seed on the border says nothing.
        (runs(2.0, 2.1, 2.2) + runs(1.0, stderr=0.1), "varies"),
        (runs(*[2.0] * 30) + runs(0.99, stderr=0.1), "holds"),
        (runs(*[0.5] * 30) + runs(1.01, stderr=0.1), "differs"),
        # No seed alone meets the criterion by three of its errors; their mean does.
        (runs(1.2, 1.21, 1.2, 1.19, stderr=0.1), "holds"),
        (runs(1.1, 1.11, 1.1, 1.09, stderr=0.1), "varies"),
        (runs(1.2, 1.2, 1.2, 1.2, stderr=0.1), "varies"),
        (runs(1.0), "holds"),
        (runs(0.999), "differs"),
        (runs(2.0, stderr=None), "varies"),
        ([], "not measured"),
    ],
)
def test_a_claim_varies_if_the_seed_decides(found, here):
    assert verdicts.over_seeds(found, AT_LEAST_1)["here"] == here


def test_medians_are_averaged_over_seeds_if_there_are_any():
    found = [{"measured": 1.0, "stderr": 0.0, "median": m} for m in (2.0, 4.0)]
    assert verdicts.over_seeds(found, AT_LEAST_1)["median"] == 3.0
    assert verdicts.over_seeds(runs(1.0, 2.0), AT_LEAST_1)["median"] is None
    assert verdicts.over_seeds([], AT_LEAST_1)["median"] is None


# ---- all runs of a figure


def test_without_a_build_there_is_nothing_to_assess(checkout):
    checkout.claims("a/fig1", AT_LEAST_1)
    checkout.robust("a/fig1", seeds=[{"one": 2.0}])
    assert verdicts.assess("a/fig1") == []
    assert verdicts.runs("a/fig2") == {"seeds": [], "readings": []}


def test_the_seeds_decide_and_without_them_the_build_does(checkout):
    private = {"id": "private", "declared": "open", "at_least": 1.0}
    hidden = {"id": "hidden", "declared": "calibrated"}
    checkout.claims("a/fig1", AT_LEAST_1, {"id": "two", "at_least": 1}, private, hidden)
    measured = {"one": 2.0, "two": (0.0, 0.1), "private": None, "hidden": None}
    checkout.built("a/fig1", **measured)
    assessed = {claim["id"]: claim for claim in verdicts.assess("a/fig1")}
    here = {name: claim["here"] for name, claim in assessed.items()}
    assert here == {
        "one": "holds",
        "two": "differs",
        "private": "open",
        "hidden": "calibrated",
    }
    assert assessed["one"]["values"] == [2.0]
    assert assessed["two"]["stderr"] == 0.1
    later = {"one": 0.5, "private": 3.0}
    checkout.robust("a/fig1", seeds=[later] * 5)
    assessed = {claim["id"]: claim for claim in verdicts.assess("a/fig1")}
    assert assessed["one"]["values"] == [0.5] * 5
    assert assessed["one"]["here"] == "differs"
    assert assessed["private"]["here"] == "holds", "other data were found"
    assert assessed["two"]["values"] == [0.0], "the seeds lack it"


@pytest.mark.parametrize("measured", [None, 5.0])
def test_a_number_that_no_criterion_judges_is_a_number_also_if_it_is_declared(
    checkout, measured
):
    declared = {"id": "two", "theirs": 4.0, "declared": "open"}
    judged = {"id": "three", "theirs": 4.0, "at_least": 6.0}
    checkout.claims("a/fig1", {"id": "one", "theirs": 4.0}, declared, judged)
    checkout.built("a/fig1", one=measured, two=measured, three=5.0)
    here = [claim["here"] for claim in verdicts.assess("a/fig1")]
    assert here == ["number", "number", "differs"]


@pytest.fixture
def read(checkout):
    """The claim after runs by several readings, and with our value of 2.0."""

    def assess(readings, ours=5, here=2.0):
        free = {"n": {"ours": ours, "others": [], "words": "Many."}}
        checkout.settings(a_fig1={"free": free})
        checkout.claims("a/fig1", AT_LEAST_1)
        checkout.built("a/fig1", one=here)
        found = [("n", value, {"one": measured}) for value, measured in readings]
        checkout.robust("a/fig1", seeds=[{"one": here}] * 5, readings=found)
        (claim,) = verdicts.assess("a/fig1")
        return claim

    return assess


def test_a_reading_has_its_measurement_and_its_status(read):
    claim = read([(10, (0.5, 0.1)), (20, (1.1, 0.1)), (30, None)])
    assert claim["readings"] == {
        "n": {
            "10": {"id": "one", "measured": 0.5, "stderr": 0.1, "status": "differs"},
            "20": {
                "id": "one",
                "measured": 1.1,
                "stderr": 0.1,
                "status": "on the border",
            },
        }
    }, "one in which nothing was measured is left out"


@pytest.mark.parametrize(
    ("readings", "here", "decides"),
    [
        ([(10, 3.0), (20, 2.0)], 2.0, None),
        ([(10, 0.5), (20, 3.0)], 2.0, "holds with 5 or 20; differs with 10"),
        ([(10, 3.0), (20, 0.6)], 0.5, "holds with 10; differs with 5 or 20"),
        ([(10, (1.1, 0.1))], 2.0, None),  # the border is not the opposite
        ([(10, (1.1, 0.1)), (20, 0.5)], 2.0, "holds with 5; differs with 20"),
        ([(10, 3.0), (20, 0.5)], (1.0, 0.1), "holds with 10; differs with 20"),
    ],
)
def test_a_setting_decides_if_the_claim_holds_with_one_value_and_differs_with_another(
    read, readings, here, decides
):
    texts = {}
    if decides:
        texts["n"] = f"`n` decides: {decides}"
    assert read(readings, here=here)["decides"] == texts


def test_a_reading_that_does_not_change_the_measurement_is_not_counted(read):
    claim = read([(10, (2.0, 0.1)), (20, (2.0, 0.2))], here=(2.0, 0.1))
    assert list(claim["readings"]["n"]) == ["20"]


def test_a_setting_of_several_parameters_is_written_with_all_of_them(read):
    claim = read([({"k": 1, "m": "x"}, 0.5)], ours={"k": 2, "m": "y"})
    text = "`n` decides: holds with k = 2, m = y; differs with k = 1, m = x"
    assert claim["decides"] == {"n": text}
    assert verdicts.text([0.5, 1.0]) == "[0.5, 1.0]"
    assert verdicts.text("real") == "real"


def test_a_reading_of_a_setting_that_is_no_longer_there_is_left_out(read, checkout):
    read([(10, 0.5)])
    checkout.settings(a_fig1={"free": {}})
    (claim,) = verdicts.assess("a/fig1")
    assert claim["readings"] == {}
    assert claim["decides"] == {}


# ---- texts


def test_in_general_a_claim_holds_in_so_many_readings(read):
    assert verdicts.general(read([])) == ""
    assert verdicts.general(read([(10, 3.0)])) == "●● 2 of 2"
    claim = read([(10, 0.5), (20, (1.1, 0.1))])
    assert verdicts.general(claim) == (
        "●○◐ 1 of 3. `n` decides: holds with 5; differs with 10"
    )
    assert verdicts.general(read([(10, 3.0)], here=0.5)).startswith("○● 1 of 2. ")


def test_a_number_is_not_counted_over_readings():
    readings = {"n": {"10": {"status": "number"}}}
    claim = {"here": "number", "readings": readings, "decides": {}}
    assert verdicts.general(claim) == ""


def claims(*words, **others):
    return [{"here": word} | others for word in words]


OURS = {"ours": True}
HEADLINE = {"headline": "abstract"}


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        (["holds", "holds"], "reproduced"),
        (["holds", "number"], "reproduced"),
        (["holds", "differs"], "in part"),
        (["holds", "differs", "varies"], "in part"),
        (["holds", "open"], "in part"),
        (["holds", "calibrated"], "in part"),
        (["holds", "not measured"], "in part"),
        (["holds", "varies"], "in part (varies)"),
        (["varies", "open"], "in part (varies)"),
        (["differs"], "not reproduced"),
        (["differs", "varies", "open"], "not reproduced"),
        (["open", "calibrated"], "open"),
        (["not measured"], "open"),
        ([], "not built"),
    ],
)
def test_the_verdict_follows_from_the_claims_of_the_paper(words, verdict):
    assert verdicts.judge(claims(*words)) == verdict
    if words:
        with_ours = claims(*words) + claims("holds", "differs", "varies", **OURS)
        assert verdicts.judge(with_ours) == verdict, "ours do not count"


@pytest.mark.parametrize(
    ("headline", "others", "verdict"),
    [
        (["holds"], ["differs", "open"], "reproduced"),
        (["differs"], ["differs", "open"], "not reproduced"),
        (["differs"], ["holds"], "in part"),
        (["differs", "open"], ["varies"], "not reproduced"),
        (["varies"], ["holds"], "in part (varies)"),
        (["varies"], ["differs"], "in part (varies)"),
        (["holds", "varies"], ["differs"], "in part (varies)"),
        (["holds", "differs"], ["holds"], "in part"),
        (["holds", "open"], ["holds"], "in part"),
        (["open"], ["holds"], "in part"),
        (["open"], ["open"], "open"),
    ],
)
def test_headline_claims_decide(headline, others, verdict):
    assert verdicts.judge(claims(*headline, **HEADLINE) + claims(*others)) == verdict


def test_a_figure_with_claims_of_ours_alone_has_their_number():
    found = claims("holds", "differs", **OURS) + claims("number")
    assert verdicts.judge(found[:2]) == "1 of 2 claims of ours hold"
    assert verdicts.judge(found) == "1 of 2 claims of ours hold", "no number"


def test_the_fraction_names_all_that_neither_holds_nor_differs():
    found = claims("holds", "holds", "differs", "number") + claims("holds", **OURS)
    assert verdicts.fraction(found) == "2 of 3 hold"
    found += claims("varies", "open", "open", "calibrated")
    text = "2 of 7 hold, 1 varying, 2 open, 1 calibrated"
    assert verdicts.fraction(found) == text
    assert verdicts.summary(found) == f"in part: {text}"


def test_a_summary_without_claims_of_a_paper_has_no_fraction():
    assert verdicts.summary([]) == "not built"
    assert verdicts.summary(claims("holds", **OURS)) == "1 of 1 claims of ours hold"
