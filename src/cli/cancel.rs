use std::path::Path;
use std::time::Duration;

use clap::Args;

use super::history::{Found, find, run_of};
use super::store::Opened;
use super::{Failure, print};
use crate::shim::current_user;
use crate::store::{Cancel as Wish, CancelAsked, RunRow, SharedStore, StoreError};

/// The time between two looks at a run that is stopping.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// More is no reason but a report.
const LONGEST_REASON: usize = 500;

#[derive(Args, Debug)]
pub(super) struct Cancel {
    /// The run's id, as `runs` and the log have it, or its beginning
    #[arg(value_name = "RUN")]
    run: String,
    /// Why, for whoever reads the history
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
    /// Wait until the run is over
    #[arg(long)]
    wait: bool,
}

impl Cancel {
    pub(super) fn run(&self, path: &Path) -> Result<(), Failure> {
        let opened = Opened::new(path)?;
        let run = self.wanted(&opened)?;
        let wish = Wish { by: asker(), reason: self.reason.clone() };
        let asked = opened.ask(async |store| store.request_cancel(run.run, &wish).await)?;
        let name = format!("{} ({} at {})", run.run, run.job, super::when::people(run.scheduled_at));
        match asked {
            CancelAsked::Cancelled => print(&format!("{name} waited, and is cancelled\n")),
            CancelAsked::Asked if self.wait => {
                let over = opened.ask(async |store| over(store, &run).await)?;
                print(&format!("{name} is over: {}\n", over.as_ref().map_or_else(|| "gone".to_owned(), in_words)))
            }
            CancelAsked::Asked => {
                let host = run.host.as_deref().unwrap_or("its host");
                print(&format!("{name} is to stop; {host} sees it within two seconds\n"))
            }
            CancelAsked::Over(state) => Err(Failure::usage(format!("{name} is over: {state}"))),
            CancelAsked::Unknown => Err(Failure::usage(format!("{name} is not in the history any more"))),
        }
    }

    fn wanted(&self, opened: &Opened) -> Result<RunRow, Failure> {
        let unknown = || Failure::usage(format!("no run {:?} in the history", self.run));
        match opened.ask_known(async |store| find(store, &self.run).await)? {
            Found::One(row) => Ok(*row),
            Found::None => Err(unknown()),
            Found::Many => Err(Failure::usage(format!("several runs begin with {:?}; write more of the id", self.run))),
        }
    }
}

/// Waits for the end of a run; `None` if it was pruned meanwhile.
async fn over(store: &SharedStore, run: &RunRow) -> Result<Option<RunRow>, StoreError> {
    loop {
        match run_of(store, run.run).await? {
            Some(row) if !row.state.is_final() => tokio::time::sleep(LOOK_AGAIN).await,
            over => return Ok(over),
        }
    }
}

fn in_words(row: &RunRow) -> String {
    match super::runs::why(row) {
        Some(why) => format!("{} ({why})", row.state),
        None => row.state.to_string(),
    }
}

/// Who asks: whoever became root for it, by their own name.
fn asker() -> String {
    let user = std::env::var("SUDO_USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| current_user().name);
    format!("{user}@{}", rustix::system::uname().nodename().to_string_lossy())
}

fn reason(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) || text.trim().is_empty() {
        return Err("write one line of text".to_owned());
    }
    if text.chars().count() > LONGEST_REASON {
        return Err(format!("write {LONGEST_REASON} characters at most"));
    }
    Ok(text.trim().to_owned())
}
