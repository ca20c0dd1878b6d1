-- Insert the rows of one file, of which the view `fields` gives each value as
-- text, into the table `crawl`. A row with a value that cannot be used is kept
-- there with the reason, to be counted and shown.
-- Parameters: $file, the file's number; $failed, the reason of failed fetches.

-- CTEs used once are inlined: rows stream from the file into the table.
insert into crawl by name
with parsed as (
    select
        *,
        url_text as url,
        parse_changed(changed_text) as changed,
        try_cast(importance_text as double) as importance,
        try_cast(status_text as integer) as status
    from fields
    where in_share(url_text)
),

judged as (
    select
        *,
        case
            when url = '' then 'without a url'
            when t is null or t not between
                    epoch_us(timestamp '0001-01-01')
                    and epoch_us(timestamp '9999-12-31 23:59:59.999999')
                then 'whose time cannot be read'
            when status is null and status_text <> ''
                then 'whose status is not a number'
            when status not between 200 and 299 and status <> 304
                then $failed
            when changed is null
                then 'whose changed is neither yes nor no'
            when importance_text <> ''
                    and (importance is null
                         or not (importance >= 0 and importance < 'inf'))
                then 'whose importance is not a number from 0'
        end as reason
    from parsed
)

select
    url,
    t,
    changed,
    importance,
    status,
    nullif(host_text, '') as host,
    $file as file,
    row,
    reason,
    case when reason is not null then concat_ws(
        ',', url, time_text, changed_text, importance_text, status_text
    ) end as given
from judged
