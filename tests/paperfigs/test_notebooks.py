"""Guards on the notebooks, their claims, and the records beside the figures.

What nbval compares must be real, what is committed must agree, and a notebook
must read as docs/extend.md says.
"""

import ast
import datetime
import json
import re

import pytest
import yaml

from paperfigs import project, robust, verdicts

ROOT = project.root()
FIGURES = project.notebooks()
OF_PAPERS = [figure for figure in FIGURES if not figure.startswith("beyond/")]
SETTINGS = yaml.safe_load((ROOT / "notebooks" / "paper.yaml").read_text())
NOTEBOOKS = [*FIGURES.values(), *sorted(ROOT.glob("notebooks/*.ipynb"))]
HEADINGS = ("## The figure", "**What to see.**", "## Does it hold?")
MOST_LINES, MOST_COLUMNS = 25, 88  # of a code cell
PLACES = {"abstract", "introduction", "caption", "conclusion"}  # of headline claims


def _each(cases):
    """A decorator: one test of all cases, which names each that the guard refuses."""

    def decorate(guard):
        def test():
            refused = {}
            for name, case in cases.items():
                try:
                    guard(case)
                except AssertionError as error:
                    refused[name] = str(error)
            assert not refused, "\n".join(f"{k}: {v}" for k, v in refused.items())

        return test

    return decorate


each_notebook = _each({f"{path.parent.name}/{path.stem}": path for path in NOTEBOOKS})
each_figure = _each({figure: figure for figure in FIGURES})
each_figure_of_a_paper = _each({figure: figure for figure in OF_PAPERS})


def _read(path):
    return json.loads(path.read_text())


def _record(figure):
    path = ROOT / "figures" / f"{figure}.json"
    assert path.exists(), f"`paperfigs build {figure}` makes the record"
    return _read(path)


def _code(cells):
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]


@each_notebook
def test_outputs_are_stored_and_compared(path):
    cells = [c for c in _read(path)["cells"] if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in cells] == list(range(1, len(cells) + 1))
    compared = [
        c
        for c in cells
        if c["outputs"] and "nbval-ignore-output" not in c["metadata"].get("tags", [])
    ]
    assert len(compared) >= 2, "numbers and claims are shown in cells that are compared"
    outputs = [o for c in cells for o in c["outputs"]]
    images = [o for o in outputs if "image/png" in o.get("data", {})]
    assert images, "the figure is stored"
    assert not [
        o for o in outputs if o.get("name") == "stderr" or o["output_type"] == "error"
    ]
    text = "".join("".join(o.get("text", "")) for o in outputs)
    assert not re.search(r"0x[0-9a-f]{6,}|/home/|/root/|/work/|/tmp/", text)


@each_notebook
def test_nothing_of_the_machine_is_stored(path):
    content = _read(path)
    assert set(content["metadata"]) == {"kernelspec", "language_info"}
    kernel = content["metadata"]["kernelspec"]
    assert kernel["display_name"] == "Python 3 (ipykernel)", (
        "JupyterLab would show the notebook as changed; `make notebooks` sets it"
    )
    language = content["metadata"]["language_info"]
    assert language["file_extension"] == ".py", "exports need it"
    assert "version" not in language
    known = {"tags", "mystnb", "alt", "caption"}
    assert all(set(c["metadata"]) <= known for c in content["cells"])


@each_notebook
def test_cells_are_short_and_between_them_is_text(path):
    cells = _read(path)["cells"]
    kinds = [c["cell_type"] for c in cells]
    assert kinds[0] == "markdown"
    assert kinds.count("markdown") >= 5
    for code in _code(cells):
        lines = code.splitlines()
        assert len(lines) <= MOST_LINES, code
        assert max(map(len, lines), default=0) <= MOST_COLUMNS, code


@each_figure
def test_the_order_is_figure_what_to_see_claims(figure):
    texts = [
        "".join(c["source"]) if c["cell_type"] == "markdown" else ""
        for c in _read(FIGURES[figure])["cells"]
    ]
    places = [
        next((i for i, text in enumerate(texts) if heading in text), None)
        for heading in HEADINGS
    ]
    assert None not in places, f"one of {HEADINGS} is missing"
    assert places == sorted(places)


@each_figure
def test_below_the_parameters_it_says_to_change_them(figure):
    cells = _read(FIGURES[figure])["cells"]
    parameters = next(c for c in cells if c["metadata"].get("tags") == ["parameters"])
    hint = "".join(cells[cells.index(parameters) + 1]["source"])
    assert f"`paperfigs build {figure}`" in hint


