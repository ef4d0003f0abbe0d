-- What a run used. Hosts of version 2 go on meanwhile: nothing that they call is changed or dropped.
-- Names and columns are the same as in ../sqlite/0003_outcomes.sql.

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
