//! What the README shows is what the binary does.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The text of the first block of this language after a heading.
fn block<'a>(readme: &'a str, heading: &str, language: &str) -> &'a str {
    let section = readme.split_once(heading).expect("the heading is there").1;
    let fence = format!("```{language}\n");
    let block = section.split_once(&fence).expect("the block is there").1;
    block.split_once("```").expect("the block ends").0
}

#[test]
fn the_problems_of_the_readmes_example_are_those_that_check_reports() {
    let readme = include_str!("../README.md");
    let heading = "## The schedule file";
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("cronlatch.toml"), block(readme, heading, "toml")).expect("written");
    let checked = Command::new(env!("CARGO_BIN_EXE_cronlatch"))
        .args(["check", "--config", "cronlatch.toml"])
        .current_dir(folder.path())
        .output()
        .expect("the binary runs");
    let said = format!(
        "$ cronlatch check --config cronlatch.toml\n{}{}",
        String::from_utf8_lossy(&checked.stdout),
        String::from_utf8_lossy(&checked.stderr)
    );
    assert_eq!(said, block(readme, heading, "console"));
    assert_eq!(checked.status.code(), Some(78));
}

#[test]
fn the_crontab_line_of_the_readme_becomes_a_schedule_without_problems() {
    let readme = include_str!("../README.md");
    let example: String = block(readme, "## Replace one crontab line", "toml")
        .lines()
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let password = folder.path().join("db-password");
    std::fs::write(&password, "hunter2\n").expect("written");
    std::fs::set_permissions(&password, std::fs::Permissions::from_mode(0o640)).expect("ours");
    // What the reader has, and the host of the tests has not.
    let password = password.to_str().expect("a plain path");
    let example = example.replace("/etc/cronlatch/db-password", password).replace("/usr/local/bin/backup", "/bin/sh");
    std::fs::write(folder.path().join("cronlatch.toml"), example).expect("written");
    let checked = Command::new(env!("CARGO_BIN_EXE_cronlatch"))
        .args(["check", "--config", "cronlatch.toml"])
        .current_dir(folder.path())
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(
        said,
        "nightly-backup: at 02:15 on Monday to Friday, Europe/Berlin\ncronlatch.toml: 1 job, no problem\n\
         an outage of the database of up to 1m 50s stops no running job\n"
    );
}

#[test]
fn the_crontab_of_the_readme_is_imported_as_it_says() {
    let readme = include_str!("../README.md");
    let heading = "## Coming from cron";
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("joe.crontab"), block(readme, heading, "crontab")).expect("written");
    let imported = Command::new(env!("CARGO_BIN_EXE_cronlatch"))
        .args(["import", "joe.crontab", "--user", "joe", "--timezone", "Europe/Berlin", "--from", "2027-03-10"])
        .current_dir(folder.path())
        .output()
        .expect("the binary runs");
    let command =
        "$ cronlatch import joe.crontab --user joe --timezone Europe/Berlin --from 2027-03-10 > crontab.toml\n";
    let said = format!("{command}{}", String::from_utf8_lossy(&imported.stderr));
    assert_eq!(said, block(readme, heading, "console"));
    let toml = String::from_utf8_lossy(&imported.stdout);
    assert!(toml.contains(&format!("\n\n{}\n", block(readme, heading, "toml"))), "{toml}");
}
