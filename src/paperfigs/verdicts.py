"""Which claims hold over seeds and readings, and the verdict on a figure."""

import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from paperfigs import project

# Number of standard errors by which a criterion must be met or missed. With normal
# errors, the status of a run is wrong by chance with a probability below 0.14%.
STANDARD_ERRORS = 3.0
_WRITTEN = {"varies": "varying", "open": "open", "calibrated": "calibrated"}
_MARKS = {"holds": "●", "differs": "○"}  # others: "◐"


def path(figure: str) -> Path:
    """File with the runs of a figure with other seeds and readings."""
    return project.root() / "figures" / "robust" / f"{figure}.json"


def runs(figure: str) -> dict[str, list[dict[str, Any]]]:
    """Read the runs of a figure, under "seeds" and "readings"."""
    if not path(figure).exists():
        return {"seeds": [], "readings": []}
    return {kind: project.entry(path(figure), kind) for kind in ("seeds", "readings")}


def status(measured: float | None, stderr: float | None, claim: dict[str, Any]) -> str:
    """Whether one measurement meets the criterion of a claim.

    Parameters
    ----------
    measured : float or None
        The measurement; None or NaN if there is none.
    stderr : float or None
        Its standard error; None or infinite if unknown.
    claim : dict
        One of `paperfigs.project.claims`.

    Returns
    -------
    str
        "holds" or "differs" if the criterion is met or missed by three standard
        errors, otherwise "on the border"; "not measured" without a measurement;
        "number" without a criterion.
    """
    low, high = project.limits(claim)
    if measured is None or not math.isfinite(measured) or math.isnan(stderr or 0):
        return "not measured"
    if not project.CRITERIA.keys() & claim.keys():
        return "number"
    slack = STANDARD_ERRORS * (math.inf if stderr is None else stderr)
    if low + slack <= measured <= high - slack:
        return "holds"
    if measured < low - slack or measured > high + slack:
        return "differs"
    return "on the border"


def assess(figure: str) -> list[dict[str, Any]]:
    """List the claims about a figure with what all runs say of them.

    Parameters
    ----------
    figure : str
        Figure id.

    Returns
    -------
    list of dict
        Empty if the figure has not been built. A claim has the entries of
        `paperfigs.project.claims`, and: ``values``, the measurements of all seeds;
        `measured` and `stderr`, their mean and its error; `here`, the status of
        `over_seeds`; `readings`, the measurement and the status of each other
        reading, by setting and value; `decides`, a text for each setting that
        decides the status, by its name.
    """
    built = project.root() / "figures" / f"{figure}.json"
    if not built.exists():
        return []
    first_seed = {"claims": project.entry(built, "claims")}
    record = runs(figure)
    free = project.settings(figure).get("free", {})
    assessed = []
    for name, claim in project.claims(figure).items():
        seeds = _measurements(record["seeds"], name)
        seeds = seeds or _measurements([first_seed], name)
        claim = {"where": "", "reason": "", "readings": {}} | claim
        claim |= over_seeds(seeds, claim)
        if not project.CRITERIA.keys() & claim.keys() and "theirs" in claim:
            claim["here"] = "number"
        elif not seeds and "declared" in claim:
            claim["here"] = claim["declared"]
        for run in record["readings"]:
            if run["setting"] not in free:  # any more
                continue
            for one in _measurements([run], name):
                if one in seeds:  # the setting does not enter the measurement
                    continue
                word = status(one["measured"], one["stderr"], claim)
                setting = claim["readings"].setdefault(run["setting"], {})
                setting[text(run["value"])] = one | {"status": word}
        claim["decides"] = _deciding(free, claim)
        assessed.append(claim)
    return assessed


def _measurements(runs, name):
    """The measurements of a claim in some runs."""
    return [
        one
        for run in runs
        for one in run["claims"]
        if one["id"] == name and one["measured"] is not None
    ]


