-- Schedules: a job that runs on every host has a watermark for each, late runs start one after the
-- other, jobs follow others, and a pause is accounted for. Functions that change are version 2; the
-- first are dropped, and with them every binary of version 1 is refused. Names and columns are the
-- same as in ../sqlite/0002_schedules.sql.

-- How far a job's triggers are accounted for, for each target. Catch-up changes the watermark alone:
-- no index on it and room in the page, so that this stays HOT.
CREATE TABLE job_progress (
    job               text        NOT NULL,
    -- '' for a job that runs on one host, else the host that runs it.
    target            text        NOT NULL DEFAULT '',
    -- What its definition hashed to when it was registered; '' once no host has it any more.
    digest            text        NOT NULL,
    -- Everything up to here is accounted for by rows or ranges.
    caught_up_through timestamptz NOT NULL,
    -- When a host that lives had it in its file, to a day.
    seen_at           timestamptz NOT NULL,
    -- When it was last registered with another definition; NULL if never.
    edited_at         timestamptz,
    PRIMARY KEY (job, target)
) WITH (fillfactor = 50);
CREATE INDEX job_progress_of_hosts ON job_progress (seen_at) WHERE target <> '';

INSERT INTO job_progress (job, target, digest, caught_up_through, seen_at)
SELECT name, '', digest, caught_up_through, cronlatch_now_v1() FROM jobs;
ALTER TABLE jobs DROP COLUMN caught_up_through;

-- For whom the triggers were.
ALTER TABLE trigger_ranges ADD COLUMN target text NOT NULL DEFAULT '';

-- Nobody takes a waiting run before it.
ALTER TABLE runs ADD COLUMN not_before timestamptz;

DROP FUNCTION cronlatch_claim_v1;
DROP FUNCTION cronlatch_take_v1;
DROP FUNCTION cronlatch_finish_v1;
DROP FUNCTION cronlatch_catch_up_v1;
DROP FUNCTION cronlatch_register_v1;
DROP FUNCTION cronlatch_prune_age_v1;

