"""Estimators of the change rate of a page from one bit per crawl.

Online, one crawl at a time: `Naive`, `LLN`, `SA`, `SAM`, any
`OnlineEstimator`. From a whole history: `naive`, `bias_reduced`, `mle`,
`moment_matching`, with `log_likelihood`. After every crawl and over runs:
`path`, `paths`, `mle_path`, `rmse`. What can be reached: `fisher_information`,
`asymptotic_variances`, `affinity`, `confidence_radius`.
"""

from .batch import bias_reduced, log_likelihood, mle, mle_path, moment_matching, naive
from .information import (
    affinity,
    asymptotic_variances,
    confidence_radius,
    fisher_information,
)
from .online import LLN, SA, SAM, Naive, OnlineEstimator, path, paths, rmse

__all__ = [
    "LLN",
    "SA",
    "SAM",
    "Naive",
    "OnlineEstimator",
    "affinity",
    "asymptotic_variances",
    "bias_reduced",
    "confidence_radius",
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
