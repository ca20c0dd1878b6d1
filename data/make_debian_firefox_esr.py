"""Make debian_firefox_esr.csv from the changelog of Debian's firefox-esr.

On Debian 12 with a source archive (``Types: deb deb-src`` in the sources
file, then ``apt-get update``)::

    apt-get source --diff-only --download-only firefox-esr=140.12.0esr-1~deb12u1
    python data/make_debian_firefox_esr.py \\
        firefox-esr_140.12.0esr-1~deb12u1.debian.tar.xz

The argument is that archive or a debian/changelog. Of each entry only the
time of its sign-off is kept, and only of entries for unstable, experimental,
sid or frozen. Without the version, apt fetches the newest, whose changelog
may hold more entries.
"""

import re
import sys
import tarfile
from email.utils import mktime_tz, parsedate_tz
from pathlib import Path

from paperfigs import traces
from paperfigs.files import sha256

SHOWN = {"unstable", "experimental", "sid", "frozen"}
HEAD = re.compile(r"\S+ \((?P<version>[^)]+)\) (?P<suites>[^;]+);")
TRAILER = re.compile(r" -- .*>  (?P<time>.+)")


def read_changelog(path):
    if not tarfile.is_tarfile(path):
        return path.read_text(encoding="utf-8")
    with tarfile.open(path) as archive:
        return archive.extractfile("debian/changelog").read().decode()


def main(path):
    version, times = None, []
    for line in read_changelog(path).splitlines():
        if head := HEAD.match(line):
            version = version or head["version"]
            shown = SHOWN & set(head["suites"].split())
        elif (trailer := TRAILER.match(line)) and shown:
            times.append(mktime_tz(parsedate_tz(trailer["time"])))
    trace = traces.write(
        traces.DATA / "debian_firefox_esr.csv",
        times,
        title="Debian's Firefox package",
        source=(
            f"debian/changelog of firefox-esr {version}: sign-off times of the "
            "entries for unstable, experimental, sid or frozen"
        ),
        licence=(
            "times only, which are facts; "
            "the packaging that they come from is under MPL-2.0"
        ),
    )
    path = traces.DATA / "debian_firefox_esr.csv"
    print(f"{path.name}: {trace.times.size} events, sha256 {sha256(path)}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
