-- Pages and their intervals, for cron and systemd.

select url, seconds
from plan
order by row
