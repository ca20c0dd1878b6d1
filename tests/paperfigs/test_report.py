"""The pages about all figures, on a small checkout."""

import pytest
import yaml

from paperfigs import project, report

TITLE = "Figure 1: a title"  # of every notebook here
FREE = {
    "n": {"ours": 5, "others": [7, 8], "words": "Many."},
    "pages": {
        "ours": {"k": 1, "m": "x"},
        "others": [{"k": 2, "m": "y"}],
        "words": "Some pages.",
    },
}
CLAIMS = [
    {
        "id": "good",
        "at_least": 1.0,
        "why": "'Better' is above 1.",
        "when": "rewritten",
        "set": "2026-11-28",
        "headline": "abstract",
    },
    {"id": "bad", "within": [1, 2], "reason": "Another clock."},
    {"id": "private", "declared": "open", "reason": "Private data."},
    {"id": "own", "at_most": 1.0, "ours": True, "when": "after", "set": "2026-11-20"},
    {"id": "printed", "theirs": 4.0, "says": "It takes 4 days."},
]


@pytest.fixture
def pages(checkout):
    """Records of three figures; the first has seeds and readings."""
    for figure in ("b/fig1", "beyond/x", "b/fig10"):
        checkout.notebook(f"{figure}_x")
        checkout.claims(figure, *CLAIMS)
        checkout.built(
            figure, good=(2.0, 0.123), bad=3.0, own=0.0, printed=5.0, removed=1.0
        )
    checkout.notebook("b/fig2_not_built")
    checkout.notebook("b/fig3_without_settings")
    others = {"b_fig2": {}, "b_fig10": {}, "beyond_x": {}}
    checkout.settings(b_fig1={"free": FREE}, **others)
    path = checkout.root / "notebooks/b/claims.yaml"
    content = yaml.safe_load(path.read_text())
    content["title"] = "A title"
    content["reference"] = "An author. 2020."
    content["fig1"]["data"] = "stand-in"
    content["fig10"]["data"] = "as in the paper (simulated)"
    path.write_text(yaml.safe_dump(content))
    checkout.robust(
        "b/fig1",
        seeds=[{"good": 2.0, "bad": 1.5}, {"good": 4.0, "bad": 1.9}],
        readings=[
            ("n", 7, {"good": 5.0, "bad": 3.0}),
            ("n", 8, {"good": 1.0, "bad": (2.0, 0.5)}),
            ("pages", {"k": 2, "m": "y"}, {"good": 2.5, "bad": 1.6}),
        ],
    )
    report.write()
    return checkout.root


def row(page, text):
    """The cells of the first line of a page with a text."""
    line = next(line for line in page.read_text().splitlines() if text in line)
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def sections(page):
    """The text of each figure in CLAIMS.md."""
    parts = page.read_text().split("\n### ")[1:]
    return {part.split()[0]: part for part in parts}


def test_figures_stand_in_the_order_of_their_settings_others_at_the_end(pages):
    figures = list(project.notebooks())
    assert figures == ["b/fig1", "b/fig2", "b/fig10", "beyond/x", "b/fig3"]
    together = ["b/fig1", "b/fig2", "b/fig10", "b/fig3", "beyond/x"]
    assert list(sections(pages / "figures/CLAIMS.md")) == together


def test_a_paper_is_introduced_with_its_title(pages):
    head = "\n## b: A title\n\nAn author. 2020.\n"
    assert head in (pages / "figures/README.md").read_text()
    assert head in (pages / "figures/CLAIMS.md").read_text()


def test_the_readme_counts_the_verdicts_on_papers(pages):
    readme = (pages / "README.md").read_text()
    assert readme.startswith("# T\n<!-- claims -->\n")
    assert readme.endswith("<!-- /claims -->\nend\n")
    head = "paper | figures | reproduced | in part | not reproduced | open"
    head += " | reproduced with its data | claims"
    # The headline of fig1 varies, that of fig10 holds, and fig2 and fig3 are not built.
    counts = "4 | 1 | 1 | 0 | 0 | 1 | 1 of 6 hold, 2 varying, 2 open"
    assert readme.splitlines()[2:5] == [
        f"| {head} |",
        "|---|---|---|---|---|---|---|---|",
        f"| [b](figures/README.md#b-a-title) | {counts} |",
    ]


def test_a_readme_without_marks_stays_as_it_is(pages):
    (pages / "README.md").write_text("Nothing.\n")
    report.write()
    assert (pages / "README.md").read_text() == "Nothing.\n"


def test_a_claim_has_a_row_with_all_that_is_known_of_it(pages):
    page = pages / "figures/CLAIMS.md"
    assert page.read_text().count("What it asks.") == 2, "a summary for each paper"
    assert "removed" not in page.read_text()
    assert row(page, "`bad`") == [
        "It is. (a ratio; `bad`) [section 1]",
        "within 1 to 2.",
        "1.7 ± 0.2 (1.5 to 1.9; 2 seeds)",
        "varies: Another clock.",
        "◐○◐● 1 of 4",
    ]
    assert row(page, "`good`") == [
        "It is. (a ratio; `good`) [section 1; headline: abstract]",
        "at least 1. 'Better' is above 1. "
        "Rewritten after seed 1, before seeds 11 to 15 (2026-11-28).",
        "3 ± 1 (2 to 4; 2 seeds)",
        "varies",
        "◐●●● 3 of 4",
    ]
    assert row(page, "`private`")[1:] == ["", "-", "open: Private data.", ""]
    own = row(page, "`own`")
    assert own[0].endswith("[ours]")
    assert own[1:] == [
        "at most 1. Written after a look at results (2026-11-20).",
        "0",
        "holds",
        "",
    ]


