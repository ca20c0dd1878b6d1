"""The recipes of docs/extend.md for an estimator and a policy of one's own."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "extend.md"


@pytest.mark.parametrize("title", ["An estimator", "A policy"])
def test_the_printed_code_runs(title):
    """The blocks of a section, as they are copied into a file, one after another."""
    section = PAGE.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(blocks) >= 2
    exec("\n".join(blocks), {})
