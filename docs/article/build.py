"""Build the article: records and templates in, Markdown and PDF out.

``make article`` runs this file. `article.md` and `paper.md` are Jinja templates of
Markdown with references. Every number of ours in them is an expression that reads a
record (`records.py`), so that no number is typed. An unknown name, or a status that
is not the expected one, is an error: a sentence that is no longer true fails the
build. Pandoc puts in the references, and Typst makes the PDF.
"""

import sys
from functools import partial
from pathlib import Path

import jinja2
import numpy as np

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path.insert(0, str(FOLDER))

import records  # noqa: E402

READERS = (
    "array", "count", "distances", "duel", "figures", "fraction", "growth_between",
    "mean", "of_cells", "parameter", "predictions", "readings", "seconds", "seeds",
    "sentence", "sided", "slim", "status", "turning", "value", "verdict", "versions",
)  # fmt: skip
OPTIONS = ["--citeproc", f"--bibliography={FOLDER / 'paper.bib'}", "--wrap=none"]
# Markdown that MyST reads too; formulas stay as they are.
PLAIN = "markdown_strict+pipe_tables+tex_math_dollars-raw_html"


class Pictures:
    """Pictures with their numbers, in the order in which they are first mentioned.

    Parameters
    ----------
    page : bool
        For the page of the site, which shows pixels; the PDF has drawings.
    """

    def __init__(self, page):
        self._page = page
        self._numbers = {}

    def number(self, figure):
        """Number of a picture."""
        return self._numbers.setdefault(figure, len(self._numbers) + 1)

    def picture(self, figure, caption, width=100):
        """A picture with its caption."""
        path = f"figures/{figure}.png"
        if not (ROOT / path).is_file():
            raise ValueError(f"figure must have a picture, got {path}")
        number = self.number(figure)
        caption = f"**Figure {number}.** {caption}{records.drawn_with(figure)}"
        if self._page:
            return f"![Figure {number}](../../{path})\n\n{caption}"
        drawing = path.replace(".png", ".svg")
        if (ROOT / drawing).is_file():
            path = drawing
        return f"![{caption}](/{path}){{width={width}%}}"


def caption(number, text, page):
    """The caption above a table; in the PDF it stays with the table."""
    text = f"**Table {number}.** {text}"
    if page:
        return text
    raw = "```{=typst}\n%s\n```"
    return "\n\n".join((raw % "#block(sticky: true)[", text, raw % "]"))


def environment(page=False):
    """What a template may use, for the PDF or for the page of the site."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        undefined=jinja2.StrictUndefined,
        comment_start_string="<!--#",  # Pandoc's own attributes begin with {#
        comment_end_string="#-->",
    )
    pictures = Pictures(page)
    made.filters |= {"expect": records.expect, "write": records.write}
    made.globals |= {name: getattr(records, name) for name in READERS}
    made.globals |= {"number": pictures.number, "picture": pictures.picture}
    made.globals |= {"median": np.median, "table": partial(caption, page=page)}
    return made


def render(name, page=False):
    """Markdown of a template."""
    return environment(page).get_template(f"{name}.md").render()


def page():
    """Markdown of the article for the site, with references written out."""
    import pypandoc

    options = [*OPTIONS, f"--template={FOLDER / 'page.template'}"]
    text = render("article", page=True)
    source = "markdown-implicit_figures"  # captions are paragraphs
    return pypandoc.convert_text(text, PLAIN, source, extra_args=options)


def write_pdf(name, folder):
    """Write the Markdown and the PDF of a template into a folder."""
    import pypandoc
    import typst

    text = render(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    options = [*OPTIONS, f"--template={FOLDER / 'article.typ'}"]
    source = pypandoc.convert_text(text, "typst", "markdown", extra_args=options)
    (folder / f"{name}.typ").write_text(source, encoding="utf-8")
    document = typst.compile(source.encode(), root=ROOT, ignore_system_fonts=True)
    (folder / f"{name}.pdf").write_bytes(document)


if __name__ == "__main__":
    for name in ("article", "paper"):
        write_pdf(name, ROOT / "build")
        print(f"build/{name}.pdf")