def test_a_section_begins_with_the_verdict(pages):
    found = sections(pages / "figures/CLAIMS.md")
    in_part = "**In part (varies): 0 of 3 hold, 2 varying, 1 open (data: stand-in)**. "
    assert f"{TITLE}\n\n{in_part}\n\n| claim |" in found["b/fig1"]
    assert "**Not built**" in found["b/fig2"]
    assert "**Reproduced: 1 of 3 hold, 1 open**" in found["beyond/x"]


@pytest.mark.parametrize(
    ("measured", "here"),
    [
        ({}, "holds"),
        ({"n": 0.0}, "holds: Only with 5."),
        ({"ours": 0.0}, "differs: Only with 5."),
    ],
)
def test_a_reason_is_given_unless_the_claim_holds_whatever_the_setting(
    checkout, measured, here
):
    checkout.notebook("a/fig1_x")
    checkout.claims("a/fig1", {"id": "x", "at_least": 1.0, "reason": "Only with 5."})
    checkout.settings(a_fig1={"free": {"n": FREE["n"]}})
    checkout.built("a/fig1", x=measured.get("ours", 2.0))
    checkout.robust("a/fig1", readings=[("n", 7, {"x": measured.get("n", 2.0)})])
    report.write()
    assert row(checkout.root / "figures/CLAIMS.md", "`x`")[3] == here


@pytest.mark.parametrize(
    ("measured", "cell"),
    [
        ((2.0, 0.1, 1.5), "2.0 ± 0.1"),
        ((2.0, 0.1, 0.5), "2.0 ± 0.1; by medians 0.5"),
        ((0.0, 0.1, 1.5), "0.0 ± 0.1; by medians 1.5"),
        ((1.0, 0.1, 1.5), "1.0 ± 0.1; by medians 1.5"),
    ],
)
def test_medians_are_beside_means_if_they_say_something_else(checkout, measured, cell):
    checkout.notebook("a/fig1_x")
    checkout.claims("a/fig1", {"id": "x", "at_least": 1.0})
    checkout.built("a/fig1", x=measured)
    report.write()
    assert row(checkout.root / "figures/CLAIMS.md", "`x`")[2] == cell


def test_printed_numbers_are_beside_ours(pages):
    text = (pages / "figures/CLAIMS.md").read_text()
    _, _, table = text.partition("\n## Printed numbers\n")
    link = "[b/fig1](../notebooks/b/fig1_x.ipynb)"
    assert f"| {link} | It takes 4 days. (section 1) | 4.0 | 5 | 1.25 |" in table
    assert "beyond" not in table


@pytest.mark.parametrize(
    ("measured", "cells"), [(None, ["-", ""]), (5.0, ["5", "1.25"])]
)
def test_a_printed_number_that_cannot_be_measured_has_no_ratio(
    checkout, measured, cells
):
    checkout.notebook("a/fig1_x")
    checkout.claims("a/fig1", {"id": "x", "theirs": 4.0, "declared": "open"})
    checkout.built("a/fig1", x=measured)
    report.write()
    page = checkout.root / "figures/CLAIMS.md"
    assert row(page, "[a/fig1]")[2:] == ["4.0", *cells]


def test_the_gallery_leads_to_the_notebooks_and_has_the_verdicts(pages):
    gallery = pages / "figures/README.md"
    link = f"[![{TITLE}](b/fig1.png)](../notebooks/b/fig1_x.ipynb)"
    cards = gallery.read_text().split("\n### ")[1:]
    title, picture, verdict = cards[0].strip().split("\n\n")
    assert (title, picture) == (TITLE, link)
    assert verdict.startswith("◐ **In part (varies): ")
    assert verdict.endswith("([claims](CLAIMS.md#bfig1-figure-1-a-title))")
    assert "**Not built**" in cards[1]
    assert "● **Reproduced: " in cards[2]
    assert "## beyond" in gallery.read_text()


def test_settings_of_ours_are_listed_with_the_claims_that_they_decide(pages, checkout):
    page = pages / "figures/SETTINGS.md"
    link = "[b/fig1](../notebooks/b/fig1_x.ipynb)"
    assert row(page, "`n`") == [link, "`n`: Many.", "5", "7 / 8", ""]
    cells = [link, "`pages`: Some pages.", "k = 1, m = x", "k = 2, m = y", ""]
    assert row(page, "`pages`") == cells
    readings = [("n", 7, {"good": 0.0}), ("n", 8, {"good": 2.0})]
    checkout.robust("b/fig1", seeds=[{"good": 2.0, "bad": 1.5}], readings=readings)
    report.write()
    assert row(page, "`n`")[-1] == "good"


def test_data_of_ours_are_listed(pages):
    text = (pages / "figures/SETTINGS.md").read_text()
    _, _, table = text.partition("\n## Data\n")
    assert "| [b/fig1](../notebooks/b/fig1_x.ipynb) | stand-in |" in table
    assert "b/fig10" not in table, "its data are as in the paper"
