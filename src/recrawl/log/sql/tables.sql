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

-- What a dump says of each page, for `derive_page_state.sql`.
create table page_state (
    url varchar,
    t bigint,               -- of the last fetch
    last_change bigint,
    status integer,
    file integer,
    row bigint,
    reason varchar,
    given varchar
);

-- Changes, each in a window in which all of them are known, for
-- `derive_change.sql`; a window without changes has a null for `t`.
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
    dispersion double,      -- mean of the logs' dispersions, by their
    freedom double          -- degrees of freedom, and the sum of these
);

-- Which of n ranges of the hash that orders pages a page lies in, from 0: n times the
-- first 32 bits of the hash, as a share of 2^32.
create macro share_of(url, n) as
    (hash(coalesce(url, '')) >> 32) * n // 4294967296;

-- Whether a row of `crawl` counts as a crawl. One whose `changed` cannot be read did
-- happen: the next bit of its page tells of the time since.
create macro used(reason) as
    coalesce(regexp_matches(reason, '^whose (changed|importance|last_modified) '), true);

create macro text_of(value) as coalesce(trim(cast(value as varchar)), '');

-- Whether a text is one of the words that programs write where nothing is known:
-- databases, spreadsheets, R, Julia, pandas, Java, Python, JavaScript. A host that has
-- such a name keeps it, because without a host that of the URL counts.
create macro is_nothing(text) as
    regexp_full_match(
        text,
        '(?i)[^\pL\pN/]*(n[./]?a( n/a)?|na[nt]|null|none|nil|undefined|missing)?[^\pL\pN/]*'
        '|\\n|-?1\.#\w+|#[a-z/0]+[!?]'
    );

create macro value_of(text) as case when not is_nothing(text) then text end;

-- The same of a digest or an ETag, with an algorithm or W/ before the word.
create macro content_of(text) as
    case
        when text <> 'false' and not is_nothing(ltrim(split_part(text, ':', -1), 'W/'))
            then text
    end;

create macro weight_of(text) as
    case when try_cast(text as double) >= 0 and try_cast(text as double) < 'inf'
        then try_cast(text as double)
    end;

-- As `tables._plain`.
create macro plain_name(text) as
    lower(regexp_replace(text, '[\s_.\-"\x{FEFF}]', '', 'g'));

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

-- Microseconds in the unit of a number since 1970, whose size tells the unit:
-- below 1e11 it is in seconds (until the year 5138), below 1e14 in
-- milliseconds (from 1973 on), below 1e17 in microseconds, else in nanoseconds.
-- Times before 1990 or more than a day from now are refused later, so that any
-- limit from 2e9 to 6e11, and the same a thousand times over, reads alike.
create macro unit_of(number) as
    case
        when abs(number) < 1e11 then 1e6
        when abs(number) < 1e14 then 1e3
        when abs(number) < 1e17 then 1.0
        when abs(number) < 1e308 then 1e-3
    end;

create macro parse_number(number) as
    try_cast(round(number * unit_of(number)) as bigint);

-- Whether a number with an exponent has fewer than ten digits, as spreadsheets write
-- times: 1.79E+12 may be any time of four months. The last of ten is worth a second.
create macro lost_digits(text) as
    regexp_full_match(text, '(?i)\+?[0.,]*(\d[.,]?){0,9}e\+?0?\d\d?');

-- A number, perhaps with a decimal comma.
create macro parse_decimal(text) as
    case when not lost_digits(text)
        then parse_number(try_cast(replace(text, ',', '.') as double))
    end;

-- The number of a key in a line of JSON as it stands there, if DuckDB has written it
-- without its exponent.
create macro as_written(text, line, key) as
    case
        when text like '%0.0' then coalesce(
            list_filter(
                regexp_extract_all(line, '"' || regexp_escape(key) || '"\s*:\s*([0-9.]+[eE]\+?[0-9]+)', 1),
                lambda written: try_cast(written as double) = try_cast(text as double)
            )[1],
            text
        )
        else text
    end;

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
-- or CST, words such as infinity, and offsets of more than the 14 hours that exist
-- (those of 14 are left to `parse_other`).
create macro parse_plain(text) as
    case
        when regexp_matches(
            text,
            '^\d{4}[-/]\d\d?[-/]\d\d?'
            '([T ]\d\d?:\d\d(:\d\d(\.\d+)?)?( ?UTC| GMT|Z|[+-](0\d|1[0-3])(:?[0-5]\d)?)?)?$'
        ) then epoch_us(try_cast(replace(text, ' GMT', ' UTC') as timestamptz))
    end;

