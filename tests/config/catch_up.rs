//! What becomes of triggers that nobody could take.

use cronlatch::job::CatchUp;

use crate::fixtures::{bare, good, lines_of, secs};

#[test]
fn each_fault_of_the_keys_of_catch_up_is_told_with_its_place_and_its_remedy() {
    const TICKING: &str = "means nothing without schedule, every or at; write schedule, every or at, or remove";
    const ALL: &str = r#"means nothing without catch_up = "all"; write catch_up = "all", or remove"#;
    let cases: [(&str, Vec<String>); 6] = [
        (
            "schedule = \"@hourly\"\ncatch_up_max_runs = 3\ncatch_up_spacing = \"1m\"",
            vec![
                format!("6:1: jobs.a.catch_up_max_runs = 3: {ALL} catch_up_max_runs"),
                format!(r#"7:1: jobs.a.catch_up_spacing = "1m": {ALL} catch_up_spacing"#),
            ],
        ),
        (
            "schedule = \"@hourly\"\ncatch_up = \"all\"\ncatch_up_max_runs = 1001\ncatch_up_spacing = \"25h\"",
            vec![
                "7:1: jobs.a.catch_up_max_runs = 1001: out of range; write a whole number from 1 to 1000".to_owned(),
                r#"8:1: jobs.a.catch_up_spacing = "25h": too long: at most 1day; write it like catch_up_spacing = "30s""#
                    .to_owned(),
            ],
        ),
        (
            "schedule = \"@hourly\"\ncatch_up = \"none\"\ncatch_up_max_runs = 0",
            vec!["7:1: jobs.a.catch_up_max_runs = 0: out of range; write a whole number from 1 to 1000".to_owned()],
        ),
        (
            "schedule = \"@hourly\"\ncatch_up = 1\ncatch_up_max_runs = 2",
            vec![
                r#"6:1: jobs.a.catch_up = 1: expected a string, not a whole number; write catch_up = "latest" or "none" or "all""#
                    .to_owned(),
            ],
        ),
        (
            "after = \"b\"\ncatch_up = \"all\"\ncatch_up_max_age = \"1h\"\ncatch_up_max_runs = 2\ncatch_up_spacing = \"1m\"",
            vec![
                format!(r#"6:1: jobs.a.catch_up = "all": {TICKING} catch_up"#),
                format!(r#"7:1: jobs.a.catch_up_max_age = "1h": {TICKING} catch_up_max_age"#),
                format!("8:1: jobs.a.catch_up_max_runs = 2: {TICKING} catch_up_max_runs"),
                format!(r#"9:1: jobs.a.catch_up_spacing = "1m": {TICKING} catch_up_spacing"#),
            ],
        ),
        ("catch_up = \"none\"", vec![format!(r#"5:1: jobs.a.catch_up = "none": {TICKING} catch_up"#)]),
    ];
    for (keys, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|line| format!("cronlatch.toml:{line}")).collect();
        let main = bare(&format!("{keys}\n[jobs.b]\nshell = \"true\"\nschedule = \"@daily\"\n"));
        assert_eq!(lines_of(&main), expected, "{keys}");
    }
}

#[test]
fn all_takes_how_many_and_how_far_apart() {
    let catch_up = |keys: &str| good(&bare(&format!("schedule = \"@hourly\"\n{keys}"))).jobs[0].catch_up;
    assert_eq!(catch_up(""), CatchUp::Latest);
    assert_eq!(catch_up("catch_up = \"none\""), CatchUp::None);
    assert_eq!(catch_up("catch_up = \"all\""), CatchUp::All { max_runs: 10, spacing: secs(0) });
    assert_eq!(
        catch_up("catch_up = \"all\"\ncatch_up_max_runs = 1000\ncatch_up_spacing = \"24h\""),
        CatchUp::All { max_runs: 1_000, spacing: secs(86_400) }
    );
    let defaults = "[defaults]\ncatch_up_max_runs = 3\ncatch_up_spacing = \"5s\"";
    assert_eq!(catch_up(defaults), CatchUp::Latest);
    assert_eq!(catch_up(&format!("catch_up = \"all\"\n{defaults}")), CatchUp::All { max_runs: 3, spacing: secs(5) });
}

#[test]
fn all_goes_a_day_back_and_the_others_half_a_period() {
    let age = |keys: &str| good(&bare(keys)).jobs[0].catch_up_max_age;
    assert_eq!(age("every = \"1h\""), secs(1_800));
    assert_eq!(age("every = \"1h\"\ncatch_up = \"none\""), secs(1_800));
    assert_eq!(
        age("every = \"1h\"\ncatch_up = \"all\""),
        secs(86_400),
        "with half a period it would never be more than one"
    );
    assert_eq!(age("every = \"1s\""), secs(300));
    assert_eq!(age("at = \"2030-01-01\""), secs(86_400));
    assert_eq!(age("every = \"1h\"\ncatch_up = \"all\"\ncatch_up_max_age = \"3h\""), secs(10_800));
}
