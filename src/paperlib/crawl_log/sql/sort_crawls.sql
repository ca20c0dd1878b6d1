-- The crawls that are used, by page and time.

create table sorted as
select i, t, changed
from page
join crawl using (url)
where reason is null
order by i, t
