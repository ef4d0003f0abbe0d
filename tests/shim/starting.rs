//! What can't be started is said with its name and cause, and nothing of it is executed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use cronlatch::job::Stdin;
use cronlatch::shim::{Exit, Program, SpawnError, SpawnRequest};

use crate::fixtures::{Stage, to_the_end};

fn executing(stage: &Stage, argv: &[&str]) -> SpawnRequest {
    let program = Program::Execute(argv.iter().map(|argument| (*argument).to_owned()).collect());
    SpawnRequest { program, ..stage.request("") }
}

async fn refusal(stage: &Stage, request: &SpawnRequest) -> String {
    match stage.spawn(request).await {
        Err(SpawnError::Job(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_or_not_allowed_is_named_with_the_cause() {
    let stage = Stage::new();
    fs::write(stage.file("plain"), "#!/bin/sh\n").unwrap();
    fs::write(stage.file("odd"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(stage.file("odd"), fs::Permissions::from_mode(0o755)).unwrap();
    for (program, cause) in [
        ("/no/such/program", "can't execute \"/no/such/program\": No such file or directory (os error 2)"),
        ("no-such-program", "can't execute \"no-such-program\", searched for in PATH=\"/usr/bin:/bin\": No such file"),
        ("./plain", "can't execute \"./plain\": Permission denied (os error 13)"),
        ("./odd", "can't execute \"./odd\" (it is there; its interpreter is not): No such file"),
        ("/tmp", "can't execute \"/tmp\": Permission denied"),
    ] {
        let message = refusal(&stage, &executing(&stage, &[program])).await;
        assert!(message.starts_with(cause), "{message}");
    }
}

#[tokio::test]
async fn what_it_needs_before_its_program_is_named_too() {
    let stage = Stage::new();
    let mut folder = stage.request("touch happened");
    folder.directory = Some("/no/such/folder".into());
    let mut user = stage.request("touch happened");
    user.setup.user = Some("no-such-user".to_owned());
    let mut group = stage.request("touch happened");
    group.setup.group = Some("no-such-group".to_owned());
    let mut env_file = stage.request("touch happened");
    env_file.setup.env_file = Some("/no/such/env".into());
    let mut odd_env_file = stage.request("touch happened");
    fs::write(stage.file("env"), "A=1\nodd line\n").unwrap();
    odd_env_file.setup.env_file = Some(stage.file("env"));
    let mut stdin = stage.request("touch happened");
    stdin.setup.stdin = Stdin::File("/no/such/input".into());
    for (request, cause) in [
        (folder, "can't enter the directory \"/no/such/folder\": No such file"),
        (user, "can't run as user \"no-such-user\": there is no such user on this host"),
        (group, "can't run as group \"no-such-group\": there is no such group on this host"),
        (env_file, "can't read env_file \"/no/such/env\": No such file"),
        (odd_env_file, "can't read env_file"),
        (stdin, "can't open \"/no/such/input\" for the standard input: No such file"),
    ] {
        let message = refusal(&stage, &request).await;
        assert!(message.starts_with(cause), "{message}");
    }
    assert!(!stage.file("happened").exists());
}

#[tokio::test]
async fn a_script_without_an_interpreter_line_is_read_by_the_shell() {
    let stage = Stage::new();
    fs::write(stage.file("script"), "echo $1 of $0\n").unwrap();
    fs::set_permissions(stage.file("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let (ended, text) = stage.run(&executing(&stage, &["./script", "one"])).await;
    assert_eq!((ended.exit, text.as_str()), (Exit::Code(0), "one of ./script\n"));
}

#[tokio::test]
async fn a_preparation_that_hangs_is_given_up_and_nothing_is_executed() {
    let stage = Stage::new();
    let fifo = stage.file("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let mut request = stage.request("touch happened");
    request.setup.env_file = Some(fifo);
    request.start_within = Duration::from_millis(200);
    let error = stage.spawn(&request).await.unwrap_err();
    assert!(matches!(error, SpawnError::Hung(_)), "{error}");
    assert_eq!(stage.population(), 0);
    assert!(!stage.file("happened").exists());
}

#[tokio::test]
async fn a_request_of_many_megabytes_is_started() {
    let stage = Stage::new();
    let mut request = stage.request("cat | wc -c");
    request.setup.stdin = Stdin::Text("x".repeat(5_000_000));
    let (ended, text) = stage.run(&request).await;
    assert_eq!((ended.exit, text.trim()), (Exit::Code(0), "5000000"));
}

#[tokio::test]
async fn an_argument_list_that_is_too_long_is_refused() {
    let stage = Stage::new();
    let long = "x".repeat(3_000_000);
    let message = refusal(&stage, &executing(&stage, &["/bin/true", &long])).await;
    assert!(message.contains("Argument list too long"), "{message}");
}

#[tokio::test]
async fn many_at_once_are_all_started() {
    let stage = Stage::new();
    let request = stage.request("true");
    let mut children = Vec::new();
    for _ in 0..40 {
        children.push(stage.spawn(&request).await.unwrap());
    }
    for mut child in children {
        assert_eq!(to_the_end(&mut child).await.ended.unwrap().exit, Exit::Code(0));
    }
}
