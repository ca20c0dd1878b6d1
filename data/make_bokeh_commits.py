"""Make bokeh_commits.csv from the Python package bokeh_sampledata 2026.1.

``python data/make_bokeh_commits.py``: pip fetches the package into a temporary
folder. Of the commits of one account the times are kept, to the second.
Commits in the same second are one event, since a page cannot be seen to
change twice at a time.
"""

import gzip
import subprocess
import sys
import tempfile
import zipfile
from email.utils import mktime_tz, parsedate_tz
from pathlib import Path

from paperfigs import traces
from paperfigs.files import sha256

PACKAGE = "bokeh_sampledata==2026.1"


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--dest",
                folder,
                PACKAGE,
            ],
            check=True,
        )
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            lines = (
                gzip.decompress(archive.read("bokeh_sampledata/_data/commits.txt.gz"))
                .decode()
                .splitlines()
            )
    trace = traces.write(
        traces.DATA / "bokeh_commits.csv",
        sorted({mktime_tz(parsedate_tz(line)) for line in lines}),
        title="Commit feed of one account",
        source=(
            f"_data/commits.txt.gz of the Python package {PACKAGE}: "
            "times of commits, each second once"
        ),
        licence="public domain, as recorded in that package",
    )
    print(
        f"{trace.title}: {trace.times.size} events of {len(lines)} commits, "
        f"sha256 {sha256(traces.DATA / 'bokeh_commits.csv')}"
    )


if __name__ == "__main__":
    main()
