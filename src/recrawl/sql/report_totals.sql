-- The log and its flags in one row.

select
    count(*) as pages,
    count(distinct host) as hosts,
    sum(n_crawls)::double as crawls,
    sum(n_changed)::double as changes,
    sum(n_failed)::bigint as failed,
    min(first_crawl)::timestamp as first,  -- one with a zone needs pytz
    max(last_crawl)::timestamp as last,
    date_diff('microsecond', min(first_crawl), max(last_crawl)) / 86400e6 as days,
    count(*) filter (measured) as measured,
    count(*) filter (never) as never,
    count(*) filter (always) as always,
    count(*) filter (bursty) as bursty,
    count(*) filter (regular) as regular,
    count(*) filter (gone) as gone,
    count(*) filter (unfetched) as unfetched,
    count(*) filter (incomparable) as incomparable,
    count(*) filter (fetched and not measured) as once,
    count(factor) as limited,
    median(change_rate) filter (measured) as median_rate,
    median(factor) as median_factor
from rated
