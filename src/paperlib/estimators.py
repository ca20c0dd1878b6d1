"""The change rate of a Poisson page from one-bit observations: batch estimators of a History, and online ones."""

import copy
import warnings
from dataclasses import dataclass

import numpy as np
import scipy

from paperlib import _checks, _kernels, _likelihood
from paperlib.processes import History


class DegenerateHistoryWarning(UserWarning):
    """A history without a change, or with nothing but changes, has no interior estimate."""


class ConvergenceError(RuntimeError):
    """A solver gave up; `last` holds its last iterate."""

    def __init__(self, message, last):
        super().__init__(message)
        self.last = last


# ---------------------------------------------------------------- batch


def naive(history):
    """Changes seen per unit of time, n_changed / sum of intervals: biased low, it counts many changes as one.

    Section 3.4 of [peva22]. Takes either form of `History`; returns an array of ``history.shape``, 1/time (NaN for a page without crawls).
    """
    with np.errstate(invalid="ignore"):
        return history.total(history.changed) / history.total(history.interval)


def bias_reduced(history):
    """-log((n_unchanged + 1/2) / (n + 1/2)) / interval, for crawls at one fixed interval per page.

    Implements eq. (1) of [grimes08] as corrected in the errata; finite also when every crawl found a change.

    Parameters
    ----------
    history : History, either form

    Returns
    -------
    array of ``history.shape``, 1/time

    Raises
    ------
    ValueError
        A page whose intervals differ by more than a relative 1e-9.
    """
    n = history.n_crawls
    with np.errstate(invalid="ignore", divide="ignore"):
        interval = history.total(history.interval) / n
    per_crawl = np.repeat(interval, n) if history.offsets is not None else np.asarray(interval)[..., np.newaxis]
    uneven = np.abs(history.interval - per_crawl) > 1e-9 * per_crawl
    if uneven.any():
        first = tuple(np.argwhere(uneven)[0].tolist())
        raise ValueError(
            f"interval must be the same for all crawls of a page, got {history.interval[first].item()!r} at index {first}; mle takes any"
        )
    return -np.log((n - history.total(history.changed) + 0.5) / (n + 0.5)) / interval


def mle(history, *, edges="limits", bounds=None):
    """Maximum likelihood: the root of sum_changed w / (exp(rate w) - 1) = sum_unchanged w.

    Implements eq. (9) of [valuetools20], eq. (16) of [peva22], eq. (2) of [grimes08]; any intervals w.

    Parameters
    ----------
    history : History, either form
    edges : "limits" or "substitute"
        What a page gets where there is no root: without a change the limit 0, with nothing but changes the limit inf; or what Cho and
        Garcia-Molina put in their place (section 3.3 of [grimes08]), one change in the whole time, one in the shortest interval.
    bounds : (low, high), optional
        The estimate is clipped to them, 1/time.

    Returns
    -------
    array of ``history.shape``, 1/time; NaN for a page without crawls.

    Warns
    -----
    DegenerateHistoryWarning
        Of pages without a root, if they get the limits.

    Raises
    ------
    ConvergenceError
    """
    if edges not in ("limits", "substitute"):
        raise ValueError(f"edges must be 'limits' or 'substitute', got {edges!r}")
    return _estimating_equation(_likelihood.MLE, history, bounds, substitute=edges == "substitute")


def moment_matching(history, *, bounds=None):
    """The rate at which the expected number of unchanged crawls is the number seen, sum exp(-rate w) = n_unchanged.

    Implements eq. (7) of [aaai20] (the equation is printed in section 3.4 of [peva22]); clipped to `bounds` as there.
    Parameters, result, warning and error as in `mle`, with which it agrees when all intervals are equal.
    """
    return _estimating_equation(_likelihood.MOMENTS, history, bounds)


def _estimating_equation(kind, history, bounds, *, substitute=False):
    interval, changed, offsets = history.ragged()
    rate = np.empty(offsets.size - 1)
    with _kernels.threads_for(interval.size):
        _likelihood.estimating_equation_roots(kind, interval, changed, offsets, rate)
    if (rate < 0).any():
        raise ConvergenceError(f"{(rate < 0).sum()} of {rate.size} pages did not converge", np.where(rate < 0, np.nan, rate))
    never, always = rate == 0, np.isinf(rate)
    if not substitute:
        _warn_degenerate(never.sum(), always.sum(), rate.size)
    elif never.any() or always.any():
        rate[never] = 1 / np.ravel(history.total(history.interval))[never]
        rate[always] = 1 / np.minimum.reduceat(np.append(interval, np.inf), offsets[:-1])[always]
    if bounds is not None:
        low, high = bounds
        if not 0 <= low < high:
            raise ValueError(f"bounds must satisfy 0 <= low < high, got {bounds!r}")
        rate = np.clip(rate, low, high)
    return rate.reshape(history.shape)[()]


