"""Pages of claims: figures/CLAIMS.md and the table of the README."""

import json
from itertools import groupby
from pathlib import Path

from paperlib.repro import ledger, project

__all__ = ["claims_page", "read_all", "summary"]

_STATUSES = ("holds", "differs", "too few runs", "calibrated", "not testable")


def read_all(root=project.ROOT):
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
    >>> from paperlib.repro import report
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


def summary(records):
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
    >>> from paperlib.repro import report
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
    for paper, figures in groupby(sorted(records), lambda id_: id_.split("/")[0]):
        yield paper, [records[figure] for figure in figures]


def claims_page(records, root=project.ROOT):
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
    >>> from paperlib.repro import report
    >>> print(report.claims_page({}).splitlines()[0])
    # What the papers claim, and what we measured
    """
    parts = [
        "# What the papers claim, and what we measured\n",
        "Each claim has a criterion that was fixed before the run. It *holds*, or "
        "*differs*, if the measurement meets the\ncriterion, or misses it, by "
        f"{ledger.STANDARD_ERRORS:g} standard errors; between there are *too few runs* "
        "to say. The number after ± is one\nstandard error. A claim is *calibrated* "
        "or *not testable* where nothing could be measured; the reason says why.\n"
        "*Ours* marks checks of this project, which no paper makes. This page is made "
        "from `notebooks/*/claims.yaml` and\nthe records beside the figures.\n",
        summary(records),
    ]
    notebooks = project.notebooks(root)
    for paper, figures in _papers(records):
        parts += [f"## {paper}\n", project.about(paper, root) + "\n"]
        for record in figures:
            figure = record["figure"]
            notebook = notebooks.get(figure)
            title = project.title(notebook) if notebook else figure
            parts += [f"### {title}\n", _sentences(record["claims"])]
    return "\n".join(parts)


def _sentences(claims):
    """A list item for each claim."""
    items = []
    for claim in claims:
        limits, found = ledger.criterion(claim), ledger.measurement(claim)
        said = f"- {claim['says']}"
        if claim.get("ours"):
            said += " *(ours)*"
        if found:
            quantity = claim["quantity"]
            said += f" *{quantity[:1].upper()}{quantity[1:]}:* {found}; {limits}."
        said += f" **{claim['status'].capitalize()}**"
        said += f": {claim['reason']}" if claim["reason"] else "."
        origin = claim["where"], claim.get("source"), f"`{claim['id']}`"
        items.append(f"{said} ({'; '.join(filter(None, origin))})")
    return "\n".join([*items, ""])


def _table(head, rows):
    """A table in Markdown."""
    first, *others = (f"| {' | '.join(map(str, row))} |" for row in (head, *rows))
    return "\n".join([first, "|---" * len(head) + "|", *others]) + "\n"
