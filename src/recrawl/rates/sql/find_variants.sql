-- Hosts of which many addresses differ only in what a server ignores: parameters that
-- track a visitor, numbers of sessions, and fragments (but not those of pages that are
-- made in the browser, #! and #/). The key of an address is what is left of it, with
-- one sign for ? and &, as a parameter that goes may have been the first.

with varied as (
    select
        host,
        regexp_replace(
            url,
            '(?i)[?&;](utm_[a-z]+|[a-z]*clid|mc_[ce]id|_ga|phpsessid|jsessionid'
            '|session_?id|sid)=[^?&#;]*|#([^!/].*)?$',
            '',
            'g'
        ) as plain,
        url
    from page
    where contains(url, '=') or contains(url, '#')
)

select
    host,
    count(*) as n_urls,
    count(distinct rtrim(replace(plain, '?', '&'), '&')) as n_pages
from varied
where plain <> url
group by host
having n_urls >= 10 and n_urls >= 2 * n_pages
order by n_urls desc, host
limit 1000
