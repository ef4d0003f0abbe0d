//! What hosts with different files are noticed by.

use crate::fixtures::{HEAD, good, job};

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
