use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::time::Instant;

use tracing::subscriber::DefaultGuard;

use super::*;
use crate::fleet::{HostName, InstanceId};
use crate::job::{OutputFile, OutputKeep, OutputTo};
use crate::lock::Owner;
use crate::trigger::{RunId, Trigger, TriggerKind};

/// A job's ends of its output, and what reads them.
struct Piped {
    stdout: PipeWriter,
    stderr: PipeWriter,
    pump: Pump,
}

/// A run of a job whose output goes there.
fn assignment(output: OutputTo) -> Arc<Assignment> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cronlatch.toml");
    let text = "[database]\nurl = \"sqlite:///x\"\n[jobs.a]\nschedule = \"* * * * *\"\ncommand = [\"x\"]\n";
    std::fs::write(&path, text).unwrap();
    let mut job = crate::config::load(&path).jobs.remove(0);
    job.output = output;
    let owner = Owner::generate(&HostName::new("a").unwrap(), InstanceId::generate());
    Arc::new(Assignment {
        run: RunId::generate(),
        trigger: Trigger::scheduled(job.name.clone(), "2027-01-01T00:00:00Z".parse().unwrap()),
        attempt: 1,
        retries: 0,
        kind: TriggerKind::Schedule,
        owner,
        resource: job.resource.clone(),
        followers: Vec::new(),
        job: Arc::new(job),
    })
}

fn to_file() -> OutputTo {
    OutputTo::File(Box::new(OutputFile { pattern: "/x/{job}".to_owned(), keep: OutputKeep::default() }))
}

fn start(output: OutputTo, file: Option<FileOutput>) -> Piped {
    let ends = [io::pipe().unwrap(), io::pipe().unwrap()];
    let [(out_reader, stdout), (err_reader, stderr)] = ends;
    let receiver = |reader: PipeReader| pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
    let output_of_job = Output { stdout: receiver(out_reader), stderr: receiver(err_reader) };
    let pump = Pump::start(output_of_job, &assignment(output), FencingToken::new(7), file);
    Piped { stdout, stderr, pump }
}

/// A writer's input, and its other end.
fn writer() -> (FileOutput, PipeReader) {
    let (reader, stdin) = io::pipe().unwrap();
    let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(stdin)).unwrap();
    (FileOutput { path: "/x/a".into(), stdin }, reader)
}

/// What is logged on this thread from now on.
fn listen() -> (DefaultGuard, BufReader<PipeReader>) {
    let (reader, writer) = io::pipe().unwrap();
    let subscriber = tracing_subscriber::fmt().json().with_writer(Mutex::new(writer)).finish();
    (tracing::subscriber::set_default(subscriber), BufReader::new(reader))
}

fn events(said: BufReader<PipeReader>, name: &str) -> Vec<serde_json::Value> {
    let lines = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap());
    let fields = lines.map(|mut line| line["fields"].take());
    fields.filter(|fields| fields["event"] == name).collect()
}

/// Writes in a thread of its own, as a job would: it may wait.
async fn write(mut to: PipeWriter, bytes: Vec<u8>) {
    tokio::task::spawn_blocking(move || to.write_all(&bytes).unwrap()).await.unwrap();
}

#[tokio::test]
async fn the_writer_of_files_gets_every_byte_in_whole_lines_and_the_log_says_where_only() {
    let (_logging, said) = listen();
    let (file, reader) = writer();
    let Piped { stdout, stderr, pump } = start(to_file(), Some(file));
    let reading = tokio::task::spawn_blocking(move || io::read_to_string(BufReader::new(reader)).unwrap());
    let lines = |word: &str| (0..50_000).map(|n| format!("{word} {n}\n")).collect::<String>();
    let (out, err) = (lines("out"), lines("err"));
    tokio::join!(write(stdout, format!("{out}no end").into_bytes()), write(stderr, err.clone().into_bytes()));
    let tail = pump.finish().await.unwrap();
    let text = reading.await.unwrap();
    let of = |word: &str| text.split_inclusive('\n').filter(|line| line.starts_with(word)).collect::<String>();
    assert_eq!((of("out"), of("err")), (out, err));
    assert!((text.contains("\nno end\n") || text.ends_with("\nno end")) && tail.len() <= 8_192);
    drop(_logging);
    let mut names: Vec<_> = said.lines().map(|line| line.unwrap()).collect();
    let only = names.pop().unwrap();
    assert!(names.is_empty() && only.contains("run.output_to_file") && only.contains("/x/a"), "{only}");
}

