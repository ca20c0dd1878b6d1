-- Leave out the rows of one file behind a row that names other columns, up to the next
-- row that names those of the file: nothing tells what their values are.
-- Parameter: $file, the file's number; in place of {table} is crawl or fetches.

update {table}
set reason = 'behind a row that names other columns', given = coalesce(given, url)
from (
    select row as first, lead(row) over (order by row) as next, reason as named
    from {table}
    -- the reasons that the macro `untimed` gives
    where
        file = $file
        and reason in ('that repeat the names of columns', 'that name other columns')
)
where
    file = $file
    and named = 'that name other columns'
    and row > first and coalesce(row < next, true)
