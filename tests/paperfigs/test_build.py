"""The build, on small checkouts in temporary folders.

What is rebuilt, refused or kept is tested with a stand-in for the kernel. What a
kernel can do to a build (raise, die, be interrupted) is tested with real ones.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import numpy as np
import psutil
import pytest
import yaml

from paperfigs import build, cli, project

ALL = ["a/fig1", "a/fig2", "b/fig1"]
AT_LEAST = {"id": "one", "at_least": 0}
SUFFIXES = ".png", ".svg", ".npz", ".json"


class StandIn:
    """In place of `build.execute`: writes what a notebook would, and keeps a list."""

    def __init__(self):
        self.calls, self.parameters, self.failing = [], {}, set()
        self.status, self.array, self.suffixes = "holds", [1.0, 1e-3, np.nan], SUFFIXES

    def __call__(self, notebook, executed, *, output_dir, **parameters):
        figure = f"{notebook.parent.name}/{notebook.stem.split('_')[0]}"
        self.calls.append(figure)
        self.parameters[figure] = parameters
        if figure in self.failing:
            raise RuntimeError("many lines\nno luck")
        executed.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(notebook, executed)
        paper, _ = figure.split("/")
        os.makedirs(f"{output_dir}/{paper}", exist_ok=True)
        claims = [{"id": "one", "measured": 1.0, "stderr": 0.0, "status": self.status}]
        for suffix in self.suffixes:
            path = f"{output_dir}/{figure}{suffix}"
            if suffix == ".npz":
                np.savez(path, line=np.float32(self.array), names=["x"])
            else:
                with open(path, "w") as file:
                    json.dump({"figure": figure, "claims": claims}, file)

    def run(self, *ids, **options):
        """Build, and return which notebooks ran."""
        self.calls.clear()
        self.errors = build.figures(ids, **({"jobs": 1} | options))
        return sorted(self.calls)


@pytest.fixture
def stand_in(packages, monkeypatch):
    checkout = packages
    checkout.notebook("a/fig1_one", "from paperfigs import plotting, traces")
    checkout.notebook(
        "a/fig2_two",
        "from paperfigs import ledger  # no traces",
        "print(seed)",
    )
    checkout.notebook("b/fig1_three", "import numpy, recrawl.rates")
    for figure in ALL:
        checkout.claims(figure, AT_LEAST)
    checkout.write("notebooks/paper.yaml", "a/fig1: {}\na/fig2: {paper: {n: 7}}\n")
    stand_in = StandIn()
    monkeypatch.setattr(build, "execute", stand_in)
    stand_in.checkout = checkout
    return stand_in


def test_builds_everything_at_the_papers_parameters_and_then_nothing(stand_in, capsys):
    assert stand_in.run() == ALL
    assert stand_in.parameters == {"a/fig1": {}, "a/fig2": {"n": 7}, "b/fig1": {}}
    assert "0 up to date, 3 built" in capsys.readouterr().out
    root = stand_in.checkout.root
    there = {p.name for p in (root / "figures/a").iterdir()}
    assert there == {f"fig{i}{suffix}" for i in (1, 2) for suffix in SUFFIXES}
    assert stand_in.run() == []
    assert "3 up to date, 0 built" in capsys.readouterr().out
    assert "| 2 | 2 | 0 | 0 | 0 | 0 | 2 of 2 hold |" in (root / "README.md").read_text()
    assert (root / "README.md").read_text().endswith("<!-- /claims -->\nend\n")


def code(source):
    return lambda made: made.edit(
        "a/fig2_two", lambda nb: nb.cells[-1].update(source=source)
    )


def prose(made):
    def change(notebook):
        notebook.cells[0].source = "# Another title"
        notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="1\n")]

    made.edit("a/fig2_two", change)


def write(name, text):
    return lambda made: made.write(name, text)


def settings(others):
    """Settings of other figures than a/fig2, which keeps its own."""
    text = yaml.safe_dump({"a/fig2": {"paper": {"n": 7}}} | others)
    return write("notebooks/paper.yaml", text)


def stamps(text):
    return lambda made: [
        path.write_text(text)
        for path in (made.root / "figures/.stamps").rglob("*.json")
    ]


@pytest.mark.parametrize(
    ("change", "rebuilt"),
    [
        (code("print(seed + 1)"), ["a/fig2"]),
        (settings({"a/fig1": {"paper": {"n": 9}}}), ["a/fig1"]),
        (settings({"b/fig1": {"seconds": 9, "free": {}, "robust": {"n": 1}}}), []),
        (write("notebooks/paper.yaml", ""), ["a/fig2"]),
        (write(".ci/requirements.lock", "numpy==2\n"), ALL),
        (write("data/trace.csv", "2\n"), ALL),
        (write("src/paperlib/new.py", "x = 1"), ALL),
        (write("src/paperfigs/paper.mplstyle", "font.size: 8"), ALL),
        (write("src/recrawl/__init__.py", "x = 2"), ALL),
        (lambda made: made.claims("b/fig1", {"id": "one", "at_most": 9}), ["b/fig1"]),
        (write("figures/b/fig1.svg", "damaged"), ["b/fig1"]),
        (lambda made: (made.root / "figures/b/fig1.npz").unlink(), ["b/fig1"]),
        (lambda made: shutil.rmtree(made.root / "figures/.stamps"), ALL),
        (stamps("["), ALL),
        (stamps("[" * 200_000), ALL),
        (stamps("[]"), ALL),
        (stamps("3"), ALL),
        (stamps('{"state": []}'), ALL),
        (prose, []),
        (lambda made: made.claims("b/fig1", AT_LEAST | {"says": "New."}), []),
        (write("src/paperlib/__init__.py", '"""Other."""\n# more\nx = 1\n'), ALL),
        (write("src/paperlib/notes.txt", "for readers"), []),
        (write("README.md", "<!-- claims -->\n<!-- /claims -->\n"), []),
    ],
)  # fmt: skip
def test_rebuilds_what_changed_and_nothing_else(stand_in, monkeypatch, change, rebuilt):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)  # with a bar
    stand_in.run()
    change(stand_in.checkout)
    assert stand_in.run() == rebuilt
    assert stand_in.run() == []


@pytest.mark.parametrize(
    "edit",
    [
        lambda made: made.claims("b/fig1", {"id": "one", "at_most": 9}),
        write("src/paperlib/__init__.py", "x = 2"),
        write("src/recrawl/__init__.py", "x = 2"),
        write("data/trace.csv", "2"),
        write(".ci/requirements.lock", "numpy==2"),
    ],
    ids=["criteria", "paperlib", "recrawl", "data", "lock"],
)
def test_what_is_edited_during_a_run_is_not_stamped(stand_in, monkeypatch, edit):
    """The figure may be of either state."""

    def run(*arguments, **parameters):
        edit(stand_in.checkout)
        stand_in(*arguments, **parameters)

    with monkeypatch.context() as patch:
        patch.setattr(build, "execute", run)
        assert stand_in.run("b") == ["b/fig1"]
    assert stand_in.run("b") == ["b/fig1"]
    assert stand_in.run("b") == []


def test_a_notebook_that_is_edited_during_a_run_and_put_back_is_not_stamped(
    stand_in, monkeypatch
):
    path = stand_in.checkout.root / "notebooks/b/fig1_three.ipynb"
    before = path.read_text()

    def run(*arguments, **parameters):
        stand_in.checkout.edit(
            "b/fig1_three", lambda nb: nb.cells[-1].update(source="other")
        )
        stand_in(*arguments, **parameters)
        path.write_text(before)

    with monkeypatch.context() as patch:
        patch.setattr(build, "execute", run)
        assert stand_in.run("b") == ["b/fig1"]
    assert stand_in.run("b") == ["b/fig1"]
    assert stand_in.run("b") == []


@pytest.fixture
def environments(stand_in, monkeypatch):
    """The environment of each kernel."""
    seen = []

    def look(*arguments, **parameters):
        seen.append(dict(os.environ))
        stand_in(*arguments, **parameters)

    monkeypatch.setattr(build, "execute", look)
    return seen


def test_every_state_of_the_packages_has_its_own_compiled_functions(
    stand_in, environments, monkeypatch
):
    """Numba does not see that a function which is called elsewhere has changed."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    own = dict(os.environ)
    for text in ("x = 2", "x = 3", "x = 2"):
        stand_in.checkout.write("src/paperlib/__init__.py", text)
        assert stand_in.run(force=True) == ALL
    assert os.environ == own
    folders = [seen["NUMBA_CACHE_DIR"] for seen in environments]
    first, second, third = folders[:3], folders[3:6], folders[6:]
    assert len(set(first)) == len(set(second)) == 1
    assert first == third != second
    assert Path(folders[0]).parent == stand_in.checkout.root / "build/numba"


