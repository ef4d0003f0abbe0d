-- What a run used. Hosts of version 2 go on meanwhile. Names and columns are the same as in
-- ../postgres/0003_outcomes.sql.

SELECT 1;
