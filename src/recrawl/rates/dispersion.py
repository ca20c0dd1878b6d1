"""How the changes of a log's pages depend on each other, page by page and host.

The intervals of `estimate` are widened by the dispersion, which is 1 if changes are
Poisson. Few crawls do not show it: the dispersion of a page is shrunk to that of its
host, and this one to that of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy
from numpy.typing import ArrayLike, NDArray

from recrawl.rates import likelihood_kernels as kernels
from recrawl.rates.likelihood import LEVEL, each_page
from recrawl.types import Array, Values

if TYPE_CHECKING:
    from recrawl.log.history import History

__all__ = [
    "Dispersion",
    "by_host",
    "dispersion",
    "encoded",
    "measured",
    "pooled_dispersion",
    "shrunk_dispersion",
]

# In the mean dispersion of a log, the model's dispersion 1 has the weight of this many
# degrees of freedom, so that a few crawls do not determine the mean (our choice).
_MODEL_WEIGHT = 20.0


def dispersion(history: History, change_rate: ArrayLike) -> tuple[Values, Values]:
    r"""Variance of a page's score, in units of that of a Poisson page.

    The crawls of a page are cut into at most 4 blocks of neighbours with about
    equal information. With the score (the slope of the log-likelihood in the
    logarithm of the rate) and the expected information of a block,

    .. math:: S_b = \sum_{n \in b} \begin{cases}
        x_n / (e^{x_n} - 1) & \text{changed} \\ -x_n & \text{unchanged}
        \end{cases}, \qquad
        V_b = \sum_{n \in b} \frac{x_n^2}{e^{x_n} - 1}, \qquad x_n = \Delta w_n ,

    shares :math:`s_b = V_b / V` of the sum of the latter, and the observed
    information J of `log_information`, the dispersion is

    .. math:: \hat\varphi = \frac{\sum_b (S_b - s_b S)^2}
        {J\,(1 - \sum_b s_b^2)} , \qquad S = \sum_b S_b .

    It is about 1 if changes are Poisson, whatever chose the intervals; above 1 if
    they cluster over times up to a block, and below 1 if they are regular. The
    sandwich variance of the logarithm of `mle` is :math:`\varphi / J` (textbook:
    M-estimation; batch means).

    Parameters
    ----------
    history : History
        In either form.
    change_rate : array_like, shape ``history.shape``, 1/time
        As an estimator gives it; where it is 0, inf or NaN, nothing is known.

    Returns
    -------
    value : ndarray or float, shape ``history.shape``
        The dispersion; 1 where nothing is known.
    freedom : ndarray or float, shape ``history.shape``
        Its degrees of freedom, whole: one less than the smallest of the
        effective number of blocks :math:`1 / \sum s_b^2`, the number of crawls
        that found a change, and the number of those that found none (with one of
        either the dispersion would be 1 whatever the process is). 0 where nothing is
        known; the noise of `value` has a relative variance of about 2 / `freedom`.

    Examples
    --------
    >>> import numpy as np
    >>> from recrawl.rates.dispersion import dispersion
    >>> from recrawl.rates.likelihood import mle
    >>> from recrawl.log.history import History
    >>> bursts = History(np.ones(40), np.repeat([True, False] * 2, 10))
    >>> value, freedom = dispersion(bursts, mle(bursts))
    >>> float(value.round(3)), float(freedom)
    (13.333, 3.0)
    """
    value, freedom = each_page(kernels.dispersions, history, change_rate, n=2)
    return value[()], freedom[()]


def pooled_dispersion(value: Array, freedom: Array) -> tuple[float, float]:
    r"""Mean dispersion of a log's pages, and how much they differ.

    The mean weights pages by their degrees of freedom :math:`\nu_i`, and the
    model's dispersion 1 by 20. The squared differences from the mean
    :math:`\varphi_0` are larger than noise alone would cause; the excess is
    the variance :math:`\tau^2` of the true dispersions of the pages. If these
    dispersions are drawn from a scaled inverse chi-squared distribution with
    this variance, it has

    .. math:: \nu_0 = 4 + 2 \varphi_0^2 / \tau^2

    degrees of freedom (empirical Bayes, by moments; textbook).

    Parameters
    ----------
    value, freedom : ndarray, shape (n_pages,)
        As `dispersion` gives them.

    Returns
    -------
    mean : float
        Mean dispersion; 1 where nothing is known.
    weight : float
        Degrees of freedom that it counts as beside a page's own; inf where pages
        do not differ.

    Examples
    --------
    >>> mean, weight = pooled_dispersion(np.array([1.0, 9.0] * 2), np.full(4, 7.0))
    >>> round(mean, 3), round(weight, 2)
    (3.333, 5.83)
    """
    total, n = freedom.sum(), np.count_nonzero(freedom)
    mean = (value @ freedom + _MODEL_WEIGHT) / (total + _MODEL_WEIGHT)
    # E (value - mean)^2 = tau^2 + 2 (mean^2 + tau^2) / freedom
    excess = freedom @ (value - mean) ** 2 - 2 * mean**2 * n
    if excess <= 0:
        return float(mean), np.inf
    return float(mean), float(4 + 2 * mean**2 * (total + 2 * n) / excess)


def shrunk_dispersion(
    value: Array, freedom: Array, mean: ArrayLike, weight: float
) -> Array:
    r"""Dispersion of pages, shrunk to a mean.

    .. math:: \tilde\varphi = \frac{\nu \hat\varphi + \nu_0 \varphi_0}{\nu + \nu_0}

    with the degrees of freedom of the page and those of the mean.

    Parameters
    ----------
    value, freedom : ndarray
        As `dispersion` gives them.
    mean, weight : array_like, float
        As `pooled_dispersion` gives them; the mean may be one for each page.

    Returns
    -------
    ndarray
        Between `value` and `mean`.

    Examples
    --------
    >>> shrunk_dispersion(np.array([5.0, 5.0]), np.array([0.0, 7.0]), 1.0, 7.0)
    array([1., 3.])
    """
    return mean + freedom / (freedom + weight) * (value - mean)


def measured(history: History, change_rate: Array, page: Any) -> tuple[Array, Array]:
    """Dispersion of pages, from their crawls and from earlier logs.

    Parameters
    ----------
    history : History, shape (n_pages,)
        Crawls of this log.
    change_rate : ndarray, shape (n_pages,)
        Their rates.
    page : pyarrow.Table
        With the columns dispersion and freedom of earlier logs.

    Returns
    -------
    value, freedom : ndarray, shape (n_pages,)
        The mean of this log's and the earlier ones', by degrees of freedom, and
        the sum of these. Dependence of crawls of different logs does not show.

    Examples
    --------
    >>> from recrawl.log.history import History
    >>> before = pa.table({"dispersion": [2.0], "freedom": [3.0]})
    >>> measured(History([1.0], [True], [0, 1]), np.ones(1), before)
    (array([2.]), array([3.]))
    """
    value, freedom = dispersion(history, change_rate)
    before, known = (np.asarray(page[name]) for name in ("dispersion", "freedom"))
    total = freedom + known
    excess = freedom * (value - 1) + known * (before - 1)
    return 1 + excess / np.maximum(total, 1), total


@dataclass(frozen=True)
class Dispersion:
    """Dispersion of a log and of its hosts, as `dispersion` has it.

    Parameters
    ----------
    mean : float
        Mean dispersion of the log.
    weight : float
        Degrees of freedom that a mean counts as, beside those of a page.
    hosts : dict of float
        Dispersion by host, of those in the sample.

    Examples
    --------
    >>> Dispersion(1.0, 30.0, {"example.org": 2.5}).hosts["example.org"]
    2.5
    """

    mean: float
    weight: float
    hosts: dict

    @classmethod
    def learn(cls, value: Array, freedom: Array, host: Any) -> Dispersion:
        """Learn it from a random sample of pages.

        Parameters
        ----------
        value, freedom : ndarray, shape (n_pages,)
            Of `measured`.
        host : pyarrow.Array or ChunkedArray
            Host of each page.

        Returns
        -------
        Dispersion
            With a mean of 1 and no weight to speak of from a sample that shows
            nothing.
        """
        mean, weight = pooled_dispersion(value, freedom)
        names, member = encoded(host)
        own = np.bincount(member, freedom, len(names))
        total = np.bincount(member, freedom * value, len(names))
        hosts = shrunk_dispersion(total / np.maximum(own, 1.0), own, mean, weight)
        return cls(mean, weight, dict(zip(names, hosts.tolist(), strict=True)))

    def of(self, value: Array, freedom: Array, host: Any) -> Array:
        """Find the dispersion by which the intervals of pages are widened.

        Parameters
        ----------
        value, freedom, host
            As in `learn`, of any pages of the log.

        Returns
        -------
        ndarray, shape (n_pages,)
            At least 1. A dispersion that is not known well is raised by the
            squared ratio of the quantiles of Student's t and of the normal
            distribution.
        """
        mean = by_host(self.hosts, self.mean, host)
        value = shrunk_dispersion(value, freedom, mean, self.weight)
        # degrees of freedom of pages are small whole numbers: one quantile for each
        tail = (1 + LEVEL) / 2
        each = np.arange(int(freedom.max(initial=0)) + 1)
        wider = scipy.special.stdtrit(each + self.weight, tail)
        wider /= scipy.special.ndtri(tail)
        return np.maximum(value * wider[freedom.astype(int)] ** 2, 1.0)


def encoded(host: Any) -> tuple[list[str], NDArray[np.integer]]:
    """Names of hosts, and the number of each page's host.

    Parameters
    ----------
    host : pyarrow.Array or ChunkedArray
        Host of each page.

    Returns
    -------
    names : list of str
        Each host once.
    member : ndarray of int, shape (n_pages,)
        Places in the list.

    Examples
    --------
    >>> encoded(pa.array(["b", "a", "b"]))
    (['b', 'a'], array([0, 1, 0], dtype=int32))
    """
    if isinstance(host, pa.ChunkedArray):
        host = host.combine_chunks()
    named = pc.dictionary_encode(host, null_encoding="encode")
    return named.dictionary.to_pylist(), np.asarray(named.indices)


def by_host(values: dict[str, Any], other: Any, host: Any) -> Array:
    """Value of each page's host.

    Parameters
    ----------
    values : dict
        Numbers, or arrays of one length, by host.
    other : float or ndarray
        That of all other hosts.
    host : pyarrow.Array or ChunkedArray
        Host of each page.

    Returns
    -------
    ndarray, shape (n_pages, ...)

    Examples
    --------
    >>> by_host({"a": 2.0}, 1.0, pa.array(["a", "b"]))
    array([2., 1.])
    """
    names, member = encoded(host)
    return np.array([values.get(name, other) for name in names])[member]
