-- How many pages have a rate in each of four bins a factor of ten.

select
    floor(4 * log10(change_rate))::int as bin,
    count(*) filter (not never and not always) as both,
    count(*) filter (never) as never,
    count(*) filter (always) as always
from rated
where measured and change_rate > 0 and isfinite(change_rate)
group by bin
order by bin
