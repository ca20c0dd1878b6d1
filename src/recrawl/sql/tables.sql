-- The tables that a log is read into, and what the other queries call.

-- What is known of each page: one row for each row of a log that has bits, or
-- what the tables below come down to. Times are microseconds since 1970, UTC.
create table crawl (
    url varchar,
    t bigint,
    changed boolean,
    start bigint,           -- the row tells of the time from here to t; null:
                            -- from the page's crawl before
    last_modified bigint,   -- when the page last changed, as known at t
    signal varchar,         -- what the bit was derived from, for the next log
    importance double,
    status integer,     -- of HTTP
    host varchar,
    file integer,       -- number of its file, from 0
    row bigint,         -- its number in that file, from 1
    reason varchar,     -- why the row is left out; null if it is used
    given varchar,      -- a row that is left out, as it stands in the file
    refused varchar     -- in place of a bit: what cannot be read, or nothing
);

-- Fetches from which bits are derived, by `derive_fetches.sql`.
create table fetches (
    url varchar,
    t bigint,
    status integer,
    digest varchar,         -- "algorithm:value"
    etag varchar,
    last_modified bigint,
    same boolean,           -- true where the source says "not modified"
    importance double,
    host varchar,
    file integer,
    row bigint,
    reason varchar,
    given varchar
);

-- What a dump says of each page, for `derive_states.sql`.
create table page_state (
    url varchar,
    last_fetch bigint,
    last_change bigint,
    status integer,
    file integer,
    row bigint,
    reason varchar,
    given varchar
);

-- Changes, each in a window in which all of them are known, for
-- `derive_changes.sql`; a window without changes has a null for `t`.
create table change (
    url varchar,
    start bigint,
    stop bigint,
    t bigint,
    file integer,
    row bigint,
    reason varchar,
    given varchar
);

-- What `find_suspects.sql` finds in the fetches.
create table shared_body (host varchar, n_urls bigint);
create table dated_now (host varchar);

-- One row for each page of the logs before, as `state.compress` writes it.
create table state (
    url varchar,
    host varchar,
    importance double,
    first_crawl timestamptz,
    last_crawl timestamptz,
    last_row timestamptz,   -- that of a failed fetch, perhaps
    last_start bigint,      -- when the interval of the last crawl began
    last_change boolean,    -- whether that crawl found a change
    gone boolean,
    n_failed bigint,
    interval double[],      -- mean interval of each group of crawls, days
    bits boolean[],         -- whether the crawls of a group found a change
    n bigint[],             -- how many crawls each group stands for
    aged boolean[],         -- whether their intervals are ages of a last change
    n_crawls bigint,        -- crawls that had one before, and those of them that
    n_changed bigint,       -- found a change: groups may be of other intervals
    signal varchar,         -- what the last bit was derived from
    lag double,             -- sums for the serial score
    lag_squares double,
    dispersion double,      -- mean of the logs' dispersions, by their
    freedom double          -- degrees of freedom, and the sum of these
);

-- Which of n ranges of the hash that orders pages a page lies in, from 0. Without
-- the last bit of the hash, the length of a range fits in 64 bits for n = 1 too.
create macro share_of(url, n) as
    (hash(coalesce(url, '')) >> 1) // (9223372036854775808::ubigint // n + 1);

-- Whether a row of `crawl` counts as a crawl. One whose `changed` cannot be read did
-- happen: the next bit of its page tells of the time since.
create macro used(reason) as
    coalesce(reason in (
        'whose changed is neither yes nor no',
        'whose importance is not a number from 0',
        'whose last_modified is after its time by more than a day'
    ), true);

create macro text_of(value) as coalesce(trim(cast(value as varchar)), '');

create macro weight_of(text) as
    case when try_cast(text as double) >= 0 and try_cast(text as double) < 'inf'
        then try_cast(text as double)
    end;

create macro parse_changed(text) as
    case
        when lower(text) in (
            '1', '1.0', '-1', 'true', 't', 'yes', 'y', 'changed',
            'wahr', 'vrai', 'verdadero'  -- as Excel writes them
        )
            then true
        when lower(text) in (
            '0', '0.0', 'false', 'f', 'no', 'n', 'unchanged',
            'falsch', 'faux', 'falso'
        )
            then false
    end;

-- Microseconds since 1970, of a number since 1970 whose size tells its unit:
-- below 1e11 it is in seconds (until the year 5138), below 1e14 in
-- milliseconds (from 1973 on), below 1e17 in microseconds, else in nanoseconds.
-- Times before 1990 or more than a year from now are refused later, so that any
-- limit from 2e9 to 6e11, and the same a thousand times over, reads alike.
create macro parse_number(number) as
    try_cast(round(number * case
        when abs(number) < 1e11 then 1e6
        when abs(number) < 1e14 then 1e3
        when abs(number) < 1e17 then 1.0
        when abs(number) < 1e308 then 1e-3
    end) as bigint);

