//! What becomes of a run: `retries` and their pauses, `success_codes`, `on_lease_lost`.

use cronlatch::job::{OnLeaseLost, Retries};

use crate::fixtures::{good, job, lines_of, secs, warnings};

#[track_caller]
fn retries(keys: &str) -> Retries {
    good(&job(keys)).jobs[0].retries
}

#[test]
fn the_pauses_between_retries_never_contradict_one_another() {
    let of = |most, delay, longest| Retries { most, delay: secs(delay), longest_delay: secs(longest) };
    assert_eq!(retries(""), Retries::default());
    assert_eq!(retries("retries = 3"), of(3, 10, 600));
    assert_eq!(retries("retries = 3\nretry_delay = \"20m\""), of(3, 1_200, 1_200));
    assert_eq!(retries("retries = 3\nretry_max_delay = \"3s\""), of(3, 3, 3));
    assert_eq!(retries("retries = 3\nretry_delay = \"0s\"\nretry_max_delay = \"1m\""), of(3, 0, 60));
    let defaults = "[defaults]\nretry_delay = \"1m\"\nretry_max_delay = \"5m\"\n";
    assert_eq!(retries(&format!("retries = 2\nretry_delay = \"2m\"\n{defaults}")), of(2, 120, 300));
    assert_eq!(retries(defaults), of(0, 60, 300), "in the defaults they wait for jobs that have retries");
}

#[test]
fn each_fault_of_an_outcome_is_told_with_its_place_and_its_remedy() {
    let cases = [
        ("retries = -1", "6:1: jobs.a.retries = -1: out of range; write a whole number from 0 to 1000"),
        (
            r#"retry_delay = "3s""#,
            r#"6:1: jobs.a.retry_delay = "3s": means nothing without retries; write retries, or remove retry_delay"#,
        ),
        (
            "retries = 0\nretry_max_delay = \"3s\"",
            r#"7:1: jobs.a.retry_max_delay = "3s": means nothing without retries; write retries, or remove retry_max_delay"#,
        ),
        (
            "retries = 1\nretry_delay = \"5s\"\nretry_max_delay = \"3s\"",
            r#"8:1: jobs.a.retry_max_delay = "3s": shorter than retry_delay (line 7); lengthen it, or shorten retry_delay"#,
        ),
        (
            "retries = 1\nretry_delay = \"5s\"\n[defaults]\nretry_max_delay = \"3s\"",
            r#"7:1: jobs.a.retry_delay = "5s": longer than retry_max_delay (line 9); shorten it, or lengthen retry_max_delay"#,
        ),
        (
            "success_codes = []",
            "6:1: jobs.a.success_codes = []: an empty list, so no run could succeed; write success_codes = [0]",
        ),
        (
            "success_codes = 3",
            "6:1: jobs.a.success_codes = 3: expected a list of whole numbers, not a whole number; write success_codes = [0, ...]",
        ),
        (
            "success_codes = [0, 256]",
            "6:21: jobs.a.success_codes[1] = 256: out of range; write a whole number from 0 to 255",
        ),
        (
            r#"on_lease_lost = "ignore""#,
            r#"6:1: jobs.a.on_lease_lost = "ignore": not one of "kill", "continue"; write on_lease_lost = "kill" or "continue""#,
        ),
    ];
    for (keys, message) in cases {
        assert_eq!(lines_of(&job(keys)), [format!("cronlatch.toml:{message}")], "{keys}");
    }
}

#[test]
fn success_codes_are_those_that_are_named_and_no_others() {
    let codes = |keys: &str| good(&job(keys)).jobs[0].success_codes.clone();
    assert_eq!(codes("").iter().collect::<Vec<_>>(), [0]);
    let codes = codes("success_codes = [24, 0, 24]");
    assert!(codes.has(0) && codes.has(24) && !codes.has(1) && !codes.has(-1) && !codes.has(256));
}

#[test]
fn a_job_that_goes_on_without_its_lease_and_one_that_gives_the_old_run_no_time_are_warned_about() {
    let keys = "on_lease_lost = \"continue\"";
    assert_eq!(good(&job(keys)).jobs[0].on_lease_lost, OnLeaseLost::Continue);
    assert_eq!(
        warnings(&job(keys)),
        [
            r#"cronlatch.toml:6:1: jobs.a.on_lease_lost = "continue": another host may run the job at the same time then; write "kill", or let the job refuse old values of CRONLATCH_FENCING_TOKEN"#
        ]
    );
    assert_eq!(
        warnings(&job("overlap = \"replace\"\nwait_for = \"15s\"")),
        [
            r#"cronlatch.toml:7:1: jobs.a.wait_for = "15s": not longer than kill_grace (15s), which the run that is stopped may take; lengthen it"#
        ]
    );
    assert_eq!(warnings(&job("overlap = \"replace\"\nwait_for = \"16s\"")), [""; 0]);
}