def _warn_degenerate(n_never, n_always, n):
    if n_never or n_always:
        warnings.warn(
            f"of {n} pages {n_never} never changed (estimate 0) and {n_always} changed at every crawl (estimate inf)",
            DegenerateHistoryWarning,
            stacklevel=4,
        )


def mle_path(history):
    """The MLE after every crawl, array of the shape of ``history.changed``; 0 or inf while degenerate, without a warning."""
    interval, changed, offsets = history.ragged()
    out = np.empty(interval.size)
    with _kernels.threads_for(interval.size):
        _likelihood.mle_paths(interval, changed, offsets, out)
    if np.isnan(out).any():
        raise ConvergenceError(f"{np.isnan(out).sum()} prefixes did not converge", out)
    return out.reshape(history.changed.shape)


def likelihood_interval(history, *, level=0.95):
    """Likelihood-ratio confidence interval of the change rate, of about nominal coverage.

    All rates whose log-likelihood is within chi2(1, level) / 2 of the maximum. A degenerate history has its maximum, 0, at the edge;
    there the interval is the set of rates that give these bits a probability of at least 1 - level (for a page that never
    changed: up to -log(1 - level) / time, the "rule of three").

    Parameters
    ----------
    history : History, either form
    level : float in (0, 1)

    Returns
    -------
    low, high : arrays of ``history.shape``, 1/time; low is 0 without a change, high is inf with nothing but changes.
    """
    level = _checks.probability("level", level)
    interval, changed, offsets = history.ragged()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateHistoryWarning)
        rate = np.atleast_1d(mle(history)).ravel()
    low, high = np.empty_like(rate), np.empty_like(rate)
    drop = scipy.special.gammaincinv(0.5, level)  # half a quantile of chi2(1)
    with _kernels.threads_for(interval.size):
        _likelihood.likelihood_limits(rate, drop, interval, changed, offsets, -np.log1p(-level), low, high)
    lost = (np.isnan(low) | np.isnan(high)) & ~np.isnan(rate)
    if lost.any():
        raise ConvergenceError(f"{lost.sum()} of {rate.size} intervals did not converge", (low, high))
    return low.reshape(history.shape)[()], high.reshape(history.shape)[()]


