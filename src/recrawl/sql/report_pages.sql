-- The first pages in an order. $order is replaced by it, $most is their number.

select
    url, n_crawls, n_changed, change_rate, low, high, factor, never, always, bursty
from rated
where measured and $order is not null
order by $order desc, n_crawls desc, url
limit $most
