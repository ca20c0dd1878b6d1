-- The tables that a log is read into, and what the other queries call.

-- One row for each row of the log.
create table crawl (
    url varchar,
    t bigint,           -- microseconds since 1970, UTC
    changed boolean,
    importance double,
    status integer,     -- of HTTP
    host varchar,
    file integer,       -- number of its file, from 0
    row bigint,         -- its number in that file, from 1
    reason varchar,     -- why the row is left out; null if it is used
    given varchar       -- a row that is left out, as it stands in the file
);

-- One row for each page of the logs before, as `state.compress` writes it.
create table state (
    url varchar,
    host varchar,
    importance double,
    first_crawl timestamptz,
    last_crawl timestamptz,
    last_row timestamptz,   -- that of a failed fetch, perhaps
    gone boolean,
    n_failed bigint,
    interval double[],      -- mean interval of each group of crawls, days
    bits boolean[],         -- whether the crawls of a group found a change
    n bigint[],             -- how many crawls each group stands for
    lag double,             -- sums for the serial score
    lag_squares double
);

-- Whether a page belongs to this share of the log: all do, but on a cluster.
create macro in_share(url) as true;

create macro parse_changed(text) as
    case
        when lower(text) in ('1', '1.0', 'true', 't', 'yes', 'y', 'changed')
            then true
        when lower(text) in ('0', '0.0', 'false', 'f', 'no', 'n', 'unchanged')
            then false
    end;

-- Microseconds since 1970, of a number since 1970 whose size tells its unit:
-- below 1e11 it is in seconds (until the year 5138), below 1e14 in
-- milliseconds (from 1973 on), below 1e17 in microseconds, else in nanoseconds.
create macro parse_number(number) as
    try_cast(round(number * case
        when abs(number) < 1e11 then 1e6
        when abs(number) < 1e14 then 1e3
        when abs(number) < 1e17 then 1.0
        when abs(number) < 1e308 then 1e-3
    end) as bigint);

-- The same of a number, or of a time in ISO 8601, given as text.
create macro parse_time(text) as
    coalesce(
        parse_number(try_cast(text as double)),
        epoch_us(try_cast(text as timestamptz))
    );

create macro host_of(url) as
    regexp_extract(url, '^[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#]*)', 1);
