"""The build, on small projects of its own in temporary folders.

What is rebuilt, refused or kept is tested with a stand-in for the kernel
(`stand_in`). What a kernel can do to a build (raise, die, fill the disk, be
interrupted) is tested with real kernels, started once for the whole file where
that is possible.
"""

import contextlib
import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import psutil
import pytest
import yaml
from tests.recrawl.thinned import every

from recrawl.files import sha256
from paperfigs import build, report, running

SUFFIXES = (".png", ".svg", ".json", ".npz")
PARAMETERS = "n = 5\nseed = 1\noutput_dir = None"
# A figure as the real notebooks make it.
DRAW = """
import matplotlib.pyplot as plt
import numpy as np
from paperfigs import ledger, plotting
plotting.use_style()
"""
SHOW = """
figure, ax = plt.subplots(figsize=(2, 1.5))
ax.plot(np.random.default_rng(seed).normal(size=n), label="noise")
plt.show()
"""
SAVE = """
claims = ledger.Claims("a/fig1", globals(), root="{root}")
claims.measure("one", n)
print(claims.table())
plotting.save(figure, claims, output_dir)
"""
# A disk that is full after one file.
FULL = """
import errno, os, pathlib
from recrawl.files import write_atomic
def full(file):
    raise OSError(errno.ENOSPC, "No space left on device")
write_atomic(pathlib.Path(output_dir) / "{figure}.png", "new")
os.fsync = full
write_atomic(pathlib.Path(output_dir) / "{figure}.svg", "new")
"""
INLINE = """
import matplotlib.pyplot as plt
plt.figure(figsize=(1, 1))
plt.plot([1, 3, 2])
plt.show()
"""
# The four files without matplotlib, for a kernel that starts in a second; in a
# slow project it stops half-way and waits.
PLAIN = """
import ctypes, os, pathlib, subprocess, sys
stem = pathlib.Path(output_dir) / "{figure}"
stem.parent.mkdir(parents=True, exist_ok=True)
stem.with_suffix(".png").write_text("half")
if {slow} and pathlib.Path("{root}/slow").exists():
    worker = subprocess.Popen(["sleep", "1000"])
    pathlib.Path("{root}/started").write_text(f"{{os.getpid()}} {{worker.pid}}")
    ctypes.PyDLL(None).sleep(1000)  # one call that lets no other thread run
stem.with_suffix(".png").write_text("whole")
stem.with_suffix(".svg").write_text("whole")
stem.with_suffix(".npz").write_text("whole")
record = '{{"figure": "{figure}", "parameters": {{}}, "claims": [], "data": {{}}}}'
stem.with_suffix(".json").write_text(record)
"""


def write_notebook(path, *code, parameters=PARAMETERS):
    cells = [
        nbformat.v4.new_markdown_cell("What it shows."),
        nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}),
    ]
    cells += [nbformat.v4.new_code_cell(source.strip()) for source in code]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def edit_notebook(path, change):
    """Rewrite a notebook after `change(notebook)`."""
    notebook = nbformat.read(path, as_version=4)
    change(notebook)
    nbformat.write(notebook, path)


