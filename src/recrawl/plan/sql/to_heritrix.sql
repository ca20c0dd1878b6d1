-- Lines of an action file of Heritrix 3: F+ fetches a URL that was fetched before.

select 'F+ ' || url
from plan
order by due, row
