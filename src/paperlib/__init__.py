"""Five papers on keeping a web copy fresh: change-rate estimators, crawl policies, and every figure rebuilt."""

__version__ = "0.1.0"
