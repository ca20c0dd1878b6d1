-- Insert the rows of one file without bits, of which the view `fields` gives the
-- values, into the table `fetches`.
-- Parameters: $file, the file's number; $failed, the reason of failed fetches;
-- $names, plain, of all columns of the file; $ours, of those that hold ours.
-- In place of {cells} is a list of the texts in these, in their order.

insert into fetches by name
with judged as (
    select
        *,
        case
            when t is null then untimed({cells}, $names, $ours)
            when no_url(url) then 'without a url'
            when unusable(url, t) is not null then unusable(url, t)
            when status is null and status_text <> ''
                then 'whose status is not a number'
            when failed(status) then $failed
            when importance_text <> '' and importance is null
                then 'whose importance is not a number from 0'
        end as reason
    from fields
)

select
    url,
    t,
    status,
    -- digests of one page are compared if they are of one algorithm
    case
        when digest_text like '%:%' then content_of(digest_text)
        else 'digest:' || content_of(digest_text)
    end as digest,
    content_of(etag_text) as etag,
    case when plausible(last_modified) then last_modified end as last_modified,
    importance,
    nullif(host_text, '') as host,
    $file as file,
    row,
    reason,
    case when reason is not null
        then concat_ws(',', url, text_of(time_given), status_text) || reading_of(t)
    end as given
from judged
