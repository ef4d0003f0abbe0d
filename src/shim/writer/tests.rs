use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::rotation::numbered;
use super::*;

const KEEP: OutputKeep = OutputKeep { size: 1_000, files: 3, age: None };

fn keep(size: u64, files: u32) -> OutputKeep {
    OutputKeep { size, files, age: None }
}

/// Writes the input, and gives what was said.
fn write(input: impl Read, path: &Path, keep: &OutputKeep) -> (Written, String) {
    let mut said = Vec::new();
    let written = Writer::new(path, keep, &mut said).drain(input).unwrap();
    (written, String::from_utf8(said).unwrap())
}

/// All that is in a file and its predecessors, oldest first.
fn whole(path: &Path, files: u32) -> String {
    let old = (1..=files).rev().map(|number| numbered(path, number));
    old.chain([path.to_owned()]).filter_map(|path| fs::read_to_string(path).ok()).collect()
}

fn lines(from: u32, to: u32) -> String {
    (from..to).map(|n| format!("line {n}\n")).collect()
}

#[track_caller]
fn wait(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        thread::yield_now();
    }
}

#[test]
fn output_is_appended_byte_for_byte_in_directories_that_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/job.log");
    let bytes = b"one\r\n\x00\xff no end";
    let (written, said) = write(bytes.as_slice(), &path, &KEEP);
    assert_eq!((written, said.as_str()), (Written { bytes: bytes.len() as u64, lost: 0 }, ""));
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path) & !0o640, 0);
    assert_eq!(mode(&folder.path().join("a")) & !0o755, 0);
    write(b"the next run\n".as_slice(), &path, &KEEP);
    assert_eq!(fs::read(&path).unwrap(), [bytes, b"\nthe next run\n".as_slice()].concat(), "on a line of its own");
}

#[test]
fn a_file_is_rotated_between_lines_in_the_middle_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.log");
    let input = lines(0, 1_000);
    write(input.as_bytes(), &path, &KEEP);
    let kept = whole(&path, KEEP.files);
    assert!(input.ends_with(&kept) && kept.starts_with("line "), "{kept}");
    assert!(kept.len() > 3_000, "{}", kept.len());
    for file in (1..=3).map(|number| numbered(&path, number)).chain([path.clone()]) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.len() <= 1_000 && text.ends_with('\n') && text.starts_with("line "), "{text}");
    }
    assert!(!numbered(&path, 4).exists());
    write(lines(1_000, 1_002).as_bytes(), &path, &keep(1_000_000, 3));
    assert!(whole(&path, 3).ends_with("line 999\nline 1000\nline 1001\n"));
}

#[test]
fn a_line_that_fits_into_no_file_is_parted_and_nothing_of_it_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.log");
    let input = format!("{}\nnext\n", "x".repeat(200_000));
    write(input.as_bytes(), &path, &keep(90_000, 5));
    assert_eq!(whole(&path, 5), input);
    assert!(numbered(&path, 2).exists());
}

#[test]
fn what_is_kept_is_bounded_by_count_and_age_and_other_files_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.log");
    for name in ["job.log.1", "job.log.2", "job.log.3", "job.log.7", "job.log.2027", "job.log.1.gz", "other.log.9"] {
        File::create(folder.path().join(name)).unwrap().write_all(name.as_bytes()).unwrap();
    }
    let old = SystemTime::now() - Duration::from_secs(7_200);
    File::options().append(true).open(numbered(&path, 2)).unwrap().set_modified(old).unwrap();
    let keep = OutputKeep { age: Some(Duration::from_secs(3_600)), ..KEEP };
    write(b"line\n".as_slice(), &path, &keep);
    let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["job.log", "job.log.1", "job.log.1.gz", "job.log.2027", "job.log.3", "other.log.9"]);
}

