//! What a check-up warns about and what it says about each job.

use cronlatch::config;

use crate::fixtures::{HEAD, bare, folder, warnings};

#[test]
fn what_may_surprise_is_warned_about_with_its_place_and_its_remedy() {
    let cases: [(&str, &[&str]); 14] = [
        (
            "",
            &[
                "3:7: jobs.a: has none of schedule, every, at and after: it only runs by hand; write schedule = [] if that is meant",
            ],
        ),
        ("schedule = []", &[]),
        (
            "at = \"2020-01-01\"",
            &[r#"5:1: jobs.a.at = "2020-01-01": gone by, the job runs no more by itself; move it, or remove the job"#],
        ),
        (
            r#"schedule = "0 0 3 1 1 * 2020""#,
            &[
                r#"5:1: jobs.a.schedule = "0 0 3 1 1 * 2020": gone by, the job runs no more by itself; move it, or remove the job"#,
            ],
        ),
        (
            r#"schedule = ["@daily", "0 0 3 1 1 * 2020"]"#,
            &[r#"5:23: jobs.a.schedule[1] = "0 0 3 1 1 * 2020": gone by, it names no more instants; remove it"#],
        ),
        (
            "every = \"1m\"\nactive_until = \"2020-01-01\"",
            &[
                r#"6:1: jobs.a.active_until = "2020-01-01": gone by, the job runs no more by itself; move it, or remove the job"#,
            ],
        ),
        (
            "schedule = \"@yearly\"\nactive_from = \"2100-02-01\"\nactive_until = \"2100-03-01\"",
            &[
                r#"7:1: jobs.a.active_until = "2100-03-01": the job has no instant between active_from and active_until, so it never runs by itself; widen the two, or remove them"#,
            ],
        ),
        (
            "at = \"2090-01-01\"\nactive_from = \"2100-02-01\"",
            &[
                r#"6:1: jobs.a.active_from = "2100-02-01": the job has no instant between active_from and active_until, so it never runs by itself; widen the two, or remove them"#,
            ],
        ),
        (
            "every = \"7h\"",
            &[
                r#"5:1: jobs.a.every = "7h": 7h doesn't divide a day, so the job runs at other times each day; write a divisor of 24h, or a schedule"#,
            ],
        ),
        ("every = \"7m\"", &[]),
        ("every = \"48h\"", &[]),
        (
            "every = \"1h\"\nsplay = \"2h\"",
            &[
                r#"6:1: jobs.a.splay = "2h": longer than the shortest time between two triggers, 1h; shorten it, or a run may start when the next one is due"#,
            ],
        ),
        (
            "every = \"1h\"\ncatch_up = \"all\"\ncatch_up_max_age = \"10m\"",
            &[
                r#"7:1: jobs.a.catch_up_max_age = "10m": shorter than the time between two triggers, 1h: one is run late at most; lengthen it, or write catch_up = "latest""#,
            ],
        ),
        ("every = \"1h\"\ncatch_up_max_age = \"10m\"\nsplay = \"1h\"", &[]),
    ];
    for (keys, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|line| format!("cronlatch.toml:{line}")).collect();
        assert_eq!(warnings(&bare(keys)), expected, "{keys}");
    }
}

#[test]
fn what_surprises_in_an_expression_is_told_at_its_own_place() {
    let told = warnings(&bare("schedule = [\"@daily\", \"*/7 * * * *\", \"0 0 31 * *\"]"));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("cronlatch.toml:5:23: jobs.a.schedule[1] = \"*/7 * * * *\": minute */7: "), "{told:?}");
    assert!(told[1].starts_with("cronlatch.toml:5:38: jobs.a.schedule[2] = \"0 0 31 * *\": "), "{told:?}");
}

#[test]
fn hosts_and_labels_that_this_host_does_not_meet_are_no_warning() {
    assert_eq!(warnings(&bare("schedule = \"@daily\"\nhosts = \"no-such-host\"\nlabels = \"no-such-label\"")), [""; 0]);
}

#[test]
fn a_surprise_of_all_jobs_is_told_once_where_it_stands() {
    let main = bare("[jobs.b]\nshell = \"true\"\n[defaults]\nevery = \"7h\"");
    let told = warnings(&main);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("cronlatch.toml:8:1: defaults.every"), "{told:?}");
}

#[test]
fn a_check_up_says_in_words_what_each_job_does_and_where_that_stands() {
    let main = format!(
        "{HEAD}[jobs.a]\nschedule = \"15 2 * * MON-FRI\"\ntimezone = \"Europe/Berlin\"\nshell = \"true\"\nsplay = \"10m\"\n\
         [jobs.b]\nafter = [\"a\", \"c\", \"d\"]\nshell = \"true\"\nhosts = [\"web-*\", \"db-1\"]\nlabels = \"gpu\"\n\
         [jobs.c]\nshell = \"true\"\nrun_on = \"one\"\nenabled = false\n\
         [jobs.d]\nshell = \"true\"\n[defaults]\nat = \"2090-01-01T03:00:00+01:00\"\n"
    );
    let files = [
        ("cronlatch.toml", main.as_str()),
        ("jobs.d/bad.toml", "[jobs.y]\nshell = \"true\"\n[jobs.z]\nschedule = 3\n"),
    ];
    let folder = folder(&files);
    let checked = config::check(&folder.path().join("cronlatch.toml"));
    let told: Vec<(&str, &str, usize, &str)> = checked
        .words
        .iter()
        .map(|said| (said.job.as_str(), said.key.as_str(), said.position.unwrap().line, said.words.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (
                "a",
                "jobs.a.schedule",
                4,
                "at 02:15 on Monday to Friday, Europe/Berlin + up to 10m splay: starts 4m 07s later"
            ),
            ("b", "jobs.b.after", 9, "after a, c and d; on one host of web-*, db-1 with gpu"),
            ("c", "defaults.at", 20, "once, at 2090-01-01 02:00 +00:00; disabled"),
            ("d", "defaults.at", 20, "once, at 2090-01-01 02:00 +00:00"),
        ],
        "the jobs of a file with a problem are not in use"
    );
    assert_eq!(checked.words[0].value.as_deref(), Some("\"15 2 * * MON-FRI\""));
    assert_eq!(checked.words[0].file, folder.path().join("cronlatch.toml"));
}
