-- Insert what the reader of a format gives of changes, the view `found`.
-- Parameter: $file, the file's number.

insert into change by name
select
    url,
    epoch_us(start) as start,
    epoch_us(stop) as stop,
    epoch_us(time) as t,
    $file as file,
    row,
    coalesce(
        reason,
        unusable(url, epoch_us(stop)),
        case
            when not plausible(epoch_us(start)) or not plausible(epoch_us(time))
                then 'whose time is before 1990 or more than a day from now'
            when not coalesce(epoch_us(start) < epoch_us(stop), false)
                then 'whose window does not end after it begins'
        end
    ) as reason,
    given
from found
