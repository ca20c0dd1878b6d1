-- How many signals came to each page between two crawls: each belongs to the
-- first crawl after it.

create table with_signals as
with belonging as (
    select page.i, signal.t as sent
    from signal
    join page using (url)
    where
        signal.reason is null
        and not coalesce(signal.repeated, false)
        -- those before it were counted with the log that the state knows
        and signal.t > known_crawl
),

counted as (
    select sorted.i, sorted.t, count(*) as n_signals
    from belonging
    asof join sorted
        on belonging.i = sorted.i and belonging.sent <= sorted.t
    group by all
)

select sorted.*, coalesce(counted.n_signals, 0)::integer as n_signals
from sorted
left join counted using (i, t)
order by sorted.i, sorted.t, sorted.start nulls first;

drop table sorted;

alter table with_signals rename to sorted
