"""Claims: what was measured of what a paper says, and whether it holds."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from paperfigs import project

# By how many a criterion must be met or missed. With normal errors, chance
# gives a wrong verdict on one claim with a probability below 0.14%.
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
        Standard error: 0 without sampling error, infinite if not known.
    """

    measured: float
    stderr: float = 0.0


class Claims:
    """The claims of one figure, as they are measured.

    Parameters
    ----------
    figure : str
        Figure id, such as "peva22/fig2".
    namespace : dict, optional
        The notebook's ``globals()``: the names that its parameters cell has
        are recorded as parameters.
    source : str, default "simulation"
        Which data were measured.

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
        self.figure, self._source = figure, source
        paper, name = figure.split("/")
        self._folder = project.paper_folder(paper)
        notebook = next(self._folder.glob(f"{name}[._]*ipynb"), None)
        self._usual = project.defaults(notebook) if notebook else {}
        given = self._usual | (namespace or {})
        given = {name: given[name] for name in sorted(self._usual)}
        self.parameters = {k: v for k, v in given.items() if v is not None}
        self._claims = project.claims(figure)
        none = {"measured": None, "stderr": None}
        self._found = {
            name: none | {"id": name, "status": claim.get("declared", "not measured")}
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
            What was measured; a plain number has no sampling error.
        source : str, optional
            Which data were measured; by default those of the figure.

        Returns
        -------
        str
            "holds" or "differs" if the criterion is met or missed by three
            standard errors, "on the border" between, "not measured" if the
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
        value = value if isinstance(value, Measured) else Measured(value)
        measured, stderr = (
            float(f"{number:.{digits}g}") if math.isfinite(number) else None
            for number, digits in zip(value, (6, 3), strict=True)
        )
        # The status is that of the unrounded numbers.
        status = _status(*value, claim)
        self._found[name] = {
            "id": name,
            "measured": measured,
            "stderr": stderr,
            "status": status,
            "source": source or self._source,
        }
        return status

    def records(self) -> list[dict[str, Any]]:
        """List what was measured, in the order of ``claims.yaml``.

        Returns
        -------
        list of dict
            Of each claim: id, measurement, standard error, status and source. The
            texts and criteria stay in ``claims.yaml``.
        """
        return list(self._found.values())

    def table(self) -> Any:
        """Set what was measured here beside the status at paper scale.

        Returns
        -------
        IPython.display.Markdown
            One row a claim; the committed record of the figure has the
            statuses at paper scale.
        """
        from IPython.display import Markdown

        paper = {claim["id"]: claim["status"] for claim in recorded(self.figure)}
        rows = []
        for found in self.records():
            claim = join(self._claims, found)
            rows.append((*row(claim), paper.get(claim["id"], "not built yet")))
        return Markdown("\n".join([self._scale(), "", table(_HEAD, rows), _HELP]))

    def _scale(self):
        """The line that says at which scale this was measured."""
        paper = project.paper_parameters(self._folder.parent).get(self.figure, {})
        others = [
            f"{name} = {value} (paper scale: {usual})"
            for name, value in self.parameters.items()
            if value != (usual := paper.get(name, self._usual[name]))
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
        The verdict of `judge` and the sentence of ``claims.yaml``.
    """
    from IPython.display import Markdown

    about = project.about(figure)
    found = judge(recorded(figure))
    data = f" (data: {about['data']})" if "data" in about else ""
    return Markdown(f"**{found.capitalize()}**{data}. {about.get('sentence', '')}")


def recorded(figure: str) -> list[dict[str, Any]]:
    """List the claims of a figure as they were measured at paper scale.

    Parameters
    ----------
    figure : str
        Figure id.

    Returns
    -------
    list of dict
        Of `join`; empty if the figure has not been built.
    """
    folder = project.paper_folder(figure.split("/")[0])
    path = folder.parents[1] / "figures" / f"{figure}.json"
    record = project.entry(path, "claims") if path.exists() else []
    claims = project.claims(figure)
    # not those that have been removed since
    return [join(claims, found) for found in record if found["id"] in claims]