def write_claims(root, paper, **criterion):
    """Claim that one is at least 0, or another criterion, for each figure."""
    claim = {"id": "one", "says": "One is one.", "where": "everywhere"}
    claims = {f"fig{i}": [claim | (criterion or {"at_least": 0})] for i in range(1, 6)}
    path = root / "notebooks" / paper / "claims.yaml"
    path.write_text(yaml.safe_dump(claims))


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy of the package, without kernels."""
    copy = tmp_path_factory.mktemp("sources") / "paperlib"
    without = shutil.ignore_patterns("*.nb[ic]")
    return shutil.copytree(build.ROOT / "src/paperlib", copy, ignore=without)


def make_project(root, sources, **notebooks):
    """A clone with other notebooks: code cells of paper a by name.

    Its package has links to `sources`, as 300 copies take .1 s: a test that changes a
    file unlinks it first.
    """
    shutil.copytree(sources, root / "src/paperlib", copy_function=os.link)
    (root / "data").mkdir()
    (root / "data/trace.csv").write_text("1\n2\n")
    (root / "figures").mkdir()
    (root / "requirements.lock").write_text("numpy==1\n")
    (root / "README.md").write_text(
        "# Title\n\n<!-- claims -->\nold\n<!-- /claims -->\n\nend\n"
    )
    for name, code in notebooks.items():
        write_notebook(root / f"notebooks/a/{name}.ipynb", *code)
    write_claims(root, "a")
    (root / "notebooks/paper.yaml").write_text("a/fig1: {n: 7}\n")
    return root


@pytest.fixture
def project(tmp_path, sources):
    root = make_project(
        tmp_path,
        sources,
        fig1_one=["import numpy as np\nfrom paperfigs import plotting"],
        fig2_two=["from recrawl.science.estimators import LLN", "print(seed)"],
    )
    write_notebook(root / "notebooks/b/fig1_three.ipynb", "from paperlib import hosts")
    write_claims(root, "b")
    return root


class StandIn:
    """Instead of `build.execute`: writes what a notebook would.

    It remembers which notebooks ran, and with which parameters.
    """

    def __init__(self, root):
        self.root, self.content = root, "new"
        self.calls, self.parameters, self.failing = [], {}, set()

    def __call__(self, job, executed, staging):
        self.calls.append(job.figure)
        self.parameters[job.figure] = job.parameters
        stem = staging / job.figure
        stem.parent.mkdir(parents=True)
        if job.figure in self.failing:
            stem.with_suffix(".png").write_text("half")
            raise RuntimeError("no luck\nsecond line")
        data = (
            {"trace": sha256(self.root / "data/trace.csv")}
            if job.figure == "a/fig2"
            else {}
        )
        claims = [{"id": "one", "at_least": 0, "measured": 1.0, "stderr": 0.0}]
        claims[0] |= {"status": "holds", "source": "a stand-in"}
        stem.with_suffix(".png").write_text(f"{self.content} {job.parameters}")
        stem.with_suffix(".svg").write_text(self.content)
        stem.with_suffix(".json").write_text(
            json.dumps({"figure": job.figure, "claims": claims, "data": data})
        )
        np.savez(
            stem.with_suffix(".npz"),
            line=np.array([1.0, 1e-3, np.nan]),
            count=np.array([1, 2]),
        )
        return 1.0

    def run(self, *ids, **options):
        """Build and return which notebooks ran."""
        self.calls.clear()
        self.errors = build.figures(ids, jobs=1, root=self.root, **options)
        return sorted(self.calls)


@pytest.fixture
def stand_in(project, monkeypatch):
    stand_in = StandIn(project)
    monkeypatch.setattr(build, "execute", stand_in)
    return stand_in


ALL = ["a/fig1", "a/fig2", "b/fig1"]


def snapshot(folder):
    """Every file below a folder with its bytes, what is staged left out."""
    return {
        p.relative_to(folder): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and ".staging" not in p.parts
    }


# ---- what is built and what is skipped


def test_builds_everything_then_nothing(stand_in, capsys):
    assert stand_in.run() == ALL
    assert "0 up to date, 3 built, 0 failed" in capsys.readouterr().out
    assert stand_in.parameters == {"a/fig1": {"n": 7}, "a/fig2": {}, "b/fig1": {}}
    assert {p.name for p in (stand_in.root / "figures/a").iterdir()} == {
        f"fig{i}{s}" for i in (1, 2) for s in SUFFIXES
    }
    before = snapshot(stand_in.root)
    assert stand_in.run() == []
    assert "3 up to date, 0 built, 0 failed" in capsys.readouterr().out
    assert snapshot(stand_in.root) == before


def _append(name, text="\nmore\n"):
    def change(root):
        path = root / name
        before = path.read_text() if path.exists() else ""
        path.unlink(missing_ok=True)
        path.write_text(before + text)

    return change


def _code(root):
    edit_notebook(
        root / "notebooks/a/fig2_two.ipynb",
        lambda nb: nb.cells[3].update(source="print(seed + 1)"),
    )


def _default(root):
    edit_notebook(
        root / "notebooks/a/fig2_two.ipynb",
        lambda nb: nb.cells[1].update(source=PARAMETERS.replace("n = 5", "n = 6")),
    )


def _tags(root):
    edit_notebook(
        root / "notebooks/a/fig2_two.ipynb",
        lambda nb: nb.cells[3].metadata.update(tags=["parameters"]),
    )


def _prose(root):
    def change(notebook):
        notebook.cells[0].source = "Another text."
        notebook.cells[2].outputs = [
            nbformat.v4.new_output("stream", name="stdout", text="1\n")
        ]
        notebook.cells[2].execution_count = 3
        notebook.cells[2].id = "another"
        notebook.metadata["kernelspec"] = {"name": "mine", "display_name": "Mine"}

    edit_notebook(root / "notebooks/a/fig2_two.ipynb", change)


def _import(root):
    edit_notebook(
        root / "notebooks/a/fig2_two.ipynb",
        lambda nb: nb.cells[2].update(source="from recrawl.science.estimators import SA"),
    )


def _reword(root):
    path = root / "notebooks/b/claims.yaml"
    path.write_text(path.read_text().replace("One is one.", "One remains one."))


@pytest.mark.parametrize(
    ("change", "rebuilt"),
    every(
        4,
        [
            (_code, ["a/fig2"]),
            (_import, ["a/fig2"]),
            (_default, ["a/fig2"]),
            (_tags, ["a/fig2"]),
            (_append("notebooks/paper.yaml", "a/fig2: {n: 9}\n"), ["a/fig2"]),
            (lambda root: (root / "notebooks/paper.yaml").write_text(""), ["a/fig1"]),
            (_append("src/paperlib/__init__.py"), ALL),
            (_append("src/recrawl/science/hosts.py"), ["b/fig1"]),
            (_append("src/paperfigs/plotting.py"), ["a/fig1"]),
            (_append("src/paperlib/paper.mplstyle"), ["a/fig1"]),
            (_append("src/recrawl/files.py"), ["a/fig1"]),
            (_append("src/recrawl/science/estimators/stepping.py"), ["a/fig2"]),
            (_append("src/recrawl/kernels/batch.py"), ["a/fig2"]),
            (_append("src/recrawl/cli.py"), []),
            (_append("src/paperfigs/site.py"), []),
            (_append("src/paperfigs/build.py"), []),
            (_append("src/recrawl/estimating.py"), []),
            (_append("requirements.lock"), ALL),
            (_append("data/trace.csv"), ["a/fig2"]),
            (lambda root: (root / "data/trace.csv").unlink(), "gone"),
            (_append("figures/b/fig1.svg"), ["b/fig1"]),
            (lambda root: (root / "figures/b/fig1.npz").unlink(), ["b/fig1"]),
            (lambda root: shutil.rmtree(root / "build/stamps"), ALL),
            (
                lambda root: [
                    p.write_text("[]") for p in (root / "build/stamps").rglob("*.json")
                ],
                ALL,
            ),
            (
                lambda root: [
                    p.write_text('{"finger')
                    for p in (root / "build/stamps").rglob("*.json")
                ],
                ALL,
            ),
            (_prose, []),
            (_append("README.md"), []),
            (_append("figures/CLAIMS.md"), []),
            (_reword, []),
            (lambda root: write_claims(root, "b", at_least=0.5), ["b/fig1"]),
            (lambda root: (root / "build/seconds-paper.json").write_text("{"), []),
        ],
    ),
)
def test_rebuilds_what_changed_and_nothing_else(stand_in, change, rebuilt):
    stand_in.run()
    change(stand_in.root)
    if rebuilt == "gone":  # it runs, and its notebook says what is missing
        assert stand_in.run() == ["a/fig2"]
        assert "trace.csv" in stand_in.errors["a/fig2"]
    else:
        assert stand_in.run() == rebuilt
        assert stand_in.run() == []


def test_sources_that_change_while_a_notebook_runs(stand_in, monkeypatch):
    """The figure counts as drawn from what was there before the run."""

    def run_while_an_editor_saves(job, executed, staging):
        seconds = stand_in(job, executed, staging)
        _append("src/recrawl/science/hosts.py")(stand_in.root)
        return seconds

    with monkeypatch.context() as editing:
        editing.setattr(build, "execute", run_while_an_editor_saves)
        assert stand_in.run("b") == ["b/fig1"]
    assert stand_in.run("b") == ["b/fig1"]
    assert stand_in.run("b") == []


def test_only_what_is_asked_for_is_built(stand_in):
    assert stand_in.run("a/fig2") == ["a/fig2"]
    assert stand_in.run("a") == ["a/fig1"]
    assert stand_in.run("notebooks/b/fig1_three.ipynb", "b", "b/fig1") == ["b/fig1"]


def test_force_builds_what_is_up_to_date(stand_in):
    stand_in.run()
    assert stand_in.run("a", force=True) == ["a/fig1", "a/fig2"]


def test_output_leaves_figures_alone_and_has_stamps_of_its_own(stand_in):
    stand_in.run("a")
    root, before = stand_in.root, snapshot(stand_in.root / "figures")
    stand_in.content = "another machine"
    assert stand_in.run(output=root / "elsewhere") == ALL
    assert len(snapshot(root / "elsewhere")) == 12
    assert snapshot(root / "figures") == before
    assert stand_in.run(output=root / "elsewhere") == []
    assert stand_in.run() == ["b/fig1"]


def test_relative_output_is_the_same_folder(stand_in, monkeypatch):
    monkeypatch.chdir(stand_in.root)
    stand_in.run(output="figures")
    assert stand_in.run() == []
    assert (stand_in.root / "figures/CLAIMS.md").exists()


def test_preview_has_the_notebooks_own_values_and_leaves_figures_alone(stand_in):
    stand_in.run("a")
    root, before = (
        stand_in.root,
        snapshot(stand_in.root / "figures") | snapshot(stand_in.root / "notebooks"),
    )
    readme = (root / "README.md").read_text()
    assert stand_in.run(profile="preview") == ALL
    assert stand_in.parameters["a/fig1"] == {}
    assert len(snapshot(root / "build/preview")) == 12
    assert snapshot(root / "figures") | snapshot(root / "notebooks") == before
    assert (root / "README.md").read_text() == readme
    assert stand_in.run(profile="preview") == []


def test_other_parameters_go_to_a_folder_of_their_own(stand_in):
    before = snapshot(stand_in.root / "figures")
    assert stand_in.run("a/fig1", parameters={"n": 3}) == ["a/fig1"]
    assert stand_in.parameters["a/fig1"] == {"n": 3}
    assert snapshot(stand_in.root / "figures") == before
    assert (stand_in.root / "build/custom/a/fig1.png").exists()


def test_a_list_takes_one_value_or_a_list(stand_in):
    notebook = stand_in.root / "notebooks/a/fig2_two.ipynb"
    write_notebook(notebook, "1", parameters="rates = [0.5, 1.0]\noutput_dir = None")
    for value in (2.0, 1, [1, 2.5]):
        given = {"rates": value}
        assert stand_in.run("a/fig2", parameters=given) == ["a/fig2"]
        assert stand_in.parameters["a/fig2"] == given
    for value in ("x", ["x"], [[1.0]]):
        with pytest.raises(build.BuildError, match=r"default, \[0.5, 1.0\]"):
            stand_in.run("a/fig2", parameters={"rates": value})


def test_the_longest_is_started_first(stand_in):
    stand_in.run()
    assert json.loads(
        (stand_in.root / "build/seconds-paper.json").read_text()
    ) == dict.fromkeys(ALL, 1.0)
    (stand_in.root / "build/seconds-paper.json").write_text(
        json.dumps({"a/fig1": 1.0, "b/fig1": 30.0, "a/fig2": 20.0})
    )
    stand_in.run(force=True)
    assert stand_in.calls == ["b/fig1", "a/fig2", "a/fig1"]


def test_time_left():
    progress = running._Progress(ALL, {"a/fig1": 10.0, "a/fig2": 20.0}, jobs=2)
    assert progress.queue == ["a/fig2", "a/fig1", "b/fig1"]
    assert str(progress) == ""
    now = time.monotonic()
    progress.running = {1: ("a/fig1", now - 4.0), 2: ("a/fig2", now)}
    progress.queue = ["b/fig1"]
    # The running ones need 6 s and 20 s and the queue an unknown time, taken
    # for 10 s: 18 s for each of two workers, but not less than the longest
    # alone.
    assert str(progress) == "20 s left: a/fig1 4 s, a/fig2 0 s"


def test_environment_of_the_caller_is_left_alone(stand_in, monkeypatch):
    seen = {}
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for name in (shared := ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(
        build, "execute", lambda *job: (seen.update(os.environ), stand_in(*job))[1]
    )
    build.figures(jobs=1, root=stand_in.root)
    assert "PYTHONDONTWRITEBYTECODE" not in seen
    assert {seen[name] for name in shared} == {str(os.cpu_count())}
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"
    assert not os.environ.keys() & set(shared)


def test_a_figure_depends_on_what_its_notebook_imports():
    """On the real notebooks; imports inside functions count too."""
    known, package = build.notebooks(), build.ROOT / "src/paperlib"

    def depends(figure):
        files = build.sources(known[figure])
        return {file.relative_to(package).as_posix() for file in files}

    of_peva22 = depends("peva22/fig2")
    assert of_peva22 >= {
        "__init__.py",
        "_kernels/batch.py",
        "_kernels/online.py",
        "estimators/__init__.py",
        "estimators/stepping.py",
        "paper.mplstyle",
        "processes.py",
        "repro/__init__.py",
        "repro/ledger.py",
        "repro/project.py",
        "repro/plotting.py",
    }
    others = (
        "cli.py",
        "scheduler.py",
        "repro/build.py",
        "repro/site.py",
        "repro/report.py",
        "repro/traces/bing_data.py",
    )
    assert of_peva22.isdisjoint(others)
    # A kernel that compares policies.
    assert "_kernels/simulate.py" not in of_peva22
    assert "_kernels/simulate.py" in depends("www25/fig3")
    assert "repro/traces/files.py" in depends("peva22/fig1")


def test_no_figure_depends_on_the_log_wing_or_the_command():
    graph, package = build.import_graph(), build.ROOT / "src/paperlib"
    for notebook in build.notebooks().values():
        files = build.sources(notebook, graph=graph)
        rooms = {file.relative_to(package).parts[0] for file in files}
        assert {"repro", "processes.py"} <= rooms
        assert rooms.isdisjoint({"crawl_log", "cli.py"})


def test_what_is_not_plain_python_depends_on_everything(tmp_path):
    for name, code, everything in (
        ("magic", "%matplotlib inline\nfrom paperlib import hosts", True),
        ("plain", "import recrawl.science.hosts as h, os.path\nfrom os import path", False),
    ):
        notebook = write_notebook(tmp_path / f"{name}.ipynb", code)
        names = {file.name for file in build.sources(notebook)}
        assert {"hosts.py", "__init__.py"} <= names
        assert {"cli.py", "site.py", "paper.mplstyle"}.isdisjoint(names) != everything
        if everything:  # also no file is forgotten that is not Python
            package = build.ROOT / "src/paperlib"
            files = {p.name for p in package.rglob("[!.]*") if p.is_file()}
            assert {
                f for f in files if not f.endswith((".pyc", ".nbi", ".nbc", ".typed"))
            } == names


# ---- what is refused


def test_notebook_ids(project):
    (project / "notebooks/.ipynb_checkpoints").mkdir()
    shutil.copy(
        project / "notebooks/a/fig1_one.ipynb",
        project / "notebooks/.ipynb_checkpoints/x-checkpoint.ipynb",
    )
    shutil.copy(
        project / "notebooks/a/fig1_one.ipynb", project / "notebooks/explore.ipynb"
    )
    assert list(build.notebooks(project)) == ALL
    for name in (
        "a/fig2_two.ipynb",
        "notebooks/a/fig2_two.ipynb",
        "./notebooks/a/fig2_two.ipynb",
        str(project / "notebooks/a/fig2_two.ipynb"),
    ):
        assert list(build.select([name], project)) == ["a/fig2"]
    assert list(build.select(["a", "a/fig1"], project)) == ["a/fig1", "a/fig2"]
    assert list(build.select([], project)) == ALL
    assert list(build.notebooks(project, guides=True)) == [*ALL, "explore"]
    for name in ("explore", "notebooks/explore.ipynb"):
        assert list(build.select([name], project, guides=True)) == ["explore"]
        with pytest.raises(build.BuildError, match="unknown figure"):
            build.select([name], project)


def _strange_parameter(root):
    (root / "notebooks/paper.yaml").write_text("a/fig2: {n: 1, n_rums: 3}\n")


def _no_notebook(root):
    (root / "notebooks/paper.yaml").write_text("a/fig9: {n: 1}\n")


def _not_plain(root):
    write_notebook(
        root / "notebooks/a/fig2_two.ipynb", parameters="n = 2 * 3\noutput_dir = None"
    )


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (None, {"ids": ["a/fig3"]}, r"unknown figure 'a/fig3'; did you mean a/fig"),
        (None, {"ids": ["fig2"]}, r"unknown figure 'fig2'; did you mean .*a/fig2"),
        (
            None,
            {"ids": ["a", "zzzzzz"]},
            r"unknown figure 'zzzzzz'; --list names all",
        ),
        (None, {"ids": [""]}, r"unknown figure ''"),
        (
            None,
            {"profile": "papr"},
            r"unknown profile 'papr'; there are paper, preview",
        ),
        (
            _strange_parameter,
            {},
            r"a/fig2 has no parameter 'n_rums'; it has n, seed",
        ),
        (None, {"parameters": {"m": 1}}, "a/fig1 has no parameter 'm'; it has n, seed"),
        (None, {"parameters": {"output_dir": "x"}}, "no parameter 'output_dir'"),
        (None, {"parameters": {"n": "x"}}, "'n' of a/fig1 must .* default, 5, got 'x'"),
        (None, {"parameters": {"n": 1.5}}, "type of its default, 5, got 1.5"),
        (None, {"parameters": {"n": True}}, "default, 5, got True"),
        (None, {"parameters": {"n": [1]}}, r"default, 5, got \[1\]"),
        (
            lambda root: write_claims(root, "b", within=[2, 1]),
            {},
            "claim 'one' of b/fig1 must have a criterion that can be met",
        ),
        (
            _no_notebook,
            {"ids": ["b"]},
            r"paper.yaml names figures without a notebook: a/fig9",
        ),
        (
            lambda root: (root / "notebooks/paper.yaml").write_text("a: {b"),
            {},
            r"paper.yaml must hold",
        ),
        (
            lambda root: (root / "notebooks/paper.yaml").write_text("- a"),
            {},
            r"paper.yaml must hold",
        ),
        (
            lambda root: (root / "notebooks/paper.yaml").write_text("a/fig1: 3"),
            {},
            r"paper.yaml must hold",
        ),
        (
            lambda root: (root / "notebooks/a/fig2_two.ipynb").write_text("{"),
            {},
            r"fig2_two.ipynb is not a notebook",
        ),
        (
            lambda root: (root / "notebooks/a/fig2_two.ipynb").write_text("{}"),
            {},
            r"fig2_two.ipynb is not a notebook",
        ),
        (_not_plain, {}, r"fig2_two.ipynb: the parameters cell must hold plain"),
        (
            _append("notebooks/a/fig2_again.ipynb"),
            {},
            r"fig2_again.ipynb and fig2_two.ipynb both make a/fig2",
        ),
    ],
)
def test_refused_before_anything_runs(stand_in, change, options, message):
    if change:
        change(stand_in.root)
    with pytest.raises(build.BuildError, match=message):
        stand_in.run(*options.pop("ids", []), **options)
    assert stand_in.calls == []


@pytest.mark.parametrize("command", [build.figures, build.verify, build.refresh])
def test_without_a_clone_nothing_is_built_or_written(tmp_path, command):
    """So it is where the library was installed from a wheel."""
    with pytest.raises(
        build.BuildError, match=r"no notebooks in .*: figures need a cl"
    ):
        command(root=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_platform_without_locks_is_named(stand_in, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(build.BuildError, match="on Linux and macOS only"):
        stand_in.run()


def test_empty_entries_of_the_parameter_file(stand_in):
    (stand_in.root / "notebooks/paper.yaml").write_text("a/fig1:\n")
    assert stand_in.run() == ALL
    assert stand_in.parameters["a/fig1"] == {}


# ---- what goes wrong


def test_one_failure_leaves_its_last_good_figure_and_stops_no_other(stand_in, capsys):
    stand_in.run()
    before = snapshot(stand_in.root)
    stand_in.failing, stand_in.content = {"a/fig1"}, "changed"
    assert stand_in.run(force=True) == ALL
    assert stand_in.errors == {"a/fig1": "RuntimeError: no luck"}
    out = capsys.readouterr().out
    assert "2 built, 1 failed" in out
    executed = stand_in.root / "build/notebooks/paper/a/fig1.ipynb"
    assert f"failed: a/fig1: RuntimeError: no luck\n        see {executed}" in out
    changed = {
        str(name)
        for name, content in snapshot(stand_in.root).items()
        if before.get(name) != content
    }
    assert {name for name in changed if "a/fig1" in name} == set()
    assert {name for name in changed if name.startswith("figures/")} == {
        f"figures/{f}{s}" for f in ("a/fig2", "b/fig1") for s in (".png", ".svg")
    }
    assert not (stand_in.root / "figures/.staging").exists()
    stand_in.failing = set()
    # The last good figure is that of the same inputs.
    assert stand_in.run() == []


@pytest.mark.parametrize("step", ["stamp", "sha256", "move"])
def test_a_full_disk_names_the_figure_and_leaves_whole_files(
    stand_in, monkeypatch, step
):
    stand_in.run()
    stand_in.content = "changed"
    full = OSError(errno.ENOSPC, "No space left on device", "somewhere")

    def failing(real):
        def call(*arguments):
            if any("a/fig1" in str(a) or "a-fig1" in str(a) for a in arguments):
                raise full
            return real(*arguments)

        return call

    if step == "move":
        monkeypatch.setattr(build.os, "replace", failing(os.replace))
    else:
        name = {"stamp": "write_atomic", "sha256": "sha256"}[step]
        monkeypatch.setattr(build, name, failing(getattr(build, name)))
    stand_in.run(force=True)
    monkeypatch.undo()
    assert stand_in.errors == {
        "a/fig1": "OSError: [Errno 28] No space left on device: 'somewhere'"
    }
    assert (stand_in.root / "figures/b/fig1.svg").read_text() == "changed"
    assert (
        len({(stand_in.root / "figures/a/fig1.svg").read_text()} & {"new", "changed"})
        == 1
    )
    assert not (stand_in.root / "figures/.staging").exists()
    monkeypatch.setattr(build, "execute", stand_in)
    assert stand_in.run() == (
        ["a/fig1"] if step == "stamp" else []
    )  # without a stamp it is built again


def test_two_builds_at_once_do_not_mix(stand_in):
    with running.locked(stand_in.root / "build"):
        for command in (build.figures, build.verify, build.refresh):
            with pytest.raises(
                build.BuildError,
                match=r"another build is running \(it holds .*build/lock\); wait",
            ):
                command(root=stand_in.root)
    assert stand_in.calls == []
    assert stand_in.run() == ALL


# ---- summaries and verify


def test_summaries(stand_in):
    stand_in.run()
    root, records = stand_in.root, report.read_all(stand_in.root)
    assert sorted(records) == ALL
    readme = (root / "README.md").read_text()
    table = f"<!-- claims -->\n{report.summary(records)}<!-- /claims -->"
    assert readme == f"# Title\n\n{table}\n\nend\n"
    assert (root / "figures/CLAIMS.md").read_text() == report.claims_page(records, root)
    before = [
        (root / name).stat().st_mtime_ns for name in ("README.md", "figures/CLAIMS.md")
    ]
    build.write_summaries(root)
    assert [
        (root / name).stat().st_mtime_ns for name in ("README.md", "figures/CLAIMS.md")
    ] == before
    for text in (
        "no marks\n",
        "<!-- claims -->\nno end\n",
        "no start <!-- /claims -->\n",
    ):
        (root / "README.md").write_text(text)
        build.write_summaries(root)
        assert (root / "README.md").read_text() == text


def test_verify_passes_when_all_is_equal_and_leaves_figures_alone(stand_in):
    stand_in.run()
    before = snapshot(stand_in.root / "figures")
    (stand_in.root / "build/verify/a").mkdir(parents=True)
    (stand_in.root / "build/verify/a/fig7.json").write_text("from an earlier run")
    stand_in.calls.clear()
    assert build.verify(root=stand_in.root) == {}
    assert sorted(stand_in.calls) == ALL
    assert snapshot(stand_in.root / "figures") == before
    assert sorted(snapshot(stand_in.root / "build/verify")) == sorted(
        Path(f"{f}{s}") for f in ALL for s in SUFFIXES
    )


def _status(root):
    path = root / "figures/a/fig1.json"
    record = json.loads(path.read_text())
    record["claims"][0]["status"] = "differs"
    record["claims"].append({"id": "dropped", "status": "holds"})
    path.write_text(json.dumps(record))


def _array(**arrays):
    return lambda root: np.savez(
        root / "figures/a/fig1.npz",
        **{"line": [1.0, 1e-3, np.nan], "count": [1, 2]} | arrays,
    )


@pytest.mark.parametrize(
    ("change", "difference"),
    every(
        4,
        [
            (
                _status,
                "claim dropped: holds committed, None now; "
                "claim one: differs committed, holds now",
            ),
            (_array(line=[1.0, 1.00001e-3, np.nan]), "array line differs"),
            (_array(line=[1.0, 1e-3, 0.0]), "array line differs"),
            (_array(line=[1.0, 1e-3]), "array line differs"),
            (_array(count=[1, 3]), "array count differs"),
            (_array(more=[1]), "arrays ['more'] on one side only"),
            (_array(line=[1.0, 1.0000005e-3, np.nan]), None),
            (
                lambda root: (root / "figures/a/fig1.npz").unlink(),
                "no committed fig1.npz",
            ),
            (
                lambda root: [p.unlink() for p in (root / "figures/a").glob("fig1.*")],
                "no committed fig1.png, fig1.svg, fig1.json, fig1.npz",
            ),
        ],
    ),
)
def test_verify_names_what_differs(stand_in, change, difference, capsys):
    stand_in.run()
    change(stand_in.root)
    assert build.verify(["a"], root=stand_in.root) == (
        {"a/fig1": difference} if difference else {}
    )
    printed = capsys.readouterr().out
    assert (f"differs: a/fig1: {difference}" in printed) == bool(difference)
    counts = [line for line in printed.splitlines() if " as in " in line]
    assert counts == [f"{2 - bool(difference)} of 2 as in {stand_in.root / 'figures'}"]


def test_verify_names_what_fails(stand_in):
    stand_in.run()
    stand_in.failing = {"b/fig1"}
    assert build.verify(root=stand_in.root) == {"b/fig1": "RuntimeError: no luck"}


# ---- real kernels


def drawing(root):
    return [DRAW, SHOW, SAVE.format(root=root)]


@pytest.fixture(scope="module", autouse=True)
def one_server():
    """Kernels in one environment are forks of one server, which takes 2 s to start.

    Builds of one notebook and of several have different numbers of threads.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory, sources):
    """A project built once with real kernels: only fig1 is good."""
    root = tmp_path_factory.mktemp("built")
    make_project(
        root,
        sources,
        fig1_good=drawing(root),
        fig2_raises=[
            "print('so far')",
            "raise ZeroDivisionError(f'no division, {n} is given')",
        ],
        fig3_copied=[
            PLAIN.format(figure="a/fig1", slow=False, root="")
        ],  # with the id that it had: saves no figure of its own
        fig4_dies=[
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        ],  # as the system does when memory runs out
        fig5_full=[FULL.format(figure="a/fig5")],
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "execute", StandIn(root))
        build.figures(root=root)
    before = snapshot(root)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        errors = build.figures(root=root, force=True)
    return SimpleNamespace(
        root=root,
        before=before,
        after=snapshot(root),
        errors=errors,
        out=out.getvalue(),
        err=err.getvalue(),
    )


