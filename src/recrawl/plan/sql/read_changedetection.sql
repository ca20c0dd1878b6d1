-- Watches of changedetection.io. Parameter: $exported, a pattern of the folders'
-- files watch.json.

create table item as
select
    -- as the reader names the pages of two watches of one URL
    url || case when count(*) over (partition by url) > 1 then '#' || uuid else '' end
        as url,
    uuid as id
from read_json(
    $exported,
    columns = {url: 'varchar', uuid: 'varchar'},
    hive_partitioning = false
)
-- the identifier becomes a part of an address
where regexp_full_match(uuid, '[0-9A-Za-z-]+')
