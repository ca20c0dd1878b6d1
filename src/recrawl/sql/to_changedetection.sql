-- Watches and their intervals: null for a page that is never to be checked.

select id, case when not never then seconds end
from page
join item using (url)
order by row, id