-- Digits of a date and time without separators. As a number since 1970, 8 digits
-- would be before 1974, 17 after 2286, and 14 milliseconds after 2286.
create macro parse_digits(text) as
    epoch_us(case if(try_cast(text as ubigint) is null, 0, length(text))
        when 8 then try_strptime(text, '%Y%m%d')
        when 14 then try_strptime(text, '%Y%m%d%H%M%S')
        when 17 then try_strptime(text, '%Y%m%d%H%M%S%g')
    end);

-- The form of most logs, 2026-10-01T06:12:08Z, without the regular expression that
-- the other forms need, which takes five times as long.
create macro parse_common(text) as
    case
        when (length(text) = 19 or length(text) = 20 and text[20] = 'Z')
            and text[5] = '-' and text[8] = '-' and text[14] = ':' and text[17] = ':'
            then epoch_us(try_cast(text as timestamptz))
    end;

-- The forms of ISO 8601 and of databases that a cast reads. Other texts are kept
-- from it: it takes names of time zones that stand for several, such as BST, IST
-- or CST, words such as infinity, and offsets of more than the 14 hours that exist.
create macro parse_plain(text) as
    case
        when regexp_matches(
            text,
            '^\d{4}[-/]\d\d?[-/]\d\d?'
            '([T ]\d\d?:\d\d(:\d\d(\.\d+)?)?( ?UTC| GMT|Z|[+-](0\d|1[0-3])(:?[0-5]\d)?|[+-]14(:?00)?)?)?$'
        ) then epoch_us(try_cast(replace(text, ' GMT', ' UTC') as timestamptz))
    end;

-- DuckDB computes an expression that occurs more than once for all rows, also for
-- those that do not need it. The parts of a text are therefore arguments of a
-- lambda in the macros that follow: times in other forms would take five times as
-- long, and those in common forms too.

-- A time on the clocks of a place, such as 2026-10-01 08:12:08 Europe/Berlin: whether
-- place and time are known, and all moments at which the clocks show it. There is
-- none where the clocks are put forward over it, and there are two where they are
-- put back, by an hour or half an hour.
create macro local_time(text) as
    list_transform(
        [regexp_extract(
            text,
            '^(\d{4}[-/]\d\d?[-/]\d\d?[T ]\d\d?:\d\d(?::\d\d(?:\.\d+)?)?)'
            ' ([A-Z][a-z]+/[A-Za-z/_]+)$',
            ['clock', 'zone']
        )],
        lambda part: {
            known: part.zone <> '' and try_cast(text as timestamptz) is not null,
            moments: list_filter(
                list_transform(
                    [-60, -30, 0, 30, 60],
                    lambda minutes: try_cast(if(part.zone <> '', text, null) as timestamptz)
                        + minutes * interval 1 minute
                ),
                lambda moment: case when part.zone <> '' and moment is not null
                    then timezone(part.zone, moment) = try_cast(part.clock as timestamp)
                end
            )
        }
    )[1];

create macro parse_local(text) as
    list_transform(
        [local_time(text)],
        lambda found: case
            when len(found.moments) = 1 then epoch_us(found.moments[1])
        end
    )[1];

-- Other forms of ISO 8601: basic, in hours, with a comma, with a space before the
-- offset; year and month, or year, week and day.
create macro parse_iso(text) as
    coalesce(
        epoch_us(case
            when text like '____-__' then try_strptime(text, '%Y-%m')
            when text like '____%W%' then try_strptime(text, ['%G-W%V-%u', '%GW%V%u'])
        end),
        epoch_us(try_cast(list_transform(
            [regexp_extract(
                upper(text),
                '^(\d{4})-?(\d\d)-?(\d\d)[T ](\d\d)(?::?(\d\d)(?::?(\d\d)([.,]\d+)?)?)?'
                ' ?(Z|[+-](?:0\d|1[0-3])(?::?[0-5]\d)?|[+-]14(?::?00)?)?$',
                ['y', 'm', 'd', 'hour', 'minute', 'second', 'fraction', 'zone']
            )],
            lambda part: concat(
                part.y, '-', part.m, '-', part.d, ' ', part.hour, ':',
                coalesce(nullif(part.minute, ''), '00'), ':',
                coalesce(nullif(part.second, ''), '00'),
                replace(part.fraction, ',', '.'), part.zone
            )
        )[1] as timestamptz))
    );

-- The offset of a name of a time zone: those of RFC 822, which mean one offset
-- each, and of central Europe; a null for others.
create macro offset_of(zone) as
    map {
        'UT': '+0000', 'UTC': '+0000', 'GMT': '+0000', 'Z': '+0000',
        'EST': '-0500', 'EDT': '-0400', 'CST': '-0600', 'CDT': '-0500',
        'MST': '-0700', 'MDT': '-0600', 'PST': '-0800', 'PDT': '-0700',
        'CET': '+0100', 'CEST': '+0200'
    }[zone];

-- A time with an offset for the name of its time zone; null if that name is not
-- known.
create macro in_numbers(text) as
    list_transform(
        [regexp_extract(
            text, '^(.*?)(?: ([A-Z]{1,4}))?( [0-9]{4})?$', ['time', 'zone', 'year']
        )],
        lambda part: case part.zone
            when '' then part.time || part.year
            else part.time || ' ' || offset_of(part.zone) || part.year
        end
    )[1];

