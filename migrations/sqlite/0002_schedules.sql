-- Schedules: a job that runs on every host has a watermark for each, late runs start one after the
-- other, jobs follow others, and a pause is accounted for. Names and columns are the same as in
-- ../postgres/0002_schedules.sql.

-- How far a job's triggers are accounted for, for each target.
CREATE TABLE job_progress (
    job               TEXT NOT NULL,
    -- '' for a job that runs on one host, else the host that runs it.
    target            TEXT NOT NULL DEFAULT '',
    -- What its definition hashed to when it was registered; '' once no host has it any more.
    digest            TEXT NOT NULL,
    -- Everything up to here is accounted for by rows or ranges.
    caught_up_through TEXT NOT NULL CHECK (caught_up_through GLOB '????-??-??T??:??:??.???Z'),
    -- When a host that lives had it in its file, to a day.
    seen_at           TEXT NOT NULL CHECK (seen_at GLOB '????-??-??T??:??:??.???Z'),
    -- When it was last registered with another definition; NULL if never.
    edited_at         TEXT CHECK (edited_at GLOB '????-??-??T??:??:??.???Z'),
    PRIMARY KEY (job, target)
);
CREATE INDEX job_progress_of_hosts ON job_progress (seen_at) WHERE target <> '';

INSERT INTO job_progress (job, target, digest, caught_up_through, seen_at)
SELECT j.name, '', j.digest, j.caught_up_through, c.now FROM jobs j CROSS JOIN cronlatch_now_v1 c;
ALTER TABLE jobs DROP COLUMN caught_up_through;

-- For whom the triggers were.
ALTER TABLE trigger_ranges ADD COLUMN target TEXT NOT NULL DEFAULT '';

-- Nobody takes a waiting run before it.
ALTER TABLE runs ADD COLUMN not_before TEXT CHECK (not_before GLOB '????-??-??T??:??:??.???Z');
