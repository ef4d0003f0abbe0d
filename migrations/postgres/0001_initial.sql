-- The first schema. It holds every table of the design, those that later versions fill included,
-- so that hosts of different versions can work on one database. Names and columns are the same as
-- in ../sqlite/0001_initial.sql.

-- The one place where SQL reads the clock: the time of the call, not of the transaction, which may
-- have waited. Inlined by the planner.
CREATE FUNCTION cronlatch_now_v1() RETURNS timestamptz
LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- Every grant draws its fencing token here, so tokens rise even over rows that were pruned.
CREATE SEQUENCE fencing_tokens AS bigint;

-- One row a resource. Renewals change renewed_at and expires_at only: no index on either and room
-- in the page, so that they stay HOT.
CREATE TABLE distributed_locks (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    resource    text        NOT NULL UNIQUE CHECK (char_length(resource) BETWEEN 1 AND 255),
    owner       text        NOT NULL CHECK (char_length(owner) BETWEEN 1 AND 255),
    token       bigint      NOT NULL,
    acquired_at timestamptz NOT NULL,
    renewed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    released_at timestamptz
) WITH (fillfactor = 50);

-- One row an attempt at a trigger. UNIQUE over the trigger and the attempt is what lets one host
-- alone run it, whatever the clocks say and however short the job is.
CREATE TABLE runs (
    id                uuid PRIMARY KEY,
    job               text        NOT NULL,
    scheduled_at      timestamptz NOT NULL,
    target            text        NOT NULL DEFAULT '',
    origin            text        NOT NULL DEFAULT 'schedule',
    attempt           integer     NOT NULL DEFAULT 1,
    trigger           text        NOT NULL CHECK (trigger IN
                          ('schedule', 'manual', 'catch_up', 'retry', 'rerun', 'after')),
    state             text        NOT NULL CHECK (state IN
                          ('waiting', 'claimed', 'running', 'succeeded', 'failed', 'cancelled', 'lost', 'skipped', 'missed')),
    created_at        timestamptz NOT NULL,
    wait_until        timestamptz,
    host              text,
    instance          uuid,
    owner             text,
    resource          text        NOT NULL,
    token             bigint,
    claimed_at        timestamptz,
    started_at        timestamptz,
    finished_at       timestamptz,
    exit_code         integer,
    signal            integer,
    reason            text,
    blocked_by        uuid,
    start_deadline_ms bigint      NOT NULL,
    -- Until when it may wait for a host, however often it is given back.
    start_by          timestamptz NOT NULL,
    reruns_left       integer     NOT NULL DEFAULT 0,
    cpu_ms            bigint,
    memory_peak_kib   bigint,
    output_tail       text,
    UNIQUE (job, scheduled_at, target, origin, attempt)
);

-- Recovery, waiting and the holder's run look at open runs only; they are few.
CREATE INDEX runs_open_by_job ON runs (job) WHERE state IN ('waiting', 'claimed', 'running');
CREATE INDEX runs_open_by_resource ON runs (resource) WHERE state IN ('waiting', 'claimed', 'running');

-- One trigger of a job at most waits for its lock, also when hosts claim two at once.
CREATE UNIQUE INDEX runs_one_waits ON runs (job, target) WHERE state = 'waiting' AND reason = 'lock_held';

