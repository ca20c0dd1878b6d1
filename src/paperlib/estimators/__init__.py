"""Estimators of the change rate of a page from one bit per crawl.

Online, one crawl at a time: `Naive`, `LLN`, `SA`, `SAM`, any
`OnlineEstimator`. From a whole history: `naive`, `bias_reduced`, `mle`,
`moment_matching`, with `log_likelihood`. After every crawl and over runs:
`path`, `paths`, `mle_path`, `rmse`. What can be reached: `fisher_information`,
`confidence_radius`; `disjoint_blocks` and
`block_share` of crawls that are given in advance.
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
