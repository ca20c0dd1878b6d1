-- The crawls that are used, by page and time.

create table sorted as
select i, t, changed, start, last_modified
from page
join crawl using (url)
where used(reason)
order by i, t, start nulls first
