-- The dumped items of URLFrontier with another date: PutURLs replaces the whole item.

select json_merge_patch(item, json_object(
    'known', json_object('refetchableFromDate', epoch(due)::bigint::varchar)
))
from plan
join item using (url)
order by row, item