def serial_score(history, change_rate):
    """Whether changes cluster: about standard normal if the page is Poisson, high if it is bursty, low if it is regular.

    The sum of the products of neighbouring residuals, (bit - p) / sqrt(p (1 - p)) with p = 1 - exp(-change_rate interval), over the root
    of their number, or of the sum of their squares if that is larger: with few changes it stays near 0. Under Poisson changes each
    residual has mean 0 whatever came before, also where bits chose the intervals, so that the products are a martingale; that the rate
    is estimated lowers the score by some 0.3 at 10 crawls and 0.1 at 400 (measured).

    Parameters
    ----------
    history : History, either form
    change_rate : array of ``history.shape``, 1/time
        As `mle` gives it.

    Returns
    -------
    array of ``history.shape``; NaN for a page with fewer than two crawls, or whose bits are impossible under its rate, 0 if certain
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        products, squares = _serial_sums(history, change_rate)
        return products / np.sqrt(np.maximum(squares, np.maximum(history.n_crawls - 1, 0)))


def _serial_sums(history, change_rate):
    """Sums of the products of neighbouring residuals and of their squares, arrays of ``history.shape``."""
    exponent = -history.interval * history.per_crawl(change_rate)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        residual = np.where(history.changed, np.exp(exponent / 2) / np.sqrt(-np.expm1(exponent)), -np.sqrt(np.expm1(-exponent)))
    product = np.zeros(residual.shape)
    product[..., 1:] = residual[..., 1:] * residual[..., :-1]
    if history.offsets is not None:
        product[history.offsets[:-1][np.diff(history.offsets) > 0]] = 0.0
    return history.total(product), history.total(product**2)


def confidence_radius(history, *, max_rate, level=0.95):
    """Radius around `moment_matching` clipped to bounds that holds the true rate with probability at least `level`.

    Implements Lemma 3 of [aaai20], with 1 - level for its delta: sqrt(log(2 / (1 - level)) / (2 n)) over the mean of
    w exp(-max_rate w). Valid for intervals chosen before any bit is seen, and a true rate of at most `max_rate`; loose.

    Parameters
    ----------
    history : History, either form
    max_rate : float, upper bound of the change rate, 1/time
    level : float in (0, 1)

    Returns
    -------
    array of ``history.shape``, 1/time; NaN for a page without crawls.
    """
    max_rate = _checks.scalar(_checks.positive, "max_rate", max_rate)
    level = _checks.probability("level", level)
    n = history.n_crawls
    with np.errstate(invalid="ignore", divide="ignore"):
        sensitivity = history.total(history.interval * np.exp(-max_rate * history.interval)) / n
        return np.sqrt(np.log(2 / (1 - level)) / (2 * n)) / sensitivity


def fisher_information(change_rate, *, crawl_rate):
    """Information of one crawl at Poisson times about the change rate, time^2; n crawls bound the variance by 1 / (n x it).

    E[w^2 q / (1 - q)] with q = exp(-change_rate w) and w ~ Exp(crawl_rate), which is 2 p / D^3 zeta(3, 1 + p / D) (Hurwitz's
    zeta). The MLE attains the bound asymptotically. Rates in 1/time, positive; arrays broadcast.
    """
    change_rate, crawl_rate = _checks.positive("change_rate", change_rate), _checks.positive("crawl_rate", crawl_rate)
    return 2 * crawl_rate / change_rate**3 * scipy.special.zeta(3, 1 + crawl_rate / change_rate)


def asymptotic_variances(change_rate, *, crawl_rate, constant=1.0):
    """n times the variance of estimates after many crawls n at Poisson times, dictionary by estimator of arrays, 1/time^2.

    "MLE": the bound, 1 / `fisher_information`. "MM": `moment_matching`. "LLN": Delta (Delta + p)^2 / p, also that of `Averaged` SA,
    and of SA with the best constant, (p + Delta) / p, for which one would have to know the change rate.
    "SA": with steps constant / k, p Delta c^2 / (2 c p / (p + Delta) - 1), inf where 2 c p <= p + Delta, for then the error falls slower.

    Rates in 1/time, positive; arrays broadcast. `constant` is positive.
    """
    change_rate, crawl_rate = _checks.positive("change_rate", change_rate), _checks.positive("crawl_rate", crawl_rate)
    constant, both = _checks.positive("constant", constant), crawl_rate + change_rate
    unchanged, twice = crawl_rate / both, crawl_rate / (both + change_rate)  # means of exp(-change_rate w) and its square
    contraction = 2 * constant * unchanged - 1
    with np.errstate(divide="ignore"):
        found = {
            "MLE": 1 / fisher_information(change_rate, crawl_rate=crawl_rate),
            "MM": (unchanged - twice) * both**4 / crawl_rate**2,
            "LLN": change_rate * both**2 / crawl_rate,
            "SA": np.where(contraction > 0, constant**2 * crawl_rate * change_rate / np.maximum(contraction, 0.0), np.inf),
        }
    return {name: value[()] for name, value in found.items()}


# ---------------------------------------------------------------- online


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
    return value if callable(value) else _checks.scalar(_checks.positive, name, value)


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
        self.crawl_rate = _checks.positive("crawl_rate", crawl_rate)

    def limit(self, change_rate):
        """Where the estimate converges to, 1/time: the change rate, if `guarantee` holds."""
        return _checks.non_negative("change_rate", change_rate)[()]

    def _bits(self, changed, crawl_rate, state):
        changed = _checks.bits("changed", changed)
        _checks.fit(changed=changed, crawl_rate=self.crawl_rate if crawl_rate is None else crawl_rate, **{"earlier crawls": state})
        return changed

    def _moment_grid(self, change_rate, n_crawls):
        if self.crawl_rate.ndim:
            raise ValueError(f"crawl_rate must be a single number for moments, got shape {self.crawl_rate.shape}")
        change_rate = _checks.positive("change_rate", change_rate)
        if np.ndim(n_crawls) == 0:
            crawls = np.arange(1, _checks.count("n_crawls", n_crawls) + 1)
        else:
            crawls = np.array([_checks.count("n_crawls", n) for n in n_crawls])
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
            new = _checks.positive("crawl_rate", crawl_rate)
            same = new == self.crawl_rate
            self._n, self._n_changed, self.crawl_rate = self._n * same, self._n_changed * same, new
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
                spread = 12.0 * np.sqrt(n * p * (1 - p)) + 12.0  # what lies outside has a probability below 1e-20
                seen = np.arange(max(0, int(n * p - spread)), min(n, int(n * p + spread)) + 1)
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
        return Guarantee(False, None, "inconsistent: changes between two crawls count as one")


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
            raise ValueError(f"offset must be positive and finite from the first crawl on, got {self._offset(1.0)!r} at k = 1")

    def _offset(self, n):
        return self.offset(n) if callable(self.offset) else self.offset

    def _value(self, n, n_changed):
        return _kernels.counted_rate(n_changed, n, self._offset(n), self.crawl_rate)

    def guarantee(self):
        """Theorem 1 of [peva22]: consistent if offset / k -> 0, with error O(max(k^-1/2, offset / k))."""
        growth = -_decay(self.offset)[0] if callable(self.offset) else 0.0
        converges = _between(growth, -np.inf, 1.0 - 0.01, not callable(self.offset))
        reason = f"Theorem 1 needs offset / k -> 0; this offset grows as k^{growth:.2f}"
        return Guarantee(converges, min(0.5, 1.0 - growth) if converges else None, reason)


class _Stepping(_Online):
    """Estimators that move a state by steps that shrink; `_advance` is affine in the state, whose first entry is the estimate."""

    def __init__(self, crawl_rate, initial, *rest):
        super().__init__(crawl_rate)
        self._state = self._start = (_checks.finite("initial", initial), *rest)
        self._k = 0

    @property
    def estimate(self):
        """The present estimates, 1/time; `initial` before the first crawl."""
        return self._state[0]

    def update(self, changed, *, interval=None, crawl_rate=None):
        """Take in one more crawl of every page and return the new estimates, 1/time.

        changed : bool or 0/1, array of pages. interval : ignored. crawl_rate : the rate from now on; iterate and steps go on.
        """
        changed = self._bits(changed, crawl_rate, self.estimate)
        if crawl_rate is not None:
            self.crawl_rate = _checks.positive("crawl_rate", crawl_rate)
        self._state = self._advance(changed, self._k, *self._state)
        self._k += 1
        return self.estimate

    def moments(self, change_rate, n_crawls):
        """Exact bias and root mean squared error under Poisson crawls, from the recursion of the second moments.

        change_rate : float or array. n_crawls : int (all of 1 to n_crawls) or array of crawl counts.
        Returns two arrays of shape (*change_rate.shape, n counts), 1/time.
        """
        shape, change_rate, q, crawls = self._moment_grid(change_rate, n_crawls)
        if np.ndim(self._start[0]):
            raise ValueError(f"initial must be a single number for moments, got shape {np.shape(self._start[0])}")
        size = len(self._start)
        fixed = np.zeros((size, 1, change_rate.size))
        fixed[0] = change_rate
        # the step is affine in the state: its images of the fixed point and of unit steps away from it say all
        points = fixed + np.eye(size, size + 1)[..., np.newaxis]
        constant = np.broadcast_to(np.eye(1, size + 1, k=size), (change_rate.size, 1, size + 1))
        start = np.append(self._start, 1.0) - np.append(fixed[:, 0].T, np.zeros((change_rate.size, 1)), axis=1)
        second = start[:, :, np.newaxis] * start[:, np.newaxis]  # of the deviation from the fixed point, and a constant 1
        out = np.empty((2, change_rate.size, crawls.max()))
        for k in range(crawls.max()):
            total = 0.0
            for changed, probability in ((False, 1 - q), (True, q)):
                image = np.array(self._advance(changed, k, *points)) - fixed
                image[:, :-1] -= image[:, -1:]
                step = np.concatenate([np.moveaxis(image, -1, 0), constant], axis=1)
                total = total + probability[:, np.newaxis, np.newaxis] * (step @ second @ step.swapaxes(1, 2))
            second = total
            out[:, :, k] = second[:, 0, -1], np.sqrt(np.maximum(second[:, 0, 0], 0.0))
        return out[..., crawls - 1].reshape(2, *shape, crawls.size)


class SA(_Stepping):
    """Stochastic approximation, y + step (changed (y + crawl_rate) - y). Eq. (3) of [valuetools20], eq. (2) of [peva22].

    Parameters
    ----------
    crawl_rate : float or array of pages, 1/time
    step : float or callable
        The exponent gamma of (k + 1)^-gamma, or a function of k = 0, 1, ...
    initial : float or array of pages, 1/time
    """

    def __init__(self, crawl_rate, *, step=0.75, initial=0.0):
        self.step = _sequence("step", step)
        super().__init__(crawl_rate, initial)

    def _advance(self, changed, k, y):
        return (_kernels.stochastic_step(changed, y, self.crawl_rate, _at(self.step, k)),)

    def guarantee(self):
        """Theorem 2 of [peva22]: consistent if the steps sum to infinity and their squares do not; error O(k^-gamma/2) for gamma < 1."""
        gamma, sure = _decay(self.step)
        converges = _between(gamma, 0.5, 1.0, sure)
        reason = f"Theorem 2 needs steps k^-gamma with 1/2 < gamma <= 1 for convergence, gamma < 1 for a rate; gamma = {gamma:.3g}"
        return Guarantee(converges, gamma / 2 if 0 < gamma < 1 and converges is not None else None, reason)


class SAM(_Stepping):
    """SA with heavy-ball momentum. Eqs. (3) and (10) of [peva22], in the form of eqs. (12) and (13):

    u + (eta / beta) (drift - omega u), then z + beta u. It follows SA with steps beta / omega. An estimate may dip below 0.

    Parameters
    ----------
    crawl_rate : float or array of pages, 1/time
    step, momentum : float or callable
        The sequences eta_k and beta_k: exponents of (k + 1)^-x, or functions of k = 0, 1, ...
    omega : float, positive
    initial : float or array of pages, 1/time
    """

    def __init__(self, crawl_rate, *, step=1.3, momentum=0.75, omega=1.0, initial=0.0):
        self.step = _sequence("step", step)
        self.momentum = _sequence("momentum", momentum)
        self.omega = _checks.scalar(_checks.positive, "omega", omega)
        super().__init__(crawl_rate, initial, np.asarray(0.0))

    def _advance(self, changed, k, z, u):
        beta = _at(self.momentum, k)
        u = _kernels.momentum_step(changed, u, z, self.crawl_rate, _at(self.step, k) / beta, self.omega)
        return z + beta * u, u

    def guarantee(self):
        """Theorem 3 of [peva22]: consistent for 1/2 < beta <= 1 and beta + 1/2 < eta <= 2 beta (exponents).

        For beta <= 1/2 and beta < eta <= 2 beta the paper conjectures it; so it does the error, O(k^-beta/2) up to logarithms.
        """
        (eta, sure_eta), (beta, sure_beta) = _decay(self.step), _decay(self.momentum)
        if abs(eta - beta) < 1e-9 and self.omega == 1:
            return SA(self.crawl_rate, step=self.step).guarantee()
        exponents = f"eta = {eta:.3g}, beta = {beta:.3g}"
        sure = sure_eta and sure_beta
        gamma = eta - beta
        one_timescale = abs(gamma - beta) < 1e-9
        covered = [_between(beta, 0.5, 1.0, sure), True if one_timescale else _between(gamma, 0.5, beta, sure)]
        if all(covered):
            return Guarantee(
                True,
                beta / 2,
                f"Theorem 3 ({'one' if one_timescale else 'two'}-timescale), {exponents}; its rate is conjectured",
            )
        if beta <= 0.5 and beta < eta <= 2 * beta + 1e-9:
            return Guarantee(
                None,
                beta / 2,
                f"outside Theorem 3, conjectured in section 2: beta <= 1/2, beta < eta <= 2 beta; {exponents}",
            )
        return Guarantee(
            None if None in covered else False,
            None,
            f"Theorem 3 needs 1/2 < beta <= 1, beta + 1/2 < eta <= 2 beta; {exponents}",
        )


class Averaged(_Online):
    """The mean of all estimates so far, 1/time, of an estimator that moves by steps: averaging after Polyak and Ruppert.

    With steps that shrink slower than 1 / k the mean has the asymptotic variance of the best constant in steps c / k
    (`asymptotic_variances`), which the estimator itself does not reach, and asks for no constant.

    Parameters
    ----------
    estimator : SA or SAM, not updated yet; it is copied
    """

    def __init__(self, estimator):
        self._inner, self._k = copy.deepcopy(estimator), 0
        self.estimate = self._inner.estimate

    def update(self, changed, *, interval=None, crawl_rate=None):
        """As the update of the estimator itself; returns the new means, 1/time."""
        last = self._inner.update(changed, interval=interval, crawl_rate=crawl_rate)
        self._k += 1
        self.estimate = self.estimate + (last - self.estimate) / self._k
        return self.estimate


class GammaFilter(_Online):
    """An efficient online estimator: a gamma posterior of the change rate, O(1) for each crawl, at any intervals.

    A crawl without a change is conjugate, it adds its interval w to the rate of the gamma. Of one that found a change the log-likelihood,
    log(1 - exp(-D w)), is replaced by count log D - time D of the same first two derivatives at the present estimate: with
    x = w shape / rate, count = x^2 e^x / (e^x - 1)^2, between 0 and 1, and time = (count - x / (e^x - 1)) rate / shape, from 0 to w / 2.
    A Newton step that keeps the estimate positive; its error approaches the bound of `fisher_information`, as that of `mle` does.
    What early crawls say is taken at early estimates: up to 0.3 standard deviations from the exact posterior are left at crawl_rate
    = 0.3 change_rate, 0.1 from there on upwards (measured).

    Parameters
    ----------
    shape, rate : float, and float or array of pages in units of time, positive, optional
        Gamma prior of the change rate, which acts as `shape` changes in a time `rate`. The default is half a change in 0.03 times the
        first interval of each page: weak, and high, from where the first unchanged crawl leads down at once.
    forgetting : float in (0, 1]
        Before each crawl the posterior's shape and rate shrink by this factor towards those of the prior, so that it follows a rate that
        drifts, with a memory of 1 / (1 - forgetting) crawls. 1 forgets nothing.

    Attributes
    ----------
    shape, rate : arrays of pages (rate in units of time), of the posterior; None before the first crawl

    Raises
    ------
    ValueError
        A prior that is not positive, a forgetting factor outside (0, 1]; an update without interval, or with other pages than before.
    """

    def __init__(self, *, shape=0.5, rate=None, forgetting=1.0):
        self._prior = (_checks.scalar(_checks.positive, "shape", shape), rate if rate is None else _checks.positive("rate", rate))
        self.forgetting = _checks.scalar(_checks.share, "forgetting", forgetting)
        if not self.forgetting:
            raise ValueError("forgetting must be in (0, 1], got 0.0")
        self.shape = self.rate = None

    @property
    def estimate(self):
        """The present estimates, shape / rate, 1/time: means of the posterior; None before the first crawl."""
        return None if self.shape is None else self.shape / self.rate

    def update(self, changed, *, interval=None, crawl_rate=None):
        """Take in one more crawl of every page and return the new estimates, 1/time.

        changed : bool or 0/1, array of pages. interval : float or array of pages, time since the crawl before. crawl_rate : ignored.
        """
        if interval is None:
            raise ValueError("interval must be given: the time since the crawl before, got None")
        changed, interval = _checks.bits("changed", changed), _checks.positive("interval", interval)
        if self.shape is None:
            shape, rate = self._prior
            changed, interval, rate = _checks.broadcast(changed=changed, interval=interval, rate=0.03 * interval if rate is None else rate)
            self.shape = np.full(changed.shape, shape)
            self.rate = rate.copy()
            if self.forgetting < 1:
                self._prior = shape, self.rate.copy()
        changed, interval, earlier = _checks.broadcast(**{"changed": changed, "interval": interval, "earlier crawls": self.shape})
        if earlier.shape != self.shape.shape:
            raise ValueError(f"changed and interval must have the shape of earlier crawls, {self.shape.shape}, got {earlier.shape}")
        if self.forgetting < 1:
            for prior, now in zip(self._prior, (self.shape, self.rate), strict=True):
                now *= self.forgetting
                now += (1 - self.forgetting) * prior
        _kernels.gamma_update(*(np.ascontiguousarray(a).ravel() for a in (changed, interval)), self.shape.ravel(), self.rate.ravel())
        return self.estimate

    def credible_interval(self, *, level=0.95):
        """Equal-tailed interval of the posterior: low, high, arrays of pages, 1/time. Its coverage is about nominal (measured)."""
        tail = (1 - _checks.probability("level", level)) / 2
        return tuple(scipy.special.gammaincinv(self.shape, q) / self.rate for q in (tail, 1 - tail))

    def guarantee(self):
        """Error O(k^-1/2), as that of the MLE: measured (`beyond/efficiency`), not proved; with forgetting none."""
        if self.forgetting < 1:
            return Guarantee(False, None, f"a memory of {1 / (1 - self.forgetting):.3g} crawls keeps the error from falling further")
        return Guarantee(None, 0.5, "measured, not proved")


def path(estimator, history, *, crawl_rate=None):
    """The estimate after every crawl, array of the shape of ``history.changed``, 1/time.

    Works on a copy: the estimator passed in stays as it was. Pages or runs advance together, one crawl after the other.
    `crawl_rate`, of the same shape, is the rate at which each crawl was made, should it have changed over time.
    """
    estimator = copy.deepcopy(estimator)
    if crawl_rate is not None:
        crawl_rate = _checks.positive("crawl_rate", crawl_rate)
        if crawl_rate.shape != history.changed.shape:
            raise ValueError(f"crawl_rate must have the shape of changed, {history.changed.shape}, got {crawl_rate.shape}")
    if history.offsets is not None:  # what a shorter page does after its end is not looked at
        here = np.arange(history.n_crawls.max()) < history.n_crawls[:, np.newaxis]

        def dense(values, filler):
            out = np.full(here.shape, filler)
            out[here] = values
            return out

        rate = None if crawl_rate is None else dense(crawl_rate, 1.0)
        return path(estimator, History(dense(history.interval, 1.0), dense(history.changed, False)), crawl_rate=rate)[here]
    out = np.empty((history.changed.shape[-1], *history.shape))
    for k in range(len(out)):
        rate = {} if crawl_rate is None else {"crawl_rate": crawl_rate[..., k]}
        out[k] = estimator.update(history.changed[..., k], interval=history.interval[..., k], **rate)
    return np.moveaxis(out, 0, -1)


def paths(history, **estimators):
    """`path` of each named online estimator; a function, such as `mle_path`, is called with the history. Dictionary by name."""
    return {name: e(history) if callable(e) else path(e, history) for name, e in estimators.items()}


def snapshots(history, counts, **estimators):
    """Estimates after each of `counts` crawls, dictionary by name of arrays of shape (..., n counts), of a history without offsets.

    As in `paths`, but a function, such as `mle`, is called with each shorter history.
    """
    counts = np.asarray(counts)
    shorter = [History(history.interval[..., :n], history.changed[..., :n]) for n in counts.tolist()]
    return {
        name: np.stack([e(h) for h in shorter], axis=-1) if callable(e) else path(e, shorter[-1])[..., counts - 1]
        for name, e in estimators.items()
    }


def after(paths, n_crawls):
    """The estimates of all runs after `n_crawls` crawls, for each named array of shape (n_runs, n)."""
    shortest = min(values.shape[-1] for values in paths.values())
    if not 1 <= n_crawls <= shortest:
        raise ValueError(f"n_crawls must be from 1 to {shortest}, the number of crawls in a run, got {n_crawls!r}")
    return {name: values[:, n_crawls - 1] for name, values in paths.items()}


def rmse(paths, change_rate):
    """Root mean squared error over runs after every crawl, for each named array of shape (n_runs, n_crawls); 1/time."""
    return {name: np.sqrt(np.mean((values - change_rate) ** 2, axis=0)) for name, values in paths.items()}


def summary(paths, change_rate):
    """Bias, standard deviation and RMSE after the last crawl, one line of text per named array of shape (n_runs, n_crawls)."""
    last = {name: values[:, -1] - change_rate for name, values in paths.items()}
    row = "{:<12}{:>10.3g}{:>10.3g}{:>10.3g}".format
    lines = [row(name, e.mean(), e.std(), np.sqrt(np.mean(e**2))) for name, e in last.items()]
    return "\n".join(["{:<12}{:>10}{:>10}{:>10}".format("estimator", "bias", "sd", "RMSE"), *lines])
