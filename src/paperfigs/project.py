"""What lies in a checkout of the project: notebooks, their parameters, claims."""

import ast
import functools
import json
import math
import re
from pathlib import Path
from typing import Any

import yaml

from paperfigs.files import PathLike

_CRITERIA = {"at_least", "at_most", "within"}
_KEYS = {"id", "says", "where", "measured", "reason", "ours", "declared", "when"}
_KEYS |= _CRITERIA


class BuildError(RuntimeError):
    """A figure cannot be built; the message says why and what to do."""


def root() -> Path:
    """Find the checkout: around the working folder, or else around this package.

    Returns
    -------
    Path
        The folder that holds ``notebooks/paper.yaml``.

    Raises
    ------
    BuildError
        There is none.
    """
    for start in (Path.cwd() / "any", Path(__file__).resolve()):
        for folder in start.parents:
            if (folder / "notebooks" / "paper.yaml").is_file():
                return folder
    raise BuildError(
        f"no notebooks/paper.yaml in {Path.cwd()} or above: change to a checkout of "
        "the project (papermill: --cwd), or to a notebook's folder with claims.yaml"
    )


def paper_folder(paper: str) -> Path:
    """Find the folder with the notebooks and ``claims.yaml`` of a paper.

    Parameters
    ----------
    paper : str
        Such as "peva22".

    Returns
    -------
    Path
        The working folder if it has that name and claims, as where a notebook
        runs in its own folder; otherwise that of the checkout.
    """
    here = Path.cwd()
    if here.name == paper and (here / "claims.yaml").is_file():
        return here
    return root() / "notebooks" / paper


def _place(figure):
    """Order figures: papers before beyond, figures first, figure 2 before 10."""
    counted = re.sub(r"\d+", lambda digits: digits[0].zfill(2), figure)
    paper = figure.split("/")[0]
    return paper == "beyond", paper, "/fig" not in figure, counted


def notebooks(guides: bool = False) -> dict[str, Path]:
    """Find the notebooks of all figures.

    Parameters
    ----------
    guides : bool, default False
        Whether to include the notebooks directly below ``notebooks/``.

    Returns
    -------
    dict of Path
        By figure id, papers first and figure 2 before 10:
        ``notebooks/peva22/fig2_synthetic.ipynb`` is "peva22/fig2".
    """
    folder = root() / "notebooks"
    found = {
        f"{path.parent.name}/{path.stem.split('_')[0]}": path
        for path in folder.glob("[!.]*/*.ipynb")
    }
    found = {figure: found[figure] for figure in sorted(found, key=_place)}
    more = {path.stem: path for path in folder.glob("*.ipynb")}
    return found | more if guides else found


def entry(path: PathLike, name: str) -> Any:
    """Read an entry of a JSON file, which is a notebook or the record of a figure.

    Parameters
    ----------
    path : path
        The file.
    name : str
        The entry's key.

    Returns
    -------
    object
        What JSON makes of it.

    Raises
    ------
    BuildError
        A damaged file, which is named.
    """
    try:
        return json.loads(Path(path).read_text())[name]
    except (ValueError, KeyError, TypeError) as error:
        raise BuildError(f"{path} is damaged: {error!r}") from None


def cells(notebook: PathLike) -> list[tuple[list[str], str]]:
    """Read the code cells of a notebook.

    Parameters
    ----------
    notebook : path
        A notebook of version 4.

    Returns
    -------
    list of (list of str, str)
        Tags and source of each code cell, except the one that papermill adds.
    """
    return [
        (cell["metadata"].get("tags", []), "".join(cell["source"]))
        for cell in entry(notebook, "cells")
        if cell["cell_type"] == "code"
        and "injected-parameters" not in cell["metadata"].get("tags", [])
    ]


def title(notebook: PathLike) -> str:
    """Read the title of a notebook, the first line of its first cell."""
    text = "".join(entry(notebook, "cells")[0]["source"])
    return text.partition("\n")[0].lstrip("# ")


def defaults(notebook: PathLike) -> dict[str, Any]:
    """Read the parameters of a notebook, with the values that it has itself.

    Parameters
    ----------
    notebook : path
        Its cell tagged "parameters" has plain lines ``name = value``.

    Returns
    -------
    dict
        The values by name, without ``output_dir``, which a build sets.
    """
    code = [source for tags, source in cells(notebook) if "parameters" in tags]
    found = {
        line.targets[0].id: ast.literal_eval(line.value)
        for line in ast.parse("\n".join(code)).body
    }
    found.pop("output_dir", None)
    return found


def paper_parameters(folder: PathLike | None = None) -> dict[str, dict[str, Any]]:
    """Read the papers' own parameters from ``paper.yaml``.

    Parameters
    ----------
    folder : path, optional
        Where it lies; by default in ``notebooks/`` of the checkout.

    Returns
    -------
    dict of dict
        Values by figure id and name; what is absent is as in the notebook.
    """
    path = Path(folder or root() / "notebooks", "paper.yaml")
    return (_yaml(path.read_text()) or {}) if path.exists() else {}


def claims(figure: str) -> dict[str, dict[str, Any]]:
    """Read what is claimed of a figure from its paper's ``claims.yaml``.

    Parameters
    ----------
    figure : str
        Figure id.

    Returns
    -------
    dict of dict
        By ``id``: what the paper ``says`` and ``where``, the ``quantity`` that
        is measured, one criterion (``at_least``, ``at_most`` or ``within``),
        the ``reason`` if it differs. A claim that is ``declared`` needs no
        criterion.

    Raises
    ------
    BuildError
        A claim without a criterion, or with a key that is not known.
    """
    found = {}
    for claim in about(figure).get("claims", []):
        n_criteria = len(claim.keys() & _CRITERIA)
        if claim.keys() - _KEYS or n_criteria != 1 - (
            "declared" in claim and not n_criteria
        ):
            raise BuildError(
                f"claims.yaml: claim {claim.get('id')!r} of {figure} must have one of "
                f"{', '.join(_CRITERIA)} and no unknown key, got {', '.join(claim)}"
            )
        found[claim["id"]] = claim | {"quantity": claim.get("measured", "")}
    return found


def about(figure: str) -> dict[str, Any]:
    """Read what ``claims.yaml`` says of a figure.

    Parameters
    ----------
    figure : str
        Figure id.

    Returns
    -------
    dict
        The kind of ``data``, the ``sentence`` of the verdict, the ``claims``.
    """
    paper, name = figure.split("/")
    return claims_file(paper).get(name, {})


def claims_file(paper: str) -> dict[str, Any]:
    """Read ``claims.yaml`` of a paper: a text ``about``, and claims by figure."""
    path = paper_folder(paper) / "claims.yaml"
    try:
        return _yaml(path.read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        raise BuildError(f"{path} cannot be read: {error}") from None


@functools.cache
def _yaml(text):
    """What a text says, which takes YAML .1 s for the claims of a paper."""
    return yaml.load(text, yaml.CSafeLoader)


def limits(claim: dict[str, Any]) -> tuple[float, float]:
    """Lowest and highest value that meet a claim's criterion; infinite if none."""
    low, high = claim.get("at_least", -math.inf), claim.get("at_most", math.inf)
    return tuple(claim.get("within", (low, high)))
