-- What a log holds, in one row; days are null without dates.
-- Parameter: $rates, a pattern that matches what `estimate` wrote.

select
    count(distinct host) as hosts,
    sum(n_crawls)::bigint as crawls,
    sum(n_changed)::bigint as changes,
    strftime(min(first_crawl), '%Y-%m-%d %H:%M') as first,
    strftime(max(last_crawl), '%Y-%m-%d %H:%M') as last,
    date_diff('microsecond', min(first_crawl), max(last_crawl)) / 86400e6 as days,
    median(change_rate) filter (n_crawls > 0) as median_rate
from read_parquet($rates, hive_partitioning = false)
