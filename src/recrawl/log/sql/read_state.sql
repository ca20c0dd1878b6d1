-- Read what earlier logs left.
-- Parameters: $state, the file; $first and $end, its first row to be read, from 0,
-- and the row after the last.

insert into state by name
select * exclude (file_row_number)
from read_parquet(
    $state, binary_as_string = true, file_row_number = true, hive_partitioning = false
)
where file_row_number >= $first and file_row_number < $end
