"""The source of the site; `make test-site` opens the site itself in a browser."""

import json
import re
import shutil

import markupsafe
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import yaml

from recrawl import cli
from paperfigs import build, ledger, plotting, report, site

DOCS = build.ROOT / "docs"
RECORDS = report.read_all()
FIGURES = [figure for figure in build.notebooks() if figure in RECORDS]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    return target, site.write(target)


@pytest.mark.slow
def test_every_figure_with_a_record_has_a_page_with_all_that_belongs_to_it(written):
    target, figures = written
    assert sorted(figures) == sorted(FIGURES)
    assert len(FIGURES) >= 40
    for figure in FIGURES:
        path = target / "source" / "figures" / f"{figure}.ipynb"
        first, *cells = json.loads(path.read_text())["cells"]
        page, record = first["source"], RECORDS[figure]
        for claim in record["claims"]:
            assert f"claims.html#{figure.replace('/', '-')}-{claim['id']}" in page
            assert ledger.measurement(claim) in page
        assert page.count("<strong class=") == len(record["claims"])
        for name, value in record["parameters"].items():
            shown = markupsafe.escape(str(value))
            assert f"<code>{name}</code></td><td>{shown}</td>" in page
        assert all(checksum in page for checksum in record["data"].values())
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert len(code) == len(build.cells(build.notebooks()[figure]))
        assert (target / "extra" / "figures" / f"{figure}.png").exists()


@pytest.mark.slow
def test_what_pages_of_figures_link_to_is_there(written):
    source = written[0] / "source"
    n_links = 0
    for path in (source / "figures").rglob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"][1:]:
            if cell["cell_type"] == "markdown":
                text = "".join(cell["source"])
                for link in re.findall(r"\]\(([\w./-]+\.(?:md|ipynb))\)", text):
                    assert (path.parent / link).exists(), (path, link)
                    n_links += 1
    assert n_links >= 5


@pytest.mark.slow
def test_what_raw_html_links_to_is_there(written):
    target, _ = written
    found = 0
    for page in [
        *(target / "source").rglob("*.md"),
        *(target / "source" / "figures").rglob("*.ipynb"),
    ]:
        text = (
            page.read_text()
            if page.suffix == ".md"
            else json.loads(page.read_text())["cells"][0]["source"]
        )
        for link in re.findall(r'(?:href|src)="([^"#?:]+)', text):
            there = (
                (page.parent / link).resolve().relative_to(target.resolve() / "source")
            )
            made = [
                target / "extra" / there,
                *(
                    (target / "source" / there).with_suffix(suffix)
                    for suffix in (".md", ".ipynb")
                ),
                # written by Sphinx, with the source of the module
                build.ROOT / re.sub("_modules(.*).html", r"src\1.py", str(there)),
            ]
            assert any(path.exists() for path in made), f"{page}: {link}"
            found += 1
        assert all(alt.strip() for alt in re.findall(r'<img [^>]*alt="([^"]*)"', text))
        assert text.count("<img ") == text.count('alt="')
    assert found > 1000


@pytest.mark.slow
def test_all_claims_are_in_one_table_with_what_they_are_filtered_by(written):
    target, _ = written
    page = (target / "source" / "claims.md").read_text()
    rows = re.findall(
        r'<tr id="([^"]+)" data-status="([^"]+)" '
        r'data-paper="([^"]+)" data-by="([^"]+)">',
        page,
    )
    claims = [
        (figure, claim) for figure in FIGURES for claim in RECORDS[figure]["claims"]
    ]
    assert len({row[0] for row in rows}) == len(rows) == len(claims)
    assert sorted(row[1] for row in rows) == sorted(
        claim["status"] for _, claim in claims
    )
    assert sum(row[3] == "ours" for row in rows) == sum(
        claim.get("ours", False) for _, claim in claims
    )
    assert {row[2] for row in rows} == {figure.split("/")[0] for figure in FIGURES}
    assert "[[" not in page


