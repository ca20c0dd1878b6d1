"""docs/lesson.html: the lesson as one file that a browser opens without a site.

`make site` writes it from lesson.md, with style, script, picture and formulas (as
MathML) in the file, and without the lines for readers of the site, which are between
`<!-- site -->` and `<!-- /site -->`. CI complains if the repository has another one.
"""

import re
from pathlib import Path

from docutils.core import publish_parts
from myst_parser.docutils_ import Parser

from paperlib import __version__

DOCS = Path(__file__).parents[1]
SETTINGS = {
    "myst_enable_extensions": ["dollarmath"],
    "myst_all_links_external": True,
    "halt_level": 2,  # a warning is an error
    "math_output": "MathML",
    "image_loading": "embed",
    "initial_header_level": 2,
}
STYLE = """
body { max-width: 46em; margin: auto; padding: 1em; font: 1rem/1.5 sans-serif; }
pre { overflow-x: auto; }
math[display="block"] { overflow: auto hidden; padding: .4em 0; }
pre { background: #f4f4f4; padding: .5em; font-size: .8em; }
footer { border-top: 1px solid; font-size: .9em; }
svg { max-width: 100%; height: auto; }
"""
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
<script>{script}</script>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
<footer>
<p>This lesson is <code>docs/lesson.md</code> of <code>paperlib</code> {version}: five
papers on change rates of web pages and on crawl scheduling, as one library, and every
figure of them redrawn. By the paperlib developers. Text and pictures are under
<a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>, code is under
the MIT licence.</p>
</footer>
</body>
</html>
"""


def page():
    """The lesson as HTML that needs no other file; links to files are their text."""
    source = DOCS / "lesson.md"
    text = source.read_text(encoding="utf-8")
    parts = publish_parts(
        re.sub(r"<!-- site -->.*?<!-- /site -->\n", "", text, flags=re.S),
        source_path=str(source),
        destination_path=str(DOCS / "lesson.html"),  # pictures are beside it
        parser=Parser(),
        writer="html5",
        settings_overrides=SETTINGS,
    )
    link = r'<a class="[^"]*" href="(?!https?:|#)[^"]*">(.*?)</a>'
    static = DOCS / "_static"
    return PAGE.format(
        title=parts["title"],
        version=__version__,
        style=STYLE + (static / "lesson.css").read_text(encoding="utf-8"),
        script=(static / "lesson.js").read_text(encoding="utf-8"),
        body=re.sub(link, r"\1", parts["body"], flags=re.S),
    )


def write(app):
    """Write the file, before the site offers it."""
    (DOCS / "lesson.html").write_text(page(), encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
