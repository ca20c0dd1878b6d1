-- Leave out the rows that the state has counted, or that are older than those
-- that it has: the order of crawls within a page is gone from it.
-- Parameters: $known, the reason; $failed, that of failed fetches. In place of {table}
-- is that of the rows.

update {table}
set reason = $known
from state
where
    {table}.url = state.url
    and (used(reason) or reason = $failed)
    and t <= epoch_us(last_row)
