-- Ten pages that a schedule crawls more often than the log did, by the freshness that
-- they gain, and ten that it crawls less often, by the crawls that they give back.
-- Parameters: $rates and $schedule, patterns that match the two files, whose rows are
-- those of the same pages.

with page as (
    select
        rates.url,
        n_crawls / (date_diff('microsecond', first_crawl, last_crawl) / 86400e6) as now,
        crawl_rate as planned,
        importance * (schedule.freshness - schedule.freshness_now) as gain
    from read_parquet($rates, hive_partitioning = false) as rates
    positional join read_parquet($schedule, hive_partitioning = false) as schedule
    where n_crawls > 0 and first_crawl < last_crawl and not gone
)
select url, now, planned, planned > now as rarely
from page
where planned <> now
qualify row_number() over (
    partition by planned > now
    order by if(planned > now, gain, now - planned) desc, url
) <= 10
order by rarely desc, if(planned > now, gain, now - planned) desc, url
