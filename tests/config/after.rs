//! Jobs that run after others: judged when all files have been read.

use std::time::{Duration, Instant};

use cronlatch::config;
use cronlatch::job::JobName;

use crate::fixtures::{GOOD, HEAD, bare, folder, good, lines, lines_of, load, names, warnings, write};

/// Jobs with nothing but their name and these keys, each on four lines.
fn jobs(jobs: &[(&str, &str)]) -> String {
    jobs.iter().map(|(name, keys)| format!("[jobs.{name}]\nshell = \"true\"\n{keys}\n\n")).collect()
}

#[test]
fn each_fault_of_a_list_of_jobs_is_told_with_its_place_and_its_remedy() {
    let cases: [(&str, &[&str]); 6] = [
        (
            "after = []",
            &[
                r#"5:1: jobs.a.after = []: an empty list; write after = "JOB", or schedule = [] for a job that only runs by hand"#,
            ],
        ),
        (
            "after = 3",
            &[
                r#"5:1: jobs.a.after = 3: expected a string or a list of strings, not a whole number; write after = "...""#,
            ],
        ),
        (
            r#"after = [3, "b", ""]"#,
            &[
                "5:10: jobs.a.after[0] = 3: expected a string, not a whole number; put it in quotes",
                r#"5:18: jobs.a.after[2] = "": a job's name can't be blank; choose another"#,
            ],
        ),
        (r#"after = ["b", "c", "b"]"#, &[r#"5:20: jobs.a.after[2] = "b": named twice; remove one of the two"#]),
        (r#"after = ["b", "a"]"#, &[r#"5:15: jobs.a.after[1] = "a": job a can't run after itself; remove it"#]),
        (
            r#"after = ["b", "extrakt", "nothing-like-it"]"#,
            &[
                r#"5:15: jobs.a.after[1] = "extrakt": no job has this name; did you mean "extract"?"#,
                r#"5:26: jobs.a.after[2] = "nothing-like-it": no job has this name; define it, or name another"#,
            ],
        ),
    ];
    let others = jobs(&[("b", ""), ("c", ""), ("extract", "")]);
    for (keys, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|line| format!("cronlatch.toml:{line}")).collect();
        assert_eq!(lines_of(&bare(&format!("{keys}\n{others}"))), expected, "{keys}");
    }
}

#[test]
fn a_job_runs_after_jobs_of_any_file() {
    let later = "[jobs.load]\nafter = [\"a\", \"extract\"]\nshell = \"true\"\n";
    let first = "[jobs.extract]\nafter = \"a\"\nshell = \"true\"\n";
    let folder = folder(&[("cronlatch.toml", GOOD), ("jobs.d/1.toml", later), ("jobs.d/2.toml", first)]);
    let loaded = load(&folder);
    assert_eq!(lines(&folder, &loaded), [""; 0]);
    let after = |n: usize| loaded.jobs[n].after.iter().map(JobName::as_str).collect::<Vec<_>>();
    assert_eq!((names(&loaded), after(0)), (vec!["a", "extract", "load"], vec![]));
    assert_eq!((after(1), after(2)), (vec!["a"], vec!["a", "extract"]));
    assert!(loaded.jobs[2].schedule.is_by_hand());
}

#[test]
fn a_cycle_is_told_once_at_the_job_that_was_read_last() {
    let cycle = jobs(&[
        ("x", "after = \"z\""),
        ("y", "after = [\"a\", \"x\"]"),
        ("z", "after = \"y\""),
        ("w", "after = \"z\""),
    ]);
    assert_eq!(
        lines_of(&format!("{GOOD}{cycle}")),
        [
            r#"cronlatch.toml:16:1: jobs.z.after = "y": these jobs wait for one another: z after y after x after z; remove one of them from the other's after"#
        ]
    );
    let files = [
        ("cronlatch.toml", GOOD.to_owned()),
        ("jobs.d/1.toml", jobs(&[("x", "after = \"y\"")])),
        ("jobs.d/2.toml", jobs(&[("y", "after = \"x\"")])),
    ];
    let folder = folder(&files.each_ref().map(|(name, text)| (*name, text.as_str())));
    let loaded = load(&folder);
    assert_eq!(
        lines(&folder, &loaded),
        [
            r#"jobs.d/2.toml:3:1: jobs.y.after = "x": these jobs wait for one another: y after x after y; remove one of them from the other's after"#
        ]
    );
    assert_eq!(names(&loaded), ["a", "x"], "a stray file disables itself");
}

#[test]
fn a_cycle_of_thousands_is_one_short_line() {
    let mut text = HEAD.to_owned();
    for n in 0..5_000 {
        text.push_str(&jobs(&[(&format!("j{n:04}"), &format!("after = \"j{:04}\"", (n + 4_999) % 5_000))]));
    }
    let told = lines_of(&text);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains(": these 5000 jobs wait for one another: j4999 after j4998 after "), "{told:?}");
    assert!(told[0].len() < 300, "{told:?}");
}

