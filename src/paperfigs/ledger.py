"""Claims of a paper: the measurements, the statuses, the verdict of a figure."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperfigs import project

# Number of standard errors by which a criterion must be met or missed. With normal
# errors, the status of a claim is wrong by chance with a probability below 0.14%.
STANDARD_ERRORS = 3.0
_CRITERIA = {
    "at_least": "at least {:g}",
    "at_most": "at most {:g}",
    "within": "within {0[0]:g} to {0[1]:g}",
}
_TESTED = "holds", "differs", "on the border"
_HEAD = "claim", "criterion", "measured here", "status here", "at paper scale"
_HELP = (
    "Holds, differs: the criterion is met, or missed, by three standard errors; on the "
    "border: the value is less than that away from the criterion. ±: one standard "
    "error. The status at paper scale is the one that counts."
)


class Measured(NamedTuple):
    """A statistic and its standard error.

    Parameters
    ----------
    measured : float
        The statistic; NaN if these runs do not give it.
    stderr : float
        Standard error: 0 without sampling error, infinite if unknown.
    """

    measured: float
    stderr: float = 0.0


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
        No ``claims.yaml`` beside the notebook or in a checkout.
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
        paper, name = figure.split("/")
        self._folder = project.paper_folder(paper)
        notebooks = [*self._folder.glob(f"{name}[._]*ipynb")]
        self._defaults = {}
        if notebooks:
            self._defaults = project.defaults(notebooks[0])
        values = self._defaults | (namespace or {})
        self.parameters = {
            name: values[name]
            for name in sorted(self._defaults)
            if values[name] is not None
        }
        self._claims = project.claims(figure)
        self._records = {}
        for name, claim in self._claims.items():
            self._records[name] = {
                "id": name,
                "measured": None,
                "stderr": None,
                "status": claim.get("declared", "not measured"),
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
        claim = self._claims.get(name, {})
        if not _CRITERIA.keys() & claim.keys():
            raise ValueError(
                f"name must be the id of a claim to measure in claims.yaml of "
                f"{self.figure}, got {name!r}; there are: {', '.join(self._claims)}"
            )
        if not isinstance(value, Measured):
            value = Measured(value)
        # The status is that of the unrounded numbers.
        status = _status(value.measured, value.stderr, claim)
        self._records[name] = {
            "id": name,
            "measured": _rounded(value.measured, 6),
            "stderr": _rounded(value.stderr, 3),
            "status": status,
            "source": source or self._source,
        }
        return status

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
        """Set the measurements made here beside the statuses at paper scale.

        Returns
        -------
        IPython.display.Markdown
            One row per claim; the committed record of the figure has the
            statuses at paper scale.
        """
        from IPython.display import Markdown

        paper = {claim["id"]: claim["status"] for claim in recorded(self.figure)}
        rows = []
        for record in self.records():
            claim = join(self._claims, record)
            rows.append((*row(claim), paper.get(claim["id"], "not built yet")))
        return Markdown("\n".join([self._scale(), "", table(_HEAD, rows), _HELP]))

    def _scale(self):
        """A line with the parameters that are not those of the paper."""
        paper = project.paper_parameters(self._folder.parent).get(self.figure, {})
        others = []
        for name, value in self.parameters.items():
            of_paper = paper.get(name, self._defaults[name])
            if value != of_paper:
                others.append(f"{name} = {value} (paper scale: {of_paper})")
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
        The verdict of `judge` and the sentence of ``claims.yaml``.
    """
    from IPython.display import Markdown

    about = project.about(figure)
    data = ""
    if "data" in about:
        data = f" (data: {about['data']})"
    word = judge(recorded(figure)).capitalize()
    return Markdown(f"**{word}**{data}. {about.get('sentence', '')}")


