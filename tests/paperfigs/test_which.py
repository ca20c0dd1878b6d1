"""The pages of answers say what the record of the comparison says."""

import re

import numpy as np
import pandas as pd
import pytest

from paperfigs import ledger, project

ROOT = project.root()
PAGE = (ROOT / "docs" / "which.md").read_text()
RECORD = ROOT / "figures" / "beyond" / "side"
MOST_WORDS = {"which.md": 680, "related.md": 525}  # of prose, without generated tables
CELLS = {  # of the claims that the table of answers has
    "without signals": "precision == 0",
    "with at most two first crawls": "precision == 0 and first <= 2",
    "with at least six first crawls": "precision == 0 and first >= 6",
    "with budgets 3 and 10": "precision == 0 and budget >= 3",
    "with precision 0.2": "precision == 0.2",
    "with precisions 0.5 and 0.9": "precision >= 0.5 and budget >= 1",
    "with budget 0.3": "precision > 0 and budget == 0.3",
}


@pytest.fixture(scope="module")
def rows():
    """All rows of the comparison, with the precision of the signals, 0 without."""
    table = pd.read_csv(f"{RECORD}.csv")
    precision = table["world"].str.extract(r"precision (.*)")[0].astype(float)
    return table.assign(precision=precision.fillna(0.0))


def answers():
    """The rows of the table of answers, below its head."""
    table = PAGE.split("| my pages ")[1].split("\n\n")[0]
    return table.splitlines()[2:]


def of_estimators(rows):
    """Rows of the estimators, after first crawls in turn and without signals."""
    return rows[(rows["precision"] == 0) & rows["error"].notna()]


def estimators(rows):
    """Error of each estimator, the least first; gains in all cells, and in kinds."""
    plain = of_estimators(rows)
    few, enough = plain[plain["first"] <= 2], plain[plain["first"] >= 6]
    mean = plain.groupby("method")[["error", "gain"]].mean().sort_values("error")
    mean["few"] = few.groupby("method")["gain"].mean()
    mean["enough"] = enough.groupby("method")["gain"].mean()
    cells = [
        (name, f"{error:.2f}", *(f"{gain:.4f}" for gain in gains))
        for name, error, *gains in mean.itertuples()
    ]
    head = ("estimator", "error", "gain", "at most two crawls", "at least six crawls")
    return ledger.table(head, cells)


def methods(rows):
    """Gain of each method with each kind of pages, mean over budgets.

    Without the estimators after first crawls in random order.
    """
    in_order = rows[~rows["method"].str.endswith(", random")]
    wide = in_order.pivot_table("gain", "method", "world", sort=False)
    cells = []
    for name, gains in (1000 * wide).iterrows():
        texts = ["" if pd.isna(gain) else str(round(gain)) for gain in gains]
        cells.append((name, *texts))
    return ledger.table(("method", *wide), cells)


@pytest.mark.parametrize("table", [estimators, methods])
def test_tables_are_those_of_the_record(rows, table):
    name = table.__name__
    marks = rf"<!-- {name} -->\n(.*?)<!-- /{name} -->"
    (found,) = re.findall(marks, PAGE, re.S)
    assert found == table(rows)


def measurement(claim):
    """A measurement; a share of cells, which has no standard error, as a fraction."""
    if claim["stderr"]:
        return ledger.measurement(claim)
    return f"{round(17 * claim['measured'])} of 17"


def test_cells_are_decided_as_the_record_says(rows):
    """The least error: freshest, beaten by two standard errors, or undecided."""
    counts = {"freshest": 0, "beaten": 0, "undecided": 0}
    methods = set()
    for _, cell in of_estimators(rows).groupby(["world", "budget"]):
        methods.update(cell["method"])
        least = cell.loc[cell["error"].idxmin()]
        best = cell.loc[cell["gain"].idxmax()]
        noise = (least["stderr"] ** 2 + best["stderr"] ** 2) ** 0.5
        if best["gain"] == least["gain"]:
            counts["freshest"] += 1
        elif best["gain"] - least["gain"] > 2 * noise:
            counts["beaten"] += 1
        else:
            counts["undecided"] += 1
    n = sum(counts.values())
    assert f"`least-error`: {counts['freshest']} of {n} " in PAGE
    assert f"would be in about {n / len(methods):.0f}." in PAGE
    assert f"In {counts['beaten']} cells the freshest is better" in PAGE
    assert f"and {counts['undecided']} cells are undecided" in PAGE


def test_importance_alone_gains_what_the_record_says(rows):
    alone = rows.query("world == 'Poisson' and method == 'no estimate'")
    (gain,) = alone.loc[alone["budget"] == 0.3, "gain"]
    assert f"on Poisson pages at budget 0.3 this gains {gain:.3f}" in PAGE


def test_each_claim_is_there_as_it_was_measured():
    said = dict(re.findall(r"`([a-z-]+)`: (.+?\))", PAGE))
    expected = {
        claim["id"]: f"{measurement(claim)} ({claim['status']})"
        for claim in project.entry(f"{RECORD}.json", "claims")
    }
    assert said == expected


def test_late_signals_regain_what_the_record_says():
    related = (ROOT / "docs" / "related.md").read_text()
    regained = {}
    with np.load(ROOT / "figures" / "www25" / "fig8.npz") as arrays:
        for n in (100, 200, 500):
            late = arrays[f"GREEDY-NCIS, Poisson, {n} pages"].mean()
            remedy = arrays[f"NCIS-D, Poisson, {n} pages"].mean()
            prompt = arrays[f"without delay, {n} pages"].mean()
            regained[n] = f"{(remedy - late) / (prompt - late):.0%}"
    assert f"regains {regained[100]} of what they cost with 100 pages" in related
    assert f"({regained[200]} with 200, {regained[500]} with 500;" in related


def test_there_are_at_most_eight_answers_each_with_its_cells(rows):
    assert len(answers()) <= 8
    cells = rows[rows["method"] == "in turn"]
    for answer in answers():
        supported = answer.strip("| ").rpartition(" | ")[2]
        parts = re.findall(r"(\d+) (with.*?)(?:, (?=\d+ with)|$)", supported)
        assert parts, answer
        for number, which in parts:
            assert int(number) == len(cells.query(CELLS[which])), answer


@pytest.mark.parametrize("page", MOST_WORDS)
def test_pages_are_short(page):
    text = (ROOT / "docs" / page).read_text()
    prose = re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", "", text, flags=re.S)
    words = [word for word in prose.split() if word.strip("|-")]
    assert len(words) <= MOST_WORDS[page]