def over_seeds(found: list[dict[str, Any]], claim: dict[str, Any]) -> dict[str, Any]:
    """Join the measurements of one claim by runs with different seeds.

    Parameters
    ----------
    found : list of dict
        `measured` and `stderr` of each run.
    claim : dict
        One of `paperfigs.project.claims`.

    Returns
    -------
    dict
        `values`; `measured`, their mean; `stderr`, its standard error by the spread
        over seeds or by the errors within them, whichever is larger; `median`, the
        mean of the medians, if there are any; `here`: "holds" or "differs" if the
        mean meets or misses the criterion by three standard errors and no seed says
        the opposite, else "varies".
    """
    if not found:
        none = dict.fromkeys(("measured", "stderr", "median"))
        return none | {"values": [], "here": "not measured"}
    values = np.array([one["measured"] for one in found])
    errors = [math.inf if one["stderr"] is None else one["stderr"] for one in found]
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    within = math.sqrt(np.mean(np.square(errors)))
    # If the seed changes nothing, five runs know no more than one.
    n_samples = len(values) if spread else 1
    joined = {
        "values": values.tolist(),
        "measured": values.mean(),
        "stderr": max(spread, within) / math.sqrt(n_samples),
        "median": None,
    }
    if all("median" in one for one in found):
        joined["median"] = np.mean([one["median"] for one in found])
    here = status(joined["measured"], joined["stderr"], claim)
    single = [status(*one, claim) for one in zip(values, errors, strict=True)]
    if here == "on the border" or {"holds", "differs"} <= {here, *single}:
        here = "varies"
    return joined | {"here": here}


def _deciding(free, claim):
    """A text for each setting with which the status turns round, by its name."""
    texts = {}
    for key, others in claim["readings"].items():
        values = defaultdict(list, {claim["here"]: [text(free[key]["ours"])]})
        for value, one in others.items():
            values[one["status"]].append(value)
        holds, differs = (" or ".join(values[word]) for word in ("holds", "differs"))
        if holds and differs:
            texts[key] = f"`{key}` decides: holds with {holds}; differs with {differs}"
    return texts


def text(value: Any) -> str:
    """Write the value of a setting, which may be of several parameters."""
    if isinstance(value, dict):
        return ", ".join(f"{name} = {one}" for name, one in value.items())
    return str(value)


def judge(claims: list[dict[str, Any]]) -> str:
    """Give the verdict on a figure by the paper's claims about it.

    Headline claims decide: those of the abstract, the introduction, the caption or
    the conclusion. If there are none, all claims do. Our own claims do not count. If
    there are no others, the verdict is the number of our claims that hold.

    Parameters
    ----------
    claims : list of dict
        Result of `assess`.

    Returns
    -------
    str
        "not built" without a record; "open" if no claim can be tested; "reproduced"
        if all claims that decide hold; "not reproduced" if one differs and no claim
        holds; "in part (varies)" if one varies and none differs; else "in part".
    """
    if not claims:
        return "not built"
    words = [claim["here"] for claim in of_paper(claims)]
    if not words:
        ours = [claim["here"] for claim in claims if "ours" in claim]
        return f"{ours.count('holds')} of {len(ours)} claims of ours hold"
    if not {"holds", "differs", "varies"} & set(words):
        return "open"
    headline = [claim["here"] for claim in of_paper(claims) if "headline" in claim]
    decide = set(headline or words)
    if decide == {"holds"}:
        return "reproduced"
    if "differs" in decide and "holds" not in words:
        return "not reproduced"
    if "varies" in decide and "differs" not in decide:
        return "in part (varies)"
    return "in part"


def of_paper(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """List the claims that a paper makes, without numbers that have no criterion."""
    return [c for c in claims if "ours" not in c and c["here"] != "number"]


def fraction(claims: list[dict[str, Any]]) -> str:
    """Write how many of the papers' claims hold: "4 of 5 hold, 1 open"."""
    counts = Counter(claim["here"] for claim in of_paper(claims))
    parts = [f"{counts['holds']} of {counts.total()} hold"]
    for word, written in _WRITTEN.items():
        if counts[word]:
            parts.append(f"{counts[word]} {written}")
    return ", ".join(parts)


def summary(claims: list[dict[str, Any]]) -> str:
    """Write the verdict on a figure and the fraction of the claims that hold."""
    word = judge(claims)
    if of_paper(claims):
        return f"{word}: {fraction(claims)}"
    return word


def general(claim: dict[str, Any]) -> str:
    """Write in how many readings a claim holds, and what decides; empty for one."""
    words = [claim["here"]]
    for others in claim["readings"].values():
        words += [one["status"] for one in others.values()]
    if len(words) == 1 or "number" in words:
        return ""
    marks = "".join(_MARKS.get(word, "◐") for word in words)
    count = f"{words.count('holds')} of {len(words)}"
    return ". ".join([f"{marks} {count}", *claim["decides"].values()])
