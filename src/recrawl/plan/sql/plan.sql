-- The pages of a schedule that a crawler's file holds.

create view plan as
select row, url, crawl_rate, seconds, signal_seconds, due
from page
where not never and not unfit