-- Times in words: of HTTP in its three forms, of mail (RFC 822), of Java's Date and
-- C's ctime, of web servers' logs. Two digits of a year are tried before four. Days
-- come first where dots part them; with slashes nothing tells day from month.
-- DuckDB takes the offset of the row before for a form without one, if forms with
-- and without are in one list.
create macro parse_words(text) as
    list_transform(
        [in_numbers(regexp_replace(
            text,
            '^(?:(?i)(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*(?:,| ) *)|[][]| \([A-Za-z ]+\)$|( ) +',
            '\1',
            'g'
        ))],
        lambda plain: coalesce(
            epoch_us(try_strptime(case
                when not regexp_matches(plain, ' [+-](1[5-9]|[2-9]\d)\d\d') then plain
            end, [
                '%d %b %y %H:%M:%S %z', '%d %b %Y %H:%M:%S %z',
                '%d %b %y %H:%M %z', '%d %b %Y %H:%M %z',
                '%d-%b-%y %H:%M:%S %z', '%d-%b-%Y %H:%M:%S %z',
                '%d %B %Y %H:%M:%S %z',
                '%b %d %H:%M:%S %z %Y', '%d/%b/%Y:%H:%M:%S %z'
            ])),
            -- without an offset it takes words such as infinity, too
            epoch_us(case when plain[-1] between '0' and '9' then try_strptime(plain, [
                '%b %d %H:%M:%S %Y', '%b %d, %Y', '%B %d, %Y',
                '%d %b %Y %H:%M:%S', '%d %b %Y %H:%M', '%d %b %Y', '%d %B %Y',
                '%d.%m.%Y %H:%M:%S', '%d.%m.%Y %H:%M', '%d.%m.%Y'
            ]) end)
        )
    )[1];

-- A time given as text, in microseconds since 1970. Each reading is tried where
-- those before it fail.
create macro parse_time(text) as
    coalesce(
        parse_digits(text),
        parse_number(try_cast(text as double)),
        parse_common(text),
        parse_plain(text),
        parse_words(text),
        parse_local(text),
        parse_iso(text)
    );

-- The same with a time zone.
create macro time_of(text) as try(make_timestamptz(parse_time(trim(text))));

-- Times must be from 1990, before the first page of the Web, to a year from now, or
-- from the time at which the log was downloaded, if it is given: others are misread,
-- or stand for none (1970, the year 0).
create macro plausible(t) as
    t between epoch_us(timestamp '1990-01-01')
        and epoch_us(coalesce(getvariable('as_of')::timestamptz, now())) + 31622400000000;

-- A time with a time zone, if it is plausible. The macro's argument, often the long
-- expression of `time_of`, is written into the query for each use: with a lambda that
-- is once, and the query is planned in less than half of the time.
create macro sound(time) as
    list_transform(
        [time],
        lambda moment: case when plausible(epoch_us(moment)) then moment end
    )[1];

-- Whether a fetch gave no page: a status that is neither 2xx nor 304.
create macro failed(status) as
    status not between 200 and 299 and status <> 304;

-- Why a row cannot be used, or null.
create macro unusable(url, t) as
    case
        when coalesce(url, '') = '' then 'without a url'
        when t is null then 'whose time cannot be read'
        when not plausible(t)
            then 'whose time is before 1990 or more than a year from now'
    end;

-- How an implausible time was read, to be shown behind the row as given.
create macro reading_of(t) as
    case
        when not plausible(t)
            then ' (read as ' || coalesce(try_cast(
                make_timestamp(t) as varchar), 'no date') || ')'
        else ''
    end;

-- Number of a line, and its text, of a text file. `base.read_from` sets the variable,
-- and that of the file's name: lines(getvariable('file')).
create macro lines(file) as table
    select row_number() over () as n, line
    from read_csv(
        file,
        compression = getvariable('compression'),
        auto_detect = false,
        columns = {line: 'varchar'},
        delim = '\x01',
        quote = '',
        escape = '',
        header = false,
        -- line breaks of two kinds, as in files that were joined
        strict_mode = false,
        hive_partitioning = false
    );

create macro authority_of(url) as
    lower(
        regexp_extract(url, '^[a-zA-Z][a-zA-Z0-9+.-]*://(?:[^/?#]*@)?([^/?#@]*)', 1)
    );

-- One server has one name: in small letters, without user and password, and without
-- the port that its scheme has anyway. Exports may lack the scheme.
create macro host_of(url) as
    case
        when url ilike 'http:%' then regexp_replace(authority_of(url), ':80$', '')
        when url ilike 'https:%' then regexp_replace(authority_of(url), ':443$', '')
        when url like '%://%' then authority_of(url)
        else lower(
            regexp_extract(url, '^((?:[a-zA-Z0-9-]+\.)+[a-zA-Z]{2,}(?::\d+)?)/', 1)
        )
    end;
