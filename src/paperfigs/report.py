"""Pages made from the records of all figures: claims, gallery, table of the README."""

import re
from itertools import groupby

from paperfigs import ledger, project
from paperfigs.files import write_atomic

VERDICTS = "reproduced", "in part", "not reproduced", "not testable"
_HEAD = "claim", "criterion", "measured", "status"
_CLAIMS = f"""# Does the paper hold? Verdicts and claims

The verdict on a figure follows from the paper's claims about it: *reproduced* if all
testable claims hold, *not reproduced* if none holds, otherwise *in part*.

- A claim *holds* if the measurement meets its criterion by {ledger.STANDARD_ERRORS:g}
  standard errors, and *differs* if it misses the criterion by as much; otherwise it is
  *on the border*. The number after ± is one standard error.
- "Criterion after" marks a criterion that was written or changed after a look at
  results. All other criteria were written before. *Calibrated*: the stand-in data were
  chosen to fit the claim. *Not testable*: the claim depends on data or numbers that the
  paper does not give. Neither counts.
- Our own claims, which no paper makes, do not count. If a figure has no other claims,
  the verdict is the number of our claims that hold.
- Data *as in the paper* are simulated from the distributions that the paper gives.
  *Stand-in* data replace private data. *Reconstructed* figures have settings of ours,
  because our text of the paper lacks them.

This page is made from `notebooks/*/claims.yaml` and the records beside the figures. The
last table lists the claims that could not be tested.
"""
_GALLERY = """# Gallery

Every picture leads to its notebook, with the question, the code and the measurements.
[CLAIMS.md](CLAIMS.md) has the claims behind the verdicts, and the rule.
"""


def write() -> None:
    """Write ``figures/CLAIMS.md``, ``figures/README.md`` and the README's table."""
    root = project.root()
    notebooks = project.notebooks()
    claims = [_CLAIMS]
    gallery = [_GALLERY]
    counts = []
    untested = []
    for paper, figures in groupby(notebooks, lambda figure: figure.split("/")[0]):
        pages = [Page(figure, notebooks[figure]) for figure in figures]
        claims += _claims(paper, pages)
        gallery += _gallery(paper, pages)
        untested += [row for page in pages for row in page.untested()]
        if paper != "beyond":  # the figures of no paper
            counts.append(_count(paper, pages))
    table = ledger.table(("figure", "claim", "why"), untested)
    claims.append("\n## Not tested\n\n" + table)
    write_atomic(root / "figures" / "CLAIMS.md", "\n".join(claims) + "\n")
    write_atomic(root / "figures" / "README.md", "\n".join(gallery))
    table = ledger.table(("paper", "notebooks", *VERDICTS), counts)
    marks = r"(?s)(<!-- claims -->\n).*(<!-- /claims -->)"
    readme = (root / "README.md").read_text()
    write_atomic(root / "README.md", re.sub(marks, rf"\g<1>{table}\g<2>", readme))


def _claims(paper, pages):
    """The part of a paper in ``CLAIMS.md``: its verdicts and its claims."""
    about = project.claims_file(paper).get("about", "")
    rows = [
        (f"[{page.title}]({page.link})", page.verdict, page.data, page.sentence)
        for page in pages
    ]
    table = ledger.table(("figure", "verdict", "data", "in a sentence"), rows)
    return [f"\n## {paper}\n", about, table, *(page.claims() for page in pages)]


def _gallery(paper, pages):
    """The part of a paper in the gallery: its pictures."""
    rows = [(page.picture, page.title, page.marked) for page in pages]
    return [f"\n## {paper}\n", ledger.table(("", "", "does it hold?"), rows)]


def _count(paper, pages):
    """The row of a paper in the README: how many figures have which verdict."""
    verdicts = [page.verdict for page in pages if page.verdict in VERDICTS]
    link = f"[{paper}](figures/README.md#{paper})"
    return (link, len(verdicts), *(verdicts.count(verdict) for verdict in VERDICTS))


class Page:
    """Texts about one figure.

    Parameters
    ----------
    figure : str
        Figure id.
    notebook : Path
        The notebook of the figure.
    """

    def __init__(self, figure, notebook):
        about = project.about(figure)
        self.title = project.title(notebook)
        self.data = about.get("data", "")
        self.sentence = about.get("sentence", "")
        self.link = f"../notebooks/{figure.split('/')[0]}/{notebook.name}"
        self.picture = f"[![{self.title}]({figure}.png)]({self.link})"
        self._claims = ledger.recorded(figure)
        self.verdict = ledger.judge(self._claims)
        self.marked = f"**{self.verdict}**. {self.sentence}"
        if self.data:
            self.marked = f"**{self.verdict}** ({self.data}). {self.sentence}"

    def claims(self):
        """The claims as a section."""
        rows = []
        for claim in self._claims:
            *texts, status = ledger.row(claim)
            if claim.get("when") == "after":
                status += "; criterion after"
            if claim["reason"]:
                status += f": {claim['reason']}"
            if "ours" in claim:
                status += "; ours"
            rows.append((*texts, status))
        return f"\n### {self.title}\n\n{ledger.table(_HEAD, rows)}"

    def untested(self):
        """Rows of the claims that only the paper's own data or numbers can test."""
        return [
            (f"[{self.title}]({self.link})", claim["says"], claim["reason"])
            for claim in self._claims
            if claim["status"] == "not testable"
        ]
