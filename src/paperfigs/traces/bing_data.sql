-- The text files of the Bing data set into two Parquet files. bing_data.py sets
-- the variables: folder, rates (a file), sources, histories, pages (targets).
--
-- Every file becomes a table of its lines (line, id, value) with the reason
-- why a line cannot be used, if there is one. The histories, nearly all of
-- the data, go straight to Parquet in the order of their lines, without a
-- join or a sort, so that memory is bounded; everything else is small.

-- Lines with a wrong number of columns or an unreadable number are rejected
-- by DuckDB, which keeps count of them in reject_errors.
CREATE MACRO rows_of(file, types) AS TABLE
    FROM read_csv(file, columns = types, auto_detect = false, header = false,
        delim = '\t', quote = '', escape = '', store_rejects = true);

CREATE MACRO lines(file, types) AS TABLE
    SELECT row_number() OVER () AS line, id, value FROM rows_of(file, types);

CREATE MACRO unless(good) AS
    CASE WHEN coalesce(good, false) THEN NULL
        ELSE 'a value that is missing or out of range' END;

-- Of lines with the same id the first is used.
CREATE MACRO first_lines(lines) AS TABLE
    SELECT id, arg_min(value, line) AS value
    FROM query_table(lines) WHERE reason IS NULL GROUP BY id;

CREATE TABLE url AS
    SELECT *, unless(id IS NOT NULL AND value IS NOT NULL) AS reason
    FROM lines(getvariable('folder') || '/url_urlid_hostid.txt',
        {name: 'VARCHAR', id: 'BIGINT', value: 'BIGINT'});

CREATE TABLE host AS
    SELECT *, unless(id IS NOT NULL AND value IN (0, 1)) AS reason
    FROM lines(getvariable('folder') || '/host_hostid_isconstrained.txt',
        {name: 'VARCHAR', id: 'BIGINT', value: 'BIGINT'});

CREATE TABLE importance AS
    SELECT *, unless(id IS NOT NULL AND value >= 0 AND value < 'inf') AS reason
    FROM lines(getvariable('folder') || '/urlid_imp.txt',
        {id: 'BIGINT', value: 'DOUBLE'});

CREATE TABLE rate AS
    SELECT *, unless(id IS NOT NULL AND value >= 0 AND value < 'inf') AS reason
    FROM lines(getvariable('rates'), {id: 'BIGINT', value: 'DOUBLE'});

-- from_json is eight times as fast as a cast of the text to DOUBLE[][]
-- (measured). It reads numbers of up to 15 digits, as the data have,
-- exactly, and longer ones to one unit in the last place. The file is not
-- compressed, since that would halve the speed.
COPY (
    WITH parsed AS (
        SELECT id, start, try(from_json(value, '[["DOUBLE"]]')) AS crawls
        FROM rows_of(getvariable('folder') || '/urlid_offset_history.txt',
            {id: 'BIGINT', start: 'DOUBLE', value: 'VARCHAR'})
    )
    SELECT id, len(crawls) AS value, [crawl[1] FOR crawl IN crawls] AS interval,
        [crawl[2] = 1 FOR crawl IN crawls] AS changed,
        CASE WHEN id IS NULL OR start IS NULL THEN unless(false)
            WHEN crawls IS NULL THEN 'a history that cannot be read, or cut off'
            WHEN NOT list_bool_and([coalesce(len(crawl) = 2 AND crawl[1] > 0
                AND crawl[1] < 'inf' AND crawl[2] IN (0, 1), false)
                FOR crawl IN crawls])
            THEN 'an interval that is not positive and finite, or a bit not 0 or 1'
        END AS reason
    FROM parsed
) TO (getvariable('histories'))
    (FORMAT parquet, COMPRESSION uncompressed, ROW_GROUP_SIZE 16384);

CREATE VIEW history AS
    SELECT file_row_number AS line, id, value, reason
    FROM read_parquet(getvariable('histories'), file_row_number = true);

CREATE TABLE page AS
    SELECT usable.line, id AS url, importance.value AS importance,
        url.value AS host, host.value = 1 AS constrained,
        coalesce(rate.value, 'nan') AS known_rate, usable.value AS n_crawls,
        CASE WHEN url.value IS NULL THEN 'a URL without host'
            WHEN host.value IS NULL THEN 'a URL of an unknown host'
            WHEN importance.value IS NULL THEN 'a URL without importance'
        END AS reason
    FROM (SELECT id, min(line) AS line, arg_min(value, line) AS value
            FROM history WHERE reason IS NULL GROUP BY id) AS usable
        LEFT JOIN first_lines('url') AS url USING (id)
        LEFT JOIN first_lines('host') AS host ON host.id = url.value
        LEFT JOIN first_lines('importance') AS importance USING (id)
        LEFT JOIN first_lines('rate') AS rate USING (id);

CREATE MACRO unusable(file, lines) AS TABLE
    SELECT file, reason, count(*), 'id ' || coalesce(min(id)::VARCHAR, 'missing')
    FROM query_table(lines) WHERE reason IS NOT NULL GROUP BY reason
    UNION ALL
    SELECT file, 'an id that an earlier line has', sum(n - 1), 'id ' || min(id)
    FROM (SELECT id, count(*) AS n FROM query_table(lines)
        WHERE reason IS NULL GROUP BY id)
    WHERE n > 1 HAVING count(*) > 0;

CREATE TABLE malformed(file, reason, number, place) AS
    FROM unusable('url_urlid_hostid.txt', 'url')
    UNION ALL FROM unusable('host_hostid_isconstrained.txt', 'host')
    UNION ALL FROM unusable('urlid_imp.txt', 'importance')
    UNION ALL FROM unusable('urlid_chrate_compl_obs_hist.txt', 'rate')
    UNION ALL FROM unusable('urlid_offset_history.txt', 'history')
    UNION ALL SELECT 'urlid_offset_history.txt', reason, count(*), 'id ' || min(url)
    FROM page WHERE reason IS NOT NULL GROUP BY reason
    UNION ALL SELECT parse_filename(file_path), lower(error), count(*),
        'line ' || min(line)
    FROM ( -- a line may be rejected for two errors: for a missing column first
        SELECT file_path, line, max(error_type) AS error
        FROM reject_errors JOIN reject_scans USING (scan_id, file_id) GROUP BY ALL
    ) GROUP BY file_path, error;

SET VARIABLE about = (SELECT to_json({sources: getvariable('sources'),
    malformed: coalesce(list([file, reason, number::VARCHAR, place]), [])})
    FROM malformed);

COPY (SELECT * EXCLUDE (reason) FROM page WHERE reason IS NULL ORDER BY line)
TO (getvariable('pages')) (FORMAT parquet, KV_METADATA {paperlib: getvariable('about')});

SELECT sum(n_crawls) FROM page WHERE reason IS NULL;
