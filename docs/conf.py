"""Sphinx, as `make site` calls it; what it reads is written by paperlib.repro.site."""

import paperlib

project = html_title = "paperlib"
copyright = "The paperlib developers"
release = paperlib.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
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
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False  # autodoc lists them
default_role = "py:obj"

html_theme = "furo"
html_static_path = ["_static"]
html_extra_path = ["../build/site/extra"]
html_css_files = ["site.css"]
html_js_files = ["claims.js"]
html_copy_source = False
# A summary has to fetch pages, which a browser does not let files do.
html_show_search_summary = False


def _within(app, env, node, contnode):
    """In a docstring, `estimators.mle` is `paperlib.estimators.mle`."""
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


def setup(app):
    app.connect("autodoc-skip-member", _is_elsewhere)
    app.connect("missing-reference", _within)
