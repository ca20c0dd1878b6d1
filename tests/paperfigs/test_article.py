"""The article: its numbers come from records, and what is untrue fails the build."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import yaml

from paperfigs import project

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "article"
TEMPLATES = "article", "paper"
SOURCES = sorted(FOLDER.glob("*.md"))
# Numbers that are no results of ours, with the words after them: of the papers, of
# theory, of an experiment's settings. All others are read from records.
TYPED = {
    "2% (Student",
    "5% it",
    "90% is",
    "0.5 after",
    "0.02. The",
    "0.3, 1, 3 and",
    "0.2, 0.5 and",
    "0.2 that",
    "0.5 and",
    "0.9, GREEDY",
    "1.1098 is",
    "4.0.",  # the licence
    "3.11 or",  # Python
}


@pytest.fixture(scope="module")
def article():
    """The script that builds it, as a module."""
    spec = importlib.util.spec_from_file_location("article_build", FOLDER / "build.py")
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


def render(article, template):
    return article.environment().from_string(template).render()


@pytest.mark.parametrize("page", [False, True])
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_rendered_whole(article, name, page):
    text = article.render(name, page=page)
    assert not re.search(
        r"\{\{|\{%|<!--#|\bnan\b|\binf\b|\bNone\b(?! (of|differs))", text
    )
    cited = re.findall(r"(?<![\w.])@(\w+)", text)
    known = re.findall(r"^@\w+\{(\w+),", (FOLDER / "paper.bib").read_text(), re.M)
    assert len(cited) > 5
    assert set(cited) <= set(known)


def test_pictures_are_numbered_in_their_order(article):
    text = article.render("article")
    placed = re.findall(r"!\[\*\*Figure (\d+)\.\*\*[^]]*\]\(/([\w/.]+)\)", text)
    assert [int(number) for number, _ in placed] == list(range(1, len(placed) + 1))
    assert len(placed) > 5
    assert all((ROOT / path).is_file() for _, path in placed)
    mentioned = re.findall(r"(?<!\*\*)Figure (\d+)", text)
    assert {number for number, _ in placed} <= set(mentioned)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ value('www25/fig99', 'regains') }}", "figure must have a record"),
        ("{{ value('www25/fig8', 'gains') }}", "'gains' must be .*regains"),
        ("{{ value('www25/fig8', 'regains', reading='unit=day') }}", "unit=time"),
        ("{{ value('www25/fig1', 'noisy') }}", "must have a measurement"),
        ("{{ parameter('www25/fig8', 'n') }}", "'n' must be .*n_runs"),
        ("{{ array('www25/fig8', 'n') }}", "'n' must be .*pages"),
        ("{{ picture('www25/fig99', '') }}", "must have a picture"),
        ("{{ status('www25/fig8', 'regains') | expect('holds') }}", "say 'differs'"),
        ("{{ verdict('grimes08/fig7') | expect('open') }}", "say 'not reproduced'"),
        ("{{ values('www25/fig8') }}", "'values' is undefined"),
        ("{{ 'a' | expects('a') }}", "No filter named 'expects'"),
    ],
)
def test_an_unknown_name_or_an_untrue_sentence_is_refused(article, template, message):
    with pytest.raises(Exception, match=message):
        render(article, template)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ status('www25/fig8', 'regains') | expect('differs', 'fails') }}", "fails"),
        ("{{ status('www25/fig8', 'regains') | expect('differs') }}", "differs"),
        ("{{ -0.25 | write('.0%') }}", "−25%"),
        ("{{ number('b') }}{{ number('a') }}{{ number('b') }}", "121"),
        ("{{ readings('www25/fig8', 'regains') }}", "0 of 4"),
    ],
)
def test_a_template_may_say(article, template, text):
    assert render(article, template) == text


@pytest.mark.parametrize(
    ("figure", "name"),
    [
        ("www25/fig8", "regains"),
        ("peva22/rates", "infinity"),
        ("grimes08/fig6", "match"),
    ],
)
def test_a_status_that_changes_fails_the_article(article, monkeypatch, figure, name):
    said = article.records.claim(figure, name)
    other = {"holds": "differs", "differs": "holds"}[said["here"]]
    monkeypatch.setitem(said, "here", other)
    with pytest.raises(ValueError, match=f"expects '.*', the records say '{other}'"):
        article.render("article")


def test_no_number_of_ours_is_typed():
    hidden = (
        r"\{\{.*?\}\}|\{%.*?%\}|\$\$.*?\$\$|\$[^$]*\$|```.*?```|`[^`]*`|<!--#.*?#-->"
    )
    typed = []
    for source in SOURCES:
        text = re.sub(hidden, "~", source.read_text(), flags=re.DOTALL)
        text = re.sub(r"(?s)\A---\n.*?\n---\n", "", text)
        text = re.sub(r"(?i)(section|sections|#) \d+(\.\d+)?", "", text)
        numbers = re.finditer(r"\d+\.\d+|\d+%|±", text)
        typed += [text[number.start() :][:20] for number in numbers]
    unknown = [each for each in typed if not each.startswith(tuple(TYPED))]
    assert unknown == []
    assert len(typed) >= len(TYPED)


def test_counts_are_those_of_the_table_of_the_readme(article):
    """Two ways through the records."""
    readme = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| \[\w+\]\(figures/.*\| (\d+) of (\d+) hold", readme, re.M)
    assert article.records.count(here="holds") == sum(int(held) for held, _ in rows)
    assert article.records.count() == sum(int(count) for _, count in rows)


def test_margins_are_those_of_the_picture_of_all_claims(article):
    code = "\n".join(c for _, c in project.cells(ROOT / "notebooks" / "claims.ipynb"))
    body = re.search(r"^def margin.*?\n(?=\n|\Z)", code + "\n", re.M | re.S)[0]
    names = {"project": project, "np": article.np}
    exec(body, names)
    judged = article.records._judged()
    margins = [abs(names["margin"](c["measured"], c)) for c in judged]
    assert len(judged) > 100
    assert article.records.slim(0.1) == sum(margin < 0.1 for margin in margins)


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_authors_are_those_of_the_citation(name):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    head = (FOLDER / f"{name}.md").read_text().split("---\n")[1]
    authors = re.search(r'^author: \["(.*)"\]$', head, re.M)[1]
    assert authors == citation["authors"][0]["name"]


@pytest.mark.slow
def test_pdf_and_page_have_everything(article, tmp_path):
    pytest.importorskip("typst")
    pytest.importorskip("pypandoc")
    for name in TEMPLATES:
        article.write_pdf(name, tmp_path)
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        source = (tmp_path / f"{name}.typ").read_text()
        assert not re.search(r"\?\?\?|@\w+\d\d\b", source)  # an unknown reference
    page = article.page()
    assert page.startswith(("# [Re]", "# \\[Re\\]"))
    assert not re.search(r"\{\{|@\w+\d\d\b|<div|\{width", page)
    assert len(re.findall(r"^## \d\. ", page, re.M)) == 8
    assert "10.1145/3388831.3388846" in page