@pytest.mark.slow
def test_each_failure_is_named(built):
    missing = "fig3.png, fig3.svg, fig3.json, fig3.npz"
    staged = f"{built.root}/figures/.staging/{os.getpid()}/a-fig5/a/fig5.svg"
    assert built.errors == {
        "a/fig2": "ZeroDivisionError: no division, 5 is given",
        "a/fig3": f"FileNotFoundError: the notebook saved no {missing}",
        "a/fig4": "DeadKernelError: Kernel died",
        "a/fig5": f"OSError: [Errno 28] No space left on device: '{staged}'",
    }
    lines = built.out.splitlines()
    assert sorted(line.split(":")[0] for line in lines[:5]) == [
        f"a/fig{i}" for i in range(1, 6)
    ], "one line for each figure"
    assert lines[5] == f"0 up to date, 1 built, 4 failed, in {built.root}/figures"
    assert [line for line in lines[6:] if line.startswith("failed: ")] == [
        f"failed: {f}: {e}" for f, e in built.errors.items()
    ]
    assert built.err == ""


@pytest.mark.slow
def test_failures_leave_the_last_good_figures_and_stamps(built):
    kept = {
        name
        for name in built.before
        if name.parts[0] == "figures" or "stamps" in name.parts
    }
    assert len(kept) == 5 * 5 + 2
    changed = {name for name in kept if built.after[name] != built.before[name]}
    assert {name.stem for name in changed} == {"fig1", "CLAIMS"}
    assert {name for name in built.after if name.parts[0] == "figures"} == {
        name for name in built.before if name.parts[0] == "figures"
    }