CREATE TABLE hosts (
    instance        uuid PRIMARY KEY,
    name            text        NOT NULL,
    version         text        NOT NULL,
    labels          text        NOT NULL DEFAULT '[]',
    schedule_digest text        NOT NULL,
    clock_offset_ms bigint,
    draining        boolean     NOT NULL DEFAULT false,
    stale_after_ms  bigint      NOT NULL,
    started_at      timestamptz NOT NULL,
    seen_at         timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE jobs (
    name              text PRIMARY KEY,
    digest            text        NOT NULL,
    paused            boolean     NOT NULL DEFAULT false,
    paused_by         text,
    paused_reason     text,
    paused_at         timestamptz,
    paused_until      timestamptz,
    -- Claims have to be later: the history before it is pruned.
    pruned_through    timestamptz,
    -- Everything up to here is accounted for by rows or ranges.
    caught_up_through timestamptz NOT NULL,
    last_run_at       timestamptz,
    last_success_at   timestamptz
) WITH (fillfactor = 50);

-- What each daemon last read of each job, so that hosts with another version of it are seen.
CREATE TABLE job_definitions (
    job      text        NOT NULL,
    instance uuid        NOT NULL,
    digest   text        NOT NULL,
    seen_at  timestamptz NOT NULL,
    PRIMARY KEY (job, instance)
);

-- Triggers that are over without a row each: an outage, a pause, a blackout.
CREATE TABLE trigger_ranges (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job         text        NOT NULL,
    kind        text        NOT NULL CHECK (kind IN ('missed', 'paused', 'blackout')),
    reason      text        NOT NULL,
    range_from  timestamptz NOT NULL,
    range_to    timestamptz NOT NULL,
    count       bigint      NOT NULL,
    recorded_at timestamptz NOT NULL
);
CREATE INDEX trigger_ranges_by_job ON trigger_ranges (job, range_to);

-- Manual triggers and cancels, waiting for a host.
CREATE TABLE requests (
    id         uuid PRIMARY KEY,
    kind       text        NOT NULL CHECK (kind IN ('start', 'cancel')),
    job        text,
    run        uuid,
    host       text,
    parameters text        NOT NULL DEFAULT '{}',
    made_by    text,
    made_at    timestamptz NOT NULL,
    taken_by   uuid,
    taken_at   timestamptz,
    done_at    timestamptz,
    outcome    text
);
CREATE INDEX requests_open ON requests (made_at) WHERE done_at IS NULL;

-- Locks held by others than runs (HTTP, `cronlatch lock`), for the reports about contention.
CREATE TABLE holds (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    resource    text        NOT NULL,
    owner       text        NOT NULL,
    token       bigint      NOT NULL,
    acquired_at timestamptz NOT NULL,
    ended_at    timestamptz,
    ending      text
);
CREATE INDEX holds_by_resource ON holds (resource, acquired_at);

-- The answer of a grant, shared by the functions below.
CREATE TYPE cronlatch_grant_v1 AS (
    outcome     text,         -- granted, held, clock_stepped
    resource    text,
    owner       text,         -- held: whose
    token       bigint,
    acquired_at timestamptz,
    expires_at  timestamptz,
    now         timestamptz,  -- read after the last wait
    run         uuid,         -- held: which run it guards
    off_ms      bigint,       -- clock_stepped: by how much
    prev_owner       text,    -- granted: from whom, if it was never released
    prev_token       bigint,
    prev_acquired_at timestamptz,
    prev_expires_at  timestamptz
);

-- Grants a lock, or says who holds it. Looks before it locks: an attempt that is refused writes
-- nothing and stands before nobody. The clock is read after the wait for the row.
CREATE FUNCTION cronlatch_grant_v1(
    p_resource text, p_owner text, p_ttl_ms bigint, p_expected_now timestamptz
) RETURNS cronlatch_grant_v1 LANGUAGE plpgsql AS $$
DECLARE
    l distributed_locks%ROWTYPE;
    a cronlatch_grant_v1;
    ttl interval := p_ttl_ms * interval '1 millisecond';
BEGIN
    a.resource := p_resource;
    LOOP
        SELECT * INTO l FROM distributed_locks WHERE resource = p_resource;
        a.now := cronlatch_now_v1();
        IF NOT FOUND THEN
            -- Behind another insert this waits; the expiry then lies early, never late.
            INSERT INTO distributed_locks (resource, owner, token, acquired_at, renewed_at, expires_at)
            VALUES (p_resource, p_owner, nextval('fencing_tokens'), a.now, a.now, a.now + ttl)
            ON CONFLICT (resource) DO NOTHING
            RETURNING * INTO l;
            IF NOT FOUND THEN CONTINUE; END IF;
            a.outcome := 'granted';
            EXIT;
        END IF;
        IF l.expires_at > a.now AND l.owner <> p_owner THEN
            a.outcome := 'held';
            EXIT;
        END IF;
        SELECT * INTO l FROM distributed_locks WHERE id = l.id FOR UPDATE;
        IF NOT FOUND THEN CONTINUE; END IF;
        a.now := cronlatch_now_v1();
        IF l.expires_at > a.now THEN
            IF l.owner <> p_owner THEN
                a.outcome := 'held';
                EXIT;
            END IF;
            UPDATE distributed_locks
            SET acquired_at = a.now, renewed_at = a.now, expires_at = a.now + ttl
            WHERE id = l.id RETURNING * INTO l;
        ELSE
            IF l.released_at IS NULL THEN
                a.off_ms := extract(epoch FROM a.now - p_expected_now) * 1000;
                IF abs(a.off_ms) > 1000 THEN
                    a.outcome := 'clock_stepped';
                    EXIT;
                END IF;
                a.prev_owner := l.owner;
                a.prev_token := l.token;
                a.prev_acquired_at := l.acquired_at;
                a.prev_expires_at := l.expires_at;
            END IF;
            -- The token is drawn here, under the row lock.
            UPDATE distributed_locks
            SET owner = p_owner, token = nextval('fencing_tokens'),
                acquired_at = a.now, renewed_at = a.now, expires_at = a.now + ttl, released_at = NULL
            WHERE id = l.id RETURNING * INTO l;
        END IF;
        a.outcome := 'granted';
        EXIT;
    END LOOP;
    a.owner := l.owner;
    a.token := l.token;
    a.acquired_at := l.acquired_at;
    a.expires_at := l.expires_at;
    IF a.outcome = 'held' THEN
        SELECT r.id INTO a.run FROM runs r
        WHERE r.resource = p_resource AND r.token = l.token AND r.state IN ('claimed', 'running');
    END IF;
    RETURN a;
END $$;

-- Acquires for anybody.
CREATE FUNCTION cronlatch_acquire_v1(
    p_resource text, p_owner text, p_ttl_ms bigint, p_expected_now timestamptz
) RETURNS cronlatch_grant_v1 LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    RETURN cronlatch_grant_v1(p_resource, p_owner, p_ttl_ms, p_expected_now);
END $$;

-- A live run of this job under another lock: its `lock` was changed, or hosts disagree about it.
CREATE FUNCTION cronlatch_other_run_v1(
    p_job text, p_target text, p_resource text
) RETURNS cronlatch_grant_v1 LANGUAGE plpgsql AS $$
DECLARE
    a cronlatch_grant_v1;
BEGIN
    SELECT 'held', l.resource, l.owner, l.token, l.acquired_at, l.expires_at, cronlatch_now_v1(), o.id
    INTO a.outcome, a.resource, a.owner, a.token, a.acquired_at, a.expires_at, a.now, a.run
    FROM runs o JOIN distributed_locks l ON l.resource = o.resource AND l.token = o.token
    WHERE o.job = p_job AND o.target = p_target AND o.state IN ('claimed', 'running')
      AND o.resource <> p_resource AND l.released_at IS NULL AND l.expires_at > cronlatch_now_v1()
    LIMIT 1;
    RETURN a;
END $$;

-- Frees a lock that the caller holds. The clock is read after the wait for the row: what ran out
-- meanwhile was nobody's to release.
CREATE FUNCTION cronlatch_release_v1(p_resource text, p_owner text, p_token bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    l distributed_locks%ROWTYPE;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    SELECT * INTO l FROM distributed_locks
    WHERE resource = p_resource AND owner = p_owner AND (p_token IS NULL OR token = p_token)
      AND released_at IS NULL FOR UPDATE;
    IF NOT FOUND OR l.expires_at <= cronlatch_now_v1() THEN
        RETURN false;
    END IF;
    -- The epoch, so that a clock that steps back revives nothing.
    UPDATE distributed_locks SET expires_at = 'epoch', released_at = cronlatch_now_v1() WHERE id = l.id;
    RETURN true;
END $$;

-- The answer of a claim.
CREATE TYPE cronlatch_claim_v1 AS (
    outcome    text,          -- granted, already_claimed, held, too_early, too_late, paused, forgotten, settled
    run        uuid,          -- already_claimed: which
    host       text,          -- already_claimed: whose
    state      text,          -- already_claimed, held: where the run is now
    reason     text,          -- held: why
    wait_until timestamptz,   -- held: until when it waits
    early_ms   bigint,        -- too_early: by how much
    read_at    timestamptz,   -- too_late: what the clock said
    lock       cronlatch_grant_v1
);

-- Claims a trigger and its lock. A function, because one statement can't: it would not see the
-- winner's row, nor update the row that it inserted.
CREATE FUNCTION cronlatch_claim_v1(
    p_run uuid, p_job text, p_scheduled_at timestamptz, p_target text, p_origin text, p_attempt integer,
    p_trigger text, p_host text, p_instance uuid, p_owner text, p_public_owner text, p_resource text,
    p_ttl_ms bigint, p_expected_now timestamptz, p_give_up_at timestamptz, p_wait_ms bigint,
    p_start_deadline_ms bigint, p_reruns_left integer
) RETURNS cronlatch_claim_v1 LANGUAGE plpgsql AS $$
DECLARE
    c cronlatch_claim_v1;
    g cronlatch_grant_v1;
    r runs%ROWTYPE;
    j jobs%ROWTYPE;
    t timestamptz := cronlatch_now_v1();
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    c.early_ms := extract(epoch FROM p_scheduled_at - t) * 1000;
    IF c.early_ms > 1000 THEN
        c.outcome := 'too_early';
        RETURN c;
    END IF;
    -- One claim of a job at a time: hosts that disagree about its lock would not see one another's
    -- run before it is committed, nor would catch-up. Held to the end of the transaction, never by
    -- the session. The first key keeps it apart from other users of such locks.
    PERFORM pg_advisory_xact_lock(1668246382, hashtext(p_job));
    t := cronlatch_now_v1();
    SELECT * INTO j FROM jobs WHERE name = p_job;
    IF NOT EXISTS (SELECT FROM runs WHERE job = p_job AND scheduled_at = p_scheduled_at AND target = p_target
                   AND origin = p_origin AND attempt = p_attempt) THEN
        -- A request that lay on its way until nobody waits for its answer grants nothing.
        IF p_give_up_at < t THEN
            c.outcome := 'too_late';
            c.read_at := t;
            RETURN c;
        END IF;
        IF j.pruned_through >= p_scheduled_at THEN
            c.outcome := 'forgotten';
            RETURN c;
        END IF;
        IF j.paused AND (j.paused_until IS NULL OR j.paused_until > t) THEN
            c.outcome := 'paused';
            RETURN c;
        END IF;
        IF p_trigger = 'schedule' AND p_origin = 'schedule' AND p_target = ''
           AND j.caught_up_through >= p_scheduled_at THEN
            c.outcome := 'settled';
            RETURN c;
        END IF;
    END IF;

    -- Whoever inserts the row has the trigger; a loser waits for the winner's commit here.
    INSERT INTO runs (id, job, scheduled_at, target, origin, attempt, trigger, state, created_at, host, instance,
                      owner, resource, start_deadline_ms, start_by, reruns_left)
    VALUES (p_run, p_job, p_scheduled_at, p_target, p_origin, p_attempt, p_trigger, 'claimed', t, p_host, p_instance,
            p_public_owner, p_resource, p_start_deadline_ms, t + p_start_deadline_ms * interval '1 millisecond',
            p_reruns_left)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        SELECT * INTO r FROM runs
        WHERE job = p_job AND scheduled_at = p_scheduled_at AND target = p_target AND origin = p_origin
          AND attempt = p_attempt;
        c.run := r.id;
        c.host := r.host;
        c.state := r.state;
        c.reason := r.reason;
        c.wait_until := r.wait_until;
        c.outcome := 'already_claimed';
        IF r.id = p_run AND r.state IN ('claimed', 'running') AND r.owner = p_public_owner THEN
            -- The same claim again: its first answer was lost.
            SELECT p_resource, l.owner, l.token, l.acquired_at, l.expires_at
            INTO g.resource, g.owner, g.token, g.acquired_at, g.expires_at
            FROM distributed_locks l
            WHERE l.resource = p_resource AND l.owner = p_owner AND l.token = r.token;
            IF FOUND THEN
                g.outcome := 'granted';
                g.now := cronlatch_now_v1();
                c.outcome := 'granted';
                c.lock := g;
            END IF;
        ELSIF r.id = p_run AND r.state IN ('waiting', 'skipped') THEN
            c.outcome := 'held';
        END IF;
        RETURN c;
    END IF;

    g := cronlatch_other_run_v1(p_job, p_target, p_resource);
    IF g.outcome IS NULL THEN
        g := cronlatch_grant_v1(p_resource, p_owner, p_ttl_ms, p_expected_now);
    END IF;
    c.lock := g;
    IF g.outcome = 'granted' THEN
        UPDATE runs SET token = g.token, claimed_at = g.acquired_at WHERE id = p_run;
        c.outcome := 'granted';
        RETURN c;
    END IF;

    c.outcome := 'held';
    t := cronlatch_now_v1();
    IF g.outcome = 'clock_stepped' THEN
        c.state := 'waiting';
        c.reason := 'clock_stepped';
        c.wait_until := t + p_start_deadline_ms * interval '1 millisecond';
    ELSIF p_wait_ms IS NULL THEN
        c.state := 'skipped';
        c.reason := 'lock_held';
    ELSE
        BEGIN
            UPDATE runs
            SET state = 'waiting', reason = 'lock_held', wait_until = t + p_wait_ms * interval '1 millisecond',
                blocked_by = g.run, host = NULL, instance = NULL, owner = NULL
            WHERE id = p_run
            RETURNING state, reason, wait_until INTO c.state, c.reason, c.wait_until;
            RETURN c;
        EXCEPTION WHEN unique_violation THEN
            c.state := 'skipped';
            c.reason := 'already_waiting';
        END;
    END IF;
    UPDATE runs
    SET state = c.state, reason = c.reason, wait_until = c.wait_until, blocked_by = g.run,
        host = CASE WHEN c.state = 'skipped' THEN p_host END,
        instance = CASE WHEN c.state = 'skipped' THEN p_instance END,
        owner = NULL,
        finished_at = CASE WHEN c.state = 'skipped' THEN t END
    WHERE id = p_run;
    RETURN c;
END $$;

-- Takes a waiting run with its lock. While the lock is held it only reads.
CREATE FUNCTION cronlatch_take_v1(
    p_run uuid, p_host text, p_instance uuid, p_owner text, p_public_owner text, p_resource text,
    p_ttl_ms bigint, p_expected_now timestamptz, p_give_up_at timestamptz
) RETURNS cronlatch_claim_v1 LANGUAGE plpgsql AS $$
DECLARE
    c cronlatch_claim_v1;
    g cronlatch_grant_v1;
    r runs%ROWTYPE;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    c.outcome := 'gone';
    SELECT * INTO r FROM runs WHERE id = p_run;
    IF r.state IN ('claimed', 'running') AND r.owner = p_public_owner THEN
        -- The same attempt again: its first answer was lost.
        SELECT p_resource, l.owner, l.token, l.acquired_at, l.expires_at
        INTO g.resource, g.owner, g.token, g.acquired_at, g.expires_at
        FROM distributed_locks l
        WHERE l.resource = p_resource AND l.owner = p_owner AND l.token = r.token;
        IF FOUND THEN
            g.outcome := 'granted';
            g.now := cronlatch_now_v1();
            c.outcome := 'granted';
            c.lock := g;
        END IF;
        RETURN c;
    END IF;
    IF r.state IS DISTINCT FROM 'waiting' THEN
        RETURN c;
    END IF;
    IF EXISTS (SELECT FROM jobs WHERE name = r.job AND paused
               AND (paused_until IS NULL OR paused_until > cronlatch_now_v1())) THEN
        c.outcome := 'not_now';
        RETURN c;
    END IF;
    PERFORM pg_advisory_xact_lock(1668246382, hashtext(r.job));
    IF p_give_up_at < cronlatch_now_v1() THEN
        c.outcome := 'too_late';
        c.read_at := cronlatch_now_v1();
        RETURN c;
    END IF;
    g := cronlatch_other_run_v1(r.job, r.target, p_resource);
    IF g.outcome IS NULL THEN
        SELECT 'held', l.resource, l.owner, l.token, l.acquired_at, l.expires_at, cronlatch_now_v1(), o.id
        INTO g.outcome, g.resource, g.owner, g.token, g.acquired_at, g.expires_at, g.now, g.run
        FROM distributed_locks l
        LEFT JOIN runs o ON o.resource = l.resource AND o.token = l.token AND o.state IN ('claimed', 'running')
        WHERE l.resource = p_resource AND l.released_at IS NULL AND l.expires_at > cronlatch_now_v1();
    END IF;
    IF g.outcome = 'held' THEN
        c.outcome := 'held';
        c.lock := g;
        RETURN c;
    END IF;
    SELECT * INTO r FROM runs WHERE id = p_run AND state = 'waiting' FOR UPDATE SKIP LOCKED;
    IF NOT FOUND OR r.wait_until <= cronlatch_now_v1() THEN
        RETURN c;
    END IF;
    g := cronlatch_grant_v1(p_resource, p_owner, p_ttl_ms, p_expected_now);
    c.lock := g;
    IF g.outcome = 'granted' THEN
        UPDATE runs
        SET state = 'claimed', host = p_host, instance = p_instance, owner = p_public_owner, resource = p_resource,
            token = g.token, claimed_at = g.acquired_at, wait_until = NULL
        WHERE id = p_run;
        c.outcome := 'granted';
    ELSIF g.outcome = 'held' THEN
        c.outcome := 'held';
    ELSE
        c.outcome := 'not_now';
    END IF;
    RETURN c;
END $$;

-- Marks a claimed run as started.
CREATE FUNCTION cronlatch_start_v1(p_run uuid, p_public_owner text, p_token bigint, p_started_at timestamptz)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    UPDATE runs SET state = 'running', started_at = p_started_at
    WHERE id = p_run AND owner = p_public_owner AND token = p_token AND state IN ('claimed', 'running');
    RETURN FOUND;
END $$;

-- Makes the next attempt of a lost run wait, if it may have one.
CREATE FUNCTION cronlatch_rerun_v1(p_lost uuid, p_rerun uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    t timestamptz := cronlatch_now_v1();
BEGIN
    INSERT INTO runs (id, job, scheduled_at, target, origin, attempt, trigger, state, reason, created_at, wait_until,
                      resource, start_deadline_ms, start_by, reruns_left)
    SELECT p_rerun, r.job, r.scheduled_at, r.target, r.origin, r.attempt + 1, 'rerun', 'waiting', 'rerun', t,
           t + r.start_deadline_ms * interval '1 millisecond', r.resource, r.start_deadline_ms,
           t + r.start_deadline_ms * interval '1 millisecond', r.reruns_left - 1
    FROM runs r WHERE r.id = p_lost AND r.reruns_left > 0
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;

-- Records how a run ended, also if it was counted as lost meanwhile, and frees its lock.
CREATE FUNCTION cronlatch_finish_v1(
    p_run uuid, p_owner text, p_public_owner text, p_resource text, p_token bigint, p_state text,
    p_exit_code integer, p_signal integer, p_reason text, p_started_at timestamptz, p_finished_at timestamptz,
    p_output_tail text, p_rerun uuid,
    OUT recorded boolean, OUT lock text
) LANGUAGE plpgsql AS $$
DECLARE
    r runs%ROWTYPE;
    t timestamptz;
    l distributed_locks%ROWTYPE;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    SELECT * INTO r FROM runs
    WHERE id = p_run AND owner = p_public_owner AND token = p_token FOR UPDATE;
    t := cronlatch_now_v1();
    recorded := FOUND AND (r.state IN ('claimed', 'running', 'lost') OR r.state = p_state);
    IF recorded AND r.state IN ('claimed', 'running', 'lost') THEN
        UPDATE runs
        SET state = p_state, exit_code = p_exit_code, signal = p_signal, reason = p_reason,
            finished_at = p_finished_at,
            started_at = coalesce(r.started_at, p_started_at), output_tail = p_output_tail
        WHERE id = p_run;
        -- Figures for people: a row that somebody has locked is passed by, no end of a run waits for it.
        UPDATE jobs
        SET last_run_at = greatest(last_run_at, r.scheduled_at),
            last_success_at = CASE WHEN p_state = 'succeeded' THEN greatest(last_success_at, r.scheduled_at)
                                   ELSE last_success_at END
        WHERE name IN (SELECT name FROM jobs WHERE name = r.job FOR NO KEY UPDATE SKIP LOCKED);
        IF r.state = 'lost' AND p_state = 'succeeded' THEN
            -- A late success: what waits to be run again in its place is not needed.
            UPDATE runs SET state = 'cancelled', reason = 'late_success', finished_at = t
            WHERE job = r.job AND scheduled_at = r.scheduled_at AND target = r.target AND origin = r.origin
              AND attempt > r.attempt AND state = 'waiting' AND reason = 'rerun';
        END IF;
        IF p_state = 'lost' AND r.state <> 'lost' THEN
            PERFORM cronlatch_rerun_v1(p_run, p_rerun);
        END IF;
    END IF;
    lock := 'gone';
    SELECT * INTO l FROM distributed_locks
    WHERE resource = p_resource AND owner = p_owner AND token = p_token AND released_at IS NULL FOR UPDATE;
    IF FOUND THEN
        lock := CASE WHEN l.expires_at <= cronlatch_now_v1() THEN 'expired' ELSE 'released' END;
        -- The epoch, so that a clock that steps back revives nothing.
        UPDATE distributed_locks SET expires_at = 'epoch', released_at = cronlatch_now_v1()
        WHERE resource = p_resource;
    END IF;
END $$;

-- Gives a run back that was never started.
CREATE FUNCTION cronlatch_give_back_v1(
    p_run uuid, p_owner text, p_public_owner text, p_resource text, p_token bigint, p_reason text
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    given boolean;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    UPDATE runs
    SET state = 'waiting', reason = p_reason, owner = NULL, host = NULL, instance = NULL, token = NULL,
        claimed_at = NULL, wait_until = start_by
    WHERE id = p_run AND owner = p_public_owner AND token = p_token AND state = 'claimed';
    given := FOUND;
    IF given THEN
        UPDATE distributed_locks SET expires_at = 'epoch', released_at = cronlatch_now_v1()
        WHERE resource = p_resource AND owner = p_owner AND token = p_token AND released_at IS NULL;
    END IF;
    RETURN given;
END $$;

-- Marks one run lost whose lock is not live, and frees that. The clock is read under the lock's row
-- lock: a renewal that came before it keeps the run.
CREATE FUNCTION cronlatch_lose_v1(p_run uuid, p_rerun uuid)
RETURNS TABLE (id uuid, job text, scheduled_at timestamptz, target text, origin text, attempt integer, host text,
               resource text, token bigint, reruns boolean)
LANGUAGE plpgsql AS $$
DECLARE
    r runs%ROWTYPE;
    l distributed_locks%ROWTYPE;
    t timestamptz;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    SELECT * INTO r FROM runs
    WHERE runs.id = p_run AND runs.state IN ('claimed', 'running') FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN; END IF;
    SELECT * INTO l FROM distributed_locks
    WHERE distributed_locks.resource = r.resource AND distributed_locks.token = r.token FOR UPDATE;
    t := cronlatch_now_v1();
    IF FOUND AND l.released_at IS NULL THEN
        IF l.expires_at > t THEN RETURN; END IF;
        UPDATE distributed_locks SET expires_at = 'epoch', released_at = t WHERE distributed_locks.id = l.id;
    END IF;
    UPDATE runs SET state = 'lost', reason = 'lease_expired', finished_at = t WHERE runs.id = p_run;
    RETURN QUERY SELECT r.id, r.job, r.scheduled_at, r.target, r.origin, r.attempt, r.host, r.resource, r.token,
                        cronlatch_rerun_v1(p_run, p_rerun);
END $$;

-- Carries a catch-up plan out, if the job's watermark and rows still are what it was made from.
CREATE FUNCTION cronlatch_catch_up_v1(
    p_job text, p_from timestamptz, p_through timestamptz, p_rows_since timestamptz, p_rows_seen bigint,
    p_reasons text[], p_ranges_from timestamptz[], p_ranges_to timestamptz[], p_counts bigint[],
    p_run uuid, p_scheduled_at timestamptz, p_resource text, p_start_deadline_ms bigint, p_reruns_left integer
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    t timestamptz;
    deadline interval := p_start_deadline_ms * interval '1 millisecond';
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    PERFORM pg_advisory_xact_lock(1668246382, hashtext(p_job));
    IF p_rows_seen <> (SELECT count(*) FROM runs
                       WHERE job = p_job AND scheduled_at > p_rows_since AND scheduled_at <= p_through
                         AND origin = 'schedule' AND target = '' AND attempt = 1) THEN
        RETURN false;
    END IF;
    UPDATE jobs SET caught_up_through = p_through WHERE name = p_job AND caught_up_through = p_from;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    t := cronlatch_now_v1();
    INSERT INTO trigger_ranges (job, kind, reason, range_from, range_to, count, recorded_at)
    SELECT p_job, 'missed', m.reason, m.range_from, m.range_to, m.count, t
    FROM unnest(p_reasons, p_ranges_from, p_ranges_to, p_counts) AS m (reason, range_from, range_to, count);
    IF p_run IS NOT NULL THEN
        INSERT INTO runs (id, job, scheduled_at, trigger, state, reason, created_at, wait_until, resource,
                          start_deadline_ms, start_by, reruns_left)
        VALUES (p_run, p_job, p_scheduled_at, 'catch_up', 'waiting', 'catch_up', t, t + deadline, p_resource,
                p_start_deadline_ms, t + deadline, p_reruns_left)
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN true;
END $$;

-- Makes jobs known. Only rows that differ are written. An edited job doesn't catch up on what lay
-- before, but for the last seconds, whose claims may still be on their way.
CREATE FUNCTION cronlatch_register_v1(p_instance uuid, p_names text[], p_digests text[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t timestamptz := cronlatch_now_v1();
BEGIN
    PERFORM set_config('lock_timeout', '2s', true);
    INSERT INTO jobs (name, digest, caught_up_through)
    SELECT i.name, i.digest, t FROM unnest(p_names, p_digests) AS i (name, digest)
    WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.name = i.name AND j.digest = i.digest)
    ORDER BY i.name
    ON CONFLICT (name) DO UPDATE
    SET digest = excluded.digest,
        caught_up_through = greatest(jobs.caught_up_through, excluded.caught_up_through - interval '10 seconds')
    WHERE jobs.digest <> excluded.digest;
    INSERT INTO job_definitions (job, instance, digest, seen_at)
    SELECT i.name, p_instance, i.digest, t FROM unnest(p_names, p_digests) AS i (name, digest) ORDER BY i.name
    ON CONFLICT (job, instance) DO UPDATE SET digest = excluded.digest, seen_at = excluded.seen_at
    WHERE job_definitions.digest <> excluded.digest;
    DELETE FROM job_definitions WHERE instance = p_instance AND job <> ALL (p_names);
END $$;

-- Deletes runs that are over for longer than they are kept, oldest first. Run ids sort by time
-- (RFC 9562, version 7), so this reads the old end of one index. Their jobs remember up to where
-- their history is gone.
CREATE FUNCTION cronlatch_prune_age_v1(p_keep_ms bigint, p_horizon_ms bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    t timestamptz := cronlatch_now_v1();
    before timestamptz := t - p_keep_ms * interval '1 millisecond';
    gone bigint;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    WITH old AS (
        SELECT id, job, scheduled_at FROM runs
        WHERE id < (lpad(to_hex((extract(epoch FROM before) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
          AND finished_at < before AND scheduled_at < t - p_horizon_ms * interval '1 millisecond'
        ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED
    ), remembered AS (
        UPDATE jobs j SET pruned_through = greatest(j.pruned_through, o.through)
        FROM (SELECT job, max(scheduled_at) AS through FROM old GROUP BY job) AS o
        WHERE j.name = o.job
    )
    DELETE FROM runs WHERE id IN (SELECT id FROM old);
    GET DIAGNOSTICS gone = ROW_COUNT;
    DELETE FROM distributed_locks WHERE id IN (
        SELECT id FROM distributed_locks WHERE released_at < t - greatest(p_keep_ms, 86400000) * interval '1 millisecond'
        LIMIT 1000 FOR UPDATE SKIP LOCKED);
    DELETE FROM trigger_ranges WHERE id IN (SELECT id FROM trigger_ranges WHERE recorded_at < before LIMIT 1000);
    DELETE FROM hosts WHERE seen_at < t - greatest(interval '1 day', stale_after_ms * interval '2 ms');
    DELETE FROM job_definitions d WHERE NOT EXISTS (SELECT FROM hosts h WHERE h.instance = d.instance);
    RETURN gone;
END $$;

-- The same for the runs of one job beyond those that are kept; failures, losses and the last success
-- stay.
CREATE FUNCTION cronlatch_prune_count_v1(p_job text, p_keep_runs bigint, p_horizon_ms bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    beyond timestamptz;
    through timestamptz;
    gone bigint;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    SELECT r.scheduled_at INTO beyond FROM runs r WHERE r.job = p_job
    ORDER BY r.scheduled_at DESC OFFSET p_keep_runs LIMIT 1;
    IF NOT FOUND THEN RETURN 0; END IF;
    WITH old AS (
        SELECT r.id, r.scheduled_at FROM runs r LEFT JOIN jobs j ON j.name = r.job
        WHERE r.job = p_job AND r.scheduled_at <= beyond
          AND r.scheduled_at < cronlatch_now_v1() - p_horizon_ms * interval '1 millisecond'
          AND r.state IN ('succeeded', 'cancelled', 'skipped', 'missed')
          AND NOT (r.state = 'succeeded' AND r.scheduled_at IS NOT DISTINCT FROM j.last_success_at)
        ORDER BY r.scheduled_at LIMIT 1000 FOR UPDATE OF r SKIP LOCKED
    ), deleted AS (
        DELETE FROM runs WHERE id IN (SELECT id FROM old) RETURNING scheduled_at
    )
    SELECT max(scheduled_at), count(*) INTO through, gone FROM deleted;
    UPDATE jobs SET pruned_through = greatest(pruned_through, through) WHERE name = p_job AND through IS NOT NULL;
    RETURN gone;
END $$;
