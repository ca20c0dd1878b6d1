"""Guards on the interfaces: names, docstrings, imports, and the installed wheel."""

import ast
import importlib.metadata
import inspect
import os
import pkgutil
import pydoc
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numpydoc import validate
from numpydoc.docscrape import NumpyDocString
from packaging.requirements import Requirement

import recrawl

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "recrawl"
WINGS = "crawl_log", "repro"

# numpydoc's codes for a docstring that is missing, misplaced or incomplete: GL
# layout, SS summary, PR parameters, RT returns, YD yields. Left out are rules of
# taste, such as SS05 (imperative mood) and RT03 (a sentence on every result).
REQUIRED = {
    "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10", "SS01", "SS02", "SS03",
    "SS04", "PR01", "PR02", "PR03", "PR05", "PR07", "RT01", "YD01",
}  # fmt: skip


# A sentence is enough: reference explains its arguments at its top, and the other
# two serve the library itself.
BRIEF = tuple(f"paperlib.{name}." for name in ("reference", "checks", "files", "units"))


def _modules():
    found = pkgutil.walk_packages(paperlib.__path__, "paperlib.")
    return [
        module.name
        for module in found
        if not any(part.startswith("_") for part in module.name.split("."))
    ]


MODULES = _modules()


def _public():
    """Every public function and class once, under the module that defines it."""
    names = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                names[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return names


PUBLIC = _public()


def _members():
    """Methods and properties of the public classes that are public themselves."""
    for path, thing in PUBLIC.items():
        if inspect.isclass(thing):
            for name, member in vars(thing).items():
                documented = isinstance(member, classmethod | staticmethod | property)
                if not name.startswith("_") and (
                    documented or inspect.isfunction(member)
                ):
                    yield f"{path}.{name}"


def test_modules_say_what_they_are_for_and_what_is_public():
    modules = {name: importlib.import_module(name) for name in MODULES}
    first = {name: m.__doc__.strip().splitlines()[0] for name, m in modules.items()}
    assert [n for n, line in first.items() if not line.endswith((".", "?"))] == []
    public = [f"{name}.{public}" for name, m in modules.items() for public in m.__all__]
    assert [path for path in set(public) if public.count(path) > 1] == []
    assert [path for path in public if path.rpartition(".")[2].startswith("_")] == []
    assert [
        f"{name}.{public}"
        for name, module in modules.items()
        for public in module.__all__
        if not hasattr(module, public)
    ] == []


@pytest.mark.parametrize("name", sorted(paperlib.__all__))
def test_completion_offers_public_names_only(name):
    module = getattr(recrawl, name)
    assert set(dir(module)) == set(module.__all__)


def test_the_package_offers_its_modules_and_nothing_else():
    public = {name.split(".")[1] for name in MODULES} - {
        "checks",
        "cli",
        "files",
        "types",
        "units",
    }
    assert set(paperlib.__all__) == public
    assert set(dir(recrawl)) == public | {"__version__"}
    text = pydoc.render_doc(recrawl, renderer=pydoc.plaintext)
    assert all(re.search(rf"^    {name}$", text, re.M) for name in public)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        paperlib.nothing  # noqa: B018 (the look-up is what is tested)


@pytest.mark.parametrize(
    "module", sorted({thing.__module__ for thing in PUBLIC.values()})
)
def test_docstrings_have_the_sections_of_numpydoc(module):
    paths = [path for path, thing in PUBLIC.items() if thing.__module__ == module]
    paths += [
        path for path in _members() if path.startswith(tuple(f"{p}." for p in paths))
    ]
    required = REQUIRED
    if f"{module}.".startswith(BRIEF):
        required = REQUIRED - {"PR01", "PR02", "RT01"}
    found = {
        path: [
            error for error in validate.validate(path)["errors"] if error[0] in required
        ]
        for path in paths
    }
    assert {path: errors for path, errors in found.items() if errors} == {}


def test_public_names_have_an_example_and_it_is_run():
    # warnings and errors show themselves where they are raised
    shown = {
        path: thing
        for path, thing in PUBLIC.items()
        if not (inspect.isclass(thing) and issubclass(thing, Exception))
        and not path.startswith(BRIEF)
    }
    without = [path for path, thing in shown.items() if ">>>" not in thing.__doc__]
    assert len(shown) > 100
    assert without == []


def _signatures():
    """Public functions and methods, and what each takes and returns, by path."""
    for path, thing in PUBLIC.items():
        if path.startswith("plain."):
            continue  # plain formulas of whatever numbers they are given
        if inspect.isfunction(thing):
            yield path, inspect.unwrap(thing)
            continue
        for name, member in vars(thing).items():
            member = getattr(member, "__func__", getattr(member, "fget", member))
            member = getattr(member, "func", member)  # of a cached property
            if inspect.isfunction(member) and (
                name == "__init__" or not name.startswith("_")
            ):
                yield f"{path}.{name}", member


def test_public_signatures_are_typed():
    missing = {
        path: set(inspect.signature(function).parameters)
        - {"self", "cls", *function.__annotations__}
        for path, function in _signatures()
        if function.__module__.startswith("paperlib.")
    }
    untyped = {
        path: names
        for path, names in missing.items()
        if names or "return" not in dict(_signatures())[path].__annotations__
    }
    assert len(missing) > 300
    assert untyped == {}


# Arguments with a default that may be given by position, because they are data: a
# record holds what was found, and arrays belong to the arrays before them.
DATA = {
    "allocation.Allocation": {"threshold", "cost", "price_min_rate", "price_max_rate",
                              "price_host"},
    "estimators.dispersion.log_stderr": {"dispersion"},
    "estimators.dispersion.mean_log_rate": {"dispersion"},
    "field.Entry": {"knows", "sees"},
    "periodic.fit_profile": {"start"},
    "periodic.flatness_test": {"start"},
    "processes.CrawlLog": {"constrained", "known_rate"},
    "processes.History": {"offsets"},
    "scheduler.Scheduler.run": {"signal_page", "signal_time"},
    "simulate.benchmarking.Nature": {"bootstrap"},
    "simulate.benchmarking.Situation": {"signals"},
    "simulate.worlds.World": {"silent", "false_change", "false_seed"},
    "simulate.worlds.World.observe": {"last"},
}  # fmt: skip


def _callables():
    """Public functions, classes and methods of the science, by path."""
    other = (*WINGS, "cli", "errors", *(name.split(".")[1] for name in BRIEF))
    for path, thing in PUBLIC.items():
        _, room, _ = path.split(".", 2)
        if room not in other:
            yield path, thing
            for name, member in vars(thing).items() if inspect.isclass(thing) else ():
                method = getattr(member, "__func__", member)  # of a class method
                if inspect.isfunction(method) and not name.startswith("_"):
                    yield f"{path}.{name}", method


def test_options_of_the_science_are_given_by_name():
    found = {}
    for path, thing in _callables():
        arguments = inspect.signature(thing).parameters.values()
        if options := {
            each.name
            for each in arguments
            if each.default is not each.empty
            and each.kind is each.POSITIONAL_OR_KEYWORD
        }:
            found[path.removeprefix("paperlib.")] = options
    assert len(dict(_callables())) > 200
    assert found == DATA


def test_citations_are_links_on_the_site():
    # not in examples, and not where the entry itself stands
    plain = r"^(?! *>>>).*(?<!\.\. )\[[a-z]+\d\d\](?!_)"
    found = {}
    for path in (*PUBLIC, *_members()):
        if lines := re.findall(plain, pydoc.locate(path).__doc__ or "", re.M):
            found[path] = lines
    assert found == {}


def test_docstrings_name_defaults():
    options = {
        f"{path}: {each.name}": f"{each.type} {' '.join(each.desc)}"
        for path, thing in {**dict(_signatures()), **dict(_callables())}.items()
        for each in NumpyDocString(inspect.getdoc(thing) or "")["Parameters"]
        if any(
            given.default is not given.empty and given.name in each.name.split(", ")
            for given in inspect.signature(thing).parameters.values()
        )
    }
    named = re.compile("default|optional|As (in|for)")
    assert len(options) > 300
    assert [each for each, text in options.items() if not named.search(text)] == []


def test_docstrings_point_to_plain_forms_that_exist():
    named = {
        (file.name, name)
        for file in SOURCES.rglob("*.py")
        for name in re.findall(r"`recrawl\.reference\.(\w+)`", file.read_text())
    }
    assert len(named) > 30
    missing = {(f, n) for f, n in named if n not in plain.__all__}
    assert missing == set()


def _imports(path):
    """Module and name of every `from ... import` in a file of the package."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("room", [*WINGS, "cli.py"])
def test_the_wings_use_no_private_name_of_another_room(room):
    place = SOURCES / room
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    private = [
        f"{file.name}: from {module} import {name}"
        for file in files
        for module, name in _imports(file)
        if module.startswith("recrawl") and not module.startswith(f"paperlib.{room}")
        if any(part.startswith("_") for part in f"{module}.{name}".split("."))
        if name != "__version__"
    ]
    assert files
    assert private == []


def test_no_line_of_code_is_longer_than_88_columns():
    files = [*SOURCES.rglob("*.py"), *ROOT.glob("tests/*.py")]
    long = [
        f"{file.name}:{number}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if len(line) > 88
    ]
    assert long == []


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
    for name in ("src", "data"):
        shutil.copytree(
            ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__")
        )
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
def test_the_extras_of_logs_hold_all_that_a_log_needs(wheel, tmp_path):
    python = _environment(wheel, "log", "report")
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
import recrawl
history = recrawl.science.processes.simulate_history(
    [0.5, 2.0], crawl_rate=1.0, n_crawls=50, rng=1
)
rate = recrawl.science.estimators.mle(history)
plan = recrawl.science.allocation.optimal_poisson(rate, [1.0, 1.0], 2.0)
time, offsets = recrawl.science.schedules.regular(plan.crawl_rate, 100.0, rng=1)
assert np.isclose(plan.crawl_rate.sum(), 2.0) and abs(time.size - 200) <= 2
for module in ("duckdb", "joblib", "matplotlib", "pandas", "pyarrow"):
    try:
        __import__(module)
    except ImportError:
        continue
    raise SystemExit(f"{module} is there")
try:
    recrawl
except ImportError as error:
    print(error)
"""


@pytest.mark.slow
def test_the_wheel_without_extras_estimates_allocates_and_schedules(
    installed, tmp_path
):
    command = (installed, "-W", "error", "-c", SCIENCE)
    done = _run(*command, interpreted=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "paperlib-crawl[log]" in done.stdout
    command = installed.with_name("recrawl")
    assert "COMMAND" in _run(command, "--help", cwd=tmp_path).stdout
    for arguments in (["figures"], ["estimate", "log.csv", "-o", "rates.parquet"]):
        refused = _run(command, *arguments, cwd=tmp_path)
        assert refused.returncode == 2
        assert "paperlib-crawl[" in refused.stderr


@pytest.mark.slow
def test_the_wheel_carries_the_data_that_the_library_reads(installed):
    (folder,) = installed.parents[1].glob("lib/python*/site-packages/recrawl")
    for name in (
        "paper.mplstyle",
        "py.typed",
        "crawl_log/report.html.jinja",
        "crawl_log/report.js",
    ):
        assert (folder / name).is_file()
    for name in (
        "bokeh_commits.csv",
        "debian_firefox_esr.csv",
        "debian_panel.csv",
        "example_log.csv.gz",
        "npm_downloads.csv",
    ):
        assert (folder / "data" / name).read_bytes() == (
            ROOT / "data" / name
        ).read_bytes()
        assert (folder / "data" / f"{name}.sha256").is_file()
