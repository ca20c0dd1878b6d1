-- Of an interval that began before the last row that the state knows, what is
-- after it is new; a change in it that was before is known. A change without a
-- date may be known or not: what is left is a crawl that begins an interval. But
-- the bit of a table's row is taken for the rest of its interval, if little of it is
-- known. (A sitemap tells of one change again and again; its rows have a text, given.)

create temp view overlapping as
select
    crawl.rowid as id,
    url,
    t,
    epoch_us(last_row) as known,
    changed and last_modified is null as undated,
    given is null as of_table,
    of_table and known - start < 0.1 * (t - start) as little
from crawl
join state using (url)
where used(reason) and start < known;

create temp table lost as
select url, t from overlapping where undated and of_table and not little;

update crawl
set
    start = case when undated and not little then overlapping.t else known end,
    changed = coalesce(
        changed and (last_modified > known or undated and little), false
    ),
    last_modified = case when last_modified > known then last_modified end
from overlapping
where crawl.rowid = overlapping.id;
