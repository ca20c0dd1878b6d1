"""What the site needs beyond its pages: a first page, and links that lead somewhere."""

import shutil
from pathlib import Path

from docutils import nodes

WIDE = "figures/README"  # the grid of pictures needs the room of the contents list


def write_index(app, exception):
    """The address of the site leads to its first page."""
    page = '<meta http-equiv="refresh" content="0; url=docs/index.html">\n'
    Path(app.outdir, "index.html").write_text(page)


def keep_the_text(app, tree, page):
    """A link to a file that is not on the site, such as a folder, is its text alone."""
    for link in list(tree.findall(nodes.reference)):
        if "/" in link.get("refid", "") or link.get("refuri", "").startswith("#../"):
            link.replace_self(link.children)


def widen(app, page, template, context, tree):
    """The gallery has no list of contents at its right."""
    if page == WIDE:
        context["furo_hide_toc"] = True


def offer_notebook(app, page, template, context, tree):
    """The page of a notebook offers the notebook, which is copied beside it."""
    if page.startswith("notebooks/"):
        copy = Path(app.outdir, f"{page}.ipynb")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(app.env.doc2path(page), copy)
        link = f'<p><a href="{copy.name}" download>Download this notebook</a></p>'
        context["body"] = context["body"].replace("</h1>", f"</h1>\n{link}", 1)


def setup(app):
    app.connect("build-finished", write_index)
    app.connect("doctree-resolved", keep_the_text)
    app.connect("html-page-context", widen, priority=900)  # after furo itself
    app.connect("html-page-context", offer_notebook)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
