-- Leave out the rows that the state has counted, or that are older than those
-- that it has: the order of crawls within a page is gone from it.
-- Parameters: $known, the reason; $failed, that of failed fetches.

update fetches
set reason = $known
from state
where
    fetches.url = state.url
    and (reason is null or reason = $failed)
    and t <= epoch_us(last_row);

update page_state
set reason = $known
from state
where
    page_state.url = state.url
    and (reason is null or reason = $failed)
    and last_fetch <= epoch_us(last_row);
