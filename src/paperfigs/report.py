"""Pages made from the records of all figures: claims, settings, gallery, README."""

import re

from paperfigs import ledger, project, verdicts
from paperfigs.files import write_atomic

_UNSEEN = """Nobody here has seen a picture of the papers: our texts of them have none.
A figure is *reproduced* if the headline claims about it hold in our drawing."""
_MARKS = {
    "reproduced": "●",
    "in part": "◐",
    "in part (varies)": "◐",
    "not reproduced": "○",
    "open": "-",
}
_COUNTED = "reproduced", "in part", "not reproduced", "open"
_OWN = "as in the paper (simulated)"  # data with the paper's own settings
_WHEN = {
    "before": "Written before the first run",
    "after": "Written after a look at results",
    "rewritten": "Rewritten after seed 1, before seeds 11 to 15",
}
_CLAIMS = f"""# Does the paper hold? Verdicts and claims

{_UNSEEN}

*Here* is our experiment with the seeds 11 to 15; a claim holds or differs by
{verdicts.STANDARD_ERRORS:g} standard errors. *Readings* have another value of one
setting that the paper leaves open (● holds, ○ differs, ◐ on the border; ours first).
[How claims are judged](../docs/artifact.md#how-claims-are-judged) has all the rules.

![All claims of the papers, with five seeds and all readings](claims.png)
"""
_SETTINGS = """# Settings and data of ours

What the papers leave open: our value, the other values that `paperfigs robust` tries,
and the claims that these decide. The [second table](#data) has data of ours.
"""
_GALLERY = f"""# Gallery

{_UNSEEN}

Every picture leads to its notebook, with the question, the code and the measurements.
[CLAIMS.md](CLAIMS.md) has the claims behind the verdicts, and the rule.
"""


def write() -> None:
    """Write the pages in ``figures/``, and the README's table."""
    root = project.root()
    claims = [_CLAIMS]
    gallery = [_GALLERY]
    counts = []
    settings = []
    data = []
    printed = []
    notebooks = project.notebooks()
    for paper in dict.fromkeys(path.parent.name for path in notebooks.values()):
        own = [item for item in notebooks.items() if item[1].parent.name == paper]
        pages = [Page(figure, notebook) for figure, notebook in own]
        texts = project.claims_file(paper)
        heading = f"{paper}: {texts['title']}"
        head = f"\n## {heading}\n\n{texts['reference']}\n"
        claims += [head, texts["about"], *(page.section() for page in pages)]
        gallery += [head, *(page.card for page in pages)]
        if paper == "beyond":  # the figures of no paper
            continue
        counts.append(_count(paper, heading, pages))
        data += [(page.link, page.data) for page in pages if page.data != _OWN]
        for page in pages:
            settings += page.settings()
            printed += page.printed()
    head = "figure", "number", "paper", "here", "here / paper"
    claims += ["\n## Printed numbers\n", ledger.table(head, printed)]
    head = "figure", "setting", "ours", "others", "decides"
    ours = [_SETTINGS, ledger.table(head, settings), "## Data\n"]
    ours.append(ledger.table(("figure", "data"), data))
    head = "paper", "figures", *_COUNTED, "reproduced with its data", "claims"
    marks = r"(?s)(<!-- claims -->\n).*(<!-- /claims -->)"
    counted = rf"\g<1>{ledger.table(head, counts)}\g<2>"
    readme = re.sub(marks, counted, (root / "README.md").read_text())
    write_atomic(root / "README.md", readme)
    write_atomic(root / "figures" / "CLAIMS.md", "\n".join(claims))
    write_atomic(root / "figures" / "README.md", "\n".join(gallery))
    write_atomic(root / "figures" / "SETTINGS.md", "\n".join(ours))


def _anchor(heading):
    """Anchor of a heading, as a code host and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")


def _count(paper, heading, pages):
    """The row of a paper in the README: how many figures have which verdict."""
    words = [page.word.removesuffix(" (varies)") for page in pages]
    claims = [claim for page in pages for claim in page.claims]
    link = f"[{paper}](figures/README.md#{_anchor(heading)})"
    own = [page.word for page in pages if page.data == _OWN]
    numbers = [*map(words.count, _COUNTED), own.count("reproduced")]
    return link, len(pages), *numbers, verdicts.fraction(claims)


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
        address = f"../notebooks/{figure.split('/')[0]}/{notebook.name}"
        self.figure = figure
        self.link = f"[{figure}]({address})"
        self.title = project.title(notebook)
        self.data = project.about(figure).get("data", "")
        self.claims = verdicts.assess(figure)
        self.word = verdicts.judge(self.claims)
        claims = f"[claims](CLAIMS.md#{_anchor(f'{figure} {self.title}')})"
        mark = _MARKS.get(self.word, "")
        self.text = ledger.verdict(figure).data
        picture = f"[![{self.title}]({figure}.png)]({address})"
        self.card = f"### {self.title}\n\n{picture}\n\n{mark} {self.text} ({claims})\n"

    def section(self):
        """The claims as a section of ``CLAIMS.md``."""
        head = "claim", "criterion", "measured", "here", "readings"
        table = ledger.table(head, map(self._row, self.claims))
        return f"\n### {self.figure} {self.title}\n\n{self.text}\n\n{table}"

    def _row(self, claim):
        """A claim as a row."""
        place = "ours" if "ours" in claim else claim["where"]
        if "headline" in claim:
            place = f"{place}; headline: {claim['headline']}"
        criterion = ledger.criterion(claim)
        if criterion:
            criterion += f". {claim.get('why', '')}"
        if "when" in claim:
            criterion += f" {_WHEN[claim['when']]} ({claim.get('set')})."
        measured = ledger.measurement(claim)
        values = claim["values"]
        if len(set(values)) > 1:
            low, high = min(values), max(values)
            measured += f" ({low:.3g} to {high:.3g}; {len(values)} seeds)"
        here = claim["here"]
        median = claim["median"]
        if median is not None and verdicts.status(median, 0.0, claim) != here:
            measured += f"; by medians {median:.3g}"
        if claim["reason"] and (here != "holds" or claim["decides"]):
            here += f": {claim['reason']}"
        says = f"{ledger.says(claim)} [{place}]"
        return says, criterion, measured, here, verdicts.general(claim)

    def printed(self):
        """Rows of the numbers that the paper prints about results."""
        for claim in self.claims:
            if "theirs" in claim:
                theirs, ours = claim["theirs"], claim["measured"]
                ratio = f"{ours / theirs:.3g}" if ours else ""
                what = f"{claim['says']} ({claim['where']})"
                yield self.link, what, theirs, ledger.measurement(claim), ratio

    def settings(self):
        """Rows of the settings that the paper leaves open."""
        free = project.settings(self.figure).get("free", {})
        for name, setting in free.items():
            decides = [claim["id"] for claim in self.claims if name in claim["decides"]]
            ours = verdicts.text(setting["ours"])
            others = " / ".join(map(verdicts.text, setting["others"]))
            words = f"`{name}`: {setting['words']}"
            yield self.link, words, ours, others, ", ".join(decides)
