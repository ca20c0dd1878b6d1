"""Contents of a checkout of the project: notebooks, their parameters, claims."""

import ast
import functools
import json
import math
from pathlib import Path
from typing import Any

import yaml

from paperfigs.files import PathLike

CRITERIA = {
    "at_least": "at least {:g}",
    "at_most": "at most {:g}",
    "within": "within {0[0]:g} to {0[1]:g}",
}
_KEYS = {"id", "says", "where", "measured", "reason", "ours", "declared", "headline"}
_KEYS |= {"when", "set", "why", "theirs"} | CRITERIA.keys()


class BuildError(RuntimeError):
    """A figure cannot be built; the message gives the reason and the remedy."""


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
        "the project (papermill: --cwd)"
    )


def notebooks(guides: bool = False) -> dict[str, Path]:
    """Find the notebooks of all figures.

    Parameters
    ----------
    guides : bool, default False
        Whether to include the notebooks directly below ``notebooks/``.

    Returns
    -------
    dict of Path
        By figure id, in the order of ``paper.yaml``, and then new ones:
        ``notebooks/peva22/fig2_synthetic.ipynb`` is "peva22/fig2".

    Raises
    ------
    BuildError
        Two notebooks of one figure.
    """
    folder = root() / "notebooks"
    paths = {}
    for path in sorted(folder.glob("[!.]*/*.ipynb")):
        figure = f"{path.parent.name}/{path.stem.split('_')[0]}"
        if figure in paths:
            raise BuildError(f"{figure} has two notebooks, {paths[figure]} and {path}")
        paths[figure] = path
    order = [*_settings(), *sorted(paths)]
    figures = {figure: paths[figure] for figure in order if figure in paths}
    if guides:
        figures |= {path.stem: path for path in folder.glob("*.ipynb")}
    return figures


def entry(path: PathLike, name: str) -> Any:
    """Read an entry of a JSON file: of a notebook, or of the record of a figure.

    Parameters
    ----------
    path : path
        The file.
    name : str
        The entry's key.

    Returns
    -------
    object
        The value.

    Raises
    ------
    BuildError
        A damaged file; the message names it.
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
        Tags and source of every code cell, except the one that papermill adds.
    """
    code = []
    for cell in entry(notebook, "cells"):
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] == "code" and "injected-parameters" not in tags:
            code.append((tags, "".join(cell["source"])))
    return code


def title(notebook: PathLike) -> str:
    """Read the title of a notebook: the first line of its first cell."""
    text = "".join(entry(notebook, "cells")[0]["source"])
    return text.partition("\n")[0].lstrip("# ")


def defaults(notebook: PathLike) -> dict[str, Any]:
    """Read the parameters of a notebook with their own values.

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
    values = {
        line.targets[0].id: ast.literal_eval(line.value)
        for line in ast.parse("\n".join(code)).body
    }
    values.pop("output_dir", None)
    return values


def as_list(name: str, value: list | str) -> list:
    """Read numbers that papermill passes as text: ``papermill -p steps "[0.6, 0.9]"``.

    Parameters
    ----------
    name : str
        The parameter, for the message of an error.
    value : list or str
        The numbers, or their text.

    Returns
    -------
    list

    Raises
    ------
    ValueError
        Not a list of numbers.
    """
    numbers = yaml.safe_load(value) if isinstance(value, str) else value
    if not isinstance(numbers, list) or any(isinstance(x, str) for x in numbers):
        raise ValueError(f"{name} must be numbers such as [1, 2], got {value!r}")
    return numbers


def settings(figure: str) -> dict[str, Any]:
    """Read the settings of a figure from ``paper.yaml``.

    Parameters
    ----------
    figure : str
        Figure id.

    Returns
    -------
    dict
        ``paper``, the paper's own parameters; ``free``, the settings that the paper
        leaves open, with our value and others; ``robust``, the parameters of repeated
        runs that are smaller, and ``smaller``, why that is enough; ``seconds`` that a
        build takes. Any of them may be absent.
    """
    return _settings().get(figure, {})


def _settings():
    """The settings of all figures."""
    return _yaml((root() / "notebooks" / "paper.yaml").read_text()) or {}


def claims(figure: str) -> dict[str, dict[str, Any]]:
    """Read the claims about a figure from its paper's ``claims.yaml``.

    Parameters
    ----------
    figure : str
        Figure id.

    Returns
    -------
    dict of dict
        By ``id``: the statement (``says``) and its place (``where``), the
        measured ``quantity``, one criterion (``at_least``, ``at_most`` or
        ``within``) and ``why`` this one, ``when`` it was ``set``, the ``reason`` if
        the claim does not hold everywhere, the ``headline`` of the paper that states
        it, the number that the paper prints (``theirs``). A claim with ``theirs``,
        or whose status is ``declared``, needs no criterion.

    Raises
    ------
    BuildError
        A claim without a criterion, with two, or with an unknown key.
    """
    by_id = {}
    for claim in about(figure).get("claims", []):
        name = f"claims.yaml: claim {claim.get('id')!r} of {figure}"
        unknown = claim.keys() - _KEYS
        if unknown:
            raise BuildError(
                f"{name} must have keys among {', '.join(sorted(_KEYS))}, "
                f"got {', '.join(sorted(unknown))}"
            )
        criteria = claim.keys() & CRITERIA.keys()
        needs_none = {"declared", "theirs"} & claim.keys() and not criteria
        if len(criteria) != 1 and not needs_none:
            raise BuildError(
                f"{name} must have one of {', '.join(CRITERIA)}, "
                f"got {', '.join(sorted(criteria)) or 'none'}"
            )
        by_id[claim["id"]] = claim | {"quantity": claim.get("measured", "")}
    return by_id


def about(figure: str) -> dict[str, Any]:
    """Read the entry of a figure in ``claims.yaml``.

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
    """Read ``claims.yaml``: title, reference, summary, and claims by figure."""
    path = root() / "notebooks" / paper / "claims.yaml"
    try:
        return _yaml(path.read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        raise BuildError(f"{path} cannot be read: {error}") from None


@functools.cache
def _yaml(text):
    """Content of a YAML text; parsing the claims of a paper takes 0.1 s."""
    return yaml.load(text, yaml.CSafeLoader)


def limits(claim: dict[str, Any]) -> tuple[float, float]:
    """Lowest and highest value that meet a claim's criterion; infinite without one."""
    low = claim.get("at_least", -math.inf)
    high = claim.get("at_most", math.inf)
    return tuple(claim.get("within", (low, high)))
