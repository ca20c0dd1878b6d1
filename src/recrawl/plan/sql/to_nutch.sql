-- Seeds of Nutch 1 with intervals, whole seconds within its own limits.

with whole as (
    select
        row,
        url,
        least(greatest(round(seconds), 60), 7776000)::bigint as seconds
    from plan
)
select
    url || chr(9) || 'nutch.fetchInterval='
    -- inject -update ignores an interval that equals the default
    || case when seconds = 2592000 then 2592001 else seconds end
from whole
order by row
