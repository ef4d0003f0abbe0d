//! How a job's process is set up: `user`, `group`, `umask`, `env_file`, `stdin`, `nice`, `limits`.

use std::path::PathBuf;

use cronlatch::job::{Limits, ProcessSetup, Stdin, Umask};

use crate::fixtures::{good, job, lines_of, secs};

/// What a job with these keys says about its process.
#[track_caller]
fn process(keys: &str) -> ProcessSetup {
    good(&job(keys)).jobs[0].process.clone()
}

#[test]
fn each_key_of_a_process_has_its_meaning() {
    let keys = "user = \"backup\"\ngroup = \"www-data\"\numask = \"0027\"\nenv_file = \"/etc/default/a\"\nnice = -5\n\
                stdin = { file = \"/etc/motd\" }\n\
                limits = { memory = \"512M\", cpu_time = \"10m\", open_files = 1024, processes = 64 }";
    let expected = ProcessSetup {
        user: Some("backup".to_owned()),
        group: Some("www-data".to_owned()),
        umask: Umask(0o027),
        env_file: Some(PathBuf::from("/etc/default/a")),
        stdin: Stdin::File(PathBuf::from("/etc/motd")),
        nice: -5,
        limits: Limits {
            memory: Some(512 << 20),
            cpu_time: Some(secs(600)),
            open_files: Some(1024),
            processes: Some(64),
        },
    };
    assert_eq!(process(keys), expected);
    assert_eq!(process(""), ProcessSetup::default());
    assert_eq!(process("user = \"@daemon\"\numask = \"022\"\nstdin = \"\"\nnice = 0\nlimits = {}"), process(""));
    assert_eq!(process("stdin = \"a\\nb\\n\"").stdin, Stdin::Text("a\nb\n".to_owned()));
    for name in ["_apt", "web.app", "DOMAIN\\\\joe", "joe@example.org", "machine$", "1a", "jörg"] {
        assert_eq!(process(&format!("user = \"{name}\"")).user, Some(name.replace("\\\\", "\\")));
    }
}

#[test]
fn each_fault_of_a_process_is_told_with_its_place_and_its_remedy() {
    let cases = [
        (
            r#"user = "1000""#,
            r#"6:1: jobs.a.user = "1000": a numeric id, which may be another's on the next host; write its name, as in user = "backup""#,
        ),
        (
            "user = 1000",
            r#"6:1: jobs.a.user = 1000: a numeric id, which may be another's on the next host; write its name, as in user = "backup""#,
        ),
        (r#"user = """#, r#"6:1: jobs.a.user = "": names nobody; write its name, as in user = "backup""#),
        (
            r#"user = "joe:staff""#,
            r#"6:1: jobs.a.user = "joe:staff": can't be the name of a user; write its name, as in user = "backup""#,
        ),
        (
            r#"user = "@demon""#,
            r#"6:1: jobs.a.user = "@demon": can't be the name of a user; write its name, as in user = "backup""#,
        ),
        (
            r#"group = "@daemon""#,
            r#"6:1: jobs.a.group = "@daemon": can't be the name of a group; write its name, as in group = "www-data""#,
        ),
        (
            "umask = 22",
            r#"6:1: jobs.a.umask = 22: a number, which TOML takes for a decimal one; write its octal digits in quotes, as in umask = "027""#,
        ),
        (
            "umask = 0o22",
            r#"6:1: jobs.a.umask = 0o22: a number, which TOML takes for a decimal one; write its octal digits in quotes, as in umask = "027""#,
        ),
        (
            r#"umask = "1022""#,
            r#"6:1: jobs.a.umask = "1022": not three octal digits; write its octal digits in quotes, as in umask = "027""#,
        ),
        (
            r#"umask = "028""#,
            r#"6:1: jobs.a.umask = "028": not three octal digits; write its octal digits in quotes, as in umask = "027""#,
        ),
        (r#"env_file = "a""#, r#"6:1: jobs.a.env_file = "a": not an absolute path; write env_file = "/...""#),
        ("nice = 20", "6:1: jobs.a.nice = 20: out of range; write a whole number from -20 to 19"),
        (
            r#"limits = { memory = "512MB" }"#,
            r#"6:12: jobs.a.limits.memory = "512MB": the unit MB means powers of 1000 to some; M and MiB are powers of 1024; write it like memory = "512M""#,
        ),
        (
            "limits = { memory = 512 }",
            r#"6:12: jobs.a.limits.memory = 512: a size without a unit; write it like memory = "512M""#,
        ),
        (
            r#"limits = { memory = "64K" }"#,
            r#"6:12: jobs.a.limits.memory = "64K": too small: at least 1M; write it like memory = "512M""#,
        ),
        (
            r#"limits = { cpu_time = "1500ms" }"#,
            r#"6:12: jobs.a.limits.cpu_time = "1500ms": a part of a second; write whole seconds"#,
        ),
        (
            "limits = { open_files = 3 }",
            "6:12: jobs.a.limits.open_files = 3: out of range; write a whole number from 8 to 4294967295",
        ),
        ("limits = { files = 3 }", r#"6:12: jobs.a.limits.files: unknown key; did you mean "open_files"?"#),
        (
            "limits = 3",
            r#"6:1: jobs.a.limits = 3: expected a table, not a whole number; write limits = { memory = "512M" }"#,
        ),
        ("memory = 3", "6:1: jobs.a.memory: unknown key in a job; it belongs in limits of a job"),
    ];
    for (keys, message) in cases {
        assert_eq!(lines_of(&job(keys)), [format!("cronlatch.toml:{message}")], "{keys}");
    }
}

#[test]
fn what_a_job_reads_from_its_standard_input_is_never_shown() {
    for (keys, wrong) in [
        ("stdin = 12345", "6:1: jobs.a.stdin: neither a text nor a table"),
        ("stdin = [\"12345\"]", "6:1: jobs.a.stdin: neither a text nor a table"),
        ("stdin = {}", "6:1: jobs.a.stdin: names no file"),
        ("stdin = { file = \"12345\" }", "6:11: jobs.a.stdin.file: not an absolute path"),
        ("stdin = { text = \"12345\" }", "6:11: jobs.a.stdin.text: unknown key"),
    ] {
        let told = lines_of(&job(keys));
        assert!(told[0].starts_with(&format!("cronlatch.toml:{wrong};")), "{keys}: {told:?}");
        assert!(!told.concat().contains("12345"), "{told:?}");
    }
}

#[test]
fn limits_are_laid_over_those_of_the_defaults_one_by_one() {
    let keys = "limits = { memory = \"1G\", processes = 8 }\n\
                [jobs.b]\nschedule = []\nshell = \"true\"\n\
                [defaults]\nlimits = { memory = \"64M\", open_files = 100 }\nuser = \"backup\"\numask = \"077\"\n";
    let loaded = good(&job(keys));
    let of = |n: usize| {
        let limits = loaded.jobs[n].process.limits;
        (limits.memory, limits.open_files, limits.processes)
    };
    assert_eq!(of(0), (Some(1 << 30), Some(100), Some(8)));
    assert_eq!(of(1), (Some(64 << 20), Some(100), None));
    assert!(loaded.jobs.iter().all(|job| job.process.umask == Umask(0o077)));
}
