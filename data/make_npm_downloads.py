"""Make npm_downloads.csv from the npm package download-counts.

``python data/make_npm_downloads.py`` fetches the package with npm into a
temporary folder. It holds the downloads of each npm package in one month. Of
the 10,000 that were downloaded most, every 22nd count is kept, without the name:
as many as the panel has pages, in descending order.
"""

import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

from paperfigs import traces
from paperfigs.files import sha256, write_atomic

COUNTS = traces.DATA / "npm_downloads.csv"
PACKAGE, VERSION = "download-counts", "2.20260301.0"
# Of all 3.8 million, one of some hundred packages has nearly all downloads.
N_PACKAGES = 10_000
N_COUNTS = 455  # pages of the panel


def fetch(folder):
    """Counts of all packages, in descending order."""
    command = ["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    [archive] = Path(folder).glob("*.tgz")
    with tarfile.open(archive) as package:
        counts = json.load(package.extractfile("package/counts.json"))
    return sorted(counts.values(), reverse=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        counts = fetch(folder)
    middles = ((2 * i + 1) * N_PACKAGES // (2 * N_COUNTS) for i in range(N_COUNTS))
    lines = [
        f"# source: npm package {PACKAGE} {VERSION}: a systematic sample of its "
        f"{N_PACKAGES} largest counts",
        "# licence: MIT, as recorded in that package",
        "downloads",
        *(str(counts[i]) for i in middles),
    ]
    write_atomic(COUNTS, "\n".join(lines) + "\n")
    write_atomic(f"{COUNTS}.sha256", f"{sha256(COUNTS)}  {COUNTS.name}\n")
    print(f"{N_COUNTS} of {len(counts)} counts, sha256 {sha256(COUNTS)}")


if __name__ == "__main__":
    main()
