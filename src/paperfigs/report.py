"""Pages made from the records of all figures: claims, settings, gallery, README."""

import re
from itertools import groupby

from paperfigs import ledger, project, verdicts
from paperfigs.files import write_atomic

_UNSEEN = """Nobody here has seen a picture of the papers: our texts of them have none.
A figure is *reproduced* if what the paper says about it holds in our drawing."""
_VERDICTS = {
    "reproduced": "●",
    "in part": "◐",
    "in part (varies)": "◐",
    "not reproduced": "○",
    "open": "-",
}
_COUNTED = "reproduced", "in part", "not reproduced", "open"
_WHEN = {
    "before": "Written before the first run",
    "after": "Written after a look at results",
    "rewritten": "Rewritten after seed 1, before seeds 11 to 15",
}
_CLAIMS = f"""# Does the paper hold? Verdicts and claims

{_UNSEEN}

- **Here**: the experiment as we read it, with the seeds 11 to 15. A claim *holds* or
  *differs* if the mean over the seeds meets or misses the criterion by
  {verdicts.STANDARD_ERRORS:g} standard errors, and no seed says the opposite; otherwise
  it *varies*. The number after ± is one standard error of the mean, by the spread over
  the seeds or by the errors within them, whichever is larger. Claims without randomness
  have one run.
- **Readings**: the same experiment with another value of one setting that the paper, or
  our text of it, leaves open (● holds, ○ differs, ◐ on the border; ours first).
  [SETTINGS.md](SETTINGS.md) lists these settings.
- *Open*: no reading that we can make tests the claim, because data or a formula are not
  ours to have. *Calibrated*: the stand-in data were chosen to fit the claim.
- A figure is *reproduced* if its **headline** claims hold, and none of them is open or
  calibrated. The paper states these in its abstract, introduction, conclusion or
  captions. Without headline claims all claims count. It is *not reproduced* if none of
  them holds, *open* if none can be tested, otherwise *in part*. Our own claims do not
  count.
- Data *as in the paper* are simulated from the distributions that the paper gives.
  *Stand-in* data replace private data. *Reconstructed* figures have settings of ours.

![All claims of the papers, with five seeds and all readings](claims.png)

This page is made from `notebooks/*/claims.yaml` and the records beside the figures. Its
last table has the numbers that the papers print about results.
"""
_SETTINGS = """# Settings and data of ours

The first table has what the papers, or our texts of them, leave open: our value, and
the other values with which `paperfigs robust` repeats the experiment.
The second table has the figures whose data are not those of the paper.
This page is made from `notebooks/paper.yaml` and the records in `figures/robust/`.
"""
_GALLERY = f"""# Gallery

{_UNSEEN}

Every picture leads to its notebook, with the question, the code and the measurements.
[CLAIMS.md](CLAIMS.md) has the claims behind the verdicts, and the rule.
"""


def write() -> None:
    """Write the pages in ``figures/``, and the README's table."""
    root = project.root()
    notebooks = project.notebooks()
    claims = [_CLAIMS]
    gallery = [_GALLERY]
    counts = []
    everything = []
    for paper, figures in groupby(notebooks, lambda figure: figure.split("/")[0]):
        pages = [Page(figure, notebooks[figure]) for figure in figures]
        claims += _claims(paper, pages)
        gallery += _gallery(paper, pages)
        if paper != "beyond":  # the figures of no paper
            counts.append(_count(paper, pages))
            everything += pages
    rows = [row for page in everything for row in page.printed()]
    table = ledger.table(("figure", "number", "paper", "here", "difference"), rows)
    claims.append(f"\n## Printed numbers\n\n{table}")
    write_atomic(root / "figures" / "CLAIMS.md", "\n".join(claims) + "\n")
    write_atomic(root / "figures" / "README.md", "\n".join(gallery))
    write_atomic(root / "figures" / "SETTINGS.md", _settings(everything))
    head = "paper", "figures", *_COUNTED, "claims"
    table = ledger.table(head, counts)
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
    return [f"\n## {paper}\n", about, table, *(page.section() for page in pages)]


def _gallery(paper, pages):
    """The part of a paper in the gallery: its pictures."""
    rows = [(page.picture, page.title, page.marked) for page in pages]
    return [f"\n## {paper}\n", ledger.table(("", "", "does it hold?"), rows)]