def _odd(node):
    """What stands for a plain loop or function and is harder to read."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, (ast.ListComp, ast.SetComp, ast.DictComp))
    if isinstance(node, ast.Assign):
        names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        return "_" in names or (names and isinstance(node.value, ast.Lambda))
    if isinstance(node, (ast.For, ast.comprehension)):
        return isinstance(node.iter, (ast.List, ast.Tuple)) and len(node.iter.elts) == 1
    return isinstance(node, ast.NamedExpr)


@each_notebook
def test_code_is_plain(path):
    for code in _code(_read(path)["cells"]):
        odd = [ast.unparse(node) for node in ast.walk(ast.parse(code)) if _odd(node)]
        assert not odd, (
            "no comprehension as a statement, no lambda with a name, no walrus, "
            f"no loop over one element: {odd}"
        )


@each_figure
def test_it_saves_the_figure_of_its_own_name(figure):
    code = "\n".join(_code(_read(FIGURES[figure])["cells"]))
    assert re.findall(r'ledger\.Claims\("(.+?)"', code) == [figure]
    saves = r"plotting\.save\(\s*figure,\s*claims,\s*output_dir"
    assert len(re.findall(saves, code)) == 1
    assert "\noutput_dir = None" in code, "a build passes a folder"


def test_no_two_notebooks_make_the_same_figure():
    assert len(FIGURES) == len(list(ROOT.glob("notebooks/[!.]*/*.ipynb")))


@each_notebook
def test_parameters_are_numbers_texts_and_lists(path):
    values = project.defaults(path)
    assert isinstance(values.get("seed", 1), int), "none where nothing is random"
    for value in values.values():
        for one in value if isinstance(value, list) else [value]:
            assert isinstance(one, (bool, int, float, str, type(None)))


@pytest.mark.slow
@each_figure
def test_paper_parameters_and_record_agree(figure):
    record = _record(figure)
    defaults = project.defaults(FIGURES[figure])
    expected = defaults | project.settings(figure).get("paper", {})
    assert record["parameters"] == {
        name: value for name, value in expected.items() if value is not None
    }, "the committed figure was drawn with the paper's parameters"
    for suffix in (".png", ".svg", ".npz"):
        assert (ROOT / "figures" / f"{figure}{suffix}").stat().st_size > 0
    assert (ROOT / "figures" / f"{figure}.npz").stat().st_size < 600_000


def test_settings_are_those_of_figures():
    assert SETTINGS.keys() <= FIGURES.keys()
    for figure, entries in SETTINGS.items():
        known = {"paper", "free", "robust", "smaller", "seconds"}
        assert entries.keys() <= known, figure
        seconds = entries.get("seconds", 1)
        assert isinstance(seconds, int), f"{figure}: the bar ends at their exact sum"
        assert seconds > 0, figure
        if figure not in OF_PAPERS:
            assert entries.keys() <= {"paper", "seconds"}, f"{figure} has no readings"


@each_figure_of_a_paper
def test_settings_that_a_paper_leaves_open_have_our_value_and_other_values(figure):
    """Ours is that of the build: a value, or a mapping of several parameters.

    The mapping may leave out those that change only with one that it has.
    """
    entries = SETTINGS.get(figure, {})
    values = project.defaults(FIGURES[figure]) | entries.get("paper", {})
    for name, setting in entries.get("free", {}).items():
        assert setting.keys() == {"ours", "others", "words"}, name
        assert setting["words"].strip()[-1] in ".?!", name
        assert setting["others"], name
        changes = []
        for other in setting["others"]:
            changes.append(other if isinstance(other, dict) else {name: other})
        changed = set().union(*changes)
        assert changed <= values.keys(), f"{name}: a parameter that is not there"
        ours = setting["ours"]
        if not isinstance(ours, dict):
            ours = {name: ours}
        assert ours.keys() <= changed, f"{name}: ours names what no other changes"
        of_build = {parameter: values[parameter] for parameter in ours}
        assert ours == of_build, f"{name}: ours is not that of the build"
        for change in changes:
            other = {
                parameter: change.get(parameter, ours[parameter]) for parameter in ours
            }
            assert other != ours, f"{name}: {change} is ours"


@each_figure_of_a_paper
def test_smaller_sizes_of_repeated_runs_are_argued(figure):
    entries = SETTINGS.get(figure, {})
    smaller = entries.get("robust", {})
    assert smaller.keys() <= project.defaults(FIGURES[figure]).keys()
    assert bool(smaller) == ("smaller" in entries)
    assert entries.get("smaller", "It is.").strip()[-1] in ".?!"


@each_figure_of_a_paper
def test_the_record_of_repeated_runs_is_that_of_the_plan(figure):
    record = verdicts.runs(figure)
    for kind, wanted in robust.plan(figure, FIGURES[figure]).items():
        found = []
        for run in record[kind]:
            found.append({key: run[key] for key in ("setting", "value", "parameters")})
        missing = [
            f"{one['setting']} {one['value']}" for one in wanted if one not in found
        ]
        assert not missing, f"`paperfigs robust {figure}` makes these runs"
        assert len(found) == len(wanted), f"{kind} that are not in the plan"
        assert found == wanted, "in the order of the plan"
        for run in record[kind]:
            ids = [claim["id"] for claim in run["claims"]]
            assert sorted(ids) == sorted(project.claims(figure)), run["parameters"]


def test_all_records_of_repeated_runs_are_of_figures_of_papers():
    folder = ROOT / "figures" / "robust"
    records = {path for path in folder.rglob("*") if path.is_file()}
    assert records <= {verdicts.path(figure) for figure in OF_PAPERS}


@each_figure_of_a_paper
def test_criteria_have_a_date_and_new_ones_a_reason(figure):
    for name, claim in project.claims(figure).items():
        if "ours" in claim or not project.CRITERIA.keys() & claim.keys():
            continue
        assert claim.get("when") in ("before", "after", "rewritten"), name
        has_date = isinstance(claim.get("set"), datetime.date)
        assert has_date, f"{name}: set when?"
        assert claim["when"] != "rewritten" or claim.get("why"), f"{name}: why?"


@each_figure
def test_headline_claims_are_those_that_a_paper_states_in_a_prominent_place(figure):
    for name, claim in project.claims(figure).items():
        assert claim.get("headline", "abstract") in PLACES, name
        assert "headline" not in claim or "ours" not in claim, name


@each_figure
def test_every_claim_is_measured(figure):
    record = _record(figure)
    claims, measured = project.claims(figure), record["claims"]
    assert claims, "every figure measures at least one claim"
    entries = project.about(figure)["claims"]
    assert len(entries) == len(claims), "each id is there once"
    assert {found["id"] for found in measured} == set(claims), "as in the record"
    for found in measured:
        assert found["status"] != "not measured", found["id"]
        claim = claims[found["id"]]
        low, high = project.limits(claim)
        assert low <= high, "a criterion that can be met"
        assert "declared" not in claim or claim["reason"]
        assert claim["quantity"] or "declared" in claim, "the quantity has words"


@each_figure
def test_what_does_not_hold_or_depends_on_a_setting_has_a_reason(figure):
    for claim in verdicts.assess(figure):
        needs_none = claim["here"] in ("holds", "number") and not claim["decides"]
        assert claim["reason"] or needs_none, f"{claim['id']} {claim['here']}"


@each_figure
def test_recorded_statuses_follow_from_the_criteria(figure):
    """So that a criterion which is changed, or turned round, is seen."""
    build = _record(figure)
    record = verdicts.runs(figure)
    claims = project.claims(figure)
    for run in [build, *record["seeds"], *record["readings"]]:
        for found in run["claims"]:
            claim = claims.get(found["id"])
            assert claim, f"{found['id']} is not in claims.yaml"
            status = verdicts.status(found["measured"], found["stderr"], claim)
            if found["measured"] is None:
                status = claim.get("declared", status)
            assert found["status"] == status, f"{found['id']} {run['parameters']}"


@each_figure
def test_claims_are_sentences(figure):
    for name, claim in project.claims(figure).items():
        for key in ("says", "reason", "why"):
            text = claim.get(key, "").strip()
            assert not text or (text[0].upper() == text[0] and text[-1] in ".?!"), (
                f"{key} of {name} must be a sentence, got {text!r}"
            )


def test_figures_of_a_paper_are_in_one_claims_file():
    papers = {figure.split("/")[0] for figure in FIGURES}
    files = ROOT.glob("notebooks/*/claims.yaml")
    assert {path.parent.name for path in files} == papers
    for paper in papers:
        assert project.claims_file(paper)["about"], (
            f"claims.yaml of {paper} begins with a summary"
        )


def test_the_guard_sees_what_is_odd():
    plain = "for x in xs:\n    print(x)\nf(key=lambda x: x)\ny = [x for x in xs]"
    assert not [n for n in ast.walk(ast.parse(plain)) if _odd(n)]
    odd = ("[print(x) for x in xs]", "_ = f()", "f = lambda x: x", "(x := 1)")
    for code in (*odd, "for x in [1]:\n    pass", "[x for x in (a,)]"):
        assert [n for n in ast.walk(ast.parse(code)) if _odd(n)], code
