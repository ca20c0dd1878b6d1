"""Claims: what a paper says, what was measured, and whether it holds."""

import json
from pathlib import Path

import numpy as np

DECLARED = ("calibrated", "not testable")
STANDARD_ERRORS = 3.0


class Ledger:
    """The claims of one figure.

    Parameters
    ----------
    figure : str
        Figure id, such as "peva22/fig2".
    namespace : dict, optional
        The notebook's ``globals()`` just after its parameters cell: every scalar in it is recorded as a parameter.
    """

    def __init__(self, figure, namespace=None):
        self.figure = figure
        self.parameters = {
            name: value
            for name, value in sorted((namespace or {}).items())
            if not name.startswith("_")
            and name != "output_dir"
            and isinstance(value, (bool, int, float, str))
        }
        self.claims = []

    def claim(self, name, says, *, where, measured=None, stderr=0.0, at_least=None, at_most=None, within=None,
              source="simulation", declared=None, reason=None):  # fmt: skip
        """Enter a claim and return its status.

        Parameters
        ----------
        name : str
            Unique in the figure.
        says : str
            What the paper says, in our words; a check that the paper does not make begins with "ours: ".
        where : str
            Where in the paper it stands.
        measured, stderr : float
            The statistic and its standard error, 0 for one without sampling error.
        at_least, at_most : float
            The criterion, fixed before the result is known; exactly one of at_least, at_most, within.
        within : (low, high)
            An equivalence margin, for "comparable" and the like.
        source : str
            Which data were measured.
        declared : "calibrated" or "not testable", optional
            Instead of a measurement; needs a reason.
        reason : str, optional
            Why the claim differs; shown only if it does. A committed claim that differs must have one.

        Returns
        -------
        "holds" or "differs" where the criterion is met or missed by 3 standard errors, "too few runs" between, or `declared`.
        """
        if any(c["name"] == name for c in self.claims):
            raise ValueError(f"name must be new in {self.figure}, got {name!r} again")
        if declared is not None:
            if declared not in DECLARED or not reason or measured is not None:
                raise ValueError(
                    f"declared must be one of {DECLARED}, with a reason and nothing measured, "
                    f"got {declared!r} with reason {reason!r} and measured {measured!r}"
                )
            status, criterion, measured, stderr = declared, "", None, None
        else:
            try:
                status, criterion = _judge(measured, stderr, at_least, at_most, within)
            except ValueError as error:
                raise ValueError(f"claim {name!r}: {error}") from None
            measured, stderr = float(f"{measured:.6g}"), float(f"{stderr:.3g}")
        if status not in ("differs", *DECLARED):
            reason = None
        self.claims.append({"name": name, "says": says, "where": where, "measured": measured, "stderr": stderr, "criterion": criterion,
                                "status": status, "source": source, "reason": reason})  # fmt: skip
        return status

    def __str__(self):
        """A table with one line per claim, numbers rounded so that it is the same on every machine."""
        if not self.claims:
            return "no claims"
        rows = [
            (c["status"], c["name"], _number(c), c["criterion"]) for c in self.claims
        ]
        width = [max(len(row[i]) for row in rows) for i in range(4)]
        return "\n".join(
            "  ".join(
                cell.ljust(w) for cell, w in zip(row, width, strict=True)
            ).rstrip()
            for row in rows
        )


def _judge(measured, stderr, at_least, at_most, within):
    given = [c is not None for c in (at_least, at_most, within)]
    if sum(given) != 1:
        raise ValueError(
            f"exactly one of at_least, at_most, within must be given, got {at_least!r}, {at_most!r}, {within!r}"
        )
    if (
        measured is None
        or not np.isfinite(measured)
        or not np.isfinite(stderr)
        or stderr < 0
    ):
        raise ValueError(
            f"measured and stderr must be finite, stderr non-negative, got {measured!r} and {stderr!r}"
        )
    if within is not None:
        low, high = within
        text = f"within {low:g} to {high:g}"
    else:
        low, high = (at_least, np.inf) if at_least is not None else (-np.inf, at_most)
        text = f"at least {low:g}" if at_least is not None else f"at most {high:g}"
    if not low <= high:  # so it is with NaN
        raise ValueError(
            f"the criterion must be a number, or low below high, got {text!r}"
        )
    slack = STANDARD_ERRORS * stderr
    if low + slack <= measured <= high - slack:
        return "holds", text
    if measured < low - slack or measured > high + slack or stderr == 0:
        return "differs", text
    return "too few runs", text


