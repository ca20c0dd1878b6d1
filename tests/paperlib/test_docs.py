"""The page of formulas: its names exist, its links lead there, none is left out."""

import importlib
import inspect
import pkgutil
import re
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import paperlib
from tests import plain

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "formulas.md"
LINKS = re.findall(r"\[([^\]]*)\]\(([^)#]+)[^)]*\)", PAGE.read_text())
NAMED = [
    (name.strip("`"), path) for name, path in LINKS if re.fullmatch(r"`[\w.]+`", name)
]


def public():
    """Public functions and classes of the modules of paperlib, by name."""
    modules = [
        importlib.import_module(f"paperlib.{module.name}")
        for module in pkgutil.iter_modules(paperlib.__path__)
    ]
    for module in modules:
        for name, member in vars(module).items():
            home = getattr(member, "__module__", "")
            here = home == module.__name__ or home.startswith(f"{module.__name__}.")
            if here and callable(member) and not name.startswith("_"):
                yield f"{module.__name__.removeprefix('paperlib.')}.{name}", member


@pytest.mark.parametrize(("name", "path"), sorted(set(NAMED)))
def test_each_name_is_in_the_file_that_its_link_leads_to(name, path):
    member = plain if "tests/plain" in path else paperlib
    for part in name.split("."):
        member = getattr(member, part)
    member = member.fget if isinstance(member, property) else member
    found = inspect.getsourcefile(inspect.unwrap(member))
    assert (PAGE.parent / path).is_file()
    # The package that is tested may be an installed one.
    assert Path(found).match(path.removeprefix("../").removeprefix("src/"))


@pytest.mark.parametrize("page", ["formulas", "modules", "symbols"])
def test_each_link_leads_to_a_file(page):
    page = ROOT / "docs" / f"{page}.md"
    for path in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / path).exists(), path


AUTHORS = r"Avrachenkov|Busa-Fekete et al|Grimes and Ford|Upadhyay et al"


def test_each_formula_of_the_papers_is_on_the_page():
    """A docstring with mathematics that names the authors, and each plain form."""
    names = {name for name, _ in NAMED}
    with_formula = {
        name
        for name, member in public()
        if re.search(r"\bmath:", member.__doc__ or "")
        and re.search(AUTHORS, member.__doc__)
    }
    assert len(with_formula) > 30
    assert with_formula <= names
    assert set(plain.__all__) <= names


def test_each_module_is_on_the_page_of_modules():
    text = (ROOT / "docs" / "modules.md").read_text()
    listed = set(re.findall(r"^\| \[?`(\w+)`", text, flags=re.MULTILINE))
    assert {module.name for module in pkgutil.iter_modules(paperlib.__path__)} == listed


def test_pages_histories_and_results_cannot_be_changed():
    """What is checked or derived once stays so; online estimators alone have state."""
    classes = dict(public()).values()
    classes = [each for each in classes if is_dataclass(each)]
    changing = {each for each in classes if hasattr(each, "update")}
    assert len(classes) > len(changing) > 4
    for each in classes:
        assert each.__dataclass_params__.frozen == (each not in changing), each
