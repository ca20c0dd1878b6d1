-- The crawls that are used, by page and time.

create table sorted as
select
    i,
    t,
    changed,
    -- Where the first row tells of no change since the last one, as in a dump of
    -- states, the time begins with a change that is not counted: with it rates
    -- would be too low.
    case
        when start = last_modified and not changed and t = epoch_us(first_crawl)
            then t
        else start
    end as start,
    last_modified
from page
join crawl using (url)
where used(reason)
order by i, t, start nulls first
