-- JSON Lines for a crawler of one's own, the first that is due first; `rate` in crawls
-- a day.

select json_object(
    'url', url,
    'due', strftime(due, '%Y-%m-%dT%H:%M:%SZ'),
    'interval_s', round(seconds)::bigint,
    'rate', crawl_rate
)
from plan
order by due, row
