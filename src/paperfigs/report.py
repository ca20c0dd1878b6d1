"""What pages say of the figures: claims, a gallery, and single numbers in docs/."""

import csv
import functools
import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from paperfigs import ledger, project
from recrawl.types import PathLike

__all__ = [
    "COST_COLUMNS",
    "anchor",
    "claims_page",
    "costs",
    "figures_table",
    "filled",
    "gallery",
    "pages",
    "read_all",
    "summary",
    "templates",
]

_STATUSES = ("holds", "differs", "too few runs", "calibrated", "not testable")
# A number in a page of docs/: its text is the measurement of the claim it links to.
_NUMBER = re.compile(r"\[[^][]*\]\(\.\./figures/CLAIMS\.md#(\w+-\w+-[\w.-]+)\)")
# The plain form of a formula: its link leads to the line where it begins.
_PLAIN_FORM = re.compile(r"(\[`paperlib\.reference\.(\w+)`\])\([^)]*\)")
COST_COLUMNS = ("figure", "processor_seconds", "megabytes", "date", "machine")


def read_all(root: PathLike = project.ROOT) -> dict[str, dict[str, Any]]:
    """Read the records of all figures, with the texts of their claims.

    Parameters
    ----------
    root : path, optional
        The clone of the project: its ``figures/<paper>/<figure>.json`` and
        ``notebooks/<paper>/claims.yaml`` are read.

    Returns
    -------
    dict of dict
        By figure id, sorted.

    Raises
    ------
    ValueError
        A file is no record of a figure, or of other claims than
        ``claims.yaml`` has.

    Examples
    --------
    >>> from paperfigs import report
    >>> records = report.read_all()
    >>> records["peva22/fig2"]["figure"]
    'peva22/fig2'
    """
    records = {}
    for path in (Path(root) / "figures").glob("*/*.json"):
        try:
            record = json.loads(path.read_text())
            claims = project.protocol(record["figure"], root)
            record["claims"] = [
                ledger.join(claims[found.get("family", found["id"])], found)
                for found in record["claims"]
            ]
            records[record["figure"]] = record
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} must be the record of a figure, with the claims of its "
                f"claims.yaml, got {error!r}; `paperlib figures` builds it anew"
            ) from error
    return dict(sorted(records.items()))


def pages(root: PathLike = project.ROOT) -> dict[Path, str]:
    """Write out all pages that say something of the figures.

    Parameters
    ----------
    root : path, optional
        The clone of the project.

    Returns
    -------
    dict
        Text by path: ``figures/CLAIMS.md`` and ``figures/README.md``, the README and
        docs/ with their tables and measurements.

    Examples
    --------
    >>> from paperfigs import report
    >>> len(report.pages()) > 10
    True
    """
    root, records = Path(root), read_all(root)
    texts = {
        path: filled(path.read_text(), records) for path in (root / "docs").glob("*.md")
    }
    texts[root / "figures" / "CLAIMS.md"] = claims_page(records, root)
    texts[root / "figures" / "README.md"] = gallery(records, root)
    tables = {
        root / "README.md": ("claims", lambda: summary(records)),
        root / "docs" / "artifact.md": ("figures", lambda: figures_table(root)),
    }
    for path, (name, table) in tables.items():
        if path.exists():  # a project of one's own may do without
            text = texts.get(path, path.read_text())
            texts[path] = _with_table(text, name, table())
    return texts


def _with_table(text, name, table):
    """A page, with the table between the marks of this name, if it has these."""
    before, opening, rest = text.partition(f"<!-- {name} -->\n")
    _, closing, after = rest.partition(f"<!-- /{name} -->")
    return before + opening + table + closing + after if closing else text


