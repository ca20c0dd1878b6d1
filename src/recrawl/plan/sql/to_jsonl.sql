-- JSON Lines for a crawler of one's own, the first that is due first; `rate` in crawls
-- a day. A null is left out: signal_s of a schedule without thresholds. A signal that is enough alone counts
-- for the whole interval.

select json_merge_patch('{}', json_object(
    'url', url,
    'due', strftime(due, '%Y-%m-%dT%H:%M:%SZ'),
    'interval_s', round(seconds)::bigint,
    'rate', crawl_rate,
    'signal_s', case
        when signal_seconds is not null
            then round(least(signal_seconds, seconds))::bigint
    end
))
from plan
order by due, row
