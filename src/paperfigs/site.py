"""Source of the site for Sphinx: docs/, and pages from records and notebooks.

The templates in docs/_templates say what a page holds; this module collects
what they show. myst-nb renders the notebooks, numpydoc the interfaces.
"""

import html
import json
import re
import shutil
from itertools import groupby
from pathlib import Path

from markupsafe import Markup
from PIL import Image

from paperfigs import build, project, report
from recrawl.types import PathLike

__all__ = ["write"]

# In docs/, a link to a file, as a code host follows it, becomes a link to the
# page that is made of that file.
_LINKS = {
    r"\.\./notebooks/(\w+/[a-z0-9]+)(?:_\w+)?\.ipynb": r"figures/\1.ipynb",
    r"\.\./src/paperlib/(\w+)(\.py|/(?=\)))?": r"reference/\1.md",
    r"\.\./src/paperlib/?(?=\))": "reference/index.md",
    r"\.\./figures/README\.md": "gallery.md",
    r"\.\./figures/CLAIMS\.md": "claims.md",
    r"\.\./": "",
}
# Pages that do not lie in docs/.
_PAGES = (
    "benchmarks/README.md",
    "data/README.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE-CC-BY-4.0.md",
)
_THUMBNAIL = (480, 480)  # pixels, twice the width that the gallery shows


def write(target: PathLike, root: PathLike = build.ROOT) -> list[str]:
    """Write ``target/source`` for Sphinx, and ``target/extra`` to be copied.

    A figure has a page if it has a notebook and a record. In docs/, a link to a
    file of the repository becomes one to its page, and the measurement of a claim
    (see `report.filled`) leads to the row of that claim.

    Parameters
    ----------
    target : path
        Folder to write, emptied first.
    root : path, optional
        The project.

    Returns
    -------
    list of str
        Ids of the figures that have a page, in the order of the gallery.

    Raises
    ------
    ValueError
        A record that cannot be read; a claim in docs/ that does not exist.

    Examples
    --------
    >>> figures = write("build/site")  # doctest: +SKIP
    """
    target, root = Path(target), Path(root)
    source, extra = target / "source", target / "extra"
    shutil.rmtree(target, ignore_errors=True)
    for folder in ("figures", "notebooks"):
        hidden = shutil.ignore_patterns(".*")
        shutil.copytree(root / folder, extra / folder, ignore=hidden)
    papers = (root / "docs" / "references.md").read_text()
    about = dict(re.findall(r"^- \[(\w+)\] (.+)$", papers, re.M))
    about["beyond"] = "What no paper shows."
    figures = _figures(root, [*about])
    papers = {key: list(group) for key, group in groupby(figures, lambda f: f["paper"])}
    render = _renderer()
    _write_figures(figures, render, source / "figures", extra / "figures")
    for page in ["gallery", *(f"figures/{paper}/index" for paper in papers)]:
        paper = page.split("/")[1:2]
        text = render("gallery.md", papers=papers, about=about, paper="".join(paper))
        _put(source / f"{page}.md", text)
    for path in (root / "notebooks").glob("[!.]*.ipynb"):
        _put(source / "notebooks" / path.name, path.read_text())
    _write_reference(render, source / "reference", root / "src" / "paperlib", about)
    counts = report.summary({figure["id"]: figure for figure in figures})
    page = render("all_claims.md", figures=figures, summary=counts)
    _put(source / "claims.md", page)
    _write_docs(figures, source, root)
    return [figure["id"] for figure in figures]


def _figures(root, papers):
    """What the templates show of all figures, in the order of the gallery."""
    records, notebooks = report.read_all(root), build.notebooks(root)
    figures = [
        _figure(records[figure], notebooks[figure].relative_to(root), root)
        for figure in records.keys() & notebooks.keys()
    ]

    def place(figure):
        paper = [*papers, figure["paper"]].index(figure["paper"])
        return paper, project.place(figure["id"])

    return sorted(figures, key=place)


