"""Share of small errors in the three packages that the tests find.

    python benchmarks/mutants.py --sample 100 --seed 28

is the sample of 29 November 2026: this line was committed before its first run.
A mutant is a package with one operator, comparison or number changed. It is killed if
a test fails or takes too long. The tests of a mutant are those of the five files of the
package's tests that name its module most often, and the examples of the module. The
quick tests of the first file come first, for all mutants; then, for those that are
left, those of the other files; then the slow tests; last, the quick tests of all other
files of the package. Results are added to `build/mutants.jsonl`: a second run goes on
from there, and tries only the mutants that are not killed yet. `equivalent_mutants.csv`
lists those that no test can tell from the library, and why.

mutmut leaves out every function that has a decorator, thus all kernels, and keeps
all mutants of the others in one file; cosmic-ray changes the sources in place, which
the caches of numba notice in the changed file alone, not in the kernels that call it.
Neither can switch numba off, because kernels read records by the names of their
fields, as Python cannot. Here the library is copied, and a mutant of a file with
kernels compiles all kernels that its tests use.
"""

import argparse
import ast
import collections
import csv
import hashlib
import itertools
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).parents[1]
PACKAGES = "paperlib", "paperfigs", "recrawl"
COPY, SESSION = ROOT / "build/mutants/src", ROOT / "build/mutants.jsonl"
EQUIVALENT = ROOT / "benchmarks/equivalent_mutants.csv"
N_FILES = 5
# One file finds most mutants, and many files take long to import.
ROUNDS = (
    ("not slow", slice(1)),
    ("not slow", slice(1, N_FILES)),
    ("slow", slice(N_FILES)),
    ("not slow", slice(N_FILES, None)),
)
SECONDS = 600  # of processor time: to compile the scheduler takes 30
MEMORY = 12 * 2**30  # bytes of addresses, of which most are never touched
PAIRS = (
    *(("+", "-"), ("*", "/"), ("<", "<="), (">", ">="), ("==", "!="), ("&", "|")),
    *(("+=", "-="), ("*=", "/="), ("&=", "|="), ("and", "or"), ("is", "is not")),
    *(("in", "not in"), ("True", "False"), ("break", "continue")),
)
SWAPS = {"//": "/", "%": "*", "**": "*"}
SWAPS |= dict(PAIRS) | {new: old for old, new in PAIRS}
# Arguments that change no result: they help whoever edits the library, or save time.
UNTESTED = "stacklevel", "strict", "cache"
WORD = re.compile(r"is not|not in|\*\*|//|[<>=!]=|[-+*/%|&]=|[-+*/%|&<>~]|[a-z]+")


def changes(tree, lines):
    """(line, start, end, new text) of each change, in bytes of the line."""
    skipped = set()
    for node in ast.walk(tree):
        # decorators, annotations and texts of messages are no formulas
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        parts += getattr(node, "decorator_list", [])
        if isinstance(node, ast.JoinedStr) or getattr(node, "arg", "") in UNTESTED:
            parts.append(node)
        for part in filter(None, parts):
            skipped.update(ast.walk(part))
    for node in ast.walk(tree):
        pairs = []
        if isinstance(node, ast.BinOp):
            pairs = [(node.left, node.right)]
        elif isinstance(node, ast.AugAssign):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.BoolOp):
            pairs = itertools.pairwise(node.values)
        elif isinstance(node, ast.Compare):
            pairs = itertools.pairwise([node.left, *node.comparators])
        for left, right in pairs if node not in skipped else ():
            yield from _between(left, right, lines)
        if node in skipped or not hasattr(node, "lineno"):
            continue
        n, start, end = node.lineno, node.col_offset, node.end_col_offset
        if isinstance(node, ast.UnaryOp):
            word = WORD.match(lines[n - 1][start:].decode())[0]
            yield n, start, start + len(word), ""
        elif isinstance(node, (ast.Break, ast.Continue)):
            yield n, start, end, SWAPS[lines[n - 1][start:end].decode()]
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            yield n, start, end, SWAPS.get(str(node.value), repr(node.value + 1))


def _between(left, right, lines):
    """Change of the operator between two operands, on whatever line it is."""
    for n in range(left.end_lineno, right.lineno + 1):
        start = left.end_col_offset if n == left.end_lineno else 0
        end = right.col_offset if n == right.lineno else None
        word = WORD.search(lines[n - 1][start:end].split(b"#")[0].decode())
        if word and word[0] in SWAPS:
            yield n, start + word.start(), start + word.end(), SWAPS[word[0]]
            return


