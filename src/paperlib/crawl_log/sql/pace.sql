-- Intervals between crawls, and the days that they fill. Rows with a start of
-- their own are no crawls (states, changes), but for fetches without a former one
-- to be compared with, whose interval has no length.

select
    count(*) - count(distinct i) as intervals,
    (max(t) - min(t)) / 86400e6 as days
from (select distinct i, t from sorted where start is null or start = t)
