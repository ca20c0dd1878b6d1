-- Whether each fetch found its page changed, from digests, ETags, Last-Modified
-- and the answers 304. One page has one signal, that which most of its fetches
-- with content have; fetches without it are left out before the rest are compared,
-- so that a bit belongs to the interval between two fetches that are kept. A signal
-- that can prove only one outcome would make all bits equal.
-- Parameters: $unsigned, the reason of fetches without their page's signal, and
-- $dated_now, that of those whose page has none but dates that its server makes up.

insert into crawl by name
with usable as (
    select
        *,
        -- of one resource, packed or not, weak or strong
        regexp_replace(regexp_replace(etag, '^W/', ''), '[-;]+gzip"$', '"')
            as tag,
        coalesce(status = 304 or same, false) as still,
        -- a time that the server makes up at the fetch is no time of a change
        case
            when last_modified > 0 and last_modified <= t
                and t - last_modified > 2000000
                then last_modified
        end as modified
    from fetches
    where reason is null
),

-- Which algorithm most digests of a page have, and which signal most of its
-- fetches. Last-Modified counts where at most half of them are the fetch's time.
counted as (
    select
        url,
        -- of two that are as frequent, the later name (mode() takes either)
        list_max(list_transform(
            map_entries(histogram(split_part(digest, ':', 1))),
            lambda each: {'n': each.value, 'name': each.key}
        )).name as algorithm,
        count(tag) as n_tags,
        count(last_modified) as n_times,
        2 * count(modified) >= n_times and n_times > 0 as timed
    from usable
    where not still
    group by url
),

preferred as (
    select
        usable.*,
        counted.* exclude (url, n_times),
        case when timed then n_times else 0 end as n_times,
        case
            -- the digest of an answer 206 is that of a part of the page
            when still or status = 206 then null
            when split_part(digest, ':', 1) = algorithm then digest
        end as print,
        count(print) over (partition by usable.url) as n_prints
    from usable
    left join counted using (url)
),

signed as (
    select
        *,
        n_prints + n_tags + n_times = 0 and last_modified is not null as made_up,
        -- '' of a fetch without its page's signal
        -- (null where it has that of the fetch before it)
        case
            when n_prints + n_tags + n_times = 0 then ''
            when still then null
            when n_prints >= greatest(n_tags, n_times)
                then coalesce(print, '')
            when n_tags >= n_times then coalesce('etag:' || tag, '')
            else coalesce('modified:' || modified, '')
        end as own
    from preferred
),

-- The last signal that an earlier log has seen comes first.
all_signed as (
    select
        -- that of a 304 is no time made up, whatever else this log tells
        * replace (case when timed or still then modified end as modified),
        false as known
    from signed

    union all by name
    select url, epoch_us(last_crawl) as t, state.signal as own, true as known
    from state
    semi join fetches using (url)
    where state.signal is not null
),

-- A 304 has the signal of the fetch before it.
carried as (
    select
        *,
        coalesce(last_value(own ignore nulls) over before, '304') as signal
    from all_signed
    window before as (
        partition by url order by t, file, row
        rows between unbounded preceding and current row
    )
),

compared as (
    select
        *,
        lag(signal) over in_time as former,
        lag(t) over in_time as since,
        former is not null
            -- of two kinds: what is after a log that kept another signal
            and signal <> former as differs,
        former is not null and former <> '304' and signal <> '304'
            and split_part(signal, ':', 1) <> split_part(former, ':', 1)
            as other_kind
    from carried
    where signal <> ''
    window in_time as (partition by url order by t, file, row)
    qualify not known
)

select
    url,
    t,
    status,
    -- null of a row that was written twice: it adds nothing to the first of the two
    case
        when since is null or since < t or signal <> former
            then differs and not other_kind
    end as changed,
    -- an interval without a length: the fetch begins the page's next one
    -- so does the first one, if the state knows the page, but no signal of it
    case
        when other_kind
                or since is null
                and url in (from state select url where last_crawl is not null)
            then t
    end as start,
    case
        when since is null or modified > since and differs then modified
    end as last_modified,
    signal,
    importance,
    host,
    file,
    row
from compared

union all by name
select
    url,
    t,
    status,
    file,
    row,
    case when made_up then $dated_now else $unsigned end as reason,
    url as given
from carried
where signal = '' and not known

union all by name
select url, t, status, importance, host, file, row, reason, given
from fetches
where reason is not null