def summary(records: dict[str, dict[str, Any]]) -> str:
    """Count the claims by paper and status.

    Parameters
    ----------
    records : dict of dict
        From `read_all`.

    Returns
    -------
    str
        A table in Markdown; checks of this project have a column of their own.

    Examples
    --------
    >>> from paperfigs import report
    >>> claims = [{"status": "holds"}]
    >>> print(report.summary({"a/fig1": {"claims": claims}}).splitlines()[2])
    | a | 1 | 1 | 0 | 0 | 0 | 0 | 0 of 0 |
    """
    rows = []
    for paper, here in _papers(records):
        claims = [claim for record in here for claim in record["claims"]]
        theirs = [c["status"] for c in claims if not c.get("ours")]
        ours = [c["status"] for c in claims if c.get("ours")]
        hold = f"{ours.count('holds')} of {len(ours)}"
        rows.append((paper, len(here), *map(theirs.count, _STATUSES), hold))
    return _table(("paper", "figures", *_STATUSES, "ours that hold"), rows)


def _papers(records):
    """Each paper with the records of its figures."""
    ids = sorted(records, key=project.place)
    for paper, figures in groupby(ids, lambda id_: id_.split("/")[0]):
        yield paper, [records[figure] for figure in figures]


def claims_page(
    records: dict[str, dict[str, Any]], root: PathLike = project.ROOT
) -> str:
    """Write out every claim of every figure, as a report.

    Parameters
    ----------
    records : dict of dict
        From `read_all`.
    root : path, optional
        The clone of the project; the paragraph about a paper is the text
        ``about`` of its ``claims.yaml``.

    Returns
    -------
    str
        The text of ``figures/CLAIMS.md``, in Markdown, with the `summary`.

    Examples
    --------
    >>> from paperfigs import report
    >>> print(report.claims_page({}).splitlines()[0])
    # What the papers claim, and what we measured
    """
    return _page("CLAIMS.md", records, root)


def costs(root: PathLike = project.ROOT) -> dict[str, dict[str, Any]]:
    """Read what figures cost at paper scale, as ``benchmarks/figures.py`` measured.

    Parameters
    ----------
    root : path, optional
        The clone of the project.

    Returns
    -------
    dict of dict
        By figure id: text by name, for the names in `COST_COLUMNS`. Seconds
        are those of all processors; megabytes those of the largest process.

    Examples
    --------
    >>> from paperfigs import report
    >>> report.costs()["peva22/fig2"]["figure"]
    'peva22/fig2'
    """
    with (Path(root) / "benchmarks" / "figures.csv").open(newline="") as file:
        return {row["figure"]: row for row in csv.DictReader(file)}


def figures_table(root: PathLike = project.ROOT) -> str:
    """List all figures for whoever checks them, with what each costs.

    Parameters
    ----------
    root : path, optional
        The clone of the project.

    Returns
    -------
    str
        A table in Markdown for a page in ``docs/``. A figure without a row of
        `costs` was not measured.

    Examples
    --------
    >>> from paperfigs import report
    >>> print(report.figures_table().splitlines()[0])
    | figure | notebook | command | minutes | GB | what it shows |
    """
    measured, rows = costs(root), []
    for figure, path in project.notebooks(root).items():
        cost = ("not measured", "not measured")
        if row := measured.get(figure):
            seconds, megabytes = int(row["processor_seconds"]), int(row["megabytes"])
            cost = f"{seconds / 60:.1f}", f"{megabytes / 1000:.1f}"
        link = f"[{path.stem}](../{path.relative_to(root).as_posix()})"
        title, command = project.title(path), f"`paperlib figures {figure}`"
        rows.append((figure, link, command, *cost, title))
    head = ("figure", "notebook", "command", "minutes", "GB", "what it shows")
    return _table(head, rows)


def anchor(figure: str, claim: str) -> str:
    """Name the place of a claim in ``figures/CLAIMS.md`` and on the site.

    Parameters
    ----------
    figure, claim : str
        Ids of the figure and of the claim.

    Returns
    -------
    str
        What stands behind the # of a link.

    Examples
    --------
    >>> from paperfigs import report
    >>> report.anchor("peva22/fig2", "lln-comparable")
    'peva22-fig2-lln-comparable'
    """
    return f"{figure.replace('/', '-')}-{claim}"


