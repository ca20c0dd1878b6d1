"""What all online estimators share, and those that count."""

from dataclasses import dataclass

import numpy as np
import scipy

from paperlib import checks
from paperlib._kernels import online as kernels


@dataclass(frozen=True)
class Guarantee:
    """What the papers prove of an online estimator with its present steps.

    converges : bool or None
        True where a theorem applies, False where the steps break its conditions, None where that cannot be told.
    exponent : float or None
        E|estimate - change rate| = O(k^-exponent), where the paper gives a rate.
    reason : str
    """

    converges: bool | None
    exponent: float | None
    reason: str


def _sequence(name, value):
    return value if callable(value) else checks.scalar(checks.positive, name, value)


def _at(sequence, k):
    """Entry k of a step sequence: a number x stands for (k + 1)^-x, a callable for itself."""
    return sequence(k) if callable(sequence) else (k + 1.0) ** -sequence


def _decay(sequence):
    """Exponent x of a sequence that decays as k^-x, and whether it is known: of a callable, its slope from k = 1e6 to 1e12."""
    if not callable(sequence):
        return float(sequence), True
    return float(-np.log(sequence(1e12) / sequence(1e6)) / np.log(1e6)), False


def _between(x, low, high, sure):
    """low < x <= high; None where x is a slope too close to a limit to say."""
    if not sure and min(abs(x - low), abs(x - high)) < 0.02:
        return None
    return bool(low < x <= high + 1e-12)


class _Online:
    """State of one estimate per page or run; `crawl_rate` is a number or an array that broadcasts with the bits."""

    def __init__(self, crawl_rate):
        self.crawl_rate = checks.positive("crawl_rate", crawl_rate)

    def limit(self, change_rate):
        """Where the estimate converges to, 1/time: the change rate, if `guarantee` holds."""
        return checks.non_negative("change_rate", change_rate)[()]

    def _bits(self, changed, crawl_rate, state):
        changed = checks.bits("changed", changed)
        checks.fit(
            changed=changed,
            crawl_rate=self.crawl_rate if crawl_rate is None else crawl_rate,
            **{"earlier crawls": state},
        )
        return changed

    def _moment_grid(self, change_rate, n_crawls):
        if self.crawl_rate.ndim:
            raise ValueError(
                f"crawl_rate must be a single number for moments, got shape {self.crawl_rate.shape}"
            )
        change_rate = checks.positive("change_rate", change_rate)
        if np.ndim(n_crawls) == 0:
            crawls = np.arange(1, checks.count("n_crawls", n_crawls) + 1)
        else:
            crawls = np.array([checks.count("n_crawls", n) for n in n_crawls])
        flat = change_rate.ravel()
        return change_rate.shape, flat, flat / (flat + self.crawl_rate), crawls


class _Counting(_Online):
    """Estimators that know the number of crawls and of changes; a new crawl rate restarts both."""

    def __init__(self, crawl_rate):
        super().__init__(crawl_rate)
        self._n = np.asarray(0.0)
        self._n_changed = np.asarray(0.0)

    @property
    def estimate(self):
        """The present estimates, 1/time; 0 before the first crawl."""
        return self._value(np.maximum(self._n, 1.0), self._n_changed)

    def update(self, changed, *, interval=None, crawl_rate=None):
        """Take in one more crawl of every page and return the new estimates, 1/time.

        changed : bool or 0/1, array of pages. interval : ignored. crawl_rate : the rate from now on; pages whose rate is new restart.
        """
        changed = self._bits(changed, crawl_rate, self._n_changed)
        if crawl_rate is not None:
            new = checks.positive("crawl_rate", crawl_rate)
            same = new == self.crawl_rate
            self._n, self._n_changed, self.crawl_rate = (
                self._n * same,
                self._n_changed * same,
                new,
            )
        self._n = self._n + 1.0
        self._n_changed = self._n_changed + changed
        return self.estimate

    def moments(self, change_rate, n_crawls):
        """Exact bias and root mean squared error under Poisson crawls, from the binomial law of the number of changes.

        change_rate : float or array. n_crawls : int (all of 1 to n_crawls) or array of crawl counts.
        Returns two arrays of shape (*change_rate.shape, n counts), 1/time.
        """
        shape, change_rate, q, crawls = self._moment_grid(change_rate, n_crawls)
        out = np.empty((2, change_rate.size, crawls.size))
        for i, (rate, p) in enumerate(zip(change_rate, q, strict=True)):
            for j, n in enumerate(crawls.tolist()):
                spread = (
                    12.0 * np.sqrt(n * p * (1 - p)) + 12.0
                )  # what lies outside has a probability below 1e-20
                seen = np.arange(
                    max(0, int(n * p - spread)), min(n, int(n * p + spread)) + 1
                )
                error = self._value(float(n), seen) - rate
                weight = scipy.stats.binom.pmf(seen, n, p)
                out[:, i, j] = weight @ error, np.sqrt(weight @ error**2)
        return out.reshape(2, *shape, crawls.size)


class Naive(_Counting):
    """crawl_rate x changes / crawls; inconsistent. Section 3.4 of [peva22].

    Parameters
    ----------
    crawl_rate : float or array of pages, 1/time
    """

    def _value(self, n, n_changed):
        return self.crawl_rate * n_changed / n

    def limit(self, change_rate):
        """crawl_rate change_rate / (crawl_rate + change_rate), below the change rate. Section 3.4 of [peva22]."""
        change_rate = super().limit(change_rate)
        return self.crawl_rate * change_rate / (self.crawl_rate + change_rate)

    def guarantee(self):
        """Converges to the wrong value, see `limit`."""
        return Guarantee(
            False, None, "inconsistent: changes between two crawls count as one"
        )


class LLN(_Counting):
    """crawl_rate x changes / (crawls + offset - changes). Eq. (2) of [valuetools20], eq. (1) of [peva22].

    Parameters
    ----------
    crawl_rate : float or array of pages, 1/time
    offset : float or callable
        The sequence alpha_k, positive: a number for a constant, or a function of the array of crawl counts k = 1, 2, ...
        (log k is 0 at k = 1; use log(k + 1)).
    """

    def __init__(self, crawl_rate, *, offset=1.0):
        super().__init__(crawl_rate)
        self.offset = _sequence("offset", offset)
        if not 0 < self._offset(1.0) < np.inf:
            raise ValueError(
                f"offset must be positive and finite from the first crawl on, got {self._offset(1.0)!r} at k = 1"
            )

    def _offset(self, n):
        return self.offset(n) if callable(self.offset) else self.offset

    def _value(self, n, n_changed):
        return kernels.counted_rate(n_changed, n, self._offset(n), self.crawl_rate)

    def guarantee(self):
        """Theorem 1 of [peva22]: consistent if offset / k -> 0, with error O(max(k^-1/2, offset / k))."""
        growth = -_decay(self.offset)[0] if callable(self.offset) else 0.0
        converges = _between(growth, -np.inf, 1.0 - 0.01, not callable(self.offset))
        reason = f"Theorem 1 needs offset / k -> 0; this offset grows as k^{growth:.2f}"
        return Guarantee(
            converges, min(0.5, 1.0 - growth) if converges else None, reason
        )
