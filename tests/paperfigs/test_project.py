"""Guards on the project: the conda file, the summaries, what no file may hold."""

import re
import runpy
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml

import paperlib
from paperfigs import build, project, report

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/recrawl/*.md")])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _names(requirements):
    return {re.match(r"[\w-]+", r)[0].lower().replace("_", "-") for r in requirements}


def _declared():
    extras = PROJECT["optional-dependencies"].values()
    names = _names(PROJECT["dependencies"]).union(*map(_names, extras))
    return names - {PROJECT["name"]}  # an extra may include others


def test_conda_environment_covers_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    conda = _names(e for e in environment if isinstance(e, str))
    (pip,) = (e["pip"] for e in environment if isinstance(e, dict))
    assert "-e ." in pip
    # conda's python-duckdb is pip's duckdb
    named = {name.removeprefix("python-") for name in conda}
    assert _declared() - named - _names(pip[:-1]) == set()


def test_lock_covers_pyproject():
    lock = (ROOT / ".ci" / "requirements.lock").read_text()
    pinned = _names(re.findall(r"^[\w.-]+(?=(?:\[[\w,.-]+\])?==)", lock, re.M))
    assert _declared() - pinned == set()


def test_all_that_is_installed_has_checksums():
    locks = sorted((ROOT / ".ci").glob("*.lock"))
    assert len(locks) == 4
    for lock in locks:
        pins = re.split(r"\n(?=\w)", lock.read_text().strip())
        assert all("==" in pin and "--hash=sha256:" in pin for pin in pins), lock
    for name in ("Makefile", ".github/workflows/ci.yml", ".ci/Dockerfile"):
        for line in re.findall(r"pip install.*", (ROOT / name).read_text()):
            assert "--require-hashes" in line or "--no-deps" in line, f"{name}: {line}"


def test_pages_say_what_the_records_say(monkeypatch):
    changed = []

    def compare(path, text):
        if not path.exists() or path.read_text() != text:
            changed.append(path.name)

    monkeypatch.setattr(report, "write_atomic", compare)
    report.write()
    assert changed == [], "paperfigs build writes them"


def test_the_readme_can_be_read_in_a_few_minutes():
    words = (ROOT / "README.md").read_text().split()
    assert len([word for word in words if word.strip("|-")]) <= 850


def test_the_block_of_the_readme_can_be_copied_whole():
    """Into any shell: without comments, and with a path on which the commands are."""
    (block,) = re.findall(r"```\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    make, path, *commands = map(str.split, block.splitlines())
    assert make == ["make", "preview"]
    assert path == ["export", 'PATH="$PWD/.venv/bin:$PATH"']
    assert len(commands) == 3
    for program, command, *given in commands:
        assert program in PROJECT["scripts"]
        assert command in ("list", "build", "verify")
        values = {given[2]: float(given[3])} if given[1:2] == ["-p"] else {}
        build.jobs_for(given[:1], "paper", values)  # knows figure and parameter


def test_the_page_of_costs_is_made_from_the_measured_rows(monkeypatch):
    """It may lack a new figure: costs are measured once a release."""
    script = ROOT / "benchmarks" / "figures.py"
    made = {}
    space = runpy.run_path(str(script))
    write_page = space["write_page"]
    monkeypatch.setitem(write_page.__globals__, "write_atomic", made.__setitem__)
    write_page(script.with_suffix(".csv"))
    page = ROOT / "docs" / "costs.md"
    assert made == {page: page.read_text()}, "benchmarks/figures.py --page writes it"
    assert page.read_text().count("](../notebooks/") > 40


def test_the_artifact_page_counts_when_criteria_were_set():
    page = (ROOT / "docs" / "artifact.md").read_text()
    listed = re.findall(r"^\| (before|rewritten|after) \|.*\| (\w+) \|$", page, re.M)
    counts = Counter(
        claim["when"]
        for figure in project.notebooks()
        for claim in project.claims(figure).values()
        if "when" in claim and "ours" not in claim
    )
    assert dict(listed) == {word: str(number) for word, number in counts.items()}


def _headings(page):
    """Anchors of the headings of a page, as code hosts make them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    plain = (
        re.sub(r"[^\w\s-]", "", heading.lower())
        # of a notebook, too, where it is the first line of a cell
        for heading in re.findall(r'^(?: +")?#+ (.+?)(?:\\n",)?$', text, re.M)
    )
    return {heading.strip().replace(" ", "-") for heading in plain} | set(
        re.findall(r'<a id="([^"]+)"', text)
    )


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "data/README.md",
        "src/paperlib/README.md",
        "src/paperfigs/README.md",
        "src/recrawl/README.md",
        "figures/README.md",
        "figures/CLAIMS.md",
        "figures/SETTINGS.md",
    ],
)
def test_links_of_a_page_lead_somewhere(page):
    assert _dead_links(ROOT / page) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [([1, 2.5], [1, 2.5]), ("[0.6, 9]", [0.6, 9]), ("[]", [])],
)
def test_numbers_may_come_as_text(value, expected):
    assert project.as_list("steps", value) == expected


@pytest.mark.parametrize(
    "value", [0.6, None, "0.6", "", "a, b", "{a: 1}", (1, 2), [1, "b"], "[1, b]"]
)
def test_what_is_no_list_of_numbers_is_refused_with_the_text_that_came(value):
    message = f"steps must be numbers such as [1, 2], got {value!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        project.as_list("steps", value)


def test_settings_of_a_figure_are_its_own(checkout):
    checkout.settings(a_fig1={"paper": {"n": 7}, "seconds": 3}, b_fig1={"seconds": 4})
    assert project.settings("a/fig1") == {"paper": {"n": 7}, "seconds": 3}
    assert project.settings("a/fig2") == {}
    checkout.write("notebooks/paper.yaml", "# nothing\n")
    assert project.settings("a/fig1") == {}


def test_figures_are_listed_as_a_reader_counts():
    www25 = [name for name in project.notebooks() if name.startswith("www25/")]
    numbered = [f"www25/fig{number}" for number in range(1, 15)]
    assert www25 == [*numbered, "www25/sharding"]


def test_links_of_the_documentation_lead_somewhere():
    assert [dead for page in DOCS for dead in _dead_links(page)] == []


def _dead_links(page):
    """Links to files or headings that are not there."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, heading = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        if ":" not in link and not (
            there.exists()
            # lines of code are filled in, as measurements are
            and (not heading or path.endswith(".py") or heading in _headings(there))
        ):
            dead.append(f"{page.name}: {link}")
    return dead


def test_the_citation_names_this_release_and_the_papers():
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cff["version"] == paperlib.__version__
    assert cff["authors"] == PROJECT["authors"]
    assert cff["license"] == PROJECT["license"]
    references = (ROOT / "docs" / "references.md").read_text()
    gallery = (ROOT / "figures" / "README.md").read_text()
    assert len(cff["references"]) == 5
    for paper in cff["references"]:
        assert f". {paper['title']}. " in references
        assert f": {paper['title']}\n" in gallery
        assert f"https://doi.org/{paper.get('doi', '')}" in references


@pytest.mark.slow
def test_no_file_names_a_machine_or_an_index():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    texts = [
        ROOT / name
        for name in listed.stdout.split()
        if not name.endswith((".png", ".npz", ".svg", ".gz"))
        and not name.startswith("tests/")
    ]
    assert len(texts) > 20
    pattern = re.compile(
        r"(pypi\.org|pythonhosted|registry\.npmjs|/home/\w+/|/root/|\bTODO\b|\bFIXME\b)"
    )
    found = [
        f"{path.relative_to(ROOT)}: {m[0]}"
        for path in texts
        if path.is_file() and (m := pattern.search(path.read_text()))
    ]
    assert found == []