@pytest.mark.slow
def test_papers_and_figures_stand_in_their_order(written):
    gallery = (written[0] / "source" / "gallery.md").read_text()
    order = re.findall(r'href="figures/(\S+)\.html"', gallery)
    assert sorted(order) == sorted(FIGURES)
    www25 = [figure for figure in order if figure.startswith("www25/")]
    assert www25 == [f"www25/fig{n}" for n in range(1, 15)]
    assert order.index("peva22/fig6") < order.index("peva22/sec44")
    for paper in re.findall(r"^\((\w+)\)=$", gallery, re.M):
        assert re.search(rf"## {paper}\n\n\S", gallery), "each says what it is"


@pytest.mark.slow
def test_every_public_module_is_in_the_reference(written):
    package = build.ROOT / "src" / "paperlib"
    modules = {path.stem for path in package.glob("[!_]*.py")}
    modules |= {path.parent.name for path in package.glob("[!_]*/__init__.py")}
    modules |= {f"repro.{path.stem}" for path in package.glob("repro/[!_]*.py")}
    folder = written[0] / "source" / "reference"
    pages = {path.name.removesuffix(".md") for path in folder.glob("*.md")}
    assert modules - {"repro"} == pages - {"index"}
    assert {"estimators", "allocation", "repro.site"} <= pages


@pytest.mark.slow
def test_nothing_says_on_which_machine_it_was_made(written):
    for path in (written[0] / "source").rglob("*.*"):
        text = path.read_text()
        assert str(build.ROOT) not in text, path
        assert 'output_dir = \\"' not in text, path


@pytest.fixture
def project(tmp_path):
    """A project of one figure, with its record."""
    for folder in (
        "docs",
        "benchmarks",
        "data",
        "figures/peva22",
        "notebooks/peva22",
        "src/paperlib",
    ):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("docs/references.md", "benchmarks/README.md", "data/README.md"):
        (tmp_path / name).write_text("# Title\n\n- [peva22] A paper.\n")
    link = "[?](../figures/CLAIMS.md#peva22-fig2-lln-comparable)"
    (tmp_path / "docs" / "page.md").write_text(f"It is {link}.")
    for path in (build.ROOT / "figures" / "peva22").glob("fig2.*"):
        shutil.copy(path, tmp_path / "figures" / "peva22")
    notebook = build.notebooks()["peva22/fig2"]
    for path in (notebook, notebook.with_name("claims.yaml")):
        shutil.copy(path, tmp_path / "notebooks" / "peva22")
    return tmp_path


def page_of(project):
    site.write(project / "site", project)
    path = project / "site" / "source" / "figures" / "peva22" / "fig2.ipynb"
    return json.loads(path.read_text())["cells"][0]["source"]


def test_a_figure_without_a_record_has_no_page(project):
    (project / "figures" / "peva22" / "fig2.json").unlink()
    (project / "docs" / "page.md").write_text("No claim.")
    assert site.write(project / "site", project) == []


def test_numbers_in_pages_are_those_of_the_records(project):
    page_of(project)
    claim = next(
        claim
        for claim in RECORDS["peva22/fig2"]["claims"]
        if claim["id"] == "lln-comparable"
    )
    href = "claims.html#peva22-fig2-lln-comparable"
    expected = f'It is <a href="{href}">{ledger.measurement(claim)}</a>.'
    assert (project / "site" / "source" / "page.md").read_text() == expected
    link = "[0.1](../figures/CLAIMS.md#peva22-fig2-no-such)"
    (project / "docs" / "page.md").write_text(link)
    with pytest.raises(
        ValueError, match=r"must link to claims that there are, got peva22-fig2-no-such"
    ):
        page_of(project)


def test_texts_of_claims_are_escaped(project):
    path = project / "figures" / "peva22" / "fig2.json"
    record = json.loads(path.read_text())
    record["claims"][0]["status"] = "differs"
    path.write_text(json.dumps(record))
    path = project / "notebooks" / "peva22" / "claims.yaml"
    claims = yaml.safe_load(path.read_text())
    claim = next(c for c in claims["fig2"] if c["id"] == record["claims"][0]["id"])
    claim |= {"says": "a < b & `c`", "reason": "<i>why</i>"}
    path.write_text(yaml.safe_dump(claims))
    page = page_of(project)
    assert "a &lt; b &amp; <code>c</code>" in page
    differs = '<strong class="differs">differs</strong><br>&lt;i&gt;why&lt;/i&gt;'
    assert differs in page


# ---------------------------------------------------------------- the pages of docs/


