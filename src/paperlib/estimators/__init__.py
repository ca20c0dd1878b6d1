"""Estimators of the change rate of a page from one bit per crawl.

Online estimators process one crawl at a time: `Naive`, `LLN`, `SA`, `SAM`, any
`OnlineEstimator`. Batch estimators use a whole history: `naive`,
`bias_reduced`, `mle`, `moment_matching`; see also `log_likelihood`. Estimates
after every crawl: `path`, `paths`, `mle_path`, with errors `rmse`. Limits of
every estimator: `fisher_information`, `confidence_radius`, `disjoint_blocks`,
`block_share`.
"""

from .batch import bias_reduced, log_likelihood, mle, mle_path, moment_matching, naive
from .information import (
    block_share,
    confidence_radius,
    disjoint_blocks,
    fisher_information,
)
from .online import LLN, SA, SAM, Naive, OnlineEstimator, path, paths, rmse

__all__ = [
    "LLN",
    "SA",
    "SAM",
    "Naive",
    "OnlineEstimator",
    "bias_reduced",
    "block_share",
    "confidence_radius",
    "disjoint_blocks",
    "fisher_information",
    "log_likelihood",
    "mle",
    "mle_path",
    "moment_matching",
    "naive",
    "path",
    "paths",
    "rmse",
]
