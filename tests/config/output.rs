//! Where a job's output goes: `output`, `output_keep`.

use cronlatch::job::{OutputFile, OutputKeep, OutputTo};

use crate::fixtures::{good, job, lines_of, secs, warnings};

#[track_caller]
fn output(keys: &str) -> OutputTo {
    good(&job(keys)).jobs[0].output.clone()
}

#[test]
fn output_goes_to_the_log_to_nowhere_or_to_files() {
    assert_eq!(output(""), OutputTo::Log);
    assert_eq!(output("output = \"log\""), OutputTo::Log);
    assert_eq!(output("output = \"discard\""), OutputTo::Discard);
    let pattern = "/var/log/{job}/{host}-{date}T{time}-{run}.log";
    let to = |keep| OutputTo::File(Box::new(OutputFile { pattern: pattern.to_owned(), keep }));
    let keys = format!("output = \"{pattern}\"\n");
    assert_eq!(output(&keys), to(OutputKeep::default()));
    let keep = OutputKeep { size: 1 << 20, files: 5, age: Some(secs(30 * 86_400)) };
    assert_eq!(output(&format!("{keys}output_keep = {{ size = \"1M\", age = \"30d\" }}")), to(keep));
    let defaults = "[defaults]\noutput_keep = { size = \"2M\", files = 0 }\n";
    assert_eq!(
        output(&format!("{keys}output_keep = {{ files = 3 }}\n{defaults}")),
        to(OutputKeep { size: 2 << 20, files: 3, age: None })
    );
    assert_eq!(output(defaults), OutputTo::Log, "in the defaults it waits for jobs that have files");
}

#[test]
fn each_fault_of_an_output_is_told_with_its_place_and_its_remedy() {
    let known = "write {job}, {host}, {run}, {date}, {time}";
    let cases = [
        (
            r#"output = "file""#,
            r#"6:1: jobs.a.output = "file": neither "log" nor "discard" nor an absolute path; write output = "log", "discard" or "/PATH/TO/{job}.log""#.to_owned(),
        ),
        (
            r#"output = "/a/{jobs}.log""#,
            format!(r#"6:1: jobs.a.output = "/a/{{jobs}}.log": {{jobs}} stands for nothing; {known}"#),
        ),
        (
            r#"output = "/a/{job.log""#,
            format!(r#"6:1: jobs.a.output = "/a/{{job.log": a brace without its other half; {known}"#),
        ),
        (
            r#"output = "/a/job}{job}""#,
            format!(r#"6:1: jobs.a.output = "/a/job}}{{job}}": a brace without its other half; {known}"#),
        ),
        (
            r#"output = "/a/../{job}""#,
            r#"6:1: jobs.a.output = "/a/../{job}": a way up, "..", is in it; write the path without it"#.to_owned(),
        ),
        (
            r#"output = "/a/""#,
            r#"6:1: jobs.a.output = "/a/": names a folder, not a file; write the name of a file behind it"#.to_owned(),
        ),
        (
            r#"output_keep = { files = 3 }"#,
            r#"6:1: jobs.a.output_keep = { files = 3 }: means nothing without output = "/PATH/TO/{job}.log"; write output = "/PATH/TO/{job}.log", or remove output_keep"#.to_owned(),
        ),
        (
            "output = \"/a/b\"\noutput_keep = { size = \"100\" }",
            r#"7:17: jobs.a.output_keep.size = "100": not a size: a whole number with K, M, G or T behind it; write it like size = "512M""#.to_owned(),
        ),
        (
            "output = \"/a/b\"\noutput_keep = { keep = 3 }",
            "7:17: jobs.a.output_keep.keep: unknown key in output_keep of a job; it belongs in [history]".to_owned(),
        ),
    ];
    for (keys, message) in cases {
        assert_eq!(lines_of(&job(keys)), [format!("cronlatch.toml:{message}")], "{keys}");
    }
}

#[test]
fn two_jobs_that_write_to_the_same_files_are_warned_about() {
    let two = |pattern: &str| {
        job(&format!("[jobs.b]\nschedule = []\nshell = \"true\"\n[defaults]\noutput = \"{pattern}\"\n"))
    };
    assert_eq!(
        warnings(&two("/var/log/jobs.log")),
        [
            r#"cronlatch.toml:10:1: defaults.output = "/var/log/jobs.log": jobs a and b write to the same files, and each rotates them; put {job} into the path"#
        ]
    );
    assert_eq!(warnings(&two("/var/log/{job}.log")), [""; 0]);
}
