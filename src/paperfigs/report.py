"""Pages made of the records of all figures: claims, gallery, table of the README."""

import re
from itertools import groupby

from paperfigs import ledger, project
from paperfigs.files import write_atomic

VERDICTS = "reproduced", "in part", "not reproduced", "not testable"
_HEAD = "claim", "criterion", "measured", "status"
_CLAIMS = f"""# Does the paper hold? Verdicts and claims

The claims of a paper about a figure give its verdict, by one rule: *reproduced* if all
of them that can be tested hold, *not reproduced* if none does, else *in part*.

- A claim *holds* if the measurement meets its criterion by {ledger.STANDARD_ERRORS:g}
  standard errors, and *differs* if it misses it by as much; else it is *on the border*.
  The number after ± is one standard error.
- "Criterion after" marks a criterion that was written, or changed, after a look at
  results; all others were written before. *Calibrated*: stand-in data were chosen to
  fit the claim. *Not testable*: data or numbers that the paper does not give decide it.
  Neither counts.
- Claims of ours, which no paper makes, do not count. A figure that has no others is
  ours, and how many of them hold is said in place of a verdict.
- Data *as in the paper* are simulated by the distributions that the paper gives;
  *stand-in* data replace private ones, and *reconstructed* figures settings that our
  text of the paper lacks.

This page is made from `notebooks/*/claims.yaml` and the records beside the figures. The
last table lists what could not be tested.
"""
_GALLERY = """# Gallery

A picture leads to its notebook, with the question, the code and what was measured.
[CLAIMS.md](CLAIMS.md) has the claims behind each verdict, and the rule.
"""


def write() -> None:
    """Write ``figures/CLAIMS.md``, ``figures/README.md`` and the README's table."""
    root, notebooks = project.root(), project.notebooks()
    claims, gallery, counts, untested = [_CLAIMS], [_GALLERY], [], []
    for paper, figures in groupby(notebooks, lambda figure: figure.split("/")[0]):
        pages = [Page(figure, notebooks[figure]) for figure in figures]
        about = project.claims_file(paper).get("about", "")
        rows = [(f"[{page.title}]({page.link})", *page.verdict) for page in pages]
        table = ledger.table(("figure", "verdict", "data", "in a sentence"), rows)
        claims += [f"\n## {paper}\n", about, table]
        claims += [page.claims() for page in pages]
        untested += [row for page in pages for row in page.untested()]
        rows = [(page.picture, page.title, page.marked) for page in pages]
        gallery += [f"\n## {paper}\n", ledger.table(("", "", "does it hold?"), rows)]
        found = [page.verdict[0] for page in pages if page.verdict[0] in VERDICTS]
        if paper != "beyond":  # which is no paper
            link = f"[{paper}](figures/README.md#{paper})"
            counts.append((link, len(found), *map(found.count, VERDICTS)))
    table = ledger.table(("figure", "claim", "why"), untested)
    claims.append("\n## Not tested\n\n" + table)
    marked = rf"\g<1>{ledger.table(('paper', 'notebooks', *VERDICTS), counts)}\g<2>"
    readme, marks = root / "README.md", r"(?s)(<!-- claims -->\n).*(<!-- /claims -->)"
    write_atomic(readme, re.sub(marks, marked, readme.read_text()))
    write_atomic(root / "figures" / "CLAIMS.md", "\n".join(claims) + "\n")
    write_atomic(root / "figures" / "README.md", "\n".join(gallery))


class Page:
    """What the pages say of one figure."""

    def __init__(self, figure, notebook):
        self.figure, self.title = figure, project.title(notebook)
        self.link = f"../notebooks/{figure.split('/')[0]}/{notebook.name}"
        self.found, about = ledger.recorded(figure), project.about(figure)
        verdict = ledger.judge(self.found)
        self.verdict = verdict, about.get("data", ""), about.get("sentence", "")
        self.picture = f"[![{self.title}]({figure}.png)]({self.link})"
        data = f" ({self.verdict[1]})" if self.verdict[1] else ""
        self.marked = f"**{verdict}**{data}. {self.verdict[2]}"

    def claims(self):
        """The claims as a section."""
        rows = []
        for claim in self.found:
            *texts, status = ledger.row(claim)
            status += "; criterion after" if claim.get("when") == "after" else ""
            status += f": {claim['reason']}" if claim["reason"] else ""
            rows.append((*texts, status + "; ours" * ("ours" in claim)))
        return f"\n### {self.title}\n\n{ledger.table(_HEAD, rows)}"

    def untested(self):
        """Rows of the claims that data or numbers of the paper's own would decide."""
        return [
            (f"[{self.title}]({self.link})", claim["says"], claim["reason"])
            for claim in self.found
            if claim["status"] == "not testable"
        ]
