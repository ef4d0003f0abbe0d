//! `cronlatch next`.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::ask;
use crate::support::answer::Answer;
use crate::support::fleet::Fleet;

const HEAD: &str = "[database]\nurl = \"sqlite:///tmp/never-made.db\"\n";

/// What `next` answers without a file.
fn next(arguments: &[&str]) -> Answer {
    ask(Path::new("/no/such/file"), &[&["next"], arguments].concat())
}

/// What `next` answers about jobs that are written behind the head.
fn next_of(jobs: &str, arguments: &[&str]) -> Answer {
    let fleet = Fleet::new();
    fleet.configure("a", &format!("{HEAD}{jobs}"));
    ask(&fleet.config_path("a"), &[&["next"], arguments].concat())
}

/// The instants of a JSON answer.
fn instants(said: &Answer) -> Vec<String> {
    said.objects().iter().map(|object| object["at"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn next_names_the_zone_that_all_instants_share_and_takes_a_date() {
    let next = |arguments: &[&str]| next(&[&["-n", "1"], arguments].concat());
    let berlin = ["--expr", "30 4 * * *", "--timezone", "Europe/Berlin", "--from", "2026-12-02"];
    let said = next(&berlin).stdout;
    assert!(said.starts_with("AT (Europe/Berlin)"), "{said}");
    assert!(said.lines().nth(1).unwrap().starts_with("Wed 2026-12-02 04:30:00 +01:00  "), "{said}");
    let said = next(&[&berlin[..], &["--utc"]].concat()).stdout;
    assert!(said.starts_with("AT (UTC)") && said.contains("2026-12-02 03:30:00Z"), "{said}");
    assert_eq!(next(&["--expr", "30 4 * * *", "--from", "24h"]).code, 64);

    let jobs = "[jobs.a]\nschedule = \"1 1 1 1 *\"\nshell = \"true\"\n\
                [jobs.b]\nschedule = \"1 1 1 1 *\"\nshell = \"true\"\ntimezone = \"Asia/Tokyo\"\n";
    let said = next_of(jobs, &["-n", "2"]).stdout;
    assert!(said.starts_with("JOB  AT   "), "{said}");
}

#[test]
fn several_expressions_are_one_schedule() {
    let several = ["--expr", "0 9 * * MON-FRI", "--expr", "0 12 * * SAT", "--expr", "0 9 * * FRI"];
    let said = next(&[&several[..], &["--json", "-n", "3", "--from", "2026-12-03T09:00:00Z"]].concat());
    assert_eq!(instants(&said), ["2026-12-04T09:00:00Z", "2026-12-05T12:00:00Z", "2026-12-07T09:00:00Z"]);
    assert!(said.objects()[0]["job"].is_null(), "{said:?}");
    let one_bad = next(&["--expr", "@daily", "--expr", "61 * * * *"]);
    assert_eq!(one_bad.code, 64);
    assert!(one_bad.stderr.contains("61 is out of range"), "{one_bad:?}");
}

#[test]
fn h_takes_the_name_that_is_given() {
    let said = next(&["--expr", "H H * * *"]);
    assert_eq!(said.code, 64);
    assert!(said.stderr.ends_with("or name the job with --name NAME\n"), "{said:?}");
    let named = |name: &str| {
        let said = next(&["--expr", "H H * * *", "--name", name, "--json", "-n", "1", "--from", "2026-12-03"]);
        (instants(&said), said.objects()[0]["job"].clone())
    };
    assert_ne!(named("backup").0, named("report").0);
    assert_eq!(named("backup").1, "backup");
    let of_file = next_of(
        "[jobs.backup]\nschedule = \"H H * * *\"\nshell = \"true\"\n",
        &["--json", "-n", "1", "--from", "2026-12-03"],
    );
    assert_eq!(instants(&of_file), named("backup").0);
    assert_eq!(next(&["--name", "backup"]).code, 64, "a name without an expression means nothing");
    assert!(next(&["--expr", "@daily", "--name", "a\nb"]).stderr.contains("control characters"));
}

#[test]
fn from_is_by_the_clocks_of_the_zone() {
    let first = |arguments: &[&str]| {
        let said = next(&[&["--expr", "* * * * * *", "--json", "-n", "1"], arguments].concat());
        instants(&said)[0].clone()
    };
    const TOKYO: [&str; 2] = ["--timezone", "Asia/Tokyo"];
    assert_eq!(first(&["--from", "2026-12-02"]), "2026-12-02T00:00:01Z");
    assert_eq!(first(&[&TOKYO[..], &["--from", "2026-12-02"]].concat()), "2026-12-01T15:00:01Z");
    assert_eq!(first(&[&TOKYO[..], &["--from", "2026-12-02T09:30"]].concat()), "2026-12-02T00:30:01Z");
    assert_eq!(first(&[&TOKYO[..], &["--from", "2026-12-02 09:30:00Z"]].concat()), "2026-12-02T09:30:01Z");

    let skipped = next(&["--expr", "@daily", "--timezone", "Europe/Berlin", "--from", "2027-03-28T02:30"]);
    assert_eq!(skipped.code, 64);
    assert_eq!(
        skipped.stderr,
        "cronlatch: --from: the clocks of Europe/Berlin skip this time; write it with its offset, as in 2027-03-28T03:00:00+02:00\n"
    );
    for (arguments, said) in [
        (["--from", "yesterday"], "write an instant like 2026-12-02T08:00:00Z, or a time or a date"),
        (["--timezone", "CET"], "is an abbreviation"),
        (["-n", "0"], "1..=10000"),
        (["-n", "10001"], "1..=10000"),
    ] {
        let refused = next(&[&["--expr", "@daily"], &arguments[..]].concat());
        assert!(refused.code == 64 && refused.stderr.contains(said), "{refused:?}");
    }
}

#[test]
fn jobs_are_shown_in_their_own_zone_or_in_the_one_asked_for() {
    let jobs = "[jobs.berlin]\nschedule = \"0 12 * * *\"\ntimezone = \"Europe/Berlin\"\nshell = \"true\"\n\
                [jobs.tokyo]\nschedule = \"0 12 * * *\"\ntimezone = \"Asia/Tokyo\"\nshell = \"true\"\n";
    let said = next_of(jobs, &["-n", "2", "--from", "2026-12-02"]).stdout;
    let rows: Vec<&str> = said.lines().collect();
    assert!(rows[0].starts_with("JOB     AT  "), "{said}");
    assert!(rows[1].starts_with("tokyo   Wed 2026-12-02 12:00:00 +09:00  "), "{said}");
    assert!(rows[2].starts_with("berlin  Wed 2026-12-02 12:00:00 +01:00  "), "{said}");
    let said = next_of(jobs, &["-n", "2", "--from", "2026-12-02", "--timezone", "America/New_York"]).stdout;
    let rows: Vec<&str> = said.lines().collect();
    assert!(rows[0].starts_with("JOB     AT (America/New_York)"), "{said}");
    assert!(rows[1].starts_with("berlin  Wed 2026-12-02 06:00:00 -05:00  "), "{said}");
    assert!(rows[2].starts_with("tokyo   Wed 2026-12-02 22:00:00 -05:00  "), "{said}");
}

#[test]
fn a_splayed_job_shows_its_instant_and_when_it_starts() {
    let jobs = "[jobs.a]\nschedule = \"15 2 * * *\"\nsplay = \"10m\"\nshell = \"true\"\n\
                [jobs.b]\nschedule = \"20 2 * * *\"\nshell = \"true\"\n";
    let from = ["-n", "2", "--from", "2026-12-02"];
    let said = next_of(jobs, &from).stdout;
    let rows: Vec<&str> = said.lines().collect();
    assert!(
        rows[0].starts_with("JOB  AT (UTC)                        STARTS                          THAT IS"),
        "{said}"
    );
    assert!(rows[1].starts_with("a    Wed 2026-12-02 02:15:00 +00:00  Wed 2026-12-02 02:19:07 +00:00  "), "{said}");
    assert!(rows[2].starts_with("b    Wed 2026-12-02 02:20:00 +00:00  Wed 2026-12-02 02:20:00 +00:00  "), "{said}");
    let objects = next_of(jobs, &[&from[..], &["--json"]].concat()).objects();
    assert_eq!(
        (&objects[0]["at"], &objects[0]["starts_at"]),
        (&"2026-12-02T02:15:00Z".into(), &"2026-12-02T02:19:07Z".into())
    );
    assert_eq!(objects[0]["local"], "Wed 2026-12-02 02:15:00 +00:00");
    assert!(objects[1].get("starts_at").is_none(), "{objects:?}");
    assert!(!next_of(jobs, &["b", "-n", "1"]).stdout.contains("STARTS"));
}

#[test]
fn a_job_without_instants_of_its_own_says_when_it_runs() {
    let jobs = "[jobs.load]\nafter = [\"extract\", \"clean\"]\nshell = \"true\"\n\
                [jobs.extract]\nschedule = []\nshell = \"true\"\n\
                [jobs.clean]\nat = \"2020-01-01\"\nshell = \"true\"\n\
                [jobs.off]\nschedule = \"@daily\"\nenabled = false\nshell = \"true\"\n";
    let said = |arguments: &[&str]| {
        let said = next_of(jobs, arguments);
        (said.code, said.stdout)
    };
    assert_eq!(said(&["load"]), (0, "load has no instants of its own: it runs after extract and clean\n".to_owned()));
    assert_eq!(said(&["extract"]), (0, "extract has no instants of its own: it runs only by hand\n".to_owned()));
    assert_eq!(said(&["clean"]), (0, "nothing is scheduled\n".to_owned()));
    assert_eq!(said(&[]), (0, "nothing is scheduled\n".to_owned()));
    for job in ["load", "extract", "clean"] {
        assert_eq!(said(&[job, "--json"]), (0, "[]\n".to_owned()), "{job}");
    }
    let off = next_of(jobs, &["off"]);
    assert!(off.code == 64 && off.stderr.contains("no enabled job \"off\""), "{off:?}");
}

#[test]
fn no_input_takes_long() {
    let quick = |what: &str, ask: &dyn Fn() -> Answer| {
        let start = Instant::now();
        let said = ask();
        assert!(start.elapsed() < Duration::from_secs(20), "{what}: {:?}", start.elapsed());
        said
    };
    for (from, code) in [
        ("0000-01-01", 64),
        ("0000-01-01T00:00:00Z", 0),
        ("9999-12-31", 64),
        ("9999-12-31T23:59:59Z", 0),
        ("9998-12-31T23:59:59", 0),
        ("2100-12-31", 0),
    ] {
        for expression in ["* * * * * *", "0 0 29 2 *", "0 0 1 1 *", "0 0 0 31 12 * 2100", "0 0 L * FRI#5"] {
            let said = quick(from, &|| next(&["--expr", expression, "--from", from, "-n", "100"]));
            assert_eq!(said.code, code, "{from} {expression}: {said:?}");
        }
    }
    assert_eq!(quick("many", &|| next(&["--expr", "* * * * * *", "-n", "10000"])).stdout.lines().count(), 10_001);

    let mut many = String::new();
    for n in 0..1_000 {
        writeln!(many, "[jobs.j{n}]\nschedule = \"{} * * * *\"\nshell = \"true\"", n % 60).unwrap();
    }
    assert_eq!(quick("many of many", &|| next_of(&many, &["-n", "10000", "--json"])).objects().len(), 10_000);

    let hidden = "[jobs.a]\nschedule = \"* * * * * *\"\nshell = \"true\"\nactive_from = \"2027-01-01\"\n\
                  blackouts = [{ schedule = \"0 0 * * *\", lasts = \"86399s\" }, { schedule = \"59 23 * * *\", lasts = \"1m\" }]\n";
    let said = quick("all is blacked out", &|| next_of(hidden, &[]));
    assert!(said.code == 78 && said.stderr.contains("the blackouts leave no instant"), "{said:?}");
}