@pytest.mark.slow
def test_failed_notebook_is_kept(built):
    notebook = nbformat.read(
        built.root / "build/notebooks/paper/a/fig2.ipynb", as_version=4
    )
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any(o.get("text") == "so far\n" for o in outputs)
    assert any(o.get("ename") == "ZeroDivisionError" for o in outputs)


@pytest.mark.slow
def test_figure_and_record(built):
    record = json.loads((built.root / "figures/a/fig1.json").read_text())
    assert record["parameters"] == {"n": 7, "seed": 1}, (
        "the parameters of paper.yaml, not those of the notebook"
    )
    assert [c["status"] for c in record["claims"]] == ["holds"]
    with np.load(built.root / "figures/a/fig1.npz") as arrays:
        (values,) = arrays.values()
    np.testing.assert_array_equal(
        values[:, 1], np.random.default_rng(1).normal(size=7).astype(np.float32)
    )
    assert "| a | 5 | 5 |" in (built.root / "README.md").read_text()


@pytest.mark.slow
def test_nothing_changed_starts_no_kernel(built, monkeypatch):
    monkeypatch.setattr("papermill.execute_notebook", None)
    assert build.figures(["a/fig1"], root=built.root) == {}
    assert (
        "TypeError" in build.figures(["a/fig1"], root=built.root, force=True)["a/fig1"]
    ), "the test would see a kernel"


