-- What fetches tell of hosts whose pages are not what they seem.

-- One body under many addresses of a host: an error page that is sent with 200.
create table shared_body as
select host_of(url) as host, count(distinct url) as n_urls
from fetches
where reason is null and digest is not null and coalesce(status, 200) <> 304
group by host_of(url), digest
having n_urls >= 10
order by 2 desc, 1
limit 1000;

-- Dates that the server makes up when it answers.
create table dated_now as
select host_of(url) as host
from fetches
where reason is null and last_modified is not null
group by host_of(url)
having 2 * count(*) filter (abs(t - last_modified) <= 2000000) > count(*)
