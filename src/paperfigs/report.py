"""Pages made of the records of all figures: claims, gallery, table of the README."""

import re
from itertools import groupby

from paperfigs import ledger, project
from paperfigs.files import write_atomic

VERDICTS = "reproduced", "in part", "not reproduced", "not testable"
_HEAD = "claim", "criterion", "measured", "status"
_CLAIMS = f"""# Does the paper hold? Verdicts and claims

A figure is *reproduced* if all claims of the paper about it hold that can be tested,
*not reproduced* if none does, and else reproduced *in part*. A claim *holds*, or
*differs*, if the measurement meets its criterion, or misses it, by
{ledger.STANDARD_ERRORS:g} standard errors; else it is *on the border*. The number
after ± is one standard error. A claim is *calibrated* where stand-in data were chosen
to fit it, and *not testable* where it needs data that we lack; neither counts.
Claims of ours, which no paper makes, do not count; a figure that has no others is ours,
and how many of them hold is said in place of a verdict.
"Criterion after" marks a criterion that was written after a look at results.
This page is made from `notebooks/*/claims.yaml` and the records beside the figures.
"""
_GALLERY = """# Gallery

A picture leads to its notebook, with the question, the code and what was measured.
[CLAIMS.md](CLAIMS.md) has the claims behind each verdict, and the rule.
"""
_NOT_OF_A_PAPER = "beyond"


def write() -> None:
    """Write ``figures/CLAIMS.md``, ``figures/README.md`` and the README's table."""
    root, notebooks = project.root(), project.notebooks()
    claims, gallery, counts = [_CLAIMS], [_GALLERY], []
    for paper, figures in groupby(notebooks, lambda figure: figure.split("/")[0]):
        pages = [Page(figure, notebooks[figure]) for figure in figures]
        about = project.claims_file(paper).get("about", "")
        rows = [(f"[{page.title}]({page.link})", *page.verdict) for page in pages]
        table = ledger.table(("figure", "verdict", "data", "in a sentence"), rows)
        claims += [f"\n## {paper}\n", about, table]
        claims += [page.claims() for page in pages]
        rows = [(page.picture, page.title, page.marked) for page in pages]
        gallery += [f"\n## {paper}\n", ledger.table(("", "", "does it hold?"), rows)]
        found = [page.verdict[0] for page in pages if page.verdict[0] in VERDICTS]
        if paper != _NOT_OF_A_PAPER:
            counts.append((paper, len(found), *map(found.count, VERDICTS)))
    counts = [(f"[{paper}](figures/README.md#{paper})", *n) for paper, *n in counts]
    summary = ledger.table(("paper", "figures", *VERDICTS), counts)
    marked = rf"\g<1>{summary}\g<2>"
    readme = (root / "README.md").read_text()
    readme = re.sub(r"(?s)(<!-- claims -->\n).*(<!-- /claims -->)", marked, readme)
    write_atomic(root / "README.md", readme)
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
        self.marked = f"**{verdict}** ({self.verdict[1]}). {self.verdict[2]}"

    def claims(self):
        """The claims as a section."""
        rows = []
        for claim in self.found:
            *texts, status = ledger.row(claim)
            status += "; criterion after" if claim.get("when") == "after" else ""
            status += f": {claim['reason']}" if claim["reason"] else ""
            rows.append((*texts, status + "; ours" * ("ours" in claim)))
        return f"\n### {self.title}\n\n{ledger.table(_HEAD, rows)}"
