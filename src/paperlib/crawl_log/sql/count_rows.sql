-- Rows by the reason why they are left out, and the first three places of each.
-- Parameters: $used, the word for rows that are used; $failed, the reason of
-- failed fetches. Neither of these has places.

select
    coalesce(reason, $used),
    count(*),
    min((file, row, coalesce(given, url)), 3)
        filter (reason is not null and reason <> $failed)
from crawl
group by reason
order by 1
