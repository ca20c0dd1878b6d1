"""Estimators of the change rate of a page, from a bit per crawl or from more.

From a whole history: `naive`, `mle`, `moment_matching`, with `likelihood_interval`
and `fisher_information`. Whether a page is Poisson: `serial_score`, and by how
much the variance of its estimated rate is inflated: `dispersion`,
`pooled_dispersion`, `shrunk_dispersion`, with `log_information`, `log_stderr`
and `mean_log_rate`. Crawls that find changes where there were none:
`false_changes`, `false_change_test`, `design_variance`.
"""

from recrawl.errors import (
    ConvergenceError,
    DegenerateHistoryWarning,
    UnidentifiedWarning,
)
from recrawl.science.estimators.batch import (
    mle,
    moment_matching,
    naive,
)
from recrawl.science.estimators.diagnostics import serial_score, serial_sums
from recrawl.science.estimators.dispersion import (
    dispersion,
    log_information,
    log_stderr,
    mean_log_rate,
    pooled_dispersion,
    shrunk_dispersion,
)
from recrawl.science.estimators.false_changes import (
    FalseChangeFit,
    FalseChangeTest,
    design_variance,
    false_change_test,
    false_changes,
)
from recrawl.science.estimators.information import fisher_information
from recrawl.science.estimators.intervals import likelihood_interval

__all__ = [
    "ConvergenceError",
    "DegenerateHistoryWarning",
    "FalseChangeFit",
    "FalseChangeTest",
    "UnidentifiedWarning",
    "design_variance",
    "dispersion",
    "false_change_test",
    "false_changes",
    "fisher_information",
    "likelihood_interval",
    "log_information",
    "log_stderr",
    "mean_log_rate",
    "mle",
    "moment_matching",
    "naive",
    "pooled_dispersion",
    "serial_score",
    "serial_sums",
    "shrunk_dispersion",
]
