-- The first schema. It holds every table of the design, those that later versions fill included,
-- so that hosts of different versions can work on one database. Names and columns are the same as
-- in ../postgres/0001_initial.sql. Instants are fixed-width UTC text, and a CHECK refuses any other
-- shape: it would sort wrongly, and a lock would never expire.

-- The one place where SQL reads the clock: the host's wall clock, in UTC, in the one shape that sorts
-- by time. Read in a statement that follows BEGIN IMMEDIATE, it is later than any wait for the file.
CREATE VIEW cronlatch_now_v1 (now) AS SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now');

-- Every grant draws its fencing token here, so tokens rise even over rows that were pruned.
CREATE TABLE fencing_tokens (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    last INTEGER NOT NULL
);
INSERT INTO fencing_tokens VALUES (1, 0);

-- One row a resource. Renewals change renewed_at and expires_at only: no index on either so
-- that they stay cheap.
CREATE TABLE distributed_locks (
    id          INTEGER PRIMARY KEY,
    resource    TEXT        NOT NULL UNIQUE CHECK (length(resource) BETWEEN 1 AND 255),
    owner       TEXT        NOT NULL CHECK (length(owner) BETWEEN 1 AND 255),
    token       INTEGER      NOT NULL,
    acquired_at TEXT NOT NULL CHECK (acquired_at GLOB '????-??-??T??:??:??.???Z'),
    renewed_at  TEXT NOT NULL CHECK (renewed_at GLOB '????-??-??T??:??:??.???Z'),
    expires_at  TEXT NOT NULL CHECK (expires_at GLOB '????-??-??T??:??:??.???Z'),
    released_at TEXT CHECK (released_at GLOB '????-??-??T??:??:??.???Z')
);

-- One row an attempt at a trigger. UNIQUE over the trigger and the attempt is what lets one host
-- alone run it, whatever the clocks say and however short the job is.
CREATE TABLE runs (
    id                TEXT PRIMARY KEY,
    job               TEXT        NOT NULL,
    scheduled_at      TEXT NOT NULL CHECK (scheduled_at GLOB '????-??-??T??:??:??.???Z'),
    target            TEXT        NOT NULL DEFAULT '',
    origin            TEXT        NOT NULL DEFAULT 'schedule',
    attempt           INTEGER     NOT NULL DEFAULT 1,
    trigger           TEXT        NOT NULL CHECK (trigger IN
                          ('schedule', 'manual', 'catch_up', 'retry', 'rerun', 'after')),
    state             TEXT        NOT NULL CHECK (state IN
                          ('waiting', 'claimed', 'running', 'succeeded', 'failed', 'cancelled', 'lost', 'skipped', 'missed')),
    created_at        TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.???Z'),
    wait_until        TEXT CHECK (wait_until GLOB '????-??-??T??:??:??.???Z'),
    host              TEXT,
    instance          TEXT,
    owner             TEXT,
    resource          TEXT        NOT NULL,
    token             INTEGER,
    claimed_at        TEXT CHECK (claimed_at GLOB '????-??-??T??:??:??.???Z'),
    started_at        TEXT CHECK (started_at GLOB '????-??-??T??:??:??.???Z'),
    finished_at       TEXT CHECK (finished_at GLOB '????-??-??T??:??:??.???Z'),
    exit_code         INTEGER,
    signal            INTEGER,
    reason            TEXT,
    blocked_by        TEXT,
    start_deadline_ms INTEGER      NOT NULL,
    -- Until when it may wait for a host, however often it is given back.
    start_by          TEXT NOT NULL CHECK (start_by GLOB '????-??-??T??:??:??.???Z'),
    reruns_left       INTEGER     NOT NULL DEFAULT 0,
    cpu_ms            INTEGER,
    memory_peak_kib   INTEGER,
    output_tail       TEXT,
    UNIQUE (job, scheduled_at, target, origin, attempt)
);

-- Recovery, waiting and the holder's run look at open runs only; they are few.
CREATE INDEX runs_open_by_job ON runs (job) WHERE state IN ('waiting', 'claimed', 'running');
CREATE INDEX runs_open_by_resource ON runs (resource) WHERE state IN ('waiting', 'claimed', 'running');

-- One trigger of a job at most waits for its lock.
CREATE UNIQUE INDEX runs_one_waits ON runs (job, target) WHERE state = 'waiting' AND reason = 'lock_held';

