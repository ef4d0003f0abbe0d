//! The statements, in the order of the port. `../postgres/sql/` has the same names; what is one
//! function there is several statements of one transaction here.

mod fleet;
mod jobs;
mod locks;
mod pruning;
mod requests;
mod runs;
mod schema;

pub(super) use fleet::*;
pub(super) use jobs::*;
pub(super) use locks::*;
pub(super) use pruning::*;
pub(super) use requests::*;
pub(super) use runs::*;
pub(super) use schema::*;

/// Takes the file for writing before anything is read.
pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";

pub(super) const COMMIT: &str = "COMMIT";
