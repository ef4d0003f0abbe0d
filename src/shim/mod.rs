//! Floor 4: the process between daemon and job. No tokio task, no SQL; the only place that starts
//! processes, and the only one with `unsafe`.
//!
//! [`Spawner::spawn`] takes a [`SpawnRequest`] with an absolute deadline and gives a [`Child`]: its
//! exit, its output, [`Child::move_deadline`], [`Child::terminate`], [`Child::kill`]. Whatever
//! happens on the floors above, the child's process group is killed when its deadline passes.
//!
//! [`write_files`] is what a process of the job's own user does that writes its output to files.
//!
//! What is inside today is a plain child in its own process group, started by one thread that
//! lives as long as the daemon. It guarantees that
//! - the job's own process dies with the daemon (`PR_SET_PDEATHSIG`, which fires when the *thread*
//!   that forked it ends, `prctl(2)`: hence the one thread);
//! - the group is killed at the deadline by another thread, which does nothing else, also if the
//!   runtime stands still or the start of some process hangs;
//! - a process that can't be watched is killed, and its start counts as a failure, never as nothing.
//!
//! What it does *not* guarantee yet: that a program whose loading hangs past the deadline executes
//! nothing at all before it is killed; descendants that made sessions of their own, or that outlive a
//! killed daemon; anything while the daemon itself is stopped.

mod child;
mod enforcer;
mod group;
mod passwd;
mod spawner;
mod thread_end;
mod writer;

pub use child::{Child, Exit, Output};
pub use passwd::{User, current_user};
pub use spawner::{SpawnError, SpawnRequest, Spawner};
pub use writer::{Written, write_files};
