//! How long 10,000 jobs take from their files to their first instants, and how much memory.
//!
//! ```sh
//! cargo bench --bench loading
//! ```
//! Each layout is loaded several times in a process of its own: the least time is printed, the least
//! time of the processor, which counts as it depends less on other work on the machine, and the most
//! memory that the process had until the first loading was done.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use chrono::Utc;
use cronlatch::config;
use rustix::time::{ClockId, clock_gettime};

const JOBS: usize = 10_000;
const ROUNDS: usize = 15;
const LONGEST: Duration = Duration::from_millis(300);
const MOST_MIB: usize = 40;
const HEAD: &str = "[database]\nurl = \"sqlite:///tmp/a.db\"\n[daemon]\ntimezone = \"Europe/Berlin\"\n";

/// Names, and the number of jobs in one file of `jobs.d`; none: all stand in the main file.
const LAYOUTS: [(&str, Option<usize>); 3] =
    [("one file", None), ("100 jobs a file", Some(100)), ("one job a file", Some(1))];

fn main() {
    match env::var("CRONLATCH_BENCH_FOLDER") {
        Ok(folder) => measure(Path::new(&folder)),
        Err(_) => LAYOUTS.iter().for_each(|(name, a_file)| run(name, *a_file)),
    }
}

/// Writes the files and measures in a process that has done nothing else.
fn run(name: &str, a_file: Option<usize>) {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("cronlatch.toml");
    match a_file {
        None => fs::write(main, format!("{HEAD}{}", jobs(0, JOBS))).unwrap(),
        Some(a_file) => {
            fs::write(main, HEAD).unwrap();
            fs::create_dir(folder.path().join("jobs.d")).unwrap();
            for first in (0..JOBS).step_by(a_file) {
                let file = folder.path().join(format!("jobs.d/{first:05}.toml"));
                fs::write(file, jobs(first, a_file)).unwrap();
            }
        }
    }
    let measured =
        Command::new(env::current_exe().unwrap()).env("CRONLATCH_BENCH_FOLDER", folder.path()).output().unwrap();
    assert!(measured.status.success(), "{measured:?}");
    print!("{name:<16} {}", String::from_utf8(measured.stdout).unwrap());
}

fn jobs(first: usize, number: usize) -> String {
    let mut text = String::new();
    for n in first..first + number {
        let schedule = match n % 4 {
            0 => format!("*/{} * * * *", 1 + n % 30),
            1 => format!("{} {} * * *", n % 60, n % 24),
            2 => format!("{} 9-17 * * MON-FRI", n % 60),
            _ => format!("{} 3 {} * *", n % 60, 1 + n % 28),
        };
        let command = format!("[\"/usr/local/bin/job\", \"--number\", \"{n}\"]");
        writeln!(text, "[jobs.job-{n}]\nschedule = \"{schedule}\"\ncommand = {command}\ntimeout = \"1h\"\n").unwrap();
    }
    text
}

fn measure(folder: &Path) {
    let main = folder.join("cronlatch.toml");
    let (mut least, mut least_busy) = (Duration::MAX, Duration::MAX);
    let mut memory = 0;
    for round in 0..ROUNDS {
        let (start, busy) = (Instant::now(), processor_time());
        let loaded = config::load(&main);
        let now = Utc::now();
        let queued = loaded.jobs.iter().filter_map(|job| job.schedule.next_after(now)).count();
        least = least.min(start.elapsed());
        least_busy = least_busy.min(processor_time() - busy);
        assert_eq!((queued, loaded.problems.len()), (JOBS, 0));
        if round == 0 {
            memory = most_memory_kib() / 1024;
        }
    }
    let verdict = if least_busy <= LONGEST && memory <= MOST_MIB { "within" } else { "BEYOND" };
    println!(
        "{least:>9.1?} ({least_busy:.1?} of the processor) {memory:>4} MiB, {verdict} the {LONGEST:?} and {MOST_MIB} MiB that are allowed"
    );
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap()
}

/// `VmHWM` of this process.
fn most_memory_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
