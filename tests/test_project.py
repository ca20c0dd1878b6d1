"""Guards on the project: the conda file, the summaries, what no file may hold."""

import re
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml

from paperlib.repro import report

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _names(requirements):
    return {re.match(r"[\w-]+", r)[0].lower().replace("_", "-") for r in requirements}


def _declared():
    extras = PROJECT["optional-dependencies"].values()
    names = _names(PROJECT["dependencies"]).union(*map(_names, extras))
    return names - {PROJECT["name"]}  # an extra may include others


def test_conda_environment_covers_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    conda = _names(e for e in environment if isinstance(e, str))
    (pip,) = (e["pip"] for e in environment if isinstance(e, dict))
    assert "-e ." in pip
    # conda's python-duckdb is pip's duckdb
    named = {name.removeprefix("python-") for name in conda}
    assert _declared() - named - _names(pip[:-1]) == set()


def test_lock_covers_pyproject_and_is_hashed():
    lock = (ROOT / "requirements.lock").read_text()
    pinned = _names(re.findall(r"^[\w.-]+(?=(?:\[[\w,.-]+\])?==)", lock, re.M))
    assert _declared() - pinned == set()
    assert lock.count("--hash=sha256:") > len(pinned)


def test_summaries_say_what_the_records_say():
    records = report.read_all()
    assert (ROOT / "figures" / "CLAIMS.md").read_text() == report.claims_page(records)
    assert (
        f"<!-- claims -->\n{report.summary(records)}<!-- /claims -->"
        in (ROOT / "README.md").read_text()
    )


def test_no_file_names_a_machine_or_an_index():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    texts = [
        ROOT / name
        for name in listed.stdout.split()
        if not name.endswith((".png", ".npz", ".svg", ".gz"))
        and not name.startswith("tests/")
    ]
    assert len(texts) > 20
    pattern = re.compile(
        r"(pypi\.org|pythonhosted|registry\.npmjs|/home/\w+/|/root/|\bTODO\b|\bFIXME\b)"
    )
    found = [
        f"{path.relative_to(ROOT)}: {m[0]}"
        for path in texts
        if path.is_file() and (m := pattern.search(path.read_text()))
    ]
    assert found == []


@pytest.mark.slow
def test_the_lines_of_python_in_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(ROOT / "data")
    namespace = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    for block in blocks:
        exec(block, namespace)
    assert len(blocks) == 5
    shape, rate = namespace["scheduler"].posterior
    assert (np.diff(shape / rate) > 0).all()  # as the true rates rise
    assert namespace["found"].n_pages == 62
    assert "StormCrawler" in capsys.readouterr().out