def _figure(record, path, root):
    """What the templates show of a figure."""
    cells = json.loads((root / path).read_text())["cells"]
    title, _, text = "".join(cells[0]["source"]).partition("\n")
    title = title.lstrip("# ")
    plain = re.search(r"(?s)\n\n(?!\*)(.+?)(\n\n|$)", text + "\n\n.")[1]
    given = "".join(
        "".join(cell["source"])
        for cell in cells
        if "parameters" in cell["metadata"].get("tags", [])
    )
    paper, name = record["figure"].split("/")
    return record | {
        "id": record["figure"],
        "kind": project.kind(record["figure"]),
        "paper": paper,
        "name": name,
        "notebook": path.as_posix(),
        "title": title,
        "short": project.short_title(title),
        "shows": f"{title}. {re.sub('[`*$]', '', ' '.join(tests.plain.split()))}",
        "text": text.strip(),
        "meanings": dict(re.findall(r"^(\w+) = .*?  # (.*)$", given, re.M)),
    }


def _renderer():
    """Function that fills a template of docs/_templates, and escapes what it shows."""
    pages = report.templates(autoescape=True)
    pages.filters["code"] = _code
    return lambda name, **shown: pages.get_template(name).render(**shown)


def _code(text):
    """Plain text in which `this` is code, as HTML."""
    return Markup(re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(text)))


def _put(path, text):
    """Write a text file, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _write_figures(figures, render, folder, images):
    """Page and thumbnail of every figure."""
    for figure in figures:
        notebook = json.loads((images.parent / figure["notebook"]).read_text())
        head = {"cell_type": "markdown", "id": "page", "metadata": {}}
        head["source"] = render("figure.md", figure=figure)
        notebook["cells"][0] = head
        protocol = f"../../notebooks/{figure['paper']}/claims.yaml"
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                # It lies beside the notebook, not beside the page.
                text = "".join(cell["source"])
                link = f'<a href="{protocol}">claims.yaml</a>'
                text = text.replace("[claims.yaml](claims.yaml)", link)
                # The pages of docs/ are at the top of the site.
                text = text.replace("](../../docs/", "](../../")
                # a notebook is named by its figure and more words, a page is not
                name = r"\]\(([a-z0-9]+)(?:_\w+)?\.ipynb\)"
                cell["source"] = re.sub(name, r"](\1.ipynb)", text)
        _put(folder / f"{figure['id']}.ipynb", json.dumps(notebook))
        with Image.open(images / f"{figure['id']}.png") as image:
            image.thumbnail(_THUMBNAIL)
            image.save(images / f"{figure['id']}.thumb.png")


def _write_reference(render, folder, package, about):
    """A page for each public module, which autodoc fills with its names."""
    packages = {path.parent.name for path in package.glob("[!_]*/__init__.py")}
    packages -= {"repro"}  # it has no names of its own, but modules that have
    modules = {path.stem for path in package.glob("[!_]*.py")}
    modules |= {f"repro.{path.stem}" for path in package.glob("repro/[!_]*.py")}
    for module in packages | modules:
        page = render("reference.md", module=module, packages=packages)
        _put(folder / f"{module}.md", page)
    page = render("reference.md", modules=sorted(packages | modules), about=about)
    _put(folder / "index.md", page)


def _write_docs(figures, source, root):
    """The pages of docs/, with measurements that lead to the table of claims."""
    records = {figure["id"]: figure for figure in figures}
    for picture in (root / "docs").glob("*.svg"):
        shutil.copy(picture, source)
    pages = {path.name: path for path in (root / "docs").glob("*.md")}
    pages |= {name: root / name for name in _PAGES if (root / name).exists()}
    for name, path in pages.items():
        text = path.read_text()
        if path.parent == root:
            text = text.replace("](docs/", "](")
        if path.parent.name == "docs":
            text = report.filled(text, records)
            # The rows of that table are HTML, which a link in Markdown cannot reach.
            text = re.sub(
                r"\[([^][]*)\]\(\.\./figures/CLAIMS\.md#(\w+-\w+-[\w.-]+)\)",
                r'<a href="claims.html#\2">\1</a>',
                text,
            )
            text = re.sub(
                r"\[`([\w.]+\.(\w+))`\]\(\.\./src/([\w/]+)\.py#L\d+\)",
                r'<a href="_modules/\3.html#\2"><code>\1</code></a>',
                text,
            )
            # Pictures of figures lie beside the pages, where Sphinx does not look.
            text = re.sub(
                r"!\[([^\]]*)\]\(\.\./(figures/\S+\.png)\)",
                r'<img class="figure" src="\2" alt="\1">',
                text,
            )
            for file, page in _LINKS.items():
                text = re.sub(rf"(?<=\]\(){file}", page, text)
        _put(source / name, text)
