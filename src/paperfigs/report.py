"""Pages made of the records of all figures: claims, gallery, table of the README."""

import json
import re
from itertools import groupby
from typing import Any

from paperfigs import ledger, project
from paperfigs.files import write_atomic

_STATUSES = "holds", "differs", "too few runs", "calibrated", "not testable"
_HEAD = "claim", "criterion", "measured", "verdict"
_CLAIMS = f"""# What the papers claim, and what we measured

Each claim has a criterion. It *holds*, or *differs*, if the measurement meets the
criterion, or misses it, by {ledger.STANDARD_ERRORS:g} standard errors; between there
are *too few runs* to say. The number after ± is one standard error. A claim is
*calibrated* where stand-in data were chosen to fit it, and *not testable* where it
needs data that we lack; the reason says more. The name of a claim is the last word of
its text. This page is made from `notebooks/*/claims.yaml` and the records beside the
figures.
"""
_GALLERY = """# Gallery

A picture leads to its notebook, with the question, the code and what was measured.
All claims are in [CLAIMS.md](CLAIMS.md); this page is made from the notebooks.
"""


def records() -> dict[str, list[dict[str, Any]]]:
    """Read the claims of all figures that have been built, with their texts.

    Returns
    -------
    dict of list of dict
        By figure id, in the order of the gallery.
    """
    found = {}
    for figure in project.notebooks():
        path = project.root() / "figures" / f"{figure}.json"
        if path.exists():
            claims, record = project.claims(figure), json.loads(path.read_text())
            found[figure] = [
                ledger.join(claims, each)
                for each in record["claims"]
                if ledger.claim_id(each) in claims  # not one that has been removed
            ]
    return found


def write() -> None:
    """Write ``figures/CLAIMS.md``, ``figures/README.md`` and the README's table."""
    found, root = records(), project.root()
    claims, gallery, counts = [_CLAIMS], [_GALLERY], []
    for paper, figures in groupby(found, lambda figure: figure.split("/")[0]):
        claims += [f"\n## {paper}\n", project.claims_file(paper).get("about", "")]
        gallery += [f"\n## {paper}\n"]
        rows, statuses = [], []
        for figure in figures:
            notebook = project.notebooks()[figure]
            title, link = (
                project.title(notebook),
                f"../notebooks/{paper}/{notebook.name}",
            )
            claims += [f"\n### {title}\n", f"[`{figure}`]({link})\n"]
            claims.append(ledger.table(_HEAD, map(_row, found[figure])))
            here = [
                claim["status"]
                for claim in found[figure]
                if paper == "beyond" or "ours" not in claim
            ]
            holds = f"{here.count('holds')} of {len(here)}"
            rows.append((f"[![{title}]({figure}.png)]({link})", title, holds))
            statuses += here
        gallery.append(ledger.table(("", "", "claims that hold"), rows))
        counts.append((paper, len(rows), *map(statuses.count, _STATUSES)))
    summary = ledger.table(("paper", "figures", *_STATUSES), counts)
    marked = rf"\g<1>{summary}\g<2>"
    readme = (root / "README.md").read_text()
    readme = re.sub(r"(?s)(<!-- claims -->\n).*(<!-- /claims -->)", marked, readme)
    write_atomic(root / "README.md", readme)
    write_atomic(root / "figures" / "CLAIMS.md", "\n".join(claims) + "\n")
    write_atomic(root / "figures" / "README.md", "\n".join(gallery))


def _row(claim):
    """A claim as a row, with the reason of its status."""
    *texts, status = ledger.row(claim)
    return *texts, f"{status}: {claim['reason']}" if claim["reason"] else status
