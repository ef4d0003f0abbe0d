//! `cronlatch import` as people call it: the real binary on crontabs in a folder, its TOML given to
//! `cronlatch check`, its shell lines to a real shell.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use tempfile::TempDir;

#[path = "support/answer.rs"]
mod answer;

use answer::Answer;

/// A folder with crontabs.
struct Folder(TempDir);

/// What fixes the times of an answer.
const THEN: [&str; 4] = ["--timezone", "Europe/Berlin", "--from", "2027-03-10T00:00:00Z"];

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(name: &str, text: impl AsRef<[u8]>) -> Self {
        let folder = Self::new();
        folder.write(name, text);
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronlatch"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null()).env_remove("CRONLATCH_CONFIG");
        command
    }

    fn import(&self, arguments: &[&str]) -> Answer {
        self.command(&[&["import"], arguments, &THEN].concat()).output().unwrap().into()
    }

    /// What `check` says of this text as a file of `jobs.d`.
    fn check(&self, toml: &str) -> Answer {
        self.write("check/cronlatch.toml", "[database]\nurl = \"sqlite:///tmp/never-made.db\"\n");
        self.write("check/jobs.d/crontab.toml", toml);
        self.command(&["check", "--json", "--config", "check/cronlatch.toml"]).output().unwrap().into()
    }
}

/// The jobs of a text by name.
fn jobs(toml: &str) -> BTreeMap<String, toml::Table> {
    let text: toml::Table = toml::from_str(toml).unwrap_or_else(|error| panic!("{error}:\n{toml}"));
    let Some(jobs) = text.get("jobs") else { return BTreeMap::new() };
    assert_eq!(text.len(), 1, "only jobs: {toml}");
    jobs.as_table().unwrap().iter().map(|(name, job)| (name.clone(), job.as_table().unwrap().clone())).collect()
}

#[test]
fn a_crontab_becomes_toml_on_standard_output_word_for_word() {
    let crontab = "MAILTO=ops@example.org\nHOME=/srv/data\nSHELL=/bin/bash\nGREETING='say \"hi\"'\n\n\
                   # Nightly\n# backup\n15 2 * * 1-5 /usr/local/bin/backup.sh --full\n\n\
                   SHELL=/bin/sh\nPATH=/opt/bin:/bin\n\
                   30 8 * * * mail -s \"It's 8\" joe%Joe,%%Wake up!\n@reboot warm-cache\n";
    let said = Folder::with("joe", crontab).import(&["joe", "--user", "joe"]);
    let expected = r#"# Made by cronlatch import from joe.

# joe:8: 15 2 * * 1-5 /usr/local/bin/backup.sh --full
[jobs.backup]
description = "Nightly backup"
schedule = "15 2 * * 1-5"
timezone = "Europe/Berlin"
command = ["/bin/bash", "-c", "/usr/local/bin/backup.sh --full"]
user = "joe"
env = { PATH = "/usr/bin:/bin", HOME = "/srv/data", SHELL = "/bin/bash", GREETING = 'say "hi"' }
directory = "/srv/data"
# cron mailed all output; for failures: on_failure = ["mail", "-s", "backup failed", "ops@example.org"]

# joe:12: 30 8 * * * mail -s "It's 8" joe%Joe,%%Wake up!
[jobs.mail]
schedule = "30 8 * * *"
timezone = "Europe/Berlin"
shell = "mail -s \"It's 8\" joe"
stdin = "Joe,\n\nWake up!\n"
user = "joe"
env = { HOME = "/srv/data", GREETING = 'say "hi"', SHELL = "/bin/sh", PATH = "/opt/bin:/bin" }
directory = "/srv/data"
# cron mailed all output; for failures: on_failure = ["mail", "-s", "mail failed", "ops@example.org"]

# joe:13: not carried over: a boot is no instant that several hosts share, so @reboot is no schedule; start it from a systemd unit, or leave the line to cron
"#;
    assert_eq!((said.code, said.stdout.as_str()), (0, expected), "{}", said.stderr);
}

