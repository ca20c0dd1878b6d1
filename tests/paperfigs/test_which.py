"""The pages of answers say what the record of the comparison says."""

import re

import pandas as pd
import pytest

from paperfigs import ledger, project

ROOT = project.root()
PAGE = (ROOT / "docs" / "which.md").read_text()
RECORD = ROOT / "figures" / "beyond" / "side"
MOST_WORDS = {"which.md": 650, "related.md": 500}  # of prose, without generated tables
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


def estimators(rows):
    """Error and gain of each estimator, the least error first."""
    plain = rows[(rows["precision"] == 0) & rows["error"].notna()]
    mean = plain.groupby("method")[["error", "gain"]].mean().sort_values("error")
    cells = [(name, f"{e:.2f}", f"{g:.4f}") for name, e, g in mean.itertuples()]
    return ledger.table(("estimator", "error", "gain"), cells)


def methods(rows):
    """Gain of each method with each kind of pages, mean over budgets."""
    wide = rows.pivot_table("gain", "method", "world", sort=False)
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
    """A measurement; two digits of a share of cells, which has no standard error."""
    if claim["stderr"]:
        return ledger.measurement(claim)
    return f"{claim['measured']:.2f}"


def test_each_claim_is_there_as_it_was_measured():
    said = dict(re.findall(r"`([a-z-]+)`: (.+?\))", PAGE))
    expected = {
        claim["id"]: f"{measurement(claim)} ({claim['status']})"
        for claim in project.entry(f"{RECORD}.json", "claims")
    }
    assert said == expected


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