def recorded(figure: str) -> list[dict[str, Any]]:
    """List the claims about a figure with their measurements at paper scale.

    Parameters
    ----------
    figure : str
        Figure id.

    Returns
    -------
    list of dict
        Results of `join`; empty if the figure has not been built.
    """
    folder = project.paper_folder(figure.split("/")[0])
    path = folder.parents[1] / "figures" / f"{figure}.json"
    if not path.exists():
        return []
    claims = project.claims(figure)
    records = project.entry(path, "claims")
    # Claims that have been removed since the build are left out.
    return [join(claims, record) for record in records if record["id"] in claims]


def judge(claims: list[dict[str, Any]]) -> str:
    """Give the verdict on a figure by the statuses of the paper's claims about it.

    Our own claims do not count. If there are no others, the verdict is the number
    of our claims that hold.

    Parameters
    ----------
    claims : list of dict
        Result of `recorded`.

    Returns
    -------
    str
        "reproduced" if all testable claims hold, "in part" if some hold, "not
        reproduced" if none holds, "not testable" if no claim is testable, "not
        built" without a record.
    """
    if not claims:
        return "not built"
    of_paper = [c for c in claims if "ours" not in c]
    if not of_paper:
        n_hold = [c["status"] for c in claims].count("holds")
        return f"{n_hold} of {len(claims)} claims of ours hold"
    tested = [c["status"] for c in of_paper if c["status"] in _TESTED]
    n_hold = tested.count("holds")
    if not tested:
        return "not testable"
    if n_hold == len(tested):
        return "reproduced"
    if n_hold == 0:
        return "not reproduced"
    return "in part"


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


def join(claims: dict[str, dict[str, Any]], record: dict[str, Any]) -> dict[str, Any]:
    """Join a claim with its measurement.

    Parameters
    ----------
    claims : dict
        Result of `paperfigs.project.claims`.
    record : dict
        One of `Claims.records`.

    Returns
    -------
    dict
        The entries of both; the reason is empty unless the claim differs or its
        status is declared.
    """
    claim = claims[record["id"]]
    joined = {"where": "", "reason": ""} | claim | record
    if record["status"] not in ("differs", claim.get("declared")):
        joined["reason"] = ""
    return joined


def row(claim: dict[str, Any]) -> tuple[str, str, str, str]:
    """Write a result of `join` as a row: text, criterion, measurement, status."""
    about = f"{claim['says']} ({claim['quantity']}; `{claim['id']}`)"
    texts = (text.format(claim[k]) for k, text in _CRITERIA.items() if k in claim)
    return about, next(texts, ""), measurement(claim), claim["status"]


def measurement(claim: dict[str, Any]) -> str:
    """Write the measurement of a claim, with its standard error.

    Parameters
    ----------
    claim : dict
        One of `Claims.records`.

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


def _status(measured, stderr, claim):
    """Whether a measurement meets a claim's criterion, or lies on its border."""
    low, high = project.limits(claim)
    slack = STANDARD_ERRORS * stderr
    if not math.isfinite(measured) or math.isnan(stderr):
        return "not measured"
    if low + slack <= measured <= high - slack:
        return "holds"
    if measured < low - slack or measured > high + slack:
        return "differs"
    return "on the border"


def mean(values: ArrayLike) -> Measured:
    """Mean of one value per run, with its standard error.

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
    if values.size == 1:
        return Measured(values.mean(), math.inf)
    return Measured(values.mean(), values.std(ddof=1) / np.sqrt(values.size))


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
        NaN if one of the mean squared errors is 0 or infinite.
    """
    a = (np.asarray(estimates) - truth) ** 2
    b = (np.asarray(reference) - truth) ** 2
    means = a.mean(), b.mean()
    if not (np.isfinite(means).all() and all(means)):
        return Measured(math.nan, math.nan)
    ratio = np.sqrt(means[0] / means[1])
    error = mean(ratio / 2 * (a / means[0] - b / means[1])).stderr
    return Measured(ratio, error)


def sd_ratio(estimates: ArrayLike, reference: ArrayLike) -> Measured:
    """Ratio of two standard deviations over the same runs, as in `rms_ratio`."""
    estimates = np.asarray(estimates)
    reference = np.asarray(reference)
    return rms_ratio(estimates - estimates.mean(), reference - reference.mean(), 0.0)


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
