//! Who is told how a job fares: `on_failure`, `on_recovery`, `failures_before_notice`, `ping_url`.

use cronlatch::job::{Command, Notices};

use crate::fixtures::{good, job, lines_of};

#[track_caller]
fn notices(keys: &str) -> Option<Notices> {
    good(&job(keys)).jobs[0].notices.as_deref().cloned()
}

#[test]
fn a_notice_is_a_program_or_a_line_for_the_shell_and_a_job_may_have_none_of_the_defaults() {
    assert_eq!(notices(""), None);
    let told =
        notices("on_failure = [\"tell\", \"-x\"]\non_recovery = \"tell | cat\"\nfailures_before_notice = 3").unwrap();
    assert_eq!(told.on_failure, Some(Command::Argv(vec!["tell".to_owned(), "-x".to_owned()])));
    assert_eq!(told.on_recovery, Some(Command::Shell("tell | cat".to_owned())));
    assert_eq!((told.failures_before_notice, told.ping_url), (3, None));
    let defaults = "[defaults]\non_failure = \"tell\"\nfailures_before_notice = 2\n";
    assert_eq!(notices(defaults).unwrap().failures_before_notice, 2);
    assert_eq!(notices(&format!("on_failure = []\n{defaults}")), None);
}

#[test]
fn a_ping_url_is_an_address_to_whose_path_more_can_be_put() {
    let url = |url: &str| {
        let told = notices(&format!("ping_url = \"{url}\"")).unwrap();
        told.ping_url.unwrap().as_secret().to_owned()
    };
    assert_eq!(url("https://hc-ping.com/0f3e7a4e"), "https://hc-ping.com/0f3e7a4e");
    assert_eq!(url("http://[::1]:8000/ping/a/"), "http://[::1]:8000/ping/a");
    assert_eq!(url("https://ping.example.org"), "https://ping.example.org");
}

#[test]
fn a_ping_url_is_never_shown() {
    for url in [
        "\"hunter2\"",
        "\"ftp://h/hunter2\"",
        "\"https://h/hunter2?a=b\"",
        "\"https://h/hunter2#a\"",
        "\"https://u:hunter2@h/x\"",
        "\"https:///hunter2:x\"",
        "\"https://h:hunter2/x\"",
        "[\"https://h/hunter2\"]",
    ] {
        let told = lines_of(&job(&format!("ping_url = {url}")));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("cronlatch.toml:6:1: jobs.a.ping_url: "), "{told:?}");
        assert!(!told[0].contains("hunter2"), "{told:?}");
    }
    let loaded = good(&job("ping_url = \"https://h/hunter2\""));
    assert!(!format!("{loaded:?}").contains("hunter2"));
}

#[test]
fn each_fault_of_a_notice_is_told_with_its_place_and_its_remedy() {
    let cases = [
        (r#"on_failure = " ""#, r#"jobs.a.on_failure = " ": an empty line; write on_failure = "PROGRAM | PROGRAM""#),
        (
            r#"on_failure = [""]"#,
            r#"jobs.a.on_failure = [""]: names no program; write on_failure = ["/PATH/TO/PROGRAM", "ARGUMENT"]"#,
        ),
        (
            "on_recovery = 3",
            r#"jobs.a.on_recovery = 3: expected a list of strings, not a whole number; write on_recovery = ["...", "..."]"#,
        ),
        (
            "failures_before_notice = 2",
            "jobs.a.failures_before_notice = 2: means nothing without on_failure or on_recovery; write on_failure or on_recovery, or remove failures_before_notice",
        ),
        (
            "failures_before_notice = 0\non_failure = \"tell\"",
            "jobs.a.failures_before_notice = 0: out of range; write a whole number from 1 to 1000",
        ),
    ];
    for (keys, message) in cases {
        assert_eq!(lines_of(&job(keys)), [format!("cronlatch.toml:6:1: {message}")], "{keys}");
    }
}