def _count(paper, pages):
    """The row of a paper in the README: how many figures have which verdict."""
    words = [page.word.removesuffix(" (varies)") for page in pages]
    claims = [claim for page in pages for claim in page.claims]
    link = f"[{paper}](figures/README.md#{paper})"
    counts = [words.count(word) for word in _COUNTED]
    return (link, len(pages), *counts, verdicts.fraction(claims))


def _settings(pages):
    """The page of the settings and the data that are ours."""
    rows = [row for page in pages for row in page.settings()]
    head = "figure", "setting", "ours", "others", "what the paper says", "decides"
    data = [
        (page.reference, page.data)
        for page in pages
        if not page.data.startswith("as in the paper (simulated)")
    ]
    parts = _SETTINGS, ledger.table(head, rows), ledger.table(("figure", "data"), data)
    return "\n".join(parts)


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
        self.figure = figure
        self.title = project.title(notebook)
        self.data = about.get("data", "")
        self.sentence = about.get("sentence", "")
        self.link = f"../notebooks/{figure.split('/')[0]}/{notebook.name}"
        self.reference = f"[{figure}]({self.link})"
        self.picture = f"[![{self.title}]({figure}.png)]({self.link})"
        self.claims = verdicts.assess(figure)
        self.word = verdicts.judge(self.claims)
        self.verdict = self.word
        if verdicts.of_paper(self.claims):
            self.verdict = f"{self.word}: {verdicts.fraction(self.claims)}"
        mark = _VERDICTS.get(self.word, "")
        # As a code host and the site make anchors of headings.
        anchor = re.sub(r"[^\w\- ]", "", self.heading.lower()).replace(" ", "-")
        claims = f"[claims](CLAIMS.md#{anchor})"
        self.marked = (
            f"{mark} **{self.verdict}**. {self.sentence} ({claims}; {self.data})"
        )

    @property
    def heading(self):
        """Heading of the claims of this figure."""
        return f"{self.figure}: {self.title}"

    def section(self):
        """The claims as a section."""
        runs = verdicts.runs(self.figure)["seeds"]
        n_runs = ""
        if runs and "n_runs" in runs[0]["parameters"]:
            n_runs = f" of {runs[0]['parameters']['n_runs']:,} runs"
        rows = []
        for claim in self.claims:
            measured = ledger.measurement(claim)
            if len(set(claim["values"])) > 1:
                low, high = min(claim["values"]), max(claim["values"])
                n_seeds = len(claim["values"])
                measured += f"; {low:.3g} to {high:.3g} ({n_seeds} seeds{n_runs})"
            if claim["median"] is not None:
                measured += f"; by medians {claim['median']:.3g}"
            here = claim["here"]
            if claim["reason"] and (here != "holds" or claim["decides"]):
                here += f": {claim['reason']}"
            general = verdicts.general(claim)
            rows.append((_statement(claim), _criterion(claim), measured, here, general))
        head = "claim", "criterion", "measured", "here", "readings"
        return f"\n### {self.heading}\n\n{ledger.table(head, rows)}"

    def printed(self):
        """Rows of the numbers that the paper prints about results."""
        for claim in self.claims:
            if "theirs" not in claim:
                continue
            difference = ""
            if claim["measured"] is not None:
                difference = f"{claim['measured'] / claim['theirs'] - 1:+.0%}"
            ours = ledger.measurement(claim)
            what = f"{claim['says']} ({claim['where']})"
            yield self.reference, what, claim["theirs"], ours, difference

    def settings(self):
        """Rows of the settings that the paper leaves open."""
        free = project.settings().get(self.figure, {}).get("free", {})
        for name, setting in free.items():
            ours = verdicts.text(project.our_value(self.figure, name))
            others = " / ".join(map(verdicts.text, setting["others"]))
            decides = [
                f"`{claim['id']}`"
                for claim in self.claims
                if any(f"`{name}`" in text for text in claim["decides"])
            ]
            words = setting["words"]
            yield self.reference, name, ours, others, words, ", ".join(decides)


def _statement(claim):
    """A claim with the place in the paper."""
    place = claim["where"]
    if "headline" in claim:
        place = f"{place}; headline: {claim['headline']}"
    if "ours" in claim:
        place = "ours"
    return f"{ledger.says(claim)} [{place}]"


def _criterion(claim):
    """The criterion of a claim, its reason, and when it was set."""
    parts = [ledger.criterion(claim), claim.get("why", "").strip().rstrip(".")]
    if "when" in claim:
        parts.append(
            f"{_WHEN[claim['when']]} ({claim.get('set', 'undated')})".capitalize()
        )
    return ". ".join(filter(None, parts))
