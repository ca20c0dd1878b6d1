"""Make wikipedia_pages.csv.gz from a public repository of revisions of Wikipedia.

With its history in one folder::

    git clone https://github.com/nrrb/wikipedia-revisions
    python data/make_wikipedia_pages.py wikipedia-revisions

The repository has CSV files of all revisions of the pages of a category, which its
authors got from Wikipedia's API. Of each revision only the title of the page and the
time are kept, to the second: no user, no size, no text. Revisions that come twice are
one, and so are revisions of a page in the same second, since a page cannot be seen
to change twice at a time.

Instead of the folder, a CSV file with the columns page (a title) and time does it. The
committed file was made so, from a table of these two columns that had been read from
the history of the repository before. If the checksum differs, nothing is written,
unless forced.
"""

import argparse
import csv
import gzip
import io
import subprocess
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from paperfigs import traces

PAGES = traces.DATA / "wikipedia_pages.csv.gz"
SOURCE = "https://github.com/nrrb/wikipedia-revisions"
# The file of each category, and a commit that has it.
AVIATION = "Category:21st-century_aviation_accidents_and_incidents.csv"
VOLCANOES = "Category:21st-century_volcanic_events-depth1.csv"
FILES = {
    AVIATION: "3ba20db400ee30f43677c5fec36af5e5e53f3a23",
    "Category-2001_fires.csv": "a880f725b9ab74af35abbf2dcd892e6b76127b8e",
    "Category-2002_fires.csv": "a880f725b9ab74af35abbf2dcd892e6b76127b8e",
    VOLCANOES: "fa5fb6a224715d200d2bcaf3ccf377596b0564ed",
    "Category:2009_floods-depth1.csv": "195ef0871ae9149dccec6c6449e3bc3fa7bf5ebe",
}


def git(folder, *arguments):
    """Output of a git command in the repository."""
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode()


def read_clone(folder):
    """Title and time of every revision, from all versions of the files.

    The files were extended in several commits. The older form of a line is page id,
    user id, title, user, time, revision, size; the newer one is title, user, time,
    revision.
    """
    for name, last in FILES.items():
        commits = git(
            folder, "log", "--format=%H", "--diff-filter=AM", last, "--", name
        )
        for commit in commits.split():
            lines = git(folder, "show", f"{commit}:{name}").splitlines()
            for row in csv.reader(lines, skipinitialspace=True):
                title, second = (row[2], row[4]) if len(row) > 4 else (row[0], row[2])
                yield title, datetime.fromtimestamp(int(second), UTC)


def read_table(path):
    """The same from a table of titles and times."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield row["page"], datetime.fromisoformat(row["time"])


def text_of(revisions):
    """The file, with a line for each time of each page, and its number of lines."""
    rows = sorted({(title, f"{time:%FT%TZ}") for title, time in revisions})
    file = io.StringIO()
    file.write(f"# source: {SOURCE}, see make_wikipedia_pages.py\n")
    file.write("# licence: MIT, as that repository records; titles and times only\n")
    csv.writer(file, lineterminator="\n").writerows([("page", "time"), *rows])
    return file.getvalue(), len(rows)


def main(source, force):
    read = read_clone if source.is_dir() else read_table
    text, n_revisions = text_of(read(source))
    # Without the time of the making, it is the same file every time.
    packed = gzip.compress(text.encode(), mtime=0)
    digest = sha256(packed).hexdigest()
    checksum = Path(f"{PAGES}.sha256")
    if not (force or checksum.read_text().startswith(digest)):
        raise SystemExit(f"the sha256 is another, {digest}: nothing is written")
    PAGES.write_bytes(packed)
    checksum.write_text(f"{digest}  {PAGES.name}\n")
    print(f"{n_revisions} revisions, sha256 {digest}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path, help="the clone, or a table")
    parser.add_argument("--force", action="store_true", help="write another file")
    main(**vars(parser.parse_args()))
