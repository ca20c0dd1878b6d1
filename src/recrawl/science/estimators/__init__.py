"""Estimates of the change rate of a page from its crawls, and how sure they are.

From the likelihood: `mle`, `likelihood_interval`, `log_information`, `log_stderr`
and `mean_log_rate`. Whether changes are Poisson, and by how much the variance of an
estimated rate is inflated if not: `serial_sums`, `dispersion`, `pooled_dispersion`
and `shrunk_dispersion`.
"""

from recrawl.science.estimators.dispersion import (
    dispersion,
    pooled_dispersion,
    serial_sums,
    shrunk_dispersion,
)
from recrawl.science.estimators.likelihood import (
    LEVEL,
    likelihood_interval,
    log_information,
    log_stderr,
    mean_log_rate,
    mle,
)

__all__ = [
    "LEVEL",
    "dispersion",
    "likelihood_interval",
    "log_information",
    "log_stderr",
    "mean_log_rate",
    "mle",
    "pooled_dispersion",
    "serial_sums",
    "shrunk_dispersion",
]
