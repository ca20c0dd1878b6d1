-- What dumps of states tell of each page. Of one dump: no change since the last one.
-- Of two: whether the last change of the later dump is after the last fetch of the
-- earlier one; what the state of earlier logs knows counts as the earliest dump.
-- A change that is known to the fetch which found it is a bit of the interval
-- that ended there.

insert into crawl by name
with known as (
    select
        url,
        last_fetch,
        -- crawlers that note the change after the fetch date it later
        case when last_change > last_fetch then last_fetch else last_change end
            as last_change,
        file,
        row
    from page_state
    where reason is null

    union all by name
    select url, epoch_us(last_crawl) as last_fetch
    from state
    where last_crawl is not null
),

-- Two dumps without a fetch between them say the same.
dumps as (
    select
        url,
        last_fetch,
        max(last_change) as last_change,
        max(file) as file,
        max(row) as row
    from known
    group by url, last_fetch
),

pairs as (
    select
        *,
        lag(last_fetch) over (partition by url order by last_fetch) as before,
        -- or no more than a second after that fetch, which then found it
        last_change > before + 1000000 as found
    from dumps
),

intervals as (
    -- No change from the last one, or from the fetch of the earlier dump, on: what
    -- began the latter is the row before. A page that changed at its last fetch is
    -- known, but has no interval, or that which ended with the change.
    select
        url,
        case when before is null then coalesce(last_change, last_fetch) end as start,
        last_fetch as t,
        false as changed,
        file,
        row
    from pairs
    where
        file is not null
        and not coalesce(found and last_change = last_fetch, false)

    union all
    -- a change between the fetch of the earlier dump and the one that found it
    select url, null, last_change, true, file, row
    from pairs
    where found
)

select *
from intervals

union all by name
select url, last_fetch as t, status, file, row, reason, given
from page_state
where reason is not null
