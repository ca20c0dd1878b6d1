"""What lies in a clone of the project: notebooks, their parameters, claims."""

import ast
import functools
import json
import math
import re
from pathlib import Path
from typing import Any

import yaml

from recrawl.types import PathLike

__all__ = [
    "ROOT",
    "SHARED_RESULTS",
    "BuildError",
    "about",
    "cells",
    "defaults",
    "description",
    "kind",
    "limits",
    "notebooks",
    "paper_parameters",
    "place",
    "protocol",
    "short_title",
    "title",
]

ROOT = Path(__file__).resolve().parents[2]  # the clone of the project
# The environment variable in which a build tells its notebooks the file of
# `paperfigs.sharing`. The file is deleted at the end of the build.
SHARED_RESULTS = "PAPERLIB_SHARED_RESULTS"

# The keys of a claim in claims.yaml: those that every claim has, its criterion
# (one of three), and those that it may have.
_CRITERIA = ("at_least", "at_most", "within")
_REQUIRED = {"id", "says", "where"}
_OPTIONAL = {"measured", "reason", "ours", "declared", *_CRITERIA}
_RECONSTRUCTED = ("aaai20/fig3", "aaai20/fig4")
_DECLARED = ("calibrated", "not testable")  # statuses that are not measured


class BuildError(RuntimeError):
    """A build that cannot start; the message says why and what to do.

    Examples
    --------
    >>> from paperfigs import build
    >>> build.select(["peva22/fig22"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    paperfigs.project.BuildError: unknown figure 'peva22/fig22'; ...
    """


def notebooks(root: Path = ROOT, guides: bool = False) -> dict[str, Path]:
    """Find all notebooks of figures.

    Parameters
    ----------
    root : Path, optional
        The clone of the project.
    guides : bool, default False
        Whether to include the notebooks directly below ``notebooks/``, by
        name.

    Returns
    -------
    dict of Path
        By figure id, in the order of `place`:
        ``notebooks/peva22/fig2_synthetic.ipynb`` is "peva22/fig2".

    Raises
    ------
    BuildError
        Two notebooks have the same id.

    Examples
    --------
    >>> from paperfigs import project
    >>> project.notebooks()["peva22/fig2"].name
    'fig2_synthetic.ipynb'
    """
    found = {}
    # Names with a dot are left out: .ipynb_checkpoints holds copies.
    for path in sorted((root / "notebooks").glob("[!.]*/*.ipynb")):
        figure = f"{path.parent.name}/{path.stem.split('_')[0]}"
        if figure in found:
            raise BuildError(
                f"{found[figure].name} and {path.name} both make {figure}; rename one"
            )
        found[figure] = path
    found = {figure: found[figure] for figure in sorted(found, key=place)}
    if guides:
        paths = sorted((root / "notebooks").glob("[!.]*.ipynb"))
        found |= {path.stem: path for path in paths}
    return found


def cells(notebook: PathLike) -> list[tuple[list[str], str]]:
    """Read the code cells of a notebook.

    Parameters
    ----------
    notebook : path
        A notebook of version 4.

    Returns
    -------
    list of (list of str, str)
        The tags and the source of each code cell.

    Raises
    ------
    BuildError
        The file is no such notebook.

    Examples
    --------
    >>> from paperfigs import project
    >>> tags, source = project.cells(project.notebooks()["peva22/fig2"])[0]
    >>> tags
    ['parameters']
    """
    try:
        return [
            (cell["metadata"].get("tags", []), "".join(cell["source"]))
            for cell in json.loads(Path(notebook).read_text())["cells"]
            if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError) as error:
        message = f"{notebook} is not a notebook of version 4: {error!r}"
        raise BuildError(message) from error


def defaults(notebook: PathLike) -> dict[str, Any]:
    """Read the parameters of a notebook, with the values that it has itself.

    Parameters
    ----------
    notebook : path
        One cell of it is tagged "parameters".

    Returns
    -------
    dict
        The values by name; empty without such a cell.

    Raises
    ------
    BuildError
        A line of the cell is not ``name = value`` with a number, a string,
        a list of them, or None.

    Examples
    --------
    >>> from paperfigs import project
    >>> project.defaults(project.notebooks()["peva22/fig2"])["output_dir"] is None
    True
    """
    source = next((code for tags, code in cells(notebook) if "parameters" in tags), "")
    try:
        return {
            statement.targets[0].id: ast.literal_eval(statement.value)
            for statement in ast.parse(source).body
            if isinstance(statement, ast.Assign)
        }
    except (ValueError, SyntaxError, AttributeError) as error:
        raise BuildError(
            f"{notebook}: the parameters cell must hold plain `name = value` lines: "
            f"{error}"
        ) from error


