-- Insert what the reader of a format gives of intervals, the view `found`.
-- Parameter: $file, the file's number.

insert into crawl by name
select
    url,
    epoch_us(time) as t,
    changed,
    epoch_us(start) as start,
    epoch_us(sound(found.last_modified)) as last_modified,
    $file as file,
    row,
    coalesce(
        reason,
        unusable(url, t),
        case
            when not plausible(epoch_us(start))
                then 'whose start is before 1990 or more than a day from now'
            when not coalesce(epoch_us(start) < t, false)
                then 'whose start is not before its time'
        end
    ) as reason,
    given || reading_of(t) as given
from found
