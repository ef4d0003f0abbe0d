//! User, limits, environment and streams of a job.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use cronlatch::job::{Stdin, Umask};

use crate::fixtures::Stage;

#[tokio::test]
async fn a_job_runs_as_its_user_with_all_of_its_groups_and_none_of_the_daemons() {
    if !nix::unistd::geteuid().is_root() {
        let stage = Stage::new();
        let mut request = stage.request("true");
        request.setup.user = Some("nobody".to_owned());
        let error = stage.spawn(&request).await.unwrap_err().to_string();
        assert!(error.contains("only a daemon of root can run jobs as other users"), "{error}");
        return;
    }
    // Groups that must not get through: a container's root may have none.
    nix::unistd::setgroups(&[nix::unistd::Gid::from_raw(0), nix::unistd::Gid::from_raw(4)]).unwrap();
    let stage = Stage::new();
    fs::set_permissions(stage.folder(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut request = stage.request("id -un; id -gn; id -G; echo $HOME $USER $LOGNAME; touch made");
    request.setup.user = Some("nobody".to_owned());
    request.setup.group = Some("daemon".to_owned());
    let (_, text) = stage.run(&request).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[1]), ("nobody", "daemon"), "{text}");
    assert!(!lines[2].split(' ').any(|group| ["0", "4"].contains(&group)), "root's groups are gone: {text}");
    assert_eq!(lines[3], "/nonexistent nobody nobody");
    assert_ne!(fs::metadata(stage.file("made")).unwrap().uid(), 0);
}

#[tokio::test]
async fn a_user_without_the_right_to_a_folder_is_told_so() {
    if !nix::unistd::geteuid().is_root() {
        // Nobody else can be made to lack it.
        return;
    }
    let stage = Stage::new();
    fs::create_dir(stage.file("secret")).unwrap();
    fs::set_permissions(stage.file("secret"), fs::Permissions::from_mode(0o700)).unwrap();
    let mut request = stage.request("true");
    request.setup.user = Some("nobody".to_owned());
    request.directory = Some(stage.file("secret"));
    let error = stage.spawn(&request).await.unwrap_err().to_string();
    assert!(error.contains("can't enter the directory") && error.contains("Permission denied"), "{error}");
}

#[tokio::test]
async fn umask_niceness_and_limits_are_set() {
    let stage = Stage::new();
    let mut request = stage.request("umask; nice; ulimit -n; ulimit -t; ulimit -v; ulimit -u");
    request.setup.umask = Umask(0o027);
    request.setup.nice = 7;
    request.setup.limits.open_files = Some(99);
    request.setup.limits.cpu_time = Some(Duration::from_secs(1_000));
    request.setup.limits.memory = Some(512 << 20);
    request.setup.limits.processes = Some(500);
    let (_, text) = stage.run(&request).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..5], ["0027", "7", "99", "1000", "524288"], "{text}");
}

#[tokio::test]
async fn variables_override_one_another_in_the_order_that_is_documented() {
    let stage = Stage::new();
    fs::write(stage.file("env"), "HOME=/from/file\nA='of the file'\nB=of the file\n").unwrap();
    let mut request = stage.request("echo $HOME, $A, $B, $C; env | wc -l");
    request.base_env.extend([("A", "of the base"), ("C", "of the base")].map(|(n, v)| (n.to_owned(), v.to_owned())));
    request.setup.env_file = Some(stage.file("env"));
    request.env.push(("B".to_owned(), "of the job".to_owned()));
    let (_, text) = stage.run(&request).await;
    assert_eq!(text.lines().next(), Some("/from/file, of the file, of the job, of the base"));
}

#[tokio::test]
async fn standard_input_is_empty_a_text_or_a_file() {
    let stage = Stage::new();
    let mut request = stage.request("cat; readlink /proc/self/fd/0");
    let (_, text) = stage.run(&request).await;
    assert_eq!(text, "/dev/null\n");
    request.setup.stdin = Stdin::Text("to be read\n".to_owned());
    let (_, text) = stage.run(&request).await;
    assert!(text.starts_with("to be read\n"), "{text}");
    fs::write(stage.file("input"), "of a file\n").unwrap();
    request.setup.stdin = Stdin::File(stage.file("input"));
    let (_, text) = stage.run(&request).await;
    assert!(text.starts_with("of a file\n"), "{text}");
}

#[tokio::test]
async fn a_job_has_its_three_streams_a_session_of_its_own_and_no_signal_blocked_or_ignored() {
    let stage = Stage::new();
    let line = "ls /proc/self/fd | wc -w; grep -E 'Sig(Blk|Ign)' /proc/self/status | cut -f 2 | grep -v 0000000180000000 | sort -u; \
                test $(ps -o sid= -p $$) = $$ && echo leader";
    let (_, text) = stage.run(&stage.request(line)).await;
    // The three streams, and the folder that ls reads. glibc itself ignores its two internal signals in
    // whatever it spawns.
    assert_eq!(text, "4\n0000000000000000\nleader\n");
}
