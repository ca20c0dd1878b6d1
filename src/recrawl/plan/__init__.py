"""The plan: crawl rates under limits, a schedule, and files for crawlers."""
