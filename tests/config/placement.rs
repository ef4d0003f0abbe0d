//! Where a job runs: `run_on`, `hosts`, `labels`.

use std::collections::BTreeSet;

use cronlatch::fleet::{HostName, Label};
use cronlatch::job::RunOn;

use crate::fixtures::{HEAD, bare, good, lines_of};

#[test]
fn each_fault_of_the_keys_of_placement_is_told_with_its_place_and_its_remedy() {
    let cases: [(&str, &[&str]); 5] = [
        (
            r#"run_on = "all""#,
            &[r#"5:1: jobs.a.run_on = "all": not one of "one", "every"; write run_on = "one" or "every""#],
        ),
        (
            r#"hosts = ["web 1", "", 3]"#,
            &[
                r#"5:10: jobs.a.hosts[0] = "web 1": no host name holds ' ', so the pattern would match none; write a name, with * and ? as wildcards"#,
                r#"5:19: jobs.a.hosts[1] = "": a pattern of hosts has 1 to 128 characters, this one has 0; write it like hosts = ["web-*", "db-1"]"#,
                "5:23: jobs.a.hosts[2] = 3: expected a string, not a whole number; put it in quotes",
            ],
        ),
        (
            "hosts = true",
            &[
                r#"5:1: jobs.a.hosts = true: expected a string or a list of strings, not true or false; write hosts = "...""#,
            ],
        ),
        (
            r#"labels = ["a b"]"#,
            &[
                r#"5:11: jobs.a.labels[0] = "a b": a label can't hold ' ': letters, digits, '-', '_', '.', ':' and '=' only; choose another"#,
            ],
        ),
        (
            "labels = {}",
            &[r#"5:1: jobs.a.labels = {}: expected a string or a list of strings, not a table; write labels = "...""#],
        ),
    ];
    for (keys, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|line| format!("cronlatch.toml:{line}")).collect();
        assert_eq!(lines_of(&bare(keys)), expected, "{keys}");
    }
}

#[test]
fn a_job_admits_the_hosts_that_its_keys_and_the_defaults_name() {
    let keys = "hosts = \"web-*\"\nlabels = [\"gpu\", \"eu\"]\nrun_on = \"every\"\n\
                [jobs.b]\nhosts = [\"db-1\", \"db-2\"]\nshell = \"true\"\n\
                [jobs.c]\nlabels = []\nrun_on = \"one\"\nshell = \"true\"\n\
                [defaults]\nlabels = \"ssd\"\nrun_on = \"every\"\n";
    let loaded = good(&bare(keys));
    let admits = |job: usize, host: &str, labels: &[&str]| {
        let labels: BTreeSet<Label> = labels.iter().map(|label| Label::new(*label).unwrap()).collect();
        loaded.jobs[job].placement.admits(&HostName::new(host).unwrap(), &labels)
    };
    assert!(admits(0, "web-3", &["eu", "gpu"]) && !admits(0, "web-3", &["eu"]) && !admits(0, "db-1", &["eu", "gpu"]));
    assert!(admits(1, "db-2", &["ssd"]) && !admits(1, "db-2", &[]));
    assert!(loaded.jobs[2].placement.admits_all());
    let run_on: Vec<RunOn> = loaded.jobs.iter().map(|job| job.placement.run_on).collect();
    assert_eq!(run_on, [RunOn::Every, RunOn::Every, RunOn::One]);
    assert_eq!(loaded.jobs[0].resource.as_str(), "job:a", "the host is put behind it when the lock is taken");
    assert_eq!(good(&bare("")).jobs[0].placement, Default::default());
}

#[test]
fn a_lock_of_every_host_leaves_room_for_the_hosts_name() {
    let lock = |length: usize| bare(&format!("run_on = \"every\"\nlock = \"{}\"", "x".repeat(length)));
    good(&lock(190));
    let told = lines_of(&lock(191));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("cronlatch.toml:6:1: jobs.a.lock = \"xxx"), "{told:?}");
    assert!(
        told[0].ends_with(
            "...: with run_on = \"every\" a lock's name has at most 190 characters \
             (255, less @ and a host's 64), this one has 191; write a shorter lock"
        ),
        "{told:?}"
    );
    good(&lock(191).replace("every", "one"));

    // The lock of a job that names none is `job:NAME`.
    let named = |length: usize| format!("{HEAD}[jobs.{}]\nshell = \"true\"\nrun_on = \"every\"\n", "n".repeat(length));
    good(&named(186));
    let told = lines_of(&named(187));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("cronlatch.toml:3:7: jobs.nnn") && told[0].contains("nnn.lock: with run_on"),
        "{told:?}"
    );
}
