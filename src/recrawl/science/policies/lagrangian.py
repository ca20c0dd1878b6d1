"""The Lagrangian index: closer to the optimum of slots than the crawl value."""

from dataclasses import dataclass

import numpy as np

from recrawl import checks
from recrawl.kernels import indices as kernels
from recrawl.science import allocation
from recrawl.science.policies.by_index import IndexPolicy
from recrawl.science.signals import SignalledPages

__all__ = ["LagrangianIndex"]

# The bracket of the multiplier begins this factor to either side of that of
# crawls at equal intervals, and is halved until it is this narrow.
_NEAR, _NARROW = 1.1, 1e-12
# Least multiplier of the search: even there the pages may not use up the bandwidth.
_LOWEST = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class LagrangianIndex(IndexPolicy):
    r"""Each slot goes to the page of largest Lagrangian index.

    After Avrachenkov, Borkar and Shah (2024): each crawl costs the multiplier,
    and each page by itself has a best number of slots between crawls; a slot
    goes to the page that would lose most by waiting one slot more. With slots
    of length d, the cost c(k) of the slot that begins k slots after a crawl,
    and the multiplier :math:`\lambda`, page i is best crawled every
    :math:`K_i` slots, at the mean cost :math:`\rho_i`, crawls included:

    .. math:: \rho_i = \min_K \frac{\lambda + \sum_{s<K} c_i(s)}{K}, \qquad
        \sum_i \frac{1}{K_i} = 1, \qquad
        I_i(k) = \begin{cases} k \rho_i - \sum_{s<k} c_i(s) & k \le K_i \\
        \lambda + c_i(k) - \rho_i & k > K_i . \end{cases}

    The index is the cost of waiting minus that of crawling, relative to its
    value just after a crawl, :math:`-\lambda`, which is the same for all
    pages. The index needs the bandwidth, which the crawl value of `Greedy`
    does not.

    Parameters
    ----------
    pages : SignalledPages
        The pages as they are believed to be; their signals are not used.
    bandwidth : float, 1/time, positive
        Slots per unit of time.
    min_interval, max_interval, host, host_limit : optional
        Limits, as in `IndexPolicy`; the multiplier does not depend on them.

    Attributes
    ----------
    multiplier : float, importance x time
        Cost of a crawl at which the best crawls of all pages use the
        bandwidth.
    n_slots : ndarray, shape (n_pages,)
        Slots between two crawls at this cost, inf for never.

    Raises
    ------
    ValueError
        Arguments out of range, or limits that do not fit the pages.

    Notes
    -----
    The plain form is `tests.plain.lagrangian_index`.

    Examples
    --------
    >>> pages = SignalledPages([1.0, 1.0, 4.0], [1.0, 1.0, 0.2], 0.0, 0.0)
    >>> LagrangianIndex(pages, bandwidth=4.0).n_slots.tolist()
    [2.0, 2.0, inf]
    """

    pages: SignalledPages
    bandwidth: float

    def __post_init__(self):
        checks.instance("pages", self.pages, SignalledPages)
        super().__post_init__()
        slot = 1.0 / checks.positive_number("bandwidth", self.bandwidth)
        n_slots = np.empty(self.n_pages)
        rates = self.pages.change_rate, self.pages.importance

        def wanted(price):
            return kernels.cycles(price, slot, *rates, n_slots)

        price = allocation.optimal_interval(*rates, self.bandwidth).multiplier
        if price > 0:
            low, high = price / _NEAR, price * _NEAR
            while wanted(low) < 1 and low > _LOWEST:
                low, high = max(low / _NEAR**2, _LOWEST), low
            while wanted(high) > 1:
                low, high = high, high * _NEAR**2
            while high - low > _NARROW * high:
                price = np.sqrt(low) * np.sqrt(high)  # low * high may underflow
                low, high = (price, high) if wanted(price) > 1 else (low, price)
            price = high
        wanted(price)
        # in place, because the dataclass is frozen
        vars(self).update(multiplier=float(price), n_slots=n_slots)

    kind = kernels.LAGRANGIAN  # no field: it has no type

    @property
    def n_pages(self) -> int:
        """Number of pages."""
        return self.pages.change_rate.size

    def _describe(self, records):
        slot = 1.0 / self.bandwidth
        records["scale"] = self.pages.importance
        records["rate"] = self.pages.change_rate
        records["cycle"] = self.n_slots * slot
        kernels.fill_rents(records, self.multiplier)
        return {"slot": slot, "price": self.multiplier}