CREATE TABLE hosts (
    instance        TEXT PRIMARY KEY,
    name            TEXT        NOT NULL,
    version         TEXT        NOT NULL,
    labels          TEXT        NOT NULL DEFAULT '[]',
    schedule_digest TEXT        NOT NULL,
    clock_offset_ms INTEGER,
    draining        INTEGER     NOT NULL DEFAULT 0,
    stale_after_ms  INTEGER      NOT NULL,
    started_at      TEXT NOT NULL CHECK (started_at GLOB '????-??-??T??:??:??.???Z'),
    seen_at         TEXT NOT NULL CHECK (seen_at GLOB '????-??-??T??:??:??.???Z')
);

CREATE TABLE jobs (
    name              TEXT PRIMARY KEY,
    digest            TEXT        NOT NULL,
    paused            INTEGER     NOT NULL DEFAULT 0,
    paused_by         TEXT,
    paused_reason     TEXT,
    paused_at         TEXT CHECK (paused_at GLOB '????-??-??T??:??:??.???Z'),
    paused_until      TEXT CHECK (paused_until GLOB '????-??-??T??:??:??.???Z'),
    -- Claims have to be later: the history before it is pruned.
    pruned_through    TEXT CHECK (pruned_through GLOB '????-??-??T??:??:??.???Z'),
    -- Everything up to here is accounted for by rows or ranges.
    caught_up_through TEXT NOT NULL CHECK (caught_up_through GLOB '????-??-??T??:??:??.???Z'),
    last_run_at       TEXT CHECK (last_run_at GLOB '????-??-??T??:??:??.???Z'),
    last_success_at   TEXT CHECK (last_success_at GLOB '????-??-??T??:??:??.???Z')
);

-- What each daemon last read of each job, so that hosts with another version of it are seen.
CREATE TABLE job_definitions (
    job      TEXT        NOT NULL,
    instance TEXT        NOT NULL,
    digest   TEXT        NOT NULL,
    seen_at  TEXT NOT NULL CHECK (seen_at GLOB '????-??-??T??:??:??.???Z'),
    PRIMARY KEY (job, instance)
);

-- Triggers that are over without a row each: an outage, a pause, a blackout.
CREATE TABLE trigger_ranges (
    id          INTEGER PRIMARY KEY,
    job         TEXT        NOT NULL,
    kind        TEXT        NOT NULL CHECK (kind IN ('missed', 'paused', 'blackout')),
    reason      TEXT        NOT NULL,
    range_from  TEXT NOT NULL CHECK (range_from GLOB '????-??-??T??:??:??.???Z'),
    range_to    TEXT NOT NULL CHECK (range_to GLOB '????-??-??T??:??:??.???Z'),
    count       INTEGER      NOT NULL,
    recorded_at TEXT NOT NULL CHECK (recorded_at GLOB '????-??-??T??:??:??.???Z')
);
CREATE INDEX trigger_ranges_by_job ON trigger_ranges (job, range_to);

-- Manual triggers and cancels, waiting for a host.
CREATE TABLE requests (
    id         TEXT PRIMARY KEY,
    kind       TEXT        NOT NULL CHECK (kind IN ('start', 'cancel')),
    job        TEXT,
    run        TEXT,
    host       TEXT,
    parameters TEXT        NOT NULL DEFAULT '{}',
    made_by    TEXT,
    made_at    TEXT NOT NULL CHECK (made_at GLOB '????-??-??T??:??:??.???Z'),
    taken_by   TEXT,
    taken_at   TEXT CHECK (taken_at GLOB '????-??-??T??:??:??.???Z'),
    done_at    TEXT CHECK (done_at GLOB '????-??-??T??:??:??.???Z'),
    outcome    TEXT
);
CREATE INDEX requests_open ON requests (made_at) WHERE done_at IS NULL;

-- Locks held by others than runs (HTTP, `cronlatch lock`), for the reports about contention.
CREATE TABLE holds (
    id          INTEGER PRIMARY KEY,
    resource    TEXT        NOT NULL,
    owner       TEXT        NOT NULL,
    token       INTEGER      NOT NULL,
    acquired_at TEXT NOT NULL CHECK (acquired_at GLOB '????-??-??T??:??:??.???Z'),
    ended_at    TEXT CHECK (ended_at GLOB '????-??-??T??:??:??.???Z'),
    ending      TEXT
);
CREATE INDEX holds_by_resource ON holds (resource, acquired_at);
