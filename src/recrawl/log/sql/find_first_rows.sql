-- Rows, at most a tenth, that are before the others by more than twenty times as long
-- as these last, which is a day or more: how many, and how long before.

with timed as (
    select t from crawl where plausible(t)
    union all
    select t from fetches where plausible(t)
),

others as (
    select approx_quantile(t, 0.1) as first, max(t) as last, count(*) as n from timed
)

select count(*), first - max(t)
from timed
cross join others
where t < last - 20 * (last - first) and last - first > 86400000000
group by first, n
having 10 * count(*) <= n
