-- Files that are written in order of time, but go back in time by more than ten
-- minutes at a few places: the place of the longest step, how long it is, how many
-- places there are, and how many rows behind it are earlier than the row before it.
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

steps as (
    select
        file,
        count(*) filter (t < since - 600000000) as n,
        unnest(max({back: since - t, since: since, place: row}), recursive := true)
    from in_order
    where follows
    group by file
    having n between 1 and 100 and count(*) filter (t > since) > 10 * n
)

select file, place, back, n, count(*) as n_late
from (
    select *, min(row) over (partition by file, url) as first_row
    from timed
    join steps using (file)
)
where row >= place and t < since - 600000000
group by all
having n_late >= 5 and 2 * count(*) filter (first_row < place) >= n_late
order by all