#[test]
fn without_predecessors_a_full_file_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.log");
    write(lines(0, 1_000).as_bytes(), &path, &keep(100, 0));
    assert!(fs::read_to_string(&path).unwrap().ends_with("line 999\n"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn two_runs_that_write_one_file_at_once_keep_every_line_whole_across_rotations() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.log");
    const LINES: u32 = 20_000;
    let input = |run: &str| -> String { (0..LINES).map(|n| format!("{run} {n} {}\n", "x".repeat(20))).collect() };
    thread::scope(|scope| {
        for run in ["a", "b", "c"] {
            let (path, input) = (&path, input(run));
            // In small pieces, so that the runs take turns.
            scope.spawn(move || write(Pieces(input.as_bytes()), path, &keep(50_000, 500)));
        }
    });
    let text = whole(&path, 500);
    for run in ["a", "b", "c"] {
        let own: String = text.lines().filter(|line| line.starts_with(run)).map(|line| format!("{line}\n")).collect();
        assert_eq!(own.len(), input(run).len());
        let mut numbers: Vec<u32> = own.lines().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..LINES), "each line of {run} is there once");
    }
    assert!(numbered(&path, 10).exists(), "it was rotated many times");
    let sizes = (1..=500).map_while(|number| fs::metadata(numbered(&path, number)).ok()).map(|file| file.len());
    let sizes: Vec<_> = sizes.collect();
    assert!(sizes.iter().all(|size| *size > 45_000), "each time by one of them alone: {sizes:?}");
}

struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(700);
        self.0.read(&mut buffer[..most])
    }
}

#[test]
fn a_file_that_others_rotate_is_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.log");
    let (input, mut output) = io::pipe().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| write(input, &path, &keep(1 << 20, 2)));
        output.write_all(b"before\n").unwrap();
        wait("the first line", || fs::read(&path).is_ok_and(|text| text == b"before\n"));
        fs::rename(&path, folder.path().join("moved")).unwrap();
        output.write_all(b"after\n").unwrap();
        drop(output);
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), "after\n");
    assert_eq!(fs::read_to_string(folder.path().join("moved")).unwrap(), "before\n");
}

#[test]
fn a_link_a_pipe_a_directory_and_a_file_as_directory_are_refused_and_the_input_is_read_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious"), "as it was").unwrap();
    symlink(at("precious"), at("link")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), 0o600.into()).unwrap();
    for name in ["link", "pipe", "directory", "precious/job.log"] {
        let input = lines(0, 100_000);
        let (written, said) = write(input.as_bytes(), &at(name), &KEEP);
        assert_eq!(written, Written { bytes: 0, lost: input.len() as u64 }, "{name}");
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(said.contains(&format!("{} bytes of output were lost", input.len())), "{said}");
    }
    assert_eq!(fs::read_to_string(at("precious")).unwrap(), "as it was");
}

#[test]
fn a_file_that_can_not_be_rotated_grows_and_that_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.log");
    // A directory where the rotated file should go.
    fs::create_dir_all(numbered(&path, 1).join("in the way")).unwrap();
    let (written, said) = write(lines(0, 20_000).as_bytes(), &path, &keep(1_000, 1));
    assert_eq!(fs::read_to_string(&path).unwrap(), lines(0, 20_000));
    assert_eq!((written.lost, said.lines().count()), (0, 1), "{said}");
}

/// The writer as a process whose files have at most 64 KiB: the nearest to a full disk that needs no mount.
fn limited_to_64_kib(path: &Path) -> Child {
    let test = std::env::current_exe().unwrap();
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" --exact shim::writer::tests::as_a_process --nocapture";
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(test).env("WRITER_TEST_PATH", path);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The process that another test starts; by itself it has nothing to do.
#[test]
fn as_a_process() {
    let Some(path) = std::env::var_os("WRITER_TEST_PATH").map(PathBuf::from) else { return };
    write_files(io::stdin(), &path, &OutputKeep::default()).unwrap();
}

#[test]
fn without_room_output_is_lost_and_said_and_it_goes_on_when_there_is_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.log");
    let mut writer = limited_to_64_kib(&path);
    let mut stdin = writer.stdin.take().unwrap();
    let input = lines(0, 50_000);
    stdin.write_all(input.as_bytes()).unwrap();
    wait("all is read", || rustix::io::ioctl_fionread(&stdin).unwrap() == 0);
    wait("it is full", || fs::metadata(&path).is_ok_and(|file| file.len() == 65_536));
    // The last piece may still be under way; it ends with the number that is looked for.
    File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
    stdin.write_all(b"there is room\n").unwrap();
    drop(stdin);
    let said = io::read_to_string(writer.stderr.take().unwrap()).unwrap();
    assert!(writer.wait().unwrap().success());
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("line 0\nlin\n") && text.ends_with("\nthere is room\n"), "{text}");
    let said: Vec<_> = said.lines().filter(|line| line.contains("job.log")).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].contains("bytes of output were lost: File too large"), "{said:?}");
}
