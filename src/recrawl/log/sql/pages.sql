-- One row for each page, of the log and of the state, in an order that has
-- nothing to do with what the pages are: that of a hash of their URLs. So the
-- first pages are a random sample, and ranges of the hash are shares of the log.
-- Parameters: $failed, the reason of failed fetches, and $incomparable, those of
-- fetches without their page's signal, which tell that there is such a page; $known,
-- the reason of rows that the state has counted.

create table page as
with fetched as (
    -- What this log tells of each page. The last importance given counts, of
    -- several at one time the largest: time and importance are packed into one
    -- key, for the states of an arg_max by a key of fixed size go to disk when
    -- memory ends, those by a key that is a row do not. In the same way the
    -- last bit of the largest key tells whether the last row found the page
    -- gone.
    select
        url,
        max(host) as host,
        arg_max(
            importance,
            t::hugeint * 1000000000000000000
            + least(importance * 1e6, 1e17)::hugeint
        ) as importance,
        make_timestamptz(min(t) filter (used(reason))) as first_crawl,
        make_timestamptz(max(t) filter (used(reason))) as last_crawl,
        make_timestamptz(max(t)) as last_row,
        (max(2 * t + coalesce(status in (404, 410), false)::int) & 1) = 1 as gone,
        -- what the last bit was derived from, of rows at one time the last one:
        -- 64 bits for the file and the row, as above
        arg_max(
            signal,
            t::hugeint * 18446744073709551616 + file::hugeint * 1099511627776 + row
        ) filter (signal is not null) as signal,
        count(*) filter (used(reason)) as n_rows,
        count(*) filter (reason = $failed) as n_failed,
        count(*) filter (list_contains($incomparable, reason)) as n_incomparable
    from crawl
    where used(reason) or reason = $failed or list_contains($incomparable, reason)
    group by url
),

merged as (
    select
        url,
        coalesce(fetched.host, state.host, host_of(url)) as host,
        coalesce(fetched.importance, state.importance, 1.0) as importance,
        coalesce(state.first_crawl, fetched.first_crawl) as first_crawl,
        coalesce(fetched.last_crawl, state.last_crawl) as last_crawl,
        -- null would be no number: before all times of a log
        coalesce(epoch_us(state.last_crawl), -9223372036854775808) as known_crawl,
        coalesce(state.last_start, -9223372036854775808) as known_start,
        coalesce(state.last_change, false) as known_change,
        coalesce(fetched.last_row, state.last_row) as last_row,
        coalesce(fetched.gone, state.gone, false) as gone,
        coalesce(fetched.n_failed, 0) + coalesce(state.n_failed, 0) as n_failed,
        coalesce(fetched.n_incomparable, 0) as n_incomparable,
        coalesce(state.interval, []) as interval,
        coalesce(state.bits, []) as bits,
        coalesce(state.n, []) as n,
        coalesce(state.aged, []) as aged,
        coalesce(state.n_crawls, 0) as n_crawls,
        coalesce(state.n_changed, 0) as n_changed,
        coalesce(fetched.signal, state.signal) as signal,
        coalesce(state.dispersion, 1) as dispersion,
        coalesce(state.freedom, 0) as freedom,
        fetched.url is not null
            or url in (select crawl.url from crawl where reason = $known) as in_log,
        state.url is not null as in_state,
        -- memory that a batch needs for the page, in crawls
        1 + coalesce(n_rows, 0) + coalesce(list_sum(state.n), 0) as size
    from fetched
    full join state using (url)
)

-- `i` numbers the pages; `before` adds up the sizes, and so cuts batches.
select
    * exclude (size),
    row_number() over by_hash - 1 as i,
    (sum(size) over by_hash)::bigint as before
from merged
window by_hash as (order by hash(url), url)