#[test]
fn jobs_of_a_file_that_is_refused_or_unreadable_count_as_known() {
    let main = format!("{GOOD}{}", jobs(&[("load", "after = \"extract\"")]));
    let refused = "[jobs.extract]\nschedule = \"@daily\"\nshel = \"true\"\n";
    for (text, problem) in [
        (refused, "jobs.d/1.toml:3:1: jobs.extract.shel: unknown key; did you mean \"shell\"?"),
        (
            "[jobs.ex\n",
            "jobs.d/1.toml:1:9: not valid TOML: unclosed table, expected `]`; mend this line or the one before",
        ),
    ] {
        let folder = folder(&[("cronlatch.toml", &main), ("jobs.d/1.toml", text)]);
        let loaded = load(&folder);
        assert_eq!(lines(&folder, &loaded), [problem]);
        assert_eq!(names(&loaded), ["a", "load"], "one fault gives one problem, and no other file suffers");
    }
    let folder = folder(&[("cronlatch.toml", &main)]);
    write(folder.path(), "jobs.d/1.toml", b"\xff");
    assert_eq!(lines(&folder, &load(&folder)), ["jobs.d/1.toml:1:1: not UTF-8 from here on; save the file as UTF-8"]);
}

#[test]
fn both_jobs_run_on_one_host_or_both_on_every_host() {
    let pair = |upstream: &str, own: &str| {
        lines_of(&format!("{GOOD}{}", jobs(&[("extract", upstream), ("load", &format!("after = \"extract\"\n{own}"))])))
    };
    const EVERY: &str = "run_on = \"every\"";
    assert_eq!(pair("", ""), [""; 0]);
    assert_eq!(pair(EVERY, EVERY), [""; 0]);
    assert_eq!(
        pair(EVERY, ""),
        [
            r#"cronlatch.toml:12:1: jobs.load.after = "extract": job extract (line 6) runs on every host, but job load on one host; give both the same run_on"#
        ]
    );
    assert_eq!(
        pair("", EVERY),
        [
            r#"cronlatch.toml:12:1: jobs.load.after = "extract": job extract (line 6) runs on one host, but job load on every host; give both the same run_on"#
        ]
    );
    let told = pair("run_on = \"all\"", EVERY);
    assert_eq!(told.len(), 1, "what was refused is compared with nothing: {told:?}");
}

#[test]
fn a_job_after_one_that_is_disabled_is_warned_about() {
    let disabled = jobs(&[("extract", "enabled = false"), ("load", "after = [\"a\", \"extract\"]")]);
    let told = warnings(&format!("{GOOD}{disabled}"));
    let expected = r#"cronlatch.toml:12:15: jobs.load.after[1] = "extract": job extract (line 6) is disabled, so job load never runs by itself; enable it, or disable this one too"#;
    assert!(told.iter().any(|line| line == expected), "{told:?}");
    let both = disabled.replace("after = [", "enabled = false\nafter = [");
    assert!(!warnings(&format!("{GOOD}{both}")).concat().contains("never runs"));
}

#[test]
fn an_after_of_all_jobs_is_judged_for_each() {
    let main = bare("schedule = \"@daily\"\n[jobs.b]\nshell = \"true\"\n[defaults]\nafter = [\"a\", \"bb\"]");
    assert_eq!(
        lines_of(&main),
        [r#"cronlatch.toml:9:15: defaults.after[1] = "bb": no job has this name; define it, or name another"#]
    );
    let by_hand = bare("[defaults]\nafter = \"a\"");
    assert_eq!(
        lines_of(&by_hand),
        [r#"cronlatch.toml:6:1: defaults.after = "a": job a can't run after itself; remove it"#]
    );
}

#[test]
fn thousands_of_unknown_names_are_told_in_little_time() {
    let mut text = HEAD.to_owned();
    for n in 0..3_000 {
        text.push_str(&jobs(&[(&format!("job-{n}"), &format!("after = \"unknown-{n}\""))]));
    }
    let folder = folder(&[("cronlatch.toml", &text)]);
    let start = Instant::now();
    assert_eq!(config::load(&folder.path().join("cronlatch.toml")).problems.len(), 3_000);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(good(&bare("schedule = \"@daily\"")).jobs.len(), 1);
}
