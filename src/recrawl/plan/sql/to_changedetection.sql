-- A request for each watch: an interval, or a pause of a page that is never to be
-- checked. All five parts of the interval are given, for the interface replaces all of
-- them, and the global interval, which would stay in force, is switched off. The
-- crawler checks no page more often than every three seconds.

with watch as (
    select row, id, never, greatest(round_even(seconds, 0), 3)::bigint as seconds
    from page
    join item using (url)
)
select case when never then printf('put %s ''{"paused": true}''', id) else printf(
    'put %s ''{"time_between_check_use_default": false, "time_between_check": '
    '{"weeks": %d, "days": %d, "hours": %d, "minutes": %d, "seconds": %d}}''',
    id,
    seconds // 604800,
    seconds % 604800 // 86400,
    seconds % 86400 // 3600,
    seconds % 3600 // 60,
    seconds % 60
) end
from watch
order by row, id
