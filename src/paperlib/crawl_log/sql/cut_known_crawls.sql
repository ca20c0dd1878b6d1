-- Of an interval that began before the last row that the state knows, what is
-- after it is new; a change in it that was before is known.

update crawl
set
    start = epoch_us(last_row),
    changed = changed and last_modified > epoch_us(last_row),
    last_modified = null
from state
where
    crawl.url = state.url
    and start < epoch_us(last_row)
    and last_modified <= epoch_us(last_row);
