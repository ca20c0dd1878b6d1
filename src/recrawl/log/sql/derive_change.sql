-- What windows in which all changes are known tell of each page: no change from the
-- beginning of a window to its first change, and each change as the last one before
-- the next, or before the end. So n changes in a window of length S count as n known
-- changes and a time S in which no other can hide. Windows are (start, stop]: a
-- change at the start is not one of the window, one at the end is.

insert into crawl by name
with used as (
    select * from change where reason is null
),

-- Windows of a page that overlap or touch are one.
marked as (
    select
        *,
        coalesce(
            start > max(stop) over (
                partition by url order by start, stop
                rows between unbounded preceding and 1 preceding
            ),
            true
        ) as apart
    from used
),

numbered as (
    select
        *,
        -- (a count with a filter would take a time of second order)
        sum(apart::int) over (
            partition by url order by start, stop rows unbounded preceding
        ) as number
    from marked
),

known as (
    select
        url,
        number,
        min(start) as start,
        max(stop) as stop
    from numbered
    group by url, number
),

-- What two downloads tell of one change counts once.
changes as (
    select url, t, min(file) as file, min(row) as row
    from used
    where t is not null
    group by url, t
),

placed as (
    select
        changes.*,
        number,
        stop,
        coalesce(changes.t <= known.stop, false) as inside
    from changes
    asof left join known on changes.url = known.url and changes.t > known.start
),

-- Each moment from which on the page is followed to the next one.
moments as (
    select url, number, stop, start as moment, false as changed
    from known

    union all by name
    select url, number, stop, t as moment, true as changed
    from placed
    where inside
)

select
    url,
    moment as start,
    -- a change at the very end needs an interval too
    greatest(
        lead(moment, 1, stop) over (partition by url, number order by moment),
        moment + 1
    ) as t,
    changed,
    case when changed then moment end as last_modified
from moments

union all by name
select
    url,
    t,
    file,
    row,
    'of changes outside of what is known' as reason,
    url || ' ' || make_timestamp(t) as given
from placed
where not inside

union all by name
select url, coalesce(t, stop) as t, file, row, reason, given
from change
where reason is not null
