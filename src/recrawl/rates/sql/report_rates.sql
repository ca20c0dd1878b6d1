-- How many pages have a rate in each of four bins a factor of ten.
-- Parameter: $rates, a pattern that matches what `estimate` wrote.

select floor(4 * log10(change_rate))::int as bin, count(*) as pages
from read_parquet($rates, hive_partitioning = false)
where n_crawls > 0 and change_rate > 0 and isfinite(change_rate)
group by bin
order by bin
