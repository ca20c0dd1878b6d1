-- Insert what the reader of a format gives of its fetches, the view `found`.
-- Parameters: $file, the file's number; $failed, the reason of failed fetches.

insert into fetches by name
select
    url,
    epoch_us(time) as t,
    status,
    content_of(digest) as digest,
    content_of(etag) as etag,
    epoch_us(sound(found.last_modified)) as last_modified,
    same,
    $file as file,
    row,
    coalesce(
        reason, unusable(url, t), case when failed(status) then $failed end
    ) as reason,
    given || reading_of(t) as given
from found
