"""Links between the functions, the formulas and the figures.

A link to a module of the project becomes a link to the reference, or to the plain
forms. The reference of a function has the figures whose notebooks use it.
"""

import ast
import functools
import inspect
import json
from pathlib import Path, PurePosixPath

from docutils import nodes
from sphinx.addnodes import download_reference

ROOT = Path(__file__).parents[2]
PACKAGES = "paperlib", "paperfigs"


def used_names(code):
    """Full names of what a program takes from the packages.

    Parameters
    ----------
    code : str
        Python, as a notebook has it.

    Returns
    -------
    set of str
        With ``from paperlib import estimators``, the call ``estimators.LLN.moments(1)``
        gives "paperlib.estimators", "paperlib.estimators.LLN" and
        "paperlib.estimators.LLN.moments".
    """
    tree = ast.parse(code)
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith(PACKAGES):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                imported[alias.asname or alias.name] = full
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            if first in imported:
                names.add(f"{imported[first]}.{rest}".rstrip("."))
    return names


def code_of(notebook):
    """The code of a notebook, without commands of IPython."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    lines = []
    for cell in cells:
        if cell["cell_type"] == "code":
            lines += "".join(cell["source"]).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("%", "!")))


@functools.cache
def figures():
    """By full name, the pages of the notebooks that use it."""
    found = {}
    for notebook in sorted((ROOT / "notebooks").glob("*/*.ipynb")):
        page = notebook.relative_to(ROOT).with_suffix("").as_posix()
        for name in used_names(code_of(notebook)):
            found.setdefault(name, []).append(page)
    return found


def add_to_docstring(app, what, name, thing, options, lines):
    """Add the figures to a docstring; of a plain form, the code is the docstring."""
    if name.startswith("tests.plain.") and what == "function":
        code = inspect.getsource(thing).splitlines()
        lines[:] = [".. code-block:: python", "", *(f"   {line}" for line in code), ""]
    pages = figures().get(name, [])
    links = []
    for page in pages:
        app.env.note_dependency(ROOT / f"{page}.ipynb")
        _, paper, notebook = page.split("/")
        links.append(f":doc:`{paper}/{notebook.split('_')[0]} </{page}>`")
    if links and what != "module":
        lines += ["", f"*Figures that use it:* {', '.join(links)}.", ""]


def address_of(app, page, names):
    """Address of the first of some names that the reference has, or None."""
    objects = app.env.domains.python_domain.objects
    for name in names:
        if name in objects:
            found = objects[name]
            reference = app.builder.get_relative_uri(page, found.docname)
            return f"{reference}#{found.node_id}"
    return None


def link_to_code(app, tree, page):
    """A link to a module leads to its names in the reference, not to a download."""
    for link in list(tree.findall(download_reference)):
        path = PurePosixPath(app.env.relfn2path(link["reftarget"], page)[0])
        if path.suffix != ".py" or path.parts[0] not in ("src", "tests"):
            continue
        module = ".".join(path.with_suffix("").parts).removeprefix("src.")
        for text in list(link.findall(nodes.Text)):
            names = f"paperlib.{text}", f"{module}.{text}", text, module
            address = address_of(app, page, names)
            if address and text.strip(" ,"):
                shown = text
                if isinstance(text.parent, nodes.literal):
                    shown = text.parent
                to = nodes.reference("", "", internal=True, refuri=address)
                shown.parent.replace(shown, to)
                to += shown
        link.replace_self(link.children)


def setup(app):
    app.connect("autodoc-process-docstring", add_to_docstring, priority=900)
    app.connect("doctree-resolved", link_to_code)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
