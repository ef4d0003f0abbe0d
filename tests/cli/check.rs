//! `cronlatch check`.

use serde_json::Value;

use crate::ask;
use crate::support::fleet::Fleet;

#[test]
fn check_tells_programs_where_each_problem_and_each_warning_is() {
    let fleet = Fleet::new();
    let head = "[database]\nurl = \"sqlite:///tmp/never-made.db\"\n[jobs.a]\nschedule = \"@daily\"\n";
    fleet.configure("a", &format!("{head}command = [\"/no/such/program\"]\n"));
    let config = fleet.config_path("a");
    let said = ask(&config, &["check"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.starts_with(&format!("warning: {}:5:1: jobs.a.command", config.display())), "{said:?}");
    assert!(said.stdout.contains(": 1 job, no problem, 1 warning\n"), "{said:?}");
    let said = ask(&config, &["check", "--json"]);
    assert_eq!((said.code, said.objects().len(), &said.objects()[0]["severity"]), (0, 2, &"warning".into()));

    fleet.configure("a", &format!("{head}command = [\"true\"]\noverlap = \"always\"\n"));
    let said = ask(&config, &["check", "--json"]);
    assert_eq!((said.code, said.stderr.as_str()), (78, "cronlatch: 1 problem\n"));
    let problem = &said.objects()[0];
    let expected = [
        ("severity", "error".into()),
        ("file", config.to_str().unwrap().into()),
        ("line", 6.into()),
        ("column", 1.into()),
        ("key", "jobs.a.overlap".into()),
        ("value", "\"always\"".into()),
        ("wrong", "not one of \"skip\", \"wait\", \"replace\"".into()),
        ("remedy", "write overlap = \"skip\" or \"wait\" or \"replace\"".into()),
    ];
    for (name, value) in expected {
        let value: Value = value;
        assert_eq!(problem[name], value, "{name}");
    }
    assert!(problem["problem"].as_str().unwrap().ends_with("write overlap = \"skip\" or \"wait\" or \"replace\""));
}

const JOBS: &str = "[database]\nurl = \"sqlite:///tmp/never-made.db\"\n\
                    [jobs.load]\nafter = \"extract\"\nshell = \"true\"\nrun_on = \"every\"\n\
                    [jobs.extract]\nschedule = \"15 2 * * MON-FRI\"\nshell = \"true\"\nrun_on = \"every\"\n";

#[test]
fn check_says_in_words_what_each_job_does_between_the_warnings_and_the_summary() {
    let fleet = Fleet::new();
    fleet.configure("a", &format!("{JOBS}[jobs.x]\nshell = \"true\"\n"));
    let config = fleet.config_path("a");
    let said = ask(&config, &["check"]);
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert!(
        lines[0].starts_with(&format!("warning: {}:11:7: jobs.x: has none of schedule,", config.display())),
        "{said:?}"
    );
    assert_eq!(
        lines[1..4],
        [
            "extract: at 02:15 on Monday to Friday, UTC; on every host",
            "load: after extract; on every host",
            "x: only by hand",
        ]
    );
    assert_eq!(lines[4], format!("{}: 3 jobs, no problem, 1 warning", config.display()));
}

#[test]
fn beside_problems_check_says_no_words_to_people_but_to_programs() {
    let fleet = Fleet::new();
    fleet.configure("a", JOBS);
    let config = fleet.config_path("a");
    let bad = config.with_file_name("jobs.d").join("bad.toml");
    std::fs::create_dir_all(bad.parent().unwrap()).unwrap();
    std::fs::write(&bad, "[jobs.bad]\nschedule = \"@daily\"\nsplay = 3\nshell = \"true\"\n").unwrap();
    let said = ask(&config, &["check"]);
    assert_eq!((said.code, said.stdout.lines().count()), (78, 1), "{said:?}");

    let said = ask(&config, &["check", "--json"]);
    assert_eq!(said.code, 78);
    let objects = said.objects();
    let severities: Vec<&Value> = objects.iter().map(|object| &object["severity"]).collect();
    assert_eq!(severities, ["error", "info", "info"]);
    let expected: [(&str, Value); 8] = [
        ("severity", "info".into()),
        ("file", config.to_str().unwrap().into()),
        ("line", 8.into()),
        ("column", 1.into()),
        ("key", "jobs.extract.schedule".into()),
        ("value", "\"15 2 * * MON-FRI\"".into()),
        ("job", "extract".into()),
        ("words", "at 02:15 on Monday to Friday, UTC; on every host".into()),
    ];
    let info = objects[1].as_object().unwrap();
    assert_eq!(info.len(), expected.len(), "{info:?}");
    for (name, value) in expected {
        assert_eq!(info[name], value, "{name}");
    }
}
