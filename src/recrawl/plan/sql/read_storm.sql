-- Documents of StormCrawler's index `status`, one hit of a search a line.
-- Parameter: $exported, a pattern that matches the file.

create table item as
select
    _source ->> 'url' as url,
    _index as name,
    _id as id,
    _routing as routing
from read_json(
    $exported,
    format = 'newline_delimited',
    hive_partitioning = false,
    columns = {
        _index: 'varchar',
        _id: 'varchar',
        _routing: 'varchar',
        _source: 'json'
    }
)