def test_kernels_have_one_thread_unless_the_user_says_otherwise(
    stand_in, environments, monkeypatch
):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    stand_in.run("b")
    (seen,) = environments
    assert seen["OPENBLAS_NUM_THREADS"] == "1"
    assert seen["NUMBA_NUM_THREADS"] == "2"
    assert "PYTHONDONTWRITEBYTECODE" not in seen
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"


def test_what_is_asked_for_is_built(stand_in):
    assert stand_in.run("a/fig2") == ["a/fig2"]
    assert stand_in.run("a") == ["a/fig1"]
    assert stand_in.run("b/fig1", "b") == ["b/fig1"]
    assert stand_in.run("a", force=True) == ["a/fig1", "a/fig2"]


def test_folders_of_figures_have_stamps_of_their_own(stand_in):
    root = stand_in.checkout.root
    assert stand_in.run("a", profile="preview") == ["a/fig1", "a/fig2"]
    assert stand_in.parameters["a/fig2"] == {}
    assert stand_in.run("a/fig1", parameters={"n": 3}) == ["a/fig1"]
    assert stand_in.parameters["a/fig1"] == {"n": 3}
    assert stand_in.run("b", output="elsewhere") == ["b/fig1"]
    for name in ("build/preview/a/fig1", "build/custom/a/fig1", "elsewhere/b/fig1"):
        assert (root / f"{name}.png").exists()
    assert not (root / "figures").exists()
    assert "old" in (root / "README.md").read_text()
    assert stand_in.run("b", output="elsewhere") == []
    assert stand_in.run() == ALL


