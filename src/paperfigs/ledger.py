"""Claims of a paper about a figure: their measurements, and tables of them."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperfigs import project, verdicts

_HEAD = "claim", "criterion", "this run", "here", "readings"
_HELP = (
    "*This run*: holds or differs if the criterion is met, or missed, by three "
    "standard errors, otherwise on the border; ±: one standard error. *Here*: the same "
    "at the paper's scale, over five seeds; varies if the seed decides. *Readings*: "
    "the status with our choices (first), and with others where the paper leaves one "
    "open (● holds, ○ differs, ◐ on the border)."
)


class Measured(NamedTuple):
    """A statistic and its standard error.

    Parameters
    ----------
    measured : float
        The statistic; NaN if these runs do not give it.
    stderr : float
        Standard error: 0 without sampling error, infinite if unknown.
    median : float, optional
        The same by medians over the runs, where a mean has heavy tails.
    """

    measured: float
    stderr: float = 0.0
    median: float | None = None


class Claims:
    """The claims about one figure, and their measurements.

    Parameters
    ----------
    figure : str
        Figure id, such as "peva22/fig2".
    namespace : dict, optional
        The notebook's ``globals()``, from which the values of its parameters
        are recorded.
    source : str, default "simulation"
        Kind of the measured data.

    Raises
    ------
    BuildError
        No checkout, or no ``claims.yaml`` of the paper.
    KeyError
        No notebook of this figure in the checkout.
    """

    def __init__(
        self,
        figure: str,
        namespace: dict[str, Any] | None = None,
        *,
        source: str = "simulation",
    ) -> None:
        self.figure = figure
        self._source = source
        self._defaults = project.defaults(project.notebooks()[figure])
        values = self._defaults | (namespace or {})
        self.parameters = {
            name: values[name]
            for name in sorted(self._defaults)
            if values[name] is not None
        }
        self._claims = project.claims(figure)
        none = {"measured": None, "stderr": None}
        self._records = {
            name: {"id": name, **none, "status": claim.get("declared", "not measured")}
            for name, claim in self._claims.items()
        }

    def measure(
        self,
        name: str,
        value: Measured | float,
        /,
        *,
        source: str | None = None,
    ) -> str:
        """Enter a measurement and return its status; a second one replaces it.

        Parameters
        ----------
        name : str
            The id of a claim in ``claims.yaml``.
        value : Measured or float
            The measurement; a plain number has no sampling error.
        source : str, optional
            Kind of the measured data; by default that of the figure.

        Returns
        -------
        str
            "holds" or "differs" if the criterion is met or missed by three
            standard errors, otherwise "on the border"; "not measured" if the
            value is not finite.

        Raises
        ------
        ValueError
            There is no such claim.
        """
        if name not in self._claims:
            raise ValueError(
                f"name must be the id of a claim in claims.yaml of {self.figure}, got "
                f"{name!r}; there are: {', '.join(self._claims)}"
            )
        if not isinstance(value, Measured):
            value = Measured(value)
        record = {
            "id": name,
            "measured": _rounded(value.measured, 6),
            "stderr": _rounded(value.stderr, 3),
            # The status is that of the unrounded numbers.
            "status": verdicts.status(*value[:2], self._claims[name]),
            "source": source or self._source,
        }
        if value.median is not None:
            record["median"] = _rounded(value.median, 6)
        self._records[name] = record
        return record["status"]

    def records(self) -> list[dict[str, Any]]:
        """List the measurements in the order of ``claims.yaml``.

        Returns
        -------
        list of dict
            For every claim its id, measurement, standard error, status and
            source. The texts and criteria stay in ``claims.yaml``.
        """
        return list(self._records.values())

    def table(self) -> Any:
        """Set the measurements made here beside the statuses over all runs.

        Returns
        -------
        IPython.display.Markdown
            One row per claim. The committed records of the figure have the
            statuses over seeds and readings.
        """
        from IPython.display import Markdown

        assessed = {claim["id"]: claim for claim in verdicts.assess(self.figure)}
        rows = []
        for name, record in self._records.items():
            claim = self._claims[name]
            here = readings = "not built yet"
            if name in assessed:
                here = assessed[name]["here"]
                readings = verdicts.general(assessed[name])
            run = f"{measurement(record)}: {record['status']}"
            if {here, record["status"]} == {"holds", "differs"}:
                run += " (too few runs or crawls here)"
            rows.append((says(claim), criterion(claim), run, here, readings))
        return Markdown("\n".join([self._scale(), "", table(_HEAD, rows), _HELP]))

    def _scale(self):
        """A line with the parameters that are not those of the paper."""
        paper = self._defaults | project.settings(self.figure).get("paper", {})
        others = [
            f"{name} = {value} (paper scale: {paper[name]})"
            for name, value in self.parameters.items()
            if value != paper[name]
        ]
        if not others:
            return "Measured at paper scale."
        return f"Measured here not at paper scale, but with {', '.join(others)}."


def verdict(figure: str) -> Any:
    """Show whether a figure is reproduced at paper scale, and on which data.

    Parameters
    ----------
    figure : str
        Figure id.

    Returns
    -------
    IPython.display.Markdown
        The verdict, the fraction of claims that hold, and the sentence of
        ``claims.yaml``.
    """
    from IPython.display import Markdown

    about = project.about(figure)
    text = verdicts.summary(verdicts.assess(figure)).capitalize()
    if "data" in about:
        text = f"{text} (data: {about['data']})"
    return Markdown(f"**{text}**. {about.get('sentence', '')}")


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table in Markdown.

    Parameters
    ----------
    head : sequence of str
        Names of the columns.
    rows : iterable of sequences
        The cells.

    Returns
    -------
    str
        One line per row.
    """
    lines = [f"| {' | '.join(map(_cell, row))} |\n" for row in (head, *rows)]
    return lines[0] + "|---" * len(head) + "|\n" + "".join(lines[1:])


