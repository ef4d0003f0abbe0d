//! Floor 1: the words of the hosts. Pure.
//!
//! A *host* is a machine by name, an *instance* one start of the daemon on it; several daemons of one
//! name are normal with SQLite, so nothing rests on the host's name.

mod host;
mod label;
mod pattern;

pub use host::{HostName, HostRow, InstanceId, InvalidHostName};
pub use label::{InvalidLabel, Label};
pub use pattern::{HostPattern, InvalidHostPattern};
