use std::path::Path;

use super::store::Opened;
use super::{Failure, print};

pub(super) fn run(path: &Path) -> Result<(), Failure> {
    let opened = Opened::new_or_made(path)?;
    let migrated = opened.ask(async |store| store.migrate().await)?;
    if migrated.from == migrated.to {
        return print(&format!("the tables have version {} already\n", migrated.to));
    }
    print(&format!("the tables were brought from version {} to {}\n", migrated.from, migrated.to))
}
