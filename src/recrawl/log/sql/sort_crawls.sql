-- The crawls that are used, by page and time.
-- Where a page's first row tells of no change since the last one, as in a dump of
-- states, no rate is taken of it. Its time begins with a change that is not counted,
-- and would make rates too low; as the age of a copy it would make them too high, for
-- the change is dated by the fetch that found it, later than it was.

create table sorted as
with crawls as (
    select
        *,
        coalesce(
            start = last_modified and not changed and t = epoch_us(first_crawl), false
        ) as bare
    from page
    join crawl using (url)
    where used(reason)
)

select
    i,
    t,
    changed,
    case when bare then t else start end as start,
    case when not bare then last_modified end as last_modified
from crawls
order by i, t, start nulls first
