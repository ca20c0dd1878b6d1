-- Items of URLFrontier as DumpURLs writes them, whole.
-- Parameter: $exported, a pattern that matches the file.

create table item as
select
    json ->> '$.known.info.url' as url,
    json as item
from read_json_objects($exported, format = 'newline_delimited', hive_partitioning = false)