def test_the_longest_are_started_first(stand_in):
    """By `paper.yaml`, or else by a usual time."""
    stand_in.checkout.settings(a_fig1={"seconds": 5}, a_fig2={"seconds": 20})
    stand_in.run()
    assert stand_in.calls == ["a/fig2", "b/fig1", "a/fig1"]


@pytest.fixture
def machine(monkeypatch):
    """Sets the cores and the memory of the machine."""

    def change(cores, memory):
        pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": int(memory) // 4096}
        monkeypatch.setattr(os, "cpu_count", lambda: cores)
        monkeypatch.setattr(os, "sysconf", pages.get)

    return change


@pytest.mark.parametrize(
    ("cores", "memory", "notebooks"),
    [(8, 64e9, 8), (8, 8e9, 4), (8, 7e9, 3), (8, 1e9, 1)],
)
def test_one_notebook_for_each_core_runs_if_memory_allows(
    machine, cores, memory, notebooks
):
    machine(cores, memory)
    assert build.at_a_time() == notebooks


@pytest.mark.parametrize(("jobs", "cores"), [(None, 3), (3, 1)])
def test_notebooks_run_at_a_time_as_many_as_said_or_as_the_machine_has_cores(
    stand_in, machine, monkeypatch, jobs, cores
):
    machine(cores, 64e9)
    together = threading.Barrier(3)  # which three pass together, or none

    def wait(*arguments, **parameters):
        together.wait(timeout=10)
        stand_in(*arguments, **parameters)

    monkeypatch.setattr(build, "execute", wait)
    stand_in.run(jobs=jobs)
    assert stand_in.errors == {}


def test_an_error_leaves_the_last_good_figure(stand_in, capsys):
    stand_in.run()
    path = stand_in.checkout.root / "figures/a/fig1.png"
    before = path.read_bytes()
    stand_in.failing = {"a/fig1"}
    assert stand_in.run(force=True) == ALL
    assert stand_in.errors == {"a/fig1": "no luck"}
    assert path.read_bytes() == before
    printed = capsys.readouterr().out
    assert "a/fig1: no luck" in printed
    assert "0 up to date, 2 built" in printed
    stand_in.failing = set()
    assert stand_in.run() == [], "it is still the figure of these inputs"
    stand_in.suffixes = SUFFIXES[1:]
    path.unlink()
    stand_in.run()
    assert "did not save all of a/fig1" in stand_in.errors["a/fig1"]