def judge(claims: list[dict[str, Any]]) -> str:
    """Give the verdict on a figure by the statuses of the paper's claims about it.

    Claims of ours do not count. If there are no others, nothing of a paper is
    judged, and the verdict says how many of ours hold.

    Parameters
    ----------
    claims : list of dict
        Of `recorded`.

    Returns
    -------
    str
        "reproduced" if all claims that can be tested hold, "in part" if some
        do, "not reproduced" if none does, "not testable" without any; "not built"
        without a record.
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
    return "in part" if n_hold else "not reproduced"


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
        One line a row.
    """
    lines = [f"| {' | '.join(map(_cell, row))} |\n" for row in (head, *rows)]
    return lines[0] + "|---" * len(head) + "|\n" + "".join(lines[1:])


def _cell(value):
    """A value in one line, without what would end a cell."""
    return " ".join(str(value).split()).replace("|", "&#124;")


def join(claims: dict[str, dict[str, Any]], found: dict[str, Any]) -> dict[str, Any]:
    """Join what is claimed with what was measured.

    Parameters
    ----------
    claims : dict
        Of `paperfigs.project.claims`.
    found : dict
        Of `Claims.records`.

    Returns
    -------
    dict
        Both; a reason only where the claim differs or is declared.
    """
    claim = claims[found["id"]]
    joined = {"where": "", "reason": ""} | claim | found
    if found["status"] not in ("differs", claim.get("declared")):
        joined["reason"] = ""
    return joined


def row(claim: dict[str, Any]) -> tuple[str, str, str, str]:
    """Write a claim of `join` as a row: text, criterion, measurement, status."""
    about = f"{claim['says']} ({claim['quantity']}; `{claim['id']}`)"
    texts = (text.format(claim[k]) for k, text in _CRITERIA.items() if k in claim)
    return about, next(texts, ""), measurement(claim), claim["status"]


def measurement(claim: dict[str, Any]) -> str:
    """Write the measurement of a claim, with its standard error.

    Parameters
    ----------
    claim : dict
        A record of `Claims.records`.

    Returns
    -------
    str
        A dash if nothing was measured. As many decimals as the first digit of
        the standard error, which is not written if it is infinite, or if it is
        the rounding of runs that agree, below 1e-12 of the value.
    """
    measured, stderr = claim["measured"], claim["stderr"]
    if measured is None:
        return "-"
    if not stderr or stderr < 1e-12 * abs(measured):
        return f"{measured:.5g}"
    # A stderr of 0.96 is written as 1.0, and 0.04 as 0.04.
    decimals = max(0, -math.floor(math.log10(stderr)))
    return f"{measured:.{decimals}f} ± {stderr:.{decimals}f}"


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
        One run has no standard error, which is then infinite.

    Returns
    -------
    Measured
        For `Claims.measure`.
    """
    values = np.asarray(values, dtype=float)
    if values.size < 2:
        return Measured(values.mean() if values.size else math.nan, math.inf)
    return Measured(values.mean(), values.std(ddof=1) / np.sqrt(values.size))


def rms_ratio(estimates: ArrayLike, reference: ArrayLike, truth: ArrayLike) -> Measured:
    r"""Ratio of two root mean squared errors over the same runs.

    With the squared errors :math:`a` and :math:`b` of the two, the ratio is
    :math:`r = \sqrt{\bar a / \bar b}`. By the delta method its standard error
    is that of the mean of
    :math:`\frac{r}{2} \left(\frac{a}{\bar a} - \frac{b}{\bar b}\right)`.

    Parameters
    ----------
    estimates, reference : array_like, shape (n_runs,)
        Estimates in the numerator and in the denominator.
    truth : float or array_like, shape (n_runs,)
        What both estimate.

    Returns
    -------
    Measured
        NaN if one of them has no error in any run, or an infinite one.
    """
    a, b = ((np.asarray(values) - truth) ** 2 for values in (estimates, reference))
    means = a.mean(), b.mean()
    if not (np.isfinite(means).all() and all(means)):
        return Measured(math.nan, math.nan)
    ratio = np.sqrt(means[0] / means[1])
    error = mean(ratio / 2 * (a / means[0] - b / means[1])).stderr
    return Measured(ratio, error)


def sd_ratio(estimates: ArrayLike, reference: ArrayLike) -> Measured:
    """Ratio of two standard deviations over the same runs, as in `rms_ratio`."""
    centred = (values - np.mean(values) for values in (estimates, reference))
    return rms_ratio(*centred, 0.0)
