-- Pages of a log, and of the state, by kind; their fetches beside those that ended an
-- interval; and the days that they took, null where unknown.

select
    count_if(host = '') as "whose URL names no host",
    count_if(gone) as gone,
    count_if(first_crawl = last_crawl and not gone) as
        "crawled once: rates of the prior, ages or changes",
    count_if(unknown and n_incomparable = 0) as "never fetched successfully",
    count_if(unknown and n_incomparable > 0) as "fetched, but with nothing to compare",
    sum(n_incomparable)::bigint as incomparable,
    count(first_crawl) + sum(n_failed)::bigint as others,
    epoch(max(last_crawl) - min(first_crawl)) / 86400 as days
from (select *, last_crawl is null and not gone as unknown from page)