def test_what_a_killed_build_left_is_removed(stand_in):
    left = stand_in.checkout.root / "figures/.staging-x"
    left.mkdir(parents=True)
    stand_in.run()
    assert not left.exists()


def test_two_builds_do_not_write_at_once(stand_in):
    unfinished = stand_in.checkout.root / "figures/.staging-y"
    unfinished.mkdir(parents=True)
    with (
        build.prepared(),
        pytest.raises(project.BuildError, match="another build is running"),
    ):
        stand_in.run()
    assert unfinished.exists(), "of the build that runs"
    target = stand_in.checkout.write("precious", "content")
    lock = stand_in.checkout.root / "build" / "lock"
    lock.unlink()
    lock.symlink_to(target)
    stand_in.run()
    assert target.read_text() == "content"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "a/fig9"], "unknown figure 'a/fig9', near ['a/fig2', "),
        (["build", "notebooks/a/fig1_one.ipynb"], "unknown figure 'notebooks/a"),
        (["verify", ""], "unknown figure '', near "),
        (["build", "a", "-p", "m", "1"], "a/fig1 has no parameter m; it has n, rates"),
        (["build", "-p", "output_dir", "x"], "has no parameter output_dir"),
    ],
)
def test_unknown_names_are_refused(stand_in, capsys, arguments, message):
    assert cli.main(arguments) == 2
    assert message in capsys.readouterr().err
    assert stand_in.calls == []


@pytest.mark.parametrize("file", ["figures/a/fig1.json", "notebooks/a/fig1_one.ipynb"])
def test_a_damaged_file_is_named(stand_in, capsys, file):
    stand_in.run()
    stand_in.checkout.write(file, "{}")
    assert cli.main(["verify", "a"]) == 2
    assert f"{file} is damaged: KeyError" in capsys.readouterr().err


def test_a_parameter_of_paper_yaml_that_the_notebook_lacks_is_refused(stand_in):
    stand_in.checkout.write("notebooks/paper.yaml", "a/fig1: {paper: {n_rums: 1}}")
    with pytest.raises(project.BuildError, match="no parameter n_rums"):
        stand_in.run()


def test_the_command_builds_lists_and_verifies(stand_in, capsys):
    given = ["-p", "n", "3", "-p", "rates", "[1, 2]", "--jobs", "1"]
    assert cli.main(["build", "a/fig1", *given]) == 0
    assert stand_in.parameters["a/fig1"] == {"n": 3, "rates": [1, 2]}
    printed = capsys.readouterr().out
    assert "1 of 1  a/fig1: " in printed
    assert "a/fig1 one: holds, 1" in printed
    assert cli.main(["list", "b"]) == 0
    listed = capsys.readouterr().out
    assert " ".join(listed.split()) == "b/fig1 not built Figure 1: a title"
    assert cli.main(["build"]) == 0
    assert cli.main(["verify", "a"]) == 0
    assert "2 of 2 as in" in capsys.readouterr().out
    assert cli.main(["list", "a"]) == 0
    first, _ = capsys.readouterr().out.splitlines()
    assert " ".join(first.split()) == "a/fig1 reproduced: 1 of 1 hold Figure 1: a title"
    stand_in.failing = {"a/fig1"}
    assert cli.main(["build", "--force"]) == 1


@pytest.mark.parametrize(
    ("attribute", "value", "difference"),
    [
        ("status", "differs", "claim one"),
        ("array", [1.0, 1.1e-3, np.nan], "array line"),
        ("array", [1.0, 1e-3, 0.0], "array line"),
        ("array", [1.0, 1e-3], "array line"),
        ("array", [1.0, 1.0000005e-3, np.nan], None),
        ("array", [1.0 + 2e-6, 1e-3, np.nan], "array line"),
    ],
)
def test_verify_names_what_differs(stand_in, attribute, value, difference):
    stand_in.run()
    setattr(stand_in, attribute, value)
    expected = dict.fromkeys(ALL, difference) if difference else {}
    assert build.verify(jobs=1) == expected


@pytest.mark.parametrize("largest", [1e6, 1.0, 1e-6])
def test_verify_compares_with_an_absolute_tolerance_near_zero(stand_in, largest):
    """It is a share of the largest entry, be that above 1 or below."""
    stand_in.array = [largest, 0.0]
    stand_in.run()
    stand_in.array = [largest, 5e-10 * largest]
    assert build.verify(["a"]) == {}
    stand_in.array = [largest, 5e-9 * largest]
    assert len(build.verify(["a"])) == 2


