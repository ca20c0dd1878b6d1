"""Guards on the interfaces: names, docstrings, types, imports, and the wheel."""

import ast
import importlib
import importlib.metadata
import inspect
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numpydoc import validate
from packaging.requirements import Requirement

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
    *("recrawl.compiled", "recrawl.log.history_kernels", "recrawl.live.bayes"),
    *("recrawl.live.gamma", "recrawl.live.queue", "recrawl.live.slots"),
    *("recrawl.rates.likelihood_kernels", "recrawl.rates.prior_kernels"),
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


# ---- the wheel


def _run(*command, path="", interpreted=False, **options):
    environment = os.environ | {"PYTHONPATH": str(path)}
    if interpreted:  # the kernels of a wheel would be compiled for this run alone
        environment["NUMBA_DISABLE_JIT"] = "1"
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, **options
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"  # the build may leave files beside the sources
    shutil.copytree(
        ROOT / "src", sources / "src", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(ROOT / "data", sources / "data")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, sources]
    assert _run(*build).returncode == 0
    (made,) = folder.glob("*.whl")
    return made


def _needed(distribution, extras):
    """The distributions that one requires, directly or not, by name."""
    found = {}
    for requirement in map(Requirement, distribution.requires or ()):
        if not requirement.marker or any(
            requirement.marker.evaluate({"extra": extra}) for extra in extras or [""]
        ):
            needed = importlib.metadata.distribution(requirement.name)
            found |= {requirement.name: needed, **_needed(needed, requirement.extras)}
    return found


def _environment(wheel, *extras):
    """Python of an environment with the wheel and what it and its extras require.

    That is linked from the environment of the tests, where its bytecode is: to import
    it without takes 6 s.
    """
    folder = wheel.with_name(f"with {extras}")
    assert _run(sys.executable, "-m", "venv", "--without-pip", folder).returncode == 0
    python = folder / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")  # ten times as fast as pip
    if uv.exists():
        install = [uv, "pip", "install", "--python", python]
    else:
        install = [sys.executable, "-m", "pip", "--python", python, "install"]
    done = _run(*install, "--quiet", "--no-deps", "--no-index", wheel)
    assert done.returncode == 0, done.stderr
    (site,) = folder.glob("lib/python*/site-packages")
    (made,) = importlib.metadata.distributions(path=[str(site)])
    for needed in _needed(made, extras).values():
        for name in {file.parts[0] for file in needed.files} - {"..", "__pycache__"}:
            (site / name).symlink_to(needed.locate_file(name))
    return python


@pytest.fixture(scope="module")
def installed(wheel):
    """Python of an environment with the wheel in it, without extras."""
    return _environment(wheel)


ONE_BY_ONE = """
import shlex, sys
from recrawl import cli
for command in sys.argv[1:]:
    if cli.main(shlex.split(command)) != 0:
        raise SystemExit(command)
"""


@pytest.mark.slow
def test_the_extra_of_logs_holds_all_that_a_log_needs(wheel, tmp_path):
    python = _environment(wheel, "log")
    log = ROOT / "data/example_log.csv.gz"
    commands = [
        f"convert '{log}' -o log.parquet",
        "estimate log.parquet -o rates.parquet",
        "schedule rates.parquet --bandwidth 90/day -o plan.parquet",
        "export plan.parquet --to nutch -o seeds.txt",
        f"compare '{log}'",
        f"report '{log}' -o report.html",
    ]
    # One process, as the imports take longer than the work. The code of this checkout,
    # whose kernels other tests need as well: to compile those of the wheel takes 20 s.
    done = _run(python, "-c", ONE_BY_ONE, *commands, path=ROOT / "src", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").stat().st_size > 100_000


SCIENCE = """
import numpy as np
from paperlib.allocation import optimal_interval
from paperlib.estimators import mle
from paperlib.processes import simulate_history
history = simulate_history([0.5, 2.0], crawl_rate=1.0, n_crawls=50, rng=1)
plan = optimal_interval(mle(history), [1.0, 1.0], 2.0)
assert np.isclose(plan.crawl_rate.sum(), 2.0)
for module in ("duckdb", "joblib", "matplotlib", "pandas", "pyarrow"):
    try:
        __import__(module)
    except ImportError:
        continue
    raise SystemExit(f"{module} is there")
"""


@pytest.mark.slow
def test_the_wheel_without_extras_estimates_and_allocates(installed, tmp_path):
    command = (installed, "-W", "error", "-c", SCIENCE)
    done = _run(*command, interpreted=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    command = installed.with_name("recrawl")
    assert "COMMAND" in _run(command, "--help", cwd=tmp_path).stdout
    refused = _run(command, "estimate", "log.csv", "-o", "rates.csv", cwd=tmp_path)
    assert refused.returncode == 2
    assert "paperlib-crawl[log]" in refused.stderr


@pytest.mark.slow
def test_the_wheel_carries_the_files_that_the_package_reads(installed):
    (folder,) = installed.parents[1].glob("lib/python*/site-packages/recrawl")
    wanted = ["py.typed", "report.html.jinja", "report.mplstyle"]
    wanted += [f"sql/{path.name}" for path in (SOURCES / "sql").glob("*.sql")]
    assert [name for name in wanted if not (folder / name).is_file()] == []
