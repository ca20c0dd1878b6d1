-- Of the rows of one table, of which the view `fields` gives the values: why one
-- cannot be used (`unfit`), and whether its importance cannot be read.
-- In place of {cells} is a list of the texts in our columns, in their order; the
-- variables `names` and `ours`, plain, are the names of all columns of the file, and
-- of those that hold ours.

create or replace temp view judged as
select
    *,
    coalesce(
        case
            when t is null
                then untimed({cells}, getvariable('names'), getvariable('ours'))
            when no_url(url) then 'without a url'
        end,
        unusable(url, t),
        case
            when status is null and status_text <> ''
                then 'whose status is not a number'
            when failed(status) then {failed}
        end
    ) as unfit,
    case when importance_text <> '' and importance is null
        then 'whose importance is not a number from 0'
    end as unweighted
from fields
