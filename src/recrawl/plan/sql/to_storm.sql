-- Bulk requests for StormCrawler's index `status`: two lines a page, in one text, for
-- a sort might exchange two rows.

select json_object('update', case
    -- a document without routing is not found with one
    when routing is null then json_object('_index', name, '_id', id)
    else json_object('_index', name, '_id', id, 'routing', routing)
end) || chr(10) || json_object('doc', json_object(
    'nextFetchDate', strftime(due, '%Y-%m-%dT%H:%M:%S.000Z'),
    -- StormCrawler stores a dot in a key as %2E
    'metadata', json_object(
        'scheduler%2Edelay%2Emins',
        [greatest(1, round(seconds / 60))::bigint::varchar]
    )
))
from plan
join item using (url)
order by row, name, id, routing
