"""Sphinx, as `make site` calls it; what it reads is written by paperlib.site."""

import importlib.metadata
import re

project = html_title = "paperlib"
copyright = "The paperlib developers"
release = importlib.metadata.version("paperlib")
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
suppress_warnings = ["ref.python"]  # two classes may have an attribute of one name

myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # by default from a server, as is MathJax
mathjax_path = "mathjax/tex-svg.js"

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
default_role = "py:obj"

html_theme = "furo"
html_static_path = ["_static"]
html_extra_path = ["../build/site/extra"]
html_css_files = ["site.css"]
html_js_files = ["claims.js"]
html_copy_source = False
html_show_search_summary = False  # it would have to fetch pages, which a browser does not let files do


def _plain(app, what, name, obj, options, lines):
    """Before napoleon: * and | are themselves, and a paragraph of lines `name : what it is` is a list."""
    text = re.sub(r"(`+[^`]*`+)|([*|])", lambda found: found[1] or "\\" + found[2], "\n".join(lines))
    before, *sections = re.split(r"(?m)^(?=.+\n-{3,}$)", text)
    for paragraph in before.split("\n\n"):
        if all(re.match(r"\w[\w, ]* : | ", line) for line in paragraph.splitlines()):
            before = before.replace(paragraph, re.sub(r"(?m)^(?=\S)", "- ", paragraph))
    lines[:] = (before + "".join(sections)).splitlines()


def _within(app, env, node, contnode):
    """In a docstring, `estimators.mle` is `paperlib.estimators.mle`."""
    if node.get("refdomain") != "py" or node["reftarget"].startswith("paperlib."):
        return None
    return env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, "obj", f"paperlib.{node['reftarget']}", node, contnode)


def setup(app):
    app.connect("autodoc-process-docstring", _plain, priority=400)
    app.connect("missing-reference", _within)