@pytest.mark.slow
def test_rebuilt_figure_is_the_same_byte_by_byte(built):
    assert build.verify(["a/fig1"], root=built.root) == {}
    fresh, committed = built.root / "build/verify/a", built.root / "figures/a"
    assert sorted(p.name for p in fresh.iterdir()) == sorted(
        f"fig1{s}" for s in SUFFIXES
    )
    for suffix in SUFFIXES:
        assert (fresh / f"fig1{suffix}").read_bytes() == (
            committed / f"fig1{suffix}"
        ).read_bytes(), suffix


@pytest.mark.slow
def test_refresh_twice_changes_nothing(tmp_path, sources, capsys):
    root = make_project(
        tmp_path,
        sources,
        fig1_one=["print(n)", INLINE, "for i in range(3):\n    print(i, flush=True)"],
        fig2_two=["1 / 0"],
    )
    path, bad = (
        root / f"notebooks/a/{name}.ipynb" for name in ("fig1_one", "fig2_two")
    )

    def untidy(notebook):
        notebook.cells[2].update(id="another", execution_count=17)
        notebook.cells[2].metadata.update(collapsed=True, tags=["kept"])
        notebook.metadata.update(
            kernelspec={"name": "elsewhere", "display_name": "Elsewhere"},
            papermill={"duration": 3.0},
        )

    edit_notebook(path, untidy)
    before = bad.read_bytes()
    assert build.refresh(root=root) == {"a/fig2": "ZeroDivisionError: division by zero"}
    assert (
        "1 refreshed, 1 failed\nfailed: a/fig2: ZeroDivisionError"
        in capsys.readouterr().out
    )
    assert bad.read_bytes() == before, "a notebook that raises stays as it was"
    first = path.read_bytes()
    notebook = nbformat.reads(first.decode(), as_version=4)
    assert notebook.metadata == {
        "kernelspec": {
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
            "name": "python3",
        },
        "language_info": notebook.metadata["language_info"],
    }
    assert notebook.metadata["language_info"]["file_extension"] == ".py"
    assert "version" not in notebook.metadata["language_info"]
    alt = notebook.cells[3].outputs[0].metadata["image/png"]["alt"]
    assert alt == "What it shows."
    assert [cell.id for cell in notebook.cells] == [f"a-fig1-{i}" for i in range(5)]
    assert [cell.metadata for cell in notebook.cells] == [
        {},
        {"tags": ["parameters"]},
        {"tags": ["kept"]},
        {},
        {},
    ]
    assert [cell.execution_count for cell in notebook.cells[1:]] == [1, 2, 3, 4]
    assert "image/png" in notebook.cells[3].outputs[0].data
    assert [o.text for o in notebook.cells[4].outputs] == ["0\n1\n2\n"], (
        "pieces of output are joined, however they came"
    )
    assert build.refresh(["a/fig1"], root=root) == {}
    assert path.read_bytes() == first


