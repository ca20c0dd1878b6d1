"""Claims: what a paper says, what was measured, and whether it holds."""

import json
from pathlib import Path

import numpy as np

__all__ = [
    "DECLARED",
    "STANDARD_ERRORS",
    "Ledger",
    "claims_page",
    "mean",
    "measurement",
    "read_all",
    "rms_ratio",
    "sd_ratio",
    "summary",
]

DECLARED = ("calibrated", "not testable")  # statuses that are not measured
# By how many a criterion is met or missed. Chance alone gives a wrong verdict
# on one claim with a probability below 0.14% (normal errors), and there are
# some 500.
STANDARD_ERRORS = 3.0
_MEASURED = ("holds", "differs", "too few runs")
_OURS = "ours: "  # begins what this project says, and not a paper


class Ledger:
    """The claims of one figure.

    Parameters
    ----------
    figure : str
        Figure id, such as "peva22/fig2".
    namespace : dict, optional
        The notebook's ``globals()`` just after its parameters cell: every
        scalar in it is recorded as a parameter.

    Attributes
    ----------
    figure : str
        The figure id.
    parameters : dict
        The parameters by name, sorted.
    claims : list of dict
        The claims in the order in which they were entered.

    Examples
    --------
    >>> from paperlib.repro.ledger import Ledger
    >>> claims = Ledger("a/fig1", {"n_runs": 100})
    >>> claims.claim(
    ...     "faster", "SA is faster than LLN", where="section 4",
    ...     measured=0.8, stderr=0.05, at_most=1.0,
    ... )
    'holds'
    >>> print(claims)
    holds  faster  0.8 ± 0.05  at most 1
    """

    def __init__(self, figure, namespace=None):
        self.figure = figure
        self.parameters = {
            name: value
            for name, value in sorted((namespace or {}).items())
            if not name.startswith("_")
            and name != "output_dir"
            and isinstance(value, bool | int | float | str)
        }
        self.claims = []

    def claim(
        self,
        name,
        says,
        *,
        where,
        measured=None,
        stderr=0.0,
        at_least=None,
        at_most=None,
        within=None,
        source="simulation",
        declared=None,
        reason=None,
    ):
        """Enter a claim and return its status.

        Parameters
        ----------
        name : str
            Unique in the figure.
        says : str
            What the paper says, in our words; a check that the paper does not
            make begins with "ours: ".
        where : str
            Where in the paper it stands.
        measured, stderr : float
            The statistic and its standard error, 0 for a statistic without
            sampling error.
        at_least, at_most : float, optional
            The criterion, fixed before the result is known; exactly one of
            `at_least`, `at_most` and `within` is given.
        within : (float, float), optional
            An equivalence margin, for "comparable" and the like.
        source : str, default "simulation"
            Which data were measured.
        declared : {"calibrated", "not testable"}, optional
            Instead of a measurement; needs a reason.
        reason : str, optional
            Why the claim differs; kept only if it does. A committed claim that
            differs must have one.

        Returns
        -------
        str
            "holds" or "differs" if the criterion is met or missed by three
            standard errors, "too few runs" between, or `declared`.

        Raises
        ------
        ValueError
            A name for the second time; a criterion that nothing can meet, or
            not exactly one; a measurement that is not finite; a declaration
            without a reason or with a measurement.
        """
        if any(claim["name"] == name for claim in self.claims):
            raise ValueError(f"name must be new in {self.figure}, got {name!r} again")
        if declared is not None:
            if declared not in DECLARED or not reason or measured is not None:
                raise ValueError(
                    f"declared must be one of {DECLARED}, with a reason and nothing "
                    f"measured, got {declared!r} with reason {reason!r} and measured "
                    f"{measured!r}"
                )
            status, criterion, stderr = declared, "", None
        else:
            try:
                low, high, criterion = _limits(at_least, at_most, within)
                status = _status(measured, stderr, low, high)
            except ValueError as error:
                raise ValueError(f"claim {name!r}: {error}") from None
            # The status is that of the unrounded numbers.
            measured, stderr = float(f"{measured:.6g}"), float(f"{stderr:.3g}")
        entry = {
            "name": name,
            "says": says,
            "where": where,
            "measured": measured,
            "stderr": stderr,
            "criterion": criterion,
            "status": status,
            "source": source,
            "reason": reason if status in ("differs", *DECLARED) else None,
        }
        self.claims.append(entry)
        return status

    def __str__(self):
        """A table with one line per claim, the same on every machine."""
        if not self.claims:
            return "no claims"
        rows = [
            (c["status"], c["name"], measurement(c), c["criterion"])
            for c in self.claims
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows
        )


