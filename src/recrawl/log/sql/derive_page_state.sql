-- What dumps of states tell of each page. Of two: whether the page changed from the
-- fetch of the earlier one to that of the later one, which is whether the later one's
-- last change is another one, after the former. What the state of earlier logs knows
-- counts as the earliest dump. Of the first: no change since the last one, which
-- `sort_crawls.sql` keeps from the estimates.
-- The time of the last change is not used beyond that. It is that of the fetch which
-- found it, and when the page was fetched before that is not known: an interval with
-- a change that ended there, and one without from there on, would make the rates of
-- pages that are fetched more often than dumped too low.

insert into crawl by name
with known as (
    select url, t, last_change, true as in_log
    from page_state
    where reason is null

    union all by name
    select url, epoch_us(last_crawl) as t, false as in_log
    from state
    where last_crawl is not null
),

-- Two dumps without a fetch between them say the same.
dumps as (
    select
        url,
        t,
        max(last_change) as last_change,
        bool_or(in_log) as in_log
    from known
    group by url, t
),

pairs as (
    select
        *,
        lag(t) over in_time as before,
        lag(last_change) over in_time as known_change
    from dumps
    window in_time as (partition by url order by t)
)

select
    url,
    -- given, because between two dumps there can be more than one crawl
    coalesce(before, least(last_change, t)) as start,
    t,
    -- (the earlier fetch found a change that is dated within a second after it)
    coalesce(
        last_change > before + 1000000
        and last_change is distinct from known_change,
        false
    ) as changed,
    -- crawlers that note the change after the fetch date it later
    case when before is null then least(last_change, t) end as last_modified
from pairs
where in_log

union all by name
select url, t, status, file, row, reason, given
from page_state
where reason is not null
