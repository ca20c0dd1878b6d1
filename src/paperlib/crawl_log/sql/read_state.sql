-- Read what earlier logs left, of the pages of this share of the log.
-- Parameter: $state, the file.

insert into state
select
    url,
    host,
    importance,
    first_crawl,
    last_crawl,
    last_row,
    gone,
    n_failed,
    interval,
    bits,
    n,
    aged,
    signal,
    lag,
    lag_squares
from read_parquet($state)
where in_share(url)
