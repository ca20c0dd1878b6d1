"""Claims: what was measured of what a paper says, and whether it holds."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from paperfigs import project
from recrawl.types import PathLike

__all__ = [
    "STANDARD_ERRORS",
    "Claims",
    "Measured",
    "Table",
    "criterion",
    "join",
    "mean",
    "measurement",
    "rms_ratio",
    "sd_ratio",
]

# By how many a criterion is met or missed. Chance alone gives a wrong verdict
# on one claim with a probability below 0.14% (normal errors), and there are
# some 500.
STANDARD_ERRORS = 3.0
_CRITERIA = {  # how each kind of criterion reads
    "at_least": "at least {:g}",
    "at_most": "at most {:g}",
    "within": "within {0[0]:g} to {0[1]:g}",
}
_HELP = (
    "Holds, differs: the criterion is met, or missed, by three standard errors; too "
    "few runs: the runs (pages, crawls) do not decide. ±: one standard error. -: no "
    "number; why a claim is calibrated or not testable stands in claims.yaml. "
    "The verdict at paper scale is the one that counts; with fewer runs or crawls the "
    "one here can be another."
)


class Measured(NamedTuple):
    """A statistic and its standard error.

    Parameters
    ----------
    measured : float
        The statistic; NaN if these runs do not give it.
    stderr : float
        Its standard error, 0 for a statistic without sampling error, infinite
        if there are too few runs to know it.

    Examples
    --------
    >>> from paperfigs import ledger
    >>> ledger.Measured(0.8, 0.05).stderr
    0.05
    """

    measured: float
    stderr: float = 0.0


class Claims:
    """The claims of one figure: those of ``claims.yaml``, as they are measured.

    Parameters
    ----------
    figure : str
        Figure id, such as "peva22/fig2".
    namespace : dict, optional
        The notebook's ``globals()``: the names that its parameters cell has
        are recorded as parameters.
    source : str, default "simulation"
        Which data were measured.
    root : path, optional
        The clone of the project.

    Attributes
    ----------
    figure : str
        The figure id.
    parameters : dict
        The parameters by name, sorted.

    Examples
    --------
    >>> from paperfigs import ledger
    >>> claims = ledger.Claims("peva22/fig2")
    >>> claims.measure("naive-limit", ledger.Measured(1.001, 0.002))
    'holds'
    >>> claims.records()[0]["measured"]
    1.001
    """

    def __init__(
        self,
        figure: str,
        namespace: dict[str, Any] | None = None,
        *,
        source: str = "simulation",
        root: PathLike | None = None,
    ) -> None:
        self._root = Path(root or project.ROOT)
        self.figure, self._source = figure, source
        known = project.notebooks(self._root)
        self._defaults = project.defaults(known[figure]) if figure in known else {}
        self.parameters = {
            name: value
            for name, value in sorted((namespace or {}).items())
            if name in self._defaults and name != "output_dir" and value is not None
        }
        self._protocol = project.protocol(figure, self._root)
        self._found = {name: {} for name in self._protocol}  # by claim, by case
        for name, claim in self._protocol.items():
            if "declared" in claim:
                self._found[name][name] = _unmeasured(name, claim["declared"])

    def measure(
        self,
        name: str,
        value: Measured | float,
        /,
        *,
        source: str | None = None,
        **fields: Any,
    ) -> str:
        """Enter a measurement and return its status; a second one replaces it.

        Parameters
        ----------
        name : str
            The id of a claim in ``claims.yaml``.
        value : Measured or float
            What was measured; a plain number has no sampling error. A number
            that is not finite is recorded as "not measured".
        source : str, optional
            Which data were measured; by default those of the figure.
        **fields
            The case of a family: what its fields in braces are. Numbers are
            written as by ``{:g}``.

        Returns
        -------
        str
            "holds" or "differs" if the criterion is met or missed by three
            standard errors, "too few runs" between, or "not measured".

        Raises
        ------
        ValueError
            There is no such claim; the standard error is negative.

        Examples
        --------
        >>> from paperfigs import ledger
        >>> ledger.Claims("peva22/fig2").measure("naive-limit", 0.5)
        'differs'
        """
        fields = {key: _text(given) for key, given in fields.items()}
        case = name.format(**fields)
        entry = case if case in self._protocol else name
        if not _CRITERIA.keys() & self._protocol.get(entry, {}).keys():
            raise ValueError(
                f"name must be the id of a claim to measure in claims.yaml of "
                f"{self.figure}, got {case!r}; there are {', '.join(self._protocol)}"
            )
        value = value if isinstance(value, Measured) else Measured(value)
        return self._enter(entry, case, value, source or self._source, fields)

    def _enter(self, entry, case, value, source, fields):
        """Keep what the record holds of one claim; returns its status."""
        claim = self._protocol[entry]
        criteria = {key: claim[key] for key in _CRITERIA if key in claim}
        try:
            status = _status(*value, *project.limits(criteria))
        except ValueError as error:
            raise ValueError(f"claim {case!r} of {self.figure}: {error}") from None
        # The status is that of the unrounded numbers.
        measured, stderr = (
            float(f"{number:.{digits}g}") if math.isfinite(number) else None
            for number, digits in zip(value, (6, 3), strict=True)
        )
        self._found[entry][case] = {
            "id": case,
            **({"family": entry, "fields": fields} if fields and entry != case else {}),
            **criteria,
            "measured": measured,
            "stderr": stderr,
            "status": status,
            "source": source,
        }
        return status

    def records(self) -> list[dict[str, Any]]:
        """List what was measured, in the order of ``claims.yaml``.

        Returns
        -------
        list of dict
            Of each claim, or case of a family: id, criterion, measurement,
            standard error, status and source. The texts stay in
            ``claims.yaml``, so that a better wording needs no new figure.

        Examples
        --------
        >>> from paperfigs import ledger
        >>> ledger.Claims("peva22/fig2").records()
        []
        """
        return [case for cases in self._found.values() for case in cases.values()]

    def table(self) -> Table:
        """Set what was measured here beside the verdict at paper scale.

        Returns
        -------
        Table
            One row a claim; the committed record of the figure has the
            verdicts at paper scale.

        Examples
        --------
        >>> from paperfigs import ledger
        >>> claims = ledger.Claims("peva22/fig2")
        >>> "naive-limit" in str(claims.table())
        True
        """
        path = self._root / "figures" / f"{self.figure}.json"
        record = json.loads(path.read_text()) if path.exists() else {"claims": []}
        paper = {claim["id"]: claim["status"] for claim in record["claims"]}
        absent = "not in the paper" if paper else "not built yet"
        rows = []
        for name, claim in self._protocol.items():
            unmeasured = {} if "{" in name else {name: _unmeasured(name)}
            for case, found in (self._found[name] or unmeasured).items():
                joined = join(claim, found)
                shown = measurement(joined) or "-"
                status = joined["status"], paper.get(case, absent)
                about = joined["says"], joined["quantity"], case
                rows.append((*about, criterion(joined), shown, *status))
        return Table(self._scale(), rows)

    def _scale(self):
        """The line that says at which scale this was measured."""
        paper = project.paper_parameters(self._root).get(self.figure, {})
        paper = self._defaults | paper
        others = [
            f"{name} = {value} (paper scale: {paper[name]})"
            for name, value in self.parameters.items()
            if value != paper[name]
        ]
        if not others:
            return "Measured at paper scale."
        return "Measured here with other parameters than at paper scale: " + (
            ", ".join(others) + "."
        )


class Table(NamedTuple):
    """A table of claims, as text and as HTML.

    Parameters
    ----------
    scale : str
        At which scale the claims were measured.
    rows : list of tuple of str
        Of each claim: what it says, the quantity, its id, the criterion, what
        was measured, the status here and at paper scale.

    Examples
    --------
    >>> from paperfigs import ledger
    >>> ledger.Table("Measured at paper scale.", [])
    Measured at paper scale.
    """

    scale: str
    rows: list

    def __repr__(self):
        lines = [(status, *row[2:5]) for *row, status, _ in self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        return "\n".join([self.scale, *table])

    def _repr_html_(self):
        head = "claim", "criterion", "measured here", "verdict here"
        head += ("verdict at paper scale",)
        cells = "".join(f"<th style='text-align: left'>{name}</th>" for name in head)
        rows = [f"<tr>{cells}</tr>"]
        for says, quantity, name, *others in self.rows:
            texts = [*map(html.escape, others)]
            about = f"{html.escape(quantity)} (<code>{html.escape(name)}</code>)"
            texts.insert(0, f"{html.escape(says)}<br><small>{about}</small>")
            cells = (f"<td style='text-align: left'>{text}</td>" for text in texts)
            rows.append(f"<tr>{''.join(cells)}</tr>")
        table = "\n".join(["<table>", *rows, "</table>"])
        scale, legend = html.escape(self.scale), html.escape(_HELP)
        return f"<p>{scale}</p>\n{table}\n<p><small>{legend}</small></p>"


def _text(value):
    """A field of a family as text."""
    return value if isinstance(value, str) else f"{value:g}"


def _unmeasured(name, status="not measured"):
    """The record of a claim that was not measured, with the reason as a status."""
    return {"id": name, "measured": None, "stderr": None, "status": status}


def join(claim: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Join what is claimed with what was measured.

    Parameters
    ----------
    claim : dict
        Of `paperfigs.project.protocol`.
    found : dict
        Of `Claims.records`.

    Returns
    -------
    dict
        Both, the texts with the fields of the case; a reason only where the
        claim differs or is declared.

    Examples
    --------
    >>> from paperfigs import ledger
    >>> claim = {"says": "It loses with p = {p}.", "reason": "By chance."}
    >>> found = {"fields": {"p": "0.1"}, "status": "holds"}
    >>> ledger.join(claim, found)["says"]
    'It loses with p = 0.1.'
    """
    joined = claim | found
    fields = {
        name: f"{int(text):,}" if text.isdecimal() else text
        for name, text in found.get("fields", {}).items()
    }
    for key in ("says", "where", "quantity", "reason"):
        text = joined.get(key) or ""
        joined[key] = text.format(**fields) if fields else text
    if found["status"] not in ("differs", claim.get("declared")):
        joined["reason"] = ""
    return joined