def _cell(value):
    """A value in one line, without a character that would end the cell."""
    return " ".join(str(value).split()).replace("|", "&#124;")


def says(claim: dict[str, Any]) -> str:
    """Write a claim: its statement, the measured quantity, its id."""
    return f"{claim['says']} ({claim['quantity']}; `{claim['id']}`)"


def criterion(claim: dict[str, Any]) -> str:
    """Write the criterion of a claim; empty without one."""
    texts = project.CRITERIA.items()
    return "".join(text.format(claim[key]) for key, text in texts if key in claim)


def measurement(claim: dict[str, Any]) -> str:
    """Write the measurement of a claim, with its standard error.

    Parameters
    ----------
    claim : dict
        One of `Claims.records` or of `paperfigs.verdicts.assess`.

    Returns
    -------
    str
        A dash if nothing was measured. The last decimal is that of the first
        digit of the standard error. An infinite standard error is left out, and
        so is one below 1e-12 of the value, the rounding of runs that agree.
    """
    measured, stderr = claim["measured"], claim["stderr"]
    if measured is None:
        return "-"
    if not stderr or stderr < 1e-12 * abs(measured):
        return f"{measured:.5g}"
    # A stderr of 0.96 is written as 1.0, and 0.04 as 0.04.
    decimals = max(0, -math.floor(math.log10(stderr)))
    return f"{measured:.{decimals}f} ± {stderr:.{decimals}f}"


def _rounded(number, digits):
    """A number with some significant digits, or None if it is not finite."""
    if math.isfinite(number):
        return float(f"{number:.{digits}g}")
    return None


def mean(values: ArrayLike) -> Measured:
    """Mean of one value per run, with its standard error, and the median.

    To compare two methods, pass the differences run by run.

    Parameters
    ----------
    values : array_like, shape (n_runs,)
        The standard error of a single run is infinite.

    Returns
    -------
    Measured
        For `Claims.measure`.
    """
    values = np.asarray(values, dtype=float)
    if values.size == 0:
        return Measured(math.nan, math.inf)
    stderr = math.inf
    if values.size > 1:
        stderr = values.std(ddof=1) / np.sqrt(values.size)
    return Measured(values.mean(), stderr, np.median(values))


def rms_ratio(estimates: ArrayLike, reference: ArrayLike, truth: ArrayLike) -> Measured:
    r"""Ratio of two root mean squared errors over the same runs.

    With the squared errors :math:`a` and :math:`b` of both estimates, the ratio is
    :math:`r = \sqrt{\bar a / \bar b}`. By the delta method its standard error
    is that of the mean of
    :math:`\frac{r}{2} \left(\frac{a}{\bar a} - \frac{b}{\bar b}\right)`.

    Parameters
    ----------
    estimates, reference : array_like, shape (n_runs,)
        Estimates in the numerator and in the denominator.
    truth : float or array_like, shape (n_runs,)
        The true value of both estimates.

    Returns
    -------
    Measured
        The standard error is NaN, so that no claim is judged, if one of the mean
        squared errors is 0 or infinite.
    """
    a = (np.asarray(estimates) - truth) ** 2
    b = (np.asarray(reference) - truth) ** 2
    with np.errstate(all="ignore"):
        square = mean(ratio_per_run(a, b))
        ratio = np.sqrt(square.measured)
        return Measured(ratio, square.stderr / (2 * ratio))


def sd_ratio(estimates: ArrayLike, reference: ArrayLike) -> Measured:
    """Ratio of two standard deviations over the same runs, as in `rms_ratio`."""
    deviation = estimates - np.mean(estimates)
    return rms_ratio(deviation, reference - np.mean(reference), 0.0)


def ratio_per_run(part: ArrayLike, whole: ArrayLike) -> NDArray:
    r"""Ratio of two means over the same runs, as one value per run.

    With the means :math:`\bar a` and :math:`\bar b` and their ratio
    :math:`r = \bar a / \bar b`, the values are

    .. math:: r + \frac{a - r\,b}{\bar b} .

    Their mean is :math:`r`, and their standard error is that of :math:`r` by the
    delta method. Ratios of the same runs can be subtracted run by run; `mean` gives
    the measurement.

    Parameters
    ----------
    part, whole : array_like, shape (n_runs,)
        Values in the numerator and in the denominator.

    Returns
    -------
    ndarray, shape (n_runs,)
        One value per run.
    """
    part = np.asarray(part)
    whole = np.asarray(whole)
    ratio = part.mean() / whole.mean()
    return ratio + (part - ratio * whole) / whole.mean()
