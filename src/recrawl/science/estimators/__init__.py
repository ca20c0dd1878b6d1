"""Estimators of the change rate of a page, from a bit per crawl or from more.

From a whole history: `naive`, `bias_reduced`, `mle`, `moment_matching`, with
`likelihood_interval` and `confidence_radius`. Online, one crawl at a time:
`Naive`, `LLN`, `SA`, `SAM`, `GammaFilter` (`filtered` runs it over whole
histories), all of them `OnlineEstimator`. Theory: `affinity`,
`fisher_information`, `asymptotic_variances`. Over crawls and runs: `path`,
`paths`, `mle_path`, `rmse`. Whether a page is Poisson: `serial_score`, and by how
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
    bias_reduced,
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
    likelihood_interval,
)
from recrawl.science.estimators.online import LLN, Naive, OnlineEstimator
from recrawl.science.estimators.paths import (
    path,
    paths,
    rmse,
)
from recrawl.science.estimators.stepping import SA, SAM

__all__ = [
    "LLN",
    "SA",
    "SAM",
    "ConvergenceError",
    "DegenerateHistoryWarning",
    "FalseChangeFit",
    "FalseChangeTest",
    "GammaFilter",
    "Naive",
    "OnlineEstimator",
    "UnidentifiedWarning",
    "affinity",
    "asymptotic_variances",
    "bias_reduced",
    "confidence_radius",
    "design_variance",
    "dispersion",
    "false_change_test",
    "false_changes",
    "filtered",
    "fisher_information",
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
]
