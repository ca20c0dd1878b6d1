-- One URL a line, the first that is due first.

select url
from plan
order by due, row
