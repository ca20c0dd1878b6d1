-- The pages of a schedule: how long they wait, whether they can be written.
-- Parameters: $schedule, a pattern that matches the file; $until, microseconds
-- since 1970 or null; $now, likewise; $unfit, a regular expression of the URLs
-- that the crawler's file cannot hold; $forever, seconds that mean never.

create table page as
with scheduled as (
    -- by name: these columns are null where the file has none
    select null::double as threshold, null::double as signal_days
    where false
    union all by name
    select *
    from read_parquet($schedule, file_row_number = true, hive_partitioning = false)
), waiting as (
    select
        file_row_number as row,
        url,
        crawl_rate,
        case when crawl_rate > 0 then
            coalesce(86400 * threshold, 86400 / crawl_rate)
        end as seconds,
        86400 * signal_days as signal_seconds,
        -- a page that waits, but is never due, was not crawled yet
        coalesce(due::timestamptz, make_timestamptz($now)) as due
    from scheduled
)
select
    *,
    not coalesce(seconds < $forever, false) as never,
    regexp_matches(url, $unfit) or not regexp_matches(url, '^(?i:https?)://[^/]')
        as unfit
from waiting
where never or $until is null or epoch_us(due) <= $until