-- Claims a trigger and its lock. A function, because one statement can't: it would not see the
-- winner's row, nor update the row that it inserted.
CREATE FUNCTION cronlatch_claim_v2(
    p_run uuid, p_job text, p_scheduled_at timestamptz, p_target text, p_origin text, p_attempt integer,
    p_trigger text, p_host text, p_instance uuid, p_owner text, p_public_owner text, p_resource text,
    p_ttl_ms bigint, p_expected_now timestamptz, p_give_up_at timestamptz, p_wait_ms bigint,
    p_start_deadline_ms bigint, p_reruns_left integer
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

-- Takes a waiting run with its lock. While the lock is held it only reads. Late runs of one plan keep
-- their distance from the start of the one before: what it was late by, those after it are.
CREATE FUNCTION cronlatch_take_v2(
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
        c.outcome := 'granted';
    ELSIF g.outcome = 'held' THEN
        c.outcome := 'held';
    ELSE
        c.outcome := 'not_now';
    END IF;
    RETURN c;
END $$;

-- Makes a job wait that follows another one, if all that it follows have succeeded for the same
-- instant and target, and none of their successes has made it wait yet. While a run of it waits for
-- that target because of an earlier instant, it is skipped. Of two that succeed at once the second to
-- get the follower's lock sees the first: it looks in a statement after that wait, and each has written
-- its own success before.
CREATE FUNCTION cronlatch_follow_v1(
    p_upstream uuid, p_scheduled_at timestamptz, p_target text, p_run uuid, p_job text, p_upstreams text[],
    p_resource text, p_start_deadline_ms bigint, p_reruns_left integer
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    j record;
    t timestamptz;
    until timestamptz;
    v_state text := 'waiting';
    v_reason text := 'after';
BEGIN
    PERFORM pg_advisory_xact_lock(1668246382, hashtext(p_job));
    t := cronlatch_now_v1();
    until := t + p_start_deadline_ms * interval '1 millisecond';
    SELECT pruned_through >= p_scheduled_at AS forgotten,
           paused AND (paused_until IS NULL OR paused_until > t) AS paused
    INTO j FROM jobs WHERE name = p_job;
    -- Its run may be pruned already.
    IF j.forgotten THEN RETURN; END IF;
    IF j.paused THEN
        v_state := 'missed';
        v_reason := 'paused';
    ELSIF EXISTS (SELECT FROM runs WHERE job = p_job AND target = p_target AND state = 'waiting'
                  AND reason = 'after' AND wait_until > t) THEN
        v_state := 'skipped';
        v_reason := 'already_waiting';
    END IF;
    INSERT INTO runs (id, job, scheduled_at, target, origin, trigger, state, reason, created_at, wait_until,
                      finished_at, resource, start_deadline_ms, start_by, reruns_left)
    SELECT p_run, p_job, p_scheduled_at, p_target, p_upstream::text, 'after', v_state, v_reason, t,
           CASE WHEN v_state = 'waiting' THEN until END, CASE WHEN v_state <> 'waiting' THEN t END, p_resource,
           p_start_deadline_ms, until, p_reruns_left
    WHERE NOT EXISTS (
        SELECT FROM unnest(p_upstreams) AS u (job) WHERE NOT EXISTS (
            SELECT FROM runs r WHERE r.job = u.job AND r.scheduled_at = p_scheduled_at AND r.target = p_target
            AND r.state = 'succeeded'))
      AND NOT EXISTS (
        SELECT FROM runs r WHERE r.job = p_job AND r.scheduled_at = p_scheduled_at AND r.target = p_target
        AND r.trigger = 'after')
    ON CONFLICT DO NOTHING;
END $$;

-- Records how a run ended, also if it was counted as lost meanwhile, makes what follows it wait, and
-- frees its lock. Sent again it makes nothing wait, but says what the first time did.
CREATE FUNCTION cronlatch_finish_v2(
    p_run uuid, p_owner text, p_public_owner text, p_resource text, p_token bigint, p_state text,
    p_exit_code integer, p_signal integer, p_reason text, p_started_at timestamptz, p_finished_at timestamptz,
    p_output_tail text, p_rerun uuid, p_followers text,
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
            started_at = coalesce(r.started_at, p_started_at), output_tail = p_output_tail
        WHERE id = p_run;
        IF r.state = 'lost' AND p_state = 'succeeded' THEN
            -- A late success: what waits to be run again in its place is not needed.
            UPDATE runs SET state = 'cancelled', reason = 'late_success', finished_at = t
            WHERE job = r.job AND scheduled_at = r.scheduled_at AND target = r.target AND origin = r.origin
              AND attempt > r.attempt AND state = 'waiting' AND reason = 'rerun';
        END IF;
        IF p_state = 'lost' AND r.state <> 'lost' THEN
            PERFORM cronlatch_rerun_v1(p_run, p_rerun);
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

-- Makes jobs known. Only rows that differ are written. An edited job doesn't catch up on what lay
-- before, but for what may still be on its way through a claim.
CREATE FUNCTION cronlatch_register_v2(
    p_instance uuid, p_names text[], p_digests text[], p_targets text[], p_serves boolean[],
    p_start_delays_ms bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t timestamptz := cronlatch_now_v1();
BEGIN
    PERFORM set_config('lock_timeout', '2s', true);
    INSERT INTO jobs (name, digest)
    SELECT i.name, i.digest FROM unnest(p_names, p_digests) AS i (name, digest)
    WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.name = i.name AND j.digest = i.digest)
    ORDER BY i.name
    ON CONFLICT (name) DO UPDATE SET digest = excluded.digest WHERE jobs.digest <> excluded.digest;

    INSERT INTO job_progress AS p (job, target, digest, caught_up_through, seen_at)
    SELECT i.job, i.target, i.digest,
           CASE WHEN k.job IS NULL THEN t ELSE t - interval '10 seconds' - i.delay_ms * interval '1 millisecond' END, t
    FROM unnest(p_names, p_targets, p_digests, p_serves, p_start_delays_ms)
         AS i (job, target, digest, serves, delay_ms)
    LEFT JOIN job_progress k ON k.job = i.job AND k.target = i.target
    WHERE i.serves AND (k.digest IS DISTINCT FROM i.digest OR k.seen_at < t - interval '1 day')
    ORDER BY i.job, i.target
    ON CONFLICT (job, target) DO UPDATE
    SET digest = excluded.digest, seen_at = excluded.seen_at,
        edited_at = CASE WHEN p.digest = excluded.digest THEN p.edited_at ELSE t END,
        caught_up_through = CASE WHEN p.digest = excluded.digest THEN p.caught_up_through
                                 ELSE greatest(p.caught_up_through, excluded.caught_up_through) END;

    -- One that ran on every host and now runs on one, or the other way round, was edited, and one
    -- that this host doesn't serve any more will have been: the watermarks that they leave are no
    -- good if it is changed back.
    UPDATE job_progress p SET digest = ''
    FROM unnest(p_names, p_targets, p_serves) AS i (job, target, serves)
    WHERE p.job = i.job AND p.digest <> ''
      AND ((p.target = '') <> (i.target = '') OR p.target = i.target AND NOT i.serves);

    INSERT INTO job_definitions (job, instance, digest, seen_at)
    SELECT i.name, p_instance, i.digest, t FROM unnest(p_names, p_digests) AS i (name, digest) ORDER BY i.name
    ON CONFLICT (job, instance) DO UPDATE SET digest = excluded.digest, seen_at = excluded.seen_at
    WHERE job_definitions.digest <> excluded.digest;

    -- One that was taken out, and is nobody else's, is new when it comes back.
    WITH gone AS (
        DELETE FROM job_definitions d
        WHERE d.instance = p_instance AND NOT EXISTS (SELECT FROM unnest(p_names) AS i (name) WHERE i.name = d.job)
        RETURNING d.job
    )
    UPDATE job_progress p SET digest = ''
    FROM gone
    WHERE p.job = gone.job AND p.digest <> ''
      AND p.target IN (SELECT '' UNION ALL SELECT name FROM hosts WHERE instance = p_instance)
      AND NOT EXISTS (
          SELECT FROM job_definitions d JOIN hosts h ON h.instance = d.instance
          WHERE d.job = p.job AND d.instance <> p_instance AND (p.target = '' OR h.name = p.target));
END $$;

-- Closes what waits of a job that is paused.
CREATE FUNCTION cronlatch_close_waiting_v1(p_job text, p_now timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    closed bigint;
BEGIN
    UPDATE runs SET state = 'missed', reason = 'paused', finished_at = p_now
    WHERE job = p_job AND state = 'waiting';
    GET DIAGNOSTICS closed = ROW_COUNT;
    RETURN closed;
END $$;

-- Pauses a job. Behind the lock of its claims: what was claimed before is closed here if it waits,
-- and what comes after finds the job paused. A pause that catch-up may not have accounted for yet
-- goes on from its beginning.
CREATE FUNCTION cronlatch_pause_v1(
    p_job text, p_by text, p_reason text, p_until timestamptz,
    OUT outcome text, OUT paused_from timestamptz, OUT closed bigint
) LANGUAGE plpgsql AS $$
DECLARE
    t timestamptz;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    PERFORM pg_advisory_xact_lock(1668246382, hashtext(p_job));
    t := cronlatch_now_v1();
    IF p_until <= t THEN
        outcome := 'over';
        RETURN;
    END IF;
    UPDATE jobs
    SET paused = true, paused_by = p_by, paused_reason = p_reason, paused_until = p_until,
        paused_at = CASE
            WHEN paused AND (paused_until IS NULL OR paused_until > t)
                 OR paused_until > (SELECT min(caught_up_through) FROM job_progress WHERE job = p_job)
            THEN coalesce(paused_at, t) ELSE t END
    WHERE name = p_job RETURNING paused_at INTO paused_from;
    IF NOT FOUND THEN
        outcome := 'unknown';
        RETURN;
    END IF;
    closed := cronlatch_close_waiting_v1(p_job, t);
    outcome := 'paused';
END $$;

-- Ends a pause. Runs that came to wait in it, given back or lost, are closed as those before it were.
CREATE FUNCTION cronlatch_resume_v1(
    p_job text, OUT outcome text, OUT paused_from timestamptz, OUT closed bigint
) LANGUAGE plpgsql AS $$
DECLARE
    j jobs%ROWTYPE;
    t timestamptz;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    PERFORM pg_advisory_xact_lock(1668246382, hashtext(p_job));
    SELECT * INTO j FROM jobs WHERE name = p_job FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        outcome := 'unknown';
        RETURN;
    END IF;
    t := cronlatch_now_v1();
    IF NOT j.paused OR j.paused_until <= t THEN
        outcome := 'not_paused';
        RETURN;
    END IF;
    -- Not paused any more either if the clock steps back.
    UPDATE jobs SET paused = false, paused_at = coalesce(paused_at, t), paused_until = t
    WHERE name = p_job RETURNING paused_at INTO paused_from;
    closed := cronlatch_close_waiting_v1(p_job, t);
    outcome := 'resumed';
END $$;

-- Carries a catch-up plan out, if the watermark and the rows still are what it was made from. If
-- something is to run late, the job must not be paused, nor, where nothing may run after a newer
-- trigger, have a newer one.
CREATE FUNCTION cronlatch_catch_up_v2(
    p_job text, p_target text, p_from timestamptz, p_through timestamptz, p_rows_since timestamptz,
    p_rows_seen bigint, p_only_newest boolean, p_kinds text[], p_reasons text[], p_ranges_from timestamptz[],
    p_ranges_to timestamptz[], p_counts bigint[], p_runs uuid[], p_scheduled_at timestamptz[], p_resources text[], p_not_before_ms bigint[],
    p_waits_ms bigint[], p_start_deadlines_ms bigint[], p_reruns_left integer[]
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    t timestamptz;
BEGIN
    PERFORM set_config('lock_timeout', '500ms', true);
    PERFORM pg_advisory_xact_lock(1668246382, hashtext(p_job));
    t := cronlatch_now_v1();
    IF p_rows_seen <> (SELECT count(*) FROM runs
                       WHERE job = p_job AND scheduled_at > p_rows_since AND scheduled_at <= p_through
                         AND origin = 'schedule' AND target = p_target AND attempt = 1) THEN
        RETURN false;
    END IF;
    IF cardinality(p_runs) > 0 AND EXISTS (
        SELECT FROM jobs WHERE name = p_job AND paused AND (paused_until IS NULL OR paused_until > t)) THEN
        RETURN false;
    END IF;
    -- Rows for a time to come were left by a clock that was wrong.
    IF p_only_newest AND EXISTS (
        SELECT FROM runs
        WHERE job = p_job AND target = p_target AND origin = 'schedule' AND attempt = 1
          AND scheduled_at > (SELECT max(l.at) FROM unnest(p_scheduled_at) AS l (at)) AND scheduled_at <= t) THEN
        RETURN false;
    END IF;
    UPDATE job_progress SET caught_up_through = p_through
    WHERE job = p_job AND target = p_target AND caught_up_through = p_from;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO trigger_ranges (job, target, kind, reason, range_from, range_to, count, recorded_at)
    SELECT p_job, p_target, m.kind, m.reason, m.range_from, m.range_to, m.count, t
    FROM unnest(p_kinds, p_reasons, p_ranges_from, p_ranges_to, p_counts)
         AS m (kind, reason, range_from, range_to, count);
    INSERT INTO runs (id, job, scheduled_at, target, trigger, state, reason, created_at, not_before, wait_until,
                      resource, start_deadline_ms, start_by, reruns_left)
    SELECT l.run, p_job, l.scheduled_at, p_target, 'catch_up', 'waiting', 'catch_up', t,
           t + l.not_before_ms * interval '1 millisecond', t + l.waits_ms * interval '1 millisecond', l.resource,
           l.start_deadline_ms, t + l.waits_ms * interval '1 millisecond', l.reruns_left
    FROM unnest(p_runs, p_scheduled_at, p_resources, p_not_before_ms, p_waits_ms, p_start_deadlines_ms, p_reruns_left)
         AS l (run, scheduled_at, resource, not_before_ms, waits_ms, start_deadline_ms, reruns_left)
    ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

-- Deletes runs that are over for longer than they are kept, oldest first. Run ids sort by time
-- (RFC 9562, version 7), so this reads the old end of one index. Their jobs remember up to where
-- their history is gone.
CREATE FUNCTION cronlatch_prune_age_v2(p_keep_ms bigint, p_horizon_ms bigint) RETURNS bigint LANGUAGE plpgsql AS $$
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