def test_verify_names_what_fails_and_what_was_never_built(stand_in):
    stand_in.run("a")
    stand_in.failing = {"a/fig1"}
    found = build.verify()
    assert found.keys() == {"a/fig1", "b/fig1"}
    assert found["a/fig1"] == "no luck"
    assert "claim one" in found["b/fig1"]


def test_a_copy_replaces_no_other_figure(packages, stand_in):
    """It saves the figure that its text names, into the folder of all figures."""
    copy = packages.root / "notebooks/a/own_estimator.ipynb"
    shutil.copy(copy.with_name("fig1_one.ipynb"), copy)
    assert "must name its figure, a/own" in build.figures(["a/own"])["a/own"]
    copy.rename(copy.with_name("fig1_one-Copy1.ipynb"))
    with pytest.raises(build.BuildError, match="a/fig1 has two notebooks, .* and "):
        build.select(["a"])


# ---- real kernels

GOOD = """
import matplotlib.pyplot as plt
from paperfigs import ledger, plotting
plotting.use_style()
figure, ax = plt.subplots(figsize=(2, 1.5))
ax.plot(range(n), label="line")
claims = ledger.Claims("a/fig1", globals())
claims.measure("one", n)
plotting.save(figure, claims, output_dir)
"""


def command(root, *arguments, **options):
    """The command as a process, in which Ctrl-C is not ignored."""
    start = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from paperfigs.cli import main; sys.exit(main())"
    )
    return subprocess.Popen(
        [sys.executable, "-c", start, *arguments],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


@pytest.mark.slow
def test_real_kernels(checkout):
    checkout.notebook("a/fig1_good", GOOD)
    checkout.notebook("a/fig2_raises", "print('so far')", "raise ValueError(n)")
    checkout.notebook("a/fig3_dies", "import os; os.kill(os.getpid(), 9)")
    checkout.notebook("a/fig4_saves_nothing", "print(n)")
    checkout.claims("a/fig1", {"id": "one", "at_least": 1})
    checkout.write("notebooks/paper.yaml", "a/fig1: {paper: {n: 7}}\n")
    printed, _ = command(checkout.root, "build").communicate(timeout=120)
    parts = [line.partition(" of 4  ") for line in printed.splitlines()]
    lines = sorted(line for _, found, line in parts if found)
    assert [line.partition(" ")[2] for line in lines[1:]] == [
        "ValueError: 5",
        "Kernel died",
        "the notebook did not save all of a/fig4",
    ]
    assert "1 built" in printed
    record = json.loads((checkout.root / "figures/a/fig1.json").read_text())
    assert record["parameters"] == {"n": 7, "rates": [0.5, 1.0]}
    assert [claim["status"] for claim in record["claims"]] == ["holds"]
    failed = nbformat.read(checkout.root / "build/notebooks/a/fig2.ipynb", 4)
    outputs = [output for cell in failed.cells for output in cell.get("outputs", [])]
    assert outputs[0]["text"] == "so far\n"
    verified, _ = command(checkout.root, "verify", "a/fig1").communicate(timeout=120)
    assert "1 of 1 as in" in verified
    for suffix in SUFFIXES:
        old, new = (
            checkout.root / folder / f"a/fig1{suffix}"
            for folder in ("figures", "build/verify")
        )
        assert old.read_bytes() == new.read_bytes(), suffix


@pytest.mark.slow
def test_a_result_is_of_the_code_as_it_is(checkout):
    """Numba takes compiled code by the time and size of the caller's module."""
    source = Path(build.__file__).parents[1]
    shutil.copytree(source, checkout.root / "src")
    checkout.write("data/none.csv", "")
    function = "import numba\n{}\n@numba.njit(cache=True)\ndef {}(x):\n    return {}\n"
    caller = function.format("from paperlib.called import g", "f", "g(x)")
    checkout.write("src/paperlib/caller.py", caller)
    checkout.notebook("a/fig1_x", "from paperlib.caller import f\nn = f(1)", GOOD)
    checkout.claims("a/fig1", {"id": "one", "at_least": 1})
    given = {"PYTHONPATH": "src", "NUMBA_CACHE_DIR": str(checkout.root / "numba")}
    measured = []
    for number in (2, 8):
        called = function.format("", "g", f"x + {number}")
        path = checkout.write("src/paperlib/called.py", called)
        os.utime(path, (10**9, 10**9 + number))
        command(checkout.root, "build", env=os.environ | given).communicate(timeout=120)
        record = json.loads((checkout.root / "figures/a/fig1.json").read_text())
        measured.append(record["claims"][0]["measured"])
    assert measured == [3, 9]


@pytest.mark.slow
def test_refresh_twice_changes_nothing(checkout):
    def untidy(notebook):
        notebook.cells[2].update(id="another", execution_count=17)
        notebook.cells[2].metadata.update(collapsed=True, tags=["kept"])
        notebook.cells[2].metadata["mystnb"] = {"image": {"alt": "A line."}}
        notebook.metadata["papermill"] = {"duration": 3.0}

    show = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    path = checkout.notebook("a/fig1_x", "print(n)", show)
    checkout.edit("a/fig1_x", untidy)
    bad = checkout.notebook("a/fig2_raises", "1 / 0")
    before = bad.read_bytes()
    process = command(checkout.root, "refresh")
    assert "division by zero" in process.communicate(timeout=120)[0]
    assert process.returncode == 1
    assert bad.read_bytes() == before, "a notebook that raises stays as it was"
    first = path.read_bytes()
    notebook = nbformat.reads(first.decode(), as_version=4)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert "version" not in notebook.metadata.language_info
    assert [cell.id for cell in notebook.cells] == [f"a-fig1-{i}" for i in range(4)]
    assert [set(cell.metadata) for cell in notebook.cells] == [
        *(set(), {"tags"}, {"tags", "mystnb"}, set())
    ]
    assert [cell.execution_count for cell in notebook.cells[1:]] == [1, 2, 3]
    assert notebook.cells[2].outputs[0].text == "5\n"
    assert "image/png" in notebook.cells[3].outputs[0].data
    command(checkout.root, "refresh", "a/fig1").communicate(timeout=120)
    assert path.read_bytes() == first


def running(mark):
    """The kernels of a build, by a mark in their environment."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        with contextlib.suppress(psutil.Error):
            is_kernel = "ipykernel_launcher" in (process.info["cmdline"] or ())
            if is_kernel and process.environ().get("PAPERFIGS_TEST") == mark:
                found.append(process)
    return found


def test_a_kernel_whose_build_died_first_ends():
    """Its parent is another process then, whose end would never come."""
    code = "from paperfigs import kernels; kernels.end_with_build(); print('lives')"
    for parent, expected in (os.getpid(), (0, "lives\n")), (os.getppid(), (1, "")):
        environment = os.environ | {"JPY_PARENT_PID": str(parent)}
        kernel = [sys.executable, "-c", code]
        found = subprocess.run(
            kernel, env=environment, stdout=subprocess.PIPE, text=True, check=False
        )
        assert (found.returncode, found.stdout) == expected


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="kernels of other systems look up")
@pytest.mark.parametrize("early", [True, False], ids=["starting", "computing"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_kernels_end_with_the_build(checkout, how, early):
    # One call that lets no other thread run, and one that does.
    calls = (
        "import ctypes; ctypes.PyDLL(None).sleep(1000)",
        "import time; time.sleep(9)",
    )
    for number, call in enumerate(calls, start=1):
        begin = f"open('started{number}', 'w').close()\n"
        checkout.notebook(f"a/fig{number}_x", begin + call)
        checkout.claims(f"a/fig{number}")
    mark = str(checkout.root)
    process = command(checkout.root, "build", env=os.environ | {"PAPERFIGS_TEST": mark})
    end = time.monotonic() + 120
    while not (
        running(mark) if early else len(list(checkout.root.glob("started*"))) == 2
    ):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(how)
    printed, _ = process.communicate(timeout=60)
    _, left = psutil.wait_procs(running(mark), timeout=60)
    for kernel in left:
        kernel.kill()
    assert left == []
    assert process.returncode == (-how if how == signal.SIGKILL else 130)
    assert how == signal.SIGKILL or "interrupted: the next run goes on" in printed
    assert [*(checkout.root / "figures").rglob("*.*")] == []
