-- How many intervals have limits whose ratio is in each of eight bins a factor of
-- ten; those beyond 1,000 are together.

select least(floor(8 * log10(factor)), 24)::int as bin, count(*) as pages
from rated
where factor is not null
group by bin
order by bin
