-- Of an interval that began before the last row that the state knows, what is
-- after it is new; a change in it that was before is known. A change without a
-- date may be known or not: what is left is a crawl that begins an interval.

update crawl
set
    start = case
        when changed and last_modified is null then t
        else epoch_us(last_row)
    end,
    changed = coalesce(changed and last_modified > epoch_us(last_row), false),
    last_modified = case
        when last_modified > epoch_us(last_row) then last_modified
    end
from state
where
    crawl.url = state.url
    and used(reason)
    and start < epoch_us(last_row)
