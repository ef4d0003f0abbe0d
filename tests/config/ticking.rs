//! When a job ticks: `schedule`, `every`, `at`, windows, blackouts, clock changes, splay.

use std::time::Duration;

use cronlatch::job::start_delay;

use crate::fixtures::{HEAD, bare, good, instants, lines_of, secs};

/// Keys of a job, from line 5 on, and what is told about them.
const FAULTS: [(&str, &[&str]); 39] = [
    (r#"every = "0s""#, &[r#"5:1: jobs.a.every = "0s": too short: at least 1s; write it like every = "30s""#]),
    (
        r#"every = "1500ms""#,
        &[r#"5:1: jobs.a.every = "1500ms": a period is a whole number of seconds, at least 1; write e.g. "90s""#],
    ),
    ("every = 300", &[r#"5:1: jobs.a.every = 300: a duration without a unit; write "300s" if seconds are meant"#]),
    (
        r#"every = "*/5 * * * *""#,
        &[r#"5:1: jobs.a.every = "*/5 * * * *": not a duration: expected number at 0; write it like every = "30s""#],
    ),
    (
        "every = \"1m\"\noffset = \"1m\"",
        &[r#"6:1: jobs.a.offset = "1m": an offset is shorter than its period, 60s; write 0s, which means the same"#],
    ),
    (
        "every = \"1m\"\noffset = \"200ms\"",
        &[r#"6:1: jobs.a.offset = "200ms": an offset is a whole number of seconds; write e.g. "30s""#],
    ),
    (
        "every = \"1m\"\noffset = 3",
        &[r#"6:1: jobs.a.offset = 3: a duration without a unit; write "3s" if seconds are meant"#],
    ),
    (r#"offset = "3s""#, &[r#"5:1: jobs.a.offset = "3s": means nothing without every; write every, or remove offset"#]),
    (
        "schedule = \"@daily\"\noffset = \"3s\"",
        &[r#"6:1: jobs.a.offset = "3s": means nothing without every; write every, or remove offset"#],
    ),
    (
        "schedule = \"@daily\"\nevery = \"1h\"",
        &[r#"6:1: jobs.a.every = "1h": schedule is there too (line 5); keep one of the two"#],
    ),
    (
        "after = \"b\"\nat = 2030-01-01\nevery = \"1h\"",
        &[
            "6:1: jobs.a.at = 2030-01-01: every is there too (line 7); keep one of the two",
            r#"5:1: jobs.a.after = "b": every is there too (line 7); keep one of the two"#,
        ],
    ),
    (
        "schedule = 3",
        &[
            r#"5:1: jobs.a.schedule = 3: expected a string or a list of strings, not a whole number; write schedule = "...""#,
        ],
    ),
    (
        r#"schedule = ["@daily", "0 0 30 2 *", 3]"#,
        &["5:37: jobs.a.schedule[2] = 3: expected a string, not a whole number; put it in quotes"],
    ),
    (
        "timezone = \"Europe/Berlin\"\nschedule = [\"@daily\", \"0 0 30 2 *\", \"0 0 3 1 1 * 2020\", \"60 * * * *\"]",
        &[
            r#"6:23: jobs.a.schedule[1] = "0 0 30 2 *": "0 0 30 2 *" never fires: Europe/Berlin has no such time on any day from 1970 to 2100; correct the day of month, the month or the year"#,
            r#"6:57: jobs.a.schedule[3] = "60 * * * *": minute "60": 60 is out of range; allowed are 0-59"#,
        ],
    ),
    (
        r#"at = "tomorrow""#,
        &[
            r#"5:1: jobs.a.at = "tomorrow": can't be read as a time; write 2027-01-01T03:00:00+01:00, or 2027-01-01T03:00:00 or 2027-01-01 in the time zone"#,
        ],
    ),
    (
        "at = 03:00:00",
        &[
            "5:1: jobs.a.at = 03:00:00: can't be read as a time; write 2027-01-01T03:00:00+01:00, or 2027-01-01T03:00:00 or 2027-01-01 in the time zone",
        ],
    ),
    (
        "at = 3",
        &[r#"5:1: jobs.a.at = 3: expected a date or time, not a whole number; write at = "2027-01-01T03:00:00+01:00""#],
    ),
    (
        r#"at = "2027-01-01T03:00:00.5Z""#,
        &[r#"5:1: jobs.a.at = "2027-01-01T03:00:00.5Z": a part of a second; write whole seconds"#],
    ),
    (
        r#"at = "9999-01-01""#,
        &[r#"5:1: jobs.a.at = "9999-01-01": too far away; write a year from 1970 to 2100, or remove the key"#],
    ),
    (
        "timezone = \"Europe/Berlin\"\nat = 2027-03-28T02:30:00",
        &[
            "6:1: jobs.a.at = 2027-03-28T02:30:00: the clocks of Europe/Berlin skip this time; write it with its offset, as in 2027-03-28T03:00:00+02:00",
        ],
    ),
    (
        "timezone = \"Europe/Berlin\"\nat = \"2026-10-25T02:30\"",
        &[
            r#"6:1: jobs.a.at = "2026-10-25T02:30": the clocks of Europe/Berlin show this time twice; write 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00"#,
        ],
    ),
    (
        r#"dst_gap = "jump""#,
        &[r#"5:1: jobs.a.dst_gap = "jump": not one of "run", "skip"; write dst_gap = "run" or "skip""#],
    ),
    (
        r#"dst_fold = "last""#,
        &[
            r#"5:1: jobs.a.dst_fold = "last": not one of "first", "second", "both"; write dst_fold = "first" or "second" or "both""#,
        ],
    ),
    (
        "every = \"1h\"\ndst_gap = \"run\"\ndst_fold = \"first\"",
        &[
            r#"6:1: jobs.a.dst_gap = "run": means nothing without schedule; write schedule, or remove dst_gap"#,
            r#"7:1: jobs.a.dst_fold = "first": means nothing without schedule; write schedule, or remove dst_fold"#,
        ],
    ),
    (
        "schedule = \"@daily\"\nsplay = \"500ms\"",
        &[r#"6:1: jobs.a.splay = "500ms": a part of a second; write whole seconds"#],
    ),
    (
        "schedule = \"@daily\"\nsplay = 5",
        &[r#"6:1: jobs.a.splay = 5: a duration without a unit; write "5s" if seconds are meant"#],
    ),
    (
        "schedule = []\nsplay = \"5s\"\nactive_from = \"2027-01-01\"\nactive_until = \"2028-01-01\"\nblackouts = []\ndst_gap = \"run\"",
        &[
            r#"6:1: jobs.a.splay = "5s": means nothing without schedule, every or at; write schedule, every or at, or remove splay"#,
            r#"7:1: jobs.a.active_from = "2027-01-01": means nothing without schedule, every or at; write schedule, every or at, or remove active_from"#,
            r#"8:1: jobs.a.active_until = "2028-01-01": means nothing without schedule, every or at; write schedule, every or at, or remove active_until"#,
            "9:1: jobs.a.blackouts = []: means nothing without schedule, every or at; write schedule, every or at, or remove blackouts",
            r#"10:1: jobs.a.dst_gap = "run": means nothing without schedule; write schedule, or remove dst_gap"#,
        ],
    ),
    (
        "schedule = \"@daily\"\nactive_from = true",
        &[
            r#"6:1: jobs.a.active_from = true: expected a date or time, not true or false; write active_from = "2027-01-01T03:00:00+01:00""#,
        ],
    ),
    (
        "schedule = \"@daily\"\nactive_until = \"0001-01-01\"",
        &[
            r#"6:1: jobs.a.active_until = "0001-01-01": too far away; write a year from 1970 to 2100, or remove the key"#,
        ],
    ),
    (
        "schedule = \"@daily\"\ntimezone = \"Europe/Berlin\"\nactive_from = \"2027-03-28T02:00\"\nactive_until = \"2027-10-31T02:00\"",
        &[
            r#"7:1: jobs.a.active_from = "2027-03-28T02:00": the clocks of Europe/Berlin skip this time; write it with its offset, as in 2027-03-28T03:00:00+02:00"#,
            r#"8:1: jobs.a.active_until = "2027-10-31T02:00": the clocks of Europe/Berlin show this time twice; write 2027-10-31T02:00:00+02:00 or 2027-10-31T02:00:00+01:00"#,
        ],
    ),
    (
        "schedule = \"@daily\"\nactive_until = \"2027-01-01\"\nactive_from = \"2027-01-02\"",
        &[
            r#"6:1: jobs.a.active_until = "2027-01-01": not later than active_from (line 7); exchange the two, or remove one"#,
        ],
    ),
    (
        "schedule = \"@daily\"\nblackouts = \"2027-12-24\"",
        &[r#"6:1: jobs.a.blackouts = "2027-12-24": expected a list of tables, not a string; SHAPE"#],
    ),
    (
        "schedule = \"@daily\"\nblackouts = [\n{ from = \"2027-12-24\" },\n{ until = 1 },\n3,\n{},\n{ schedule = \"@daily\" },\n{ lasts = \"1h\" },\n{ lasts = \"1h\", from = \"2027-12-24\" }]",
        &[
            "7:1: jobs.a.blackouts[0]: until is missing; SHAPE",
            "8:1: jobs.a.blackouts[1]: from is missing; SHAPE",
            r#"8:3: jobs.a.blackouts[1].until = 1: expected a date or time, not a whole number; write until = "2027-01-01T03:00:00+01:00""#,
            "9:1: jobs.a.blackouts[2] = 3: expected a table, not a whole number; SHAPE",
            "10:1: jobs.a.blackouts[3]: an empty table; SHAPE",
            "11:1: jobs.a.blackouts[4]: lasts is missing; SHAPE",
            "12:1: jobs.a.blackouts[5]: schedule is missing; SHAPE",
            "13:1: jobs.a.blackouts[6]: either from and until or schedule and lasts, not both; SHAPE",
        ],
    ),
    (
        "schedule = \"@daily\"\nblackouts = [{ form = \"2027-12-24\", until = \"2027-12-25\" }]",
        &[r#"6:16: jobs.a.blackouts[0].form: unknown key; did you mean "from"?"#],
    ),
    (
        "schedule = \"@daily\"\nblackouts = [{ from = \"2027-12-24\", until = \"2027-12-25\", splay = \"1m\" }]",
        &["6:59: jobs.a.blackouts[0].splay: unknown key in a blackout of a job; it belongs in a job"],
    ),
    (
        "schedule = \"@daily\"\nblackouts = [{ schedule = [\"@daily\"], lasts = \"0s\" }]",
        &[
            "6:16: jobs.a.blackouts[0].schedule = [\"@daily\"]: expected a string, not a list; write one text in quotes",
            r#"6:39: jobs.a.blackouts[0].lasts = "0s": too short: at least 1s; write it like lasts = "30s""#,
        ],
    ),
    (
        "schedule = \"@daily\"\ntimezone = \"Europe/Berlin\"\nblackouts = [\n{ schedule = \"@often\", lasts = \"1h\" },\n{ schedule = \"@daily\", lasts = \"9000h\" },\n{ from = \"2027-12-25\", until = \"2027-12-24\" },\n{ from = \"2027-03-28T02:30\", until = \"2027-10-31T02:30\" }]",
        &[
            r#"8:3: jobs.a.blackouts[0].schedule = "@often": "@often": no such shorthand; allowed are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually"#,
            r#"9:24: jobs.a.blackouts[1].lasts = "9000h": a blackout lasts a whole number of seconds, from 1 s to 366 days; write e.g. "2h""#,
            r#"10:24: jobs.a.blackouts[2].until = "2027-12-24": not later than from; exchange the two"#,
            r#"11:3: jobs.a.blackouts[3].from = "2027-03-28T02:30": the clocks of Europe/Berlin skip this time; write it with its offset, as in 2027-03-28T03:00:00+02:00"#,
            r#"11:30: jobs.a.blackouts[3].until = "2027-10-31T02:30": the clocks of Europe/Berlin show this time twice; write 2027-10-31T02:30:00+02:00 or 2027-10-31T02:30:00+01:00"#,
        ],
    ),
    (
        "schedule = \"@daily\"\nblackouts = [{ schedule = \"0 0 * * *\", lasts = \"2h\" }]",
        &[
            r#"6:1: jobs.a.blackouts = [{ schedule = "0 0 * * *", lasts = "2h" }]: the blackouts leave no instant of the schedule; shorten one, or remove it"#,
        ],
    ),
    (
        "schedule = \"@daily\"\nblackouts = [{ schedule = \"* * 1-20 * *\", lasts = \"1m\" }]",
        &[
            r#"6:1: jobs.a.blackouts = [{ schedule = "* * 1-20 * *", lasts = "1m" }]: a recurring blackout begins more than 300 times without a pause; let it begin less often and last longer, e.g. { schedule = "0 0 1 * *", lasts = "20d" }"#,
        ],
    ),
];

#[test]
fn each_fault_of_the_keys_of_ticking_is_told_with_its_place_and_its_remedy() {
    const SHAPE: &str = r#"write { from = "2027-12-24", until = "2027-12-26" } or { schedule = "0 22 * * FRI", lasts = "58h" } in the list"#;
    for (keys, expected) in FAULTS {
        let mut told = lines_of(&bare(keys));
        let mut expected: Vec<String> =
            expected.iter().map(|line| format!("cronlatch.toml:{}", line.replace("SHAPE", SHAPE))).collect();
        told.sort();
        expected.sort();
        assert_eq!(told, expected, "{keys}");
    }
}

#[test]
fn a_job_ticks_by_one_of_the_keys() {
    let next = |keys: &str| instants(&good(&bare(keys)).jobs[0], "2027-06-01", 2);
    assert_eq!(next("schedule = \"15 2 * * *\""), ["2027-06-01T02:15:00Z", "2027-06-02T02:15:00Z"]);
    assert_eq!(
        next("schedule = [\"15 2 * * *\", \"0 0 12 * * *\"]\ntimezone = \"Asia/Tokyo\""),
        ["2027-06-01T03:00:00Z", "2027-06-01T17:15:00Z"]
    );
    assert_eq!(next("every = \"90s\""), ["2027-06-01T00:01:30Z", "2027-06-01T00:03:00Z"]);
    assert_eq!(next("every = \"90s\"\noffset = \"10s\""), ["2027-06-01T00:00:10Z", "2027-06-01T00:01:40Z"]);
    for at in
        ["\"2027-06-03T04:00:00+02:00\"", "2027-06-03T04:00:00+02:00", "2027-06-03T04:00:00", "\"2027-06-03 04:00\""]
    {
        assert_eq!(next(&format!("at = {at}\ntimezone = \"Europe/Berlin\"")), ["2027-06-03T02:00:00Z"], "{at}");
    }
    assert_eq!(next("at = 2027-06-03\ntimezone = \"Europe/Berlin\""), ["2027-06-02T22:00:00Z"]);
    assert_eq!(next("schedule = []"), [""; 0]);
    assert_eq!(next(""), [""; 0]);
    assert_eq!(next("at = \"2020-01-01\""), [""; 0], "a daemon must be able to start after it");
}

#[test]
fn a_jobs_own_way_to_tick_replaces_whichever_the_defaults_have() {
    const WAYS: [&str; 4] = ["schedule = \"@daily\"", "every = \"1m\"", "at = \"2028-01-01\"", "after = \"z\""];
    for defaults in WAYS {
        for own in WAYS {
            let keys = format!("{own}\n[jobs.z]\nschedule = \"@weekly\"\nshell = \"true\"\n[defaults]\n{defaults}");
            assert_eq!(good(&bare(&keys)).jobs[0].schedule, good(&bare(&keys_alone(own))).jobs[0].schedule, "{keys}");
        }
        let inherited = format!("[jobs.z]\nschedule = \"@weekly\"\nshell = \"true\"\n[defaults]\n{defaults}");
        let (inherited, own) = (good(&bare(&inherited)), good(&bare(&keys_alone(defaults))));
        assert_eq!(
            (&inherited.jobs[0].schedule, &inherited.jobs[0].after),
            (&own.jobs[0].schedule, &own.jobs[0].after)
        );
    }
    let two = "[defaults]\nschedule = \"@daily\"\nevery = \"1m\"";
    assert_eq!(
        lines_of(&bare(two)),
        [r#"cronlatch.toml:7:1: defaults.every = "1m": schedule is there too (line 6); keep one of the two"#]
    );
}

fn keys_alone(way: &str) -> String {
    format!("{way}\n[jobs.z]\nschedule = \"@weekly\"\nshell = \"true\"")
}

#[test]
fn what_means_nothing_in_one_job_waits_in_the_defaults_for_another() {
    let defaults = "[defaults]\noffset = \"5s\"\ndst_gap = \"skip\"\ndst_fold = \"both\"\nsplay = \"10m\"\n\
                    active_from = \"2027-07-01\"\nblackouts = [{ from = \"2027-07-01\", until = \"2027-07-01\" }]\n";
    let jobs = "[jobs.b]\nevery = \"1h\"\nshell = \"true\"\n[jobs.c]\nafter = \"b\"\nshell = \"true\"\n";
    let loaded = good(&bare(&format!("{jobs}{defaults}")));
    let [a, b, c] = &loaded.jobs[..] else { panic!("three jobs") };
    assert!(a.schedule.is_by_hand() && c.schedule.is_by_hand());
    assert_eq!(
        (a.start_delay, c.start_delay),
        (Duration::ZERO, Duration::ZERO),
        "they have no instants to start after"
    );
    assert_eq!(instants(b, "2027-06-01", 1), ["2027-07-02T00:00:05Z"]);
    assert_eq!(b.start_delay, start_delay(&b.name, secs(600)));
    assert_ne!(b.start_delay, Duration::ZERO);

    let too_late = format!("[jobs.b]\nevery = \"5s\"\nshell = \"true\"\n{defaults}");
    assert_eq!(
        lines_of(&bare(&too_late)),
        [
            r#"cronlatch.toml:9:1: defaults.offset = "5s": an offset is shorter than its period, 5s; write 0s, which means the same"#
        ]
    );
}

#[test]
fn a_window_begins_with_its_first_instant_and_a_day_as_its_end_counts_whole() {
    let next = |keys: &str| {
        let job = &good(&bare(&format!("every = \"12h\"\ntimezone = \"Europe/Berlin\"\n{keys}"))).jobs[0].clone();
        instants(job, "2027-06-01", 9)
    };
    assert_eq!(
        next("active_from = \"2027-06-10\"\nactive_until = 2027-06-11"),
        ["2027-06-10T00:00:00Z", "2027-06-10T12:00:00Z", "2027-06-11T00:00:00Z", "2027-06-11T12:00:00Z"]
    );
    assert_eq!(
        next("active_from = \"2027-06-10T14:00\"\nactive_until = \"2027-06-11T14:00\""),
        ["2027-06-10T12:00:00Z", "2027-06-11T00:00:00Z"],
        "a time as its end is no part of it"
    );
    assert_eq!(next("active_until = \"2027-06-01T12:00:01Z\""), ["2027-06-01T12:00:00Z"]);
}

#[test]
fn a_job_does_not_tick_in_its_blackouts() {
    let next = |blackouts: &str| {
        let keys = format!("schedule = \"0 23 * * *\"\ntimezone = \"Europe/Berlin\"\nblackouts = {blackouts}");
        instants(&good(&bare(&keys)).jobs[0], "2027-06-03", 3)
    };
    // 3 June 2027 is a Thursday.
    assert_eq!(
        next("[{ from = \"2027-06-03\", until = \"2027-06-04\" }]"),
        ["2027-06-05T21:00:00Z", "2027-06-06T21:00:00Z", "2027-06-07T21:00:00Z"]
    );
    assert_eq!(
        next("[{ schedule = \"0 22 * * FRI\", lasts = \"48h\" }]"),
        ["2027-06-03T21:00:00Z", "2027-06-06T21:00:00Z", "2027-06-07T21:00:00Z"]
    );
    let table = format!(
        "{HEAD}[jobs.a]\nschedule = \"0 23 * * *\"\nshell = \"true\"\n\
         [[jobs.a.blackouts]]\nfrom = 2027-06-03\nuntil = 2027-06-03T23:00:01\n"
    );
    assert_eq!(instants(&good(&table).jobs[0], "2027-06-03", 1), ["2027-06-04T23:00:00Z"]);
    let own = "schedule = \"@daily\"\nblackouts = []\n[defaults]\nblackouts = [{ from = \"2027-06-03\", until = \"2027-06-09\" }]";
    assert_eq!(instants(&good(&bare(own)).jobs[0], "2027-06-03", 1), ["2027-06-04T00:00:00Z"], "an own list replaces");
}

#[test]
fn clock_changes_follow_the_rules_of_the_job() {
    let next = |keys: &str| {
        let keys = format!("schedule = \"30 2 28,31 3,10 *\"\ntimezone = \"Europe/Berlin\"\n{keys}");
        instants(&good(&bare(&keys)).jobs[0], "2027-03-27", 9)[..3].to_vec()
    };
    // The gap of 2027 is on 28 March, the fold on 31 October.
    assert_eq!(next(""), ["2027-03-28T01:00:00Z", "2027-03-31T00:30:00Z", "2027-10-28T00:30:00Z"]);
    assert_eq!(next("dst_gap = \"skip\"")[0], "2027-03-31T00:30:00Z");
    let fold = |rule: &str| {
        let keys = format!("schedule = \"30 2 31 10 *\"\ntimezone = \"Europe/Berlin\"\ndst_fold = \"{rule}\"");
        instants(&good(&bare(&keys)).jobs[0], "2027-10-01", 2)
    };
    assert_eq!(fold("first")[0], "2027-10-31T00:30:00Z");
    assert_eq!(fold("second")[0], "2027-10-31T01:30:00Z");
    assert_eq!(fold("both"), ["2027-10-31T00:30:00Z", "2027-10-31T01:30:00Z"]);
}

#[test]
fn h_is_derived_from_the_jobs_name() {
    let more = "[jobs.b]\nschedule = \"H H * * *\"\nshell = \"true\"";
    let loaded = good(&bare(&format!("schedule = \"H H * * *\"\n{more}")));
    let again = good(&bare(&format!("schedule = \"H H * * *\"\n{more}")));
    let next = |n: usize| instants(&loaded.jobs[n], "2027-06-01", 1);
    assert_ne!(next(0), next(1));
    assert_eq!(next(0), instants(&again.jobs[0], "2027-06-01", 1));
}
