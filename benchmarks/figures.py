"""Processor time and memory of the figures at paper scale, one figure at a time.

``python benchmarks/figures.py [FIGURE ...]`` measures these figures, by default
all, and replaces their rows of benchmarks/figures.csv. Then it writes docs/costs.md
from this file. ``python benchmarks/figures.py --page`` only writes the page.
"""

import csv
import datetime
import io
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from paperfigs import build, ledger, project
from paperfigs.files import write_atomic

COLUMNS = "figure", "processor_seconds", "megabytes", "date", "machine"
PAGE = Path(__file__).parents[1] / "docs" / "costs.md"
CORES = 2, 4, 16
TEXT = """# What each figure costs

{sum:,} seconds of one processor for all figures at the papers' scale, which
`make figures` builds as many at a time as the machine has cores. If nothing else runs,
this is {minutes} minutes on {cores} cores. These minutes are **computed** from the
seconds below, the longest figure first; only two cores were at hand, where
`make figures` was also timed (README). The first build also compiles, half a minute.

GB is the peak memory of the largest process. `python benchmarks/figures.py` measures
the table, one figure at a time, and `benchmarks/figures.csv` names the date and the
machine of each row.

"""

# The figure is built by a process of its own, so that the operating system
# counts what that process and its kernel use, and nothing else.
CHILD = """
import sys
from pathlib import Path
from paperfigs import build
job, = build.jobs_for([sys.argv[1]], "paper")
folder = Path(sys.argv[2])
given = job.parameters | {"output_dir": sys.argv[2]}
build.execute(job.notebook, folder / "run.ipynb", **given)
"""


def measure(figure):
    """Processor seconds of one figure, and megabytes of its largest process."""
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen([sys.executable, "-c", CHILD, figure, folder])
        _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{figure} was not built")
    kilobyte = 1024 if sys.platform == "linux" else 1  # macOS counts bytes
    seconds = usage.ru_utime + usage.ru_stime
    return round(seconds), round(usage.ru_maxrss * kilobyte / 1e6)


def machine():
    """This machine in a few words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, "
        f"{platform.system()}, Python {platform.python_version()}"
    )


def write(row, path):
    """Replace one row of the file, whose rows are in the order of the figures."""
    with path.open(newline="") as file:  # another process may write it, too
        rows = {each["figure"]: each for each in csv.DictReader(file)}
    rows[row[0]] = dict(zip(COLUMNS, row, strict=True))
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows[figure] for figure in sorted(rows))
    write_atomic(path, text.getvalue())


def computed_minutes(seconds, n_cores):
    """Minutes until all figures are built, if a free core takes the longest next."""
    busy = [0.0] * n_cores
    for each in sorted(seconds, reverse=True):
        busy[busy.index(min(busy))] += each
    return round(max(busy) / 60)


def write_page(path):
    """Write the page of all figures, from the rows that are there."""
    with path.open(newline="") as file:
        rows = {each["figure"]: each for each in csv.DictReader(file)}
    lines = []
    for figure, notebook in project.notebooks().items():
        if figure in rows:  # a new one is measured once a release
            link = f"[{figure}](../{notebook.relative_to(project.root())})"
            size = f"{int(rows[figure]['megabytes']) / 1000:.1f}"
            lines.append((link, rows[figure]["processor_seconds"], size))
    seconds = [int(row["processor_seconds"]) for row in rows.values()]
    minutes = [str(computed_minutes(seconds, cores)) for cores in CORES]
    head = TEXT.format(
        sum=sum(seconds),
        minutes=", ".join(minutes),
        cores=", ".join(map(str, CORES)),
    )
    table = ledger.table(("figure", "processor seconds", "GB"), lines)
    write_atomic(PAGE, head + table)


def main(ids, path):
    """Measure figures, and keep each row as soon as it is known."""
    for job in build.jobs_for(ids, "paper"):
        seconds, megabytes = measure(job.figure)
        row = job.figure, seconds, megabytes, datetime.date.today(), machine()
        print(*row, flush=True)
        write(row, path)


if __name__ == "__main__":
    rows = Path(__file__).with_suffix(".csv")
    if sys.argv[1:] != ["--page"]:
        main(sys.argv[1:], rows)
    write_page(rows)
