"""Estimators of the change rate of a page, from a bit per crawl or from more.

From a whole history: `naive`, `bias_reduced`, `mle`, `moment_matching`, and from
ages and feeds `last_modified`, with `likelihood_interval`, `counting_interval`
and `confidence_radius`. Online, one crawl at a time:
`Naive`, `LLN`, `SA`, `SAM`, `Averaged`, `GammaFilter` (`filtered` runs it over
whole histories), all of them `OnlineEstimator`. Theory: `affinity`,
`fisher_information`, `asymptotic_variances`. Over crawls and runs: `path`,
`paths`, `snapshots`, `mle_path`, `after`, `rmse`, `summary`. Whether a page is Poisson:
`serial_score`, and how much less its bits then tell: `dispersion`,
`pooled_dispersion`, `shrunk_dispersion`, with `log_information`, `log_stderr`
and `mean_log_rate`.
Crawls that find changes where there were none: `false_changes`,
`false_change_test`, `false_change_score`, `design_variance`.
"""

from recrawl.errors import (
    ConvergenceError,
    DegenerateHistoryWarning,
    UnidentifiedWarning,
)
from recrawl.science.estimators.batch import (
    bias_reduced,
    last_modified,
    mle,
    mle_path,
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
    false_change_score,
    false_change_test,
    false_changes,
)
from recrawl.science.estimators.gamma_filter import GammaFilter, filtered
from recrawl.science.estimators.information import (
    affinity,
    asymptotic_variances,
    fisher_information,
)
from recrawl.science.estimators.intervals import (
    confidence_radius,
    counting_interval,
    likelihood_interval,
)
from recrawl.science.estimators.online import LLN, Guarantee, Naive, OnlineEstimator
from recrawl.science.estimators.paths import (
    after,
    path,
    paths,
    rmse,
    snapshots,
    summary,
)
from recrawl.science.estimators.stepping import SA, SAM, Averaged

__all__ = [
    "LLN",
    "SA",
    "SAM",
    "Averaged",
    "ConvergenceError",
    "DegenerateHistoryWarning",
    "FalseChangeFit",
    "FalseChangeTest",
    "GammaFilter",
    "Guarantee",
    "Naive",
    "OnlineEstimator",
    "UnidentifiedWarning",
    "affinity",
    "after",
    "asymptotic_variances",
    "bias_reduced",
    "confidence_radius",
    "counting_interval",
    "design_variance",
    "dispersion",
    "false_change_score",
    "false_change_test",
    "false_changes",
    "filtered",
    "fisher_information",
    "last_modified",
    "likelihood_interval",
    "log_information",
    "log_stderr",
    "mean_log_rate",
    "mle",
    "mle_path",
    "moment_matching",
    "naive",
    "path",
    "paths",
    "pooled_dispersion",
    "rmse",
    "serial_score",
    "serial_sums",
    "shrunk_dispersion",
    "snapshots",
    "summary",
]