def _limits(at_least, at_most, within):
    """The lowest and highest value that meet a criterion, and its text."""
    if sum(given is not None for given in (at_least, at_most, within)) != 1:
        raise ValueError(
            "exactly one of at_least, at_most, within must be given, "
            f"got {at_least!r}, {at_most!r}, {within!r}"
        )
    if at_least is not None:
        low, high, text = at_least, np.inf, f"at least {at_least:g}"
    elif at_most is not None:
        low, high, text = -np.inf, at_most, f"at most {at_most:g}"
    else:
        (low, high), text = within, "within {:g} to {:g}".format(*within)
    if not low <= high:  # also if one of them is NaN
        raise ValueError(
            f"the criterion must be a number, or low below high, got {text!r}"
        )
    return low, high, text


def _status(measured, stderr, low, high):
    """Whether a measurement lies between limits, or too few runs tell."""
    finite = measured is not None and np.isfinite(measured) and np.isfinite(stderr)
    if not finite or stderr < 0:
        raise ValueError(
            "measured and stderr must be finite, stderr non-negative, "
            f"got {measured!r} and {stderr!r}"
        )
    slack = STANDARD_ERRORS * stderr
    if low + slack <= measured <= high - slack:
        return "holds"
    if measured < low - slack or measured > high + slack or stderr == 0:
        return "differs"
    return "too few runs"


# ---- statistics of runs


def mean(values):
    """Compute the mean of one value per run, with its standard error.

    To compare two methods, pass the differences run by run.

    Parameters
    ----------
    values : array_like, shape (n_runs,)
        Of at least two runs.

    Returns
    -------
    dict of float
        ``measured`` and ``stderr``, for `Ledger.claim`.

    Raises
    ------
    ValueError
        Fewer than two runs.

    Examples
    --------
    >>> from paperlib.repro import ledger
    >>> found = ledger.mean([1.0, 2.0, 3.0, 4.0])
    >>> float(found["measured"]), float(found["stderr"].round(3))
    (2.5, 0.645)
    """
    values = np.asarray(values, dtype=float)
    n = values.size
    if n < 2:
        raise ValueError(f"values must be those of at least two runs, got {n}")
    return {"measured": values.mean(), "stderr": values.std(ddof=1) / np.sqrt(n)}


def rms_ratio(estimates, reference, truth):
    r"""Compute the ratio of two root mean squared errors over the same runs.

    With the squared errors :math:`a` and :math:`b` of the two, the ratio is
    :math:`r = \sqrt{\bar a / \bar b}`. By the delta method its standard error
    is that of the mean of

    .. math:: \frac{r}{2} \left(\frac{a}{\bar a} - \frac{b}{\bar b}\right).

    Parameters
    ----------
    estimates : array_like, shape (n_runs,)
        The estimates in the numerator.
    reference : array_like, shape (n_runs,)
        Those in the denominator.
    truth : float or array_like, shape (n_runs,)
        What both estimate.

    Returns
    -------
    dict of float
        ``measured`` and ``stderr``, for `Ledger.claim`.

    Raises
    ------
    ValueError
        The reference has no error in any run.

    Examples
    --------
    >>> from paperlib.repro import ledger
    >>> found = ledger.rms_ratio([4.0, 6.0, 7.0], [4.0, 5.0, 6.0], 5.0)
    >>> float(found["measured"].round(3)), float(found["stderr"].round(3))
    (1.732, 0.433)
    """
    a, b = ((np.asarray(values) - truth) ** 2 for values in (estimates, reference))
    if not b.any():
        raise ValueError("reference must have an error in some run, got only the truth")
    ratio = np.sqrt(a.mean() / b.mean())
    influence = ratio / 2 * (a / a.mean() - b / b.mean())
    return {"measured": ratio, "stderr": influence.std(ddof=1) / np.sqrt(a.size)}


def sd_ratio(estimates, reference):
    """Compute the ratio of two standard deviations over the same runs.

    Parameters
    ----------
    estimates, reference : array_like, shape (n_runs,)
        As in `rms_ratio`.

    Returns
    -------
    dict of float
        ``measured`` and ``stderr``, as in `rms_ratio`.

    Examples
    --------
    >>> from paperlib.repro import ledger
    >>> found = ledger.sd_ratio([0.0, 2.0, 4.0], [0.0, 1.0, 2.0])
    >>> float(found["measured"]), float(found["stderr"])
    (2.0, 0.0)
    """
    centred = (values - np.mean(values) for values in (estimates, reference))
    return rms_ratio(*centred, 0.0)