#[test]
fn a_system_crontab_is_known_by_its_path_and_its_jobs_pass_check() {
    let folder = Folder::with("etc/crontab", include_str!("data/crontabs/system.cron"));
    let said = folder.import(&["etc/crontab"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let guessed = "etc/crontab: read as a system crontab, with a user column (guessed from its path)\n";
    assert!(said.stderr.starts_with(guessed), "{}", said.stderr);
    let jobs = jobs(&said.stdout);
    let names: Vec<&str> = jobs.keys().map(String::as_str).collect();
    let expected = [
        "artisan",
        "certbot",
        "checkarray",
        "cron",
        "cron-daily",
        "cron-hourly",
        "cron-monthly",
        "cron-weekly",
        "debian-sa1",
        "debian-sa1-2",
        "e2scrub_all",
        "e2scrub_all_cron",
        "munin-cron",
        "poll",
        "run",
        "sessionclean",
        "vacuumdb",
    ];
    assert_eq!(names, expected);
    assert_eq!(jobs["run"]["timezone"].as_str(), Some("America/New_York"));
    assert_eq!(jobs["poll"]["directory"].as_str(), Some("/srv/data"));
    assert_eq!(jobs["vacuumdb"]["user"].as_str(), Some("postgres"));
    assert_eq!(jobs["cron-daily"]["user"].as_str(), Some("root"), "a daemon that runs as root asks for it");
    assert!(jobs.values().all(|job| job.contains_key("user")), "{}", said.stdout);
    let checked = folder.check(&said.stdout);
    assert_eq!(checked.code, 0, "{checked:?}");

    let as_user = folder.import(&["--system", "etc/crontab"]);
    assert!(as_user.stderr.contains("with a user column (--system)"), "{}", as_user.stderr);
}

#[test]
fn every_line_of_an_odd_crontab_is_carried_over_or_told_and_the_jobs_pass_check() {
    let crontab = include_str!("data/crontabs/user.cron");
    let folder = Folder::with("joe", crontab);
    let said = folder.import(&["joe", "--json"]);
    assert_eq!((said.code, said.stderr.as_str()), (78, "cronlatch: 3 lines can't be read\n"));
    let objects = said.objects();
    let is_entry = |line: &str| line.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '*' | '@'));
    for (index, line) in crontab.lines().enumerate().filter(|(_, line)| is_entry(line)) {
        let of_line: Vec<_> = objects.iter().filter(|object| object["line"] == index + 1).collect();
        let [object] = of_line[..] else { panic!("{line}: {of_line:?}") };
        let is_told = object["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| matches!(note["kind"].as_str(), Some("unreadable" | "not_carried_over")));
        assert_eq!(object["toml"].is_null(), is_told, "{line}: {object}");
    }
    let said = folder.import(&["joe"]);
    let checked = folder.check(&said.stdout);
    assert_eq!(checked.code, 0, "{checked:?}");
    let jobs = jobs(&said.stdout);
    assert_eq!(jobs["dump"]["description"].as_str(), Some("Nightly dump"));
    assert!(!jobs["find"].contains_key("description"), "what is above is about an entry that was switched off");
    assert_eq!(jobs["find"]["env"]["GREETING"].as_str(), Some(" hello, world "));
    assert_eq!(jobs["weekend"]["schedule"].as_str(), Some("0 0 * * 5-6,0-1"));
    assert_eq!(jobs["once-an-hour"]["schedule"].as_str(), Some("*/9999 * * * *"));
    for part in
        ["joe:47: minute \"*5\":", "joe:46: \"0 0 31 4,6,9,11 *\" never fires", "joe:49: day of week \"nothing\""]
    {
        assert!(said.stderr.contains(part), "{part} is missing in:\n{}", said.stderr);
    }
}

#[test]
fn the_report_names_each_line_and_sets_old_and_new_times_side_by_side() {
    let crontab = "15 2 * * 1-5 /usr/local/bin/backup\n0,30 2 * * 7 twice\n*/5 * * * * root poll\n\
                   CRON_TZ=Asia/Tokyo\n0 9 1 4 * tokyo\n0 9 1 4 * tokyo\n@reboot start &\n@reboot stop\n";
    let said = Folder::with("joe", crontab).import(&["joe"]);
    let expected = r#"joe: read as a user's crontab, without a user column (write --system if there is one)

not carried over:
joe:7: a boot is no instant that several hosts share, so @reboot is no schedule; start it from a systemd unit, or leave the line to cron (line 8 too)

not as in cron:
joe: cron ran the entries as the owner of the crontab, whom it does not name, and the jobs have no user; import it with --user NAME, or write user into them
joe:4: cronie reads the entries below in Asia/Tokyo, Debian's cron ignores CRON_TZ; their jobs are in that zone; change timezone if it isn't wanted

as in cron, but perhaps not as meant:
joe:3: the command begins with "root", as if there were a user column; read the file with --system if there is one
joe:6: the same as line 5, so cron runs it twice; remove one of the two jobs

old and new times from 2027-03-10 01:00 +01:00 to 2027-04-10 02:00 +02:00 (Europe/Berlin):
JOB      LINE  OLD   NEW   IN CRON                                                IN CRONLATCH
backup   1     23    23    Wed 03-10 02:15, Thu 03-11 02:15, Fri 03-12 02:15, ..  the same
twice    2     8     7     Sun 03-14 02:00, Sun 03-14 02:30, Sun 03-21 02:00, ..  Sun 03-14 02:00, Sun 03-14 02:30, Sun 03-21 02:00, ..
root     3     8928  8928  Wed 03-10 01:05, Wed 03-10 01:10, Wed 03-10 01:15, ..  the same
tokyo    5     1     1     Thu 04-01 16:00 (Asia/Tokyo)                           Thu 04-01 09:00 (Asia/Tokyo)
tokyo-2  6     1     1     Thu 04-01 16:00 (Asia/Tokyo)                           Thu 04-01 09:00 (Asia/Tokyo)

times that differ:
joe:2: twice: the clocks go forward: cron runs it once for each time that is left out, cronlatch once for all
    more often in cron (1): Sun 2027-03-28 03:00 +02:00
joe:5: tokyo: Debian's cron ignores CRON_TZ and goes by Europe/Berlin
    more often in cronlatch (1): Thu 2027-04-01 09:00 +09:00
    more often in cron (1): Thu 2027-04-01 16:00 +09:00
joe:6: tokyo-2: Debian's cron ignores CRON_TZ and goes by Europe/Berlin
    more often in cronlatch (1): Thu 2027-04-01 09:00 +09:00
    more often in cron (1): Thu 2027-04-01 16:00 +09:00
"#;
    let (report, for_all) = said.stderr.split_once("\nfor all jobs:\n").unwrap();
    assert_eq!((said.code, report), (0, expected));
    assert!(for_all.contains("overlap = \"skip\"") && for_all.lines().all(|line| line.starts_with("- ")), "{for_all}");
}

#[test]
fn a_crontab_without_a_user_column_has_the_owner_that_its_path_or_the_command_line_names() {
    let folder = Folder::with("var/spool/cron/crontabs/joe", "@daily a\n");
    folder.write("ann.cron", "@daily b\n");
    folder.write("etc/crontab", "@daily root c\n");
    let users = |arguments: &[&str]| {
        let said = folder.import(arguments);
        assert_eq!(said.code, 0, "{said:?}");
        let user = |job: &toml::Table| job.get("user").map_or("none", |user| user.as_str().unwrap()).to_owned();
        (jobs(&said.stdout).values().map(user).collect::<Vec<_>>(), said.stderr)
    };
    let all = ["var/spool/cron/crontabs/joe", "ann.cron", "etc/crontab"];
    let (of_all, told) = users(&all);
    assert_eq!(of_all, ["joe", "none", "root"]);
    assert!(told.contains("ann.cron: cron ran the entries as the owner of the crontab"), "{told}");
    assert!(!told.contains("joe: cron ran the entries"), "{told}");
    let (named, told) = users(&["--user", "ann", "ann.cron", "etc/crontab"]);
    assert_eq!(named, ["ann", "root"]);
    assert!(told.contains("ann.cron: read as the crontab of ann, without a user column (--user)"), "{told}");
    assert!(!told.contains("cron ran the entries"), "{told}");

    for (arguments, part) in [
        (&["--user", "ann", all[0]][..], "is the crontab of joe by its path, and not of ann; leave --user out"),
        (&["--user", "ann", "--system", "ann.cron"], "--system"),
        (&["--user", "1000", "ann.cron"], "that can't be a user"),
        (&["--user", "a b", "ann.cron"], "that can't be a user"),
    ] {
        let said = folder.import(arguments);
        assert_eq!((said.code, said.stdout.as_str()), (64, ""), "{arguments:?}: {said:?}");
        assert!(said.stderr.contains(part), "{arguments:?}: {said:?}");
    }
}

#[test]
fn programs_get_one_array_with_an_object_an_entry() {
    let folder = Folder::with("joe", "MAILTO=x\n0,30 2 28 3 * twice\n61 * * * * bad\n");
    let said = folder.import(&["joe", "--json"]);
    assert_eq!((said.code, said.stderr.as_str()), (78, "cronlatch: 1 line can't be read\n"));
    let objects = said.objects();
    let lines: Vec<_> = objects.iter().map(|object| (object["line"].as_u64(), object["job"].as_str())).collect();
    assert_eq!(lines, [(None, None), (Some(1), None), (Some(2), Some("twice")), (Some(3), None)]);
    let entry = &objects[2];
    assert_eq!(entry["file"], "joe");
    assert_eq!(entry["old"]["first"][1], "2027-03-28T01:00:00Z");
    assert_eq!((&entry["old"]["count"], &entry["new"]["count"]), (&2.into(), &1.into()));
    let differs = &entry["differs"][0];
    assert_eq!((&differs["more_in"], &differs["count"]), (&"cron".into(), &1.into()));
    assert_eq!(differs["first"][0], serde_json::json!({ "at": "2027-03-28T01:00:00Z", "times": 1 }));
    assert_eq!(jobs(entry["toml"].as_str().unwrap())["twice"]["shell"].as_str(), Some("twice"));
    assert_eq!((&objects[3]["notes"][0]["kind"], &objects[3]["toml"]), (&"unreadable".into(), &Value::Null));
}

#[test]
fn several_files_and_standard_input_share_the_names() {
    let folder = Folder::with("a", "@daily backup\n");
    folder.write("etc/cron.d/b.bak", "@hourly root backup\n");
    let mut child = folder
        .command(&["import", "a", "etc/cron.d/b.bak", "-", "--timezone", "UTC"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"@weekly backup").unwrap();
    let said: Answer = child.wait_with_output().unwrap().into();
    let schedules: Vec<_> = jobs(&said.stdout)
        .into_iter()
        .map(|(name, job)| (name, job["schedule"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [("backup", "@daily"), ("backup-2", "@hourly"), ("backup-3", "@weekly")];
    assert_eq!(schedules, expected.map(|(name, schedule)| (name.to_owned(), schedule.to_owned())));
    assert!(said.stdout.starts_with("# Made by cronlatch import from a, etc/cron.d/b.bak, -.\n"), "{said:?}");
    assert!(said.stderr.contains("-:1: the last line has no line feed"), "{said:?}");
    assert!(
        said.stderr.contains("etc/cron.d/b.bak: Debian's cron reads no file of cron.d with such a name"),
        "{said:?}"
    );
}

#[test]
fn bytes_that_are_no_text_and_odd_line_ends_are_told_and_hide_no_line() {
    let crontab = b"\xef\xbb\xbf# x\r\n@daily a\r\n\r\n@daily b\xff\r\n@daily c\0\r\n@daily d\r\n".to_vec();
    let said = Folder::with("joe", crontab).import(&["joe"]);
    assert_eq!(
        (said.code, jobs(&said.stdout).into_keys().collect::<Vec<_>>()),
        (78, vec!["a".to_owned(), "d".to_owned()])
    );
    for part in
        ["joe:1: starts with a byte order mark", "joe: lines end with CR LF", "joe:4: not UTF-8", "joe:5: holds a NUL"]
    {
        assert!(said.stderr.contains(part), "{part} is missing in:\n{}", said.stderr);
    }
}

#[test]
fn a_very_long_line_is_carried_over_whole_and_told() {
    let long = format!("echo {} | wc -c", "x".repeat(5_000));
    let said = Folder::with("joe", format!("@daily {long}\nA={}\n@daily b\n", "y".repeat(2_000))).import(&["joe"]);
    let jobs = jobs(&said.stdout);
    assert_eq!(jobs["echo"]["shell"].as_str(), Some(long.as_str()));
    assert_eq!(jobs["b"]["env"]["A"].as_str().map(str::len), Some(2_000));
    for part in
        ["joe:1: Debian's cron refuses a command of more than 998 bytes", "joe:2: Debian's cron cuts a variable off"]
    {
        assert!(said.stderr.contains(part), "{part} is missing in:\n{}", said.stderr);
    }
    assert!(
        said.stderr
            .lines()
            .chain(said.stdout.lines().filter(|line| line.starts_with('#')))
            .all(|line| line.len() < 500)
    );
}

#[test]
fn wrong_arguments_and_files_have_their_exit_codes() {
    let folder = Folder::with("joe", "@daily a\n");
    folder.write("sub/x", "");
    for (arguments, code, part) in [
        (&["sub"][..], 64, "sub is a directory; name its files, as in sub/*"),
        (&[], 64, "CRONTAB"),
        (&["joe", "-", "-"], 64, "write - once"),
        (&["none"], 74, "none can't be read: No such file"),
        (&["joe", "none"], 74, "none can't be read"),
    ] {
        let said = folder.import(arguments);
        assert_eq!((said.code, said.stdout.as_str()), (code, ""), "{arguments:?}: {said:?}");
        assert!(said.stderr.contains(part), "{arguments:?}: {said:?}");
    }
    for (arguments, part) in [
        (["--timezone", "CET"], "Europe/Berlin"),
        (["--from", "soon"], "2026-12-02"),
        (["--from", "2101-01-01"], "1970 to 2099"),
    ] {
        let said: Answer = folder.command(&[&["import", "joe"][..], &arguments].concat()).output().unwrap().into();
        assert_eq!((said.code, said.stdout.as_str()), (64, ""), "{said:?}");
        assert!(said.stderr.contains(part), "{said:?}");
    }
    let nothing = Folder::with("joe", "* * * * * %\n* * * * *  %date\n").import(&["joe"]);
    assert_eq!((nothing.code, jobs(&nothing.stdout).len()), (0, 0), "{nothing:?}");
    assert!(nothing.stderr.contains("joe:1: the first % ends the command before it begins"), "{nothing:?}");
    let mut full = folder.command(&["import", "joe", "--timezone", "UTC"]);
    let said: Answer = full.stdout(File::create("/dev/full").unwrap()).output().unwrap().into();
    assert_eq!(said.code, 74, "{said:?}");
}

#[test]
fn a_crontab_without_entries_is_an_empty_text_and_no_failure() {
    for text in ["", "\n", "# nothing\n\n", "A=1\n"] {
        let said = Folder::with("joe", text).import(&["joe"]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "# Made by cronlatch import from joe.\n"), "{text:?}");
        assert!(said.stderr.ends_with("\nno job was made\n"), "{said:?}");
    }
}

/// Runs a job's command as the daemon does: with its variables and its standard input alone.
fn run(job: &toml::Table) -> (String, i32) {
    let argv: Vec<&str> = match job.get("shell") {
        Some(line) => vec!["/bin/sh", "-c", line.as_str().unwrap()],
        None => job["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect(),
    };
    let env = job["env"].as_table().unwrap().iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap()));
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).env_clear().envs(env).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let input = job.get("stdin").map_or("", |text| text.as_str().unwrap());
    // A command may not read it.
    child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
}

#[test]
fn a_job_does_in_its_shell_what_the_entry_did_in_crons() {
    // What Debian's cron (3.0pl1-162) wrote for the first ones, and what follows from its rules.
    let cases = [
        (r"cat%a\%b%c\\d%\x%%e", "a%b\nc\\\\d\n\\x\n\ne\n", 0),
        ("cat%", "", 0),
        ("cat%%", "\n", 0),
        ("cat", "", 0),
        (r#"cat%it's "so" `x` $HOME $(y)"#, "it's \"so\" `x` $HOME $(y)\n", 0),
        ("cat # a comment%input", "input\n", 0),
        ("cat; exit 3%input", "input\n", 3),
        ("read -r x; echo \"<$x>\"; cat%a  b%c", "<a  b>\nc\n", 0),
        ("cat | tr a-z A-Z && echo done%ab", "AB\ndone\n", 0),
        ("cat <<E; cat%input", "input\n", 0),
        (r"echo \%input", "%input\n", 0),
        (r"printf '\%s-' a b", "a-b-", 0),
        (r"printf '\%s' 'a\b'", r"a\b", 0),
        (r"printf '\%s' 'a\\b'", r"a\b", 0),
        ("echo $A '$A' \"$B\"", "1 $A two  words\n", 0),
        ("true%unread", "", 0),
        ("cat%-n %--", "-n \n--\n", 0),
    ];
    let lines: String = cases.iter().map(|(command, ..)| format!("* * * * * {command}\n")).collect();
    let mut tested = 0;
    for shell in ["", "SHELL=/bin/bash\n", "SHELL=/bin/sh\n"] {
        let folder = Folder::with("joe", format!("{shell}A=1\nB='two  words'\n{lines}"));
        let objects = folder.import(&["joe", "--json"]).objects();
        let made = objects.iter().filter_map(|object| object["toml"].as_str());
        for (toml, (command, expected, code)) in made.zip(&cases) {
            let job = jobs(toml).into_values().next().unwrap();
            let (said, ended) = run(&job);
            assert_eq!((said.as_str(), ended), (*expected, *code), "{shell}{command}: {job:?}");
            tested += 1;
        }
    }
    assert_eq!(tested, 3 * cases.len());
}

#[test]
fn another_shell_than_sh_gets_the_line_and_its_input_unchanged() {
    let folder = Folder::with("joe", "SHELL=/usr/bin/awk-no-such-shell\n* * * * * a 'b'%c d\n");
    folder.write("shell", "#!/bin/sh\nprintf '%s|' \"$@\"; cat\n");
    let shell = folder.path().join("shell");
    fs::set_permissions(&shell, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    folder.write("joe", format!("SHELL={}\n* * * * * a 'b'%c d\n* * * * * a 'b'\n", shell.display()));
    let said = folder.import(&["joe"]);
    let jobs = jobs(&said.stdout);
    assert_eq!(run(&jobs["a"]).0, "-c|a 'b'|c d\n");
    assert_eq!(run(&jobs["a-2"]).0, "-c|a 'b'|");
}

/// Pieces of crontabs, and of what is none.
fn line() -> impl Strategy<Value = String> {
    let word = "[-*/,0-9a-zA-Z@%\\\\'\"#=$()|&;<>?~ \t]{0,12}";
    let field = prop_oneof![
        4 => Just("*".to_owned()),
        3 => (0_u32..62).prop_map(|value| value.to_string()),
        2 => (0_u32..32, 0_u32..32).prop_map(|(a, b)| format!("{a}-{b}")),
        1 => (0_u32..8, 1_u32..30_000).prop_map(|(a, b)| format!("{a}/{b}")),
        1 => (1_u32..30_000).prop_map(|step| format!("*/{step}")),
        1 => select(vec!["MON", "fri-Sun", "JAN", "nov-feb", "?", "L", "1,,2", "*5", "5#2", "1~9"]).prop_map(str::to_owned),
    ];
    let command =
        prop_oneof![word.prop_map(|text| format!("x {text}")), "\\PC{1,30}", Just("run-parts /etc/x &".to_owned())];
    let entry =
        (prop::collection::vec(field, 5), command).prop_map(|(fields, text)| format!("{} {text}", fields.join(" ")));
    let variable = (
        select(vec!["A", "PATH", "SHELL", "HOME", "MAILTO", "TZ", "CRON_TZ", "LOGNAME", "CRONLATCH_X", "'a b'"]),
        "\\PC{0,20}",
    )
        .prop_map(|(name, value)| format!("{name}={value}"));
    let shorthand = select(vec!["@daily x", "@reboot y", "@Hourly z%in", "@weird a", "@monthly 5 cron.x b", "@daily"]);
    prop_oneof![
        8 => entry,
        2 => variable,
        1 => shorthand.prop_map(str::to_owned),
        1 => word,
        1 => "#\\PC{0,20}",
        1 => "\\PC{0,40}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_crontab_holds_its_jobs_pass_check(
        lines in prop::collection::vec(line(), 1..60),
        is_system in any::<bool>(),
        end in select(vec!["\n", "\r\n"]),
    ) {
        let folder = Folder::with("joe", lines.join(end));
        let form: &[&str] = if is_system { &["--system", "joe"] } else { &["joe"] };
        let said = folder.import(form);
        prop_assert!(matches!(said.code, 0 | 78), "{:?}", said);
        if !jobs(&said.stdout).is_empty() {
            let checked = folder.check(&said.stdout);
            prop_assert_eq!(checked.code, 0, "{:?}\n{}", checked, said.stdout);
        }
        let objects = folder.import(&[form, &["--json"]].concat());
        prop_assert_eq!(objects.code, said.code);
        let made = objects.objects().iter().filter(|object| !object["toml"].is_null()).count();
        prop_assert_eq!(made, jobs(&said.stdout).len());
    }
}
