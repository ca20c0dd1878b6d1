-- Rows, at most a fourth, that are before the others by more than twenty times as long
-- as these last: how many, and how long before.

with timed as (
    select t from crawl where plausible(t)
    union all
    select t from fetches where plausible(t)
),

others as (
    select approx_quantile(t, 0.25) as first, max(t) as last from timed
)

select count(*), first - max(t)
from timed
cross join others
where t < last - 20 * (last - first) and first < last
group by first
