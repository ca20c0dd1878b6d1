"""Guards on the interfaces: names, docstrings, types, imports, and the wheel."""

import ast
import importlib
import importlib.metadata
import inspect
import pkgutil
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from numpydoc import validate
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import recrawl

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "recrawl"

# numpydoc's codes for a docstring that is missing, misplaced or incomplete: GL
# layout, SS summary, PR parameters, RT returns, YD yields. Left out are rules of
# taste, such as SS05 (imperative mood) and RT03 (a sentence on every result).
REQUIRED = {
    "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10", "SS01", "SS02", "SS03",
    "SS04", "PR01", "PR02", "PR03", "PR05", "RT01", "YD01",
}  # fmt: skip
# Modules that serve the package itself: a sentence on each function is enough.
BRIEF = (
    "recrawl.log.files",
    "recrawl.plan.inputs",
    "recrawl.units",
    "recrawl.compiled",
)
KERNELS = (
    *("recrawl.compiled", "recrawl.live.bayes"),
    *("recrawl.live.gamma", "recrawl.live.queue", "recrawl.live.slots"),
    "recrawl.rates.likelihood_kernels",
)


MODULES = [
    each.name
    for each in pkgutil.walk_packages(recrawl.__path__, "recrawl.")
    if "__main__" not in each.name
]


def _public():
    """Every public function and class once, under the module that defines it."""
    names = {}
    for module in map(importlib.import_module, MODULES):
        if module.__name__ in KERNELS:
            continue
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                names[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return names


PUBLIC = _public()


def test_modules_say_what_they_are_for_and_what_is_public():
    modules = {name: importlib.import_module(name) for name in MODULES}
    first = {name: m.__doc__.strip().splitlines()[0] for name, m in modules.items()}
    assert [n for n, line in first.items() if not line.endswith((".", "?"))] == []
    public = [
        f"{name}.{public}"
        for name, module in modules.items()
        for public in getattr(module, "__all__", ())
    ]
    assert [path for path in public if path.rpartition(".")[2].startswith("_")] == []


def test_what_the_package_offers_is_there():
    assert all(getattr(recrawl, name) is not None for name in recrawl.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        recrawl.nothing  # noqa: B018 (the look-up is what is tested)


@pytest.mark.parametrize(
    "module", sorted({thing.__module__ for thing in PUBLIC.values()})
)
def test_docstrings_have_the_sections_of_numpydoc(module):
    required = REQUIRED
    if module.startswith(BRIEF):
        required = REQUIRED - {"PR01", "PR02", "RT01"}
    found = {
        path: [
            error for error in validate.validate(path)["errors"] if error[0] in required
        ]
        for path, thing in PUBLIC.items()
        if thing.__module__ == module
    }
    assert {path: errors for path, errors in found.items() if errors} == {}


def test_no_private_name_of_another_package_is_imported():
    private = []
    for file in SOURCES.rglob("*.py"):
        own = ".".join(file.relative_to(SOURCES.parent).parent.parts)
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            private += [
                f"{file.name}: {node.module}.{alias.name}"
                for alias in node.names
                if "._" in f"{node.module}.{alias.name}"
                if alias.name != "__version__"
                if node.module.startswith(("paperlib", "recrawl"))
                and not node.module.startswith(own)
            ]
    assert private == []


# ---- what is installed


def test_the_extra_of_logs_holds_all_that_is_imported():
    """The names of packages are those of the environment in which tests run."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["log"], *extras["dask"]]
    required = {canonicalize_name(Requirement(line).name) for line in lines}
    imported = set()
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.split(".")[0])
    imported -= {"paperlib", "recrawl", *sys.stdlib_module_names}
    homes = importlib.metadata.packages_distributions()
    needed = {canonicalize_name(home) for name in imported for home in homes[name]}
    assert len(needed) > 8
    assert needed - required == set()


@pytest.mark.slow
def test_the_wheel_carries_the_files_that_the_package_reads(tmp_path):
    sources = tmp_path / "sources"  # the build may leave files beside the sources
    shutil.copytree(
        ROOT / "src", sources / "src", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(ROOT / "data", sources / "data")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, sources]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    wanted = [path.relative_to(SOURCES.parent) for path in SOURCES.rglob("*.sql")]
    assert len(wanted) > 20
    wanted += [f"recrawl/{name}" for name in ("py.typed", "report.html.jinja")]
    wanted += ["recrawl/report.mplstyle"]
    assert set(map(str, wanted)) <= set(zipfile.ZipFile(wheel).namelist())
