-- Pages and their intervals, for cron.

select url, seconds
from plan
order by row
