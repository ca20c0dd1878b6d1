-- JSON Lines for a crawler of one's own, the first that is due first.

select json_object(
    'url', url,
    'due', strftime(due, '%Y-%m-%dT%H:%M:%SZ'),
    'interval_s', round(seconds)::bigint
)
from plan
order by due, row
