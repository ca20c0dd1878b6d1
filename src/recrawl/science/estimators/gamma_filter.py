"""An efficient online estimator."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from recrawl import checks
from recrawl.kernels import online as kernels
from recrawl.kernels import threads_for
from recrawl.science.processes import History
from recrawl.types import Array, Values

__all__ = ["GammaFilter", "filtered"]

# Default prior: half a change in 0.03 times the first interval of a page (our
# choice). It is weak, and its mean so high that the first unchanged crawl
# lowers it at once.
_DEFAULT_SHARE = 0.03


class GammaFilter:
    r"""Efficient online estimator: a gamma posterior of the change rate.

    A crawl costs O(1), and intervals may be any. A crawl without a change is
    conjugate, it adds its interval w to the rate of the gamma distribution.
    For one that found a change, the log-likelihood
    :math:`\log(1 - e^{-\Delta w})` is replaced by
    :math:`c \log \Delta - \Delta t` with the same first two derivatives at
    the present estimate :math:`\hat\Delta`. With :math:`x = \hat\Delta w`,

    .. math:: c = \frac{x^2 e^x}{(e^x - 1)^2} \in (0, 1), \qquad
        t = \Big(c - \frac{x}{e^x - 1}\Big) / \hat\Delta \in (0, w / 2) .

    This is a Newton step that keeps the estimate positive. A crawl whose changes
    are known, by the age of the last one or by their number, is conjugate too: it
    adds them to the shape, and the time in which no other can hide to the rate (see
    `History.likelihood_terms`). In none of the
    papers; its error approaches the bound of `fisher_information`, as that of
    `mle` does. Early observations are linearised at early estimates: after
    many crawls the estimate is up to 0.3 standard deviations from the mode of
    the exact posterior at crawl_rate = 0.3 change_rate, and 0.1 at higher
    crawl rates (measured).

    Parameters
    ----------
    shape : array_like, default 0.5
        Shape of the gamma prior, positive, one number or one for each page.
        The prior counts as `shape` changes seen in the time `rate`.
    rate : array_like, time, optional
        Rate of the gamma prior, positive, one number or one for each page. By
        default 0.03 times the first interval of each page. With an array,
        which says how many pages there are, the first crawl may be one of
        some pages only.
    forgetting : float, default 1.0
        In (0, 1]. Before each crawl, shape and rate of the posterior shrink
        by this factor towards those of the prior, so that the estimate
        follows a rate that drifts, with a memory of 1 / (1 - forgetting)
        crawls. 1 forgets nothing.
    half_life : float, time, optional
        The same for uneven intervals: the difference between posterior and
        prior is halved in this time. By default nothing is forgotten with
        time.
    false_change : array_like, default 0.0
        Probability, in [0, 1), with which a crawl finds a change where there was
        none, as by a clock on the page; one number or one for each page. It is
        known beforehand, as by `false_changes`, and holds for bits, not for known
        ages and counts. Where it is positive, bits are taken in by steps of Fisher's
        scoring; give `rate` then, because the default prior is far too high where
        crawls are frequent, and takes long to be corrected.

    Attributes
    ----------
    shape, rate : ndarray, shape of the pages
        Parameters of the posterior; None before the first crawl.

    Raises
    ------
    ValueError
        A prior that is not positive, a forgetting factor outside (0, 1], a
        probability outside [0, 1).

    Notes
    -----
    The plain form of c and t is `tests.recrawl.plain.pseudo_counts`, and of a step
    with false changes `tests.recrawl.plain.scoring_step`.

    Examples
    --------
    >>> from recrawl.science.estimators import GammaFilter
    >>> estimator = GammaFilter(shape=1.0, rate=2.0)
    >>> estimator.update([True, False], interval=1.0).round(3)
    array([0.819, 0.333])

    A crawler has one filter for all its pages, and updates those that it crawled:

    >>> estimator = GammaFilter(rate=np.full(5, 2.0))
    >>> estimator.update([False, True], interval=[3.0, 1.0], page=[4, 1]).round(3)
    array([0.1  , 0.608])

    A header shows that the last change is half a day old:

    >>> estimator.update(True, interval=4.0, age=0.5, page=0).item()
    0.6
    """

    def __init__(
        self,
        *,
        shape: ArrayLike = 0.5,
        rate: ArrayLike | None = None,
        forgetting: float = 1.0,
        half_life: float | None = None,
        false_change: ArrayLike = 0.0,
    ) -> None:
        self._prior = (
            checks.positive("shape", shape),
            rate if rate is None else checks.positive("rate", rate),
        )
        self.forgetting = checks.scalar(checks.share, "forgetting", forgetting)
        if not self.forgetting:
            raise ValueError("forgetting must be in (0, 1], got 0.0")
        self.half_life = _half_life(half_life)
        self.false_change = checks.share("false_change", false_change)
        certain = self.false_change == 1
        checks.require("false_change", self.false_change, "below 1", ~certain)
        self.shape = self.rate = None

    @property
    def estimate(self) -> Values:
        """Posterior means, shape / rate, 1/time; None before the first crawl."""
        return None if self.shape is None else self.shape / self.rate

    def update(
        self,
        changed: ArrayLike,
        *,
        interval: ArrayLike | None = None,
        page: ArrayLike | None = None,
        age: ArrayLike | None = None,
        count: ArrayLike | None = None,
        crawl_rate: Any = None,
    ) -> Array:
        """Take in one more crawl of every page, or of some pages.

        Parameters
        ----------
        changed : array_like of bool or 0/1, shape of the pages
            True where the crawl found a change.
        interval : array_like, time
            Time since the crawl before, positive. It must be given: None, the
            default of other estimators, is refused.
        page : array_like of int, optional
            Indices of the crawled pages, each at most once, in the flattened
            array of pages; `changed` and `interval` broadcast with it. All
            other pages stay as they are, and add nothing to the cost of the
            call. By default every page was crawled.
        age, count : array_like, optional
            Age of the last change, and number of changes, as in `History`: NaN
            where unknown; they broadcast with `changed` and `interval`.
        crawl_rate : object, optional
            Ignored: only the intervals matter.

        Returns
        -------
        ndarray
            The new estimates of the crawled pages, 1/time.

        Raises
        ------
        ValueError
            No interval, or one that is not positive; other pages than before;
            an unknown page, a page given twice, or `page` where the number of
            pages is not known; a count that is negative or not whole. The
            posterior is then as before.

        Warns
        -----
        DistrustedAgeWarning
            Ages or counts contradict the bit, which is then used.
        """
        if interval is None:
            raise ValueError(
                "interval must be given: the time since the crawl before, got None"
            )
        changed = checks.bits("changed", changed)
        interval = checks.positive("interval", interval)
        crawl = _terms(changed, interval, age, count)
        if page is not None:
            return self._update_some(crawl, interval, page)
        if self.shape is None:
            shape, rate = self._prior
            if rate is None:
                rate = _DEFAULT_SHARE * interval
            *_, shape, rate = checks.broadcast(**crawl, shape=shape, rate=rate)
            self._start(shape, rate)
        *crawl, earlier = checks.broadcast(**crawl, **{"earlier crawls": self.shape})
        if earlier.shape != self.shape.shape:
            raise ValueError(
                "changed and interval must have the shape of earlier crawls, "
                f"{self.shape.shape}, got {earlier.shape}"
            )
        # views of the state, written in place
        elapsed = np.broadcast_to(interval, earlier.shape).ravel()
        self._advance(crawl, elapsed, [self.shape.ravel(), self.rate.ravel()])
        return self.estimate

    def _update_some(self, crawl, interval, page):
        """`update` of some pages: copies of their posteriors, written back."""
        first = self.shape is None
        shape, rate = self._known_prior() if first else (self.shape, self.rate)
        page = _indices(page, rate.size)
        *crawl, page = checks.broadcast(**crawl, page=page)
        found, count = np.unique(page, return_counts=True)
        if (count > 1).any():
            page = found[count.argmax()]
            raise ValueError(f"page must have no index twice, got {page} twice")
        if first:
            self._start(shape, rate)
        flat = page.ravel()
        shape, rate = self.shape.ravel()[flat], self.rate.ravel()[flat]
        elapsed = np.broadcast_to(interval, page.shape).ravel()
        self._advance(crawl, elapsed, [shape, rate], flat)
        self.shape.ravel()[flat], self.rate.ravel()[flat] = shape, rate
        return (shape / rate).reshape(page.shape)[()]

    def _known_prior(self):
        """The prior of all pages, if it says how many there are."""
        shape, rate = self._prior
        if rate is None or not (shape.ndim or rate.ndim):
            raise ValueError(
                "rate must be an array with an entry for each page, before a crawl "
                f"of some pages, got {rate}"
            )
        return checks.broadcast(shape=shape, rate=rate)

    def _start(self, shape, rate):
        """Give every page its prior."""
        if self.false_change.ndim and self.false_change.shape != shape.shape:
            raise ValueError(
                "false_change must be one number or have the shape of the pages, "
                f"{shape.shape}, got {self.false_change.shape}"
            )
        self.shape, self.rate = shape.copy(), rate.copy()
        if self._forgets:
            self._prior = shape.copy(), rate.copy()

    @property
    def _forgets(self):
        return self.forgetting < 1 or self.half_life < np.inf

    def _advance(self, crawl, elapsed, posterior, page=slice(None)):
        """Forget, then take in a crawl of each page; writes the posterior.

        `crawl` holds what `_terms` returns, `elapsed` the time since the crawl
        before, `posterior` shape and rate, all flat but the first; `page` the
        indices of its pages.
        """
        # copies, because NumPy warns of the flags of broadcast arrays
        crawl = [np.array(values).ravel() for values in crawl]
        if self._forgets:
            kept = self.forgetting * 2 ** (-elapsed / self.half_life)
            for now, prior in zip(posterior, self._prior, strict=True):
                now *= kept
                now += (1 - kept) * prior.ravel()[page]
        if len(crawl) == 2:  # bits alone
            crawl.append(np.zeros(crawl[0].size))
        if self.false_change.any():
            chance = np.broadcast_to(self.false_change, self.shape.shape).ravel()[page]
            kernels.gamma_update_noisy(*crawl, chance, *posterior)
        else:
            kernels.gamma_update(*crawl, *posterior)


def _terms(changed, interval, age, count):
    """Bits, time and, unless there are only bits, the number of known changes.

    As in `History.likelihood_terms`, by the names of the arguments for errors.
    """
    if age is None and count is None:
        return {"changed": changed, "interval": interval}
    given = {"changed": changed, "interval": interval, "age": age, "count": count}
    changed, interval, *reported = checks.broadcast(
        **{name: np.nan if a is None else a for name, a in given.items()}
    )
    age, count = (a.ravel() for a in reported)
    one_page = interval.ravel(), changed.ravel(), [0, interval.size]
    history = History(*one_page, age=age, count=count)
    time, bits, _, n_known = history.likelihood_terms()
    terms = {"changed": bits, "interval": time, "age and count": n_known}
    return {name: values.reshape(changed.shape) for name, values in terms.items()}


def filtered(
    history: History, *, shape: float, rate: float, half_life: float | None = None
) -> tuple[Array, Values, Values]:
    """`GammaFilter` over whole histories, and what it predicted.

    Parameters
    ----------
    history : History
        In either form, with its ages and counts.
    shape, rate : float
        Of the gamma prior of every page, positive; the latter is a time.
    half_life : float, time, optional
        As in `GammaFilter`.

    Returns
    -------
    predicted : ndarray, shape of ``history.changed``, 1/time
        Estimate before each crawl, from those before it.
    shape, rate : ndarray or float, shape ``history.shape``
        Of the posterior after the last crawl of each page.

    Raises
    ------
    ValueError
        Arguments that are not positive and finite.

    Examples
    --------
    >>> from recrawl.science.estimators import filtered
    >>> from recrawl.science.processes import History
    >>> history = History([1.0, 2.0], [True, False])
    >>> predicted, shape, rate = filtered(history, shape=1.0, rate=2.0)
    >>> predicted.round(3), float((shape / rate).round(3))
    (array([0.5  , 0.819]), 0.448)
    """
    prior = [
        checks.positive_number(name, value)
        for name, value in (("shape", shape), ("rate", rate))
    ]
    half_life = _half_life(half_life)
    time, bits, offsets, n_known = history.likelihood_terms()
    predicted, posterior = np.empty(time.size), np.empty((2, offsets.size - 1))
    with threads_for(time.size):
        kernels.gamma_paths(
            history.ragged()[0],
            bits,
            time,
            n_known,
            offsets,
            np.array(prior),
            half_life,
            predicted,
            posterior,
        )
    return predicted.reshape(history.changed.shape), *map(history.by_page, posterior)


def _half_life(half_life):
    """A half-life as a number; inf where nothing is forgotten."""
    if half_life is None:
        return np.inf
    return checks.positive_number("half_life", half_life)


def _indices(page, n_pages):
    """`page` as an array of indices of `n_pages` pages."""
    page = np.asarray(page)
    if page.size and page.dtype.kind not in "iu":
        raise ValueError(f"page must be integers, got dtype {page.dtype}")
    rule = f"at least 0 and below {n_pages}"
    checks.require("page", page, rule, (page >= 0) & (page < n_pages))
    return page.astype(np.intp)
