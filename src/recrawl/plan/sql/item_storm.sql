-- Without a dump: what StormCrawler makes of a URL if documents are routed by host.

create table item as
select
    url,
    'status' as name,
    sha256(url) as id,
    regexp_extract(
        url, '^[a-zA-Z]+://(?:[^/?#]*@)?(\[[^\]]*\]|[^/:?#]*)', 1
    ) as routing
from plan