def filled(text: str, records: dict[str, dict[str, Any]]) -> str:
    """Write measurements, and lines of plain forms, into a page of docs/.

    Parameters
    ----------
    text : str
        In Markdown. A link ``[?](../figures/CLAIMS.md#ANCHOR)`` asks for the
        measurement of a claim, whatever stands in place of the question mark, and
        ``[`tests.plain.mle`](?)`` for the line of a function.
    records : dict of dict
        From `read_all`.

    Returns
    -------
    str
        The text, with the measurements as the texts of these links, and the lines
        as their targets.

    Raises
    ------
    ValueError
        A link to a claim that does not exist.

    Examples
    --------
    >>> from paperfigs import report
    >>> records = report.read_all()
    >>> link = "(../figures/CLAIMS.md#www25-fig11-faithful)"
    >>> report.filled(f"It is [?]{link}.", records).startswith("It is [0")
    True
    """
    said = {
        anchor(figure, claim["id"]): ledger.measurement(claim)
        for figure, record in records.items()
        for claim in record["claims"]
    }
    if missing := set(_NUMBER.findall(text)) - said.keys():
        raise ValueError(
            "pages of docs/ must link to claims that there are, "
            f"got {', '.join(sorted(missing))}"
        )

    def link(found):
        _, bracket, target = found[0].partition("]")
        return f"[{said[found[1]]}{bracket}{target}"

    return _PLAIN_FORM.sub(_place, _NUMBER.sub(link, text))


def _place(found):
    """The link to a plain form, with its file and line."""
    import plain as reference  # imports SciPy, .8 s, which a build does not need

    function = getattr(reference, found[2])
    path, line = function.__module__.replace(".", "/"), function.__code__.co_firstlineno
    return f"{found[1]}(../src/{path}.py#L{line})"


def gallery(records: dict[str, dict[str, Any]], root: PathLike = project.ROOT) -> str:
    """Show all figures, three in a row.

    Parameters
    ----------
    records : dict of dict
        From `read_all`.
    root : path, optional
        The clone of the project.

    Returns
    -------
    str
        The text of ``figures/README.md``, in Markdown.

    Examples
    --------
    >>> from paperfigs import report
    >>> print(report.gallery({}).splitlines()[0])
    # Gallery
    """
    return _page("README.md", records, root)


@functools.cache
def _templates():
    """Those of figures/, each compiled once."""
    return templates()


def _page(name, records, root):
    """A page about all figures, by a template."""
    return (
        _templates()
        .get_template(name)
        .render(
            papers=list(_papers(records)),
            notebooks=project.notebooks(root),
            summary=summary(records),
            errors=ledger.STANDARD_ERRORS,
            anchor=anchor,
            project=project,
            root=root,
        )
    )


def templates(**options: Any) -> Environment:
    """Templates of pages: those of figures/ here, those of the site in docs/.

    Parameters
    ----------
    **options
        Of `jinja2.Environment`.

    Returns
    -------
    jinja2.Environment
        With the filters ``number`` and ``criterion`` of claims.

    Examples
    --------
    >>> from paperfigs import report
    >>> report.templates().from_string("{{ {'at_most': 2.0} | criterion }}").render()
    'at most 2'
    """
    folders = Path(__file__).parent / "pages", project.ROOT / "docs" / "_templates"
    options |= {"loader": FileSystemLoader(folders)}
    pages = Environment(trim_blocks=True, lstrip_blocks=True, **options)
    pages.filters |= {"number": ledger.measurement, "criterion": ledger.criterion}
    return pages


def _table(head, rows):
    """A table in Markdown."""
    first, *others = (f"| {' | '.join(map(str, row))} |" for row in (head, *rows))
    return "\n".join([first, "|---" * len(head) + "|", *others]) + "\n"
