-- Insert what the reader of a format gives of one dump of states, the view `found`.
-- A page whose last fetch failed tells of that fetch alone.
-- Parameters: $file, the file's number; $failed, the reason of failed fetches.

insert into page_state by name
select
    url,
    epoch_us(last_fetch) as t,
    epoch_us(sound(found.last_change)) as last_change,
    status,
    $file as file,
    row,
    coalesce(
        reason,
        unusable(url, t),
        case when failed(status) then $failed end
    ) as reason,
    given || reading_of(t) as given
from found
