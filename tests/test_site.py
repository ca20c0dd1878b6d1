"""What the site has beyond Sphinx; `make test-site` opens its pages in a browser."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def extensions(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    yield
    for name in ("code_links", "lesson_file"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        (
            "from paperlib import estimators as e\ne.LLN.moments(1)",
            ["estimators", "estimators.LLN", "estimators.LLN.moments"],
        ),
        ("from paperlib.priors import shares\nshares(2).x", ["priors.shares"]),
        ("from numpy import random\nrandom.rand()", []),
        ("from paperlib import worlds", []),
    ],
)
def test_names_that_a_notebook_uses(code, names):
    from code_links import used_names

    assert sorted(used_names(code)) == [f"paperlib.{name}" for name in names]


def test_every_figure_uses_a_function():
    from code_links import figures

    found = figures()
    assert len({page for pages in found.values() for page in pages}) > 40
    page = "notebooks/peva22/fig2_synthetic"
    assert page in found["paperlib.estimators.mle_path"]


def test_the_lesson_is_one_file_with_the_text_of_its_page():
    from lesson_file import page

    file = (ROOT / "docs" / "lesson.html").read_text(encoding="utf-8")
    assert "slider('lesson-split'" in file
    assert not re.search(r'(src|href)="(?!data:|https?:|#)', file)
    assert "CC BY 4.0</a>" in file, "the file alone says whose it is"
    source = (ROOT / "docs" / "lesson.md").read_text(encoding="utf-8")
    for words in ("a single file", "lecture room", "Move the sliders"):
        assert words in source
        assert words not in file, "what leads to other pages is for the site"

    def text(html):
        """Words alone, because another docutils may write other tags."""
        return re.sub(r"<[^>]*>", " ", html).split()

    assert text(file) == text(page()), "`make site` writes it"
