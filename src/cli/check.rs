use std::path::Path;

use clap::Args;
use serde_json::json;

use super::{Failure, print, print_json};
use crate::clock::human;
use crate::config;

#[derive(Args, Debug)]
pub(super) struct Check {
    /// One JSON array of problems instead of text
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(&self, path: &Path) -> Result<(), Failure> {
        let loaded = config::load(path);
        if self.json {
            let rows: Vec<_> =
                loaded.problems.iter().map(|problem| json!({ "problem": problem.to_string() })).collect();
            print_json(&rows)?;
        } else {
            for problem in &loaded.problems {
                print(&format!("{problem}\n"))?;
            }
        }
        if !loaded.problems.is_empty() {
            return Err(Failure::config(format!("{} problems", loaded.problems.len())));
        }
        if !self.json
            && let Some(settings) = &loaded.settings
        {
            let outage = human(settings.lock.survived_outage());
            print(&format!(
                "{}: {} jobs, no problem\nan outage of the database of up to {outage} stops no running job\n",
                path.display(),
                loaded.jobs.len()
            ))?;
        }
        Ok(())
    }
}
