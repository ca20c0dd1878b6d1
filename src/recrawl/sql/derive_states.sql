-- What dumps of states tell of each page. Of two: whether the page changed from the
-- fetch of the earlier one to that of the later one, which is whether the later one's
-- last change is after the former. What the state of earlier logs knows counts as the
-- earliest dump. Of one dump alone: no change since the last one.
-- The time of the last change is not used beyond that. It is that of the fetch which
-- found it, and when the page was fetched before that is not known: an interval with
-- a change that ended there, and one without from there on, would make the rates of
-- pages that are fetched more often than dumped too low. So would the time without a
-- change before the first of several dumps, which begins with a change.

insert into crawl by name
with known as (
    select url, last_fetch, last_change, file, row
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
        lag(last_fetch) over in_time as before,
        lead(last_fetch) over in_time as after
    from dumps
    window in_time as (partition by url order by last_fetch)
)

select
    url,
    -- null: from the fetch of the earlier dump on, if there is one
    case
        -- crawlers that note the change after the fetch date it later
        when coalesce(before, after) is null then least(last_change, last_fetch)
    end as start,
    last_fetch as t,
    -- or no more than a second after the earlier fetch, which then found it
    coalesce(last_change > before + 1000000, false) as changed,
    file,
    row
from pairs
where file is not null

union all by name
select url, last_fetch as t, status, file, row, reason, given
from page_state
where reason is not null