-- DuckDB computes an expression that occurs more than once for all rows, also for
-- those that do not need it. The parts of a text are therefore arguments of a
-- lambda in the macros that follow: times in other forms would take five times as
-- long, and those in common forms too.

-- A text in which the date comes first, in the order day, month and year if it is in
-- words, without the day of the week, brackets around all, commas, and "at":
-- Sat Aug  1 00:00:00 CEST 2026 becomes 1 Aug 2026 00:00:00 CEST.
create macro tidied(text) as
    regexp_replace(
        regexp_replace(
            -- spaces at which no line breaks
            translate(text, chr(160) || chr(8239), '  '),
            '^\[?(?:(?i:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*(?:[.,]| ) *)?|,?( )(?:(?:@|at) | )*|\]$',
            '\1',
            'g'
        ),
        '^([A-Za-z]{3,9})\.? (\d\d?)(?:st|nd|rd|th)? (?:(\d\d?:.*) )?(\d{4}\b)',
        '\2 \1 \4 \3'
    );

-- The day of a date, in words or in numbers. Two digits of a year are tried before
-- four. Days come first where dots part them; with slashes nothing tells day from
-- month.
create macro day_of(date) as
    case
        when regexp_matches(date, '[A-Za-z]') then try_strptime(
            regexp_replace(date, '[a-z]*[-/. ]+((?i:sep)|[A-Za-z]+)[A-Za-z]*[-/. ]+', ' \1 '),
            ['%d %b %y', '%d %b %Y', '%d %B %y', '%d %B %Y']
        )
        else try_strptime(
            translate(date, './', '--'), ['%Y-%m-%d', '%Y%m%d', '%d-%m-%Y', '%Y-%m']
        )
    end;

-- How long a zone is before UTC: an offset, perhaps behind UTC or GMT and before a
-- name, or one of the names that mean one offset each, those of RFC 822 and of central
-- Europe. Others, such as BST or IST, stand for several, and so do places without an
-- offset, such as Europe/Berlin. A null if not known.
create macro offset_of(zone) as
    list_transform(
        [regexp_extract(
            upper(zone),
            '^ ?([A-Z]{0,4}) ?(?:([+-]\d\d?)(?::?([0-5]\d))?)?(?: [A-Z]{1,5}| M=.*| \(.*\)|\[.*)*$',
            ['name', 'hours', 'minutes']
        )],
        lambda part: case
            when zone = '' then interval 0 hours
            when part.hours = '' then to_hours(map {
                'UT': 0, 'UTC': 0, 'GMT': 0, 'Z': 0, 'EST': -5, 'EDT': -4, 'CST': -6,
                'CDT': -5, 'MST': -7, 'MDT': -6, 'PST': -8, 'PDT': -7, 'CET': 1, 'CEST': 2
            }[part.name])
            when part.name in ('UT', 'UTC', 'GMT')
                    or part.name = '' and length(part.hours) = 3
                then try_cast(
                    concat(ltrim(part.hours, '+'), ':', lpad(part.minutes, 2, '0')) as interval
                )
        end
    )[1];