# ---- pages of claims


def measurement(claim):
    """Write the measurement of a claim, with its standard error.

    Parameters
    ----------
    claim : dict
        As in `Ledger.claims`.

    Returns
    -------
    str
        Empty if nothing was measured.

    Examples
    --------
    >>> from paperlib.repro import ledger
    >>> claim = {"measured": 1.0004, "stderr": 0.0, "criterion": "at most 1"}
    >>> ledger.measurement(claim)
    '1.0004'
    """
    measured, stderr = claim["measured"], claim["stderr"]
    if measured is None:
        return ""
    words = claim["criterion"].split()
    limits = {float(word) for word in words if word[-1].isdigit()} - {measured}
    # From three digits on as many as it takes not to look like a limit:
    # without sampling error, 1.0004 is not at most 1.
    texts = [f"{measured:.{digits}g}" for digits in range(3, 7)]
    text = next((text for text in texts if float(text) not in limits), texts[-1])
    return text + (f" ± {stderr:.1g}" if stderr else "")


def read_all(folder):
    """Read the records of all figures below a folder.

    Parameters
    ----------
    folder : path
        With files ``<paper>/<figure>.json``, as `paperlib.repro.plotting.save`
        writes them.

    Returns
    -------
    dict of dict
        By figure id, sorted.

    Raises
    ------
    ValueError
        A file is no record of a figure.

    Examples
    --------
    >>> from paperlib.repro import build, ledger
    >>> records = ledger.read_all(build.ROOT / "figures")
    >>> records["peva22/fig2"]["figure"]
    'peva22/fig2'
    """
    records = {}
    for path in Path(folder).glob("*/*.json"):
        try:
            record = json.loads(path.read_text())
            records[record["figure"]] = record
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is no record of a figure: {error!r}") from error
    return dict(sorted(records.items()))


def summary(records):
    """Count the claims by paper and status.

    Parameters
    ----------
    records : dict of dict
        From `read_all`.

    Returns
    -------
    str
        A table in Markdown; checks of this project, which begin with "ours: ",
        have a column of their own.

    Examples
    --------
    >>> from paperlib.repro import ledger
    >>> claims = [{"says": "it converges", "status": "holds"}]
    >>> print(ledger.summary({"a/fig1": {"claims": claims}}).splitlines()[2])
    | a | 1 | 1 | 0 | 0 | 0 | 0 | 0 of 0 |
    """
    statuses = (*_MEASURED, *DECLARED)
    rows = []
    for paper in sorted({figure.split("/")[0] for figure in records}):
        here = [records[f] for f in records if f.startswith(f"{paper}/")]
        ours, theirs = [], []
        for claim in (claim for record in here for claim in record["claims"]):
            kind = ours if claim["says"].startswith(_OURS) else theirs
            kind.append(claim["status"])
        counts = map(theirs.count, statuses)
        hold = f"{ours.count('holds')} of {len(ours)}"
        rows.append((paper, len(here), *counts, hold))
    return _table(("paper", "figures", *statuses, "ours that hold"), rows)


def claims_page(records):
    """Write out every claim of every figure.

    Parameters
    ----------
    records : dict of dict
        From `read_all`.

    Returns
    -------
    str
        The text of ``figures/CLAIMS.md``, in Markdown, with the `summary`.

    Examples
    --------
    >>> from paperlib.repro import ledger
    >>> print(ledger.claims_page({}).splitlines()[0])
    # What the papers claim, and what we measured
    """
    parts = [
        "# What the papers claim, and what we measured\n",
        summary(records),
        "Generated from the records beside the figures. A claim holds or differs when "
        "its criterion, fixed beforehand, is met or missed\n"
        f"by {STANDARD_ERRORS:g} standard errors. "
        'Entries that begin with "ours" are checks of this project, not of the papers.'
        "\n",
    ]
    head = ("claim", "where", "measured", "criterion", "status", "data")
    for figure, record in records.items():
        rows = []
        for c in record["claims"]:
            status = f"**{c['status']}**" + (f": {c['reason']}" if c["reason"] else "")
            claim = f"{c['says']} (`{c['name']}`)"
            row = claim, c["where"], measurement(c), c["criterion"], status, c["source"]
            rows.append([cell.replace("|", "\\|") for cell in row])
        parts += [f"## {figure}\n", _table(head, rows)]
    return "\n".join(parts)


def _table(head, rows):
    """A table in Markdown."""
    first, *others = (f"| {' | '.join(map(str, row))} |" for row in (head, *rows))
    return "\n".join([first, "|---" * len(head) + "|", *others]) + "\n"
