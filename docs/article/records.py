"""What the article may say: numbers and words that are read from the records."""

import functools
import json
import math
from collections import Counter

import numpy as np

from paperfigs import ledger, project, verdicts


@functools.cache
def claims(figure):
    """Claims about a figure with what all runs say of them, by name."""
    assessed = {claim["id"]: claim for claim in verdicts.assess(figure)}
    if not assessed:
        raise ValueError(f"figure must have a record in figures/, got {figure!r}")
    return assessed


def claim(figure, name, reading=None):
    """One claim, or its measurement in another reading: ``n_crawls=2000``."""
    found = _named(claims(figure), name, f"the name of a claim about {figure}")
    if reading is None:
        return found
    others = {
        f"{setting}={value}": one
        for setting, values in found["readings"].items()
        for value, one in values.items()
    }
    return _named(others, reading, f"a reading of {figure} {name}")


def _named(entries, name, what):
    """An entry, or an error with the names that there are."""
    if name not in entries:
        raise ValueError(f"{name!r} must be {what}; there are: {', '.join(entries)}")
    return entries[name]


def write(number, form):
    """A number in a format of Python, with a true minus sign."""
    return format(number, form).replace("-", "−")


def mean(figure, name, reading=None):
    """A measurement as a number, for arithmetic."""
    measured = claim(figure, name, reading)["measured"]
    if measured is None:
        raise ValueError(f"claim must have a measurement, got {figure} {name}")
    return measured


def value(figure, name, form=None, reading=None):
    """A measurement as text: with its standard error, or in a given format."""
    number = mean(figure, name, reading)
    if form is None:
        return ledger.measurement(claim(figure, name, reading)).replace("-", "−")
    return write(number, form)


def seeds(figure, name, form):
    """The smallest and the largest measurement of the five seeds."""
    values = claim(figure, name)["values"]
    return f"{write(min(values), form)} to {write(max(values), form)}"


def status(figure, name, reading=None):
    """Status over five seeds, or in another reading."""
    return claim(figure, name, reading)["status" if reading else "here"]


def readings(figure, name):
    """In how many readings a claim holds: "3 of 7"."""
    words = [status(figure, name)]
    for others in claim(figure, name)["readings"].values():
        words += [one["status"] for one in others.values()]
    return f"{words.count('holds')} of {len(words)}"


def verdict(figure):
    """The verdict on a figure."""
    return verdicts.judge(list(claims(figure).values()))


def expect(found, expected, say=None):
    """Fail unless a word is the expected one; otherwise return what to say."""
    if found != expected:
        raise ValueError(f"a sentence expects {expected!r}, the records say {found!r}")
    return found if say is None else say


def of_cells(figure, name):
    """A share of cells as a fraction: "3 of 17"."""
    n = _cells_without_signals()[0].shape[0]
    return f"{round(mean(figure, name) * n)} of {n}"


@functools.cache
def _cells_without_signals():
    """Error, gain and its standard error in side by side, shape (cells, estimators)."""
    rows = ~np.isnan(array("beyond/side", "error"))
    rows &= ~np.char.startswith(array("beyond/side", "world"), "precision")
    n = np.unique(array("beyond/side", "method")[rows]).size
    names = "error", "gain", "stderr"
    return [array("beyond/side", name)[rows].reshape(-1, n) for name in names]


def duel():
    """Cells by what the estimator of least error is: freshest, beaten, undecided.

    It is beaten if the freshest estimator gains more by two standard errors of the
    difference, as if the two were independent.
    """
    error, gain, stderr = _cells_without_signals()
    cells = np.arange(len(error))
    least = error.argmin(axis=1)
    freshest = gain.argmax(axis=1)
    ahead = gain[cells, freshest] - gain[cells, least]
    noise = np.hypot(stderr[cells, freshest], stderr[cells, least])
    counts = {
        "freshest": int((ahead == 0).sum()),
        "beaten": int((ahead > 2 * noise).sum()),
        "cells": len(cells),
        "estimators": error.shape[1],
    }
    decided = counts["freshest"] + counts["beaten"]
    return counts | {"undecided": counts["cells"] - decided}