def criterion(claim: dict[str, Any]) -> str:
    """Write the criterion of a claim.

    Parameters
    ----------
    claim : dict
        With ``at_least``, ``at_most`` or ``within``.

    Returns
    -------
    str
        Empty for a claim that is declared.

    Examples
    --------
    >>> from paperfigs import ledger
    >>> ledger.criterion({"within": [0.5, 2.0]})
    'within 0.5 to 2'
    """
    for key, text in _CRITERIA.items():
        if key in claim:
            return text.format(claim[key])
    return ""


def measurement(claim: dict[str, Any]) -> str:
    """Write the measurement of a claim, with its standard error.

    Parameters
    ----------
    claim : dict
        A record of `Claims.records`.

    Returns
    -------
    str
        Empty if nothing was measured. As many decimals as the first digit of
        the standard error, or as it takes for the written numbers to give the
        same status: without sampling error, 1.0004 is not at most 1. A
        standard error below 1e-12 of the value is rounding, and not written.

    Examples
    --------
    >>> from paperfigs import ledger
    >>> claim = {"measured": 1.0004, "stderr": 0.0, "at_most": 1.0}
    >>> ledger.measurement(claim | {"status": "differs"})
    '1.0004'
    """
    measured, stderr = claim["measured"], claim["stderr"]
    if measured is None:
        return ""
    if stderr is None:
        return f"{measured:.3g}"
    if stderr < 1e-12 * abs(measured):  # rounding of runs that agree
        stderr = 0.0
    for more in range(4):
        if stderr:
            # A stderr of 0.96 is written as 1.0, and 0.04 as 0.04.
            decimals = max(0, -math.floor(math.log10(stderr)) + more)
            texts = f"{measured:.{decimals}f}", f"{stderr:.{decimals}f}"
        else:
            texts = f"{measured:.{3 + more}g}", "0"
        written = _status(*map(float, texts), *project.limits(claim))
        if written == claim["status"]:
            break
    return " ± ".join(texts) if stderr else texts[0]


