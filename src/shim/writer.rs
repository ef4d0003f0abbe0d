use std::io::{self, Read};
use std::path::Path;

use crate::job::OutputKeep;

/// Placeholder until the branch of outputs is merged.
pub(super) fn write_files(mut input: impl Read, path: &Path, _keep: &OutputKeep) -> io::Result<u64> {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path)?;
    io::copy(&mut input, &mut file)
}
