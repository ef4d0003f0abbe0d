//! Floor 1: the words of a lock. Pure: no clock, no I/O, no async.
//!
//! - a [`Resource`] is the name of what is locked, an [`Owner`] the unguessable name of one holder;
//! - a [`FencingToken`] rises with every new ownership of a resource and never falls;
//! - a [`Ttl`] is how long a grant lasts unless renewed, and [`LeaseTiming`] the rule that makes a
//!   holder stop before its grant can pass to somebody else.

mod owner;
mod resource;
mod timing;
mod token;

pub use owner::{InvalidOwner, Owner, PublicOwner};
pub use resource::{InvalidResource, Resource};
pub use timing::{InvalidTiming, InvalidTtl, LeaseTiming, Ttl};
pub use token::FencingToken;
