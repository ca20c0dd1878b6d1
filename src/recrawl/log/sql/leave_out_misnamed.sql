-- Leave out the rows of one file behind a row that names other columns, up to the next
-- row that names those of the file: nothing tells what their values are.
-- Parameter: $file, the file's number.

create or replace temp table names_again as
select
    row as first,
    coalesce(lead(row) over (order by row), 9223372036854775807) as next,
    reason
from (
    select file, row, reason from crawl
    union all
    select file, row, reason from fetches
)
-- the reasons that the macro `untimed` gives
where
    file = $file
    and reason in ('that repeat the names of columns', 'that name other columns');

update crawl
set reason = 'behind a row that names other columns', given = coalesce(given, url)
from names_again
where
    file = $file
    and names_again.reason = 'that name other columns'
    and row > first and row < next;

update fetches
set reason = 'behind a row that names other columns', given = coalesce(given, url)
from names_again
where
    file = $file
    and names_again.reason = 'that name other columns'
    and row > first and row < next;
