"""Sphinx, as `make site` calls it: the Markdown and the notebooks where they lie."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("article")))
import build

HERE = Path(__file__).parent
sys.path += [str(HERE.parent), str(HERE / "_ext")]  # tests.plain; our extensions

project = html_title = "paperlib"
copyright = "The paperlib developers. Code: MIT licence; text and figures: CC BY 4.0"
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
extensions += ["sphinx.ext.viewcode", "code_links", "lesson_file", "site_pages"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "notebooks/**.ipynb", "*/README.md"]
include_patterns += ["figures/CLAIMS.md", "figures/SETTINGS.md"]
exclude_patterns = [".*", "build", "src", "tests", "docs/_static"]
exclude_patterns += ["docs/CHANGELOG.md"]
# Templates: the first one is a part of the article, whose page is rendered.
exclude_patterns += ["docs/article/side_by_side.md", "docs/article/paper.md"]
# A link may lead to a file that has no page: `site_pages`.
suppress_warnings = ["myst.xref_missing", "ref.python", "ref.citation"]

myst_enable_extensions = ["dollarmath"]
myst_dmath_double_inline = True  # formulas of their own line within a paragraph
myst_heading_anchors = 3  # links to headings, as a code host makes them
nb_execution_mode = "off"
nb_render_markdown_format = "myst"  # otherwise the tables of claims are raw text
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
html_css_files = ["site.css", "lesson.css"]
html_js_files = ["lesson.js", "tables.js", "pictures.js"]
html_copy_source = False


def _render(app, page, source):
    """The site has the article with its numbers, not the template."""
    if page == "docs/article/article":
        source[0] = build.page()


def _always(app, env, added, changed, removed):
    """The article depends on all records."""
    return {"docs/article/article"}


def setup(app):
    app.connect("source-read", _render)
    app.connect("env-get-outdated", _always)