def test_refresh_runs_outside_the_main_thread(project, monkeypatch):
    """In the main thread nbclient would take Ctrl-C and end one kernel."""
    threads = set()
    monkeypatch.setattr(
        build, "_refresh", lambda *_: (threads.add(threading.current_thread()), 1.0)[1]
    )
    assert build.refresh(root=project) == {}
    assert threads
    assert threading.main_thread() not in threads


# ---- interrupted: the real command as a process, with a paperlib of its own


def _gone(pid):
    """True if no such process runs; a zombie does not run."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        )
    except (FileNotFoundError, ProcessLookupError):
        return True


def _wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


@pytest.mark.slow
def test_kernels_start_after_their_server_was_killed(project):
    if sys.platform != "linux":
        pytest.skip("kernels are forks on Linux alone")
    assert build.refresh(["a/fig1"], root=project) == {}
    servers = [
        child
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE
        and "paperfigs.forks" in child.cmdline()
    ]
    assert servers
    for server in servers:
        server.kill()
    psutil.wait_procs(servers, 10)
    assert build.refresh(["a/fig1"], root=project) == {}


@pytest.mark.slow
def test_a_notebook_runs_the_code_that_is_there_when_it_starts(tmp_path, sources):
    edit = """
import pathlib
from recrawl.science import policies
file = pathlib.Path(policies.__file__)
code = file.read_text()
file.unlink()
file.write_text(code + "NEW = 1")
"""
    use = "from recrawl.science.policies import NEW"
    codes = {
        f"fig{i}_x": [code, PLAIN.format(figure=f"a/fig{i}", slow=False, root="")]
        for i, code in ((1, edit), (2, use))
    }
    root = make_project(tmp_path, sources, **codes)
    done = subprocess.run(
        [sys.executable, "-m", "paperlib", "figures", "--jobs", "1"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 up to date, 2 built, 0 failed" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"
)
@pytest.mark.parametrize(
    ("how", "forks"),
    [
        ("Ctrl-C", True),
        ("SIGINT", True),
        ("SIGTERM", True),
        ("SIGKILL", True),
        ("Ctrl-C", False),  # as where kernels are no forks
        ("SIGKILL", False),
    ],
)
def test_interrupted(tmp_path, sources, how, forks, monkeypatch):
    codes = {
        f"fig{i}_x": [PLAIN.format(figure=f"a/fig{i}", slow=i == 2, root=tmp_path)]
        for i in (1, 2)
    }
    root = make_project(tmp_path, sources, **codes)
    (root / "figures/a").mkdir()
    for suffix in SUFFIXES:
        (root / f"figures/a/fig2{suffix}").write_text(
            '{"figure": "a/fig2", "claims": [], "data": {}}'
        )
    good = {
        name: content
        for name, content in snapshot(root / "figures").items()
        if name.stem == "fig2"
    }
    (root / "slow").touch()
    environment = {
        k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"
    } | {"PYTHONPATH": str(root / "src")}
    # Ctrl-C is ignored in what a shell starts in the background, as tests may
    # be.
    command = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from paperfigs import kernels; "
        f"kernels._FORKS = kernels._FORKS and {forks}; "
        "from recrawl.cli import main; sys.exit(main())"
    )
    with open(root / "out", "w") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", command, "figures", "--jobs", "2"],
            cwd=root,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_for(
            lambda: (
                "a/fig1:" in (root / "out").read_text() and (root / "started").exists()
            ),
            300,
            "a/fig1 built, a/fig2 running",
        )
        with pytest.raises(build.BuildError, match="another build is running"):
            build.figures(root=root)
        started = [int(pid) for pid in (root / "started").read_text().split()]
        assert [_gone(pid) for pid in started] == [False, False], "kernel, its worker"
        if how == "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)
        else:
            os.kill(process.pid, signal.Signals[how])
        status = process.wait(60)
    finally:
        process.kill()
        process.wait()
    try:
        _wait_for(lambda: all(map(_gone, started)), 60, "kernel and worker end")
    finally:
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    if how in ("SIGTERM", "SIGKILL"):
        assert status == -signal.Signals[how]
    else:
        assert status == 130
        last = (root / "out").read_text().splitlines()[-1]
        assert last.startswith("interrupted: what is finished is kept, the next run")
        assert not (root / "figures/.staging").exists()
    files = snapshot(root / "figures")
    assert {
        name: content for name, content in files.items() if name.stem == "fig2"
    } == good, "the last good figure"
    assert {str(name) for name in files} == {
        f"a/fig{i}{s}" for i in (1, 2) for s in SUFFIXES
    }, "and no half-written file"
    assert files[Path("a/fig1.png")] == b"whole"
    # the next run goes on from here: what was finished is skipped
    stand_in = StandIn(root)
    monkeypatch.setattr(build, "execute", stand_in)
    assert stand_in.run() == ["a/fig2"]
    assert not (root / "figures/.staging").exists()
    assert stand_in.run() == []


def test_jobs_come_in_the_order_of_the_papers_own_parameters():
    order = [job.figure for job in build.jobs_for([], "paper")]
    given = list(yaml.safe_load((build.ROOT / "notebooks/paper.yaml").read_text()))
    assert order[: len(given)] == given
    assert order[len(given) :] == sorted(set(build.notebooks()) - set(given))
