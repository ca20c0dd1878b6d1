"""The recipes of docs/extend.md, and the programs of other pages."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extend.md"


@pytest.mark.parametrize("title", ["An estimator", "A policy"])
def test_the_printed_code_runs(title):
    """The blocks of a section, as they are copied into a file, one after another."""
    section = PAGE.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(blocks) >= 2
    exec("\n".join(blocks), {})


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("README.md", 3),
        ("src/paperlib/README.md", 1),
        ("docs/tour.md", 6),
        ("docs/lesson.md", 1),
    ],
)
def test_the_programs_of_a_page_run(page, lines, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    if "paperfigs" in blocks[0]:  # it draws: more than the science needs
        pytest.importorskip("matplotlib")
    exec("\n".join(blocks), {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == lines