def how_to(title):
    """The Python of one section of docs/extend.md, fewer than 50 lines of it."""
    section = re.search(
        rf"^## {title}\n(.+?)(?=^## |\Z)", (DOCS / "extend.md").read_text(), re.M | re.S
    )[1]
    blocks = re.findall(r"^```python\n(.+?)^```", section, re.M | re.S)
    assert 0 < sum(block.count("\n") for block in blocks) < 50
    return blocks


@pytest.mark.parametrize("title", ["An estimator", "A policy"])
def test_what_is_added_works_and_its_test_can_fail(title):
    code, test = how_to(title)
    assert test.count("assert ") == 2
    exec(code + test, {"__name__": "how_to"})
    worse = {
        "self._kept * self.n_crawls": "self.n_crawls",
        "self.importance * (now - last)": "now - self.importance - 0 * last",
    }
    broken = [code.replace(old, new) for old, new in worse.items() if old in code]
    assert len(broken) == 1
    with pytest.raises(AssertionError):
        exec(broken[0] + test, {"__name__": "how_to"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("figure", "title", "line", "parameters"),
    [
        (
            "peva22/fig2",
            "An estimator",
            '"mine": FadingLLN(crawl_rate, memory=100.0),',
            {"n_crawls": 60, "n_runs": 5, "n_drawn": 5},
        ),
        (
            "www25/fig4",
            "A policy",
            '"mine": LongestWait(pages.importance),',
            {"n_pages": [20, 30], "bandwidth": 10.0, "horizon": 20.0, "burn_in": 2.0},
        ),
    ],
)
def test_what_is_added_is_drawn_in_an_existing_figure(
    figure, title, line, parameters, monkeypatch
):
    """One line in a dictionary, and nothing is registered."""
    monkeypatch.setattr(plt, "show", lambda: None)
    last_entry = {"peva22/fig2": '"MLE": mle_path,', "www25/fig4": "terms=2),"}[figure]
    namespace = {"__name__": "how_to"}
    exec(how_to(title)[0], namespace)
    added = []
    with mpl.rc_context():
        for tags, code in build.cells(build.notebooks()[figure]):
            if f"{last_entry}\n" in code:
                added.append(code)
                code = code.replace(last_entry, f"{last_entry}\n{line}", 1)
            exec(code, namespace)
            if "parameters" in tags:
                namespace.update(parameters)
            if "claims.table()" in code:
                exec(code, namespace)  # as when the cell is run again
        names = {label for ax in namespace["figure"].axes for label in _names(ax)}
        assert plotting.faults(namespace["figure"]) == []
        plt.close("all")
    assert len(added) == 1
    assert "mine" in names


def _names(ax):
    """What is drawn in a panel, by line or by tick."""
    ticks = [text.get_text() for text in ax.get_xticklabels()]
    return [*ticks, *(line.get_label() for line in ax.lines)]


@pytest.mark.slow
def test_the_figure_that_is_added_is_saved_with_its_claim(tmp_path, monkeypatch):
    guide = (DOCS / "extend.md").read_text()
    code = how_to("A figure")
    folder = tmp_path / "notebooks" / "beyond"
    folder.mkdir(parents=True)
    claims = re.search(r"^```yaml\n(.+?)^```", guide, re.M | re.S)[1]
    (folder / "claims.yaml").write_text(claims)
    (tmp_path / "notebooks" / "paper.yaml").write_text("{}")
    parameters = {
        "cell_type": "code",
        "metadata": {"tags": ["parameters"]},
        "source": code[0],
    }
    notebook = folder / "waits_equal_or_random.ipynb"
    notebook.write_text(json.dumps({"cells": [parameters]}))
    monkeypatch.setattr("paperfigs.project.ROOT", tmp_path)
    with mpl.rc_context():
        exec(
            "\n".join(code).replace(
                "output_dir = None", f"output_dir = {str(tmp_path)!r}"
            ),
            {"__name__": "how_to"},
        )
    record = json.loads((tmp_path / "beyond" / "waits.json").read_text())
    assert [claim["status"] for claim in record["claims"]] == ["holds"]
    assert record["parameters"] == {"most": 4.0, "n_rates": 50}
    assert record["faults"] == []
    saved = {path.suffix for path in (tmp_path / "beyond").iterdir()}
    assert saved == {".json", ".npz", ".png", ".svg"}


def test_the_lesson_draws_its_picture_and_says_its_numbers(tmp_path, capsys):
    lesson = (DOCS / "lesson.md").read_text()
    code = re.findall(r"^```python\n(.+?)^```", lesson, re.M | re.S)
    namespace = {}
    with mpl.rc_context():
        exec("\n".join(code), namespace)
        drawn = tmp_path / "lesson.svg"
        namespace["figure"].savefig(drawn, metadata={"Date": None})
        assert plotting.faults(namespace["figure"]) == []
    assert drawn.read_bytes() == (DOCS / "lesson.svg").read_bytes()
    assert capsys.readouterr().out == "[0. 2.]\n"
    legend = [text.get_text() for text in namespace["figure"].legends[0].get_texts()]
    for said in ("uniform: 0.595", "proportional: 0.500", "optimal: 0.600"):
        assert said in legend
        assert said.split()[1].rstrip("0") in lesson


def test_the_guide_names_options_and_values_that_there_are(capsys):
    text = (DOCS / "crawl-log.md").read_text()
    known = ""
    for command in ("estimate", "schedule", "compare", "backtest"):
        assert f"## {command}" in text or f"and {command}" in text
        with pytest.raises(SystemExit):
            cli.main([command, "--help"])
        known += capsys.readouterr().out
    options = set(re.findall(r"--[a-z][a-z-]+", text))
    assert len(options) >= 8
    assert options - set(re.findall(r"--[a-z][a-z-]+", known)) == set()


def test_the_guide_names_the_columns_that_are_written(tmp_path):
    import pyarrow.parquet as pq

    log = build.ROOT / "data" / "example_log.csv.gz"
    assert cli.main(["estimate", str(log), "-o", str(tmp_path / "rates.parquet")]) == 0
    assert (
        cli.main(
            [
                "schedule",
                str(tmp_path / "rates.parquet"),
                "--bandwidth",
                "100/day",
                "-o",
                str(tmp_path / "plan.parquet"),
            ]
        )
        == 0
    )
    text = (DOCS / "crawl-log.md").read_text()
    for name, section in (("rates", "estimate"), ("plan", "schedule")):
        said = re.search(rf"^## {section}\n(.+?)^## ", text, re.M | re.S)[1]
        for column in pq.read_schema(tmp_path / f"{name}.parquet").names:
            assert re.search(rf"[`, ]{column}[`,]", said), column


def test_formulas_of_the_symbols_page_are_those_of_the_library():
    from recrawl.science import freshness, priors, signals

    delta, p = 1.3, 0.7
    assert freshness.poisson(delta, p) == pytest.approx(p / (p + delta))
    assert freshness.interval(delta, p) == pytest.approx(
        p / delta * (1 - np.exp(-delta / p))
    )
    a, b = 2.0, 5.0
    prior = priors.FakeIntervals(a, b)
    assert prior.mode == pytest.approx(np.log(1 + a / b) / a)
    assert prior.density(0.4) == pytest.approx(
        b * (a + b) / a * (1 - np.exp(-a * 0.4)) * np.exp(-b * 0.4)
    )
    pages = signals.SignalledPages(delta, 1.0, 0.4, 0.3)
    assert pages.beta == pytest.approx(np.log(pages.gamma / 0.3) / pages.alpha)


def test_titles_and_claims_bring_no_markup_into_pages(project):
    evil = "<img src=x onerror=alert(1)>"
    path = project / "notebooks" / "peva22" / "claims.yaml"
    claims = yaml.safe_load(path.read_text())
    for claim in claims["fig2"]:
        claim |= {"says": evil, "where": evil}
    path.write_text(yaml.safe_dump(claims))
    path = next(path.parent.glob("fig2*.ipynb"))
    notebook = json.loads(path.read_text())
    notebook["cells"][0]["source"] = f"# {evil}\nA text."
    path.write_text(json.dumps(notebook))
    page_of(project)
    for path in (project / "site" / "source").rglob("*"):
        if path.suffix in (".md", ".html", ".rst"):
            text = path.read_text().replace(f"{evil} <fig2>", "")  # plain, in a toctree
            assert evil not in text, path.name
