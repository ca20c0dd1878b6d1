-- Files that are written in order of time, but go back in time by more than ten
-- minutes at a few places: the first place, the longest step, how many places and how
-- many rows behind them that are earlier than the row before the place.
-- A file that is sorted by page, or holds the rows of one crawler after those of
-- another, goes back to pages that it did not have before, and is left alone.

with timed as (
    select file, row, url, t
    from crawl
    where plausible(t) and coalesce(start = t, true)

    union all
    select file, row, url, t
    from fetches
    where plausible(t)
),

in_order as (
    -- without a sort: a table keeps the order in which its rows were written
    select
        file,
        row,
        t,
        lag(t) over () as since,
        lag(file) over () = file and lag(row) over () < row as follows
    from timed
),

places as (
    select
        file,
        count(*) filter (t < since - 600000000) as n,
        unnest(
            min({row: row, since: since, back: since - t}, 100)
                filter (t < since - 600000000),
            recursive := true
        )
    from in_order
    where follows
    group by file
    having n <= 100 and count(*) filter (t > since) > 10 * n
),

affected as (
    select file, row, t, min(row) over (partition by file, url) as first_row
    from timed
    semi join places using (file)
)

select
    affected.file,
    min(places.row),
    max(back),
    n,
    count(*) as n_late
from affected
asof join places on affected.file = places.file and affected.row >= places.row
where affected.t < since - 600000000
group by all
having n_late >= 5 * n and 2 * count(*) filter (first_row < places.row) >= n_late
order by all
