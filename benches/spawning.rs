//! What the processes between daemon and job cost, beside starting the same programs without them.
//!
//! Each comparison is made in nine alternating pairs; the median of the ratios and the interval that holds
//! seven of the nine are printed, and `inconclusive` if the interval doesn't reach the bound.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cronlatch::clock::BootInstant;
use cronlatch::job::ProcessSetup;
use cronlatch::shim::{Child, ChildEvent, Executable, Program, SpawnRequest, Spawner};

const PAIRS: usize = 9;
const AT_A_TIME: usize = 16;
const RUNS: usize = 800;
const BURST: usize = 100;
const PROGRAM: &str = "/bin/true";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let spawner = runtime.block_on(async {
        Arc::new(Spawner::start(Executable::at(Path::new(env!("CARGO_BIN_EXE_cronlatch"))).unwrap()).unwrap())
    });
    runtime.block_on(with_shims(&spawner, AT_A_TIME));
    plain(AT_A_TIME);

    let rates = pairs(|| (runtime.block_on(with_shims(&spawner, RUNS)), plain(RUNS)));
    report("runs a second, 16 at a time, with shims / without", rates, 0.7, |ratio, bound| ratio >= bound);
    let lateness = pairs(|| (runtime.block_on(burst_with_shims(&spawner)), burst_plain()));
    report("lateness of 100 at once (99 %), with shims / without", lateness, 1.6, |ratio, bound| ratio <= bound);
    let own = runtime.block_on(own_memory(&spawner));
    let verdict = if own <= 600 { "within" } else { "BEYOND" };
    println!("own memory of a shim: {own} KiB, {verdict} the 600 KiB that are allowed");
}

/// Runs both sides in turn; the first of a pair changes.
fn pairs(mut both: impl FnMut() -> (f64, f64)) -> Vec<(f64, f64)> {
    (0..PAIRS).map(|_| both()).collect()
}

fn report(what: &str, pairs: Vec<(f64, f64)>, bound: f64, is_fine: impl Fn(f64, f64) -> bool) {
    let mut ratios: Vec<f64> = pairs.iter().map(|(ours, bare)| ours / bare).collect();
    ratios.sort_by(f64::total_cmp);
    let (low, median, high) = (ratios[1], ratios[PAIRS / 2], ratios[PAIRS - 2]);
    let best = if is_fine(high, bound) { high } else { low };
    let verdict = match (is_fine(median, bound), is_fine(best, bound)) {
        (true, _) => "within",
        (false, true) => "inconclusive about",
        (false, false) => "BEYOND",
    };
    let (ours, bare) = pairs[PAIRS / 2];
    println!("{what}: {median:.2} ({low:.2} to {high:.2}; e.g. {ours:.0} / {bare:.0}), {verdict} the bound of {bound}");
}

fn request(program: &str) -> SpawnRequest {
    SpawnRequest {
        program: Program::Execute(vec![program.to_owned(), "600".to_owned()]),
        base_env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        env: Vec::new(),
        directory: Some("/".into()),
        setup: ProcessSetup::default(),
        deadline: BootInstant::now() + Duration::from_secs(600),
        kill_grace: Duration::from_secs(5),
        start_within: Duration::from_secs(30),
    }
}

async fn end(mut child: Child) {
    while !matches!(child.next().await, ChildEvent::Ended(_) | ChildEvent::Vanished) {}
}

/// Runs a second.
async fn with_shims(spawner: &Arc<Spawner>, runs: usize) -> f64 {
    let left = Arc::new(AtomicUsize::new(runs));
    let began = Instant::now();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..AT_A_TIME {
        let (spawner, left) = (spawner.clone(), left.clone());
        workers.spawn(async move {
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                end(spawner.spawn(&request(PROGRAM), std::future::pending()).await.unwrap()).await;
            }
        });
    }
    while workers.join_next().await.is_some() {}
    rate(runs, began)
}

/// Runs a second, by threads that spawn and wait.
fn plain(runs: usize) -> f64 {
    let left = AtomicUsize::new(runs);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    plain_command().output().unwrap();
                }
            });
        }
    });
    rate(runs, began)
}

fn plain_command() -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("600").env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn rate(runs: usize, began: Instant) -> f64 {
    f64::from(u32::try_from(runs).unwrap()) / began.elapsed().as_secs_f64()
}

/// When 99 of 100 jobs of one instant are started, in milliseconds.
async fn burst_with_shims(spawner: &Arc<Spawner>) -> f64 {
    let began = Instant::now();
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..BURST {
        let spawner = spawner.clone();
        starts.spawn(async move {
            let child = spawner.spawn(&request(PROGRAM), std::future::pending()).await.unwrap();
            let late = began.elapsed();
            end(child).await;
            late
        });
    }
    let mut late = Vec::new();
    while let Some(start) = starts.join_next().await {
        late.push(start.unwrap());
    }
    last_but_one(late)
}

fn burst_plain() -> f64 {
    let began = Instant::now();
    let mut children = Vec::new();
    let mut late = Vec::new();
    for _ in 0..BURST {
        children.push(plain_command().spawn().unwrap());
        late.push(began.elapsed());
    }
    for mut child in children {
        child.wait().unwrap();
    }
    last_but_one(late)
}

fn last_but_one(mut late: Vec<Duration>) -> f64 {
    late.sort();
    late[BURST - 2].as_secs_f64() * 1_000.0
}

/// What a shim has for itself alone, in KiB.
async fn own_memory(spawner: &Spawner) -> u64 {
    let child = spawner.spawn(&request("/bin/sleep"), std::future::pending()).await.unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.pid())).unwrap();
    let shim = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().to_owned();
    let rollup = fs::read_to_string(format!("/proc/{shim}/smaps_rollup")).unwrap();
    let field = |name: &str| -> u64 {
        let line = rollup.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // What is clean is the executable's, and on disk.
    let own = field("Private_Dirty:");
    child.kill();
    end(child).await;
    own
}