def _number(claim):
    if claim["measured"] is None:
        return ""
    limits = [float(word) for word in claim["criterion"].split() if word[-1].isdigit()]
    # as many digits as it takes not to look like a limit that it is not: an error of nothing can tell 1 from 1.0004
    digits = next(
        n
        for n in range(3, 7)
        if n == 6
        or float(f"{claim['measured']:.{n}g}") not in limits
        or claim["measured"] in limits
    )
    return f"{claim['measured']:.{digits}g}" + (
        f" ± {claim['stderr']:.1g}" if claim["stderr"] else ""
    )


def mean(values):
    """Mean of one value per run, with its standard error: ``dict(measured=, stderr=)`` for `Ledger.claim`.

    To compare two methods, pass the differences run by run.
    """
    values = np.asarray(values, dtype=float)
    if values.size < 2:
        raise ValueError(
            f"values must be those of at least two runs, got {values.size}"
        )
    return {
        "measured": values.mean(),
        "stderr": values.std(ddof=1) / np.sqrt(values.size),
    }


def rms_ratio(estimates, reference, truth):
    """RMSE of some estimates over that of a reference on the same runs, with its standard error (delta method), as in `mean`."""
    a, b = (np.asarray(estimates) - truth) ** 2, (np.asarray(reference) - truth) ** 2
    if not b.any():
        raise ValueError("reference must have an error in some run, got only the truth")
    ratio = np.sqrt(a.mean() / b.mean())
    return {
        "measured": ratio,
        "stderr": (ratio / 2 * (a / a.mean() - b / b.mean())).std(ddof=1)
        / np.sqrt(a.size),
    }


def sd_ratio(estimates, reference):
    """Standard deviation of some estimates over that of a reference on the same runs, as in `rms_ratio`."""
    return rms_ratio(
        estimates - np.mean(estimates), reference - np.mean(reference), 0.0
    )


def read_all(folder):
    """Every figure's record (.json) below `folder`, as a dictionary by figure id, sorted."""
    records = {}
    for path in sorted(Path(folder).glob("*/*.json")):
        try:
            record = json.loads(path.read_text())
            records[record["figure"]] = record
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is no record of a figure: {error!r}") from error
    return dict(sorted(records.items()))


def summary(records):
    """Markdown table: claims by paper and status; checks of this project, which say "ours: ", in a column of their own."""
    statuses = ("holds", "differs", "too few runs", *DECLARED)
    lines = [
        "| paper | figures | " + " | ".join(statuses) + " | ours that hold |",
        "|---" * (len(statuses) + 3) + "|",
    ]
    for paper in sorted({figure.split("/")[0] for figure in records}):
        here = [
            record
            for figure, record in records.items()
            if figure.startswith(paper + "/")
        ]
        ours, theirs = [], []
        for claim in (claim for record in here for claim in record["claims"]):
            (ours if claim["says"].startswith("ours: ") else theirs).append(
                claim["status"]
            )
        counts = [
            *(theirs.count(s) for s in statuses),
            f"{ours.count('holds')} of {len(ours)}",
        ]
        lines.append(
            f"| {paper} | {len(here)} | " + " | ".join(map(str, counts)) + " |"
        )
    return "\n".join(lines) + "\n"


def claims_page(records):
    """The text of CLAIMS.md: the summary, then every claim of every figure."""
    lines = ["# What the papers claim, and what we measured", "", summary(records)]
    lines += [
        "Generated from the records beside the figures. A claim holds or differs when its criterion, fixed beforehand, is met or missed",
        f'by {STANDARD_ERRORS:g} standard errors. Entries that begin with "ours" are checks of this project, not of the papers.',
    ]
    for figure, record in records.items():
        lines += [
            "",
            f"## {figure}",
            "",
            "| claim | where | measured | criterion | status | data |",
            "|---|---|---|---|---|---|",
        ]
        for c in record["claims"]:
            status = f"**{c['status']}**" + (f": {c['reason']}" if c["reason"] else "")
            row = (
                f"{c['says']} (`{c['name']}`)",
                c["where"],
                _number(c),
                c["criterion"],
                status,
                c["source"],
            )
            lines.append(
                "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
            )
    return "\n".join(lines) + "\n"
