"""Sphinx, as `make site` calls it; what it reads is written by paperfigs.site."""

import importlib
import json
import re
from pathlib import Path

import paperlib

project = html_title = "paperlib"
copyright = "The paperlib developers"
release = paperlib.__version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",  # docs/formulas.md leads to the lines of plain forms
]
suppress_warnings = [
    "ref.python",  # two classes may have an attribute of one name
    "ref.citation",  # not every paper is cited
]

myst_enable_extensions = ["dollarmath"]
myst_dmath_double_inline = True  # formulas of their own line within a paragraph
myst_heading_anchors = 3  # links to headings, as a code host makes them
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # by default from a server, as is MathJax
nb_render_image_options = {"alt": "What the code above draws"}
mathjax_path = "mathjax/tex-svg.js"

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # the docstrings say more: shapes and units
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False  # autodoc lists them
default_role = "py:obj"

html_theme = "furo"
html_static_path = ["_static"]
html_extra_path = ["../build/site/extra"]
html_css_files = ["site.css"]
html_js_files = ["claims.js"]
html_copy_source = False
templates_path = ["_templates"]


def _within(app, env, node, contnode):
    """In a docstring, `estimators.mle` is `recrawl.science.estimators.mle`."""
    target = f"paperlib.{node['reftarget']}"
    if node.get("refdomain") != "py" or node["reftarget"].startswith("paperlib."):
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", target, node, contnode
    )


def _is_elsewhere(app, what, name, obj, skip, options):
    """A name is documented on the page of the module or package it is from."""
    page = f"paperlib.{app.env.docname.removeprefix('reference/')}"
    home = getattr(obj, "__module__", None) or page
    return skip or (what == "module" and not f"{home}.".startswith(f"{page}."))


def _code_of(app, module, name):
    """Return the module with the code of a name: of a member, that of its class.

    A member whose value is a function would lead to the code of that function.
    """
    owner = getattr(importlib.import_module(module), name.partition(".")[0], None)
    return getattr(owner, "__module__", None)


def _excerpts(app, exception):
    """Write the texts of all pages for the search, which shows what it found.

    By default it fetches the pages, which browsers do not let files do.
    """
    texts = {}
    for name in app.env.found_docs if exception is None else ():
        page = Path(app.outdir, f"{name}.html").read_text()
        main = re.search(r'(?s)<article[^>]*role="main".*?</article>', page)[0]
        main = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>", "", main)
        main = re.sub(r'<a class="headerlink".*?</a>', "", main)
        # The excerpts are text: what stands apart on the page stays apart.
        main = re.sub(r"(?=</(?:t[dh]|p|h\d|li|pre)>)", " ", main)
        main = re.sub(r"\\[()]", "", main)  # the marks of formulas
        texts[f"{name}.html"] = re.sub(r"<\w[^>]*>", _without_attributes, main)
    script = Path(__file__).with_name("_static") / "search.js"
    script = script.read_text() + f"const pages = {json.dumps(texts)};\n"
    Path(app.outdir, "excerpts.js").write_text(script)


def _without_attributes(tag):
    """A tag with no attributes but those that the search looks for."""
    kept = re.findall(r'\s(?:id|role)="[^"]*"', tag[0])
    return re.match(r"<\w+", tag[0])[0] + "".join(kept) + ">"


def setup(app):
    app.connect("build-finished", _excerpts)
    app.connect("autodoc-skip-member", _is_elsewhere)
    app.connect("missing-reference", _within)
    app.connect("viewcode-follow-imported", _code_of)
