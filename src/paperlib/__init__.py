"""Estimators and policies of five papers on web-page changes and crawl scheduling."""
