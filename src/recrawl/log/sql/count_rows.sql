-- Rows by the reason why they are left out, failed fetches by status too, and the
-- first three places of each.
-- Parameters: $used, the word for rows that are used; $failed, the reason of
-- failed fetches. Neither of these has places.

select
    coalesce(reason, $used),
    case when reason = $failed then status end as of_status,
    count(*),
    min((file, row, coalesce(given, url)), 3)
        filter (reason is not null and reason <> $failed)
from crawl
group by reason, of_status
order by 1, 2