#[tokio::test]
async fn a_writer_that_hangs_holds_the_job_up_for_a_while_and_then_output_is_dropped_and_counted() {
    let (logging, said) = listen();
    let (file, reader) = writer();
    let Piped { stdout, stderr, pump } = start(to_file(), Some(file));
    drop(stderr);
    let line = [[b'x'; 99].as_slice(), b"\n"].concat();
    // More than all pipes between have room for: it ends because it is dropped.
    let bytes = line.repeat(10_000);
    let given = bytes.len();
    write(stdout.try_clone().unwrap(), bytes).await;
    while rustix::io::ioctl_fionread(&stdout).unwrap() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let reading = tokio::task::spawn_blocking(move || io::read_to_string(reader).unwrap());
    write(stdout, b"it goes on\n".to_vec()).await;
    let tail = pump.finish().await.unwrap();
    let text = reading.await.unwrap();
    assert!(text.ends_with("\nit goes on\n") && tail.ends_with("it goes on\n"), "{}", text.len());
    drop(logging);
    let dropped = events(said, "run.output_dropped");
    let sum = |field: &str| dropped.iter().map(|event| event[field].as_u64().unwrap()).sum::<u64>();
    // One line feed was put in, if a line had been torn.
    let missing = given - (text.len() - "it goes on\n".len());
    assert!((missing..=missing + 1).contains(&usize::try_from(sum("bytes")).unwrap()), "{missing} {dropped:?}");
    assert_eq!(dropped[0]["reason"], "its file takes nothing");
}

#[tokio::test]
async fn a_writer_that_is_gone_or_was_never_there_stops_no_job_and_is_told() {
    let (gone, reader) = writer();
    drop(reader);
    for file in [Some(gone), None] {
        let (logging, said) = listen();
        let Piped { stdout, stderr, pump } = start(to_file(), file);
        drop(stderr);
        write(stdout, b"some line\n".repeat(20_000)).await;
        let tail = pump.finish().await.unwrap();
        assert!(tail.ends_with("some line\n"));
        drop(logging);
        let dropped = events(said, "run.output_dropped");
        let sum = |field: &str| dropped.iter().map(|event| event[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!((sum("count"), sum("bytes")), (20_000, 200_000), "{dropped:?}");
        assert_eq!(dropped[0]["reason"], "the writer of its file is gone");
    }
}

#[tokio::test]
async fn discarded_output_is_nowhere_but_in_the_tail() {
    let (logging, said) = listen();
    let Piped { stdout, stderr, pump } = start(OutputTo::Discard, None);
    write(stdout, b"one line\n".repeat(100_000)).await;
    drop(stderr);
    let tail = pump.finish().await.unwrap();
    assert!(tail.contains("one line\none line\n") && tail.len() <= 8_192, "{tail}");
    drop(logging);
    assert_eq!(said.lines().count(), 0);
}

#[tokio::test]
async fn a_pipe_that_somebody_holds_open_is_not_waited_for_long_and_its_unended_line_is_kept() {
    let Piped { mut stdout, stderr, pump } = start(OutputTo::Discard, None);
    drop(stderr);
    stdout.write_all(b"first\nno end").unwrap();
    let since = Instant::now();
    assert_eq!(pump.finish().await.as_deref(), Some("first\nno end\n"));
    let took = since.elapsed();
    assert!(took >= AFTER_EXIT && took < 3 * AFTER_EXIT, "{took:?}");
    drop(stdout);
}