def _status(measured, stderr, low, high):
    """Whether a measurement lies between limits, or too few runs tell."""
    if stderr < 0:
        raise ValueError(f"stderr must not be negative, got {stderr!r}")
    if not math.isfinite(measured) or math.isnan(stderr):
        return "not measured"
    slack = STANDARD_ERRORS * stderr
    if low + slack <= measured <= high - slack:
        return "holds"
    if measured < low - slack or measured > high + slack:
        return "differs"
    return "too few runs"


# ---- statistics of runs


def mean(values: ArrayLike) -> Measured:
    """Compute the mean of one value per run, with its standard error.

    To compare two methods, pass the differences run by run.

    Parameters
    ----------
    values : array_like, shape (n_runs,)
        One run has no standard error, which is then infinite.

    Returns
    -------
    Measured
        For `Claims.measure`.

    Examples
    --------
    >>> from paperfigs import ledger
    >>> found = ledger.mean([1.0, 2.0, 3.0, 4.0])
    >>> float(found.measured), float(found.stderr.round(3))
    (2.5, 0.645)
    """
    values = np.asarray(values, dtype=float)
    if values.size < 2:
        return Measured(values.mean() if values.size else math.nan, math.inf)
    return Measured(values.mean(), values.std(ddof=1) / np.sqrt(values.size))


def rms_ratio(estimates: ArrayLike, reference: ArrayLike, truth: ArrayLike) -> Measured:
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
    Measured
        For `Claims.measure`; NaN if one of them has no error in any run, or an
        infinite one.

    Examples
    --------
    >>> from paperfigs import ledger
    >>> found = ledger.rms_ratio([4.0, 6.0, 7.0], [4.0, 5.0, 6.0], 5.0)
    >>> float(found.measured.round(3)), float(found.stderr.round(3))
    (1.732, 0.433)
    """
    a, b = ((np.asarray(values) - truth) ** 2 for values in (estimates, reference))
    means = a.mean(), b.mean()
    if not (np.isfinite(means).all() and all(means)):
        return Measured(math.nan, math.nan)
    ratio = np.sqrt(means[0] / means[1])
    error = mean(ratio / 2 * (a / means[0] - b / means[1])).stderr
    return Measured(ratio, error)


def sd_ratio(estimates: ArrayLike, reference: ArrayLike) -> Measured:
    """Compute the ratio of two standard deviations over the same runs.

    Parameters
    ----------
    estimates, reference : array_like, shape (n_runs,)
        As in `rms_ratio`.

    Returns
    -------
    Measured
        As in `rms_ratio`.

    Examples
    --------
    >>> from paperfigs import ledger
    >>> found = ledger.sd_ratio([0.0, 2.0, 4.0], [0.0, 1.0, 2.0])
    >>> float(found.measured), float(found.stderr)
    (2.0, 0.0)
    """
    centred = (values - np.mean(values) for values in (estimates, reference))
    return rms_ratio(*centred, 0.0)