def predictions(figure):
    """Claims of ours about a figure, if it has been built, with criterion in words."""
    assessed = verdicts.assess(figure) if figure in project.notebooks() else []
    return [claim | {"criterion": ledger.criterion(claim)} for claim in assessed]


def sentence(figure):
    """The sentence of the verdict on a figure."""
    return project.about(figure)["sentence"]


def _figures(paper):
    """Figures of one paper, or of all papers."""
    listed = [figure for figure in project.notebooks() if figure.startswith(paper)]
    return [figure for figure in listed if not figure.startswith("beyond")]


def _of_papers(paper=""):
    """Claims of one paper, or of all papers, without ours."""
    listed = [list(claims(figure).values()) for figure in _figures(paper)]
    return [one for each in listed for one in verdicts.of_paper(each)]


def count(**wanted):
    """Number of claims of the papers with some values: ``count(here="differs")``."""
    return sum(
        all(claim.get(key) == entry for key, entry in wanted.items())
        for claim in _of_papers()
    )


def fraction(paper):
    """How many claims of a paper hold: "4 of 5 hold, 1 open"."""
    return verdicts.fraction(_of_papers(paper))


def figures(paper=""):
    """Verdicts on the figures of one paper, or of all papers, counted by word."""
    return Counter(map(verdict, _figures(paper)))


def _judged():
    """Claims of the papers that are decided or vary."""
    return [c for c in _of_papers() if c["here"] in ("holds", "differs", "varies")]


def _far(claim):
    """Distance of a measurement to the nearest limit of its criterion."""
    limits = [limit for limit in project.limits(claim) if math.isfinite(limit)]
    return min(abs(claim["measured"] - limit) for limit in limits)


def distances():
    """Distances of claims to their criteria in standard errors, where there are any."""
    return np.array([_far(c) / c["stderr"] for c in _judged() if c["stderr"]])


def slim(share):
    """Number of claims with a margin, as the picture of all claims has it, below."""
    return sum(_far(claim) < share * _scale(claim) for claim in _judged())


def turning():
    """Number of claims that hold with one value of a setting, not with another."""
    return sum(bool(claim["decides"]) for claim in _judged())


def sided():
    """Number of claims with the limit 0: their margin has no scale, only a side."""
    return sum(0 in (c.get("at_least"), c.get("at_most")) for c in _judged())


def growth_between():
    """Largest error of SAM in the last tenfold of crawls over that of the one before.

    One ratio for each pair of exponents between the limits 2 beta and 1 + beta.
    """
    k = array("peva22/rates", "e k")
    last = k > k[-1] / 10
    before = (k > k[-1] / 100) & ~last
    exponents = _record("peva22/rates")["parameters"]
    found = []
    for eta, beta in zip(
        exponents["beyond_etas"], exponents["beyond_betas"], strict=True
    ):
        if 2 * beta < eta < 1 + beta:
            error = array("peva22/rates", f"e eta = {eta:g}, beta = {beta:g}")
            found.append(error[last].max() / error[before].max())
    return found


def _scale(claim):
    """What a margin is relative to: half of a range, the limit or the measurement."""
    low, high = project.limits(claim)
    if "within" in claim:
        return (high - low) / 2
    return max(abs(claim["measured"]), min(abs(low), abs(high)))


def _record(figure):
    """The record of the run of the picture."""
    path = project.root() / "figures" / f"{figure}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def parameter(figure, name):
    """The value of a parameter in the run of the picture."""
    return _named(_record(figure)["parameters"], name, f"a parameter of {figure}")


def drawn_with(figure):
    """A sentence with the seed of a picture; none for a picture of all runs."""
    if not (project.root() / "figures" / f"{figure}.json").is_file():
        return ""
    return f" Drawn with seed {parameter(figure, 'seed')}."


def versions():
    """Versions of the packages that made the figures."""
    return _record("peva22/fig2")["versions"]


def array(figure, name):
    """A plotted array."""
    with np.load(project.root() / "figures" / f"{figure}.npz") as arrays:
        return _named(arrays, name, f"an array of {figure}")


def seconds(kind=None):
    """Time of the builds of all figures, or of the runs of all seeds or readings."""
    if kind is None:
        return sum(project.settings(f).get("seconds", 0) for f in project.notebooks())
    return sum(run["seconds"] for f in _figures("") for run in verdicts.runs(f)[kind])
