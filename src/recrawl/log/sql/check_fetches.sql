-- Insert the rows of one file without bits, of which the view `judged` gives the
-- values, into the table `fetches`.
-- Parameter: $file, the file's number.

insert into fetches by name
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
    coalesce(unfit, unweighted) as reason,
    case when reason is not null
        then concat_ws(',', url, text_of(time_given), status_text) || reading_of(t)
    end as given
from judged
