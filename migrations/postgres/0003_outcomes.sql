-- Outcomes: what a run used, retries under one lease, requests to stop a run, and jobs whose newest
-- trigger replaces the run that is under way. Hosts of version 2 go on meanwhile: nothing that they
-- call is changed or dropped; what they leave out is that they obey no request and carry no count of
-- retries on. Names and columns are the same as in ../sqlite/0003_outcomes.sql.

-- How many attempts at its trigger were retries up to this one: a host that takes it goes on counting.
ALTER TABLE runs ADD COLUMN retries integer NOT NULL DEFAULT 0;

-- Why a run is to stop, in words, and which run takes its place. One cancel a run: asked twice it is
-- one request.
ALTER TABLE requests ADD COLUMN reason text;
ALTER TABLE requests ADD COLUMN replaced_by uuid;
CREATE UNIQUE INDEX requests_one_cancel ON requests (run) WHERE kind = 'cancel';

-- One trigger of a job at most waits to replace its run: the newest.
CREATE UNIQUE INDEX runs_one_replaces ON runs (job, target) WHERE state = 'waiting' AND reason = 'replacing';

-- Whether somebody wants a run stopped: then nothing runs in its place. To be asked in a statement that
-- follows the one with the lock on the run's row, for that is what whoever asks has, too.
CREATE FUNCTION cronlatch_is_cancelled_v1(p_run uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (SELECT FROM requests WHERE run = p_run AND kind = 'cancel');
END $$;

-- Closes what waits of a job and is older than a trigger that replaces.
CREATE FUNCTION cronlatch_supersede_v1(
    p_run uuid, p_job text, p_target text, p_scheduled_at timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE runs SET state = 'skipped', reason = 'superseded', blocked_by = p_run, finished_at = cronlatch_now_v1()
    WHERE job = p_job AND target = p_target AND state = 'waiting' AND id <> p_run
      AND (reason = 'replacing' AND scheduled_at <= p_scheduled_at
           OR trigger = 'schedule' AND scheduled_at < p_scheduled_at);
END $$;

-- What becomes of a trigger that would replace the holder of its lock: `lock_held` if that is no run of
-- its job, `superseded` if a newer trigger runs or waits, else `replacing`: the holder's host is asked
-- to stop it. While it stops this only reads.
CREATE FUNCTION cronlatch_replace_v1(
    p_run uuid, p_job text, p_target text, p_scheduled_at timestamptz, p_host text, p_holder uuid
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    h runs%ROWTYPE;
BEGIN
    SELECT * INTO h FROM runs WHERE id = p_holder AND job = p_job AND target = p_target;
    IF NOT FOUND THEN
        RETURN 'lock_held';
    END IF;
    IF h.scheduled_at > p_scheduled_at OR EXISTS (
        SELECT FROM runs WHERE job = p_job AND target = p_target AND state = 'waiting' AND reason = 'replacing'
        AND scheduled_at > p_scheduled_at) THEN
        RETURN 'superseded';
    END IF;
    -- The holder's row is not locked: it belongs to its host, and a claim waits for no other run's row. If
    -- it just ends, or is just tried again, the next look finds it free or asks anew.
    INSERT INTO requests (id, kind, job, run, made_by, made_at, replaced_by)
    SELECT gen_random_uuid(), 'cancel', p_job, p_holder, p_host, cronlatch_now_v1(), p_run
    WHERE NOT EXISTS (SELECT FROM requests WHERE run = p_holder AND kind = 'cancel')
    ON CONFLICT DO NOTHING;
    RETURN 'replacing';
END $$;

-- Claims a trigger and its lock. A function, because one statement can't: it would not see the
-- winner's row, nor update the row that it inserted.
CREATE FUNCTION cronlatch_claim_v3(
    p_run uuid, p_job text, p_scheduled_at timestamptz, p_target text, p_origin text, p_attempt integer,
    p_trigger text, p_host text, p_instance uuid, p_owner text, p_public_owner text, p_resource text,
    p_ttl_ms bigint, p_expected_now timestamptz, p_give_up_at timestamptz, p_when_held text,
    p_wait_ms bigint, p_start_deadline_ms bigint, p_reruns_left integer
) RETURNS cronlatch_claim_v1 LANGUAGE plpgsql AS $$
DECLARE
    c cronlatch_claim_v1;
    g cronlatch_grant_v1;
    r runs%ROWTYPE;
    j record;
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
    SELECT jobs.pruned_through, p.caught_up_through,
           jobs.paused AND (jobs.paused_until IS NULL OR jobs.paused_until > t) AS paused
    INTO j FROM jobs LEFT JOIN job_progress p ON p.job = jobs.name AND p.target = p_target
    WHERE jobs.name = p_job;
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
        IF j.paused THEN
            c.outcome := 'paused';
            RETURN c;
        END IF;
        -- A watermark in the future was left by a clock that was wrong.
        IF p_trigger = 'schedule' AND p_origin = 'schedule'
           AND j.caught_up_through >= p_scheduled_at AND j.caught_up_through <= t THEN
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
        IF p_when_held = 'replace' THEN
            PERFORM cronlatch_supersede_v1(p_run, p_job, p_target, p_scheduled_at);
        END IF;
        c.outcome := 'granted';
        RETURN c;
    END IF;

    c.outcome := 'held';
    t := cronlatch_now_v1();
    IF g.outcome = 'clock_stepped' THEN
        c.state := 'waiting';
        c.reason := 'clock_stepped';
        c.wait_until := t + p_start_deadline_ms * interval '1 millisecond';
    ELSE
        c.reason := CASE p_when_held
            WHEN 'replace' THEN cronlatch_replace_v1(p_run, p_job, p_target, p_scheduled_at, p_host, g.run)
            ELSE 'lock_held' END;
        c.state := CASE WHEN p_when_held = 'wait' OR c.reason = 'replacing' THEN 'waiting' ELSE 'skipped' END;
        IF c.reason = 'replacing' THEN
            PERFORM cronlatch_supersede_v1(p_run, p_job, p_target, p_scheduled_at);
        ELSIF c.state = 'waiting' AND EXISTS (
            -- Behind the job's lock: nobody else is about to wait.
            SELECT FROM runs WHERE job = p_job AND target = p_target AND state = 'waiting'
            AND reason IN ('lock_held', 'replacing')) THEN
            c.state := 'skipped';
            c.reason := 'already_waiting';
        END IF;
        IF c.state = 'waiting' THEN
            c.wait_until := t + p_wait_ms * interval '1 millisecond';
        END IF;
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

-- Takes a waiting run with its lock. While the lock is held it only reads. Late runs of one plan keep
-- their distance from the start of the one before: what it was late by, those after it are.
CREATE FUNCTION cronlatch_take_v3(
    p_run uuid, p_host text, p_instance uuid, p_owner text, p_public_owner text, p_resource text,
    p_ttl_ms bigint, p_expected_now timestamptz, p_give_up_at timestamptz
) RETURNS cronlatch_claim_v1 LANGUAGE plpgsql AS $$
DECLARE
    c cronlatch_claim_v1;
    g cronlatch_grant_v1;
    r runs%ROWTYPE;
    t timestamptz;
    late_by interval;
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
    PERFORM pg_advisory_xact_lock(1668246382, hashtext(r.job));
    t := cronlatch_now_v1();
    IF p_give_up_at < t THEN
        c.outcome := 'too_late';
        c.read_at := t;
        RETURN c;
    END IF;
    -- Looked at behind the lock: a pause that was under way is over.
    IF r.not_before > t
       OR EXISTS (SELECT FROM jobs WHERE name = r.job AND paused AND (paused_until IS NULL OR paused_until > t))
       OR r.trigger = 'catch_up' AND EXISTS (
           SELECT FROM runs o
           WHERE o.job = r.job AND o.target = r.target AND o.state = 'waiting' AND o.trigger = 'catch_up'
             AND o.scheduled_at < r.scheduled_at AND o.wait_until > t) THEN
        c.outcome := 'not_now';
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
        IF r.reason = 'replacing' THEN
            -- Whoever holds it now may be another one than at first.
            c.reason := cronlatch_replace_v1(p_run, r.job, r.target, r.scheduled_at, p_host, g.run);
            IF c.reason <> 'replacing' THEN
                UPDATE runs SET state = 'skipped', reason = c.reason, blocked_by = g.run, finished_at = cronlatch_now_v1()
                WHERE id = p_run AND state = 'waiting';
                c.outcome := CASE WHEN FOUND THEN 'skipped' ELSE 'gone' END;
            END IF;
        END IF;
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
        IF r.trigger = 'catch_up' THEN
            -- All of a plan were made at one instant.
            late_by := greatest(g.acquired_at - coalesce(r.not_before, r.created_at), interval '0');
            UPDATE runs
            SET not_before = not_before + late_by, wait_until = wait_until + late_by, start_by = start_by + late_by
            WHERE job = r.job AND target = r.target AND state = 'waiting' AND trigger = 'catch_up'
              AND created_at = r.created_at AND scheduled_at > r.scheduled_at AND not_before IS NOT NULL
              AND wait_until > g.acquired_at;
            -- Given back and taken again, it is later by the time since now alone.
            IF FOUND THEN
                UPDATE runs SET not_before = greatest(not_before, g.acquired_at) WHERE id = p_run;
            END IF;
        END IF;
        IF r.reason = 'replacing' THEN
            PERFORM cronlatch_supersede_v1(p_run, r.job, r.target, r.scheduled_at);
        END IF;
        c.outcome := 'granted';
    ELSIF g.outcome = 'held' THEN
        c.outcome := 'held';
    ELSE
        c.outcome := 'not_now';
    END IF;
    RETURN c;
END $$;

-- Makes the next attempt of a lost run wait, if it may have one, and nobody wanted the run stopped.
CREATE FUNCTION cronlatch_rerun_v2(p_lost uuid, p_rerun uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    t timestamptz := cronlatch_now_v1();
BEGIN
    INSERT INTO runs (id, job, scheduled_at, target, origin, attempt, trigger, state, reason, created_at, wait_until,
                      resource, start_deadline_ms, start_by, reruns_left, retries)
    SELECT p_rerun, r.job, r.scheduled_at, r.target, r.origin, r.attempt + 1, 'rerun', 'waiting', 'rerun', t,
           t + r.start_deadline_ms * interval '1 millisecond', r.resource, r.start_deadline_ms,
           t + r.start_deadline_ms * interval '1 millisecond', r.reruns_left - 1, r.retries
    FROM runs r WHERE r.id = p_lost AND r.reruns_left > 0 AND NOT cronlatch_is_cancelled_v1(p_lost)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;

-- Records how a run ended, also if it was counted as lost meanwhile, makes what follows it wait, and
-- frees its lock. Sent again it makes nothing wait, but says what the first time did.
CREATE FUNCTION cronlatch_finish_v3(
    p_run uuid, p_owner text, p_public_owner text, p_resource text, p_token bigint, p_state text,
    p_exit_code integer, p_signal integer, p_reason text, p_started_at timestamptz, p_finished_at timestamptz,
    p_output_tail text, p_cpu_ms bigint, p_memory_peak_kib bigint, p_rerun uuid, p_followers text,
    OUT recorded boolean, OUT lock text, OUT followers text[], OUT followed uuid[]
) LANGUAGE plpgsql AS $$
DECLARE
    r runs%ROWTYPE;
    t timestamptz;
    l distributed_locks%ROWTYPE;
    f record;
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
            started_at = coalesce(r.started_at, p_started_at), output_tail = p_output_tail,
            cpu_ms = p_cpu_ms, memory_peak_kib = p_memory_peak_kib
        WHERE id = p_run;
        IF r.state = 'lost' AND p_state = 'succeeded' THEN
            -- A late success: what waits to be run again in its place is not needed.
            UPDATE runs SET state = 'cancelled', reason = 'late_success', finished_at = t
            WHERE job = r.job AND scheduled_at = r.scheduled_at AND target = r.target AND origin = r.origin
              AND attempt > r.attempt AND state = 'waiting' AND reason = 'rerun';
        END IF;
        IF p_state = 'lost' AND r.state <> 'lost' THEN
            PERFORM cronlatch_rerun_v2(p_run, p_rerun);
        END IF;
        IF p_state = 'succeeded' THEN
            -- In the order of their locks, so that two ends can't deadlock.
            FOR f IN SELECT * FROM jsonb_to_recordset(p_followers::jsonb) AS i (
                         run uuid, job text, upstreams text[], resource text, start_deadline_ms bigint,
                         reruns_left integer)
                     ORDER BY hashtext(i.job), i.job LOOP
                PERFORM cronlatch_follow_v1(r.id, r.scheduled_at, r.target, f.run, f.job, f.upstreams, f.resource,
                                            f.start_deadline_ms, f.reruns_left);
            END LOOP;
        END IF;
        -- Figures for people: a row that somebody has locked is passed by, no end of a run waits for it.
        -- Last, for whoever waits for it in turn.
        UPDATE jobs
        SET last_run_at = greatest(last_run_at, r.scheduled_at),
            last_success_at = CASE WHEN p_state = 'succeeded' THEN greatest(last_success_at, r.scheduled_at)
                                   ELSE last_success_at END
        WHERE name IN (SELECT name FROM jobs WHERE name = r.job FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    IF recorded AND p_followers IS NOT NULL THEN
        SELECT array_agg(a.job ORDER BY a.job), array_agg(a.id ORDER BY a.job) INTO followers, followed
        FROM jsonb_to_recordset(p_followers::jsonb) AS i (job text) JOIN runs a ON a.job = i.job
        WHERE a.scheduled_at = r.scheduled_at AND a.target = r.target AND a.origin = r.id::text
          AND a.trigger = 'after' AND (a.state, a.reason) IS DISTINCT FROM ('missed', 'paused')
          AND (a.state, a.reason) IS DISTINCT FROM ('skipped', 'already_waiting');
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

-- Ends one attempt of a trigger and claims the next, under the same lease: the lock is looked at, never
-- touched. Nothing is written once the lock has run out, or somebody wants the run stopped.
CREATE FUNCTION cronlatch_retry_v1(
    p_run uuid, p_owner text, p_public_owner text, p_resource text, p_token bigint, p_state text,
    p_exit_code integer, p_signal integer, p_reason text, p_started_at timestamptz, p_finished_at timestamptz,
    p_output_tail text, p_cpu_ms bigint, p_memory_peak_kib bigint, p_next uuid,
    OUT outcome text, OUT attempt integer
) LANGUAGE plpgsql AS $$
DECLARE
    r runs%ROWTYPE;
    t timestamptz;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    outcome := 'gone';
    SELECT * INTO r FROM runs
    WHERE id = p_run AND owner = p_public_owner AND token = p_token FOR UPDATE;
    t := cronlatch_now_v1();
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF r.state NOT IN ('claimed', 'running') THEN
        -- The same again: its first answer was lost.
        SELECT n.attempt INTO attempt FROM runs n
        WHERE n.id = p_next AND n.attempt = r.attempt + 1 AND n.job = r.job AND n.scheduled_at = r.scheduled_at
          AND n.target = r.target AND n.origin = r.origin AND n.owner = p_public_owner AND n.token = p_token
          AND n.state IN ('claimed', 'running');
        IF FOUND THEN
            outcome := 'claimed';
        END IF;
        RETURN;
    END IF;
    IF NOT EXISTS (
        SELECT FROM distributed_locks l
        WHERE l.resource = p_resource AND l.owner = p_owner AND l.token = p_token AND l.released_at IS NULL
          AND l.expires_at > t) THEN
        RETURN;
    END IF;
    IF cronlatch_is_cancelled_v1(p_run) THEN
        outcome := 'cancelled';
        RETURN;
    END IF;
    UPDATE runs
    SET state = p_state, exit_code = p_exit_code, signal = p_signal, reason = p_reason,
        finished_at = p_finished_at,
        started_at = coalesce(r.started_at, p_started_at), output_tail = p_output_tail,
        cpu_ms = p_cpu_ms, memory_peak_kib = p_memory_peak_kib
    WHERE id = p_run;
    UPDATE jobs SET last_run_at = greatest(last_run_at, r.scheduled_at)
    WHERE name IN (SELECT name FROM jobs WHERE name = r.job FOR NO KEY UPDATE SKIP LOCKED);
    attempt := r.attempt + 1;
    INSERT INTO runs (id, job, scheduled_at, target, origin, attempt, trigger, state, created_at, host, instance,
                      owner, resource, token, claimed_at, start_deadline_ms, start_by, reruns_left, retries)
    VALUES (p_next, r.job, r.scheduled_at, r.target, r.origin, r.attempt + 1, 'retry', 'claimed', t, r.host, r.instance,
            r.owner, r.resource, r.token, t, r.start_deadline_ms, t + r.start_deadline_ms * interval '1 millisecond',
            r.reruns_left, r.retries + 1);
    outcome := 'claimed';
END $$;

-- Gives a run back that was never started; one that somebody wants stopped is over.
CREATE FUNCTION cronlatch_give_back_v2(
    p_run uuid, p_owner text, p_public_owner text, p_resource text, p_token bigint, p_reason text
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    PERFORM FROM runs
    WHERE id = p_run AND owner = p_public_owner AND token = p_token AND state = 'claimed' FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF cronlatch_is_cancelled_v1(p_run) THEN
        UPDATE runs
        SET state = 'cancelled', finished_at = cronlatch_now_v1(),
            reason = (SELECT CASE WHEN replaced_by IS NULL THEN 'cancelled' ELSE 'replaced' END
                      FROM requests WHERE run = p_run AND kind = 'cancel')
        WHERE id = p_run;
    ELSE
        UPDATE runs
        SET state = 'waiting', reason = p_reason, owner = NULL, host = NULL, instance = NULL, token = NULL,
            claimed_at = NULL, wait_until = start_by
        WHERE id = p_run;
    END IF;
    UPDATE distributed_locks SET expires_at = 'epoch', released_at = cronlatch_now_v1()
    WHERE resource = p_resource AND owner = p_owner AND token = p_token AND released_at IS NULL;
    RETURN true;
END $$;

-- Marks one run lost whose lock is not live, and frees that. The clock is read under the lock's row
-- lock: a renewal that came before it keeps the run.
CREATE FUNCTION cronlatch_lose_v2(p_run uuid, p_rerun uuid)
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
                        cronlatch_rerun_v2(p_run, p_rerun);
END $$;

-- Asks for a run to be stopped: one that waits is cancelled here and now, of one that has a host that
-- is asked.
CREATE FUNCTION cronlatch_request_cancel_v1(
    p_run uuid, p_request uuid, p_by text, p_reason text, p_in_words text, OUT outcome text, OUT state text
) LANGUAGE plpgsql AS $$
DECLARE
    r runs%ROWTYPE;
    t timestamptz;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    SELECT * INTO r FROM runs WHERE id = p_run FOR UPDATE;
    IF NOT FOUND THEN
        outcome := 'unknown';
        RETURN;
    END IF;
    t := cronlatch_now_v1();
    state := r.state;
    IF r.state = 'waiting' THEN
        UPDATE runs SET state = 'cancelled', reason = p_in_words, finished_at = t WHERE id = p_run;
        outcome := 'cancelled';
    ELSIF r.state IN ('claimed', 'running') THEN
        INSERT INTO requests (id, kind, job, run, made_by, made_at, reason)
        VALUES (p_request, 'cancel', r.job, p_run, p_by, t, p_reason)
        ON CONFLICT DO NOTHING;
        outcome := 'asked';
    ELSE
        outcome := 'over';
    END IF;
END $$;

-- Deletes runs that are over for longer than they are kept, oldest first. Run ids sort by time
-- (RFC 9562, version 7), so this reads the old end of one index. Their jobs remember up to where
-- their history is gone.
CREATE FUNCTION cronlatch_prune_age_v3(p_keep_ms bigint, p_horizon_ms bigint) RETURNS bigint LANGUAGE plpgsql AS $$
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
    -- What was asked of a run that ended, or whose host did, before anybody saw it.
    UPDATE requests q SET done_at = t, outcome = 'over'
    WHERE q.done_at IS NULL AND q.kind = 'cancel' AND NOT EXISTS (
        SELECT FROM runs r WHERE r.id = q.run AND r.state IN ('waiting', 'claimed', 'running'));
    DELETE FROM requests WHERE id IN (
        SELECT id FROM requests WHERE done_at < before LIMIT 1000 FOR UPDATE SKIP LOCKED);
    DELETE FROM hosts WHERE seen_at < t - greatest(interval '1 day', stale_after_ms * interval '2 ms');
    -- Hosts come and go, and each leaves a watermark for every job that ran there. What was in the file
    -- of a daemon that is known was seen today; what was not for long goes, but not after a holiday.
    UPDATE job_progress SET seen_at = t WHERE (job, target) IN (
        SELECT p.job, p.target FROM job_progress p
        WHERE p.target <> '' AND p.seen_at < t - interval '1 day' AND EXISTS (
            SELECT FROM job_definitions d JOIN hosts h ON h.instance = d.instance
            WHERE d.job = p.job AND h.name = p.target)
        ORDER BY p.seen_at LIMIT 1000 FOR UPDATE OF p SKIP LOCKED);
    DELETE FROM job_progress WHERE (job, target) IN (
        SELECT job, target FROM job_progress
        WHERE target <> '' AND seen_at < t - greatest(p_keep_ms, 604800000) * interval '1 millisecond'
        ORDER BY seen_at LIMIT 1000 FOR UPDATE SKIP LOCKED);
    DELETE FROM job_definitions d WHERE NOT EXISTS (SELECT FROM hosts h WHERE h.instance = d.instance);
    RETURN gone;
END $$;

-- The same for the runs of one job beyond those that are kept; failures, losses and the last success
-- stay. An attempt that failed goes with a later one that didn't, and before it.
CREATE FUNCTION cronlatch_prune_count_v2(p_job text, p_keep_runs bigint, p_horizon_ms bigint)
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
          AND (r.state IN ('succeeded', 'cancelled', 'skipped', 'missed')
               OR r.state IN ('failed', 'lost') AND EXISTS (
                   SELECT FROM runs n
                   WHERE n.job = r.job AND n.scheduled_at = r.scheduled_at AND n.target = r.target
                     AND n.origin = r.origin AND n.attempt > r.attempt
                     AND n.state IN ('succeeded', 'cancelled', 'skipped', 'missed')))
          AND NOT (r.state = 'succeeded' AND r.scheduled_at IS NOT DISTINCT FROM j.last_success_at)
        ORDER BY r.scheduled_at, r.attempt LIMIT 1000 FOR UPDATE OF r SKIP LOCKED
    ), deleted AS (
        DELETE FROM runs WHERE id IN (SELECT id FROM old) RETURNING scheduled_at
    )
    SELECT max(scheduled_at), count(*) INTO through, gone FROM deleted;
    UPDATE jobs SET pruned_through = greatest(pruned_through, through) WHERE name = p_job AND through IS NOT NULL;
    RETURN gone;
END $$;
