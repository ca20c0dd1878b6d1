"""Runs of a figure with other seeds, and with other readings of its paper.

A reading has another value than ours of one setting that the paper, or our text of it,
leaves open. ``notebooks/paper.yaml`` lists them. The records are in
``figures/robust/``. They are no part of a build, since all runs take an hour.
"""

import json
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paperfigs import build, project, report, verdicts
from paperfigs.files import write_atomic

SEEDS = range(11, 16)
_WRITING = threading.Lock()


def plan(figure: str, notebook: Path) -> dict[str, list[dict[str, Any]]]:
    """List the runs of a figure.

    Parameters
    ----------
    figure : str
        Figure id.
    notebook : Path
        Its notebook.

    Returns
    -------
    dict of list of dict
        Under "seeds" one run for each seed, or a single one if nothing in the
        notebook is random; under "readings" one run, with the first seed, for each
        other value of a setting. A run has the `setting` that it changes, the
        `value`, and all `parameters` that are not those of the notebook.
    """
    settings = project.settings(figure)
    usual = settings.get("paper", {}) | settings.get("robust", {})
    seeds = [{}]
    if "seed" in project.defaults(notebook):
        seeds = [{"seed": seed} for seed in SEEDS]
    runs = {"seeds": [], "readings": []}
    for change in seeds:
        runs["seeds"].append(_wanted("seed", change.get("seed"), usual | change))
    for name, setting in settings.get("free", {}).items():
        for value in setting["others"]:
            change = value if isinstance(value, dict) else {name: value}
            runs["readings"].append(_wanted(name, value, usual | seeds[0] | change))
    return runs


def _wanted(setting, value, parameters):
    """A run to make, as the record has it."""
    return {"setting": setting, "value": value, "parameters": parameters}


def run(
    ids: Sequence[str] = (), *, jobs: int | None = None, force: bool = False
) -> dict[str, str]:
    """Run figures with all seeds and readings, and draw the plot of all claims.

    A run is kept if the record has it with the same parameters and claims. So a
    command that was interrupted goes on when it is repeated.

    Parameters
    ----------
    ids : sequence of str
        As in `paperfigs.build.select`; by default all figures of the papers.
    jobs : int, optional
        Notebooks at a time; by default as many as the machine can run.
    force : bool, default False
        Whether to repeat the runs that the record has.

    Returns
    -------
    dict of str
        The errors by figure and run; empty if there was none.
    """
    todo = {}
    root = project.root()
    with build.prepared():
        for figure, notebook in build.select(ids).items():
            if figure.startswith("beyond/"):  # no claims of a paper
                continue
            runs = plan(figure, notebook)
            for wanted in runs["seeds"] + runs["readings"]:
                if force or not _find(figure, wanted):
                    name = f"{figure} {wanted['setting']} {wanted['value']}"
                    todo[name] = figure, notebook, wanted
        errors = build.run_all(todo, lambda job: _run(*job), jobs)
        report.write()
        plot = root / "notebooks" / "claims.ipynb"
        build.execute(plot, root / "build" / plot.name, output_dir=f"{root}/figures")
    print(f"{len(todo) - len(errors)} runs made, {len(errors)} failed")
    return errors


def _find(figure, wanted):
    """The run of the record with the same parameters and claims, in a list."""
    runs = verdicts.runs(figure)
    return [
        one
        for one in runs["seeds"] + runs["readings"]
        if one | wanted == one
        and {claim["id"] for claim in one["claims"]} == project.claims(figure).keys()
    ]


def _run(figure, notebook, wanted):
    """Run a notebook, and enter its claims into the record of its figure."""
    began = time.monotonic()
    code = build.checksum_of_code()
    with tempfile.TemporaryDirectory(dir=project.root() / "build") as folder:
        executed = Path(folder, notebook.name)
        build.execute(notebook, executed, **wanted["parameters"], output_dir=folder)
        claims = project.entry(Path(folder, f"{figure}.json"), "claims")
    if build.checksum_of_code() != code:
        raise project.BuildError("the code was edited during the run; repeat it")
    results = {"seconds": round(time.monotonic() - began), "claims": claims}
    _enter(figure, notebook, wanted, results)


def _enter(figure, notebook, wanted, results):
    """Write the record of a figure in the order of the plan, with a new run."""
    with _WRITING:
        record = {}
        for kind, listed in plan(figure, notebook).items():
            record[kind] = []
            for one in listed:
                if one == wanted:
                    record[kind].append(wanted | results)
                else:
                    record[kind] += _find(figure, one)
        text = json.dumps(record, ensure_ascii=False, indent=1)
        write_atomic(verdicts.path(figure), text + "\n")
