"""Make debian_panel.csv from the changelogs of 455 Debian packages.

The binary packages of Debian 12 that are listed in debian_panel_sources.csv
hold the changelogs. Where one is no longer in Debian's archive, its snapshots
have it. With their files in one folder::

    apt-get download $(tail -n +2 data/debian_panel_sources.csv | cut -d, -f3)
    for package in *.deb; do dpkg-deb --extract $package root; done
    python data/make_debian_panel.py root

Versions are compared with root/var/lib/dpkg, or else with the names of the .deb
files beside root: pinned packages that are not there are listed. A panel with
another checksum than the committed one is written with ``--force`` only.

``python data/make_debian_panel.py / --pin`` takes the packages that are
installed on this machine instead, and writes debian_panel_sources.csv.

One page is one source package: its page in unstable, which every upload to
unstable or experimental changes. Of each changelog only the times are kept.
"""

import argparse
import csv
import gzip
import re
import subprocess
import sys
from collections import defaultdict
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote

from paperfigs import traces
from paperfigs.files import write_atomic

PANEL = traces.DATA / "debian_panel.csv"
PINS = traces.DATA / "debian_panel_sources.csv"
COLUMNS = "page", "source", "package"

# Uploads to other suites (security, stable, backports, Ubuntu) change other pages;
# entries that are UNRELEASED changed none. Rebuilt binaries have no entry.
SHOWN = {"unstable", "experimental", "sid", "frozen"}
# Debian 12's changelogs end with what went into Debian 12. On this day its soft
# freeze began, and uploads to unstable became fewer, or were no longer for Debian 12.
END = datetime(2023, 2, 12, tzinfo=UTC)
# An entry this much later than the entry above it, which was written after it, is
# misdated (there is one). Below, branches that were merged explain the order.
MISDATED = 2 * 365.25  # days
CUT = "# Older entries have been removed from this changelog."

HEAD = re.compile(r"\S+ \([^)]+\) (?P<suites>[^;]+);")
TRAILER = re.compile(r" -- .*>\s+(?P<time>.+)")


def installed(root):
    """Source and package=version of each installed binary package."""
    shown = "${source:Package}\t${Package}=${Version}\n"
    folder = f"--admindir={root / 'var/lib/dpkg'}"
    command = ["dpkg-query", folder, "--show", f"--showformat={shown}"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in lines.splitlines()]


def pinned():
    """The same of the packages that the committed panel was made from."""
    with PINS.open(encoding="utf-8") as file:
        return [(row["source"], row["package"]) for row in csv.DictReader(file)]


def present(root):
    """The package=version of all packages that are installed or were extracted."""
    if (root / "var/lib/dpkg/status").is_file():
        return {package for _, package in installed(root)}
    debs = root.absolute().parent.glob("*.deb")
    return {unquote("=".join(deb.name.split("_")[:2])) for deb in debs}


def read_changelog(root, package):
    """Debian changelog of a binary package; empty if it shares another's."""
    folder = root / "usr/share/doc" / package.partition("=")[0]
    for name in "changelog.Debian.gz", "changelog.gz":  # the second: of Debian itself
        if (folder / name).is_file() and not folder.is_symlink():
            return gzip.decompress((folder / name).read_bytes()).decode(
                errors="replace"
            )
    return ""


def read_times(changelog):
    """Times of the entries that changed the page before the end, rising."""
    times, above, shown = set(), None, False
    for line in changelog.splitlines():
        if head := HEAD.match(line):
            shown = SHOWN & set(head["suites"].split())
        elif (trailer := TRAILER.match(line)) and shown:
            time = parsedate_to_datetime(trailer["time"]).astimezone(UTC)
            if above is None or (time - above).days <= MISDATED:
                times.add(time)
                above = time
    return sorted(time for time in times if time < END)


def read_pages(root, packages):
    """Times, source, package and whether the changelog is cut, of each source."""
    pages = defaultdict(list)
    for source, package in sorted(packages):
        changelog = read_changelog(root, package)
        pages[source].append((read_times(changelog), package, CUT in changelog))
    for source, found in pages.items():
        times, package, cut = max(found, key=lambda each: len(each[0]))
        if len(times) > 1:  # the first starts the window
            yield times, source, package, cut


def without_copies(pages):
    """The pages without those that are mostly entries of a longer one."""
    kept = []
    for page in sorted(pages, key=lambda page: len(page[0]), reverse=True):
        times = set(page[0])
        if all(2 * len(times & set(other[0])) <= len(times) for other in kept):
            kept.append(page)
    return sorted(kept)


def panel_text(pages):
    """The file, with a line for each time of each page."""
    lines = [
        "# source: changelogs of Debian 12 packages, see debian_panel_sources.csv",
        "# licence: times only, which are facts",
        f"# end: {END:%FT%TZ}",
        "page,time",
    ]
    for number, (times, *_) in enumerate(pages):
        lines += [f"{number},{time:%FT%TZ}" for time in times]
    return "\n".join(lines) + "\n"


def main(root, pin, force):
    packages = installed(root) if pin else pinned()
    if missing := sorted({package for _, package in packages} - present(root)):
        print("not there in the pinned version:", *missing, file=sys.stderr)
    pages = without_copies(read_pages(root, packages))
    text = panel_text(pages)
    digest = sha256(text.encode()).hexdigest()
    if not (pin or force or Path(f"{PANEL}.sha256").read_text().startswith(digest)):
        sys.exit(f"the sha256 of the panel is another, {digest}: nothing is written")
    write_atomic(PANEL, text)
    write_atomic(f"{PANEL}.sha256", f"{digest}  {PANEL.name}\n")
    if pin:
        rows = [(number, *page[1:3]) for number, page in enumerate(pages)]
        lines = [",".join(map(str, row)) for row in (COLUMNS, *rows)]
        write_atomic(PINS, "\n".join(lines) + "\n")
    sizes = [len(times) for times, *_ in pages]
    print(
        f"{len(pages)} pages, {sum(sizes)} times, "
        f"{sum(size > 30 for size in sizes)} pages with 30 changes or more, "
        f"{sum(cut for *_, cut in pages)} changelogs cut, sha256 {digest}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path, help="folder that holds usr/share/doc")
    parser.add_argument("--pin", action="store_true", help="take installed packages")
    parser.add_argument("--force", action="store_true", help="write another panel")
    main(**vars(parser.parse_args()))
