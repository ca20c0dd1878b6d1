"""A small checkout of the project in a temporary folder, which is the working one."""

import json

import nbformat
import pytest
import yaml

from paperfigs import build, traces

PARAMETERS = "n = 5\nrates = [0.5, 1.0]\nseed = None\noutput_dir = None"


class Checkout:
    """Writes the files of a checkout, and knows where they are."""

    def __init__(self, root):
        self.root = root
        self.write("notebooks/paper.yaml", "{}")
        self.write("README.md", "# T\n<!-- claims -->\nold\n<!-- /claims -->\nend\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def notebook(self, name, *code, parameters=PARAMETERS):
        """A notebook of figures: its title, its parameters, and cells of code."""
        text = f"# Figure 1: a title\n\nA question of {name.partition('_')[0]}."
        cells = [
            nbformat.v4.new_markdown_cell(text),
            nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}),
            *map(nbformat.v4.new_code_cell, code),
        ]
        kernel = {"name": "python3", "display_name": "P", "language": "python"}
        notebook = nbformat.v4.new_notebook(
            cells=cells, metadata={"kernelspec": kernel}
        )
        path = self.root / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, path)
        return path

    def edit(self, name, change):
        """Rewrite a notebook after `change(notebook)`."""
        path = self.root / "notebooks" / f"{name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        change(notebook)
        nbformat.write(notebook, path)

    def claims(self, figure, *entries, about="What it asks."):
        """Claims of a figure, whose texts can be left out."""
        paper, name = figure.split("/")
        path = self.root / "notebooks" / paper / "claims.yaml"
        content = yaml.safe_load(path.read_text()) if path.exists() else {}
        usual = {"says": "It is.", "where": "section 1", "measured": "a ratio"}
        claims = [usual | entry for entry in entries]
        content |= {"title": "A paper", "reference": "A. Author. A paper. 2025."}
        content |= {"about": about, name: {"claims": claims}}
        self.write(path, yaml.safe_dump(content))

    def settings(self, **by_figure):
        """Settings in ``paper.yaml``; `a_fig1` stands for a/fig1."""
        content = {name.replace("_", "/"): one for name, one in by_figure.items()}
        self.write("notebooks/paper.yaml", yaml.safe_dump(content, sort_keys=False))

    def built(self, figure, **measured):
        """The record of a build: claims with a measurement and its error."""
        record = {"figure": figure, "claims": measurements(measured)}
        self.write(f"figures/{figure}.json", json.dumps(record))

    def robust(self, figure, seeds=(), readings=()):
        """The record of `paperfigs robust`: measurements by seed and by reading.

        A seed is a dictionary as `built` takes it; a reading has the setting, the
        value, and such a dictionary.
        """
        record = {"seeds": [], "readings": []}
        for seed, measured in enumerate(seeds, start=11):
            run = {"setting": "seed", "value": seed, "parameters": {"n_runs": 1500}}
            record["seeds"].append(run | {"claims": measurements(measured)})
        for setting, value, measured in readings:
            run = {"setting": setting, "value": value, "parameters": {}}
            record["readings"].append(run | {"claims": measurements(measured)})
        self.write(f"figures/robust/{figure}.json", json.dumps(record))


def measurements(found):
    """Entries of a record, by id: a value without error, or value and error."""
    claims = []
    for name, value in found.items():
        if not isinstance(value, tuple):
            value = value, 0.0
        keys = "measured", "stderr", "median"
        claims.append({"id": name} | dict(zip(keys, value, strict=False)))
    return claims


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Checkout(tmp_path)


@pytest.fixture
def packages(checkout, monkeypatch):
    """The checkout with packages, data and a lock file in place of the project's."""
    for name in ("paperlib", "paperfigs", "recrawl"):
        checkout.write(f"src/{name}/__init__.py", '"""Doc."""\nx = 1  # one\n')
    checkout.write("data/trace.csv", "1\n")
    checkout.write(".ci/requirements.lock", "numpy==1\n")
    source = checkout.root / "src/paperfigs/build.py"
    monkeypatch.setattr(build, "__file__", str(source))
    monkeypatch.setattr(traces, "DATA", checkout.root / "data")
    return checkout
