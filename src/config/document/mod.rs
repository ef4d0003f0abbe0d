//! What was typed: files, places in them, and values that remember where they stand.
//!
//! A file becomes a [`Source`], its text a table of TOML with spans, and a [`Section`] hands out the
//! values of one table as [`Field`]s. Nothing here knows what a key means.

mod field;
mod keys;
mod place;
mod section;
mod source;
mod syntax;
mod value;

pub use field::{Field, Typed};
pub use keys::{
    ALL, BLACKOUT, DAEMON, DATABASE, HISTORY, JOB, JOB_FILE, Keys, LIMITS, LOCK, LOG, MAIN_FILE, OUTPUT_KEEP, STDIN,
};
pub use place::Place;
pub use section::Section;
pub use source::{Source, unsafe_as_root};
pub use syntax::{Taken, Trust, parse, take};
pub use value::{Refused, Value, all};
