"""Online estimators that move by steps."""

import copy

import numpy as np

from paperlib import checks
from paperlib._kernels import online as kernels
from paperlib.estimators.online import (
    Guarantee,
    _at,
    _between,
    _decay,
    _Online,
    _sequence,
)


class _Stepping(_Online):
    """Estimators that move a state by steps that shrink; `_advance` is affine in the state, whose first entry is the estimate."""

    def __init__(self, crawl_rate, initial, *rest):
        super().__init__(crawl_rate)
        self._state = self._start = (checks.finite("initial", initial), *rest)
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
            self.crawl_rate = checks.positive("crawl_rate", crawl_rate)
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
            raise ValueError(
                f"initial must be a single number for moments, got shape {np.shape(self._start[0])}"
            )
        size = len(self._start)
        fixed = np.zeros((size, 1, change_rate.size))
        fixed[0] = change_rate
        # the step is affine in the state: its images of the fixed point and of unit steps away from it say all
        points = fixed + np.eye(size, size + 1)[..., np.newaxis]
        constant = np.broadcast_to(
            np.eye(1, size + 1, k=size), (change_rate.size, 1, size + 1)
        )
        start = np.append(self._start, 1.0) - np.append(
            fixed[:, 0].T, np.zeros((change_rate.size, 1)), axis=1
        )
        second = (
            start[:, :, np.newaxis] * start[:, np.newaxis]
        )  # of the deviation from the fixed point, and a constant 1
        out = np.empty((2, change_rate.size, crawls.max()))
        for k in range(crawls.max()):
            total = 0.0
            for changed, probability in ((False, 1 - q), (True, q)):
                image = np.array(self._advance(changed, k, *points)) - fixed
                image[:, :-1] -= image[:, -1:]
                step = np.concatenate([np.moveaxis(image, -1, 0), constant], axis=1)
                total = total + probability[:, np.newaxis, np.newaxis] * (
                    step @ second @ step.swapaxes(1, 2)
                )
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
        return (
            kernels.stochastic_step(changed, y, self.crawl_rate, _at(self.step, k)),
        )

    def guarantee(self):
        """Theorem 2 of [peva22]: consistent if the steps sum to infinity and their squares do not; error O(k^-gamma/2) for gamma < 1."""
        gamma, sure = _decay(self.step)
        converges = _between(gamma, 0.5, 1.0, sure)
        reason = f"Theorem 2 needs steps k^-gamma with 1/2 < gamma <= 1 for convergence, gamma < 1 for a rate; gamma = {gamma:.3g}"
        return Guarantee(
            converges,
            gamma / 2 if 0 < gamma < 1 and converges is not None else None,
            reason,
        )


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
        self.omega = checks.scalar(checks.positive, "omega", omega)
        super().__init__(crawl_rate, initial, np.asarray(0.0))

    def _advance(self, changed, k, z, u):
        beta = _at(self.momentum, k)
        u = kernels.momentum_step(
            changed, u, z, self.crawl_rate, _at(self.step, k) / beta, self.omega
        )
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
        covered = [
            _between(beta, 0.5, 1.0, sure),
            True if one_timescale else _between(gamma, 0.5, beta, sure),
        ]
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
