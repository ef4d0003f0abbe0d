-- Outcomes: what a run used, retries under one lease, requests to stop a run, and jobs whose newest
-- trigger replaces the run that is under way. Daemons of version 2 go on meanwhile; what they leave out
-- is that they obey no request and carry no count of retries on. Names and columns are the same as in
-- ../postgres/0003_outcomes.sql.

-- How many attempts at its trigger were retries up to this one: a host that takes it goes on counting.
ALTER TABLE runs ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;

-- Why a run is to stop, in words, and which run takes its place. One cancel a run: asked twice it is
-- one request.
ALTER TABLE requests ADD COLUMN reason TEXT;
ALTER TABLE requests ADD COLUMN replaced_by TEXT;
CREATE UNIQUE INDEX requests_one_cancel ON requests (run) WHERE kind = 'cancel';

-- One trigger of a job at most waits to replace its run: the newest.
CREATE UNIQUE INDEX runs_one_replaces ON runs (job, target) WHERE state = 'waiting' AND reason = 'replacing';
