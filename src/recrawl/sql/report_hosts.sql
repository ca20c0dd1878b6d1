-- Hosts with flagged pages, those with most pages that always change first. $most
-- is their number.

select
    host,
    count(*) as pages,
    count(*) filter (measured) as measured,
    count(*) filter (always) as always,
    count(*) filter (never) as never,
    count(*) filter (bursty) as bursty,
    count(*) filter (gone) as gone,
    count(*) filter (unfetched) as unfetched,
    -- a page to look at
    coalesce(
        min(url) filter (always),
        min(url) filter (unfetched or incomparable),
        min(url) filter (bursty),
        min(url) filter (gone),
        min(url) filter (never)
    ) as example,
    count(*) over () as of_hosts
from rated
group by host
having example is not null
order by always desc, unfetched desc, bursty desc, gone desc, never desc, host
limit $most