def paper_parameters(root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """Read the papers' own parameters from ``notebooks/paper.yaml``.

    Parameters
    ----------
    root : Path, optional
        The clone of the project.

    Returns
    -------
    dict of dict
        The values by figure id and name; what is absent is as in the notebook.

    Raises
    ------
    BuildError
        The file is missing or has another form.

    Examples
    --------
    >>> from paperfigs import project
    >>> project.paper_parameters()["peva22/fig2"]["n_crawls"]
    1000
    """
    try:
        paper = yaml.safe_load((root / "notebooks" / "paper.yaml").read_text()) or {}
        return {figure: dict(parameters or {}) for figure, parameters in paper.items()}
    except (OSError, yaml.YAMLError, AttributeError, TypeError, ValueError) as error:
        raise BuildError(
            "notebooks/paper.yaml must hold one `figure: {name: value}` a line: "
            f"{error}"
        ) from error


def kind(figure: str) -> str:
    """Say where a figure comes from.

    Parameters
    ----------
    figure : str
        Figure id, such as "peva22/fig2".

    Returns
    -------
    str
        "paper", "reconstructed" (our text of the paper ends before its
        numbers) or "added" (no paper shows it).

    Examples
    --------
    >>> from paperfigs import project
    >>> project.kind("peva22/fig2"), project.kind("beyond/prior")
    ('paper', 'added')
    """
    if figure in _RECONSTRUCTED:
        return "reconstructed"
    return "paper" if figure.split("/")[1].startswith("fig") else "added"


def title(notebook: PathLike) -> str:
    """Read the title of a notebook.

    Parameters
    ----------
    notebook : path
        Its first cell is Markdown and begins with the title.

    Returns
    -------
    str
        The first line of the first cell, without the mark of a heading.

    Examples
    --------
    >>> from paperfigs import project
    >>> project.title(project.notebooks()["peva22/fig2"])[:8]
    'Figure 2'
    """
    first = json.loads(Path(notebook).read_text())["cells"][0]["source"]
    return "".join(first).partition("\n")[0].lstrip("# ")


def description(notebook: PathLike) -> str:
    """Describe the picture of a notebook, for readers who do not see it.

    Parameters
    ----------
    notebook : path
        The text of one of its cells may begin with "What to see".

    Returns
    -------
    str
        The title, and the first sentence of what there is to see.

    Examples
    --------
    >>> from paperfigs import project
    >>> project.description(project.notebooks()["www25/fig3"])[-58:]
    'Signals help for every number of pages, as the paper says.'
    """
    cells = json.loads(Path(notebook).read_text())["cells"]
    texts = [" ".join("".join(cell["source"]).split()) for cell in cells]
    start = "**What to see.** "
    seen = next((text for text in texts if text.startswith(start)), start)
    # Where the numbers come from is no description.
    told = r"\((Numbers|Shown|At)([^()]|\([^)]*\))*\) |These numbers [^.]*\. "
    seen = re.sub(told, "", seen.removeprefix(start))
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[*$`\\]", r"\1", seen)
    sentence = re.split(r"(?<=[.?])\s+(?=[A-Z])", plain)[0]
    said = f"{title(notebook)}. {sentence}".replace("?.", "?")
    return said if sentence else title(notebook)


def short_title(title: str) -> str:
    """Leave out the paper's key from the title of a notebook.

    Parameters
    ----------
    title : str
        From `title`.

    Returns
    -------
    str
        To stand under the name of the paper.

    Examples
    --------
    >>> from paperfigs import project
    >>> project.short_title("Figure 1 of [aaai20]: the problem")
    'Figure 1: the problem'
    """
    return re.sub(r" of \[\w+\]", "", title)


def place(figure: str) -> tuple[str, bool, str, int]:
    """Order figures as a reader counts: 2 before 10, and before what has no number.

    Parameters
    ----------
    figure : str
        Figure id.

    Returns
    -------
    tuple
        To sort figures by: paper, then number.

    Examples
    --------
    >>> from paperfigs import project
    >>> sorted(["www25/fig10", "www25/appendix", "www25/fig2"], key=project.place)
    ['www25/fig2', 'www25/fig10', 'www25/appendix']
    """
    paper, _, name = figure.partition("/")
    number = int(re.search(r"\d*$", name)[0] or 0)
    return paper, not name.startswith("fig"), name[:3], number


def protocol(figure: str, root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """Read what is claimed of a figure from its paper's ``claims.yaml``.

    A family of claims, one for each of several cases, is one entry whose ``id``
    and texts hold fields in braces, such as ``loses-more-{p}``. An entry with
    the whole id of a case overrides the family for that case.

    Parameters
    ----------
    figure : str
        Figure id, such as "peva22/fig2".
    root : Path, optional
        The clone of the project.

    Returns
    -------
    dict of dict
        By ``id``, in the order of the file: what the paper says (``says``) and
        ``where``, the ``quantity`` that is measured, one criterion
        (``at_least``, ``at_most`` or ``within``), why the claim differs
        (``reason``) and whether it is ``ours``. A claim that is ``declared``
        has a reason, and a criterion only if some data can measure it.

    Raises
    ------
    BuildError
        A claim without a criterion or with two, with an unknown key, with the
        id of another, or declared without a reason.

    Examples
    --------
    >>> from paperfigs import project
    >>> project.protocol("peva22/fig2")["naive-limit"]["within"]
    [0.99, 1.01]
    """
    paper, name = figure.split("/")
    entries = _claims_file(paper, root).get(name, [])
    claims = {}
    for entry in entries:
        claim = dict.fromkeys(_REQUIRED - {"id"}, "") | entry
        problem = _problem(claim, claims)
        if problem:
            raise BuildError(
                f"claims.yaml: claim {entry.get('id')!r} of {figure} must have "
                f"{problem}"
            )
        claim["quantity"] = claim.pop("measured", "")
        claims[entry["id"]] = claim
    return claims


def about(paper: str, root: Path = ROOT) -> str:
    """Read the paragraph about a paper from its ``claims.yaml``.

    Parameters
    ----------
    paper : str
        Such as "peva22".
    root : Path, optional
        The clone of the project.

    Returns
    -------
    str
        Its text ``about``, in Markdown; empty if there is none.

    Examples
    --------
    >>> from paperfigs import project
    >>> project.about("no_paper")
    ''
    """
    return _claims_file(paper, root).get("about", "").strip()


def _claims_file(paper, root):
    """What ``claims.yaml`` of a paper holds; empty if there is none."""
    path = Path(root) / "notebooks" / paper / "claims.yaml"
    try:
        content = _parsed(path.read_text())
    except FileNotFoundError:
        return {}  # nothing is claimed yet
    except yaml.YAMLError as error:
        raise BuildError(f"{path} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise BuildError(f"{path} must hold a list of claims for each figure")
    return content


@functools.cache
def _parsed(text):
    """What YAML says; it is asked for once a figure, and takes a while."""
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _problem(claim, others):
    """What a claim lacks, or None."""
    criteria = [key for key in _CRITERIA if key in claim]
    if claim.get("id") in {None, *others}:
        return "an id of its own"
    if unknown := claim.keys() - _REQUIRED - _OPTIONAL:
        return f"no other keys than the known ones, got {', '.join(sorted(unknown))}"
    if not all(claim[key] for key in _REQUIRED):
        return "a text for says and where"
    declared = claim.get("declared", _DECLARED[0])
    if declared not in _DECLARED or ("declared" in claim and not claim.get("reason")):
        return f"a reason, to be declared one of {_DECLARED}"
    if len(criteria) > 1 or (not criteria and "declared" not in claim):
        return f"exactly one of {', '.join(_CRITERIA)}, got {criteria}"
    try:
        low, high = limits(claim)
        possible = low <= high  # not if one of them is NaN
    except (TypeError, ValueError):
        possible = False
    return None if possible else f"a criterion that can be met, got {claim!r}"


def limits(claim: dict[str, Any]) -> tuple[float, float]:
    """Find the lowest and the highest value that meet the criterion of a claim.

    Parameters
    ----------
    claim : dict
        With ``at_least``, ``at_most`` or ``within``.

    Returns
    -------
    low, high : float
        Infinite where there is no limit.

    Examples
    --------
    >>> from paperfigs import project
    >>> project.limits({"at_most": 2.0})
    (-inf, 2.0)
    """
    low, high = claim.get("at_least", -math.inf), claim.get("at_most", math.inf)
    low, high = claim.get("within", (low, high))
    return low, high
