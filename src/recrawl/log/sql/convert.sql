-- Write what is known of all pages as a table with our own columns.
-- Parameter: $failed, the reason of failed fetches, which are rows too.

select
    url,
    make_timestamptz(t) as time,
    changed,
    -- an empty bit without a status would begin an interval
    case when used(reason) then status else coalesce(status, -1) end as status,
    importance,
    host,
    make_timestamptz(start) as start,
    make_timestamptz(last_modified) as last_modified
from crawl
where used(reason) or reason = $failed
order by all