def mutants():
    """Name of each mutant, the path of its module, and its source."""
    found = {}
    for path in sorted(COPY.rglob("*.py")):
        name = path.relative_to(COPY).as_posix()
        lines = path.read_bytes().splitlines(keepends=True)
        seen = collections.Counter()
        for n, start, end, new in changes(ast.parse(path.read_bytes()), lines):
            old = lines[n - 1]
            line = old[:start] + new.encode() + old[end:]
            text = f"{name}: {old.decode().strip()} -> {line.decode().strip()}"
            seen[text] += 1  # no numbers of lines, which change with any edit
            source = b"".join([*lines[: n - 1], line, *lines[n:]])
            found[f"{text} [{seen[text]}]"] = name, source
    return found


def tests_of(package):
    """All test files for each module, those that name it most often first."""
    folder = ROOT / "tests" / package
    used = {path: path.read_text() for path in sorted(folder.rglob("test_*.py"))}
    files = {}
    for path in (COPY / package).rglob("*.py"):
        own = path.stem if path.stem != "__init__" else path.parent.name
        count = {
            test: len(re.findall(rf"\b{own}\b", text)) + 99 * test.stem.endswith(own)
            for test, text in used.items()
        }
        best = sorted(count, key=count.get, reverse=True)
        files[path.relative_to(COPY).as_posix()] = best
    return files


def limit():
    """Keep a mutant that never ends, or fills the memory, from doing so."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def failure(which, tests, environment=MappingProxyType({})):
    """What fails first among the tests with this mark, or None."""
    pytest = [sys.executable, "-m", "pytest", "-x", "-p", "no:nbval", "--tb=no"]
    pytest += ["-p", "no:cacheprovider", "--doctest-modules", "-m", which]
    paths = {"PYTHONPATH": str(COPY), "OPENBLAS_NUM_THREADS": "1"}
    try:
        run = subprocess.run(
            [*pytest, *tests],
            cwd=ROOT,
            env={**os.environ, **paths, **environment},
            capture_output=True,
            text=True,
            timeout=5 * SECONDS,
            preexec_fn=limit,
        )
    except subprocess.TimeoutExpired:
        return f"more than {5 * SECONDS} s"
    if run.returncode in (0, 5):  # 5: no test has the mark
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", run.stdout, re.M)
    return failed[1] if failed else f"exit status {run.returncode}"


def killer(name, source, which, tests):
    """What finds a mutant, or None. The copy is then again the original."""
    path, aside = COPY / name, COPY.parent / "aside"
    path.rename(aside)  # comes back with its time, so that caches stay good
    path.write_bytes(source)
    try:
        # A kernel is compiled into those of other files, whose caches do not notice.
        with tempfile.TemporaryDirectory() as cache:
            fresh = {"NUMBA_CACHE_DIR": cache} if b"compiled" in source else {}
            return failure(which, [*tests, path], fresh)
    finally:
        aside.rename(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="number of mutants; default all")
    parser.add_argument("--seed", default="1", help="which sample")
    options = parser.parse_args()
    shutil.rmtree(COPY.parent, ignore_errors=True)
    shutil.copytree(ROOT / "src", COPY, ignore=shutil.ignore_patterns("__pycache__"))
    (COPY.parent / "data").symlink_to(ROOT / "data")  # a package finds it beside it
    found, tests = mutants(), {}
    for package in PACKAGES:
        tests |= tests_of(package)
    with EQUIVALENT.open(newline="") as file:
        equivalent = {row["mutant"] for row in csv.DictReader(file)}
    # an order that an edit elsewhere leaves as it is
    order = sorted(
        found, key=lambda m: hashlib.sha256((options.seed + m).encode()).hexdigest()
    )
    sample = [m for m in order[: options.sample] if m not in equivalent]
    done = {}
    if SESSION.exists():
        done = dict(json.loads(line) for line in SESSION.read_text().splitlines())
    for which, some in ROUNDS:
        for mutant in sample:
            if done.get(mutant):
                continue
            name, source = found[mutant]
            done[mutant] = killer(name, source, which, tests[name][some])
            with SESSION.open("a") as file:
                print(json.dumps([mutant, done[mutant]]), file=file)
            print(f"{mutant}\n    {done[mutant] or 'SURVIVES'}", flush=True)
    killers = {done[m] for m in sample if done[m] and "::" in done[m]}
    if killers and (wrong := failure("slow or not slow", killers)):
        sys.exit(f"fails without any mutant: {wrong}")
    alive = [mutant for mutant in sample if not done[mutant]]
    print("Alive:", *alive, sep="\n")
    share = 1 - len(alive) / len(sample)
    print(f"{share:.1%} of {len(sample)} mutants are killed, of {len(found)} in all")


if __name__ == "__main__":
    main()
