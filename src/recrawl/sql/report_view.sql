-- What a report tells of each page, from the rates that `estimate` wrote.
-- $rates is replaced by the file's pattern, for a view takes no parameter.

create or replace temp view rated as
select
    url,
    host,
    n_crawls,
    n_changed,
    n_failed,
    first_crawl,
    last_crawl,
    change_rate,
    low,
    high,
    first_crawl is not null as fetched,
    first_crawl is null and n_incomparable = 0 as unfetched,
    first_crawl is null and n_incomparable > 0 as incomparable,
    n_crawls > 0 as measured,
    coalesce(degenerate = 'never', false) as never,
    coalesce(degenerate = 'always', false) as always,
    coalesce(pattern = 'bursty', false) as bursty,
    coalesce(pattern = 'regular', false) as regular,
    gone,
    -- how many times the upper limit is the lower one; null where it is not
    -- limited on both sides
    case when n_crawls > 0 and low > 0 and isfinite(high) then high / low end
        as factor
from read_parquet($rates, hive_partitioning = false)
