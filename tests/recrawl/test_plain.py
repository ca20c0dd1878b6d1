"""The plain forms: each is used by a test, and is on the page of formulas."""

import inspect
import re
from pathlib import Path

from tests.recrawl import plain


def test_every_plain_form_is_used_and_on_the_page_of_formulas():
    folder = Path(__file__).parent
    tests = "".join(path.read_text() for path in folder.glob("test_*.py"))
    page = (folder.parents[1] / "docs" / "recrawl" / "formulas.md").read_text()
    public = {
        name
        for name, member in inspect.getmembers(plain, inspect.isfunction)
        if member.__module__ == plain.__name__ and not name.startswith("_")
    }
    assert {n for n in public if re.search(rf"\b\w+\.{n}\(", tests)} == public
    assert set(re.findall(r"\| `(\w+)` \|$", page, flags=re.MULTILINE)) == public
