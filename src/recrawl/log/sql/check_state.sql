-- A page of the state that `state.compress` cannot have written, if there is one.

select url
from state
where
    not coalesce(
        url <> ''
        and importance >= 0 and importance < 'inf'
        and n_failed >= 0
        and n_changed between 0 and n_crawls and n_crawls <= 1e12
        and len(interval) = len(n) and len(bits) = len(n) and len(aged) = len(n)
        and (
            len(n) = 0
            or list_min(interval) > 0 and list_max(interval) < 'inf'
            -- a hundred million: a crawl every ten seconds for thirty years
            and list_min(n) > 0 and list_sum(n) <= 1e8
        )
        and dispersion >= 0 and dispersion < 1e15
        and freedom >= 0 and freedom < 1e15
        and sound(coalesce(first_crawl, last_row)) is not null
        and sound(coalesce(last_crawl, last_row)) is not null
        and sound(last_row) is not null
        and last_change is not null,
        false
    )
limit 1