-- What a text says in any other form: the time on a clock, and the zone behind it.
create macro clock_of(text) as
    list_transform(
        [regexp_extract(
            tidied(text),
            '^(\d\d?[a-z]{0,2}[-/. ]+[A-Za-z]{3,9}[-/. ]+(?:\d{4}|\d\d)\b'
            '|\d{8}|\d{4}(?:[-/.]\d\d?){1,2}|\d\d?\.\d\d?\.\d{4})'
            '(?:(?:[Tt:]| +)(\d\d?)(?::?(\d\d)(?::?(\d\d)([.,]\d+)?)?)?'
            '(?: ?([AaPp])\.?[Mm]\b\.?)?(.*))? *$',
            ['date', 'hour', 'minute', 'second', 'fraction', 'half', 'zone']
        )],
        lambda part: {
            clock: try_cast(concat(
                day_of(part.date)::date,
                ' ',
                case
                    when part.half = '' then lpad(part.hour, 2, '0')
                    else strftime(
                        try_strptime(concat(part.hour, part.half, 'M'), '%I%p'), '%H'
                    )
                end,
                ':', lpad(part.minute, 2, '0'),
                ':', lpad(part.second, 2, '0'),
                replace(part.fraction, ',', '.')
            ) as timestamp),
            zone: part.zone
        }
    )[1];

create macro parse_other(text) as
    list_transform(
        [clock_of(text)],
        lambda found: list_transform(
            [offset_of(found.zone)],
            lambda ahead: case
                when ahead between interval '-14 hours' and interval '14 hours'
                    then epoch_us(found.clock - ahead)
            end
        )[1]
    )[1];

-- A time given as text, in microseconds since 1970. Each reading is tried where
-- those before it fail.
create macro parse_time(text) as
    coalesce(
        parse_common(text),
        parse_digits(text),
        parse_decimal(text),
        parse_plain(text),
        parse_other(text)
    );

-- The same with a time zone.
create macro time_of(text) as try(make_timestamptz(parse_time(trim(text))));

-- Whether a time is from 1990, before the first page of the Web, to so many
-- microseconds after now, or after `--as-of`, if it is given: others are misread, or
-- stand for none (1970, the year 0).
create macro within(t, ahead) as
    t between epoch_us(timestamp '1990-01-01')
        and epoch_us(coalesce(getvariable('as_of')::timestamptz, now())) + ahead;

-- A crawl cannot be later than now. A day more than that is the fault of a time zone;
-- a clock that is ahead by more would keep its pages from being crawled for as long.
create macro plausible(t) as within(t, 86400000000);

-- A time with a time zone, if it is at most a year ahead, as dates that pages, servers
-- and crawlers give may be. The macro's argument, often the long
-- expression of `time_of`, is written into the query for each use: with a lambda that
-- is once, and the query is planned in less than half of the time.
create macro sound(time) as
    list_transform(
        [time],
        lambda moment: case
            when within(epoch_us(moment), 31622400000000) then moment
        end
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
            then 'whose time is before 1990 or more than a day from now'
    end;

-- Why a time cannot be read.
create macro unread(text) as
    case
        when lost_digits(text)
            then 'whose time has lost its digits, as 1.79E+12 of a spreadsheet has'
        else 'whose time cannot be read'
    end;

create macro no_url(text) as is_nothing(text) or text[1] in ('[', '{');

-- Why a row has no time, whose cells in our columns are url, time and others: it may
-- repeat the names of columns, or name others, as in files that were joined and tables
-- to which a crawler has appended. A single name counts if there is a word without
-- digits in place of the time.
create macro untimed(cells, names, ours) as
    list_transform(
        [cells],
        lambda given: case
            when list_transform(given, lambda cell: plain_name(cell)) = ours
                then 'that repeat the names of columns'
            when len(list_filter(given, lambda cell: plain_name(cell) in names))
                    > if(regexp_matches(given[2], '^\D+$'), 0, 1)
                then 'that name other columns'
            when no_url(given[1]) then 'without a url'
            else unread(given[2])
        end
    )[1];

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

-- One server has one name: in small letters, without user and password, and without
-- the port that its scheme has anyway. Exports may lack the scheme.
create macro host_of(url) as
    case
        when url like '%://%' then regexp_extract(
            regexp_replace(
                lower(url),
                '^(http://[^/?#]*):80($|[/?#])|^(https://[^/?#]*):443($|[/?#])',
                '\1\2\3\4'
            ),
            '^[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?([^/?#@]*)',
            1
        )
        else regexp_extract(lower(url), '^((?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d+)?)/', 1)
    end;
