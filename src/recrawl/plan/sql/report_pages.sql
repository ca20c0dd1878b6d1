-- Ten pages that a schedule crawls more often than the log did, by the freshness that
-- they gain, and ten that it crawls less often, by the crawls that they give back.
-- Parameters: $rates and $schedule, patterns that match the two files, whose rows are
-- those of the same pages; $suspects, hosts whose pages are left out.

with page as (
    select
        rates.url,
        n_crawls / (date_diff('microsecond', first_crawl, last_crawl) / 86400e6) as now,
        crawl_rate as planned,
        planned > now as rarely,
        if(
            rarely,
            importance * (schedule.freshness - schedule.freshness_now),
            now - planned
        ) as gain
    from read_parquet($rates, hive_partitioning = false) as rates
    positional join read_parquet($schedule, hive_partitioning = false) as schedule
    where n_crawls > 0 and first_crawl < last_crawl and not gone
        and not list_contains($suspects, host)
)
select url, now, planned, rarely
from page
where planned <> now
qualify row_number() over (partition by rarely order by gain desc, url) <= 10
order by rarely desc, gain desc, url
