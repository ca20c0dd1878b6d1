-- The same of what the table `crawl` holds, after bits were derived.
-- Parameters: $known, the reason; $failed, that of failed fetches.

update crawl
set reason = $known
from state
where
    crawl.url = state.url
    and (used(reason) or reason = $failed)
    and t <= epoch_us(last_row)
