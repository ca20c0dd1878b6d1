-- Insert the rows of one file, of which the view `judged` gives the values, into
-- the table `crawl`. A row with a value that cannot be used is kept
-- there with the reason, to be counted and shown; see the macro `used`.
-- Parameter: $file, the file's number.

insert into crawl by name
select
    url,
    t,
    coalesce(
        unfit,
        case
            -- with nothing to compare with, as at the first crawl of a page, a crawl
            -- begins an interval and ends none
            when changed is null and not is_nothing(text_of(changed_given))
                then 'whose changed is neither yes nor no'
            when start is null and not is_nothing(text_of(start_given))
                then 'whose start cannot be read'
            when not plausible(start)
                then 'whose start is before 1990 or more than a day from now'
            -- no interval: a crawl that only begins the next one
            when t < start or t = start and changed
                then 'whose start is not before its time'
            -- last, for the row is used without it
            when last_modified is null and not is_nothing(text_of(last_modified_given))
                then 'whose last_modified cannot be read'
            when last_modified > t + 86400000000
                then 'whose last_modified is after its time by more than a day'
        end,
        unweighted
    ) as reason,
    coalesce(judged.changed, case when used(reason) then false end) as changed,
    case when judged.changed is null and used(reason) then t else judged.start end as start,
    -- a time that the server makes up at the fetch is no time of a change
    case when plausible(judged.last_modified)
            and judged.last_modified not between t - 2000000 and t
        then judged.last_modified
    end as last_modified,
    importance,
    status,
    nullif(host_text, '') as host,
    $file as file,
    row,
    case when judged.changed is null and used(reason)
        then coalesce(value_of(text_of(changed_given)), '')
    end as refused,
    case when reason is not null then concat_ws(
        ',',
        url,
        text_of(time_given),
        text_of(changed_given),
        importance_text,
        status_text
    ) || reading_of(t) end as given
from judged
