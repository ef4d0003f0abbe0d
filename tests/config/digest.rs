//! What hosts with different files are noticed by.

use std::collections::BTreeSet;

use cronlatch::job::JobName;

use crate::fixtures::{HEAD, bare, good, job};

#[test]
fn a_digest_tells_what_a_job_does_and_not_how_it_is_written() {
    let digest = |keys: &str| good(&job(keys)).schedule_digest();
    let plain = digest("");
    assert_eq!(plain, digest("description = \"words\"\nenabled = true\nttl = \"180s\""));
    assert_eq!(plain, good(&job("").replace("0 3 * * *", " 0  3 * * * ")).schedule_digest());
    for keys in
        ["enabled = false", "ttl = \"4m\"", "env = { A = \"1\" }", "timezone = \"Asia/Tokyo\"", "timeout = \"1h\""]
    {
        assert_ne!(plain, digest(keys), "{keys}");
    }
    let loaded = good(&job("[jobs.b]\nschedule = \"0 3 * * *\"\ncommand = [\"true\"]"));
    let of = |n: usize| loaded.digest_of(&loaded.jobs[n].name);
    assert!(of(0).is_some() && of(0) != of(1));
}

#[test]
fn a_plain_jobs_digest_stays_the_same_in_every_version() {
    let main = format!(
        "{HEAD}[defaults]\ntimezone = \"Europe/Berlin\"\ncommand = [\"true\"]\n\
         [jobs.a]\nschedule = \"0 3 * * *\"\n\
         [jobs.b]\nschedule = [\"*/5  9-17 * * MON-FRI\", \"@daily\"]\noverlap = \"wait\"\ncatch_up_max_age = \"1h\"\n"
    );
    let loaded = good(&main);
    let digests: Vec<_> =
        loaded.jobs.iter().filter_map(|job| loaded.digest_of(&job.name)).map(|digest| digest.to_string()).collect();
    assert_eq!(digests, ["fbb651c5809ac946", "7e54f5a8d23b070d"], "hosts of different versions compare them");
}

#[test]
fn each_key_about_when_and_where_a_job_runs_changes_its_digest() {
    let digest = |keys: &str| {
        let others = "[jobs.x]\nshell = \"true\"\n[jobs.y]\nshell = \"true\"";
        good(&bare(&format!("{keys}\n{others}"))).digest_of(&JobName::new("a").unwrap()).unwrap()
    };
    let plain = "schedule = \"0 3 * * *\"";
    let jobs: Vec<String> = [
        "schedule = []",
        "every = \"1h\"",
        "every = \"1h\"\noffset = \"1s\"",
        "at = \"2030-01-01\"",
        "after = \"x\"",
        "after = [\"x\", \"y\"]",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain(
        [
            "",
            "dst_gap = \"run\"",
            "dst_fold = \"both\"",
            "splay = \"10m\"",
            "active_from = \"2027-01-01\"",
            "active_until = \"2027-01-01\"",
            "blackouts = [{ from = \"2027-01-01\", until = \"2027-01-02\" }]",
            "blackouts = [{ schedule = \"@daily\", lasts = \"1h\" }]",
            "run_on = \"every\"",
            "hosts = \"x\"",
            "labels = \"x\"",
            "catch_up = \"all\"",
            "catch_up = \"all\"\ncatch_up_max_runs = 3",
            "catch_up = \"all\"\ncatch_up_spacing = \"3s\"",
        ]
        .map(|keys| format!("{plain}\n{keys}")),
    )
    .collect();
    let digests: BTreeSet<String> = jobs.iter().map(|keys| digest(keys).to_string()).collect();
    assert_eq!(digests.len(), jobs.len(), "no two are alike");

    assert_eq!(digest("after = [\"y\", \"x\"]"), digest("after = [\"x\", \"y\"]"));
    let with = |keys: &str| digest(&format!("{plain}\n{keys}"));
    assert_eq!(
        with("hosts = [\"x\", \"y\"]\nlabels = [\"b\", \"a\"]"),
        with("hosts = [\"y\", \"x\"]\nlabels = [\"a\", \"b\"]")
    );
    let defaults = "splay = \"0s\"\nrun_on = \"one\"\nhosts = []\nlabels = []\nblackouts = []\ncatch_up = \"latest\"";
    assert_eq!(with(defaults), with(""));
    assert_eq!(digest(""), digest("schedule = []"));
}

#[test]
fn each_key_about_what_a_run_does_changes_the_digest_and_defaults_that_are_written_out_do_not() {
    let digest = |keys: &str| good(&job(keys)).schedule_digest().to_string();
    let files = "output = \"/a/{job}\"\n";
    let told = "on_failure = \"true\"\n";
    let jobs: Vec<String> = [
        "",
        "overlap = \"replace\"",
        "overlap = \"wait\"",
        "retries = 1",
        "retries = 2",
        "retries = 2\nretry_delay = \"1s\"",
        "retries = 2\nretry_max_delay = \"1m\"",
        "success_codes = [0, 1]",
        "success_codes = [1]",
        "on_lease_lost = \"continue\"",
        "user = \"a\"",
        "group = \"a\"",
        "umask = \"077\"",
        "env_file = \"/a\"",
        "stdin = \"/a\"",
        "stdin = { file = \"/a\" }",
        "nice = 1",
        "limits = { memory = \"1M\" }",
        "limits = { cpu_time = \"1048576s\" }",
        "limits = { open_files = 1048576 }",
        "limits = { processes = 1048576 }",
        "output = \"discard\"",
        "on_recovery = \"true\"",
        "ping_url = \"https://h/a\"",
        "ping_url = \"https://h/b\"",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain(
        ["", "output_keep = { size = \"1M\" }", "output_keep = { files = 1 }", "output_keep = { age = \"1h\" }"]
            .map(|keys| format!("{files}{keys}")),
    )
    .chain(["", "failures_before_notice = 2"].map(|keys| format!("{told}{keys}")))
    .collect();
    let digests: BTreeSet<String> = jobs.iter().map(|keys| digest(keys)).collect();
    assert_eq!(digests.len(), jobs.len(), "no two are alike");

    let defaults = "overlap = \"skip\"\nretries = 0\nsuccess_codes = [0]\non_lease_lost = \"kill\"\nuser = \"@daemon\"\n\
                    umask = \"0022\"\nstdin = \"\"\nnice = 0\nlimits = {}\noutput = \"log\"\non_failure = []\n";
    assert_eq!(digest(defaults), digest(""));
    assert_eq!(digest("[defaults]\nretry_delay = \"3s\"\nfailures_before_notice = 3\n"), digest(""));
    assert_eq!(digest(&format!("{files}output_keep = {{ size = \"10M\", files = 5 }}")), digest(files));
}
