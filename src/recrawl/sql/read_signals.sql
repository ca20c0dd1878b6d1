-- Signals of changes, without repeats of a page within a minute.
-- The view `signals_text` has the columns url and time of the file.

create table signal as
with read_rows as (
    select
        trim(url) as url,
        parse_time(trim(time)) as t,
        row_number() over () as row
    from signals_text
),

judged as (
    select *, unusable(url, t) as reason
    from read_rows
)

select
    *,
    reason is null
        and t - lag(t) over (partition by url, reason order by t, row) <= 60000000
        as repeated
from judged
